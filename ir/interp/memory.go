package interp

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/layout"
)

// memory is a buffer or a shared array with the shadow that finds races: for every byte, who wrote and who read it last.
type memory struct {
	data      []byte
	undefined []bool  // of shared arrays
	pending   []bool  // bytes that an asynchronous copy has still to write
	wrote     []touch // made at the first store
	read      []touch
}

// touch is an access by a lane (numbered through the block) of a tile in an epoch; several stands for more than one.
type touch struct {
	epoch, tile int64
	lane        int32
}

const several = -2

func (t touch) String() string {
	switch {
	case t.tile == several:
		return "several tiles"
	case t.lane == several:
		return fmt.Sprintf("several lanes of tile %d", t.tile)
	}
	return fmt.Sprintf("lane %d of tile %d", t.lane, t.tile)
}

// cells checks an access of n bytes at byte offset at by a lane and returns the bytes.
func (m *machine) cells(mem ir.Memory, b *memory, at, n int64, write bool) []byte {
	limit := int64(len(b.data))
	if !write && mem.Param != nil {
		limit = (limit + 63) &^ 63
	}
	if at < 0 || at+n > limit {
		what := "load from"
		if write {
			what = "store to"
		}
		m.fail("%s byte %d … %d of %s, which has %d", what, at, at+n-1, mem.Name(), len(b.data))
	}
	if at+n > int64(len(b.data)) { // the readable slack: bits that nothing may depend on
		out := make([]byte, n)
		for i := range out {
			out[i] = 0xA5
			if at+int64(i) < int64(len(b.data)) {
				out[i] = b.data[at+int64(i)]
			}
		}
		return out
	}
	return b.data[at : at+n]
}

func (m *machine) memory(mem ir.Memory) *memory {
	if mem.Param != nil {
		return m.mem[mem.Param]
	}
	return m.mem[mem.Array]
}

// touchBytes records an access and fails on a race: another lane's access to the same byte, in shared memory since the last
// barrier, which orders nothing else, or another tile's, where one of the two writes.
func (m *machine) touchBytes(mem ir.Memory, b *memory, at, n int64, lane int, write bool) {
	if mem.Param != nil && mem.Param.Access == ir.In {
		return
	}
	if b.wrote == nil {
		b.wrote, b.read = make([]touch, len(b.data)), make([]touch, len(b.data))
	}
	now := touch{m.epoch, m.tileID, int32(lane)}
	if mem.Param != nil {
		now.epoch = 1
	}
	for i := at; i < min(at+n, int64(len(b.data))); i++ {
		if b.pending != nil && b.pending[i] {
			m.fail("%v touches byte %d of %s while an asynchronous copy to it is pending", now, i, mem.Name())
		}
		if w := b.wrote[i]; w.epoch > 0 && (w.tile != m.tileID || w.epoch == now.epoch && w.lane != now.lane) {
			m.fail("race on byte %d of %s: %v and %v%s, the first writes", i, mem.Name(), w, now, unordered(mem))
		}
		if !write {
			if b.undefined != nil && b.undefined[i] {
				m.fail("%v reads byte %d of %s before it is written", now, i, mem.Name())
			}
			r, n := b.read[i], now
			if r.epoch > 0 && r.tile != n.tile {
				n.tile = several
			} else if r.epoch == n.epoch && r.lane != n.lane {
				n.lane = several
			}
			b.read[i] = n
			continue
		}
		if r := b.read[i]; r.epoch > 0 && (r.tile != m.tileID || r.epoch == now.epoch && r.lane != now.lane) {
			m.fail("race on byte %d of %s: %v and %v%s, the second writes", i, mem.Name(), r, now, unordered(mem))
		}
		b.wrote[i] = now
		if b.undefined != nil {
			b.undefined[i] = false
		}
	}
}

// unordered tells what could have ordered two accesses and doesn't.
func unordered(mem ir.Memory) string {
	if mem.Param != nil {
		return ", which no barrier orders"
	}
	return " with no barrier between"
}

// masked reports whether the lane takes part in a memory access.
func (m *machine) masked(mask *ir.Value, g, l int) bool {
	return mask != nil && m.word(mask, g, l) == 0
}

func (m *machine) load(i *ir.Instr, active []bool) {
	size := int64(i.Mem.Type.Bytes())
	v := i.Results[0]
	mem := m.memory(i.Mem)
	m.count(i.Mem, i.Args[0], i.Args[1], size, i.Imm, active, v.Span == ir.Varying)
	m.each(v, active, func(g, l, at int) {
		off := m.index(i.Args[0], g, l) * size
		off0 := m.masked(i.Args[1], g, l)
		for n, r := range i.Results {
			w := uint32(0)
			if !off0 {
				lane := g*m.lanes + l
				if v.Span != ir.Varying {
					lane = several // every lane reads it
				}
				b := m.cells(i.Mem, mem, off+int64(n)*size, size, false)
				m.touchBytes(i.Mem, mem, off+int64(n)*size, size, lane, false)
				w = decode(i.Mem.Type, b)
			}
			m.slot(r).u[at] = w
		}
	})
}

func (m *machine) store(i *ir.Instr, active []bool) {
	size := int64(i.Mem.Type.Bytes())
	mem := m.memory(i.Mem)
	varying := i.Args[0].Span == ir.Varying
	for _, a := range i.Args[1:] {
		varying = varying || a != nil && a.Span == ir.Varying
	}
	m.count(i.Mem, i.Args[0], i.Args[1], size, i.Imm, active, varying)
	for g, on := range active {
		if !on {
			continue
		}
		for l := range m.lanes {
			if m.masked(i.Args[1], g, l) {
				continue
			}
			lane := g*m.lanes + l
			if !varying { // a uniform store is one store
				lane = g * m.lanes
			}
			off := m.index(i.Args[0], g, l) * size
			for n := range int(i.Imm) {
				b := m.cells(i.Mem, mem, off+int64(n)*size, size, true)
				m.touchBytes(i.Mem, mem, off+int64(n)*size, size, lane, true)
				encode(i.Mem.Type, b, m.word(i.Args[2+n], g, l))
			}
			if !varying {
				break
			}
		}
	}
}

func decode(t ir.Type, b []byte) uint32 {
	switch t {
	case ir.I8:
		return uint32(int32(int8(b[0])))
	case ir.U8:
		return uint32(b[0])
	case ir.I16:
		return uint32(int32(int16(binary.LittleEndian.Uint16(b))))
	case ir.F16:
		return f32bits(canon.F16ToF32(binary.LittleEndian.Uint16(b)))
	case ir.BF16:
		return uint32(binary.LittleEndian.Uint16(b)) << 16
	}
	return binary.LittleEndian.Uint32(b)
}

func encode(t ir.Type, b []byte, w uint32) {
	switch t {
	case ir.I8, ir.U8:
		b[0] = byte(w)
	case ir.I16:
		binary.LittleEndian.PutUint16(b, uint16(w))
	case ir.F16:
		binary.LittleEndian.PutUint16(b, canon.F32ToF16(f32(w)))
	case ir.BF16:
		binary.LittleEndian.PutUint16(b, canon.F32ToBF16(f32(w)))
	default:
		binary.LittleEndian.PutUint32(b, w)
	}
}

// count adds the wavefronts or sectors of an access of n elements of size bytes a lane.
func (m *machine) count(mem ir.Memory, index, mask *ir.Value, size, n int64, active []bool, varying bool) {
	for g, on := range active {
		if !on {
			continue
		}
		at := m.where[:0]
		for l := range m.lanes {
			if !m.masked(mask, g, l) {
				x := m.index(index, g, l)
				at = append(at, int(x*size))
				if x%n != 0 {
					m.report.Unaligned++
				}
			}
			if !varying {
				break
			}
		}
		m.countAt(mem, at, int(size*n))
	}
}

func (m *machine) countAt(mem ir.Memory, at []int, width int) {
	if len(at) == 0 {
		return
	}
	if mem.Array != nil {
		for i := range at {
			at[i] += mem.Array.Offset
		}
		w, ideal := layout.Conflicts(at, max(width, 4))
		m.report.SharedWavefronts += int64(w)
		m.report.SharedIdeal += int64(ideal)
		return
	}
	// Sorted, the ranges join: bytes asked for and sectors touched are counted once each.
	slices.Sort(at)
	bytes, sectors := 0, 0
	end, sector := at[0], (at[0]>>5)-1 // of what is counted
	for _, a := range at {
		bytes += max(0, a+width-max(a, end))
		end = max(end, a+width)
		last := (a + width - 1) >> 5
		sectors += max(0, last-max(sector, a>>5-1))
		sector = max(sector, last)
	}
	m.report.GlobalSectors += int64(sectors)
	m.report.GlobalIdeal += int64((bytes + 31) / 32)
}

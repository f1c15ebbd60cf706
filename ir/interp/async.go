package interp

import "github.com/swizzle-rt/swizzle/ir"

// asyncState is one lane group's queue of asynchronous copies: open ones, committed groups, and those waited for, which land
// at the next barrier.
type asyncState struct {
	open   []copy16
	groups [][]copy16
	waited []copy16
}

type copy16 struct {
	mem  ir.Memory
	at   int64
	data [16]byte
	lane int
}

func (s *asyncState) pending() int {
	n := len(s.open) + len(s.waited)
	for _, g := range s.groups {
		n += len(g)
	}
	return n
}

func (m *machine) asynchronous(i *ir.Instr, active []bool) {
	for g, on := range active {
		if !on {
			continue
		}
		s := &m.async[g]
		switch i.Op {
		case ir.OpAsyncCommit:
			s.groups = append(s.groups, s.open)
			s.open = nil
		case ir.OpAsyncWait:
			for int64(len(s.groups)) > i.Imm {
				s.waited = append(s.waited, s.groups[0]...)
				s.groups = s.groups[1:]
			}
		case ir.OpAsyncCopy:
			m.asyncCopy(i, s, g)
		}
	}
}

func (m *machine) asyncCopy(i *ir.Instr, s *asyncState, g int) {
	var from []int
	b := m.memory(i.Mem)
	if b.pending == nil {
		b.pending = make([]bool, len(b.data))
	}
	for l := range m.lanes {
		lane := g*m.lanes + l
		to := m.index(i.Args[0], g, l) * int64(i.Mem.Type.Bytes())
		if to%16 != 0 {
			m.fail("lane %d copies to byte %d of %s, which is not a multiple of 16", lane, to, i.Mem.Name())
		}
		m.cells(i.Mem, b, to, 16, true)
		m.touchBytes(i.Mem, b, to, 16, lane, true)
		c := copy16{mem: i.Mem, at: to, lane: lane}
		if !m.masked(i.Args[2], g, l) {
			src := m.index(i.Args[1], g, l) * int64(i.Mem2.Type.Bytes())
			if src%16 != 0 {
				m.fail("lane %d copies from byte %d of %s, which is not a multiple of 16", lane, src, i.Mem2.Name())
			}
			source := m.memory(i.Mem2)
			copy(c.data[:], m.cells(i.Mem2, source, src, 16, false))
			m.touchBytes(i.Mem2, source, src, 16, lane, false)
			from = append(from, int(src))
		}
		s.open = append(s.open, c)
		m.report.AsyncCopies++
		for n := to; n < to+16; n++ {
			b.pending[n] = true
		}
	}
	m.countAt(i.Mem2, from, 16)
}

// barrier ends an epoch; every lane group must be there. Copies that their group has waited for land.
func (m *machine) barrier(active []bool) {
	for g, on := range active {
		if !on {
			m.fail("lane group %d does not reach the barrier", g)
		}
	}
	m.report.Barriers++
	m.epoch++
	for g := range m.async {
		for _, c := range m.async[g].waited {
			b := m.memory(c.mem)
			copy(b.data[c.at:], c.data[:])
			for n := c.at; n < c.at+16; n++ {
				b.pending[n] = false
			}
		}
		m.async[g].waited = nil
	}
}

func (m *machine) ldMatrix(i *ir.Instr, active []bool) {
	m.warp(i)
	mem := m.memory(i.Mem)
	for g, on := range active {
		if !on {
			continue
		}
		for n, r := range i.Results {
			var at []int
			for row := range 8 {
				off := m.index(i.Args[0], g, 8*n+row) * 4
				if off%16 != 0 {
					m.fail("lane %d gives byte %d of %s as a row of ldmatrix, which is not a multiple of 16", 8*n+row, off, i.Mem.Name())
				}
				at = append(at, int(off))
				b := m.cells(i.Mem, mem, off, 16, false)
				for c := range 4 {
					lane := 4*row + c
					m.touchBytes(i.Mem, mem, off+int64(4*c), 4, g*m.lanes+lane, false)
					m.slot(r).u[g*m.lanes+lane] = decode(ir.U32, b[4*c:])
				}
			}
			m.countAt(i.Mem, at, 16)
		}
	}
}

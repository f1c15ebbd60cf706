package sim

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

type space uint8

const (
	global space = iota
	shared
	param
)

// region is a buffer or a shared array.
type region struct {
	name     string
	base     uint64
	data     []byte
	readable uint64 // bytes that a load may reach
	readOnly bool
	shared   bool
	shadow
}

// slack is the granularity in which a buffer may be read beyond its end.
const slack = 64

// layout makes the regions of memory.
func (m *machine) layout() error {
	for _, b := range m.launch.Memory {
		n := uint64(len(b.Data))
		m.global = append(m.global, &region{name: b.Name, base: b.Addr, data: b.Data, readable: (n + slack - 1) &^ (slack - 1), readOnly: b.ReadOnly})
	}
	slices.SortFunc(m.global, func(a, b *region) int { return cmp.Compare(a.base, b.base) })
	for n, r := range m.global {
		switch {
		case r.base == 0 || r.base%16 != 0:
			return fmt.Errorf("buffer %s is at %#x; a multiple of 16 is needed", r.name, r.base)
		case n > 0 && r.base-m.global[n-1].base < m.global[n-1].readable:
			return fmt.Errorf("buffers %s and %s overlap", m.global[n-1].name, r.name)
		case !r.readOnly:
			r.shadow = newShadow(len(r.data))
		}
	}
	for _, a := range m.Entry.shared {
		r := &region{name: a.name, base: uint64(a.addr), data: make([]byte, a.size), readable: uint64(a.size), shared: true, shadow: newShadow(a.size)}
		if a.addr%4 != 0 {
			r.split()
		}
		m.shared = append(m.shared, r)
	}
	return nil
}

// find returns the region of an access of n bytes.
func (w *warp) find(in *instr, s space, at, n uint64, lane int, write bool) (*region, uint64, error) {
	if at&(n-1) != 0 {
		return nil, 0, w.fault(in, lane, "%s is not a multiple of %d", w.m.where(s, at), n)
	}
	r := w.last[s]
	if r == nil || at-r.base >= r.readable {
		if r = w.m.lookup(s, at); r == nil {
			return nil, 0, w.fault(in, lane, "address %#x belongs to nothing", at)
		}
		w.last[s] = r
	}
	off := at - r.base
	limit := r.readable
	if write {
		limit = uint64(len(r.data))
		if r.readOnly {
			return nil, 0, w.fault(in, lane, "store to %s, which is read-only", r.name)
		}
	}
	if off >= limit || n > limit-off {
		what := "load from"
		if write {
			what = "store to"
		}
		return nil, 0, w.fault(in, lane, "%s %s, which has %d bytes (address %#x)", what, w.m.where(s, at), len(r.data), at)
	}
	return r, off, nil
}

// near is how far from a region an address is still said to be meant for it.
const near = 1 << 31

// lookup returns the region that an address lies in, else the nearest one, else nil.
func (m *machine) lookup(s space, at uint64) *region {
	rs := m.global
	if s == shared {
		rs = m.shared
	}
	n, _ := slices.BinarySearchFunc(rs, at, func(r *region, at uint64) int {
		if r.base <= at {
			return -1
		}
		return 1
	})
	var r *region
	distance := uint64(near)
	if n > 0 {
		off := at - rs[n-1].base
		if off < rs[n-1].readable {
			return rs[n-1]
		}
		if d := off - rs[n-1].readable; d < distance {
			r, distance = rs[n-1], d
		}
	}
	if n < len(rs) && rs[n].base-at < distance {
		r = rs[n]
	}
	return r
}

// where names the place of an address.
func (m *machine) where(s space, at uint64) string {
	if r := m.lookup(s, at); r != nil {
		return fmt.Sprintf("byte %d of %s", int64(at-r.base), r.name)
	}
	return fmt.Sprintf("address %#x", at)
}

// accessOp is a load or a store of elements of one type, one for each register.
type accessOp struct {
	place
	space    space
	t        typ
	regs     []ref
	constant bool // through the path of memory that nothing writes
}

func (o *accessOp) width() uint64 { return uint64(o.t.bytes() * len(o.regs)) }

// access decodes ld and st.
func (b *body) access(in *instr, s *stmt, store bool, suffix string) error {
	unknown := fmt.Errorf("unknown instruction %s", s.op)
	parts := strings.Split(suffix, ".")
	o := &accessOp{}
	switch parts[0] {
	case "global":
		o.space = global
	case "shared":
		o.space = shared
	case "param":
		o.space = param
	default:
		return unknown
	}
	parts = parts[1:]
	if len(parts) > 0 && parts[0] == "nc" && o.space == global && !store {
		o.constant, parts = true, parts[1:]
	}
	n := 1
	if len(parts) > 0 && (parts[0] == "v2" || parts[0] == "v4") && o.space != param {
		n, parts = int(parts[0][1]-'0'), parts[1:]
	}
	if len(parts) != 1 || store && o.space == param {
		return unknown
	}
	t, ok := typeOf(parts[0])
	if !ok || t == pred || t == f16 || n*t.bytes() > 16 {
		return unknown
	}
	o.t = t
	if err := s.count(2); err != nil {
		return err
	}
	at, data := s.args[1], s.args[0]
	if store {
		at, data = s.args[0], s.args[1]
	}
	if err := b.elements(o, data, n, store); err != nil {
		return err
	}
	if o.space == param {
		return b.loadParam(in, o, at)
	}
	var err error
	if o.place, err = b.address(at, o.space); err != nil {
		return err
	}
	if store {
		in.src, in.run = append(slices.Clone(o.regs), o.reg), o.store
	} else {
		in.dst, in.src, in.run = o.regs, []ref{o.reg}, o.load
	}
	return nil
}

// elements sets the registers of the n elements.
func (b *body) elements(o *accessOp, data operand, n int, store bool) error {
	items := []operand{data}
	if n > 1 {
		items = data.items
		if data.kind != vector || len(items) != n {
			return fmt.Errorf("%v where a vector of %d is expected", data, n)
		}
	}
	for _, x := range items {
		var r ref
		var err error
		if store {
			r, err = b.source(x, o.t, true)
		} else if r, err = b.result(x, o.t, true); err == nil && slices.Contains(o.regs, r) {
			err = fmt.Errorf("two elements go to %s", x.text)
		}
		if err != nil {
			return err
		}
		o.regs = append(o.regs, r)
	}
	return nil
}

// loadParam decodes ld.param: a whole parameter.
func (b *body) loadParam(in *instr, o *accessOp, at operand) error {
	n := slices.IndexFunc(b.Params, func(p Param) bool { return p.Name == at.text })
	if at.kind != address || n < 0 || at.value != 0 {
		return fmt.Errorf("a parameter's name in brackets is expected")
	}
	if b.Params[n].Bytes != o.t.bytes() || o.regs[0].typ.bytes() != o.t.bytes() {
		return fmt.Errorf("parameter %s has %d bytes", at.text, b.Params[n].Bytes)
	}
	d := o.regs[0]
	in.dst = o.regs
	in.run = func(w *warp, _ *instr, mask uint32) error {
		v := w.m.launch.Params[n]
		for m := mask; m != 0; m &= m - 1 {
			w.put(d, bits.TrailingZeros32(m), v)
		}
		return nil
	}
	return nil
}

// at returns the address that a lane gives.
func (p *place) at(w *warp, lane int) uint64 {
	if p.reg.class == words {
		return uint64(w.w[p.reg.n][lane] + uint32(p.off))
	}
	return w.x[p.reg.n][lane] + p.off
}

// put sets a register in a lane.
func (w *warp) put(r ref, lane int, v uint64) {
	if r.class == longs {
		w.x[r.n][lane] = v
		return
	}
	w.w[r.n][lane] = cut(r.typ, v)
}

func (w *warp) get(r ref, lane int) uint64 {
	if r.class == longs {
		return w.x[r.n][lane]
	}
	return uint64(w.w[r.n][lane])
}

func (o *accessOp) load(w *warp, in *instr, mask uint32) error {
	width := o.width()
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at := o.at(w, lane)
		w.addrs[lane] = at
		r, off, err := w.find(in, o.space, at, width, lane, false)
		if err != nil {
			return err
		}
		if err := w.read(in, r, off, width, lane, o.constant); err != nil {
			return err
		}
		if o.t.bytes() == 4 && off+width <= uint64(len(r.data)) && !o.wide() {
			b := r.data[off : off+width]
			for k, d := range o.regs {
				w.w[d.n][lane] = binary.LittleEndian.Uint32(b[4*k:])
			}
			continue
		}
		b := r.bytes(off, width)
		for k, d := range o.regs {
			w.put(d, lane, o.t.narrow(little(b[k*o.t.bytes():], o.t.bytes())))
		}
	}
	w.count(in, o.space, width, mask)
	return nil
}

// wide reports whether the registers have 64 bits.
func (o *accessOp) wide() bool { return o.regs[0].class == longs }

func (o *accessOp) store(w *warp, in *instr, mask uint32) error {
	width, size := o.width(), o.t.bytes()
	w.m.now++
	var buf [16]byte
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at := o.at(w, lane)
		w.addrs[lane] = at
		r, off, err := w.find(in, o.space, at, width, lane, true)
		if err != nil {
			return err
		}
		b := buf[:width]
		for k, d := range o.regs {
			switch v := w.get(d, lane); size {
			case 1:
				b[k] = byte(v)
			case 2:
				binary.LittleEndian.PutUint16(b[2*k:], uint16(v))
			case 4:
				binary.LittleEndian.PutUint32(b[4*k:], uint32(v))
			case 8:
				binary.LittleEndian.PutUint64(b[8*k:], v)
			}
		}
		if err := w.write(in, r, off, b, lane); err != nil {
			return err
		}
		copy(r.data[off:], b)
	}
	w.count(in, o.space, width, mask)
	return nil
}

func little(b []byte, n int) uint64 {
	switch n {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// bytes returns n bytes of the region; those after its end are ones, which as floats are NaNs.
func (r *region) bytes(off, n uint64) []byte {
	if off+n <= uint64(len(r.data)) {
		return r.data[off : off+n]
	}
	b := bytes.Repeat([]byte{0xFF}, int(n))
	if off < uint64(len(r.data)) {
		copy(b, r.data[off:])
	}
	return b
}

package ptx

import (
	"fmt"
	"math"

	"github.com/swizzle-rt/swizzle/ir"
)

// pointer is an address: a register or the name of shared memory, and an offset in bytes.
type pointer struct {
	base   string
	offset int64
}

// at prints the address n bytes further.
func (a pointer) at(n int) string {
	if off := a.offset + int64(n); off != 0 {
		return fmt.Sprintf("[%s+%d]", a.base, off)
	}
	return "[" + a.base + "]"
}

// slot identifies the address of element v, without its constant part, of memory of elements of that size.
type slot struct {
	param *ir.Param // nil for shared memory
	v     *ir.Value
	size  int
}

// pointer returns the address of an element.
func (p *printer) pointer(m ir.Memory, x *ir.Value) pointer {
	size := m.Type.Bytes()
	v, c := split(x)
	a := pointer{offset: c * int64(size)}
	key := slot{m.Param, v, size}
	n, _ := shiftOf(int64(size))
	switch {
	case m.Array != nil:
		a.offset += int64(m.Array.Offset)
		if v == nil {
			a.base = shared
			break
		}
		a.base = p.once(key, word, func(d string) {
			p.ins("cvt.u32.u64", d, p.index(v))
			if n > 0 {
				p.ins("shl.b32", d, d, fmt.Sprint(n))
			}
			p.ins("add.u32", d, d, p.base())
		})
	case v == nil:
		a.base = p.param(ir.Buffer, int64(m.Param.Slot))
	default:
		a.base = p.once(key, wide, func(d string) {
			at := p.index(v)
			if n > 0 {
				p.ins("shl.b64", d, at, fmt.Sprint(n))
				at = d
			}
			p.ins("add.s64", d, at, p.param(ir.Buffer, int64(m.Param.Slot)))
		})
	}
	if m.Param != nil && (a.offset < math.MinInt32/2 || a.offset > math.MaxInt32/2) { // more than an instruction holds
		far := p.fresh(wide)
		p.ins("add.s64", far, a.base, imm(a.offset))
		a = pointer{base: far}
	}
	return a
}

// cell is how an element type is loaded and stored.
type cell struct{ load, store string }

var cells = map[ir.Type]cell{
	ir.I8: {"s8", "u8"}, ir.U8: {"u8", "u8"}, ir.I16: {"s16", "u16"}, ir.F16: {"b16", "b16"}, ir.BF16: {"u16", "u16"},
}

func cellOf(t ir.Type) cell {
	if c, ok := cells[t]; ok {
		return c
	}
	return cell{"b32", "b32"}
}

// guard returns the prefix of an instruction under a mask, and whether the mask never holds.
func (p *printer) guard(mask *ir.Value) (prefix string, never bool) {
	if mask == nil {
		return "", false
	}
	if c, ok := mask.Const(); ok {
		return "", c == 0
	}
	return "@" + p.bool(mask) + " ", false
}

// access writes a load or a store: one instruction if the elements are known to be aligned together.
func (p *printer) access(prefix, op, space, t string, a pointer, size int, together bool, regs []string) {
	emit := func(vector, regs string, at string) {
		name := prefix + op + "." + space + vector + "." + t
		if op == "st" {
			p.ins(name, at, regs)
		} else {
			p.ins(name, regs, at)
		}
	}
	if len(regs) > 1 && together {
		emit(fmt.Sprint(".v", len(regs)), list(regs), a.at(0))
		return
	}
	for n, r := range regs {
		emit("", r, a.at(n*size))
	}
}

func (p *printer) load(i *ir.Instr) {
	t := i.Mem.Type
	prefix, never := p.guard(i.Args[1])
	var a pointer
	if !never {
		a = p.pointer(i.Mem, i.Args[0])
	}
	var dst, loaded []string
	for _, r := range i.Results {
		d := p.dst(r)
		dst = append(dst, d)
		if prefix != "" || never {
			p.ins("mov.b32", d, "0")
		}
		if t == ir.F16 {
			d = p.fresh(half)
		}
		loaded = append(loaded, d)
	}
	if never {
		return
	}
	space := "shared"
	if m := i.Mem.Param; m != nil {
		space = "global"
		if m.Access == ir.In {
			space = "global.nc"
		}
	}
	p.access(prefix, "ld", space, cellOf(t).load, a, t.Bytes(), p.together(i), loaded)
	for n, d := range dst {
		switch t {
		case ir.F16:
			p.ins(prefix+"cvt.f32.f16", d, loaded[n])
		case ir.BF16:
			p.ins("shl.b32", d, d, "16")
		}
	}
}

func (p *printer) store(i *ir.Instr) {
	t := i.Mem.Type
	prefix, never := p.storeGuard(i)
	if never {
		return
	}
	var regs []string
	for _, v := range i.Args[2:] {
		switch t {
		case ir.F16:
			h := p.fresh(half)
			p.ins("cvt.rn.f16.f32", h, p.float(v))
			regs = append(regs, h)
		case ir.BF16:
			regs = append(regs, p.bfloat(v))
		default:
			regs = append(regs, p.word(v))
		}
	}
	a := p.pointer(i.Mem, i.Args[0])
	space := "shared"
	if i.Mem.Param != nil {
		space = "global"
	}
	p.access(prefix, "st", space, cellOf(t).store, a, t.Bytes(), p.together(i), regs)
}

// storeGuard is guard for a store. What is the same in all lanes is stored by one.
func (p *printer) storeGuard(i *ir.Instr) (prefix string, never bool) {
	prefix, never = p.guard(i.Args[1])
	for _, a := range i.Args {
		if a != nil && a.Span == ir.Varying {
			return prefix, never
		}
	}
	if prefix == "" {
		return "@" + p.leader() + " ", never
	}
	both := p.fresh(pred)
	p.ins("and.pred", both, p.bool(i.Args[1]), p.leader())
	return "@" + both + " ", never
}

// bfloat returns a float rounded to bfloat16, ties to even; NaN keeps the upper bits of its payload and becomes quiet.
func (p *printer) bfloat(v *ir.Value) string {
	x, top, d, nan := p.word(v), p.fresh(word), p.fresh(word), p.fresh(pred)
	p.ins("and.b32", d, x, "0x7FFFFFFF")
	p.ins("setp.gt.u32", nan, d, "0x7F800000")
	p.ins("shr.u32", top, x, "16")
	p.ins("and.b32", d, top, "1")
	p.ins("add.u32", d, d, x)
	p.ins("add.u32", d, d, "0x7FFF")
	p.ins("shr.u32", d, d, "16")
	p.ins("or.b32", top, top, "64")
	p.ins("selp.b32", d, top, d, nan)
	return d
}

// copy16 writes an asynchronous copy, a plain one where the architecture has no other: the place it is copied to may not be
// read before wait and barrier, so it may as well arrive at once.
func (p *printer) copy16(i *ir.Instr) {
	prefix, never := p.guard(i.Args[2])
	to := p.pointer(i.Mem, i.Args[0])
	from := pointer{base: p.param(ir.Buffer, int64(i.Mem2.Param.Slot))} // of nothing
	if !never {
		from = p.pointer(i.Mem2, i.Args[1])
	}
	if !p.model.async {
		v := make([]string, 4)
		for n := range v {
			v[n] = p.fresh(word)
			if prefix != "" || never {
				p.ins("mov.b32", v[n], "0")
			}
		}
		if !never {
			p.access(prefix, "ld", "global", "b32", from, 4, true, v)
		}
		p.access("", "st", "shared", "b32", to, 4, true, v)
		return
	}
	size := "16"
	switch {
	case never:
		size = "0"
	case prefix != "":
		size = p.once(copySize{i.Args[2]}, word, func(d string) { p.ins("selp.b32", d, "16", "0", p.bool(i.Args[2])) })
	}
	p.ins("cp.async.cg.shared.global", to.at(0), from.at(0), "16", size)
}

// copySize identifies the bytes that a copy under a mask reads.
type copySize struct{ mask *ir.Value }

func (p *printer) ldMatrix(i *ir.Instr) {
	a := p.pointer(i.Mem, i.Args[0])
	if p.model.rows && i.Imm < 4 { // lanes whose address is not used repeat one that is
		at, from := p.fresh(word), p.first(fmt.Sprint("row", i.Imm), word, func(d string) {
			p.ins("and.b32", d, p.lane(), fmt.Sprint(8*i.Imm-1))
		})
		if a.base == shared {
			a.base = p.base()
		}
		p.ins("shfl.sync.idx.b32", at, a.base, from, "31", "-1")
		a.base = at
	}
	var dst []string
	for _, r := range i.Results {
		dst = append(dst, p.dst(r))
	}
	p.ins(fmt.Sprintf("ldmatrix.sync.aligned.m8n8.x%d.shared.b16", i.Imm), list(dst), a.at(0))
}

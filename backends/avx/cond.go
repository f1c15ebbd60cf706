package avx

import (
	"math"

	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
)

// cond is a uniform comparison of indices, evaluated where it is used: op is OpLtX, OpLeX or OpEqX.
type cond struct {
	op   ir.Op
	a, b poly
}

// compareIndex defines a Bool from indices.
func (g *gen) compareIndex(i *ir.Instr) {
	a, b := g.val(i.Args[0]).x, g.val(i.Args[1]).x
	r := g.val(i.Results[0])
	if a.uniform() && b.uniform() {
		r.cond = &cond{i.Op, a.p, b.p}
		return
	}
	r.mask = g.compareLanes(i.Op, a, b)
}

// compareLanes compares a's lanes with b's: the varying parts against the difference of the uniform ones, clamped to what
// lanes can reach.
func (g *gen) compareLanes(op ir.Op, a, b index) []reg.Register {
	lanes := g.laneMap(index{}, func(l int, _ int64) int64 { return laneAt(a, l) - laneAt(b, l) }).lanes
	d := b.p.sub(a.p)
	if op == ir.OpLeX { // ≤ is < with one more on the right
		d = d.add(constant(1))
	}
	var x, bound []reg.VecVirtual
	var limit reg.VecVirtual
	swapped := a.vec == nil && b.vec != nil // −b < d is −d < b
	if swapped {
		x = g.offsets(g.times64(index{lanes: lanes}, constant(-1)).plus(b.vec))
		limit = g.clamped(d.scale(-1), math.MaxInt32)
	} else {
		x = g.offsets(index{lanes: lanes, vec: a.vec})
		bits := int64(math.MaxInt32)
		if b.vec != nil {
			bits = 1 << 30 // room to add the other side's lanes
		}
		limit = g.clamped(d, bits)
	}
	out := make([]reg.Register, g.parts)
	for p := range out {
		bound = append(bound, limit)
		if a.vec != nil && b.vec != nil {
			bound[p] = g.vec()
			g.put(x86.VPADDD(b.vec[p], limit, bound[p]))
		}
		out[p] = g.newMask()
		switch {
		case op == ir.OpEqX:
			g.compare(cmpEqI, x[p], bound[p], false, out[p])
		case swapped:
			g.compare(cmpLtI, bound[p], x[p], false, out[p])
		default:
			g.compare(cmpLtI, x[p], bound[p], false, out[p])
		}
	}
	return out
}

// clamped broadcasts p limited to ±limit.
func (g *gen) clamped(p poly, limit int64) reg.VecVirtual {
	if p.isConst() {
		return g.splatReg(uint32(max(-limit, min(limit, p.c))))
	}
	x := g.index(p)
	r, t := g.gp(), g.gp()
	g.put(x86.MOVQ(x, r))
	g.mov(limit, t)
	g.put(x86.CMPQ(r, t))
	g.put(x86.CMOVQGT(t, r))
	t = g.gp()
	g.mov(-limit, t)
	g.put(x86.CMPQ(r, t))
	g.put(x86.CMOVQLT(t, r))
	return g.fromGP(r)
}

// cmpq compares the two sides of c and returns the op to test them by and whether they are exchanged.
func (g *gen) cmpq(c *cond) (swapped bool) {
	a, b := c.a, c.b
	if a.isConst() {
		a, b, swapped = b, a, true
	}
	x := g.index(a)
	if b.isConst() && fits32(b.c) {
		g.put(x86.CMPQ(x, imm(b.c)))
	} else {
		g.put(x86.CMPQ(x, g.index(b)))
	}
	return swapped
}

type jump func(operand.Op) (*avo.Instruction, error)

// branchUnless jumps to the label where the uniform condition does not hold.
func (g *gen) branchUnless(v *ir.Value, label string) {
	to := operand.LabelRef(label)
	if c := g.val(v).cond; c != nil {
		if holds, ok := c.known(); ok {
			if !holds {
				g.put(x86.JMP(to))
			}
			return
		}
		swapped := g.cmpq(c)
		j := map[ir.Op][2]jump{ // unless a < b: a ≥ b, exchanged: b ≤ a
			ir.OpLtX: {x86.JGE, x86.JLE},
			ir.OpLeX: {x86.JGT, x86.JLT},
			ir.OpEqX: {x86.JNE, x86.JNE},
		}[c.op][b2i(swapped)]
		g.put(j(to))
		return
	}
	f := g.flag(v)
	g.put(x86.TESTL(f.As32(), f.As32()))
	g.put(x86.JEQ(to))
}

// flag returns a uniform Bool as 0 or 1 in a general register.
func (g *gen) flag(v *ir.Value) reg.GPVirtual {
	b := g.val(v)
	switch {
	case b.flag != nil:
		return b.flag
	case b.cond != nil:
		if holds, ok := b.cond.known(); ok {
			r := g.gp()
			g.mov(int64(b2i(holds)), r)
			return r
		}
		swapped := g.cmpq(b.cond)
		set := map[ir.Op][2]jump{
			ir.OpLtX: {x86.SETLT, x86.SETGT},
			ir.OpLeX: {x86.SETLE, x86.SETGE},
			ir.OpEqX: {x86.SETEQ, x86.SETEQ},
		}[b.cond.op][b2i(swapped)]
		r := g.gp()
		low := g.gp()
		g.put(set(low.As8()))
		g.put(x86.MOVBLZX(low.As8(), r.As32()))
		return r
	}
	r := g.maskBits(b.mask[0])
	one := g.gp()
	g.put(x86.MOVL(r.As32(), one.As32()))
	g.put(x86.ANDL(operand.U32(1), one.As32()))
	return one
}

// inMask reports whether the Bool lies in a mask register.
func (g *gen) inMask(v *ir.Value) bool { return g.val(v).mask != nil }

// mask returns a Bool as a mask for each part.
func (g *gen) mask(v *ir.Value) []reg.Register {
	if m := g.val(v).mask; m != nil {
		for len(m) < g.parts {
			m = append(m, m[0])
		}
		return m
	}
	f := g.flag(v)
	r := g.gp()
	g.put(x86.MOVL(f.As32(), r.As32()))
	g.put(x86.NEGL(r.As32()))
	var m reg.Register
	if g.arch.evex {
		k := g.regs.K()
		g.put(x86.KMOVW(r.As32(), k))
		m = k
	} else {
		m = g.fromGP(r)
	}
	out := make([]reg.Register, g.parts)
	for p := range out {
		out[p] = m
	}
	return out
}

// maskBits returns one bit per lane of a part's mask.
func (g *gen) maskBits(m reg.Register) reg.GPVirtual {
	r := g.gp()
	if g.arch.evex {
		g.put(x86.KMOVW(m, r.As32()))
	} else {
		g.put(x86.VMOVMSKPS(m, r.As32()))
	}
	return r
}

// logic defines the result of and, or, not on Bools.
func (g *gen) logic(i *ir.Instr) {
	r := g.val(i.Results[0])
	inMask := i.Results[0].Span == ir.Varying
	all := true
	for _, a := range i.Args {
		all = all && g.inMask(a)
	}
	if !inMask && !all {
		f := g.gp()
		x := g.flag(i.Args[0])
		switch i.Op {
		case ir.OpNotB:
			g.put(x86.MOVL(x.As32(), f.As32()))
			g.put(x86.XORL(operand.U32(1), f.As32()))
		case ir.OpAndB:
			y := g.flag(i.Args[1])
			g.put(x86.MOVL(x.As32(), f.As32()))
			g.put(x86.ANDL(y.As32(), f.As32()))
		case ir.OpOrB:
			y := g.flag(i.Args[1])
			g.put(x86.MOVL(x.As32(), f.As32()))
			g.put(x86.ORL(y.As32(), f.As32()))
		}
		r.flag = f
		return
	}
	a := g.mask(i.Args[0])
	var b []reg.Register
	if len(i.Args) > 1 {
		b = g.mask(i.Args[1])
	}
	r.mask = make([]reg.Register, g.partsOf(i.Results[0]))
	for p := range r.mask {
		m := g.newMask()
		switch {
		case i.Op == ir.OpNotB && g.arch.evex:
			g.put(x86.KNOTW(a[p], m))
		case i.Op == ir.OpNotB:
			ones := g.vec()
			g.ones(ones)
			g.put(x86.VPXOR(ones, a[p], m))
		case i.Op == ir.OpAndB && g.arch.evex:
			g.put(x86.KANDW(b[p], a[p], m))
		case i.Op == ir.OpAndB:
			g.put(x86.VPAND(b[p], a[p], m))
		case g.arch.evex:
			g.put(x86.KORW(b[p], a[p], m))
		default:
			g.put(x86.VPOR(b[p], a[p], m))
		}
		r.mask[p] = m
	}
}

func (g *gen) newMask() reg.Register {
	if g.arch.evex {
		return g.regs.K()
	}
	return g.vec()
}

// known returns the value of a condition on constants.
func (c *cond) known() (holds, ok bool) {
	if d := c.a.sub(c.b); d.isConst() {
		switch c.op {
		case ir.OpLtX:
			return d.c < 0, true
		case ir.OpLeX:
			return d.c <= 0, true
		default:
			return d.c == 0, true
		}
	}
	return false, false
}

// allLanes sets every bit of a mask.
func (g *gen) allLanes(m reg.Register) {
	if !g.arch.evex {
		g.ones(m)
		return
	}
	g.fresh(x86.KXNORW(m, m, m))
}

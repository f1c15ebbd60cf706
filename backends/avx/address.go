package avx

import (
	"math"
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Byte offsets in kernel.Args.
const (
	argInts    = 8 * kernel.Buffers
	argFloats  = argInts + 8*kernel.Ints
	argScratch = argFloats + 4*kernel.Floats
)

func fits32(c int64) bool { return c == int64(int32(c)) }

// imm returns a 32-bit immediate for a 64-bit instruction.
func imm(c int64) operand.Op { return operand.I32(int32(c)) }

// mov loads a constant into r.
func (g *gen) mov(c int64, r reg.Register) {
	switch {
	case c == 0:
		g.put(x86.XORQ(r, r))
	case fits32(c):
		g.put(x86.MOVQ(imm(c), r))
	default:
		g.put(x86.MOVQ(operand.I64(c), r))
	}
}

// args returns the register of the argument block's address.
func (g *gen) args() reg.GPVirtual {
	return g.entry("args", func(r reg.GPVirtual) { g.put(x86.MOVQ(operand.NewParamAddr("a", 0), r)) }).reg
}

// argument returns the 64-bit value at that offset of the argument block.
func (g *gen) argument(key any, offset int) *atom {
	return g.entry(key, func(r reg.GPVirtual) { g.put(x86.MOVQ(operand.Mem{Base: g.args(), Disp: offset}, r)) })
}

// entry returns the atom of a value that is loaded once, before the loop over tiles.
func (g *gen) entry(key any, load func(r reg.GPVirtual)) *atom {
	a := g.bases[key]
	if a == nil {
		g.within(g.scope.root(), func() {
			r := g.gp()
			load(r)
			a = g.newAtom(r)
		})
		g.bases[key] = a
	}
	return a
}

// base returns the address of a buffer or shared array.
func (g *gen) base(m ir.Memory) poly {
	if m.Param != nil {
		return g.argument(m.Param, 8*m.Param.Slot).poly()
	}
	return g.argument("scratch", argScratch).poly().add(constant(int64(m.Array.Offset)))
}

// cached returns the register of a polynomial that has one here.
func (g *gen) cached(p poly) (reg.GPVirtual, bool) {
	key := p.key()
	for s := g.scope; s != nil; s = s.parent {
		if r, ok := s.regs[key]; ok {
			return r, true
		}
	}
	return nil, false
}

// keep records that r holds p as long as scope s lasts.
func (s *scope) keep(p poly, r reg.GPVirtual) {
	s.regs[p.key()] = r
	s.polys = append(s.polys, p)
}

// sibling finds a polynomial of scope s that has a register and differs from p only by outer values, the least different one.
func (g *gen) sibling(s *scope, p poly) (q, diff poly, ok bool) {
	for _, c := range s.polys {
		d := p.sub(c)
		if d.scope(s.root()).depth < s.depth && (!ok || len(d.terms) < len(diff.terms)) {
			q, diff, ok = c, d, true
		}
	}
	return q, diff, ok
}

// index returns p in a register that nobody changes: computed as far out as p allows, or as a pointer that the loop advances.
func (g *gen) index(p poly) reg.GPVirtual {
	if len(p.terms) == 1 && p.c == 0 && p.terms[0].coef == 1 && len(p.terms[0].atoms) == 1 {
		return p.terms[0].atoms[0].reg
	}
	if p.isConst() {
		r := g.gp()
		g.mov(p.c, r)
		return r
	}
	if r, ok := g.cached(p); ok {
		return r
	}
	var r reg.GPVirtual
	s := p.scope(g.scope.root())
	if s.v != nil && p.c == 0 {
		if coef, rest, ok := p.linear(s.v); ok {
			r = g.induction(s, coef, rest)
		}
	}
	if r == nil {
		g.within(s, func() { r = g.sum(p) })
	}
	s.keep(p, r)
	return r
}

// induction makes a register that holds coef·v + rest in the loop body s.
func (g *gen) induction(s *scope, coef, rest poly) reg.GPVirtual {
	r := g.gp()
	var step reg.GPVirtual
	by := coef.scale(s.step)
	g.within(s.parent, func() {
		if start := rest.add(coef.mul(s.lo)); start.isConst() {
			g.mov(start.c, r)
		} else {
			g.put(x86.MOVQ(g.index(start), r))
		}
		if !by.isConst() || !fits32(by.c) {
			step = g.index(by)
		}
	})
	out := g.out
	g.out = s.latch
	if step != nil {
		g.put(x86.ADDQ(step, r))
	} else {
		g.put(x86.ADDQ(imm(by.c), r))
	}
	g.out = out
	return r
}

// sum computes p, of the current scope, into a new register.
func (g *gen) sum(p poly) reg.GPVirtual {
	if p.c != 0 && fits32(p.c) {
		r := g.gp()
		g.put(x86.LEAQ(operand.Mem{Base: g.index(p.variable()), Disp: int(p.c)}, r))
		return r
	}
	if q, d, ok := g.sibling(g.scope, p); ok && len(p.terms) > 1 {
		x, r := g.scope.regs[q.key()], g.gp()
		if d.isConst() && fits32(d.c) {
			g.put(x86.LEAQ(operand.Mem{Base: x, Disp: int(d.c)}, r))
		} else {
			g.put(x86.LEAQ(operand.Mem{Base: x, Index: g.index(d), Scale: 1}, r))
		}
		return r
	}
	outer, inner := p.split(g.scope)
	var acc reg.GPVirtual
	if !outer.isConst() {
		acc = g.index(outer.variable())
	}
	// Terms with coefficient 1 first: they can start the sum without an instruction.
	terms := slices.Clone(inner.terms)
	slices.SortStableFunc(terms, func(a, b term) int { return b2i(a.coef != 1) - b2i(b.coef != 1) })
	for _, t := range terms {
		x := g.product(t.atoms)
		r := g.gp()
		switch {
		case acc == nil && t.coef == 1:
			r = x
		case acc == nil:
			g.times(x, t.coef, r)
		case t.coef == 1 || t.coef == 2 || t.coef == 4 || t.coef == 8:
			g.put(x86.LEAQ(operand.Mem{Base: acc, Index: x, Scale: uint8(t.coef)}, r))
		case t.coef == -1:
			g.put(x86.MOVQ(acc, r))
			g.put(x86.SUBQ(x, r))
		default:
			y := g.gp()
			g.times(x, t.coef, y)
			g.put(x86.LEAQ(operand.Mem{Base: acc, Index: y, Scale: 1}, r))
		}
		acc = r
	}
	if p.c != 0 {
		r := g.gp()
		g.mov(p.c, r)
		g.put(x86.ADDQ(acc, r))
		acc = r
	}
	return acc
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// times sets r to x · c.
func (g *gen) times(x reg.GPVirtual, c int64, r reg.GPVirtual) {
	if fits32(c) {
		g.put(x86.IMUL3Q(imm(c), x, r))
		return
	}
	g.mov(c, r)
	g.put(x86.IMULQ(x, r))
}

// product returns the product of the atoms.
func (g *gen) product(atoms []*atom) reg.GPVirtual {
	if len(atoms) == 1 {
		return atoms[0].reg
	}
	// Outer values first, so that their product is made outside.
	by := slices.Clone(atoms)
	slices.SortStableFunc(by, func(a, b *atom) int { return a.scope.depth - b.scope.depth })
	last := by[len(by)-1]
	head := slices.Clone(by[:len(by)-1])
	slices.SortStableFunc(head, func(a, b *atom) int { return a.id - b.id })
	p := poly{terms: []term{{1, atoms}}}
	if r, ok := g.cached(p); ok {
		return r
	}
	x := g.index(poly{terms: []term{{1, head}}})
	r := g.gp()
	g.put(x86.MOVQ(x, r))
	g.put(x86.IMULQ(last.reg, r))
	g.scope.keep(p, r)
	return r
}

// address returns an operand for the byte address p, which has a pointer among its terms.
func (g *gen) address(p poly) operand.Mem {
	if !fits32(p.c) || p.c > math.MaxInt32-4096 || p.c < math.MinInt32+4096 { // room for the parts of a vector
		return operand.Mem{Base: g.index(p)}
	}
	m := operand.Mem{Disp: int(p.c)}
	p = p.variable()
	if r, ok := g.cached(p); ok {
		m.Base = r
		return m
	}
	s := p.scope(g.scope.root())
	if q, d, ok := g.sibling(s, p); ok && d.c == 0 && len(d.terms) == 1 && len(d.terms[0].atoms) == 1 {
		switch t := d.terms[0]; t.coef {
		case 1, 2, 4, 8:
			m.Base, m.Index, m.Scale = s.regs[q.key()], t.atoms[0].reg, uint8(t.coef)
			return m
		}
	}
	outer, inner := p.split(s)
	if len(inner.terms) == 1 && len(inner.terms[0].atoms) == 1 && !outer.isConst() {
		switch t := inner.terms[0]; t.coef {
		case 1, 2, 4, 8:
			m.Base, m.Index, m.Scale = g.index(outer), t.atoms[0].reg, uint8(t.coef)
			return m
		}
	}
	m.Base = g.index(p)
	return m
}

package avx

import (
	"math"
	"math/bits"
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
)

// index is an Index value: p + lanes[l] + vec[l] in lane l.
type index struct {
	p     poly
	lanes []int64          // a constant per lane; nil where all are 0
	vec   []reg.VecVirtual // 32 bits per lane; nil where all are 0
}

func (x index) uniform() bool { return x.lanes == nil && x.vec == nil }

// plus returns x with that varying part.
func (x index) plus(vec []reg.VecVirtual) index {
	x.vec = vec
	return x
}

// contiguous reports whether lane l + 1 is one above lane l.
func (x index) contiguous() bool {
	return x.stride() == 1
}

// stride returns the constant distance between neighbouring lanes, 0 where it is not constant.
func (x index) stride() int64 {
	if x.vec != nil || x.lanes == nil {
		return 0
	}
	d := x.lanes[1] - x.lanes[0]
	for l, c := range x.lanes {
		if c != x.lanes[0]+int64(l)*d {
			return 0
		}
	}
	return d
}

// laneMap applies f to the constants of all lanes.
func (g *gen) laneMap(x index, f func(l int, c int64) int64) index {
	out := make([]int64, g.lanes)
	for l := range out {
		c := int64(0)
		if x.lanes != nil {
			c = x.lanes[l]
		}
		out[l] = f(l, c)
	}
	if !slices.ContainsFunc(out, func(c int64) bool { return c != 0 }) {
		out = nil
	}
	return index{p: x.p, lanes: out, vec: x.vec}
}

func laneAt(x index, l int) int64 {
	if x.lanes == nil {
		return 0
	}
	return x.lanes[l]
}

// indexOp defines the result of index arithmetic.
func (g *gen) indexOp(i *ir.Instr) {
	a, b := g.val(i.Args[0]).x, g.val(i.Args[1]).x
	g.val(i.Results[0]).x = g.indexArith(i.Op, a, b)
}

func (g *gen) indexArith(op ir.Op, a, b index) index {
	switch op {
	case ir.OpAddX:
		r := g.laneMap(a, func(l int, c int64) int64 { return c + laneAt(b, l) })
		r.p = a.p.add(b.p)
		switch {
		case a.vec == nil:
			r.vec = b.vec
		case b.vec != nil:
			r.vec = g.vectors(x86.VPADDD, a.vec, b.vec)
		}
		return g.bounded(r)
	case ir.OpSubX:
		return g.indexArith(ir.OpAddX, a, g.times64(b, constant(-1)))
	case ir.OpMulX:
		if !a.uniform() {
			a, b = b, a
		}
		if a.uniform() {
			return g.times64(b, a.p)
		}
		return index{vec: g.vectors(x86.VPMULLD, g.vec32(a), g.vec32(b))}
	case ir.OpShlX:
		return g.times64(a, constant(1<<uint(g.constIndex(b)&63)))
	case ir.OpShrX:
		g.constIndex(b)
	}
	if r, ok := g.splitIndex(op, a, b); ok {
		return r
	}
	if a.uniform() && b.uniform() {
		return index{p: g.scalarOp(op, a.p, b.p)}
	}
	return index{vec: g.varyingOp(op, a, b)}
}

// bounded turns a polynomial that has grown large into a single opaque value.
func (g *gen) bounded(x index) index {
	if len(x.p.terms) > 8 {
		v := x.p.variable()
		c := x.p.c
		x.p = g.opaque(v).add(constant(c))
	}
	return x
}

// opaque computes p and names the result.
func (g *gen) opaque(p poly) poly {
	r := g.index(p)
	var a *atom
	g.within(p.scope(g.scope.root()), func() { a = g.newAtom(r) })
	return a.poly()
}

// times64 returns x · f.
func (g *gen) times64(x index, f poly) index {
	r := index{p: x.p.mul(f)}
	if f.isConst() {
		if f.c == 0 {
			return index{}
		}
		r = g.laneMap(x, func(_ int, c int64) int64 { return c * f.c })
		r.p = x.p.mul(f)
		if x.vec != nil {
			r.vec = g.scaled(x.vec, f.c)
		}
		return g.bounded(r)
	}
	if !x.uniform() {
		u := g.fromGP(g.index(f))
		by := make([]reg.VecVirtual, g.parts)
		for p := range by {
			by[p] = u
		}
		x.p = poly{}
		r.vec = g.vectors(x86.VPMULLD, g.vec32(x), by)
	}
	return g.bounded(r)
}

// scaled returns v · c.
func (g *gen) scaled(v []reg.VecVirtual, c int64) []reg.VecVirtual {
	if c == 1 {
		return v
	}
	out := make([]reg.VecVirtual, len(v))
	for p := range v {
		out[p] = g.vec()
		if c > 0 && bits.OnesCount64(uint64(c)) == 1 {
			g.put(x86.VPSLLD(operand.U8(bits.TrailingZeros64(uint64(c))), v[p], out[p]))
		} else {
			g.put(x86.VPMULLD(g.splat(uint32(c)), v[p], out[p]))
		}
	}
	return out
}

// vectors applies a two-operand instruction to each part.
func (g *gen) vectors(op ctor, a, b []reg.VecVirtual) []reg.VecVirtual {
	out := make([]reg.VecVirtual, len(a))
	for p := range a {
		out[p] = g.vec()
		g.put(op(b[p], a[p], out[p]))
	}
	return out
}

func (g *gen) constIndex(x index) int64 {
	if !x.uniform() || !x.p.isConst() {
		g.fail("the second operand must be a constant")
	}
	return x.p.c
}

// splitIndex evaluates division, remainder and bit operations whose uniform part passes through unchanged, which leaves an
// operation on constants.
func (g *gen) splitIndex(op ir.Op, a, b index) (index, bool) {
	if a.vec != nil || b.vec != nil || !b.p.isConst() {
		return index{}, false
	}
	apply := func(c int64, l int) int64 { return op.Info().Index(c+laneAt(a, l), b.p.c+laneAt(b, l)) }
	if a.p.isConst() {
		r := g.laneMap(a, func(l int, _ int64) int64 { return apply(a.p.c, l) })
		if a.uniform() && b.uniform() {
			return index{p: constant(apply(a.p.c, 0))}, true
		}
		r.p = poly{}
		return r, true
	}
	if !b.uniform() {
		return index{}, false
	}
	// a = d·q + small with 0 ≤ small + lanes.
	d := b.p.c
	switch op {
	case ir.OpShrX:
		d = 1 << uint(b.p.c&63)
	case ir.OpAndX:
		d = b.p.c + 1
	case ir.OpXorX:
		d = 1 << bits.Len64(uint64(b.p.c))
	case ir.OpDivX, ir.OpModX:
	default:
		return index{}, false
	}
	power := d > 0 && d&(d-1) == 0
	if d <= 0 || !power && op != ir.OpDivX && op != ir.OpModX || !a.p.divisible(d) {
		return index{}, false
	}
	for l := range g.lanes {
		if c := a.p.c + laneAt(a, l); c < 0 || op == ir.OpXorX && c >= d {
			return index{}, false
		}
	}
	r := g.laneMap(a, func(l int, _ int64) int64 { return apply(a.p.c, l) })
	if r.lanes != nil && a.uniform() {
		r = index{p: constant(r.lanes[0])}
	} else {
		r.p = poly{}
	}
	switch op {
	case ir.OpDivX, ir.OpShrX:
		r.p = r.p.add(a.p.quotient(d))
	case ir.OpXorX:
		r.p = r.p.add(a.p.variable())
	}
	return r, true
}

// scalarOp computes a uniform operation in general registers, as far out as its operands allow.
func (g *gen) scalarOp(op ir.Op, a, b poly) poly {
	s := a.scope(g.scope.root())
	if t := b.scope(g.scope.root()); t.depth > s.depth {
		s = t
	}
	divides := op == ir.OpDivX || op == ir.OpModX
	if divides && !(b.isConst() && b.c > 0) {
		s = g.scope // a division by zero must not happen before its statement
	}
	var r poly
	g.within(s, func() {
		out := g.gp()
		switch {
		case divides && b.isConst() && b.c > 0 && b.c&(b.c-1) == 0:
			g.put(x86.MOVQ(g.index(a), out))
			if op == ir.OpDivX {
				g.put(x86.SHRQ(operand.U8(bits.TrailingZeros64(uint64(b.c))), out))
			} else {
				g.and(b.c-1, out)
			}
		case divides:
			q, m := g.divide(g.index(a), g.index(b))
			out = q
			if op == ir.OpModX {
				out = m
			}
		case op == ir.OpShrX:
			g.put(x86.MOVQ(g.index(a), out))
			g.put(x86.SHRQ(operand.U8(b.c&63), out))
		default:
			if a.isConst() {
				a, b = b, a
			}
			x := g.index(a)
			switch {
			case op == ir.OpAndX && b.isConst():
				g.put(x86.MOVQ(x, out))
				g.and(b.c, out)
			case op == ir.OpAndX:
				y := g.index(b)
				g.put(x86.MOVQ(x, out))
				g.put(x86.ANDQ(y, out))
			case op == ir.OpXorX:
				y := g.index(b)
				g.put(x86.MOVQ(x, out))
				g.put(x86.XORQ(y, out))
			case op == ir.OpMinX:
				y := g.index(b)
				g.put(x86.MOVQ(x, out))
				g.put(x86.CMPQ(y, out))
				g.put(x86.CMOVQLT(y, out))
			case op == ir.OpMaxX:
				y := g.index(b)
				g.put(x86.MOVQ(x, out))
				g.put(x86.CMPQ(y, out))
				g.put(x86.CMOVQGT(y, out))
			default:
				g.fail("no uniform %s", op)
			}
		}
		r = g.newAtom(out).poly()
	})
	return r
}

// and sets r to r & c.
func (g *gen) and(c int64, r reg.Register) {
	if fits32(c) {
		g.put(x86.ANDQ(imm(c), r))
		return
	}
	t := g.gp()
	g.mov(c, t)
	g.put(x86.ANDQ(t, r))
}

// divide returns the quotient and the remainder of non-negative numbers.
func (g *gen) divide(a, b reg.GPVirtual) (q, m reg.GPVirtual) {
	q, m = g.gp(), g.gp()
	g.put(x86.MOVQ(a, reg.RAX))
	g.put(x86.XORQ(reg.RDX, reg.RDX))
	g.put(x86.DIVQ(b))
	g.put(x86.MOVQ(reg.RAX, q))
	g.put(x86.MOVQ(reg.RDX, m))
	return q, m
}

// varyingOp computes a varying operation in 32 bits.
func (g *gen) varyingOp(op ir.Op, a, b index) []reg.VecVirtual {
	switch op {
	case ir.OpMinX:
		return g.vectors(x86.VPMINSD, g.vec32(a), g.vec32(b))
	case ir.OpMaxX:
		return g.vectors(x86.VPMAXSD, g.vec32(a), g.vec32(b))
	case ir.OpAndX:
		return g.vectors(g.arch.and, g.vec32(a), g.vec32(b))
	case ir.OpXorX:
		return g.vectors(g.arch.xor, g.vec32(a), g.vec32(b))
	}
	if b.uniform() && b.p.isConst() {
		d := b.p.c
		if op == ir.OpShrX {
			d = 1 << uint(min(b.p.c, 31))
		}
		if d > 0 && d <= math.MaxInt32 && d&(d-1) == 0 {
			x := g.vec32(a)
			out := make([]reg.VecVirtual, len(x))
			for p := range x {
				out[p] = g.vec()
				if op == ir.OpModX {
					g.put(g.arch.and(g.splat(uint32(d-1)), x[p], out[p]))
				} else {
					g.put(x86.VPSRLD(operand.U8(bits.TrailingZeros64(uint64(d))), x[p], out[p]))
				}
			}
			return out
		}
	}
	return g.divideLanes(op, g.vec32(a), g.vec32(b))
}

// divideLanes divides lane by lane through the stack.
func (g *gen) divideLanes(op ir.Op, a, b []reg.VecVirtual) []reg.VecVirtual {
	num, den := g.toStack(a), g.toStack(b)
	for l := range g.lanes {
		x, y := g.gp(), g.gp()
		g.put(x86.MOVL(num.Offset(4*l), x.As32()))
		g.put(x86.MOVL(den.Offset(4*l), y.As32()))
		q, m := g.divide(x, y)
		if op == ir.OpModX {
			q = m
		}
		g.put(x86.MOVL(q.As32(), num.Offset(4*l)))
	}
	out := make([]reg.VecVirtual, g.parts)
	for p := range out {
		out[p] = g.vec()
		g.put(x86.VMOVUPS(num.Offset(p*g.width), out[p]))
	}
	return out
}

// toStack writes the parts of a vector to the frame.
func (g *gen) toStack(v []reg.VecVirtual) operand.Mem {
	m := g.frame(4 * g.lanes)
	for p := range g.parts {
		g.put(x86.VMOVUPS(v[min(p, len(v)-1)], m.Offset(p*g.width)))
	}
	return m
}

// laneWords returns the constants of part p's lanes in memory.
func (g *gen) laneWords(lanes []int64, p int) operand.Mem {
	w := make([]uint32, g.per)
	for l := range w {
		w[l] = uint32(lanes[p*g.per+l])
	}
	return g.data.words(w)
}

// offsets returns lanes + vec, 32 bits a lane.
func (g *gen) offsets(x index) []reg.VecVirtual {
	if x.lanes == nil && x.vec != nil {
		return x.vec
	}
	out := make([]reg.VecVirtual, g.parts)
	for p := range out {
		out[p] = g.vec()
		switch {
		case x.lanes == nil:
			g.zero(out[p])
		case x.vec == nil:
			g.put(x86.VMOVUPS(g.laneWords(x.lanes, p), out[p]))
		default:
			g.put(x86.VPADDD(g.laneWords(x.lanes, p), x.vec[p], out[p]))
		}
	}
	return out
}

// vec32 returns the low 32 bits of x in every lane.
func (g *gen) vec32(x index) []reg.VecVirtual {
	if x.p.isConst() {
		x = g.laneMap(x, func(_ int, c int64) int64 { return c + x.p.c })
		return g.offsets(x)
	}
	u := g.fromGP(g.index(x.p))
	out := make([]reg.VecVirtual, g.parts)
	for p := range out {
		switch {
		case x.uniform():
			out[p] = u
		case x.vec == nil:
			out[p] = g.vec()
			g.put(x86.VPADDD(g.laneWords(x.lanes, p), u, out[p]))
		default:
			out[p] = g.vec()
			g.put(x86.VPADDD(x.vec[p], u, out[p]))
			if x.lanes != nil {
				g.put(x86.VPADDD(g.laneWords(x.lanes, p), out[p], out[p]))
			}
		}
	}
	return out
}

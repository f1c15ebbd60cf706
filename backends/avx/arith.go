package avx

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
)

// binary prints a lane-wise instruction of two sources, the second of which may be memory.
func (g *gen) binary(i *ir.Instr) {
	r := &g.arch.rows[i.Op]
	a, b := i.Args[0], i.Args[1]
	if r.commutes() && g.inMemory(a) && !g.inMemory(b) {
		a, b = b, a
	}
	g.each(i, func(p int, dst reg.VecVirtual) {
		x := g.in(a, p)
		y, bcst := g.src(b, p)
		if bcst {
			g.put(r.bcst(y, x, dst))
		} else {
			g.put(r.plain(y, x, dst))
		}
	})
}

// each makes the result's registers and calls f for each part.
func (g *gen) each(i *ir.Instr, f func(p int, dst reg.VecVirtual)) {
	dst := make([]reg.VecVirtual, g.partsOf(i.Results[0]))
	for p := range dst {
		dst[p] = g.vec()
		f(p, dst[p])
	}
	g.val(i.Results[0]).vec = dst
}

func (g *gen) toF32(i *ir.Instr) {
	g.each(i, func(p int, dst reg.VecVirtual) {
		x, bcst := g.src(i.Args[0], p)
		if bcst {
			g.put(x86.VCVTDQ2PS_BCST(x, dst))
		} else {
			g.put(x86.VCVTDQ2PS(x, dst))
		}
	})
}

// fma prints a · b + c in the register of c.
func (g *gen) fma(i *ir.Instr) {
	a, b, c := i.Args[0], i.Args[1], i.Args[2]
	if g.inMemory(a) && !g.inMemory(b) {
		a, b = b, a
	}
	g.each(i, func(p int, dst reg.VecVirtual) {
		x := g.in(a, p)
		y, bcst := g.src(b, p)
		g.accumulator(c, p, dst)
		if bcst {
			g.put(x86.VFMADD231PS_BCST(y, x, dst))
		} else {
			g.put(x86.VFMADD231PS(y, x, dst))
		}
	})
}

// accumulator sets dst to part p of c, for an instruction that updates it.
func (g *gen) accumulator(c *ir.Value, p int, dst reg.VecVirtual) {
	if m := g.val(c).mem; m != nil && m.bits != nil {
		g.constant(*m.bits, dst)
		return
	}
	g.move(g.in(c, p), dst)
}

// shift prints a shift by a constant or by a count in each lane.
func (g *gen) shift(i *ir.Instr) {
	f := shifts[i.Op]
	n := g.val(i.Args[1]).mem
	if n == nil || n.bits == nil {
		g.each(i, func(p int, dst reg.VecVirtual) {
			x := g.in(i.Args[0], p)
			y, bcst := g.src(i.Args[1], p)
			if bcst {
				g.put(f.byLaneBcst(y, x, dst))
			} else {
				g.put(f.byLane(y, x, dst))
			}
		})
		return
	}
	count := min(*n.bits, 255)
	if i.Op == ir.OpShrI {
		count = min(count, 31)
	}
	g.each(i, func(p int, dst reg.VecVirtual) {
		if count > 31 {
			g.zero(dst)
			return
		}
		if !g.arch.evex {
			g.put(f.byImm(operand.U8(count), g.in(i.Args[0], p), dst))
			return
		}
		x, bcst := g.src(i.Args[0], p)
		if bcst {
			g.put(f.byImmBcst(operand.U8(count), x, dst))
		} else {
			g.put(f.byImm(operand.U8(count), x, dst))
		}
	})
}

var shifts = map[ir.Op]struct{ byImm, byImmBcst, byLane, byLaneBcst ctor }{
	ir.OpShl:  {x86.VPSLLD, x86.VPSLLD_BCST, x86.VPSLLVD, x86.VPSLLVD_BCST},
	ir.OpShrU: {x86.VPSRLD, x86.VPSRLD_BCST, x86.VPSRLVD, x86.VPSRLVD_BCST},
	ir.OpShrI: {x86.VPSRAD, x86.VPSRAD_BCST, x86.VPSRAVD, x86.VPSRAVD_BCST},
}

// comparison is a lane-wise comparison.
type comparison uint8

const (
	cmpLtF comparison = iota
	cmpLeF
	cmpEqF
	cmpUnordF
	cmpLtI
	cmpLtU
	cmpEqI
)

var comparisons = map[ir.Op]comparison{
	ir.OpLtF: cmpLtF, ir.OpLeF: cmpLeF, ir.OpEqF: cmpEqF, ir.OpLtI: cmpLtI, ir.OpLtU: cmpLtU, ir.OpEqI: cmpEqI,
}

// predicate is the immediate of VCMPPS (ordered, quiet) or VPCMPD.
var predicate = [...]operand.U8{cmpLtF: 0x11, cmpLeF: 0x12, cmpEqF: 0x00, cmpUnordF: 0x03, cmpLtI: 1, cmpLtU: 1, cmpEqI: 0}

// compareWords defines a Bool from words.
func (g *gen) compareWords(i *ir.Instr) {
	kind := comparisons[i.Op]
	out := make([]reg.Register, g.partsOf(i.Results[0]))
	for p := range out {
		out[p] = g.newMask()
		a := g.in(i.Args[0], p)
		if g.arch.evex || kind != cmpLtI && kind != cmpLtU {
			b, bcst := g.src(i.Args[1], p)
			g.compare(kind, a, b, bcst, out[p])
		} else {
			g.compare(kind, a, g.in(i.Args[1], p), false, out[p])
		}
	}
	g.val(i.Results[0]).mask = out
}

// compare sets out to the lanes where a < b (or ≤, =). With VEX encodings b is a register if the kind is < of integers.
func (g *gen) compare(kind comparison, a reg.Register, b operand.Op, bcst bool, out reg.Register) {
	imm := predicate[kind]
	pick := func(plain, broadcast ctor) ctor {
		if bcst {
			return broadcast
		}
		return plain
	}
	switch {
	case kind <= cmpUnordF:
		g.put(pick(x86.VCMPPS, x86.VCMPPS_BCST)(imm, b, a, out))
	case g.arch.evex && kind == cmpLtU:
		g.put(pick(x86.VPCMPUD, x86.VPCMPUD_BCST)(imm, b, a, out))
	case g.arch.evex:
		g.put(pick(x86.VPCMPD, x86.VPCMPD_BCST)(imm, b, a, out))
	case kind == cmpEqI:
		g.put(x86.VPCMPEQD(b, a, out))
	case kind == cmpLtI:
		g.put(x86.VPCMPGTD(a, b, out))
	default: // a < b is not max(a, b) = a
		t, ones := g.vec(), g.vec()
		g.put(x86.VPMAXUD(b, a, t))
		g.put(x86.VPCMPEQD(a, t, t))
		g.ones(ones)
		g.put(x86.VPXOR(ones, t, out))
	}
}

// choose prints Select.
func (g *gen) choose(i *ir.Instr) {
	m := g.mask(i.Args[0])
	g.each(i, func(p int, dst reg.VecVirtual) {
		no := g.in(i.Args[2], p)
		yes, bcst := g.src(i.Args[1], p)
		switch {
		case bcst:
			g.blend(x86.VPBLENDMD_BCST, yes, no, m[p], dst)
		case g.arch.evex:
			g.blend(x86.VPBLENDMD, yes, no, m[p], dst)
		default:
			g.put(x86.VBLENDVPS(m[p], yes, no, dst))
		}
	})
}

// blend prints VPBLENDMD, which avo takes for a merging instruction that reads its destination.
func (g *gen) blend(op ctor, yes operand.Op, no, k, dst reg.Register) {
	i, err := op(yes, no, k, dst)
	if err == nil {
		i.Inputs = []operand.Op{yes, no, k}
	}
	g.put(i, err)
}

// lookup prints Lookup16.
func (g *gen) lookup(i *ir.Instr) {
	words := make([]uint32, g.per)
	for n := range words {
		for b := range 4 {
			words[n] |= uint32(i.Table[n%4*4+b]) << (8 * b)
		}
	}
	table := g.hoisted(words)
	g.each(i, func(p int, dst reg.VecVirtual) { g.put(x86.VPSHUFB(g.in(i.Args[0], p), table, dst)) })
}

// cast gives the same registers another type.
func (g *gen) cast(i *ir.Instr) {
	a := g.val(i.Args[0])
	if a.sum != nil {
		g.finishSum(i.Args[0])
	}
	r := g.val(i.Results[0])
	r.vec, r.mem = a.vec, a.mem
}

// toIndex makes a lane's or a uniform I32 an index.
func (g *gen) toIndex(i *ir.Instr) {
	a, r := i.Args[0], g.val(i.Results[0])
	if m := g.val(a).mem; m != nil && m.bits != nil {
		r.x = index{p: constant(int64(int32(*m.bits)))}
		return
	}
	if a.Span == ir.Varying {
		for p := range g.parts {
			r.x.vec = append(r.x.vec, g.in(a, p))
		}
		return
	}
	x := g.gp()
	if m := g.val(a).mem; m != nil {
		g.put(x86.MOVLQSX(g.word(m), x))
	} else {
		t := g.gp()
		g.put(x86.VMOVD(g.in(a, 0).AsX(), t.As32()))
		g.put(x86.MOVLQSX(t.As32(), x))
	}
	r.x = index{p: g.newAtom(x).poly()}
}

// fromIndex makes the low 32 bits of an index an I32.
func (g *gen) fromIndex(i *ir.Instr) {
	x, r := g.val(i.Args[0]).x, g.val(i.Results[0])
	switch {
	case x.uniform() && x.p.isConst():
		w := uint32(x.p.c)
		r.mem = &memory{bits: &w}
	case x.uniform() && i.Results[0].Span != ir.Varying:
		r.vec = []reg.VecVirtual{g.fromGP(g.index(x.p))}
	default:
		r.vec = g.vec32(x)
	}
}

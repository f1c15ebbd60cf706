package avx

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
)

// wordSum is a chain of dot products kept in 16 bits a pair of bytes until their sum is needed.
type wordSum struct {
	acc   *ir.Value // what the chain started from
	pairs []reg.VecVirtual
	bound int64 // of a pair's magnitude
}

// dotVNNI prints Dot4US as one VPDPBUSD a part.
func (g *gen) dotVNNI(i *ir.Instr) {
	u, s, acc := i.Args[0], i.Args[1], i.Args[2]
	g.each(i, func(p int, dst reg.VecVirtual) {
		x := g.in(u, p)
		var y operand.Op
		bcst := false
		if g.arch.evex {
			y, bcst = g.src(s, p)
		} else {
			y = g.in(s, p)
		}
		g.accumulator(acc, p, dst)
		if bcst {
			g.put(x86.VPDPBUSD_BCST(y, x, dst))
		} else {
			g.dpbusd(y, x, dst)
		}
	})
}

// dpbusd adds the dot products of s's signed and u's unsigned bytes to acc.
func (g *gen) dpbusd(s operand.Op, u, acc reg.Register) {
	i, err := x86.VPDPBUSD(s, u, acc)
	if err == nil && !g.arch.evex {
		i.ISA = []string{avxVNNI} // until encodeVEX gives it that encoding
	}
	g.put(i, err)
}

// dotWords prints Dot4US for AVX2. VPMADDUBSW saturates where 2·umax·128 is above 32767; smaller bounds leave room to add
// several products before they are widened.
func (g *gen) dotWords(i *ir.Instr) {
	u, s, acc := i.Args[0], i.Args[1], i.Args[2]
	bound := 2 * i.Imm * 128
	if bound > math.MaxInt16 {
		g.each(i, func(p int, dst reg.VecVirtual) { g.dotExact(g.in(u, p), g.in(s, p), g.in(acc, p), dst) })
		return
	}
	sum := &wordSum{acc: acc, bound: bound}
	chain := g.val(acc).sum
	if chain != nil && chain.bound+bound <= math.MaxInt16 {
		sum.acc = chain.acc
		sum.bound += chain.bound
	} else if chain != nil {
		g.finishSum(acc)
		chain = nil
	}
	for p := range g.partsOf(i.Results[0]) {
		x := g.in(u, p)
		y, _ := g.src(s, p)
		t := g.vec()
		g.put(x86.VPMADDUBSW(y, x, t))
		if chain != nil {
			w := g.vec()
			g.put(x86.VPADDW(t, chain.pairs[min(p, len(chain.pairs)-1)], w))
			t = w
		}
		sum.pairs = append(sum.pairs, t)
	}
	r := g.val(i.Results[0])
	r.sum = sum
	if g.uses[i.Results[0].ID] != 1 {
		g.finishSum(i.Results[0])
	}
}

// finishSum widens a chain of dot products and adds what it started from.
func (g *gen) finishSum(v *ir.Value) {
	w := g.val(v)
	sum := w.sum
	w.sum = nil
	ones := g.hoisted(words16(1, g.per))
	start := g.val(sum.acc).mem
	fromZero := start != nil && start.bits != nil && *start.bits == 0
	for p := range g.partsOf(v) {
		t := g.vec()
		g.put(x86.VPMADDWD(ones, sum.pairs[min(p, len(sum.pairs)-1)], t))
		if !fromZero {
			r := g.vec()
			acc, _ := g.src(sum.acc, p)
			g.put(x86.VPADDD(acc, t, r))
			t = r
		}
		w.vec = append(w.vec, t)
	}
}

func words16(w uint32, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = w | w<<16
	}
	return out
}

// dotExact sets dst to acc + Σ u·s for any unsigned bytes: even and odd bytes are widened to 16 bits.
func (g *gen) dotExact(u, s, acc, dst reg.VecVirtual) {
	ue, uo, se, so := g.vec(), g.vec(), g.vec(), g.vec()
	g.put(x86.VPSLLW(operand.U8(8), u, ue))
	g.put(x86.VPSRLW(operand.U8(8), ue, ue))
	g.put(x86.VPSLLW(operand.U8(8), s, se))
	g.put(x86.VPSRAW(operand.U8(8), se, se))
	g.put(x86.VPMADDWD(se, ue, ue))
	g.put(x86.VPSRLW(operand.U8(8), u, uo))
	g.put(x86.VPSRAW(operand.U8(8), s, so))
	g.put(x86.VPMADDWD(so, uo, uo))
	t := g.vec()
	g.put(x86.VPADDD(ue, acc, t))
	g.put(x86.VPADDD(uo, t, dst))
}

// dotSigned prints Dot4SS with VEX encodings: |a| as the unsigned operand, b with a's sign as the signed one. |−128| is 128,
// and 2·128·127 fits 16 bits.
func (g *gen) dotSigned(i *ir.Instr) {
	a, b, acc := i.Args[0], i.Args[1], i.Args[2]
	vnni := g.arch.vnni
	var ones reg.Register
	if !vnni {
		ones = g.hoisted(words16(1, g.per))
	}
	g.each(i, func(p int, dst reg.VecVirtual) {
		x := g.in(a, p)
		abs := g.derived("abs", a, p, func(r reg.VecVirtual) { g.put(x86.VPABSB(x, r)) })
		y := g.vec()
		g.put(x86.VPSIGNB(x, g.in(b, p), y))
		if vnni {
			g.accumulator(acc, p, dst)
			g.dpbusd(y, abs, dst)
			return
		}
		t := g.vec()
		g.put(x86.VPMADDUBSW(y, abs, t))
		g.put(x86.VPMADDWD(ones, t, t))
		c, _ := g.src(acc, p)
		g.put(x86.VPADDD(c, t, dst))
	})
}

// dotBiased prints Dot4SS with EVEX encodings: Σ(a + 128)·b − Σ128·b.
func (g *gen) dotBiased(i *ir.Instr) {
	a, b, acc := i.Args[0], i.Args[1], i.Args[2]
	const bias = 0x80808080
	g.each(i, func(p int, dst reg.VecVirtual) {
		x, y := g.in(a, p), g.in(b, p)
		u := g.derived("biased", a, p, func(r reg.VecVirtual) { g.put(g.arch.xor(g.splat(bias), x, r)) })
		c := g.derived("bias", b, p, func(r reg.VecVirtual) {
			g.zero(r)
			g.put(x86.VPDPBUSD(y, g.splatReg(bias), r))
		})
		g.put(x86.VPSUBD(c, g.in(acc, p), dst))
		g.put(x86.VPDPBUSD(y, u, dst))
	})
}

// derived returns a vector computed from part p of v, made once where v is made if v has other uses
// and registers allow.
func (g *gen) derived(name string, v *ir.Value, p int, f func(r reg.VecVirtual)) reg.VecVirtual {
	w := g.val(v)
	r := g.vec()
	if w.vec == nil || g.uses[v.ID] == 1 || g.hoist == hoistNone {
		f(r)
		return r
	}
	key := fmt.Sprintf("%s %d.%d", name, v.ID, min(p, len(w.vec)-1))
	if r, ok := w.scope.vecs[key]; ok {
		return r
	}
	g.within(w.scope, func() { f(r) })
	w.scope.vecs[key] = r
	return r
}

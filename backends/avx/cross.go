package avx

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
)

// packLanes prints PackLanes4.
func (g *gen) packLanes(i *ir.Instr) {
	var from []byte
	for range 4 {
		from = append(from, 0, 4, 8, 12)
	}
	g.each(i, func(p int, dst reg.VecVirtual) {
		g.put(x86.VPSHUFB(g.shuffleBytes(from...), g.in(i.Args[0], p), dst))
	})
}

// shuffle prints ShuffleXor.
func (g *gen) shuffle(i *ir.Instr) {
	g.each(i, func(p int, dst reg.VecVirtual) {
		x := int(i.Imm)
		from := g.in(i.Args[0], p^x/g.per)
		if x %= g.per; x == 0 || i.Args[0].Span != ir.Varying {
			g.move(from, dst)
			return
		}
		g.swap(x, from, dst)
	})
}

// swap sets lane l of dst to lane l xor x of v, within a register.
func (g *gen) swap(x int, v, dst reg.VecVirtual) {
	if hi := x / 4; hi > 0 { // 128-bit quarters
		var imm uint8
		for q := range 4 {
			imm |= uint8(q^hi) << (2 * q)
		}
		t := dst
		if x%4 != 0 {
			t = g.vec()
		}
		if g.width == 64 {
			g.put(x86.VSHUFI32X4(operand.U8(imm), v, v, t))
		} else {
			g.put(x86.VPERMQ(operand.U8(0x4E), v, t))
		}
		v = t
	}
	if lo := x % 4; lo > 0 {
		var imm uint8
		for q := range 4 {
			imm |= uint8(q^lo) << (2 * q)
		}
		g.put(x86.VPSHUFD(operand.U8(imm), v, dst))
	}
}

// readLane prints ReadLane.
func (g *gen) readLane(i *ir.Instr) {
	n := int(i.Imm)
	g.each(i, func(_ int, dst reg.VecVirtual) {
		v := g.in(i.Args[0], n/g.per)
		if n%g.per == 0 {
			g.put(x86.VPBROADCASTD(v.AsX(), dst))
			return
		}
		sel := g.splatReg(uint32(n % g.per))
		g.put(x86.VPERMD(v, sel, dst))
	})
}

// folds are the instructions of lane reductions.
var folds = map[ir.Op]ctor{
	ir.OpFoldAddF: x86.VADDPS, ir.OpFoldAddI: x86.VPADDD, ir.OpFoldMaxU: x86.VPMAXUD, ir.OpFoldMaxF: x86.VMAXPS,
}

// fold prints a reduction: strides L/2 … 1, every lane with the one a stride away, so that all end with the result.
// Operands of a pair are exchanged in half of the lanes; the operations commute.
func (g *gen) fold(i *ir.Instr) {
	op := folds[i.Op]
	v := make([]reg.VecVirtual, g.parts)
	for p := range v {
		v[p] = g.in(i.Args[0], p)
		if i.Op == ir.OpFoldMaxF { // VMAXPS gives its second source where one is NaN
			r := g.vec()
			g.put(x86.VMAXPS(g.splat(math.Float32bits(float32(math.Inf(-1)))), v[p], r))
			v[p] = r
		}
	}
	for len(v) > 1 {
		h := len(v) / 2
		for p := range h {
			r := g.vec()
			g.put(op(v[p+h], v[p], r))
			v[p] = r
		}
		v = v[:h]
	}
	r := v[0]
	for s := g.per / 2; s > 0; s /= 2 {
		t, next := g.vec(), g.vec()
		g.swap(s, r, t)
		g.put(op(t, r, next))
		r = next
	}
	g.val(i.Results[0]).vec = []reg.VecVirtual{r}
}

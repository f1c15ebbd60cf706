package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/mathx"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// row runs value over the blocks of a row and quantizes them: on a CPU all in turn, on a GPU two in
// a tile: rows are padded to pairs.
func (q *quantizer) row(c caps, value func(first, mask *ir.Value) *ir.Value) {
	if c.family != target.GPU {
		q.each(c.wide, value)
		return
	}
	q.warps(q.b.Tiles(q.k, 64).Mul(2), 1, 2, value)
}

// warps quantizes turns blocks in each lane group, those at kb, kb + step and so on as far as the row has them. All are
// loaded before the first one is stored, so that they overlap.
func (q *quantizer) warps(kb *ir.Value, step, turns int, value func(first, mask *ir.Value) *ir.Value) {
	x, at := make([]*ir.Value, turns), make([]*ir.Value, turns)
	for i := range x {
		at[i] = kb.Add(step * i)
		first := at[i].Mul(32)
		mask := first.Add(q.b.Lane()).Lt(q.k)
		x[i] = mask.Select(value(first, mask), q.b.F32(0))
	}
	end := actBlocksIR(q.k)
	for i := range x {
		q.warp(x[i], at[i], at[i].Lt(end))
	}
}

// warp is block for a GPU: it stores words, and only where exists holds.
func (q *quantizer) warp(x, kb, exists *ir.Value) {
	b := q.b
	amax := x.As(ir.U32).And(0x7FFFFFFF).FoldMax()
	small, huge := amax.Lt(b.U32(0x26800000)), b.U32(0x5F7FFFFF).Lt(amax)
	nan := b.Const(ir.F32, 0x7FC00000)
	d := amax.As(ir.F32).Mul(b.Const(ir.F32, 0x3C010204))
	code := small.OrB(huge).Select(b.I32(0), mathx.RoundI32(x.Mul(mathx.RcpNormal(d))))
	d = huge.Select(nan, small.Select(b.F32(0), d))
	// Four exchanges give each lane the sum of its half, one more that of all.
	half := code
	for stride := 8; stride > 0; stride /= 2 {
		half = half.Add(half.ShuffleXor(stride))
	}
	sum := half.Add(half.ShuffleXor(16))
	sigma := huge.Select(nan, sum.ToF32().Mul(d))

	lane := b.Lane()
	record := q.base.Add(kb).Mul(actRecord / 4)
	b.StoreMasked(q.act.As(ir.I8x4), record.Add(q.slot.Mul(8)).Add(lane.Shr(2)), code.PackLanes4(), exists.AndB(lane.And(3).Eq(0)))
	// Lanes 0 to 3 store the four words of the row.
	zero := b.I32(0)
	word := lane.Eq(0).Select(d, sigma).As(ir.I32)
	word = lane.Lt(2).Select(word, lane.Eq(2).Select(zero.Sub(sum), zero.Sub(half)))
	b.StoreMasked(q.act.As(ir.I32), record.Add(q.slot).Add(32).Add(lane.Mul(4)), word, exists.AndB(lane.Lt(4)))
}

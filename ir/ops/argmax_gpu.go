package ops

import "github.com/swizzle-rt/swizzle/ir"

// buildArgmaxBlock reads a row once: each lane keeps the first of its largest elements; then lanes and groups are compared.
// The lowest index is the largest complement.
func buildArgmaxBlock(b *ir.Builder) {
	x, out := b.In("x", ir.F32), b.Out("out", ir.I32)
	m, n := b.Int("m"), b.Int("n")
	row := b.Tiles(m, 1)
	const batch = 8
	low, none := b.Const(ir.F32, 0xFF800000), b.U32(0)
	complement := func(i *ir.Value) *ir.Value { return i.FromIndex().As(ir.U32).Xor(0xFFFFFFFF) }
	top, nan, best := b.Reg("top", ir.F32, 1), b.Reg("nan", ir.U32, 1), b.Reg("best", ir.U32, 1)
	top.Fill(low)
	nan.Fill(none)
	own := blockLane(b)
	best.Set(own.Lt(n).Select(complement(own), none), 0) // where all are −Inf
	b.For(0, n, blockLanes*batch, func(first *ir.Value) {
		var v, at [batch]*ir.Value
		for j := range v {
			at[j] = first.Add(blockLanes * j).Add(own)
			mask := at[j].Lt(n)
			v[j] = mask.Select(b.LoadMasked(x, row.Mul(n).Add(at[j]), mask), low)
		}
		for j := range v {
			more := top.At(0).Lt(v[j])
			top.Set(more.Select(v[j], top.At(0)), 0)
			best.Set(more.Select(complement(at[j]), best.At(0)), 0)
			nan.Set(nan.At(0).Max(v[j].As(ir.U32).And(0x7FFFFFFF)), 0)
		}
	})
	// fold returns, of the lanes' best elements, the largest and its complement.
	fold := func(v, code *ir.Value) (largest, first *ir.Value) {
		largest = v.FoldMax()
		return largest, v.Eq(largest).Select(code, none).FoldMax()
	}
	tops, codes, nans := b.Shared("tops", ir.F32, 32), b.Shared("codes", ir.U32, 32), b.Shared("nans", ir.U32, 32)
	largest, first := fold(top.At(0), best.At(0))
	b.Store(tops, b.Group(), largest)
	b.Store(codes, b.Group(), first)
	b.Store(nans, b.Group(), nan.At(0).FoldMax())
	b.Barrier()
	in := b.Lane().Lt(blockGroups)
	load := func(m ir.Memory) *ir.Value { return b.LoadMasked(m, b.Lane(), in) }
	_, first = fold(in.Select(load(tops), low), load(codes))
	isNaN := b.U32(0x7F800000).Lt(load(nans).FoldMax())
	b.StoreMasked(out, row, isNaN.Select(b.I32(-1), first.Xor(0xFFFFFFFF).As(ir.I32)), b.Group().Eq(0))
}

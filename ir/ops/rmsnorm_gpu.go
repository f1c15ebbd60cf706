package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/mathx"
)

func buildNormBlock(b *ir.Builder) {
	x, w, out := b.In("x", ir.F32), b.In("w", ir.F32), b.Out("out", ir.F32)
	m, k := b.Int("m"), b.Int("k")
	row := b.Tiles(m, 1)
	n := newNormBlock(b, normArgs{x, w, k, b.Float("inv"), b.Float("eps")}, row)
	b.For(0, k, blockLanes*blockTurns, func(first *ir.Value) {
		var y, at, mask [blockTurns]*ir.Value
		for i := range y {
			at[i] = first.Add(blockLanes * i).Add(b.Group().Mul(32))
			mask[i] = at[i].Add(b.Lane()).Lt(k)
			y[i] = n.at(0, at[i], mask[i])
		}
		for i := range y {
			b.StoreMasked(out, row.Mul(k).Add(at[i]).Add(b.Lane()), y[i], mask[i])
		}
	})
}

func buildNormQuantizeBlock(b *ir.Builder) {
	x, w, act := b.In("x", ir.F32), b.In("w", ir.F32), b.Out("act", ir.I8)
	m, k := b.Int("m"), b.Int("k")
	row := b.Tiles(m, 1)
	n := newNormBlock(b, normArgs{x, w, k, b.Float("inv"), b.Float("eps")}, row)
	q := newQuantizer(b, act, row, k)
	b.For(0, actBlocksIR(k), 2*blockGroups, func(first *ir.Value) {
		q.warps(first.Add(b.Group()), blockGroups, 2, func(first, mask *ir.Value) *ir.Value { return n.at(0, first, mask) })
	})
}

// newNormBlock is newNorm by a block: all lanes square elements, 2048 at a time, and the first group adds them in order, as
// the 32 virtual lanes.
func newNormBlock(b *ir.Builder, a normArgs, row *ir.Value) *norm {
	const (
		span = 2048
		turn = blockLanes * blockTurns
	)
	k := a.k
	squares, factor := b.Shared("squares", ir.F32, span), b.Shared("factor", ir.F32, 1)
	sum := b.Reg("sum", ir.F32, 1)
	sum.Fill(b.F32(0))
	leader := b.Group().Eq(0)
	b.For(0, k, span, func(first *ir.Value) {
		n := k.Sub(first).Min(span)
		b.Barrier() // what the first group still adds
		b.For(0, n, turn, func(i *ir.Value) {
			var v, at [blockTurns]*ir.Value
			for j := range v {
				at[j] = i.Add(blockLanes * j).Add(blockLane(b))
				v[j] = b.LoadMasked(a.x, row.Mul(k).Add(first).Add(at[j]), first.Add(at[j]).Lt(k))
			}
			for j := range v { // 0 beyond the row: adding that changes no sum
				b.Store(squares, at[j], v[j].Mul(v[j]))
			}
		})
		b.Barrier()
		b.If(leader, func() {
			const batch = 8
			b.For(0, n, 32*batch, func(i *ir.Value) {
				var v [batch]*ir.Value
				for j := range v {
					v[j] = b.Load(squares, i.Add(32*j).Add(b.Lane()))
				}
				for j := range v {
					sum.Add(v[j], 0)
				}
			})
		})
	})
	b.StoreMasked(factor, 0, mathx.Rsqrt(sum.At(0).FoldAdd().Mul(a.inv).Add(a.eps)), leader)
	b.Barrier()
	return &norm{a, b, row, []*ir.Value{b.Load(factor, 0)}}
}

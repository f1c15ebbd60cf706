package ops

import (
	"math"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/mathx"
)

// Softmax is p·rcp(Σp), p = exp(x − max), on rows (numerics rule 16). Shape: m, n.
func Softmax() *Op {
	return &Op{
		Name: "softmax", Source: "softmax.go", Doc: "softmax of rows",
		Variants: one(32, func(b *ir.Builder) {
			x, out := b.In("x", ir.F32), b.InOut("out", ir.F32)
			m, n := b.Int("m"), b.Int("n")
			row := b.Tiles(m, 1).Mul(n)
			top, sum := b.Reg("top", ir.F32, 1), b.Reg("sum", ir.F32, 1)
			low := b.Const(ir.F32, 0xFF800000)
			each := func(f func(i, mask *ir.Value)) {
				b.For(0, n, 32, func(first *ir.Value) {
					i := first.Add(b.Lane())
					f(row.Add(i), i.Lt(n))
				})
			}
			top.Fill(low)
			each(func(i, mask *ir.Value) {
				v := mask.Select(b.LoadMasked(x, i, mask), low)
				top.Set(top.At(0).Lt(v).Select(v, top.At(0)), 0)
			})
			largest := top.At(0).FoldMax()
			sum.Fill(b.F32(0))
			each(func(i, mask *ir.Value) {
				p := mathx.Exp(b.LoadMasked(x, i, mask).Sub(largest))
				b.StoreMasked(out, i, p, mask)
				sum.Add(mask.Select(p, b.F32(0)), 0)
			})
			f := mathx.Rcp(sum.At(0).FoldAdd())
			each(func(i, mask *ir.Value) { b.StoreMasked(out, i, b.LoadMasked(out, i, mask).Mul(f), mask) })
		}),
		Shapes: []Shape{{1, 1}, {3, 100}, {2, 32}},
		Case: func(_ Variant, s Shape, d *Data) *Case {
			m, n := s[0], s[1]
			x := d.floats(m * n)
			out := filled(4 * m * n)
			c := &Case{Buf: map[string][]byte{"x": floatBytes(x), "out": clone(out)}, Int: map[string]int64{"m": int64(m), "n": int64(n)}}
			for r := range m {
				row := x[r*n : r*n+n]
				top := float32(math.Inf(-1))
				for _, v := range row {
					if v > top {
						top = v
					}
				}
				p := make([]float32, n)
				for i, v := range row {
					p[i] = canon.Exp(v - top)
				}
				f := canon.Rcp(canon.SumRow(p))
				for i := range row {
					putFloat(out, r*n+i, float32(p[i]*f))
				}
			}
			c.Want = map[string][]byte{"out": out}
			return c
		},
	}
}

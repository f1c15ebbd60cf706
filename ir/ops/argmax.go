package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
)

// Argmax is the lowest index of the largest element of each row, −1 if the row holds a NaN. Shape: m, n.
func Argmax() *Op {
	return &Op{
		Name: "argmax", Source: "argmax.go", Doc: "index of the largest element of rows",
		Variants: withBlock(buildArgmaxBlock, func(b *ir.Builder, _ caps) {
			x, out := b.In("x", ir.F32), b.Out("out", ir.I32)
			m, n := b.Int("m"), b.Int("n")
			row := b.Tiles(m, 1)
			top, nan, best := b.Reg("top", ir.F32, 1), b.Reg("nan", ir.U32, 1), b.Reg("best", ir.U32, 1)
			low := b.Const(ir.F32, 0xFF800000)
			each := func(f func(i, mask, v *ir.Value)) {
				b.For(0, n, 32, func(first *ir.Value) {
					i := first.Add(b.Lane())
					mask := i.Lt(n)
					f(i, mask, b.LoadMasked(x, row.Mul(n).Add(i), mask))
				})
			}
			top.Fill(low)
			nan.Fill(b.U32(0))
			best.Fill(b.U32(0))
			each(func(i, mask, v *ir.Value) {
				v = mask.Select(v, low)
				top.Set(top.At(0).Lt(v).Select(v, top.At(0)), 0)
				nan.Set(nan.At(0).Max(v.As(ir.U32).And(0x7FFFFFFF)), 0)
			})
			largest := top.At(0).FoldMax()
			// The lowest index is the largest complement.
			each(func(i, mask, v *ir.Value) {
				hit := v.Eq(largest).AndB(mask)
				code := i.FromIndex().As(ir.U32).Xor(0xFFFFFFFF)
				best.Set(best.At(0).Max(hit.Select(code, b.U32(0))), 0)
			})
			id := best.At(0).FoldMax().Xor(0xFFFFFFFF).As(ir.I32)
			isNaN := b.U32(0x7F800000).Lt(nan.At(0).FoldMax())
			b.Store(out, row, isNaN.Select(b.I32(-1), id))
		}),
		Shapes: []Shape{{1, 1}, {3, 100}, {2, 32}, {1, 1000}},
		Case: func(_ Variant, s Shape, d *Data) *Case {
			m, n := s[0], s[1]
			x := d.floats(m * n)
			out := filled(4 * m)
			c := &Case{Buf: map[string][]byte{"x": floatBytes(x), "out": clone(out)}, Int: map[string]int64{"m": int64(m), "n": int64(n)}}
			for r := range m {
				best := 0
				for i, v := range x[r*n : r*n+n] {
					if v != v {
						best = -1
						break
					}
					if v > x[r*n+best] {
						best = i
					}
				}
				putInt(out, r, int32(best))
			}
			c.Want = map[string][]byte{"out": out}
			return c
		},
	}
}

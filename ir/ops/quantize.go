package ops

import "github.com/swizzle-rt/swizzle/ir"

// Quantize turns rows of f32 into quantized activations (numerics rule 12). Shape: m, k.
func Quantize() *Op {
	return &Op{
		Name: "quantize", Source: "quantize.go", Doc: "rows of f32 to int8 blocks of 32 with scales and sums",
		Variants: onRows(func(b *ir.Builder, c caps) {
			x, act := b.In("x", ir.F32), b.Out("act", ir.I8)
			m, k := b.Int("m"), b.Int("k")
			row := b.Tiles(m, 1)
			newQuantizer(b, act, row, k).row(c, func(first, mask *ir.Value) *ir.Value {
				return b.LoadMasked(x, row.Mul(k).Add(first).Add(b.Lane()), mask)
			})
		}),
		Shapes: []Shape{{1, 32}, {5, 64}, {3, 96}, {4, 576}, {2, 40}, {1, 150}},
		Case: func(v Variant, s Shape, d *Data) *Case {
			m, k := s[0], s[1]
			x := d.floats(m * k)
			return quantizeCase(m, k, map[string][]byte{"x": floatBytes(x)}, func(r int) []float32 { return x[r*k : r*k+k] })
		},
	}
}

// quantizeCase is the case of an op that ends in quantized activations of m rows.
func quantizeCase(m, k int, in map[string][]byte, row func(r int) []float32) *Case {
	act := filled(actBytes(m, k))
	c := &Case{Buf: in, Want: map[string][]byte{}, Int: map[string]int64{"m": int64(m), "k": int64(k)}}
	c.Buf["act"] = clone(act)
	for r := range m {
		quantizeRow(row(r)).put(act, r)
	}
	c.Want["act"] = act
	return c
}

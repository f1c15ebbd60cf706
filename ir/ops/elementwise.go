package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/mathx"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Add adds x to out, element by element: the residual. Shape: n.
func Add() *Op {
	return &Op{
		Name: "add", Source: "elementwise.go", Doc: "adds an array to another",
		Variants: two(32, func(b *ir.Builder, f target.Family) {
			x, out := b.In("x", ir.F32), b.InOut("out", ir.F32)
			n := b.Int("n")
			eachElement(b, f, n, func(i, mask *ir.Value) {
				b.StoreMasked(out, i, b.LoadMasked(out, i, mask).Add(b.LoadMasked(x, i, mask)), mask)
			})
		}),
		Shapes: []Shape{{1}, {31}, {1024}, {1500}},
		Case: func(v Variant, s Shape, d *Data) *Case {
			x, y := d.floats(s[0]), d.floats(s[0])
			c := mapCase(s[0], y, x, func(y, x float32) float32 { return y + x })
			c.Buf["x"], c.Buf["out"] = floatBytes(x), floatBytes(y)
			return c
		},
	}
}

// eachElement runs body for the elements of a tile of an elementwise op.
func eachElement(b *ir.Builder, f target.Family, n *ir.Value, body func(i, mask *ir.Value)) {
	chunk := 1024
	if f == target.GPU {
		chunk = gpuSpan
	}
	first := b.Tiles(n, chunk).Mul(chunk)
	b.For(first, first.Add(chunk).Min(n), 32, func(i *ir.Value) {
		at := i.Add(b.Lane())
		body(at, at.Lt(n))
	})
}

func mapCase(n int, x, y []float32, f func(x, y float32) float32) *Case {
	out := filled(4 * n)
	c := &Case{Buf: map[string][]byte{"x": floatBytes(x), "y": floatBytes(y), "out": clone(out)}, Int: map[string]int64{"n": int64(n)}}
	for i := range n {
		putFloat(out, i, f(x[i], y[i]))
	}
	c.Want = map[string][]byte{"out": out}
	return c
}

// activation is a gate's nonlinearity in both forms.
type activation struct {
	name   string
	ir     func(x *ir.Value) *ir.Value
	scalar func(x float32) float32
}

var activations = []activation{
	{"silu", mathx.SiLU, canon.SiLU},
	{"gelu", mathx.GELU, canon.GELU},
}

// ActMul is out = act(x)·y, the gated activation of a feed-forward layer (numerics rule 10), as f32 and quantized.
// Shape: m, k.
func ActMul() []*Op {
	var list []*Op
	for _, a := range activations {
		list = append(list, &Op{
			Name: a.name + "_mul", Source: "elementwise.go", Doc: a.name + " of one array times another",
			Variants: two(32, func(b *ir.Builder, f target.Family) {
				x, y, out := b.In("x", ir.F32), b.In("y", ir.F32), b.Out("out", ir.F32)
				n := b.Int("n")
				eachElement(b, f, n, func(i, mask *ir.Value) {
					b.StoreMasked(out, i, a.ir(b.LoadMasked(x, i, mask)).Mul(b.LoadMasked(y, i, mask)), mask)
				})
			}),
			Shapes: []Shape{{33}, {1100}},
			Case: func(v Variant, s Shape, d *Data) *Case {
				x, y := d.floats(s[0]), d.floats(s[0])
				return mapCase(s[0], x, y, func(x, y float32) float32 { return float32(a.scalar(x) * y) })
			},
		}, &Op{
			Name: a.name + "_mul_quantize", Source: "elementwise.go", Doc: a.name + " of one array times another, quantized",
			Variants: onRows(func(b *ir.Builder, c caps) {
				x, y, act := b.In("x", ir.F32), b.In("y", ir.F32), b.Out("act", ir.I8)
				m, k := b.Int("m"), b.Int("k")
				row := b.Tiles(m, 1)
				newQuantizer(b, act, row, k).row(c, func(first, mask *ir.Value) *ir.Value {
					i := row.Mul(k).Add(first).Add(b.Lane())
					return a.ir(b.LoadMasked(x, i, mask)).Mul(b.LoadMasked(y, i, mask))
				})
			}),
			Shapes: []Shape{{1, 64}, {5, 96}, {3, 40}},
			Case: func(v Variant, s Shape, d *Data) *Case {
				m, k := s[0], s[1]
				x, y := d.floats(m*k), d.floats(m*k)
				return quantizeCase(m, k, map[string][]byte{"x": floatBytes(x), "y": floatBytes(y)}, func(r int) []float32 {
					row := make([]float32, k)
					for i := range row {
						row[i] = float32(a.scalar(x[r*k+i]) * y[r*k+i])
					}
					return row
				})
			},
		})
	}
	return list
}

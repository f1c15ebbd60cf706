package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/mathx"
)

// RMSNorm is (x·r)·w with r = rsqrt(Σx²·(1/n) + eps) on rows (numerics rules 15 and 16). Shape: m, k.
func RMSNorm() *Op {
	return &Op{
		Name: "rmsnorm", Source: "rmsnorm.go", Doc: "root mean square normalisation of rows",
		Variants: one(32, func(b *ir.Builder) {
			x, w, out := b.In("x", ir.F32), b.In("w", ir.F32), b.Out("out", ir.F32)
			m, k := b.Int("m"), b.Int("k")
			row := b.Tiles(m, 1)
			n := newNorm(b, x, w, row, k)
			b.For(0, k, 32, func(first *ir.Value) {
				mask := first.Add(b.Lane()).Lt(k)
				b.StoreMasked(out, row.Mul(k).Add(first).Add(b.Lane()), n.at(first, mask), mask)
			})
		}),
		Shapes: []Shape{{1, 32}, {2, 576}, {3, 40}, {1, 1}},
		Case: func(v Variant, s Shape, d *Data) *Case {
			c, rows := normCase(s, d)
			out := filled(4 * s[0] * s[1])
			c.Buf["out"] = clone(out)
			for i, y := range rows {
				putFloat(out, i, y)
			}
			c.Want = map[string][]byte{"out": out}
			return c
		},
	}
}

// RMSNormQuantize is RMSNorm followed by quantization. Shape: m, k.
func RMSNormQuantize() *Op {
	return &Op{
		Name: "rmsnorm_quantize", Source: "rmsnorm.go", Doc: "root mean square normalisation of rows, quantized",
		Variants: one(32, func(b *ir.Builder) {
			x, w, act := b.In("x", ir.F32), b.In("w", ir.F32), b.Out("act", ir.I8)
			m, k := b.Int("m"), b.Int("k")
			row := b.Tiles(m, 1)
			n := newNorm(b, x, w, row, k)
			newQuantizer(b, act, row, k).each(k, func(_, first, mask *ir.Value) *ir.Value { return n.at(first, mask) })
		}),
		Shapes: []Shape{{1, 32}, {5, 64}, {2, 576}, {3, 40}},
		Case: func(v Variant, s Shape, d *Data) *Case {
			c, rows := normCase(s, d)
			q := quantizeCase(s[0], s[1], c.Buf, func(r int) []float32 { return rows[r*s[1] : r*s[1]+s[1]] })
			q.Float = c.Float
			return q
		},
	}
}

func normCase(s Shape, d *Data) (*Case, []float32) {
	m, k := s[0], s[1]
	x, w := d.floats(m*k), d.finite(k)
	c := &Case{
		Buf:   map[string][]byte{"x": floatBytes(x), "w": floatBytes(w)},
		Int:   map[string]int64{"m": int64(m), "k": int64(k)},
		Float: map[string]float32{"inv": 1 / float32(k), "eps": 1e-5},
	}
	var out []float32
	for r := range m {
		row := x[r*k : r*k+k]
		squares := make([]float32, k)
		for i, v := range row {
			squares[i] = float32(v * v)
		}
		f := canon.Rsqrt(float32(canon.SumRow(squares)*c.Float["inv"]) + c.Float["eps"])
		for i, v := range row {
			out = append(out, float32(float32(v*f)*w[i]))
		}
	}
	return c, out
}

// norm holds a row's factor.
type norm struct {
	b         *ir.Builder
	x, w      ir.Memory
	row, k, r *ir.Value
}

// newNorm computes r over the row: 32 virtual lanes, each adding its squares in order from +0, then folded.
func newNorm(b *ir.Builder, x, w ir.Memory, row, k *ir.Value) *norm {
	inv, eps := b.Float("inv"), b.Float("eps")
	sum := b.Reg("sum", ir.F32, 1)
	sum.Fill(b.F32(0))
	b.For(0, k, 32, func(first *ir.Value) {
		v := b.LoadMasked(x, row.Mul(k).Add(first).Add(b.Lane()), first.Add(b.Lane()).Lt(k))
		sum.Add(v.Mul(v), 0)
	})
	return &norm{b, x, w, row, k, mathx.Rsqrt(sum.At(0).FoldAdd().Mul(inv).Add(eps))}
}

// at returns the normalised elements first + lane.
func (n *norm) at(first, mask *ir.Value) *ir.Value {
	i := first.Add(n.b.Lane())
	return n.b.LoadMasked(n.x, n.row.Mul(n.k).Add(i), mask).Mul(n.r).Mul(n.b.LoadMasked(n.w, i, mask))
}

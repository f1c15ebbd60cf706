package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/mathx"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// RMSNorm is (x·r)·w with r = rsqrt(Σx²·(1/n) + eps) on rows (numerics rules 15 and 16). Shape: m, k.
func RMSNorm() *Op {
	return &Op{
		Name: "rmsnorm", Source: "rmsnorm.go", Doc: "root mean square normalisation of rows",
		Variants: withBlock(buildNormBlock, func(b *ir.Builder, c caps) {
			x, w, out := b.In("x", ir.F32), b.In("w", ir.F32), b.Out("out", ir.F32)
			m, k := b.Int("m"), b.Int("k")
			a := normArgs{x, w, k, b.Float("inv"), b.Float("eps")}
			if c.family == target.GPU {
				newNorm(b, a, b.Tiles(m, 1), 1).write(out)
				return
			}
			rows := 2 // of a head, which are short: their latencies overlap
			if c.wide {
				rows = 4
			}
			first := b.Tiles(m, rows).Mul(rows)
			b.IfElse(first.Add(rows).Le(m), func() {
				newNorm(b, a, first, rows).write(out)
			}, func() {
				b.For(first, m, 1, func(row *ir.Value) { newNorm(b, a, row, 1).write(out) })
			})
		}),
		Shapes: []Shape{{1, 32}, {2, 576}, {3, 40}, {1, 1}, {6, 100}, {1, 2100}},
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

// write stores the normalised rows.
func (n *norm) write(out ir.Memory) {
	n.each(func(first, mask *ir.Value) {
		for r := range n.r {
			n.b.StoreMasked(out, n.row.Add(r).Mul(n.k).Add(first).Add(n.b.Lane()), n.at(r, first, mask), mask)
		}
	})
}

// RMSNormQuantize is RMSNorm followed by quantization. Shape: m, k.
func RMSNormQuantize() *Op {
	return &Op{
		Name: "rmsnorm_quantize", Source: "rmsnorm.go", Doc: "root mean square normalisation of rows, quantized",
		Variants: withBlock(buildNormQuantizeBlock, func(b *ir.Builder, c caps) {
			x, w, act := b.In("x", ir.F32), b.In("w", ir.F32), b.Out("act", ir.I8)
			m, k := b.Int("m"), b.Int("k")
			row := b.Tiles(m, 1)
			n := newNorm(b, normArgs{x, w, k, b.Float("inv"), b.Float("eps")}, row, 1)
			newQuantizer(b, act, row, k).each(c.wide, func(first, mask *ir.Value) *ir.Value { return n.at(0, first, mask) })
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

// norm holds the factors of consecutive rows.
type norm struct {
	normArgs
	b   *ir.Builder
	row *ir.Value
	r   []*ir.Value
}

// normArgs are the parameters of a kernel that normalises rows.
type normArgs struct {
	x, w     ir.Memory
	k        *ir.Value
	inv, eps *ir.Value
}

// newNorm computes r over the rows: 32 virtual lanes, each adding its squares in order from +0, then folded.
func newNorm(b *ir.Builder, a normArgs, row *ir.Value, rows int) *norm {
	n := &norm{normArgs: a, b: b, row: row}
	sum := b.Reg(fmt.Sprintf("sum%d", rows), ir.F32, rows)
	sum.Fill(b.F32(0))
	n.each(func(first, mask *ir.Value) {
		for r := range rows {
			v := n.load(r, first, mask)
			sum.Add(v.Mul(v), r)
		}
	})
	for r := range rows {
		n.r = append(n.r, mathx.Rsqrt(sum.At(r).FoldAdd().Mul(a.inv).Add(a.eps)))
	}
	return n
}

// each runs f over a row, 32 elements at a time, with the mask of those that exist, nil where all do.
func (n *norm) each(f func(first, mask *ir.Value)) {
	whole := n.k.Shr(5).Shl(5)
	n.b.For(0, whole, 32, func(first *ir.Value) { f(first, nil) })
	n.b.For(whole, n.k, 32, func(first *ir.Value) { f(first, first.Add(n.b.Lane()).Lt(n.k)) })
}

func (n *norm) load(r int, first, mask *ir.Value) *ir.Value {
	return n.b.LoadMasked(n.x, n.row.Add(r).Mul(n.k).Add(first).Add(n.b.Lane()), mask)
}

// at returns the normalised elements first + lane of a row.
func (n *norm) at(r int, first, mask *ir.Value) *ir.Value {
	return n.load(r, first, mask).Mul(n.r[r]).Mul(n.b.LoadMasked(n.w, first.Add(n.b.Lane()), mask))
}

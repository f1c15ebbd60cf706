package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
)

// gemmFloatVariantsGPU lists the GPU schedules of GEMMFloat: as those of GEMM for few rows, whose lane groups share out k.
func gemmFloatVariantsGPU(f floatFormat) []Variant {
	var vs []Variant
	for _, c := range []struct{ rows, groups int }{{1, 8}, {4, 8}, {16, 4}} {
		vs = append(vs, Variant{Config: fmt.Sprintf("m%dg%d", c.rows, c.groups), Lanes: warp, Groups: c.groups, Build: func(b *ir.Builder) {
			gemmFloatDot(b, f, c.rows, c.groups)
		}})
	}
	return vs
}

// gemmFloatDot computes rows × 32 outputs a block: a lane is a row of weights.
func gemmFloatDot(b *ir.Builder, f floatFormat, rows, groups int) {
	const unroll = 4
	p := newProduct(b, "x", ir.F32, f.t)
	col := b.Tiles(p.n, warp).Mul(warp).Add(b.Lane())
	row0 := b.Tiles(p.m, rows).Mul(rows)
	w := p.packed(col).Mul(p.k).Mul(16).Add(b.Lane().And(15))
	each := min(rows, actRows)
	var x []*ir.Value // index of element 0 of each run of each rows
	for j := 0; j < rows; j += actRows {
		x = append(x, p.rowGroup(row0.Add(j)).Mul(p.k).Mul(actRows).Add(row0.And(actRows-each)))
	}
	splitK(b, groups, rows, p.k, 256, func(lo, hi, _ *ir.Value, sum ir.Tile) {
		several := func(n int) func(i *ir.Value) {
			return func(i *ir.Value) {
				var v []*ir.Value
				for u := range n { // all of them asked for before one is used
					v = append(v, b.Load(p.w, w.Add(i.Mul(16)).Add(16*u)))
				}
				for u := range n {
					for j, at := range x {
						for r, a := range b.LoadN(p.x, each, at.Add(i.Mul(actRows)).Add(actRows*u), nil) {
							if n := actRows*j + r; f.bits == 0 {
								sum.Add(a.Mul(v[u]), n)
							} else {
								sum.Set(b.FMAExact(a, v[u], sum.At(n)), n)
							}
						}
					}
				}
			}
		}
		whole := lo.Add(hi.Sub(lo).Div(unroll).Mul(unroll))
		b.For(lo, whole, unroll, several(unroll))
		b.For(whole, hi, 1, several(1))
	}, func(row, total *ir.Value) { p.store(row0.Add(row), col, total) })
}

package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/quant"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/ir/tile"
)

// GEMMMatrix is GEMM for Q8_0 on targets with an integer matrix instruction. It reads rows: act and w hold the signed codes of m
// and n rows of k bytes, da and dw one f32 scale for each 32. A block of four lane groups computes 64 × 64 outputs; tiles of
// 64 bytes of k are staged through swizzled shared memory by asynchronous copies, one stage ahead. Config s0 leaves the
// swizzle out, for comparison. Shape: m, n, k.
func GEMMMatrix() *Op {
	return &Op{
		Name: "gemm_mma_q8_0", Source: "gemm_mma.go", Doc: "product of quantized rows and q8_0 weights by matrix instructions",
		Variants: func(c *target.Caps) []Variant {
			for _, a := range c.Atoms {
				if a == target.M16N8K32S8 {
					var vs []Variant
					for _, swizzled := range []int{1, 0} {
						vs = append(vs, Variant{Config: fmt.Sprintf("m64n64s%d", swizzled), Lanes: 32, Groups: 4, Build: func(b *ir.Builder) { gemmMMA(b, a, swizzled == 0) }})
					}
					return vs
				}
			}
			return nil
		},
		Shapes: []Shape{{64, 64, 512}, {1, 8, 32}, {70, 17, 608}},
		Case:   gemmMMACase,
	}
}

func gemmMMA(b *ir.Builder, atom *ir.Atom, plain bool) {
	const (
		tileM, tileN, tileK = 64, 64, 64
		warpM, warpN        = 32, 32
		groups              = 4
	)
	act, da, w, dw, out := b.In("act", ir.I8), b.In("da", ir.F32), b.In("w", ir.I8), b.In("dw", ir.F32), b.Out("out", ir.F32)
	m, n, k := b.Int("m"), b.Int("n"), b.Int("k")
	row0, col0 := b.Tiles(m, tileM).Mul(tileM), b.Tiles(n, tileN).Mul(tileN)
	a, bt := tile.NewStage(b, "a", tileM, tileK, 2, plain), tile.NewStage(b, "b", tileN, tileK, 2, plain)
	warp := b.Group()
	warpRow, warpCol := warp.Shr(1).Mul(warpM), warp.And(1).Mul(warpN)
	const mt, nt = warpM / 16, warpN / 8
	sum, total := b.Reg("sum", ir.F32, mt, nt, 4), b.Reg("total", ir.F32, mt, nt, 4)
	total.Fill(b.F32(0))
	load := func(step *ir.Value) {
		first, stage := step.Mul(tileK), step.And(1)
		a.Copy(groups, stage, act, row0, m, first, k, k)
		bt.Copy(groups, stage, w, col0, n, first, k, k)
	}
	steps, blocks := k.Add(tileK-1).Div(tileK), k.Div(32)
	load(b.Idx(0))
	b.AsyncCommit()
	b.For(0, steps, 256/tileK, func(segment *ir.Value) {
		sum.Fill(b.F32(0))
		b.For(segment, segment.Add(256/tileK).Min(steps), 1, func(step *ir.Value) {
			b.If(step.Add(1).Lt(steps), func() { load(step.Add(1)) })
			b.AsyncCommit()
			b.AsyncWait(1)
			b.Barrier()
			for half := range tileK / 32 {
				kb := step.Mul(tileK / 32).Add(half)
				b.If(kb.Lt(blocks), func() {
					stage := step.And(1)
					for i := range mt {
						af := a.LoadA(stage, warpRow.Add(16*i), 32*half)
						for j := range nt {
							bf := bt.LoadB(stage, warpCol.Add(8*j), 32*half)
							zero := b.I32(0)
							d := b.MMA(atom, af, bf, []*ir.Value{zero, zero, zero, zero})
							for r, v := range d {
								row, col := fragment(b, atom, r, row0.Add(warpRow).Add(16*i), col0.Add(warpCol).Add(8*j))
								s := b.LoadMasked(da, row.Mul(blocks).Add(kb), row.Lt(m)).Mul(b.LoadMasked(dw, col.Mul(blocks).Add(kb), col.Lt(n)))
								sum.Add(v.ToF32().Mul(s), i, j, r)
							}
						}
					}
				})
			}
			b.Barrier()
		})
		for i := range mt {
			for j := range nt {
				for r := range 4 {
					total.Add(sum.At(i, j, r), i, j, r)
				}
			}
		}
	})
	b.AsyncWait(0)
	b.Barrier()
	for i := range mt {
		for j := range nt {
			for r := range 4 {
				row, col := fragment(b, atom, r, row0.Add(warpRow).Add(16*i), col0.Add(warpCol).Add(8*j))
				b.StoreMasked(out, row.Mul(n).Add(col), total.At(i, j, r), row.Lt(m).AndB(col.Lt(n)))
			}
		}
	}
}

// fragment returns the row and the column of the output that register r of a product holds.
func fragment(b *ir.Builder, atom *ir.Atom, r int, row0, col0 *ir.Value) (row, col *ir.Value) {
	row, col = b.FragCoord(atom, r)
	return row0.Add(row), col0.Add(col)
}

func gemmMMACase(_ Variant, s Shape, d *Data) *Case {
	f := quant.Q8_0()
	m, n, k := s[0], s[1], s[2]
	w := weights(f, n, k, d)
	x := d.floats(m * k)
	blocks := k / 32
	act, codes := make([]byte, m*k), make([]byte, n*k)
	da, dw := make([]float32, m*blocks), make([]float32, n*blocks)
	out := filled(4 * m * n)
	c := &Case{Int: map[string]int64{"m": int64(m), "n": int64(n), "k": int64(k)}, Buf: map[string][]byte{"out": clone(out)}}
	for i := range n * blocks {
		b := w[i*f.BlockBytes:][:f.BlockBytes]
		dw[i] = f.Sub(b, 0).W
		copy(codes[32*i:], b[2:])
	}
	for r := range m {
		q := quantizeRow(x[r*k : r*k+k])
		for i, v := range q.code[:k] {
			act[r*k+i] = byte(v)
		}
		copy(da[r*blocks:], q.d[:blocks])
		for j := range n {
			putFloat(out, r*n+j, dotRow(f, w[j*f.RowBytes(k):][:f.RowBytes(k)], q))
		}
	}
	c.Buf["act"], c.Buf["w"], c.Buf["da"], c.Buf["dw"] = act, codes, floatBytes(da), floatBytes(dw)
	c.Want = map[string][]byte{"out": out}
	return c
}

package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/quant"
)

// gemmWide is gemm for 12 rows and two vectors of weight rows, so that an activation that is loaded serves twice. It passes over
// k once for rows 0 … 5 and once for 6 … 11: four rows of one group of activations and two of the middle one.
type gemmWide struct{ gemm }

const (
	wideCols = 2
	wideRows = 6 // of a pass
)

// widePass returns the pass that computes row j of a tile and its number in there.
func widePass(j int) (pass, r int) {
	switch {
	case j < wideRows:
		return 0, j
	case j < 8:
		return 1, j - 2
	}
	return 1, j - 8
}

func (s gemmWide) build(b *ir.Builder) {
	f := s.f
	act, w := b.In("act", ir.I8), b.In("w", ir.U8)
	out := b.InOut("out", ir.F32)
	m, n, k := b.Int("m"), b.Int("n"), b.Int("k")
	first, tile := b.Tiles(n, quant.Rows*wideCols).Mul(wideCols), b.Tiles(m, s.rows)
	last := n.Sub(1).Shr(4) // the last tile of weights stands for those beyond it

	total := b.Shared("total", ir.F32, 16*s.rows*wideCols)
	sum := b.Reg("sum", ir.F32, wideRows*wideCols)
	records := k.Add(f.Span - 1).Div(f.Span)
	blocks := actBlocksIR(k)
	perSegment := 256 / f.Span
	ldo := b.Int("ldo")
	prefetchOut(b, out, tile.Mul(s.rows), first.Mul(quant.Rows), ldo, k, s.rows, wideCols)
	b.For(0, 2, 1, func(pass *ir.Value) {
		four := tile.Mul(3).Add(pass.Mul(2)).Mul(blocks)
		two := tile.Mul(3).Add(1).Mul(blocks)
		at := b.Lane().Add(pass.Mul(16 * wideRows * wideCols))
		b.For(0, records, perSegment, func(segment *ir.Value) {
			sum.Fill(b.F32(0))
			b.For(segment, segment.Add(perSegment).Min(records), 1, func(r *ir.Value) {
				var record [wideCols]*ir.Value
				for c := range record {
					record[c] = first.Add(c).Min(last).Mul(records).Add(r).Mul(f.Record)
					// the first rows bring the weights to the cache
					b.If(tile.Add(pass).Eq(0), func() { prefetchWeights(b, w, record[c], f.Record) })
				}
				eachPart(b, f, func(part *ir.Value) {
					var rec [wideCols]quant.Record
					for c := range rec {
						rec[c] = f.Open(quant.LoaderAt(b, w, record[c], b.Lane()), part)
					}
					for i := range f.Part {
						kb := r.Mul(f.Span / 32).Add(part.Mul(f.Part)).Add(i)
						four, two := four.Add(kb).Mul(actRecord/4), two.Add(kb).Mul(actRecord/4)
						s.block(b, rec, i, wideAct{b, act, four, two, pass.Mul(2)}, sum)
					}
				})
			})
			addSegment(b, at, total, sum, segment, wideRows*wideCols)
		})
	})
	storeTotals(b, total, out, tile.Mul(s.rows), first.Mul(quant.Rows), n, ldo, s.rows, wideCols, func(j int) int {
		pass, r := widePass(j)
		return pass*wideRows + r
	})
}

// wideAct reads the activations of a pass: four rows from the record at four, then two from slot on of the one at two.
type wideAct struct {
	b               *ir.Builder
	act             ir.Memory
	four, two, slot *ir.Value
}

// word loads word at of row r, where a row's words lie stride apart in a record.
func (a wideAct) word(t ir.Type, r, at, stride int) *ir.Value {
	if r < actRows {
		return a.b.Load(a.act.As(t), a.four.Add(stride*r+at))
	}
	return a.b.Load(a.act.As(t), a.two.Add(a.slot.Mul(stride)).Add(stride*(r-actRows)+at))
}

// block adds 32-block i of the parts to the sums.
func (s gemmWide) block(b *ir.Builder, rec [wideCols]quant.Record, i int, act wideAct, sum ir.Tile) {
	f := s.f
	bias := f.Bias
	if s.signed {
		bias -= 128
	}
	var acc [wideRows][wideCols]*ir.Value
	for r := range acc {
		start := biased(b, act.word(ir.I32, r, 40, 1), bias)
		for c := range rec {
			acc[r][c] = start
		}
	}
	for g := range 8 {
		var codes [wideCols]*ir.Value
		for c := range rec {
			codes[c] = s.code(rec[c], i, g)
		}
		for r := range acc {
			a := act.word(ir.I8x4, r, g, 8)
			for c := range rec {
				acc[r][c] = s.dot(b, codes[c], a, acc[r][c])
			}
		}
	}
	for c := range rec {
		w := rec[c].Scale(i)
		for r := range acc {
			sum.Add(acc[r][c].ToF32().Mul(act.word(ir.F32, r, 32, 1).Mul(w)), wideCols*r+c)
		}
		if !f.Min {
			continue
		}
		m := rec[c].Min(i)
		for r := range acc {
			t := act.word(ir.F32, r, 36, 1).Mul(m)
			if f.Plus {
				sum.Add(t, wideCols*r+c)
			} else {
				sum.Set(sum.At(wideCols*r+c).Sub(t), wideCols*r+c)
			}
		}
	}
}

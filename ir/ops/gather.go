package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/quant"
)

// Gather reads rows of packed weights by id as f32, times scale: the token embedding, one op per format. A value is
// dequantised by the last line of numerics rule 11. Shape: m ids, n rows, k elements.
func Gather() []*Op {
	var list []*Op
	for _, f := range quant.Formats() {
		list = append(list, &Op{
			Name: "gather_" + f.Name, Source: "gather.go", Doc: "rows of " + f.Name + " weights by id, as f32", Pack: "pack_" + f.Name,
			Variants: one(32, func(b *ir.Builder) { gatherQuant(b, f) }),
			Shapes:   []Shape{{3, 40, f.Block}, {1, 16, 3 * f.Block}},
			Case: func(_ Variant, s Shape, d *Data) *Case {
				n, k := s[1], s[2]
				rows := weights(f, n, k, d)
				return gatherCase(s, f.Pack(rows, n, k), d, func(r int) []float32 { return f.Row(rows[r*f.RowBytes(k):][:f.RowBytes(k)], k) })
			},
		})
	}
	for _, f := range floatFormats {
		list = append(list, &Op{
			Name: "gather_" + f.name, Source: "gather.go", Doc: "rows of " + f.name + " weights by id, as f32", Pack: "pack_" + f.name,
			Variants: one(32, func(b *ir.Builder) {
				ids, w, out := b.In("ids", ir.I32), b.In("w", f.t), b.Out("out", ir.F32)
				m, k := b.Int("m"), b.Int("k")
				scale := b.Float("scale")
				row := b.Tiles(m, 1)
				id := b.LoadIndex(ids, row)
				from := id.Shr(4).Mul(k)
				b.For(0, k, 1, func(i *ir.Value) {
					b.Store(out, row.Mul(k).Add(i), b.Load(w, from.Add(i).Mul(quant.Rows).Add(id.And(15))).Mul(scale))
				})
			}),
			Shapes: []Shape{{3, 40, 37}, {1, 16, 1}},
			Case: func(_ Variant, s Shape, d *Data) *Case {
				n, k := s[1], s[2]
				x, raw := floatWeights(f, n, k, d)
				return gatherCase(s, packFloat(raw, n, k, f.t.Bytes()), d, func(r int) []float32 { return x[r*k : r*k+k] })
			},
		})
	}
	return list
}

func gatherCase(s Shape, packed []byte, d *Data, row func(r int) []float32) *Case {
	m, n, k := s[0], s[1], s[2]
	out := filled(4 * m * k)
	ids := make([]int32, m)
	c := &Case{Buf: map[string][]byte{"w": packed, "out": clone(out)}, Int: map[string]int64{"m": int64(m), "k": int64(k)}, Float: map[string]float32{"scale": 1.5}}
	for i := range ids {
		ids[i] = int32(d.rng.IntN(n))
		for j, v := range row(int(ids[i])) {
			putFloat(out, i*k+j, float32(v*c.Float["scale"]))
		}
	}
	c.Buf["ids"] = int32Bytes(ids)
	c.Want = map[string][]byte{"out": out}
	return c
}

// gatherQuant reads the row's words as uniform values; lane j takes code j mod 4 of word j / 4.
func gatherQuant(b *ir.Builder, f *quant.Format) {
	ids, w, out := b.In("ids", ir.I32), b.In("w", ir.U8), b.Out("out", ir.F32)
	m, k, factor := b.Int("m"), b.Int("k"), b.Float("scale")
	row := b.Tiles(m, 1)
	id := b.LoadIndex(ids, row)
	records := k.Add(f.Span - 1).Div(f.Span)
	tile := id.Shr(4).Mul(records)
	lane := b.Lane().FromIndex()
	b.For(0, records, 1, func(r *ir.Value) {
		rec := f.Open(b, quant.Loader(b, w, tile.Add(r).Mul(f.Record), id.And(15)))
		for i := range f.Span / 32 {
			first := r.Mul(f.Span).Add(32 * i)
			b.If(first.Lt(k), func() {
				word := rec.Code(i, 0).As(ir.U32)
				for g := 1; g < 8; g++ {
					word = lane.Lt(4*g).Select(word, rec.Code(i, g).As(ir.U32))
				}
				code := word.Shr(lane.And(3).Shl(3).As(ir.U32)).And(0xFF).As(ir.I32).Sub(f.Bias).ToF32()
				scale := rec.Scale(i)
				if f.Halves {
					scale = scale.Mul(lane.Lt(16).Select(rec.Half(i, 0), rec.Half(i, 1)).ToF32())
				}
				v := scale.Mul(code)
				switch {
				case f.Plus:
					v = v.Add(rec.Min(i))
				case f.Min:
					v = v.Sub(rec.Min(i))
				}
				b.Store(out, row.Mul(k).Add(first).Add(b.Lane()), v.Mul(factor))
			})
		}
	})
}

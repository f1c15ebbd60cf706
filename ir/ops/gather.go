package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/quant"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Gather reads rows of packed weights by id as f32, times scale: the token embedding, one op per format. A value is
// dequantised by the last line of numerics rule 11. Shape: m ids, n rows, k elements.
func Gather() []*Op {
	var list []*Op
	for _, f := range quant.Formats() {
		list = append(list, &Op{
			Name: "gather_" + f.Name, Source: "gather.go", Doc: "rows of " + f.Name + " weights by id, as f32", Pack: "pack_" + f.Name,
			Variants: two(32, func(b *ir.Builder, family target.Family) { gatherQuant(b, family, f) }),
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
			Variants: two(32, func(b *ir.Builder, family target.Family) {
				ids, w, out := b.In("ids", ir.I32), b.In("w", f.t), b.Out("out", ir.F32)
				m, k := b.Int("m"), b.Int("k")
				scale := b.Float("scale")
				row := b.Tiles(m, 1)
				id := b.LoadIndex(ids, row)
				from := id.Shr(4).Mul(k)
				if family == target.GPU {
					along(b, family, k, func(first *ir.Value) {
						i := first.Add(b.Lane())
						mask := i.Lt(k)
						v := b.LoadMasked(w, from.Add(i).Mul(quant.Rows).Add(id.And(15)), mask)
						b.StoreMasked(out, row.Mul(k).Add(i), v.Mul(scale), mask)
					})
					return
				}
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

// gatherQuant takes a 32-block at a time: a lane is an element, byte lane mod 4 of word lane / 4. On a GPU each block is a tile
// of its own.
func gatherQuant(b *ir.Builder, family target.Family, f *quant.Format) {
	ids, w, out := b.In("ids", ir.I32), b.In("w", ir.U8), b.Out("out", ir.F32)
	m, k, factor := b.Int("m"), b.Int("k"), b.Float("scale")
	row := b.Tiles(m, 1)
	id := b.LoadIndex(ids, row)
	tile := id.Shr(4).Mul(k.Add(f.Span - 1).Div(f.Span))
	lane := b.Lane().FromIndex()
	each := func(block *ir.Value) {
		record := tile.Add(block.Div(f.Span / 32)).Mul(f.Record)
		blk := f.At(quant.LoaderAt(b, w, record, id.And(15)), block.Mod(f.Span/32))
		low, high := blk.Code(b.Lane().Shr(2).And(3))
		v := dequantize(f, blk, lane.Lt(16).Select(low, high).As(ir.U32), lane)
		b.Store(out, row.Mul(k).Add(block.Mul(32)).Add(b.Lane()), v.Mul(factor))
	}
	if family == target.GPU {
		each(b.Tiles(k, 32))
	} else {
		b.For(0, k.Shr(5), 1, each)
	}
}

// dequantize returns the value of a lane of a 32-block: its code is byte lane mod 4 of the word.
func dequantize(f *quant.Format, blk quant.Block, word, lane *ir.Value) *ir.Value {
	code := word.Shr(lane.And(3).Shl(3).As(ir.U32)).And(0xFF).As(ir.I32).Sub(f.Bias).ToF32()
	scale := blk.Scale
	if f.Halves {
		scale = scale.Mul(lane.Lt(16).Select(blk.Half[0], blk.Half[1]).ToF32())
	}
	v := scale.Mul(code)
	switch {
	case f.Plus:
		v = v.Add(blk.Min)
	case f.Min:
		v = v.Sub(blk.Min)
	}
	return v
}

package ops

import (
	"encoding/binary"
	"math"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/quant"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Pack turns rows of weights as they stand in a file into the tiles that GEMM and gather read: one op per format. The
// output is zero before. For each row, bad gets 1 if a scale or a weight is not finite or too large for the numerics
// (rule 14), else 0. A tile of weights is 16 rows; lanes are rows, on a GPU those of two tiles. Shape: n rows, k elements.
func Pack() []*Op {
	var list []*Op
	for _, f := range quant.Formats() {
		list = append(list, &Op{
			Name: "pack_" + f.Name, Source: "pack.go", Doc: f.Name + " rows to tiles of 16 rows",
			Layout:   &Layout{quant.Rows, f.Span, f.Record, f.Block, f.BlockBytes},
			Variants: portable(func(b *ir.Builder, family target.Family) { packQuant(b, family, f) }),
			Shapes:   []Shape{{16, f.Span}, {1, f.Block}, {19, 3 * f.Block}},
			Case: func(_ Variant, s Shape, d *Data) *Case {
				n, k := s[0], s[1]
				rows := weights(f, n, k, d)
				bad := make([]int32, n)
				if d.Pattern == Special {
					for i, at := range f.Scales {
						r := (7*i + 3) % n
						binary.LittleEndian.PutUint16(rows[r*f.RowBytes(k)+at:], 0xFC00>>(i%2*15)|0x7C01)
						bad[r] = 1
					}
				}
				return packCase(rows, f.Pack(rows, n, k), bad, n, k)
			},
		})
	}
	for _, f := range floatFormats {
		list = append(list, &Op{
			Name: "pack_" + f.name, Source: "pack.go", Doc: f.name + " rows to tiles of 16 rows",
			Layout:   &Layout{quant.Rows, 1, quant.Rows * f.t.Bytes(), 1, f.t.Bytes()},
			Variants: portable(func(b *ir.Builder, _ target.Family) { packFloats(b, f) }),
			Shapes:   []Shape{{16, 32}, {1, 1}, {19, 37}},
			Case:     func(_ Variant, s Shape, d *Data) *Case { return packFloatCase(f, s, d) },
		})
	}
	return list
}

// portable is the single variant of an op that of the CPU backends only the portable one has: it moves bytes once, at load.
func portable(build func(b *ir.Builder, family target.Family)) func(c *target.Caps) []Variant {
	return func(c *target.Caps) []Variant {
		if c.Family == target.CPU && c.Arch != "portable" {
			return nil
		}
		return two(quant.Rows, build)(c)
	}
}

// packTiles returns the lane's tile of weights, of the rows from b.Lanes()·block on.
func packTiles(b *ir.Builder, block *ir.Value) *ir.Value {
	if b.Lanes() == quant.Rows {
		return block
	}
	return block.Mul(b.Lanes() / quant.Rows).Add(b.Lane().Div(quant.Rows))
}

// packSlot returns the lane's row in its tile.
func packSlot(b *ir.Builder) *ir.Value {
	if b.Lanes() == quant.Rows {
		return b.Lane()
	}
	return b.Lane().Mod(quant.Rows)
}

func packCase(rows, packed []byte, bad []int32, n, k int) *Case {
	flags := filled(4 * n)
	c := &Case{
		Buf: map[string][]byte{"rows": rows, "packed": make([]byte, len(packed)), "bad": clone(flags)},
		Int: map[string]int64{"n": int64(n), "k": int64(k)},
	}
	for r, v := range bad {
		putInt(flags, r, v)
	}
	c.Want = map[string][]byte{"packed": packed, "bad": flags}
	return c
}

func packQuant(b *ir.Builder, family target.Family, f *quant.Format) {
	rows, packed, bad := b.In("rows", ir.U8), b.Out("packed", ir.U8), b.Out("bad", ir.I32)
	n, k := b.Int("n"), b.Int("k")
	tile := b.Tiles(n, b.Lanes())
	row := tile.Mul(b.Lanes()).Add(b.Lane())
	flag := b.Reg("flag", ir.I32, 1)
	flag.Fill(b.I32(0))
	if family == target.GPU {
		packTile(b, f, rows, packed, tile, row, k, flag, row.Lt(n))
	} else { // whole tiles need no mask, which lets a backend load words instead of bytes
		b.IfElse(tile.Add(1).Mul(b.Lanes()).Le(n), func() { packTile(b, f, rows, packed, tile, row, k, flag, nil) }, func() {
			packTile(b, f, rows, packed, tile, row, k, flag, row.Lt(n))
		})
	}
	b.StoreMasked(bad, row, flag.At(0), row.Lt(n))
}

func packTile(b *ir.Builder, f *quant.Format, rows, packed ir.Memory, block, row, k *ir.Value, flag ir.Tile, mask *ir.Value) {
	blocks := k.Div(f.Block)
	source := row.Mul(blocks.Mul(f.BlockBytes))
	records := k.Add(f.Span - 1).Div(f.Span)
	per := f.Span / f.Block
	b.For(0, records, 1, func(r *ir.Value) {
		record := packTiles(b, block).Mul(records).Add(r).Mul(f.Record)
		for i := range per {
			blk := r.Mul(per).Add(i)
			b.If(blk.Lt(blocks), func() {
				from := source.Add(blk.Mul(f.BlockBytes))
				for _, m := range f.Moves {
					packMove(b, rows, packed, m, from, record.Add(i*m.Stride), mask)
				}
				if f.PackRest != nil {
					f.PackRest(b, rows, packed, from, record, packSlot(b), mask, i)
				}
				for _, s := range f.Scales {
					high := b.LoadMasked(rows, from.Add(s+1), mask)
					flag.Set(high.And(0x7C).Eq(0x7C).Select(b.I32(1), flag.At(0)), 0)
				}
			})
		}
	})
}

func packMove(b *ir.Builder, rows, packed ir.Memory, m quant.Move, from, record, mask *ir.Value) {
	for w := range m.Words {
		switch {
		case m.Half:
			v := packBytes(b, rows, from.Add(m.From+2*w), 2, mask)
			b.StoreMasked(packed.As(ir.I16), record.Shr(1).Add((m.To+32*w)/2).Add(packSlot(b)), v.As(ir.I32), mask)
		case m.Byte:
			v := b.LoadMasked(rows, from.Add(m.From+w), mask)
			b.StoreMasked(packed, record.Add(m.To+16*w).Add(packSlot(b)), v, mask)
		default:
			v := packBytes(b, rows, from.Add(m.From+4*w), 4, mask)
			if m.Xor != 0 {
				v = v.Xor(int(m.Xor))
			}
			b.StoreMasked(packed.As(ir.U32), record.Shr(2).Add((m.To+64*w)/4).Add(packSlot(b)), v, mask)
		}
	}
}

// packBytes reads n bytes, little-endian, at any alignment.
func packBytes(b *ir.Builder, rows ir.Memory, at *ir.Value, n int, mask *ir.Value) *ir.Value {
	v := b.LoadMasked(rows, at, mask).As(ir.U32)
	for i := 1; i < n; i++ {
		v = v.Or(b.LoadMasked(rows, at.Add(i), mask).As(ir.U32).Shl(8 * i))
	}
	return v
}

func packFloats(b *ir.Builder, f floatFormat) {
	rows, packed, bad := b.In("rows", f.t), b.Out("packed", f.t), b.Out("bad", ir.I32)
	n, k := b.Int("n"), b.Int("k")
	block := b.Tiles(n, b.Lanes())
	row := block.Mul(b.Lanes()).Add(b.Lane())
	mask := row.Lt(n)
	flag := b.Reg("flag", ir.I32, 1)
	flag.Fill(b.I32(0))
	b.For(0, k, 1, func(i *ir.Value) {
		from, to := row.Mul(k).Add(i), packTiles(b, block).Mul(k).Add(i).Mul(quant.Rows).Add(packSlot(b))
		bits := func(t ir.Type, mask32 int) *ir.Value {
			return b.LoadMasked(rows.As(t), from, mask).As(ir.U32).And(mask32)
		}
		var large *ir.Value
		switch f.t {
		case ir.F16: // the bits move unchanged; infinities and NaN are bad
			v := b.LoadMasked(rows.As(ir.I16), from, mask)
			b.StoreMasked(packed.As(ir.I16), to, v, mask)
			large = v.And(0x7C00).Eq(0x7C00)
		case ir.BF16: // below 2⁻⁴⁵ becomes +0, from 2⁶² on is bad
			v := b.LoadMasked(rows.As(ir.I16), from, mask)
			magnitude := bits(ir.I16, 0x7FFF)
			v = magnitude.Lt(b.U32(0x2900)).Select(b.I32(0), v)
			b.StoreMasked(packed.As(ir.I16), to, v, mask)
			large = b.U32(0x5E7F).Lt(magnitude)
		default:
			v := b.LoadMasked(rows, from, mask)
			b.StoreMasked(packed, to, v, mask)
			large = b.U32(0x5E7FFFFF).Lt(bits(ir.U32, 0x7FFFFFFF))
		}
		flag.Set(large.Select(b.I32(1), flag.At(0)), 0)
	})
	b.StoreMasked(bad, row, flag.At(0), mask)
}

func packFloatCase(f floatFormat, s Shape, d *Data) *Case {
	n, k := s[0], s[1]
	size := f.t.Bytes()
	_, raw := floatWeights(f, n, k, d)
	bad := make([]int32, n)
	clean := clone(raw)
	if d.Pattern == Special {
		r := 5 % n
		at := (r*k+k/2)*size + size - 2
		binary.LittleEndian.PutUint16(raw[at:], 0xFF80)
		copy(clean[at:], raw[at:at+2])
		bad[r] = 1
		if f.t == ir.BF16 { // a small weight reads as +0
			binary.LittleEndian.PutUint16(raw, uint16(math.Float32bits(-1.0/(1<<46))>>16))
			clean[0], clean[1] = 0, 0
			if n == 1 && k == 1 {
				bad[0] = 0
			}
		}
	}
	return packCase(raw, packFloat(clean, n, k, size), bad, n, k)
}

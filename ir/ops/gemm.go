package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/quant"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// GEMM is out = act · wᵀ (+ out) for every quantized weight format: quantized activations of m rows, packed weights of n rows,
// both of k elements (numerics rules 9 and 11). gemm_FORMAT stores the product, gemm_add_FORMAT adds the output's old value,
// the residual. Shape: m, n, k.
//
// A tile computes Rows rows of activations. With Rows ≥ 4, m is a multiple of Rows; with fewer, m equals Rows: a caller cuts
// its rows into such runs, each starting at a multiple of four. Row r of the output starts at element r·ldo.
func GEMM() []*Op {
	var list []*Op
	for _, f := range quant.Formats() {
		for _, add := range []bool{false, true} {
			name, doc := "gemm_"+f.Name, "product of quantized rows and "+f.Name+" weights"
			if add {
				name, doc = "gemm_add_"+f.Name, doc+", added to the output"
			}
			list = append(list, &Op{
				Name: name, Source: "gemm.go", Doc: doc, Pack: "pack_" + f.Name,
				Variants: func(c *target.Caps) []Variant { return gemmVariants(f, add, c) },
				Shapes:   gemmShapes(f),
				Case:     func(v Variant, s Shape, d *Data) *Case { return gemmCase(f, add, v.Rows, s, d) },
			})
		}
	}
	return list
}

// gemmShapes are tails in every direction; a case rounds m to what the variant takes.
func gemmShapes(f *quant.Format) []Shape {
	b := f.Block
	return []Shape{{1, 16, b}, {12, 17, 2 * max(b, 64)}, {24, 40, 288 / b * b}, {3, 1, 5 * b}, {4, 33, 512 + 64/b*b}}
}

func gemmVariants(f *quant.Format, add bool, c *target.Caps) []Variant {
	if c.Family != target.CPU {
		return nil
	}
	var vs []Variant
	for _, rows := range gemmRows(c) {
		s := gemm{f: f, add: add, rows: rows, interleave: min(rows, 2), signed: f.UMax > c.DotUMax}
		vs = append(vs, Variant{Config: fmt.Sprintf("m%d", rows), Lanes: quant.Rows, Groups: 1, Rows: rows, Build: s.build})
	}
	return vs
}

// gemmRows lists the row tiles of a target, the largest first. An accumulator takes 16 lanes a row.
func gemmRows(c *target.Caps) []int {
	if c.VecBits == 512 || c.VecRegs == 0 {
		return []int{12, 8, 4, 3, 2, 1}
	}
	return []int{4, 3, 2, 1}
}

// gemm is the CPU schedule: a lane is a row of weights.
type gemm struct {
	f                *quant.Format
	add              bool
	rows, interleave int
	signed           bool // the target's dot takes signed codes only: flip the sign bit back
}

func (s gemm) build(b *ir.Builder) {
	f := s.f
	act, w := b.In("act", ir.I8), b.In("w", ir.U8)
	out := s.output(b)
	m, n, k, ldo := b.Int("m"), b.Int("n"), b.Int("k"), b.Int("ldo")
	tile, cols := b.Tiles(m, max(s.rows, actRows)), b.Tiles(n, quant.Rows)

	total := b.Shared("total", ir.F32, 16*s.rows)
	sum := b.Reg("sum", ir.F32, s.rows)
	records := k.Add(f.Span - 1).Div(f.Span)
	blocks := actBlocksIR(k)
	perSegment := 256 / f.Span
	wTile := cols.Mul(records)
	groups := make([]*ir.Value, (s.rows+actRows-1)/actRows)
	for g := range groups {
		groups[g] = tile.Mul(len(groups)).Add(g).Mul(blocks)
	}
	b.For(0, records, perSegment, func(segment *ir.Value) {
		sum.Fill(b.F32(0))
		b.For(segment, segment.Add(perSegment).Min(records), 1, func(r *ir.Value) {
			rec := f.Open(b, w, wTile.Add(r).Mul(f.Record), b.Lane())
			for i := range f.Span / 32 {
				kb := r.Mul(f.Span / 32).Add(i)
				var at []*ir.Value
				for _, g := range groups {
					at = append(at, g.Add(kb).Mul(actRecord/4))
				}
				s.block(b, rec, i, act, at, sum)
			}
		})
		b.IfElse(segment.Eq(0), func() {
			for j := range s.rows {
				b.Store(total, b.Lane().Add(16*j), sum.At(j))
			}
		}, func() {
			for j := range s.rows {
				at := b.Lane().Add(16 * j)
				b.Store(total, at, b.Load(total, at).Add(sum.At(j)))
			}
		})
	})
	mask := cols.Mul(quant.Rows).Add(b.Lane()).Lt(n)
	for j := range s.rows {
		at := tile.Mul(max(s.rows, actRows)).Add(j).Mul(ldo).Add(cols.Mul(quant.Rows)).Add(b.Lane())
		y := b.Load(total, b.Lane().Add(16*j))
		if s.add {
			y = y.Add(b.LoadMasked(out, at, mask))
		}
		b.StoreMasked(out, at, y, mask)
	}
}

func (s gemm) output(b *ir.Builder) ir.Memory {
	if s.add {
		return b.InOut("out", ir.F32)
	}
	return b.Out("out", ir.F32)
}

// block adds 32-block i of a record to the sums: at holds, for each group of four rows, the first word of its activation
// record.
func (s gemm) block(b *ir.Builder, rec quant.Record, i int, act ir.Memory, at []*ir.Value, sum ir.Tile) {
	f := s.f
	codes := rec.Codes(i)
	bias := f.Bias
	if s.signed {
		for g := range codes {
			codes[g] = codes[g].As(ir.U32).Xor(0x80808080).As(ir.I8x4)
		}
		bias -= 128
	}
	w := rec.Scale(i)
	var min *ir.Value
	if f.Min {
		min = rec.Min(i)
	}
	var sc [2]*ir.Value
	if f.Halves {
		sc = [2]*ir.Value{rec.Half(i, 0), rec.Half(i, 1)}
	}
	word := func(t ir.Type, j, word int) *ir.Value { return b.Load(act.As(t), at[j/actRows].Add(word)) }
	for first := 0; first < s.rows; first += s.interleave {
		last := first + s.interleave
		if last > s.rows {
			last = s.rows
		}
		var isum []*ir.Value
		if f.Halves {
			for j := first; j < last; j++ {
				slot := j % actRows
				head := word(ir.I32, j, 44+slot)
				tail := word(ir.I32, j, 40+slot).Sub(head)
				d0 := s.dots(b, codes[:4], 0, biased(b, head, bias), func(g int) *ir.Value { return word(ir.I8x4, j, 8*slot+g) })
				d1 := s.dots(b, codes[4:], 4, biased(b, tail, bias), func(g int) *ir.Value { return word(ir.I8x4, j, 8*slot+g) })
				isum = append(isum, sc[0].Mul(d0).Add(sc[1].Mul(d1)))
			}
		} else {
			for j := first; j < last; j++ {
				isum = append(isum, biased(b, word(ir.I32, j, 40+j%actRows), bias))
			}
			for g := range codes {
				for j := first; j < last; j++ {
					isum[j-first] = s.dot(b, codes[g], word(ir.I8x4, j, 8*(j%actRows)+g), isum[j-first])
				}
			}
		}
		for j := first; j < last; j++ {
			slot := j % actRows
			t := isum[j-first].ToF32().Mul(word(ir.F32, j, 32+slot).Mul(w))
			sum.Add(t, j)
			if !f.Min {
				continue
			}
			t = word(ir.F32, j, 36+slot).Mul(min)
			if f.Plus {
				sum.Add(t, j)
			} else {
				sum.Set(sum.At(j).Sub(t), j)
			}
		}
	}
}

func (s gemm) dots(b *ir.Builder, codes []*ir.Value, from int, acc *ir.Value, a func(g int) *ir.Value) *ir.Value {
	for g, c := range codes {
		acc = s.dot(b, c, a(from+g), acc)
	}
	return acc
}

func (s gemm) dot(b *ir.Builder, code, a, acc *ir.Value) *ir.Value {
	if s.signed {
		return b.Dot4SS(code, a, acc)
	}
	return b.Dot4US(code, a, acc, s.f.UMax)
}

// biased turns the negated sum of activations into what a dot of unsigned codes starts from: −bias·Σa.
func biased(b *ir.Builder, negated *ir.Value, bias int) *ir.Value {
	switch bias {
	case 0:
		return b.I32(0)
	case 8, 16, 32, 128:
		shift := 0
		for 1<<shift < bias {
			shift++
		}
		return negated.Shl(shift)
	}
	return negated.Mul(bias)
}

// gemmM rounds m to what a variant of that many rows takes.
func gemmM(m, rows int) int {
	if rows < actRows {
		return rows
	}
	return (m + rows - 1) / rows * rows
}

func gemmCase(f *quant.Format, add bool, rows int, s Shape, d *Data) *Case {
	m, n, k := gemmM(s[0], rows), s[1], s[2]
	w := weights(f, n, k, d)
	x := d.floats(m * k)
	act := make([]byte, actBytes(m, k))
	ldo := n + 3
	old := d.floats(m * ldo)
	want := floatBytes(old)
	out := clone(want)
	for r := range m {
		q := quantizeRow(x[r*k : r*k+k])
		q.put(act, r)
		for c := range n {
			y := dotRow(f, w[c*f.RowBytes(k):][:f.RowBytes(k)], q)
			if add {
				y += old[r*ldo+c]
			}
			putFloat(want, r*ldo+c, y)
		}
	}
	return &Case{
		Buf:  map[string][]byte{"act": act, "w": f.Pack(w, n, k), "out": out},
		Want: map[string][]byte{"out": want},
		Int:  map[string]int64{"m": int64(m), "n": int64(n), "k": int64(k), "ldo": int64(ldo)},
	}
}

// weights makes n GGUF rows of k elements with finite scales.
func weights(f *quant.Format, n, k int, d *Data) []byte {
	w := d.bytes(n * f.RowBytes(k))
	for at := 0; at < len(w); at += f.BlockBytes {
		for _, s := range f.Scales {
			h := d.half()
			w[at+s], w[at+s+1] = byte(h), byte(h>>8)
		}
	}
	return w
}

// dotRow is the product of a GGUF row and a row of activations: rules 9 and 11, scalar.
func dotRow(f *quant.Format, row []byte, q quantRow) float32 {
	var total float32
	blocks := len(row) / f.BlockBytes * f.Block / 32
	for first := 0; first < blocks; first += 8 {
		var sum float32
		for kb := first; kb < min(first+8, blocks); kb++ {
			s := f.Sub(row[kb*32/f.Block*f.BlockBytes:][:f.BlockBytes], kb%(f.Block/32))
			var half [2]int32
			for i, c := range s.Code {
				half[i/16] += c * int32(q.code[32*kb+i])
			}
			isum := s.Sc[0]*half[0] + s.Sc[1]*half[1]
			sum += float32(float32(isum) * float32(q.d[kb]*s.W))
			switch {
			case f.Plus:
				sum += float32(q.sigma[kb] * s.M)
			case f.Min:
				sum -= float32(q.sigma[kb] * s.M)
			}
		}
		total += sum
	}
	return total
}

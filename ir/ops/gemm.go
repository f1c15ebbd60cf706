package ops

import (
	"fmt"
	"math/bits"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/quant"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// GEMM is out = act · wᵀ for every quantized weight format: quantized activations of m rows, packed weights of n rows, both
// of k elements (numerics rules 9 and 11). With add ≠ 0 the output's old value, the residual, is added. Shape: m, n, k.
//
// A tile computes R rows of activations (config mR). With R ≥ 4, m is a multiple of R; with fewer, m equals R: a caller cuts
// its rows into such runs, each starting at a multiple of four. Row r of the output starts at element r·ldo.
func GEMM() []*Op {
	var list []*Op
	for _, f := range quant.Formats() {
		list = append(list, &Op{
			Name: "gemm_" + f.Name, Source: "gemm.go", Doc: "product of quantized rows and " + f.Name + " weights", Pack: "pack_" + f.Name,
			Variants: func(c *target.Caps) []Variant { return gemmVariants(f, c) },
			Shapes:   gemmShapes(f),
			Case:     func(v Variant, s Shape, d *Data) *Case { return gemmCase(f, v.Rows, s, d) },
		})
	}
	return list
}

// gemmShapes are tails in every direction; a case rounds m to what the variant takes.
func gemmShapes(f *quant.Format) []Shape {
	b := f.Block
	return []Shape{{1, 16, b}, {12, 17, 2 * max(b, 64)}, {24, 40, 288 / b * b}, {3, 1, 5 * b}, {4, 33, 512 + 64/b*b}}
}

func gemmVariants(f *quant.Format, c *target.Caps) []Variant {
	if c.Family != target.CPU {
		return gemmVariantsGPU(f, c)
	}
	var vs []Variant
	for _, rows := range gemmRows(c) {
		s := gemm{f: f, rows: rows, interleave: min(rows, gemmInterleave(f)), signed: f.UMax > c.DotUMax}
		if c.VecRegs > 0 && c.VecRegs*c.VecBits < 32*512 {
			s.interleave = rows // a word of codes meets all rows at once, and no two words are held
		}
		build := s.build
		if rows == 2*wideRows && !f.Halves {
			build = gemmWide{s}.build
		}
		vs = append(vs, Variant{Config: fmt.Sprintf("m%d", rows), Lanes: quant.Rows, Groups: 1, Rows: rows, Build: build})
	}
	return vs
}

// gemmInterleave is the number of rows that pass together: more chains of dots where the format leaves registers for them.
func gemmInterleave(f *quant.Format) int {
	if f.Halves {
		return 2
	}
	return 4
}

// gemmRows lists the row tiles of a target, the largest first. An accumulator takes 16 lanes a row.
func gemmRows(c *target.Caps) []int {
	if c.VecBits == 512 {
		return []int{12, 8, 4, 3, 2, 1}
	}
	return []int{4, 3, 2, 1}
}

// gemm is the CPU schedule: a lane is a row of weights. The codes of a 32-block are held in registers while runs of interleave
// rows of activations pass, or, where all rows pass at once, read word by word.
type gemm struct {
	f                *quant.Format
	rows, interleave int
	signed           bool // the target's dot takes signed codes only: flip the sign bit back
}

func (s gemm) build(b *ir.Builder) {
	f := s.f
	act, w := b.In("act", ir.I8), b.In("w", ir.U8)
	out := b.InOut("out", ir.F32)
	m, n, k := b.Int("m"), b.Int("n"), b.Int("k")
	cols, tile := b.Tiles(n, quant.Rows), b.Tiles(m, max(s.rows, actRows)) // a tile's activations stay in the first cache

	ldo := b.Int("ldo")
	if s.rows > actRows {
		prefetchOut(b, out, tile.Mul(s.rows), cols.Mul(quant.Rows), ldo, k, s.rows, 1)
	}
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
			record := wTile.Add(r).Mul(f.Record)
			if s.rows >= actRows { // the first tile of rows brings the weights to the cache
				b.If(tile.Eq(0), func() { prefetchWeights(b, w, record, f.Record) })
			}
			eachPart(b, f, func(part *ir.Value) {
				rec := f.Open(s.cached(quant.LoaderAt(b, w, record, b.Lane())), part)
				for i := range f.Part {
					if s.rows < actRows { // few rows: the weights come from memory, block by block in an even stream
						bytes := f.Record / (f.Span / 32)
						prefetchWeights(b, w, record.Add(part.Mul(f.Part*bytes)).Add(i*bytes), bytes)
					}
					kb := r.Mul(f.Span / 32).Add(part.Mul(f.Part)).Add(i)
					var at []*ir.Value
					for _, g := range groups {
						at = append(at, g.Add(kb).Mul(actRecord/4))
					}
					s.block(b, rec, i, act, at, sum)
				}
			})
		})
		addSegment(b, b.Lane(), total, sum, segment, s.rows)
	})
	storeTotals(b, total, out, tile.Mul(max(s.rows, actRows)), cols.Mul(quant.Rows), n, ldo, s.rows, 1, inOrder)
}

// eachPart runs body for the parts of a record.
func eachPart(b *ir.Builder, f *quant.Format, body func(part *ir.Value)) {
	if f.Span == 32*f.Part {
		body(b.Idx(0))
		return
	}
	b.For(0, f.Span/32/f.Part, 1, body)
}

// addSegment adds a segment's sums to the totals, which lie in scratch; the first one starts them. (A sum that starts at +0
// is never −0, so +0 plus it is the sum.)
func addSegment(b *ir.Builder, first *ir.Value, total ir.Memory, sum ir.Tile, segment *ir.Value, rows int) {
	at := func(j int) *ir.Value { return first.Add(16 * j) }
	b.IfElse(segment.Eq(0), func() {
		for j := range rows {
			b.Store(total, at(j), sum.At(j))
		}
	}, func() {
		for j := range rows {
			b.Store(total, at(j), b.Load(total, at(j)).Add(sum.At(j)))
		}
	})
}

// prefetchOut asks for the lines that a tile will store to, where it takes long enough for that to be worth it.
func prefetchOut(b *ir.Builder, out ir.Memory, row, col, ldo, k *ir.Value, rows, cols int) {
	b.If(b.Idx(1024).Le(k), func() {
		for j := range rows {
			for c := range cols {
				b.Prefetch(out, row.Add(j).Mul(ldo).Add(col).Add(16*c))
			}
		}
	})
}

// storeTotals ends a product: totals of rows from row on, cols vectors of columns from col on, stored or added to the output.
// at gives the place of a row's totals.
func storeTotals(b *ir.Builder, total, out ir.Memory, row, col, n, ldo *ir.Value, rows, cols int, at func(j int) int) {
	add := b.Int("add")
	each := func(f func(at, y, mask *ir.Value)) {
		for c := range cols {
			e := col.Add(16 * c).Add(b.Lane())
			mask := e.Lt(n)
			for j := range rows {
				f(row.Add(j).Mul(ldo).Add(e), b.Load(total, b.Lane().Add(16*(cols*at(j)+c))), mask)
			}
		}
	}
	b.IfElse(add.Eq(0), func() {
		each(func(at, y, mask *ir.Value) { b.StoreMasked(out, at, y, mask) })
	}, func() {
		each(func(at, y, mask *ir.Value) { b.StoreMasked(out, at, y.Add(b.LoadMasked(out, at, mask)), mask) })
	})
}

// inOrder is the place of totals that lie in the order of rows.
func inOrder(j int) int { return j }

// prefetchAhead is how many bytes before their use weights are asked for.
const prefetchAhead = 6144

// prefetchWeights asks for so many bytes of weights, from byte at on, ahead of their use.
func prefetchWeights(b *ir.Builder, w ir.Memory, at *ir.Value, bytes int) {
	for line := 0; line < bytes; line += 64 {
		b.Prefetch(w, at.Add(prefetchAhead+line))
	}
}

// cached keeps loaded words where several codes come from one and codes are held in registers anyway.
func (s gemm) cached(load quant.LoadAt) quant.LoadAt {
	if s.interleave == s.rows {
		return load
	}
	type key struct {
		t   ir.Type
		at  int
		vec *ir.Value
	}
	seen := map[key]*ir.Value{}
	return func(t ir.Type, at int, vec *ir.Value) *ir.Value {
		k := key{t, at, vec}
		if seen[k] == nil {
			seen[k] = load(t, at, vec)
		}
		return seen[k]
	}
}

// block adds 32-block i of a part to the sums: at holds, for each group of four rows, the first word of its activation
// record.
func (s gemm) block(b *ir.Builder, rec quant.Record, i int, act ir.Memory, at []*ir.Value, sum ir.Tile) {
	f := s.f
	code := func(g int) *ir.Value { return s.code(rec, i, g) }
	bias := f.Bias
	if s.signed {
		bias -= 128
	}
	if s.interleave < s.rows {
		var held [8]*ir.Value
		for g := range held {
			held[g] = code(g)
		}
		code = func(g int) *ir.Value { return held[g] }
	}
	half := func(h int) *ir.Value { return rec.Half(i, h).ToF32() }
	if f.Halves && s.interleave < s.rows {
		held := [2]*ir.Value{half(0), half(1)}
		half = func(h int) *ir.Value { return held[h] }
	}
	word := func(t ir.Type, j, n int) *ir.Value { return b.Load(act.As(t), at[j/actRows].Add(n)) }
	for first := 0; first < s.rows; first += s.interleave {
		last := min(first+s.interleave, s.rows)
		// dots returns, for each row, the dot of words from … to−1 on top of start.
		dots := func(from, to int, start func(j int) *ir.Value) []*ir.Value {
			var acc []*ir.Value
			for j := first; j < last; j++ {
				acc = append(acc, biased(b, start(j), bias))
			}
			for g := from; g < to; g++ {
				c := code(g)
				for j := first; j < last; j++ {
					acc[j-first] = s.dot(b, c, word(ir.I8x4, j, 8*(j%actRows)+g), acc[j-first])
				}
			}
			return acc
		}
		total := func(j int) *ir.Value { return word(ir.I32, j, 40+j%actRows) }
		head := func(j int) *ir.Value { return word(ir.I32, j, 44+j%actRows) }
		// isum as floats: below 2²⁴ they are exact, products and sums of the halves' too.
		var isum []*ir.Value
		if f.Halves {
			for _, d := range dots(0, 4, head) {
				isum = append(isum, d.ToF32().Mul(half(0)))
			}
			for j, d := range dots(4, 8, func(j int) *ir.Value { return total(j).Sub(head(j)) }) {
				isum[j] = b.FMAExact(d.ToF32(), half(1), isum[j])
			}
		} else {
			for _, d := range dots(0, 8, total) {
				isum = append(isum, d.ToF32())
			}
		}
		w := rec.Scale(i)
		for j := first; j < last; j++ {
			sum.Add(isum[j-first].Mul(word(ir.F32, j, 32+j%actRows).Mul(w)), j)
		}
		if !f.Min {
			continue
		}
		m := rec.Min(i)
		for j := first; j < last; j++ {
			t := word(ir.F32, j, 36+j%actRows).Mul(m)
			if f.Plus {
				sum.Add(t, j)
			} else {
				sum.Set(sum.At(j).Sub(t), j)
			}
		}
	}
}

// code returns word g of 32-block i as the target's dot takes it.
func (s gemm) code(rec quant.Record, i, g int) *ir.Value {
	c := rec.Code(i, g)
	if s.signed {
		return c.As(ir.U32).Xor(0x80808080).As(ir.I8x4)
	}
	return c
}

func (s gemm) dot(b *ir.Builder, code, a, acc *ir.Value) *ir.Value {
	if s.signed {
		return b.Dot4SS(code, a, acc)
	}
	return b.Dot4US(code, a, acc, s.f.UMax)
}

// biased turns the negated sum of activations into what a dot of unsigned codes starts from: −bias·Σa.
func biased(b *ir.Builder, negated *ir.Value, bias int) *ir.Value {
	if bias == 0 {
		return b.I32(0)
	}
	if bias&(bias-1) != 0 {
		b.Fail("bias %d of a weight format is no power of two", bias)
	}
	return negated.Shl(bits.TrailingZeros(uint(bias)))
}

// gemmM rounds m to what a variant of that many rows takes.
func gemmM(m, rows int) int {
	if rows == 0 { // any number
		return m
	}
	if rows < actRows {
		return rows
	}
	return (m + rows - 1) / rows * rows
}

func gemmCase(f *quant.Format, rows int, s Shape, d *Data) *Case {
	m, n, k := gemmM(s[0], rows), s[1], s[2]
	w := weights(f, n, k, d)
	x := d.floats(m * k)
	act := make([]byte, actBytes(m, k))
	ldo, add := n+3, s[1]%2
	old := d.floats(m * ldo)
	want := floatBytes(old)
	out := clone(want)
	for r := range m {
		q := quantizeRow(x[r*k : r*k+k])
		q.put(act, r)
		for c := range n {
			y := dotRow(f, w[c*f.RowBytes(k):][:f.RowBytes(k)], q)
			if add != 0 {
				y += old[r*ldo+c]
			}
			putFloat(want, r*ldo+c, y)
		}
	}
	return &Case{
		Buf:  map[string][]byte{"act": act, "w": f.Pack(w, n, k), "out": out},
		Want: map[string][]byte{"out": want},
		Int:  map[string]int64{"m": int64(m), "n": int64(n), "k": int64(k), "ldo": int64(ldo), "add": int64(add)},
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

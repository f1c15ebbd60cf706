package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/quant"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/ir/tile"
)

// On GPUs a kernel of GEMM takes any number of rows; a tile computes R of them (config mR…). With few rows the lane groups
// of a block share out k (gG groups): a group's lanes are 32 rows of weights, or the elements of one matrix product. With
// many rows they share out the columns (nN a block), and the activations are staged through shared memory.

const (
	warp    = 32 // lanes of a group
	segment = 8  // 32-blocks of a segment of k
)

func gemmVariantsGPU(f *quant.Format, c *target.Caps) []Variant {
	var vs []Variant
	add := func(config string, groups int, build func(b *ir.Builder)) {
		vs = append(vs, Variant{Config: config, Lanes: warp, Groups: groups, Build: build})
	}
	for _, rows := range []int{1, 4} {
		add(fmt.Sprintf("m%dg8", rows), 8, func(b *ir.Builder) { gemmDot(b, f, rows, 8) })
	}
	atom := integerAtom(c)
	if atom == nil {
		add("m16n128", 4, func(b *ir.Builder) { gemmDotTile(b, f, 16, 4) })
		return vs
	}
	add("m16g8", 8, func(b *ir.Builder) { gemmMatrixSplit(b, f, atom, 16, 8) })
	add("m64n64", 4, func(b *ir.Builder) { gemmMatrixTile(b, f, atom, 64, 4, false) })
	vs[len(vs)-1].Tiles = []StagedTile{{codeTile(64), "s8"}}
	if f.Name == "q8_0" { // the tile without its swizzle, for comparison
		add("m64n64s0", 4, func(b *ir.Builder) { gemmMatrixTile(b, f, atom, 64, 4, true) })
	}
	return vs
}

// product holds the parameters of a matrix product.
type product struct {
	b                 *ir.Builder
	x, w, out         ir.Memory
	m, n, k, ldo, add *ir.Value
}

func newProduct(b *ir.Builder, x string, xt, wt ir.Type) *product {
	return &product{b, b.In(x, xt), b.In("w", wt), b.InOut("out", ir.F32), b.Int("m"), b.Int("n"), b.Int("k"), b.Int("ldo"), b.Int("add")}
}

// packed returns the tile of packed weights that holds column col, or the last one.
func (p *product) packed(col *ir.Value) *ir.Value { return col.Shr(4).Min(p.n.Sub(1).Shr(4)) }

// rowGroup returns the group of four rows that holds row, or the last one.
func (p *product) rowGroup(row *ir.Value) *ir.Value { return row.Shr(2).Min(p.m.Sub(1).Shr(2)) }

// store writes a total, or adds it to the output: a total is never −0, so the +0 of a masked load leaves it.
func (p *product) store(row, col, total *ir.Value) {
	b := p.b
	at, mask := row.Mul(p.ldo).Add(col), row.Lt(p.m).AndB(col.Lt(p.n))
	old := b.LoadMasked(p.out, at, mask.AndB(p.add.Eq(0).Not()))
	b.StoreMasked(p.out, at, total.Add(old), mask)
}

// splitK computes count values a lane, each the sum over steps. The groups of the block take segments of per steps in turn:
// body adds steps lo … hi−1 to the group's sums; the longest segment of the round has longest steps. Segments' sums pass
// through shared memory: group g folds values g, g + groups, … of all segments in order (numerics rule 9) and gives the
// totals to store.
func splitK(b *ir.Builder, groups, count int, steps *ir.Value, per int, body func(lo, hi, longest *ir.Value, sum ir.Tile), store func(value, total *ir.Value)) {
	part := b.Shared("part", ir.F32, 2*groups*count*warp) // two, so that one barrier a round is enough
	sum := b.Reg("sum", ir.F32, count)
	total := b.Reg("total", ir.F32, (count+groups-1)/groups)
	total.Fill(b.F32(0))
	group, lane := b.Group(), b.Lane()
	mine := func(f func(turn int, value *ir.Value)) {
		for turn := range total.Reg.Len {
			value := group.Add(turn * groups)
			if (turn+1)*groups <= count {
				f(turn, value)
			} else {
				b.If(value.Lt(count), func() { f(turn, value) })
			}
		}
	}
	b.For(0, steps, per*groups, func(round *ir.Value) {
		first := round.Div(per * groups).And(1).Mul(groups * count * warp)
		at := func(group, value *ir.Value) *ir.Value {
			return first.Add(group.Mul(count * warp)).Add(value.Mul(warp)).Add(lane)
		}
		lo := round.Add(group.Mul(per)).Min(steps)
		sum.Fill(b.F32(0))
		body(lo, lo.Add(per).Min(steps), steps.Sub(round).Min(per), sum)
		for j := range count {
			b.Store(part, at(group, b.Idx(j)), sum.At(j))
		}
		b.Barrier()
		segments := steps.Sub(round).Add(per - 1).Div(per).Min(groups)
		mine(func(turn int, value *ir.Value) {
			b.For(0, segments, 1, func(from *ir.Value) { total.Add(b.Load(part, at(from, value)), turn) })
		})
	})
	mine(func(turn int, value *ir.Value) { store(value, total.At(turn)) })
}

// gemmDot is the schedule for few rows: a lane is a row of weights.
func gemmDot(b *ir.Builder, f *quant.Format, rows, groups int) {
	p := newProduct(b, "act", ir.I8, ir.U8)
	col := b.Tiles(p.n, warp).Mul(warp).Add(b.Lane())
	row0 := b.Tiles(p.m, rows).Mul(rows)
	records := p.rowGroup(row0).Mul(actBlocksIR(p.k))
	dot := dotBlock{b, f}
	w := newReader(p, f, p.packed(col), []*ir.Value{b.Lane().And(15)}, dot.quads())
	w.start(b.Group().Mul(segment), ahead(f, rows))
	splitK(b, groups, rows, p.k.Shr(5), segment, func(lo, hi, _ *ir.Value, sum ir.Tile) {
		b.For(lo, hi, w.depth, func(first *ir.Value) {
			for u := range w.depth { // past the segment, zeros are added
				kb := first.Add(u)
				wb := w.next(kb, afterSegment(kb, w.depth, groups))
				record := records.Add(kb.Min(w.last)).Mul(actRecord / 4)
				dot.rows(p.x, record, row0.And(3), rows, kb.Lt(hi), wb[0], sum, 0)
			}
		})
	}, func(row, total *ir.Value) { p.store(row0.Add(row), col, total) })
}

// ahead returns how many blocks of weights a lane has on their way from memory while it multiplies one by rows.
func ahead(f *quant.Format, rows int) int {
	switch {
	case f.Span == 256: // a dozen loads or more each
		return 1
	case f.UMax > 31 || rows > 1:
		return 2
	}
	return 4
}

// afterSegment returns the 32-block that a group multiplies by blocks after kb, where it has every groups-th segment.
func afterSegment(kb *ir.Value, by, groups int) *ir.Value {
	next := kb.And(segment - 1).Add(by).Div(segment)
	return kb.Add(next.Mul(segment * (groups - 1))).Add(by)
}

// gemmDotTile is the schedule for many rows without matrix instructions: a lane is a row of weights, and a group has 32 of
// them. Records of activations are staged through shared memory, where all lanes read the same words.
func gemmDotTile(b *ir.Builder, f *quant.Format, rows, groups int) {
	const stageRecords = 32
	perStage := stageRecords * actRows / rows // 32-blocks
	p := newProduct(b, "act", ir.I8, ir.U8)
	row0 := b.Tiles(p.m, rows).Mul(rows)
	col := b.Tiles(p.n, warp*groups).Mul(warp * groups).Add(b.Group().Mul(warp)).Add(b.Lane())
	dot := dotBlock{b, f}
	w := newReader(p, f, p.packed(col), []*ir.Value{b.Lane().And(15)}, dot.quads())
	stage := b.Shared("stage", ir.I8x4, 2*stageRecords*actRecord/4)
	blocks := actBlocksIR(p.k)
	const chunks = actRecord / 16
	copies := tile.NewTransfer(b, stage, p.x, stageRecords*chunks, groups, func(turn int, thread *ir.Value) tile.Chunk {
		n := thread.Add(turn * groups * warp)
		record, chunk := n.Div(chunks), n.Mod(chunks)
		group, kb := row0.Shr(2).Add(record.Div(perStage)), record.Mod(perStage)
		from := group.Mul(blocks).Add(kb).Mul(actRecord).Add(chunk.Mul(16))
		return tile.Chunk{To: n.Mul(4), From: from, Mask: group.Le(p.m.Sub(1).Shr(2)), K: kb}
	})
	load := func(step, at *ir.Value) {
		copies.Start(at.Mul(stageRecords*actRecord/4), step.Mul(actRecord), blocks.Sub(step))
	}
	staged(b, p.k.Shr(5), perStage, rows, load, w, func(i, at *ir.Value, wb []weightBlock, sum ir.Tile) {
		first := at.Mul(stageRecords * actRecord / 4).Add(i.Mul(actRecord / 4))
		for j := 0; j < rows; j += actRows {
			dot.rows(stage, first.Add(j/actRows*perStage*actRecord/4), b.Idx(0), actRows, nil, wb[0], sum, j)
		}
	}, func(j int, total *ir.Value) { p.store(row0.Add(j), col, total) })
}

// staged is the pipeline of the schedules for many rows: while a step of per 32-blocks is computed, load copies the next one
// to the other of two stages, and the weights of the next block are on their way to registers. count is the number of values
// a lane; per divides the 8 blocks of a segment. body gets a block's number in its step, the stage and the weights.
func staged(b *ir.Builder, blocks *ir.Value, per, count int, load func(step, stage *ir.Value), w *reader,
	body func(i, stage *ir.Value, wb []weightBlock, sum ir.Tile), store func(j int, total *ir.Value)) {
	sum, total := b.Reg("sum", ir.F32, count), b.Reg("total", ir.F32, count)
	total.Fill(b.F32(0))
	stage := func(step *ir.Value) *ir.Value { return step.Div(per).And(1) }
	load(b.Idx(0), b.Idx(0))
	b.AsyncCommit()
	w.start(b.Idx(0), 1)
	b.For(0, blocks, segment, func(first *ir.Value) {
		sum.Fill(b.F32(0))
		b.For(first, first.Add(segment).Min(blocks), per, func(step *ir.Value) {
			b.AsyncWait(0)
			b.Barrier() // this step's copies are there, and the other stage has been read
			next := step.Add(per)
			b.If(next.Lt(blocks), func() { load(next, stage(next)) })
			b.AsyncCommit()
			b.For(step, next.Min(blocks), 1, func(kb *ir.Value) { body(kb.Sub(step), stage(step), w.next(kb, kb.Add(1)), sum) })
		})
		for j := range count {
			total.Add(sum.At(j), j)
		}
	})
	for j := range count {
		store(j, total.At(j))
	}
}

// reader reads 32-blocks of packed weights: of each of a lane's rows the words t and t + 4, for each t of quads. Loads are
// started some blocks ahead and wait in registers, not decoded.
type reader struct {
	b     *ir.Builder
	f     *quant.Format
	w     ir.Memory
	first *ir.Value // first record of the lane's tile
	last  *ir.Value // 32-block of k
	rows  []*ir.Value
	quads []*ir.Value
	raw   ir.Tile // by block and load
	depth int     // blocks in raw
	turn  int     // the one that is used next
}

// weightBlock is a 32-block of one row, decoded.
type weightBlock struct {
	lo, hi     []*ir.Value // U8x4 words t and t + 4
	scale, min *ir.Value   // F32
	half       [2]*ir.Value
}

func newReader(p *product, f *quant.Format, tile *ir.Value, rows, quads []*ir.Value) *reader {
	records := p.k.Add(f.Span - 1).Div(f.Span)
	return &reader{b: p.b, f: f, w: p.w, first: tile.Mul(records), last: p.k.Shr(5).Sub(1), rows: rows, quads: quads}
}

// decode decodes a block, given a load for each row.
func (w *reader) decode(i *ir.Value, load func(row int) quant.LoadAt) []weightBlock {
	out := make([]weightBlock, len(w.rows))
	for r := range out {
		blk := w.f.At(load(r), i)
		o := weightBlock{scale: blk.Scale, min: blk.Min}
		if w.f.Halves {
			o.half = [2]*ir.Value{blk.Half[0].ToF32(), blk.Half[1].ToF32()}
		}
		for _, t := range w.quads {
			lo, hi := blk.Code(t)
			o.lo, o.hi = append(o.lo, lo), append(o.hi, hi)
		}
		out[r] = o
	}
	return out
}

// place returns the record of 32-block kb, counted from the tile's first, and the block's number in it.
func (w *reader) place(kb *ir.Value) (record, i *ir.Value) {
	per := w.f.Span / 32
	if per == 1 {
		return kb, w.b.Idx(0)
	}
	return kb.Div(per), kb.Mod(per)
}

// fetch loads all that [reader.decode] asks for of block kb, or of the last one, in its order.
func (w *reader) fetch(kb *ir.Value) (loaded []*ir.Value) {
	record, i := w.place(kb.Min(w.last))
	record = w.first.Add(record).Mul(w.f.Record)
	w.decode(i, func(r int) quant.LoadAt {
		load := quant.LoaderAt(w.b, w.w, record, w.rows[r])
		return func(t ir.Type, at int, vec *ir.Value) *ir.Value {
			v := load(t, at, vec)
			loaded = append(loaded, v)
			return v
		}
	})
	return loaded
}

// start loads blocks kb … kb+depth−1 for the first calls of next.
func (w *reader) start(kb *ir.Value, depth int) {
	w.depth = depth
	for u := range depth {
		loaded := w.fetch(kb.Add(u))
		if u == 0 {
			w.raw = w.b.Reg("raw", ir.U32, depth, len(loaded))
		}
		w.keep(u, loaded)
	}
}

func (w *reader) keep(turn int, loaded []*ir.Value) {
	for n, v := range loaded {
		w.raw.Set(v.As(ir.U32), turn, n)
	}
}

// next decodes block kb, whose loads were started depth calls before, and starts those of the block to use depth calls after.
func (w *reader) next(kb, after *ir.Value) []weightBlock {
	n := 0
	_, i := w.place(kb)
	out := w.decode(i, func(int) quant.LoadAt {
		return func(t ir.Type, _ int, _ *ir.Value) *ir.Value {
			v := w.raw.At(w.turn, n).As(t.Reg())
			n++
			return v
		}
	})
	w.keep(w.turn, w.fetch(after))
	w.turn = (w.turn + 1) % w.depth
	return out
}

// An integer of magnitude below 2²² that is added to floatBits gives the bits of floatBase plus the integer: sums of products
// start there, and one subtraction makes them floats, exactly.
const (
	floatBits = 0x4B400000
	floatBase = 12582912
)

// dotBlock multiplies 32-blocks, a lane being a row of weights.
type dotBlock struct {
	b *ir.Builder
	f *quant.Format
}

// quads are the numbers of all pairs of words.
func (d dotBlock) quads() []*ir.Value {
	return []*ir.Value{d.b.Idx(0), d.b.Idx(1), d.b.Idx(2), d.b.Idx(3)}
}

// rows adds the products of a block of weights and of rows first … first+count−1 of the record of activations whose first
// word is at index record of x to sums from on; zeros where live, if there is one, is false.
func (d dotBlock) rows(x ir.Memory, record, first *ir.Value, count int, live *ir.Value, w weightBlock, sum ir.Tile, from int) {
	b, f := d.b, d.f
	// head reads one word a row of the four-row vector at byte at.
	head := func(t ir.Type, at int, mask *ir.Value) []*ir.Value {
		return b.LoadN(x.As(t), count, record.Add(first).Add(at/4), mask)
	}
	scale := head(ir.F32, 128, live)
	var sigma, negated, negatedHead []*ir.Value
	if f.Min {
		sigma = head(ir.F32, 144, live)
	}
	if f.Bias > 0 {
		negated = head(ir.I32, 160, nil)
	}
	if f.Bias > 0 && f.Halves {
		negatedHead = head(ir.I32, 176, nil)
	}
	for j := range count {
		codes := record.Add(first.Add(j).Mul(8))
		lo, hi := b.LoadN(x.As(ir.I8x4), 4, codes, nil), b.LoadN(x.As(ir.I8x4), 4, codes.Add(4), nil)
		dot := func(acc *ir.Value, code, a []*ir.Value) *ir.Value {
			for g, c := range code {
				acc = b.Dot4US(c, a[g], acc, f.UMax)
			}
			return acc
		}
		start := func(negated func() *ir.Value) *ir.Value {
			if f.Bias == 0 {
				return b.I32(floatBits)
			}
			return biased(b, negated(), f.Bias).Add(floatBits)
		}
		float := func(acc *ir.Value) *ir.Value { return acc.As(ir.F32).Sub(b.F32(floatBase)) }
		var isum *ir.Value
		if f.Halves {
			first := float(dot(start(func() *ir.Value { return negatedHead[j] }), w.lo, lo))
			second := float(dot(start(func() *ir.Value { return negated[j].Sub(negatedHead[j]) }), w.hi, hi))
			isum = b.FMAExact(second, w.half[1], first.Mul(w.half[0]))
		} else {
			isum = float(dot(dot(start(func() *ir.Value { return negated[j] }), w.lo, lo), w.hi, hi))
		}
		addBlock(f, sum, from+j, isum, scale[j], sigma, j, w)
	}
}

// addBlock adds a block's product to sum n by numerics rule 11. Of the rows' σ, those of formats with a minimum, row j's is
// meant.
func addBlock(f *quant.Format, sum ir.Tile, n int, isum, d *ir.Value, sigma []*ir.Value, j int, w weightBlock) {
	sum.Add(isum.Mul(d.Mul(w.scale)), n)
	switch {
	case f.Plus:
		sum.Add(sigma[j].Mul(w.min), n)
	case f.Min:
		sum.Set(sum.At(n).Sub(sigma[j].Mul(w.min)), n)
	}
}

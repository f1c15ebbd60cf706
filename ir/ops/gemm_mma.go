package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/layout"
	"github.com/swizzle-rt/swizzle/ir/quant"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/ir/tile"
)

// With matrix instructions, A is a packed tile of weights: 16 rows, whose words are interleaved just as the lanes take them,
// so that they go from global memory to registers, one 32-block ahead. B is eight rows of activations.

// integerAtom returns the target's matrix instruction for signed bytes, nil if it has none.
func integerAtom(c *target.Caps) *ir.Atom {
	for _, a := range []*ir.Atom{target.M16N8K32S8, target.M8N8K16S8} {
		for _, have := range c.Atoms {
			if a == have {
				return a
			}
		}
	}
	return nil
}

// matrixBlock multiplies 32-blocks: 16 rows of weights by 8 rows of activations. The atom's registers, or those of the four
// smaller products that make up one of 16 × 8 × 32, are: of A, word t of rows g and g + 8, then word t + 4 of both; of B,
// words t and t + 4 of row g; of C, rows g and g + 8 of weights by rows 2t and 2t + 1 of activations; where g is lane / 4
// and t lane mod 4.
type matrixBlock struct {
	b    *ir.Builder
	f    *quant.Format
	atom *ir.Atom
}

// lanes returns g and t.
func (x matrixBlock) lanes() (g, t *ir.Value) { return x.b.Lane().Shr(2), x.b.Lane().And(3) }

// reader reads A from a packed tile.
func (x matrixBlock) reader(p *product, tile *ir.Value) *reader {
	g, t := x.lanes()
	return newReader(p, x.f, tile, []*ir.Value{g, g.Add(8)}, []*ir.Value{t})
}

// coord returns the row of weights and the row of activations of register r of C.
func (x matrixBlock) coord(r *ir.Value) (weight, act *ir.Value) {
	row, col := x.b.FragCoord(x.atom, 0)
	return row.Add(r.Shr(1).Mul(8)), col.Add(r.And(1))
}

// signed returns codes less the bias, byte by byte.
func (x matrixBlock) signed(code *ir.Value) *ir.Value {
	v := code.As(ir.U32)
	switch bias := x.f.Bias; bias {
	case 0:
	case 128:
		v = v.Xor(0x80808080)
	default: // a set high bit keeps the borrow in its byte
		v = v.Or(0x80808080).Sub(bias * 0x01010101).Xor(0x80808080)
	}
	return v.As(ir.I8x4)
}

// product returns the four registers of C as floats, plus floatBase. Without one half of k, the other's codes alone count.
func (x matrixBlock) product(a [4]*ir.Value, c []*ir.Value, lo, hi bool) (out [4]*ir.Value) {
	b := x.b
	start := b.I32(floatBits)
	if x.atom == target.M16N8K32S8 {
		zero := b.Const(ir.I8x4, 0)
		if !lo {
			a[0], a[1] = zero, zero
		}
		if !hi {
			a[2], a[3] = zero, zero
		}
		for r, v := range b.MMA(x.atom, a[:], c, []*ir.Value{start, start, start, start}) {
			out[r] = v.As(ir.F32)
		}
		return out
	}
	for row := range 2 {
		acc := []*ir.Value{start, start}
		if lo {
			acc = b.MMA(x.atom, a[row:row+1], c[:1], acc)
		}
		if hi {
			acc = b.MMA(x.atom, a[2+row:3+row], c[1:], acc)
		}
		out[2*row], out[2*row+1] = acc[0].As(ir.F32), acc[1].As(ir.F32)
	}
	return out
}

// codes returns the registers of A.
func (x matrixBlock) codes(w []weightBlock) [4]*ir.Value {
	return [4]*ir.Value{x.signed(w[0].lo[0]), x.signed(w[1].lo[0]), x.signed(w[0].hi[0]), x.signed(w[1].hi[0])}
}

// add adds the product of a block of weights and one of activations, its registers c and the scales and minimum factors of
// its rows 2t and 2t + 1, to four sums from on.
func (x matrixBlock) add(a [4]*ir.Value, w []weightBlock, c, scale, sigma []*ir.Value, sum ir.Tile, from int) {
	b, f := x.b, x.f
	base := b.F32(floatBase)
	var isum [4]*ir.Value
	if f.Halves {
		lo, hi := x.product(a, c, true, false), x.product(a, c, false, true)
		for r := range isum {
			half := w[r/2].half
			isum[r] = b.FMAExact(hi[r].Sub(base), half[1], lo[r].Sub(base).Mul(half[0]))
		}
	} else {
		for r, v := range x.product(a, c, true, true) {
			isum[r] = v.Sub(base)
		}
	}
	for r := range isum {
		addBlock(f, sum, from+r, isum[r], scale[r%2], sigma, r%2, w[r/2])
	}
}

// gemmMatrixSplit is the schedule for some rows: a block has one packed tile, its groups share out k, and activations come
// from global memory.
func gemmMatrixSplit(b *ir.Builder, f *quant.Format, atom *ir.Atom, rows, groups int) {
	p := newProduct(b, "act", ir.I8, ir.U8)
	cols := b.Tiles(p.n, quant.Rows)
	row0 := b.Tiles(p.m, rows).Mul(rows)
	x := matrixBlock{b, f, atom}
	g, t := x.lanes()
	blocks, actBlocks := p.k.Shr(5), actBlocksIR(p.k)
	var code, head []*ir.Value // words of block 0: of B, and of the scales
	for j := 0; j < rows; j += 8 {
		row := row0.Add(g).Add(j)
		code = append(code, p.rowGroup(row).Mul(actBlocks).Mul(actRecord/4).Add(g.And(3).Mul(8)).Add(t))
		row = row0.Add(t.Mul(2)).Add(j)
		head = append(head, p.rowGroup(row).Mul(actBlocks).Mul(actRecord/4).Add(t.And(1).Mul(2)))
	}
	w := x.reader(p, cols)
	w.start(b.Group().Mul(segment), 1)
	splitK(b, groups, rows/8*4, blocks, segment, func(lo, hi, longest *ir.Value, sum ir.Tile) {
		b.For(0, longest, 1, func(i *ir.Value) { // all groups together: past its own segment one adds zeros
			kb := lo.Add(i)
			live := kb.Lt(hi)
			wb := w.next(kb, afterSegment(kb, 1, groups))
			a, at := x.codes(wb), kb.Min(w.last).Mul(actRecord/4)
			for j := range code {
				word := func(n int) *ir.Value { return b.Load(p.x.As(ir.I8x4), at.Add(code[j]).Add(n)) }
				pair := func(n int) []*ir.Value { return b.LoadN(p.x.As(ir.F32), 2, at.Add(head[j]).Add(n), live) }
				c, scale := []*ir.Value{word(0), word(4)}, pair(32)
				var sigma []*ir.Value
				if f.Min {
					sigma = pair(36)
				}
				x.add(a, wb, c, scale, sigma, sum, 4*j)
			}
		})
	}, func(value, total *ir.Value) {
		weight, act := x.coord(value.And(3))
		p.store(row0.Add(value.Shr(2).Mul(8)).Add(act), cols.Mul(quant.Rows).Add(weight), total)
	})
}

// stageBlocks is the number of 32-blocks in a stage of gemmMatrixTile.
const stageBlocks = 4

// codeTile is a stage of codes: rows of activations for each 32-block.
func codeTile(rows int) layout.Tile { return layout.Tile{Rows: stageBlocks * rows, RowBytes: 32} }

// gemmMatrixTile is the schedule for many rows: each group of a block has its own packed tile, all have the same rows of
// activations, which asynchronous copies stage through shared memory. plain leaves the swizzle out.
func gemmMatrixTile(b *ir.Builder, f *quant.Format, atom *ir.Atom, rows, groups int, plain bool) {
	const perStage = stageBlocks
	p := newProduct(b, "act", ir.I8, ir.U8)
	row0 := b.Tiles(p.m, rows).Mul(rows)
	col := b.Tiles(p.n, quant.Rows*groups).Mul(quant.Rows * groups).Add(b.Group().Mul(quant.Rows))
	x := matrixBlock{b, f, atom}
	w := x.reader(p, p.packed(col))
	heads := 1 // vectors of four words a record: scales, minimum factors
	if f.Min {
		heads = 2
	}
	codes := tile.NewStage(b, "codes", codeTile(rows), 2, plain)
	stageHeads := perStage * rows * heads // words
	head := b.Shared("heads", ir.F32, 2*stageHeads)
	blocks := actBlocksIR(p.k)
	// source returns the index of the first byte of the first record of a group of four rows, and whether it exists.
	source := func(group *ir.Value) (index, mask *ir.Value) {
		group = row0.Shr(2).Add(group)
		return group.Mul(blocks).Mul(actRecord), group.Le(p.m.Sub(1).Shr(2))
	}
	// In a turn of copies of codes, the lanes of the block share out the rows of one 32-block.
	if 2*rows != groups*warp {
		b.Fail("%d rows staged by %d lanes", rows, groups*warp)
	}
	codeCopies := tile.NewTransfer(b, codes.Memory, p.x, 2*rows*perStage, groups, func(turn int, thread *ir.Value) tile.Chunk {
		row, byteInRow := thread.Shr(1), thread.And(1).Mul(16)
		index, mask := source(row.Shr(2))
		return tile.Chunk{
			To: codes.At(row, byteInRow).Add(turn * rows * 8), Mask: mask, K: b.Idx(turn),
			From: index.Add(row.And(3).Mul(32)).Add(byteInRow).Add(turn * actRecord),
		}
	})
	headCopies := tile.NewTransfer(b, head, p.x, perStage*rows/actRows*heads, groups, func(turn int, thread *ir.Value) tile.Chunk {
		n := thread.Add(turn * groups * warp)
		record, vector := n.Div(heads), n.Mod(heads)
		kb := record.Div(rows / actRows)
		index, mask := source(record.Mod(rows / actRows))
		return tile.Chunk{To: n.Mul(4), From: index.Add(kb.Mul(actRecord)).Add(vector.Mul(16)).Add(128), Mask: mask, K: kb}
	})
	load := func(step, stage *ir.Value) {
		from, limit := step.Mul(actRecord), blocks.Sub(step)
		codeCopies.Start(stage.Mul(codes.Words), from, limit)
		headCopies.Start(stage.Mul(stageHeads), from, limit)
	}
	_, t := x.lanes()
	code, pair := codes.OperandB(), t.Shr(1).Mul(4*heads).Add(t.And(1).Mul(2))
	staged(b, p.k.Shr(5), perStage, rows/8*4, load, w, func(i, stage *ir.Value, wb []weightBlock, sum ir.Tile) {
		a := x.codes(wb)
		code := code.Add(stage.Mul(codes.Words).Add(i.Mul(rows * 8)))
		pair := pair.Add(stage.Mul(stageHeads).Add(i.Mul(rows * heads)))
		var c []*ir.Value
		for j := range rows / 8 {
			if j%2 == 0 { // of two products at once
				c = b.LdMatrix(codes.Memory, 4, code.Add(j*8*8))
			}
			read := func(vector int) []*ir.Value { return b.LoadN(head, 2, pair.Add(j*8*heads+4*vector), nil) }
			scale := read(0)
			var sigma []*ir.Value
			if f.Min {
				sigma = read(1)
			}
			x.add(a, wb, c[j%2*2:][:2], scale, sigma, sum, 4*j)
		}
	}, func(j int, total *ir.Value) {
		weight, act := x.coord(b.Idx(j % 4))
		p.store(row0.Add(act).Add(j/4*8), col.Add(weight), total)
	})
}

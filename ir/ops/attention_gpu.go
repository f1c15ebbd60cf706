package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/mathx"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// attentionVariants lists the GPU's row tiles. That of four serves two and three rows as well.
func attentionVariants(t ir.Type) []Variant {
	var vs []Variant
	for _, rows := range []int{16, 8, 4, 1} {
		vs = append(vs, Variant{Config: fmt.Sprintf("r%d", rows), Lanes: 32, Groups: attentionGroups, Rows: rows, Build: attentionBlock{t: t, rows: rows, batch: min(8, 64/rows)}.build})
	}
	return vs
}

const (
	attentionGroups = 4
	attentionLanes  = 32 * attentionGroups
	queryChunk      = attentionLanes // elements of the queries that are staged at a time
)

// attentionBlock is the GPU schedule: a block of four lane groups computes R rows of queries for a segment, in three phases
// with barriers between.
//
// Scores: a lane has two neighbouring positions and all rows, so that R rows share each key; the queries stand in shared
// memory. Softmax: a lane group has a row, a lane every 32nd position. Values: a lane has two neighbouring elements of the
// head and half of the rows, so that these share each value.
type attentionBlock struct {
	t     ir.Type
	rows  int // R
	batch int // keys or values that a lane loads before it uses the first

	b                 *ir.Builder
	q, k, v, position ir.Memory
	scores            ir.Memory // of R rows, 256 positions each
	count, hd, window *ir.Value // rows in all, elements of a head, positions that a row sees
	row0              *ir.Value // first row
	head, segment     *ir.Value
	page              *ir.Value // first position of the key head's part of the page
	at                *ir.Value // of the first row among the partial results
}

func (a attentionBlock) build(b *ir.Builder) {
	a.b = b
	a.q, a.k, a.v = b.In("q", ir.F32), b.In("kcache", a.t), b.In("vcache", a.t)
	pages := b.In("pages", ir.I32)
	a.position = b.In("position", ir.I32)
	o, ml := b.Out("o", ir.F32), b.Out("ml", ir.F32)
	a.count = b.Int("rows")
	kv, segments := b.Int("kv"), b.Int("segments")
	a.hd, a.window = b.Int("hd"), b.Int("window")
	a.row0 = b.Tiles(a.count, a.rows).Mul(a.rows)
	a.head = b.Tiles(kv, 1)
	a.segment = b.Tiles(segments, 1)
	a.scores = b.Shared("scores", ir.F32, 256*a.rows)
	all, _ := a.ranges(b.Idx(0), a.rows)
	b.If(all.lo.Lt(all.hi), func() {
		a.page = b.LoadIndex(pages, a.segment).Mul(kv).Add(a.head).Mul(256)
		a.at = a.segment.Mul(kv).Add(a.head).Mul(a.count).Add(a.row0)
		keys, stride := a.page.Mul(a.hd), valueStride(a.hd)
		a.fetch(a.k, keys.Add(all.lo.Shr(4).Mul(16).Mul(a.hd)), keys.Add(all.hi.Add(15).Shr(4).Mul(16).Mul(a.hd)))
		a.fetch(a.v, a.page.Add(all.lo).Mul(stride), a.page.Add(all.hi).Mul(stride))
		a.score(all)
		b.Barrier()
		a.softmax(ml)
		b.Barrier()
		a.value(o)
	})
}

// fetch asks for elements from … to−1 of the cache, all at once: the loads that follow wait for one another.
func (a *attentionBlock) fetch(m ir.Memory, from, to *ir.Value) {
	b := a.b
	line := 128 / a.t.Bytes()
	b.For(from, to, line*attentionLanes, func(i *ir.Value) {
		b.Prefetch(m, i.Add(blockLane(b).Mul(line)).Min(to.Sub(1)))
	})
}

// sees returns the positions of the segment that a row sees. A row beyond the last one sees what the last one does.
func (a *attentionBlock) sees(row any) visible {
	n := a.b.LoadIndex(a.position, a.row0.Add(row).Min(a.count.Sub(1))).Sub(a.segment.Mul(256))
	hi := n.Add(1).Min(256).Max(0)
	return visible{n.Sub(a.window).Add(1).Max(0).Min(hi), hi}
}

// ranges returns the positions that any of n rows sees, and those that all of them see.
func (a *attentionBlock) ranges(row *ir.Value, n int) (all, common visible) {
	all = a.sees(row)
	common = all
	for i := 1; i < n; i++ {
		s := a.sees(row.Add(i))
		all = visible{all.lo.Min(s.lo), all.hi.Max(s.hi)}
		common = visible{common.lo.Max(s.lo), common.hi.Min(s.hi)}
	}
	return all, common
}

// stored reports whether a row exists and sees any position.
func (a *attentionBlock) stored(row *ir.Value, s visible) *ir.Value {
	return a.row0.Add(row).Lt(a.count).AndB(s.lo.Lt(s.hi))
}

func (a *attentionBlock) multiplyAdd(sum ir.Tile, x, y *ir.Value, at ...any) {
	if a.t == ir.F32 {
		sum.Add(x.Mul(y), at...)
	} else {
		sum.Set(a.b.FMAExact(x, y, sum.At(at...)), at...)
	}
}

// score stores q'·k of every row. Lane groups all of whose positions no row sees compute none.
func (a *attentionBlock) score(all visible) {
	b := a.b
	fours := (a.rows + 3) / 4
	queries := b.Shared("queries", ir.F32, 4*queryChunk*fours)
	sum := b.Reg("score", ir.F32, a.rows, 2)
	sum.Fill(b.F32(0))
	first := b.Group().Mul(64)
	j := first.Add(b.Lane().Mul(2))
	seen := first.Lt(all.hi).AndB(all.lo.Lt(first.Add(64)))
	key := a.page.Mul(a.hd).Add(j.Shr(4).Mul(a.hd).Mul(16)).Add(j.And(15))
	last := a.count.Sub(1).Shr(2) // group of four rows; those beyond are read as the last
	b.For(0, a.hd, queryChunk, func(e0 *ir.Value) {
		n := a.hd.Sub(e0).Min(queryChunk)
		b.Barrier() // the queries before have been read
		e := blockLane(b)
		for i := range fours {
			four := a.head.Mul(last.Add(1)).Add(a.row0.Shr(2).Add(i).Min(last)).Mul(a.hd)
			b.StoreN(queries, e.Mul(4).Add(4*queryChunk*i), nil, b.LoadN(a.q, 4, four.Add(e0).Add(e).Mul(4), e.Lt(n))...)
		}
		b.Barrier()
		at := key.Add(e0.Mul(16))
		step := func(i *ir.Value, batch int) {
			keys := make([][]*ir.Value, batch)
			for u := range keys {
				keys[u] = b.LoadN(a.k, 2, at.Add(i.Mul(16)).Add(16*u), nil)
			}
			for u := range batch {
				for f := range fours {
					for r, x := range b.LoadN(queries, min(a.rows, 4), i.Mul(4).Add(4*(u+queryChunk*f)), nil) {
						a.multiplyAdd(sum, x, keys[u][0], 4*f+r, 0)
						a.multiplyAdd(sum, x, keys[u][1], 4*f+r, 1)
					}
				}
			}
		}
		b.If(seen, func() {
			whole := n.Div(a.batch).Mul(a.batch)
			b.For(0, whole, a.batch, func(i *ir.Value) { step(i, a.batch) })
			b.For(whole, n, 1, func(i *ir.Value) { step(i, 1) })
		})
	})
	for r := range a.rows {
		b.StoreN(a.scores, j.Add(256*r), nil, sum.At(r, 0), sum.At(r, 1))
	}
}

// softmax replaces the scores by p and stores m and l of every row.
func (a *attentionBlock) softmax(ml ir.Memory) {
	b := a.b
	low := b.Const(ir.F32, 0xFF800000)
	top, sum := b.Reg("top", ir.F32, 1), b.Reg("sum", ir.F32, 1)
	b.For(0, a.rows, attentionGroups, func(first *ir.Value) {
		// Lane groups without a row take part in the folds: all of their lanes are masked.
		r := first.Add(b.Group())
		s := a.sees(r)
		own := s.lo.Lt(s.hi)
		if a.rows%attentionGroups != 0 {
			own = own.AndB(r.Lt(a.rows))
		}
		const turns = 4
		each := func(f func(at, mask, x []*ir.Value)) {
			b.For(0, 256, 32*turns, func(j *ir.Value) {
				at, mask, x := make([]*ir.Value, turns), make([]*ir.Value, turns), make([]*ir.Value, turns)
				for c := range turns {
					k := j.Add(b.Lane()).Add(32 * c)
					at[c], mask[c] = r.Mul(256).Add(j).Add(b.Lane()).Add(32*c), s.lo.Le(k).AndB(k.Lt(s.hi)).AndB(own)
					x[c] = mask[c].Select(b.LoadMasked(a.scores, at[c], mask[c]), low)
				}
				f(at, mask, x)
			})
		}
		top.Fill(low)
		each(func(_, _, x []*ir.Value) {
			for _, v := range x {
				top.Set(top.At(0).Lt(v).Select(v, top.At(0)), 0)
			}
		})
		m := top.At(0).FoldMax()
		sum.Fill(b.F32(0))
		each(func(at, mask, x []*ir.Value) {
			for c, v := range x {
				p := mathx.ExpCut(v.Sub(m), -44)
				if a.t == ir.F16 {
					p = mathx.RoundSigProbability(p, 13)
				}
				b.StoreMasked(a.scores, at[c], p, mask[c])
				sum.Add(mask[c].Select(p, b.F32(0)), 0)
			}
		})
		b.StoreN(ml, a.at.Add(r).Mul(2), own.AndB(a.stored(r, s)), m, sum.At(0).FoldAdd())
	})
}

// value stores Σ p·v of every row, in ascending order of positions. An item of work is 64 elements of the head for a part of
// the rows.
func (a *attentionBlock) value(o ir.Memory) {
	b := a.b
	parts := min(a.rows, 2)
	n := a.rows / parts
	sum := b.Reg("value", ir.F32, n, 2)
	stride := valueStride(a.hd)
	b.For(b.Group(), a.hd.Add(63).Shr(6).Mul(parts), attentionGroups, func(item *ir.Value) {
		r0 := item.Mod(parts).Mul(n)
		e := item.Div(parts).Mul(64).Add(b.Lane().Mul(2))
		inside := e.Lt(a.hd)
		base := a.page.Mul(stride).Add(e)
		load := func(j *ir.Value) []*ir.Value { return b.LoadN(a.v, 2, base.Add(j.Mul(stride)), inside) }
		all, common := a.ranges(r0, n)
		sum.Fill(b.F32(0))
		// Whole batches of positions that all rows see, and before and after them the others one by one.
		lo := common.lo.Add(a.batch - 1).Div(a.batch).Mul(a.batch)
		hi := common.hi.Div(a.batch).Mul(a.batch).Max(lo)
		edge := func(from, to *ir.Value) {
			b.For(from, to, 1, func(j *ir.Value) {
				v := load(j)
				for r := range n {
					s := a.sees(r0.Add(r))
					b.If(s.lo.Le(j).AndB(j.Lt(s.hi)), func() {
						p := b.Load(a.scores, r0.Mul(256).Add(j).Add(256*r))
						a.multiplyAdd(sum, p, v[0], r, 0)
						a.multiplyAdd(sum, p, v[1], r, 1)
					})
				}
			})
		}
		edge(all.lo, lo.Min(all.hi))
		b.For(lo, hi, a.batch, func(j *ir.Value) {
			v := make([][]*ir.Value, a.batch)
			for u := range v {
				v[u] = load(j.Add(u))
			}
			for r := range n {
				for u := 0; u < a.batch; u += 4 {
					for i, p := range b.LoadN(a.scores, 4, r0.Mul(256).Add(j).Add(256*r+u), nil) {
						a.multiplyAdd(sum, p, v[u+i][0], r, 0)
						a.multiplyAdd(sum, p, v[u+i][1], r, 1)
					}
				}
			}
		})
		edge(hi.Max(all.lo), all.hi)
		for r := range n {
			row := r0.Add(r)
			b.If(a.stored(row, a.sees(row)), func() {
				to := a.at.Add(row).Mul(a.hd).Add(e)
				b.StoreMasked(o, to, sum.At(r, 0), inside)
				b.StoreMasked(o, to.Add(1), sum.At(r, 1), e.Add(1).Lt(a.hd))
			})
		}
	})
}

// buildMergeGPU folds the segments for 32 elements of a row, four loaded at once.
func buildMergeGPU(b *ir.Builder) {
	const batch = 4
	o, ml, position, out := b.In("o", ir.F32), b.In("ml", ir.F32), b.In("position", ir.I32), b.Out("out", ir.F32)
	rows, kv, group, hd, window := b.Int("rows"), b.Int("kv"), b.Int("group"), b.Int("hd"), b.Int("window")
	r, h := b.Tiles(rows, 1), b.Tiles(kv, 1)
	e := b.Tiles(hd, 32).Mul(32).Add(b.Lane())
	mask := e.Lt(hd)
	n := b.LoadIndex(position, r)
	first, last := n.Sub(window).Add(1).Max(0).Shr(8), n.Shr(8)
	load := func(s *ir.Value) (m, l, y *ir.Value) {
		at := s.Mul(kv).Add(h).Mul(rows).Add(r)
		two := b.LoadN(ml, 2, at.Mul(2), nil)
		return two[0], two[1], b.LoadMasked(o, at.Mul(hd).Add(e), mask)
	}
	m, l, y := b.UniformReg("m", ir.F32, 1), b.UniformReg("l", ir.F32, 1), b.Reg("y", ir.F32, 1)
	m0, l0, y0 := load(first)
	m.Set(m0, 0)
	l.Set(l0, 0)
	y.Set(y0, 0)
	b.For(first.Add(1), last.Add(1), batch, func(s *ir.Value) {
		var ms, ls, ys [batch]*ir.Value
		for i := range ms {
			ms[i], ls[i], ys[i] = load(s.Add(i).Min(last))
		}
		for i := range ms {
			b.If(s.Add(i).Le(last), func() {
				top := m.At(0).Lt(ms[i]).Select(ms[i], m.At(0))
				x, z := cutExp(m.At(0).Sub(top)), cutExp(ms[i].Sub(top))
				l.Set(l.At(0).Mul(x).Add(ls[i].Mul(z)), 0)
				y.Set(y.At(0).Mul(x).Add(ys[i].Mul(z)), 0)
				m.Set(top, 0)
			})
		}
	})
	token := r.Div(group)
	to := token.Mul(kv).Add(h).Mul(group).Add(r.Sub(token.Mul(group))).Mul(hd)
	b.StoreMasked(out, to.Add(e), y.At(0).Mul(mathx.Rcp(l.At(0))), mask)
}

// mergeVariants are those of attention_merge.
func mergeVariants(c *target.Caps) []Variant {
	if c.Family == target.GPU {
		return one(32, buildMergeGPU)(c)
	}
	return one(16, buildMerge)(c)
}

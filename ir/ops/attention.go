package ops

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/mathx"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Attention is causal attention over the paged cache, in segments of 256 absolute positions (numerics rules 19 to 21), in
// two ops. attention_FORMAT computes, for each row of queries, key head and segment, the segment's maximum m, its sum l and
// its weighted values o; attention_merge folds the segments in order.
//
// Queries are rows as rope_query writes them; row r sees the keys j with position[r] − window < j ≤ position[r]. Partial
// results: o at ((segment·kv + h)·rows + r)·hd, m and l at 2·((segment·kv + h)·rows + r). Those of a segment without visible
// keys are not written. A tile computes R rows (config rR): with R ≥ 4 the rows may be any number, with fewer they are R.
//
// Shape: tokens, kv, group, hd, last position, window.
func Attention() []*Op {
	var list []*Op
	for _, t := range []ir.Type{ir.F16, ir.F32} {
		list = append(list, &Op{
			Name: "attention_" + t.String(), Source: "attention.go", Doc: "attention of query rows over one segment of an " + t.String() + " cache",
			Variants: func(c *target.Caps) []Variant {
				if c.Family == target.GPU {
					return attentionVariants(t)
				}
				var vs []Variant
				for _, rows := range gemmRows(c) {
					vectors := 1
					switch wide := capsOf(c).wide; { // chains enough to hide the latency of their products
					case wide && rows < 4:
						vectors = 4
					case wide || rows < 3:
						vectors = 2
					}
					vs = append(vs, Variant{Config: fmt.Sprintf("r%d", rows), Lanes: 16, Groups: 1, Rows: rows, Build: attention{t, rows, vectors}.build})
				}
				return vs
			},
			Shapes: []Shape{{1, 1, 3, 64, 300, 1 << 20}, {4, 2, 1, 8, 5, 1 << 20}, {3, 1, 4, 40, 515, 7}, {13, 1, 1, 16, 262, 1 << 20}, {4, 1, 2, 16, 514, 260}, {1, 1, 2, 132, 20, 1 << 20}},
			Case:   func(v Variant, s Shape, d *Data) *Case { return attentionCase(t, v.Rows, s, d) },
		})
	}
	return append(list, attentionMerge())
}

// attention is the CPU schedule: a lane is a position for scores, an element of the head for values. Of either it takes
// vectors at a time, so that a broadcast serves several products.
type attention struct {
	t             ir.Type
	rows, vectors int
}

// visible is the range of positions of the segment that a row sees.
type visible struct{ lo, hi *ir.Value }

func (a attention) build(b *ir.Builder) {
	q, k, v := b.In("q", ir.F32), b.In("kcache", a.t), b.In("vcache", a.t)
	pages, position := b.In("pages", ir.I32), b.In("position", ir.I32)
	o, ml := b.Out("o", ir.F32), b.Out("ml", ir.F32)
	rows, kv, segments, hd, window := b.Int("rows"), b.Int("kv"), b.Int("segments"), b.Int("hd"), b.Int("window")
	tile := b.Tiles(rows, max(a.rows, 4))
	h, segment := b.Tiles(kv, 1), b.Tiles(segments, 1)
	row0 := tile.Mul(max(a.rows, 4))
	last := rows.Sub(1)
	n := b.Lanes()

	scores, seen := b.Shared("scores", ir.F32, 256*a.rows), b.Shared("seen", ir.I32, 2*a.rows)
	sees := func(r any) visible {
		at := b.Idx(r).Mul(2)
		return visible{b.LoadIndex(seen, at), b.LoadIndex(seen, at.Add(1))}
	}
	stored := func(r any, s visible) *ir.Value { return row0.Add(r).Le(last).AndB(s.lo.Lt(s.hi)) }
	all := visible{b.Idx(256), b.Idx(0)}    // from the first to the last key that some row sees
	common := visible{b.Idx(0), b.Idx(256)} // keys that all rows see
	for r := range a.rows {
		// A row beyond the last one sees what the last one sees, and is not stored.
		at := b.LoadIndex(position, row0.Add(r).Min(last)).Sub(segment.Mul(256))
		hi := at.Add(1).Min(256).Max(0)
		lo := at.Sub(window).Add(1).Max(0).Min(hi)
		b.Store(seen, b.Idx(2*r), lo.FromIndex())
		b.Store(seen, b.Idx(2*r+1), hi.FromIndex())
		all = visible{all.lo.Min(lo), all.hi.Max(hi)}
		common = visible{common.lo.Max(lo), common.hi.Min(hi)}
	}
	common.hi = common.hi.Max(common.lo)
	b.Barrier() // lanes read what others stored
	b.If(all.lo.Lt(all.hi), func() {
		page := b.LoadIndex(pages, segment).Mul(kv).Add(h).Mul(256)
		if a.rows > actRows { // the first rows bring keys and values to the cache
			b.If(tile.Eq(0), func() {
				line := 64 / a.t.Bytes()
				b.For(0, valueStride(hd).Mul(256), 4*line, func(i *ir.Value) {
					for n := range 4 {
						b.Prefetch(k, page.Mul(hd).Add(i).Add(n*line))
						b.Prefetch(v, page.Mul(valueStride(hd)).Add(i).Add(n*line))
					}
				})
			})
		}
		part := segment.Mul(kv).Add(h).Mul(rows).Add(row0)
		// The rows' groups of four; those beyond the last are read as the last.
		groups := make([]*ir.Value, (a.rows+3)/4)
		for i := range groups {
			groups[i] = h.Mul(last.Shr(2).Add(1)).Add(tile.Mul(len(groups)).Add(i).Min(last.Shr(2))).Mul(hd)
		}
		b.For(all.lo.Div(n*a.vectors), all.hi.Add(n*a.vectors-1).Div(n*a.vectors), 1, func(c *ir.Value) {
			a.scores(b, q, k, scores, groups, page.Mul(hd), hd, c.Mul(a.vectors))
		})
		// Maxima of all rows first: while one is folded over the lanes, the next row is on its way.
		tops := b.Shared("tops", ir.F32, a.rows)
		b.For(0, a.rows, 1, func(r *ir.Value) { b.Store(tops, r, a.maximum(b, scores, r.Mul(256), sees(r))) })
		b.Barrier()
		b.For(0, a.rows, 1, func(r *ir.Value) {
			s := sees(r)
			m := b.Load(tops, r)
			l := a.softmax(b, scores, r.Mul(256), m, s)
			b.If(stored(r, s), func() {
				b.Store(ml, part.Add(r).Mul(2), m)
				b.Store(ml, part.Add(r).Mul(2).Add(1), l)
			})
		})
		b.Barrier()
		stride := valueStride(hd)
		columns := func(first *ir.Value, vectors int) {
			e := first.Add(b.Lane())
			sum := a.values(b, v, scores, page.Mul(stride).Add(e), stride, vectors, sees, all, common)
			for r := range a.rows {
				b.If(stored(r, sees(r)), func() {
					for i := range vectors {
						b.StoreMasked(o, part.Add(r).Mul(hd).Add(e).Add(n*i), sum.At(r, i), e.Add(n*i).Lt(hd))
					}
				})
			}
		}
		if a.vectors == 1 {
			b.For(0, hd, n, func(first *ir.Value) { columns(first, 1) })
			return
		}
		whole := stride.Div(n * a.vectors).Mul(n * a.vectors)
		b.For(0, whole, n*a.vectors, func(first *ir.Value) { columns(first, a.vectors) })
		b.For(whole, hd, n, func(first *ir.Value) { columns(first, 1) })
	})
}

// scores stores q'·k of every row for the positions of the vectors from number c on.
func (a attention) scores(b *ir.Builder, q, k, scores ir.Memory, groups []*ir.Value, base, hd, c *ir.Value) {
	n := b.Lanes()
	sum := b.Reg("score", ir.F32, a.rows, a.vectors)
	sum.Fill(b.F32(0))
	b.For(0, hd, 1, func(e *ir.Value) {
		keys := make([]*ir.Value, a.vectors)
		for i := range keys {
			keys[i] = b.Load(k, base.Add(c.Add(i).Mul(hd).Add(e).Mul(n)).Add(b.Lane()))
		}
		for r := range a.rows {
			x := b.Load(q, groups[r/4].Add(e).Mul(4).Add(r%4))
			for i, key := range keys {
				a.multiplyAdd(b, sum, x, key, r, i)
			}
		}
	})
	for r := range a.rows {
		for i := range a.vectors {
			b.Store(scores, c.Add(i).Mul(n).Add(256*r).Add(b.Lane()), sum.At(r, i))
		}
	}
}

func (a attention) multiplyAdd(b *ir.Builder, sum ir.Tile, x, y *ir.Value, r, i int) {
	if a.t == ir.F32 {
		sum.Add(x.Mul(y), r, i)
	} else {
		sum.Set(b.FMAExact(x, y, sum.At(r, i)), r, i)
	}
}

// eachScore runs f on the vectors of 32 positions, two of 16, that are visible in part or, without masks, as a whole.
func eachScore(b *ir.Builder, row *ir.Value, s visible, f func(i int, at, mask *ir.Value)) {
	// A lane sees its key if the key's distance from the first visible one is less than their number.
	distance, count := b.Lane().FromIndex().Sub(s.lo.FromIndex()), s.hi.Sub(s.lo).FromIndex().As(ir.U32)
	part := func(from, to *ir.Value) {
		b.For(from, to, 32, func(c *ir.Value) {
			for i := range 2 {
				f(i, row.Add(c).Add(16*i).Add(b.Lane()), distance.Add(c.FromIndex()).Add(16*i).As(ir.U32).Lt(count))
			}
		})
	}
	begin := s.lo.Shr(5).Shl(5)
	from := s.lo.Add(31).Shr(5).Shl(5)
	to := s.hi.Shr(5).Shl(5).Max(from)
	part(begin, from.Min(s.hi))
	b.For(from, to, 32, func(c *ir.Value) {
		for i := range 2 {
			f(i, row.Add(c).Add(16*i).Add(b.Lane()), nil)
		}
	})
	part(to, s.hi)
}

// pick is x where the mask, if there is one, holds, otherwise that value.
func pick(mask, x, otherwise *ir.Value) *ir.Value {
	if mask == nil {
		return x
	}
	return mask.Select(x, otherwise)
}

// maximum returns the largest visible score of the row at index row.
func (a attention) maximum(b *ir.Builder, scores ir.Memory, row *ir.Value, s visible) *ir.Value {
	top, low := b.Reg("top", ir.F32, 2), b.Const(ir.F32, 0xFF800000)
	top.Fill(low)
	eachScore(b, row, s, func(i int, at, mask *ir.Value) {
		x := pick(mask, b.LoadMasked(scores, at, mask), low)
		top.Set(top.At(i).Lt(x).Select(x, top.At(i)), i)
	})
	return top.At(0).Lt(top.At(1)).Select(top.At(1), top.At(0)).FoldMax()
}

// softmax replaces the scores of the row at index row, whose maximum is m, by p and returns their sum. Two registers hold its
// 32 virtual lanes.
func (a attention) softmax(b *ir.Builder, scores ir.Memory, row, m *ir.Value, s visible) *ir.Value {
	sum := b.Reg("sum", ir.F32, 2)
	sum.Fill(b.F32(0))
	eachScore(b, row, s, func(i int, at, mask *ir.Value) {
		p := mathx.ExpCut(b.LoadMasked(scores, at, mask).Sub(m), -44)
		if a.t == ir.F16 {
			p = mathx.RoundSigProbability(p, 13)
		}
		b.StoreMasked(scores, at, p, mask)
		sum.Add(pick(mask, p, b.F32(0)), i)
	})
	return sum.At(0).Add(sum.At(1)).FoldAdd()
}

// values returns Σ p·v of every row, in ascending order of positions: first those that only some rows see, row by row, then
// the common ones for all rows, then the rest. at is the index of the page's first element of the lane, stride the distance
// of two positions.
func (a attention) values(b *ir.Builder, v, scores ir.Memory, at, stride *ir.Value, vectors int, sees func(r any) visible, all, common visible) ir.Tile {
	sum := b.Reg(fmt.Sprintf("value%d", vectors), ir.F32, a.rows, vectors)
	sum.Fill(b.F32(0))
	step := func(j *ir.Value, from, to int) {
		xs := make([]*ir.Value, vectors)
		for i := range xs {
			xs[i] = b.Load(v, at.Add(j.Mul(stride)).Add(b.Lanes()*i))
		}
		for r := from; r < to; r++ {
			p := b.Load(scores, j.Add(256*r))
			for i, x := range xs {
				a.multiplyAdd(b, sum, p, x, r, i)
			}
		}
	}
	b.If(all.lo.Lt(common.lo), func() {
		for r := range a.rows {
			s := sees(r)
			b.For(s.lo, common.lo.Min(s.hi), 1, func(j *ir.Value) { step(j, r, r+1) })
		}
	})
	b.For(common.lo, common.hi, 1, func(j *ir.Value) { step(j, 0, a.rows) })
	b.If(common.hi.Lt(all.hi), func() {
		for r := range a.rows {
			s := sees(r)
			b.For(common.hi.Max(s.lo), s.hi, 1, func(j *ir.Value) { step(j, r, r+1) })
		}
	})
	return sum
}

// attentionMerge folds the segments of every row in order and divides by l. The output has heads·hd elements a token: row r
// of key head h is token r / group, head h·group + r mod group; a head has at most 256. Shape:
// rows, kv, group, hd, last position, window.
func attentionMerge() *Op {
	return &Op{
		Name: "attention_merge", Source: "attention.go", Doc: "attention's segments merged in order",
		Variants: mergeVariants,
		Shapes:   []Shape{{1, 1, 3, 64, 300, 1 << 20}, {4, 2, 1, 8, 5, 1 << 20}, {3, 1, 4, 40, 1030, 300}, {2, 1, 1, 16, 700, 1 << 20}},
		Case:     mergeCase,
	}
}

func buildMerge(b *ir.Builder) {
	o, ml, position, out := b.In("o", ir.F32), b.In("ml", ir.F32), b.In("position", ir.I32), b.Out("out", ir.F32)
	rows, kv, group, hd, window := b.Int("rows"), b.Int("kv"), b.Int("group"), b.Int("hd"), b.Int("window")
	r, h := b.Tiles(rows, 1), b.Tiles(kv, 1)
	n := b.LoadIndex(position, r)
	firstSegment, lastSegment := n.Sub(window).Add(1).Max(0).Shr(8), n.Shr(8)
	token := r.Div(group)
	to := token.Mul(kv).Add(h).Mul(group).Add(r.Sub(token.Mul(group))).Mul(hd)
	m, l, y := b.UniformReg("m", ir.F32, 1), b.UniformReg("l", ir.F32, 1), b.Shared("y", ir.F32, maxHead)
	at := func(s *ir.Value) *ir.Value { return s.Mul(kv).Add(h).Mul(rows).Add(r) }
	each := func(f func(e, mask *ir.Value)) {
		b.For(0, hd, 16, func(first *ir.Value) {
			e := first.Add(b.Lane())
			f(e, e.Lt(hd))
		})
	}
	load := func(s *ir.Value) (m, l *ir.Value) { return b.Load(ml, at(s).Mul(2)), b.Load(ml, at(s).Mul(2).Add(1)) }
	values := func(s, e, mask *ir.Value) *ir.Value { return b.LoadMasked(o, at(s).Mul(hd).Add(e), mask) }
	m0, l0 := load(firstSegment)
	m.Set(m0, 0)
	l.Set(l0, 0)
	each(func(e, mask *ir.Value) { b.StoreMasked(y, e, values(firstSegment, e, mask), mask) })
	b.For(firstSegment.Add(1), lastSegment.Add(1), 1, func(s *ir.Value) {
		ms, ls := load(s)
		top := m.At(0).Lt(ms).Select(ms, m.At(0))
		x, z := cutExp(m.At(0).Sub(top)), cutExp(ms.Sub(top))
		l.Set(l.At(0).Mul(x).Add(ls.Mul(z)), 0)
		m.Set(top, 0)
		each(func(e, mask *ir.Value) {
			b.StoreMasked(y, e, b.LoadMasked(y, e, mask).Mul(x).Add(values(s, e, mask).Mul(z)), mask)
		})
	})
	f := mathx.Rcp(l.At(0))
	each(func(e, mask *ir.Value) { b.StoreMasked(out, to.Add(e), b.LoadMasked(y, e, mask).Mul(f), mask) })
}

// cutExp is exp of a difference to a maximum, +0 below −44.
func cutExp(x *ir.Value) *ir.Value { return mathx.ExpCut(x, -44) }

func cutExpScalar(x float32) float32 {
	if x < -44 {
		return 0
	}
	return canon.Exp(x)
}

// attentionCase has rows of consecutive tokens, group rows a token, the last at position last; for a tile of fewer than four
// rows one token of that many.
func attentionCase(t ir.Type, tile int, s Shape, d *Data) *Case {
	tokens, kv, group, hd, last, window := s[0], s[1], s[2], s[3], s[4], s[5]
	if tile < 4 {
		tokens, group = 1, tile
	}
	rows := tokens * group
	segments := last/256 + 1
	pages := make([]int32, segments)
	for i := range pages {
		pages[i] = int32(segments - 1 - i)
	}
	read := getFloat
	var k, v []byte
	stride := (hd + 15) / 16 * 16
	if n := segments * kv * 256; t == ir.F16 {
		k, v, read = d.halves(n*hd), d.halves(n*stride), half
	} else {
		k, v = floatBytes(d.finite(n*hd)), floatBytes(d.finite(n*stride))
	}
	padded := (rows + 3) / 4 * 4
	q := d.floats(kv * padded * hd)
	if t == ir.F16 {
		for i := range q {
			q[i] = canon.RoundSig(q[i], 13)
		}
	}
	o, ml := filled(4*segments*kv*rows*hd), filled(8*segments*kv*rows)
	c := &Case{Buf: map[string][]byte{"q": floatBytes(q), "kcache": k, "vcache": v, "pages": int32Bytes(pages), "o": clone(o), "ml": clone(ml)}}
	position := make([]int32, rows)
	for r := range rows {
		position[r] = int32(last - tokens + 1 + r/group)
		n := int(position[r])
		for seg := range segments {
			for h := range kv {
				page := (int(pages[seg])*kv + h) * 256
				score := map[int]float32{}
				m := float32(math.Inf(-1))
				for j := max(0, n-window+1-256*seg); j < 256 && 256*seg+j <= n; j++ {
					var sum float32
					for e := range hd {
						sum += float32(q[(h*padded/4+r/4)*hd*4+4*e+r%4] * read(k, page*hd+(j/16*hd+e)*16+j%16))
					}
					score[j] = sum
					if sum > m {
						m = sum
					}
				}
				if len(score) == 0 {
					continue
				}
				var lane [32]float32
				y := make([]float32, hd)
				for j := range 256 {
					x, ok := score[j]
					if !ok {
						continue
					}
					p := cutExpScalar(x - m)
					if t == ir.F16 {
						p = canon.RoundSig(p, 13)
					}
					lane[j%32] += p
					for e := range hd {
						y[e] += float32(p * read(v, (page+j)*stride+e))
					}
				}
				at := (seg*kv+h)*rows + r
				putFloat(ml, 2*at, m)
				putFloat(ml, 2*at+1, canon.FoldLanes32(&lane))
				for e := range hd {
					putFloat(o, at*hd+e, y[e])
				}
			}
		}
	}
	c.Buf["position"] = int32Bytes(position)
	c.Want = map[string][]byte{"o": o, "ml": ml}
	c.Int = map[string]int64{"rows": int64(rows), "kv": int64(kv), "segments": int64(segments), "hd": int64(hd), "window": int64(window)}
	return c
}

func mergeCase(_ Variant, s Shape, d *Data) *Case {
	tokens, kv, group, hd, last, window := s[0], s[1], s[2], s[3], s[4], s[5]
	rows := tokens * group
	segments := last/256 + 1
	o, ml := d.floats(segments*kv*rows*hd), d.floats(2*segments*kv*rows)
	position := make([]int32, rows)
	out := filled(4 * rows * kv * hd)
	c := &Case{Buf: map[string][]byte{"o": floatBytes(o), "ml": floatBytes(ml), "out": clone(out)}}
	for r := range rows {
		position[r] = int32(last - tokens + 1 + r/group)
		n := int(position[r])
		for h := range kv {
			var m, l float32
			y := make([]float32, hd)
			first := max(0, n-window+1) / 256
			for seg := first; seg <= n/256; seg++ {
				at := (seg*kv+h)*rows + r
				ms, ls, ys := ml[2*at], ml[2*at+1], o[at*hd:][:hd]
				if seg == first {
					m, l = ms, ls
					copy(y, ys)
					continue
				}
				top := m
				if ms > m {
					top = ms
				}
				x, z := cutExpScalar(m-top), cutExpScalar(ms-top)
				l = float32(l*x) + float32(ls*z)
				for e := range y {
					y[e] = float32(y[e]*x) + float32(ys[e]*z)
				}
				m = top
			}
			f := canon.Rcp(l)
			for e := range y {
				putFloat(out, ((r/group*kv+h)*group+r%group)*hd+e, float32(y[e]*f))
			}
		}
	}
	c.Buf["position"] = int32Bytes(position)
	c.Want = map[string][]byte{"out": out}
	c.Int = map[string]int64{"rows": int64(rows), "kv": int64(kv), "group": int64(group), "hd": int64(hd), "window": int64(window)}
	return c
}

// half reads element i of f16 data.
func half(b []byte, i int) float32 { return canon.F16ToF32(binary.LittleEndian.Uint16(b[2*i:])) }

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
				if c.Family != target.CPU {
					return nil
				}
				var vs []Variant
				for _, rows := range gemmRows(c) {
					vs = append(vs, Variant{Config: fmt.Sprintf("r%d", rows), Lanes: 16, Groups: 1, Rows: rows, Build: attention{t, rows}.build})
				}
				return vs
			},
			Shapes: []Shape{{1, 1, 3, 64, 300, 1 << 20}, {4, 2, 1, 8, 5, 1 << 20}, {3, 1, 4, 40, 515, 7}, {13, 1, 1, 16, 262, 1 << 20}},
			Case:   func(v Variant, s Shape, d *Data) *Case { return attentionCase(t, v.Rows, s, d) },
		})
	}
	return append(list, attentionMerge())
}

// attention is the CPU schedule: a lane is a position for scores, an element of the head for values.
type attention struct {
	t    ir.Type
	rows int
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

	// sees is made where it is needed: keeping it for every row would take too many registers. A row beyond the last one sees
	// what the last one sees, and is not stored.
	sees := func(r any) visible {
		n := b.LoadIndex(position, row0.Add(r).Min(last)).Sub(segment.Mul(256))
		hi := n.Add(1).Min(256).Max(0)
		return visible{n.Sub(window).Add(1).Max(0).Min(hi), hi}
	}
	stored := func(r any, s visible) *ir.Value { return row0.Add(r).Le(last).AndB(s.lo.Lt(s.hi)) }
	all := visible{b.Idx(256), b.Idx(0)}    // from the first to the last key that some row sees
	common := visible{b.Idx(0), b.Idx(256)} // keys that all rows see
	for r := range a.rows {
		s := sees(r)
		all = visible{all.lo.Min(s.lo), all.hi.Max(s.hi)}
		common = visible{common.lo.Max(s.lo), common.hi.Min(s.hi)}
	}
	common.hi = common.hi.Max(common.lo)
	scores := b.Shared("scores", ir.F32, 256*a.rows)
	b.If(all.lo.Lt(all.hi), func() {
		page := b.LoadIndex(pages, segment).Mul(kv).Add(h).Mul(256)
		part := segment.Mul(kv).Add(h).Mul(rows).Add(row0)
		// The rows' groups of four; those beyond the last are read as the last.
		groups := make([]*ir.Value, (a.rows+3)/4)
		for i := range groups {
			groups[i] = h.Mul(last.Shr(2).Add(1)).Add(tile.Mul(len(groups)).Add(i).Min(last.Shr(2))).Mul(hd)
		}
		a.scores(b, q, k, scores, groups, page.Mul(hd), hd, all)
		b.For(0, a.rows, 1, func(r *ir.Value) {
			s := sees(r)
			m, l := a.softmax(b, scores, r.Mul(256), s)
			b.If(stored(r, s), func() {
				b.Store(ml, part.Add(r).Mul(2), m)
				b.Store(ml, part.Add(r).Mul(2).Add(1), l)
			})
		})
		b.Barrier() // lanes read what others stored
		b.For(0, hd, 16, func(first *ir.Value) {
			e := first.Add(b.Lane())
			sum := a.values(b, v, scores, page.Mul(valueStride(hd)).Add(e), valueStride(hd), sees, common)
			for r := range a.rows {
				s := sees(r)
				b.If(stored(r, s), func() { b.StoreMasked(o, part.Add(r).Mul(hd).Add(e), sum.At(r), e.Lt(hd)) })
			}
		})
	})
}

// scores stores q'·k of every row for the positions from all.lo to all.hi, rounded out to 16.
func (a attention) scores(b *ir.Builder, q, k, scores ir.Memory, groups []*ir.Value, base, hd *ir.Value, all visible) {
	sum := b.Reg("score", ir.F32, a.rows)
	b.For(all.lo.Shr(4), all.hi.Add(15).Shr(4), 1, func(c *ir.Value) {
		sum.Fill(b.F32(0))
		b.For(0, hd, 1, func(e *ir.Value) {
			key := b.Load(k, base.Add(c.Mul(hd).Add(e).Mul(16)).Add(b.Lane()))
			for r := range a.rows {
				x := b.Load(q, groups[r/4].Add(e).Mul(4).Add(r%4))
				a.multiplyAdd(b, sum, x, key, r)
			}
		})
		for r := range a.rows {
			b.Store(scores, c.Mul(16).Add(256*r).Add(b.Lane()), sum.At(r))
		}
	})
}

func (a attention) multiplyAdd(b *ir.Builder, sum ir.Tile, x, y *ir.Value, r int) {
	if a.t == ir.F32 {
		sum.Add(x.Mul(y), r)
	} else {
		sum.Set(b.FMAExact(x, y, sum.At(r)), r)
	}
}

// softmax replaces the scores of the row at index row by p and returns m and l, uniform. Two registers hold the 32 virtual
// lanes of l.
func (a attention) softmax(b *ir.Builder, scores ir.Memory, row *ir.Value, s visible) (m, l *ir.Value) {
	top, sum := b.Reg("top", ir.F32, 1), b.Reg("sum", ir.F32, 2)
	low := b.Const(ir.F32, 0xFF800000)
	// A lane sees its key if the key's distance from the first visible one is less than their number.
	distance, count := b.Lane().FromIndex().Sub(s.lo.FromIndex()), s.hi.Sub(s.lo).FromIndex().As(ir.U32)
	each := func(step int, f func(at, mask *ir.Value)) {
		b.For(s.lo.Shr(5).Shl(5), s.hi, step, func(c *ir.Value) {
			for i := range step / 16 {
				f(c.Add(16*i).Add(b.Lane()), distance.Add(c.FromIndex()).Add(16*i).As(ir.U32).Lt(count))
			}
		})
	}
	top.Fill(low)
	each(16, func(j, mask *ir.Value) {
		x := mask.Select(b.LoadMasked(scores, row.Add(j), mask), low)
		top.Set(top.At(0).Lt(x).Select(x, top.At(0)), 0)
	})
	m = top.At(0).FoldMax()
	sum.Fill(b.F32(0))
	half := 0
	each(32, func(j, mask *ir.Value) {
		x := b.LoadMasked(scores, row.Add(j), mask).Sub(m)
		p := mathx.ExpCut(x, -44)
		if a.t == ir.F16 {
			p = mathx.RoundSigProbability(p, 13)
		}
		b.StoreMasked(scores, row.Add(j), p, mask)
		sum.Add(mask.Select(p, b.F32(0)), half%2)
		half++
	})
	return m, sum.At(0).Add(sum.At(1)).FoldAdd()
}

// values returns Σ p·v of every row, in ascending order of positions: first those that only some rows see, row by row, then
// the common ones for all rows, then the rest. at is the index of the page's first element of the lane, stride the distance
// of two positions.
func (a attention) values(b *ir.Builder, v, scores ir.Memory, at, stride *ir.Value, sees func(r any) visible, common visible) ir.Tile {
	sum := b.Reg("value", ir.F32, a.rows)
	sum.Fill(b.F32(0))
	step := func(j *ir.Value, from, to int) {
		x := b.Load(v, at.Add(j.Mul(stride)))
		for r := from; r < to; r++ {
			a.multiplyAdd(b, sum, b.Load(scores, j.Add(256*r)), x, r)
		}
	}
	for r := range a.rows {
		s := sees(r)
		b.For(s.lo, common.lo.Min(s.hi), 1, func(j *ir.Value) { step(j, r, r+1) })
	}
	b.For(common.lo, common.hi, 1, func(j *ir.Value) { step(j, 0, a.rows) })
	for r := range a.rows {
		s := sees(r)
		b.For(common.hi.Max(s.lo), s.hi, 1, func(j *ir.Value) { step(j, r, r+1) })
	}
	return sum
}

// attentionMerge folds the segments of every row in order and divides by l. The output has heads·hd elements a token: row r
// of key head h is token r / group, head h·group + r mod group. Shape: rows, kv, group, hd, last position, window.
func attentionMerge() *Op {
	return &Op{
		Name: "attention_merge", Source: "attention.go", Doc: "attention's segments merged in order",
		Variants: one(16, buildMerge),
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
	m, l, y := b.UniformReg("m", ir.F32, 1), b.UniformReg("l", ir.F32, 1), b.Reg("y", ir.F32, 1)
	at := func(s *ir.Value) *ir.Value { return s.Mul(kv).Add(h).Mul(rows).Add(r) }
	b.For(0, hd, 16, func(first *ir.Value) {
		e := first.Add(b.Lane())
		mask := e.Lt(hd)
		load := func(s *ir.Value) (m, l, o2 *ir.Value) {
			return b.Load(ml, at(s).Mul(2)), b.Load(ml, at(s).Mul(2).Add(1)), b.LoadMasked(o, at(s).Mul(hd).Add(e), mask)
		}
		m0, l0, y0 := load(firstSegment)
		m.Set(m0, 0)
		l.Set(l0, 0)
		y.Set(y0, 0)
		b.For(firstSegment.Add(1), lastSegment.Add(1), 1, func(s *ir.Value) {
			ms, ls, ys := load(s)
			top := m.At(0).Lt(ms).Select(ms, m.At(0))
			x, z := cutExp(m.At(0).Sub(top)), cutExp(ms.Sub(top))
			l.Set(l.At(0).Mul(x).Add(ls.Mul(z)), 0)
			y.Set(y.At(0).Mul(x).Add(ys.Mul(z)), 0)
			m.Set(top, 0)
		})
		b.StoreMasked(out, to.Add(e), y.At(0).Mul(mathx.Rcp(l.At(0))), mask)
	})
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

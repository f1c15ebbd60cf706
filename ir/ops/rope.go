package ops

import (
	"encoding/binary"
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/mathx"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Rotary embedding (numerics rule 18) of a head of hd elements of which the first rot turn. Tables hold, for each position,
// hd factors c and hd factors s with the sign of the pair's formula: out = x·c + partner·s, where s is −sin for the first
// of a pair. Config p1 pairs neighbours (2i, 2i + 1), p2 halves (i, i + rot/2).
type pairing int

const (
	neighbours pairing = 1
	halvesOf   pairing = 2
)

// rotate stores the head of hd elements that starts at head in x, turned, from element to of dst on.
func (p pairing) rotate(b *ir.Builder, x, c, s ir.Memory, head, table, hd, rot *ir.Value, dst ir.Memory, to *ir.Value) {
	n := b.Lanes()
	sides, length := 1, rot
	if p == halvesOf {
		sides, length = 2, rot.Shr(1)
	}
	b.For(0, sides, 1, func(side *ir.Value) {
		begin := side.Mul(length)
		end := begin.Add(length)
		whole := begin.Add(length.Div(n).Mul(n))
		other := head.Add(length).Sub(begin.Mul(2))
		turn := func(first, mask *ir.Value) {
			e := first.Add(b.Lane())
			y := b.LoadMasked(x, head.Add(e), mask)
			var partner *ir.Value
			if p == neighbours {
				partner = y.ShuffleXor(1)
			} else {
				partner = b.LoadMasked(x, other.Add(e), mask)
			}
			y = y.Mul(b.LoadMasked(c, table.Add(e), mask)).Add(partner.Mul(b.LoadMasked(s, table.Add(e), mask)))
			b.StoreMasked(dst, to.Add(e), y, mask)
		}
		b.For(begin, whole, n, func(first *ir.Value) { turn(first, nil) })
		b.For(whole, end, n, func(first *ir.Value) { turn(first, first.Add(b.Lane()).Lt(end)) })
	})
	b.For(rot, hd, n, func(first *ir.Value) {
		e := first.Add(b.Lane())
		b.StoreMasked(dst, to.Add(e), b.LoadMasked(x, head.Add(e), e.Lt(hd)), e.Lt(hd))
	})
}

// maxHead is the longest head that the ops for attention take.
const maxHead = 256

// fours stores four turned heads of scratch, element by element: those of element e together, at(e) on.
func fours(b *ir.Builder, turned, out ir.Memory, hd *ir.Value, at func(e *ir.Value) *ir.Value, f func(y *ir.Value) *ir.Value) {
	n := b.Lanes()
	whole := hd.Div(n).Mul(n)
	b.For(0, whole, n, func(first *ir.Value) {
		var ys [4]*ir.Value
		for i := range ys {
			ys[i] = f(b.Load(turned, first.Add(maxHead*i).Add(b.Lane())))
		}
		b.StoreN(out, at(first.Add(b.Lane())), nil, ys[:]...)
	})
	b.For(whole, hd, n, func(first *ir.Value) {
		e := first.Add(b.Lane())
		b.For(0, 4, 1, func(i *ir.Value) {
			b.StoreMasked(out, at(e).Add(i), f(b.LoadMasked(turned, i.Mul(maxHead).Add(e), e.Lt(hd))), e.Lt(hd))
		})
	})
}

// rotateScalar is rotate for one head.
func (p pairing) rotateScalar(x, c, s []float32, rot int) []float32 {
	out := append([]float32(nil), x...)
	for e := range rot {
		partner := e ^ 1
		if p == halvesOf {
			partner = (e + rot/2) % rot
		}
		out[e] = float32(x[e]*c[e]) + float32(x[partner]*s[e])
	}
	return out
}

// RopeQuery turns, scales and rounds the queries of m tokens for attention: q' = r(q·scale). The input has heads·hd elements
// a token; head h belongs to key head h / (heads/kv). Rows of a key head are token·group + h mod group, group = heads/kv;
// the output holds, for each key head, its rows, four interleaved: element e of row r at 4·(r/4·hd + e) + r mod 4; missing
// rows of the last four are copies of the last. A head has at most 256 elements.
// Config rN rounds to N significant bits (13 for an f16 cache, 0 for f32). Shape: m, kv, group, hd, rot.
func RopeQuery() *Op {
	list := func(f target.Family) (vs []Variant) {
		for _, p := range []pairing{neighbours, halvesOf} {
			for _, bits := range []int{13, 0} {
				vs = append(vs, Variant{Config: fmt.Sprintf("p%dr%d", p, bits), Lanes: 16, Groups: 1, pairing: p, bits: bits, Build: func(b *ir.Builder) { ropeQuery(b, f, p, bits) }})
			}
		}
		return vs
	}
	return &Op{
		Name: "rope_query", Source: "rope.go", Doc: "rotary embedding, scaling and rounding of queries",
		Variants: perFamily(list),
		Shapes:   []Shape{{1, 3, 3, 64, 64}, {3, 2, 2, 8, 8}, {2, 1, 5, 40, 24}, {2, 2, 1, 4, 4}},
		Case: func(v Variant, s Shape, d *Data) *Case {
			m, kv, group, hd, rot := s[0], s[1], s[2], s[3], s[4]
			p, bits := v.pairing, v.bits
			q, c, sn := d.floats(m*kv*group*hd), d.floats(7*hd), d.finite(7*hd)
			pos := make([]int32, m)
			rows := m * group
			padded := (rows + 3) / 4 * 4
			out := filled(4 * kv * padded * hd)
			cs := &Case{Buf: map[string][]byte{"out": clone(out)}}
			for t := range m {
				pos[t] = int32(d.rng.IntN(7))
				tc, ts := c[int(pos[t])*hd:][:hd], sn[int(pos[t])*hd:][:hd]
				for h := range kv * group {
					r := t*group + h%group
					for e, y := range p.rotateScalar(q[(t*kv*group+h)*hd:][:hd], tc, ts, rot) {
						y = float32(y * 0.125)
						if bits > 0 {
							y = canon.RoundSig(y, bits)
						}
						putFloat(out, h/group*padded*hd+4*(r/4*hd+e)+r%4, y)
						for pad := r + 1; r == rows-1 && pad < padded; pad++ {
							putFloat(out, h/group*padded*hd+4*(pad/4*hd+e)+pad%4, y)
						}
					}
				}
			}
			for n, x := range map[string][]float32{"q": q, "c": c, "s": sn} {
				cs.Buf[n] = floatBytes(x)
			}
			cs.Buf["pos"] = int32Bytes(pos)
			cs.Want = map[string][]byte{"out": out}
			cs.Int = map[string]int64{"rows": int64(rows), "kv": int64(kv), "group": int64(group), "hd": int64(hd), "rot": int64(rot)}
			cs.Float = map[string]float32{"scale": 0.125}
			return cs
		},
	}
}

// ropeQuery computes four rows a tile, which lie interleaved in the output; rows beyond the last are copies of it.
func ropeQuery(b *ir.Builder, f target.Family, p pairing, bits int) {
	q, c, s, pos, out := b.In("q", ir.F32), b.In("c", ir.F32), b.In("s", ir.F32), b.In("pos", ir.I32), b.Out("out", ir.F32)
	rows, kv, group, hd, rot := b.Int("rows"), b.Int("kv"), b.Int("group"), b.Int("hd"), b.Int("rot")
	scale := b.Float("scale")
	quad := b.Tiles(rows, 4)
	stride := rows.Add(3).Shr(2).Mul(hd)
	turned := b.Shared("turned", ir.F32, 4*maxHead)
	times(b, f, kv, func(h *ir.Value) {
		b.For(0, 4, 1, func(i *ir.Value) {
			r := quad.Mul(4).Add(i).Min(rows.Sub(1))
			token := r.Div(group)
			head := token.Mul(kv).Add(h).Sub(token).Mul(group).Add(r).Mul(hd)
			p.rotate(b, q, c, s, head, b.LoadIndex(pos, token).Mul(hd), hd, rot, turned, i.Mul(maxHead))
		})
		b.Barrier() // lanes read what others stored
		to := h.Mul(stride).Add(quad.Mul(hd))
		fours(b, turned, out, hd, func(e *ir.Value) *ir.Value { return to.Add(e).Mul(4) }, func(y *ir.Value) *ir.Value {
			if y = y.Mul(scale); bits > 0 {
				y = mathx.RoundSig(y, bits)
			}
			return y
		})
		b.Barrier()
	})
}

// KVStore turns the keys of m tokens and stores keys and values in the cache's pages. A page holds 256 positions of every
// key head; pages lists the page of each 256 positions. Keys of a head hold 16 positions interleaved: element e of position j
// at (j/16·hd + e)·16 + j mod 16 of its 256·hd. Values of a head are 256 rows of hd elements, each in a multiple of 16.
// Shape: m, kv, hd, rot.
func KVStore() []*Op {
	var list []*Op
	for _, t := range []ir.Type{ir.F16, ir.F32} {
		variants := func(f target.Family) (vs []Variant) {
			for _, p := range []pairing{neighbours, halvesOf} {
				vs = append(vs, Variant{Config: fmt.Sprintf("p%d", p), Lanes: 16, Groups: 1, pairing: p, Build: func(b *ir.Builder) { kvStore(b, f, p, t) }})
			}
			return vs
		}
		list = append(list, &Op{
			Name: "kv_store_" + t.String(), Source: "rope.go", Doc: "rotary embedding of keys; keys and values to an " + t.String() + " cache",
			Variants: perFamily(variants),
			Shapes:   []Shape{{1, 3, 64, 64}, {5, 2, 8, 8}, {2, 1, 40, 24}, {3, 2, 4, 4}, {11, 2, 40, 24}, {10, 1, 64, 64}},
			Case:     func(v Variant, s Shape, d *Data) *Case { return kvStoreCase(v.pairing, t, s, d) },
		})
	}
	return list
}

// kvStore takes four tokens a tile. Where they fill four consecutive positions of a page's sixteen, their keys are stored
// together.
func kvStore(b *ir.Builder, f target.Family, p pairing, t ir.Type) {
	k, v, c, s := b.In("k", ir.F32), b.In("v", ir.F32), b.In("c", ir.F32), b.In("s", ir.F32)
	pos, pages, kc, vc := b.In("pos", ir.I32), b.In("pages", ir.I32), b.Out("kcache", t), b.Out("vcache", t)
	m, kv, hd, rot := b.Int("m"), b.Int("kv"), b.Int("hd"), b.Int("rot")
	first := b.Tiles(m, 4).Mul(4)
	last := first.Add(3).Min(m.Sub(1))
	turned := b.Shared("turned", ir.F32, 4*maxHead)
	// Of the head's keys and values, the first position's row.
	page := func(at, h *ir.Value) *ir.Value { return b.LoadIndex(pages, at.Shr(8)).Mul(kv).Add(h).Mul(256) }
	key := func(at, h *ir.Value) func(e *ir.Value) *ir.Value {
		j := at.And(255)
		first := page(at, h).Add(j.Shr(4).Mul(16)).Mul(hd).Add(j.And(15))
		return func(e *ir.Value) *ir.Value { return first.Add(e.Mul(16)) }
	}
	start := b.LoadIndex(pos, first)
	together := b.LoadIndex(pos, last).Sub(start).Eq(3).AndB(start.And(3).Eq(0)) // positions ascend
	times(b, f, kv, func(h *ir.Value) {
		b.For(first, last.Add(1), 1, func(token *ir.Value) {
			at, head := b.LoadIndex(pos, token), token.Mul(kv).Add(h).Mul(hd)
			p.rotate(b, k, c, s, head, at.Mul(hd), hd, rot, turned, token.Sub(first).Mul(maxHead))
			row := page(at, h).Add(at.And(255)).Mul(valueStride(hd))
			b.For(0, hd, b.Lanes(), func(first *ir.Value) {
				e := first.Add(b.Lane())
				b.StoreMasked(vc, row.Add(e), b.LoadMasked(v, head.Add(e), e.Lt(hd)), e.Lt(hd))
			})
		})
		b.Barrier() // lanes read what others stored
		b.IfElse(together, func() {
			fours(b, turned, kc, hd, key(start, h), func(y *ir.Value) *ir.Value { return y })
		}, func() {
			b.For(first, last.Add(1), 1, func(token *ir.Value) {
				k := key(b.LoadIndex(pos, token), h)
				b.For(0, hd, b.Lanes(), func(i *ir.Value) {
					e := i.Add(b.Lane())
					b.StoreMasked(kc, k(e), b.LoadMasked(turned, token.Sub(first).Mul(maxHead).Add(e), e.Lt(hd)), e.Lt(hd))
				})
			})
		})
		b.Barrier()
	})
}

// valueStride is the distance of two positions' values in the cache: a vector of elements never reaches into what follows.
func valueStride(hd *ir.Value) *ir.Value { return hd.Add(15).Shr(4).Shl(4) }

func kvStoreCase(p pairing, t ir.Type, s Shape, d *Data) *Case {
	m, kv, hd, rot := s[0], s[1], s[2], s[3]
	first := 254 - 2*(m%2) // odd numbers of tokens start at a multiple of four
	k, v, c, sn := d.floats(m*kv*hd), d.floats(m*kv*hd), d.finite(264*hd), d.finite(264*hd)
	pages := []int32{2, 0}
	stride := (hd + 15) / 16 * 16
	size := 3 * kv * 256 * t.Bytes()
	kw, vw := filled(size*hd), filled(size*stride)
	cs := &Case{Buf: map[string][]byte{"kcache": clone(kw), "vcache": clone(vw)}}
	put := func(b []byte, i int, x float32) {
		if t == ir.F16 {
			binary.LittleEndian.PutUint16(b[2*i:], canon.F32ToF16(x))
		} else {
			putFloat(b, i, x)
		}
	}
	pos := make([]int32, m)
	for n := range m {
		pos[n] = int32(first + n)
		j := int(pos[n])
		for h := range kv {
			to := (int(pages[j/256])*kv + h) * 256
			head := (n*kv + h) * hd
			for e, y := range p.rotateScalar(k[head:head+hd], c[j*hd:][:hd], sn[j*hd:][:hd], rot) {
				put(kw, to*hd+(j%256/16*hd+e)*16+j%16, y)
				put(vw, (to+j%256)*stride+e, v[head+e])
			}
		}
	}
	for n, x := range map[string][]float32{"k": k, "v": v, "c": c, "s": sn} {
		cs.Buf[n] = floatBytes(x)
	}
	cs.Buf["pos"], cs.Buf["pages"] = int32Bytes(pos), int32Bytes(pages)
	cs.Want = map[string][]byte{"kcache": kw, "vcache": vw}
	cs.Int = map[string]int64{"m": int64(m), "kv": int64(kv), "hd": int64(hd), "rot": int64(rot)}
	return cs
}

package ops

import (
	"encoding/binary"
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/mathx"
)

// Rotary embedding (numerics rule 18) of a head of hd elements of which the first rot turn. Tables hold, for each position,
// hd factors c and hd factors s with the sign of the pair's formula: out = x·c + partner·s, where s is −sin for the first
// of a pair. Config p1 pairs neighbours (2i, 2i + 1), p2 halves (i, i + rot/2).
type pairing int

const (
	neighbours pairing = 1
	halvesOf   pairing = 2
)

// rotate returns elements first + lane of the head that starts at head in x.
func (p pairing) rotate(b *ir.Builder, x, c, s ir.Memory, head, table, first, rot, mask *ir.Value) *ir.Value {
	e := first.Add(b.Lane())
	v := b.LoadMasked(x, head.Add(e), mask)
	turns := e.Lt(rot).AndB(mask)
	var partner *ir.Value
	if p == neighbours {
		partner = v.ShuffleXor(1)
	} else {
		partner = otherHalf(b, x, head, first, rot.Shr(1), turns)
	}
	y := v.Mul(b.LoadMasked(c, table.Add(e), turns)).Add(partner.Mul(b.LoadMasked(s, table.Add(e), turns)))
	return turns.Select(y, v)
}

// otherHalf loads the partners of elements first + lane: half a turn away. Where the halves are whole vectors, so are the
// partners.
func otherHalf(b *ir.Builder, x ir.Memory, head, first, half, mask *ir.Value) *ir.Value {
	partner := b.Reg("partner", ir.F32, 1)
	whole := func(at *ir.Value) { partner.Set(b.LoadMasked(x, at.Add(b.Lane()), mask), 0) }
	b.IfElse(half.And(15).Eq(0), func() {
		b.IfElse(first.Lt(half), func() { whole(head.Add(first).Add(half)) }, func() { whole(head.Add(first).Sub(half)) })
	}, func() {
		at, h := first.Add(b.Lane()).FromIndex(), half.FromIndex()
		at = at.Lt(h).Select(at.Add(h), at.Sub(h))
		partner.Set(b.LoadMasked(x, head.Add(at.ToIndex()), mask), 0)
	})
	return partner.At(0)
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
// the output holds, for each key head, its rows, four interleaved: element e of row r at 4·(r/4·hd + e) + r mod 4.
// Config rN rounds to N significant bits (13 for an f16 cache, 0 for f32). Shape: m, kv, group, hd, rot.
func RopeQuery() *Op {
	var vs []Variant
	for _, p := range []pairing{neighbours, halvesOf} {
		for _, bits := range []int{13, 0} {
			vs = append(vs, Variant{Config: fmt.Sprintf("p%dr%d", p, bits), Lanes: 16, Groups: 1, pairing: p, bits: bits, Build: func(b *ir.Builder) { ropeQuery(b, p, bits) }})
		}
	}
	return &Op{
		Name: "rope_query", Source: "rope.go", Doc: "rotary embedding, scaling and rounding of queries",
		Variants: cpu(vs...),
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
					}
				}
			}
			for n, x := range map[string][]float32{"q": q, "c": c, "s": sn} {
				cs.Buf[n] = floatBytes(x)
			}
			cs.Buf["pos"] = int32Bytes(pos)
			cs.Want = map[string][]byte{"out": out}
			cs.Int = map[string]int64{"m": int64(m), "kv": int64(kv), "group": int64(group), "hd": int64(hd), "rot": int64(rot)}
			cs.Float = map[string]float32{"scale": 0.125}
			return cs
		},
	}
}

func ropeQuery(b *ir.Builder, p pairing, bits int) {
	q, c, s, pos, out := b.In("q", ir.F32), b.In("c", ir.F32), b.In("s", ir.F32), b.In("pos", ir.I32), b.Out("out", ir.F32)
	m, kv, group, hd, rot := b.Int("m"), b.Int("kv"), b.Int("group"), b.Int("hd"), b.Int("rot")
	scale := b.Float("scale")
	token := b.Tiles(m, 1)
	table := b.LoadIndex(pos, token).Mul(hd)
	stride := m.Mul(group).Add(3).Shr(2).Mul(hd)
	b.For(0, kv, 1, func(h *ir.Value) {
		b.For(0, group, 1, func(g *ir.Value) {
			head := token.Mul(kv).Add(h).Mul(group).Add(g).Mul(hd)
			row := token.Mul(group).Add(g)
			to := h.Mul(stride).Add(row.Shr(2).Mul(hd))
			b.For(0, hd, 16, func(first *ir.Value) {
				e := first.Add(b.Lane())
				mask := e.Lt(hd)
				y := p.rotate(b, q, c, s, head, table, first, rot, mask).Mul(scale)
				if bits > 0 {
					y = mathx.RoundSig(y, bits)
				}
				b.StoreMasked(out, to.Add(e).Mul(4).Add(row.And(3)), y, mask)
			})
		})
	})
}

// KVStore turns the keys of m tokens and stores keys and values in the cache's pages. A page holds 256 positions of every
// key head; pages lists the page of each 256 positions. Keys of a head hold 16 positions interleaved: element e of position j
// at (j/16·hd + e)·16 + j mod 16 of its 256·hd. Values of a head are 256 rows of hd elements, each in a multiple of 16.
// Shape: m, kv, hd, rot.
func KVStore() []*Op {
	var list []*Op
	for _, t := range []ir.Type{ir.F16, ir.F32} {
		var vs []Variant
		for _, p := range []pairing{neighbours, halvesOf} {
			vs = append(vs, Variant{Config: fmt.Sprintf("p%d", p), Lanes: 16, Groups: 1, pairing: p, Build: func(b *ir.Builder) { kvStore(b, p, t) }})
		}
		list = append(list, &Op{
			Name: "kv_store_" + t.String(), Source: "rope.go", Doc: "rotary embedding of keys; keys and values to an " + t.String() + " cache",
			Variants: cpu(vs...),
			Shapes:   []Shape{{1, 3, 64, 64}, {5, 2, 8, 8}, {2, 1, 40, 24}, {3, 2, 4, 4}},
			Case:     func(v Variant, s Shape, d *Data) *Case { return kvStoreCase(v.pairing, t, s, d) },
		})
	}
	return list
}

func kvStore(b *ir.Builder, p pairing, t ir.Type) {
	k, v, c, s := b.In("k", ir.F32), b.In("v", ir.F32), b.In("c", ir.F32), b.In("s", ir.F32)
	pos, pages, kc, vc := b.In("pos", ir.I32), b.In("pages", ir.I32), b.Out("kcache", t), b.Out("vcache", t)
	m, kv, hd, rot := b.Int("m"), b.Int("kv"), b.Int("hd"), b.Int("rot")
	token := b.Tiles(m, 1)
	at := b.LoadIndex(pos, token)
	table := at.Mul(hd)
	page := b.LoadIndex(pages, at.Shr(8)).Mul(kv)
	stride := valueStride(hd)
	j := at.And(255)
	b.For(0, kv, 1, func(h *ir.Value) {
		head := token.Mul(kv).Add(h).Mul(hd)
		to := page.Add(h).Mul(256)
		b.For(0, hd, 16, func(first *ir.Value) {
			e := first.Add(b.Lane())
			mask := e.Lt(hd)
			b.StoreMasked(kc, to.Mul(hd).Add(j.Shr(4).Mul(hd).Add(e).Mul(16)).Add(j.And(15)), p.rotate(b, k, c, s, head, table, first, rot, mask), mask)
			b.StoreMasked(vc, to.Add(j).Mul(stride).Add(e), b.LoadMasked(v, head.Add(e), mask), mask)
		})
	})
}

// valueStride is the distance of two positions' values in the cache: a vector of elements never reaches into what follows.
func valueStride(hd *ir.Value) *ir.Value { return hd.Add(15).Shr(4).Shl(4) }

func kvStoreCase(p pairing, t ir.Type, s Shape, d *Data) *Case {
	m, kv, hd, rot := s[0], s[1], s[2], s[3]
	first := 254
	k, v, c, sn := d.floats(m*kv*hd), d.floats(m*kv*hd), d.finite(260*hd), d.finite(260*hd)
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

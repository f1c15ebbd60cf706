package ops

import "github.com/swizzle-rt/swizzle/ir"

// taps of the short convolution.
const taps = 3

// ShortConv is LFM2's gated short convolution of m tokens in order (numerics rule 22): with b, c and x the thirds of a row of bcx and
// u = b·x, out = c·(w₀·u₋₂ + w₁·u₋₁ + w₂·u), summed from the oldest tap. The weights hold d channels of each tap, the state
// u of the last two tokens, the older first. Lanes are channels. Shape: m, d.
func ShortConv() *Op {
	return &Op{
		Name: "shortconv", Source: "shortconv.go", Doc: "gated short convolution with state",
		Variants: one(32, func(b *ir.Builder) {
			bcx, w, state, out := b.In("bcx", ir.F32), b.In("w", ir.F32), b.InOut("state", ir.F32), b.Out("out", ir.F32)
			m, d := b.Int("m"), b.Int("d")
			channel := b.Tiles(d, 32).Mul(32).Add(b.Lane())
			mask := channel.Lt(d)
			load := func(from ir.Memory, row *ir.Value) *ir.Value {
				return b.LoadMasked(from, row.Mul(d).Add(channel), mask)
			}
			var tap [taps]*ir.Value
			for i := range tap {
				tap[i] = load(w, b.Idx(i))
			}
			u := b.Reg("u", ir.F32, taps-1)
			for i := range taps - 1 {
				u.Set(load(state, b.Idx(i)), i)
			}
			b.For(0, m, 1, func(t *ir.Value) {
				row := t.Mul(3)
				now := load(bcx, row).Mul(load(bcx, row.Add(2)))
				sum := tap[0].Mul(u.At(0)).Add(tap[1].Mul(u.At(1))).Add(tap[2].Mul(now))
				b.StoreMasked(out, t.Mul(d).Add(channel), load(bcx, row.Add(1)).Mul(sum), mask)
				u.Set(u.At(1), 0)
				u.Set(now, 1)
			})
			for i := range taps - 1 {
				b.StoreMasked(state, b.Idx(i).Mul(d).Add(channel), u.At(i), mask)
			}
		}),
		Shapes: []Shape{{1, 32}, {3, 40}, {7, 64}},
		Case: func(_ Variant, s Shape, d *Data) *Case {
			m, n := s[0], s[1]
			bcx, w, state := d.floats(3*m*n), d.finite(taps*n), d.floats(2*n)
			out := filled(4 * m * n)
			c := &Case{
				Buf: map[string][]byte{"bcx": floatBytes(bcx), "w": floatBytes(w), "state": floatBytes(state), "out": clone(out)},
				Int: map[string]int64{"m": int64(m), "d": int64(n)},
			}
			for t := range m {
				row := bcx[3*t*n:]
				for ch := range n {
					u := float32(row[ch] * row[2*n+ch])
					sum := float32(w[ch]*state[ch]) + float32(w[n+ch]*state[n+ch])
					sum += float32(w[2*n+ch] * u)
					putFloat(out, t*n+ch, float32(row[n+ch]*sum))
					state[ch], state[n+ch] = state[n+ch], u
				}
			}
			c.Want = map[string][]byte{"out": out, "state": floatBytes(state)}
			return c
		},
	}
}

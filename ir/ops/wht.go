package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// WHT is the Walsh-Hadamard transform of rows of n = 32 … 512 elements after a change of signs: strides 1, 2, 4, … n/2,
// (a, b) → (a + b, a − b), unnormalised, then one product with scale (numerics rule 17). signs holds n words of 0 or
// 0x80000000. Element 32·i + lane is in vector i: strides below 32 are shuffles, the others pairs of vectors, in registers as
// far as the target's hold them, then through shared memory. Config nN is the length. Shape: m.
func WHT() *Op {
	return &Op{
		Name: "wht", Source: "wht.go", Doc: "signed Walsh-Hadamard transform of rows",
		Variants: func(c *target.Caps) []Variant {
			hold := 16
			if c.Family == target.CPU && c.VecRegs > 0 { // half of the registers: the others hold operands
				hold = c.VecRegs * c.VecBits / 2 / (32 * 32)
			}
			var vs []Variant
			for n := 32; n <= 512; n *= 2 {
				vs = append(vs, Variant{Config: fmt.Sprintf("n%d", n), Lanes: 32, Groups: 1, length: n, Build: func(b *ir.Builder) { buildWHT(b, n, min(hold, n/32)) }})
			}
			return vs
		},
		Shapes: []Shape{{1}, {3}},
		Case: func(v Variant, s Shape, d *Data) *Case {
			m, n := s[0], v.length
			x := d.floats(m * n)
			signs := make([]int32, n)
			for i := range signs {
				signs[i] = int32(d.rng.IntN(2)) << 31
			}
			out := filled(4 * m * n)
			c := &Case{
				Buf:   map[string][]byte{"x": floatBytes(x), "signs": int32Bytes(signs), "out": clone(out)},
				Int:   map[string]int64{"m": int64(m)},
				Float: map[string]float32{"scale": 0.3},
			}
			for r := range m {
				y := x[r*n : r*n+n]
				for i := range y {
					if signs[i] != 0 {
						y[i] = -y[i]
					}
				}
				for stride := 1; stride < n; stride *= 2 {
					for i := range y {
						if i&stride == 0 {
							y[i], y[i+stride] = y[i]+y[i+stride], y[i]-y[i+stride]
						}
					}
				}
				for i, v := range y {
					putFloat(out, r*n+i, float32(v*c.Float["scale"]))
				}
			}
			c.Want = map[string][]byte{"out": out}
			return c
		},
	}
}

// buildWHT transforms groups of hold vectors in registers; the strides beyond a group go through shared memory.
func buildWHT(b *ir.Builder, n, hold int) {
	x, signs, out := b.In("x", ir.F32), b.In("signs", ir.U32), b.Out("out", ir.F32)
	m, scale := b.Int("m"), b.Float("scale")
	row := b.Tiles(m, 1).Mul(n)
	store := func(i int, v *ir.Value) { b.Store(out, row.Add(b.Lane().Add(32*i)), v.Mul(scale)) }
	var rest ir.Memory
	if hold < n/32 {
		rest = b.Shared("rest", ir.F32, n)
	}
	lane := b.Lane().FromIndex()
	for first := 0; first < n/32; first += hold {
		v := make([]*ir.Value, hold)
		for i := range v {
			at := b.Lane().Add(32 * (first + i))
			v[i] = b.Load(x, row.Add(at)).As(ir.U32).Xor(b.Load(signs, at)).As(ir.F32)
			for stride := 1; stride < 32; stride *= 2 {
				// a + b in the lower lane of a pair, a − b in the upper one: the partner plus the lane's own value, negated there.
				flip := lane.And(stride).Eq(0).Select(b.U32(0), b.U32(1<<31))
				v[i] = v[i].ShuffleXor(stride).Add(v[i].As(ir.U32).Xor(flip).As(ir.F32))
			}
		}
		for stride := 1; stride < hold; stride *= 2 {
			for i := range v {
				if i&stride == 0 {
					v[i], v[i+stride] = v[i].Add(v[i+stride]), v[i].Sub(v[i+stride])
				}
			}
		}
		for i := range v {
			if hold == n/32 {
				store(i, v[i])
			} else {
				b.Store(rest, b.Lane().Add(32*(first+i)), v[i])
			}
		}
	}
	for stride := hold; stride < n/32; stride *= 2 {
		for i := range n / 32 {
			if i&stride != 0 {
				continue
			}
			at, to := b.Lane().Add(32*i), b.Lane().Add(32*(i+stride))
			p, q := b.Load(rest, at), b.Load(rest, to)
			if 2*stride == n/32 {
				store(i, p.Add(q))
				store(i+stride, p.Sub(q))
			} else {
				b.Store(rest, at, p.Add(q))
				b.Store(rest, to, p.Sub(q))
			}
		}
	}
}

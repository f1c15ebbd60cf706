package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/layout"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// SwizzleCopy transposes tiles of 32 × 32 words through shared memory: it writes rows and reads columns. Config s1 puts the
// tile under an XOR swizzle that moves word c of row r to word c xor r, so that on a GPU both directions are free of bank
// conflicts; s0 is the plain tile, whose columns lie in one bank. The interpreter's conflict counter tells them apart.
// Shape: m, n rows and columns.
func SwizzleCopy() *Op {
	return &Op{
		Name: "swizzle_copy", Source: "swizzle_copy.go", Doc: "transpose of 32 × 32 tiles through swizzled shared memory",
		Variants: func(c *target.Caps) []Variant {
			var vs []Variant
			for _, s := range []int{1, 0} {
				vs = append(vs, Variant{Config: fmt.Sprintf("s%d", s), Lanes: 32, Groups: 1, Build: func(b *ir.Builder) { swizzleCopy(b, layout.Swizzle{B: 5 * s, M: 0, S: 5}) }})
			}
			return vs
		},
		Shapes: []Shape{{32, 32}, {33, 70}, {1, 5}},
		Case: func(_ Variant, s Shape, d *Data) *Case {
			m, n := s[0], s[1]
			x := d.bytes(4 * m * n)
			out := filled(4 * m * n)
			c := &Case{Buf: map[string][]byte{"x": x, "out": clone(out)}, Int: map[string]int64{"m": int64(m), "n": int64(n)}}
			for i := range m {
				for j := range n {
					copy(out[4*(j*m+i):][:4], x[4*(i*n+j):])
				}
			}
			c.Want = map[string][]byte{"out": out}
			return c
		},
	}
}

func swizzleCopy(b *ir.Builder, s layout.Swizzle) {
	x, out := b.In("x", ir.U32), b.Out("out", ir.U32)
	m, n := b.Int("m"), b.Int("n")
	row0, col0 := b.Tiles(m, 32).Mul(32), b.Tiles(n, 32).Mul(32)
	tile := b.Shared("tile", ir.U32, 32*32)
	// at applies the swizzle to a lane's word address.
	at := func(row, col *ir.Value) *ir.Value {
		a := row.FromIndex().Mul(32).Add(col.FromIndex())
		if s.B > 0 {
			a = a.Xor(a.And((1<<s.B - 1) << (s.M + s.S)).Shr(s.S))
		}
		return a.ToIndex()
	}
	b.For(0, 32, 1, func(r *ir.Value) {
		mask := row0.Add(r).Lt(m).AndB(col0.Add(b.Lane()).Lt(n))
		b.Store(tile, at(r, b.Lane()), b.LoadMasked(x, row0.Add(r).Mul(n).Add(col0).Add(b.Lane()), mask))
	})
	b.Barrier()
	b.For(0, 32, 1, func(c *ir.Value) {
		mask := col0.Add(c).Lt(n).AndB(row0.Add(b.Lane()).Lt(m))
		b.StoreMasked(out, col0.Add(c).Mul(m).Add(row0).Add(b.Lane()), b.Load(tile, at(b.Lane(), c)), mask)
	})
}

package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/mathx"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Round rounds rows of f32 to the significant bits that make products with float weights exact (numerics rule 24; 13 for
// F16, 16 for BF16, none for F32) and interleaves four rows as gemm_f16 and its kin read them. Shape: m, k.
func Round() *Op {
	list := func(f target.Family) (vs []Variant) {
		for _, w := range floatFormats {
			vs = append(vs, Variant{Config: fmt.Sprintf("r%d", w.bits), Lanes: 32, Groups: 1, bits: w.bits, Build: func(b *ir.Builder) { round(b, f, w.bits) }})
		}
		return vs
	}
	return &Op{
		Name: "round", Source: "round.go", Doc: "rows of f32 rounded for exact products, four interleaved",
		Variants: perFamily(list),
		Shapes:   []Shape{{1, 32}, {5, 70}, {4, 576}},
		Case: func(v Variant, s Shape, d *Data) *Case {
			m, k := s[0], s[1]
			x := d.floats(m * k)
			out := filled((m + actRows - 1) / actRows * actRows * k * 4)
			c := &Case{Buf: map[string][]byte{"x": floatBytes(x), "out": clone(out)}, Int: map[string]int64{"m": int64(m), "k": int64(k)}}
			for i, y := range x {
				if v.bits > 0 {
					y = canon.RoundSig(y, v.bits)
				}
				r := i / k
				putFloat(out, (r/actRows*k+i%k)*actRows+r%actRows, y)
			}
			c.Want = map[string][]byte{"out": out}
			return c
		},
	}
}

func round(b *ir.Builder, f target.Family, bits int) {
	x, out := b.In("x", ir.F32), b.Out("out", ir.F32)
	m, k := b.Int("m"), b.Int("k")
	row := b.Tiles(m, 1)
	to := row.Shr(2).Mul(k)
	along(b, f, k, func(first *ir.Value) {
		i := first.Add(b.Lane())
		mask := i.Lt(k)
		v := b.LoadMasked(x, row.Mul(k).Add(i), mask)
		if bits > 0 {
			v = mathx.RoundSig(v, bits)
		}
		b.StoreMasked(out, to.Add(i).Mul(actRows).Add(row.And(3)), v, mask)
	})
}

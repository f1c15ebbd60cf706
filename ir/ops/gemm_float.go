package ops

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/quant"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// floatFormat is a weight format of floats. Packed tiles hold 16 rows: element k of row r at 16·k + r.
type floatFormat struct {
	name string
	t    ir.Type
	bits int // significant bits of the other factor, which makes products exact (numerics rule 24); 0: multiply and add
}

var floatFormats = []floatFormat{{"bf16", ir.BF16, 16}, {"f16", ir.F16, 13}, {"f32", ir.F32, 0}}

// GEMMFloat is out = x · wᵀ for float weights, added to the output with add ≠ 0. The activations x are f32, rounded by op round where the format asks,
// four rows interleaved: element k of row r at 4·(r/4·k_total + k) + r mod 4. Rows as in GEMM. Shape: m, n, k.
func GEMMFloat() []*Op {
	var list []*Op
	for _, f := range floatFormats {
		list = append(list, &Op{
			Name: "gemm_" + f.name, Source: "gemm_float.go", Doc: "product of f32 rows and " + f.name + " weights", Pack: "pack_" + f.name,
			Variants: func(c *target.Caps) []Variant {
				if c.Family != target.CPU {
					return gemmFloatVariantsGPU(f)
				}
				var vs []Variant
				for _, rows := range gemmRows(c) {
					vs = append(vs, Variant{Config: fmt.Sprintf("m%d", rows), Lanes: quant.Rows, Groups: 1, Rows: rows, Build: gemmFloat{f, rows}.build})
				}
				return vs
			},
			Shapes: []Shape{{1, 16, 32}, {12, 17, 300}, {5, 40, 257}, {3, 1, 1}},
			Case:   func(v Variant, s Shape, d *Data) *Case { return gemmFloatCase(f, v.Rows, s, d) },
		})
	}
	return list
}

type gemmFloat struct {
	f    floatFormat
	rows int
}

func (s gemmFloat) build(b *ir.Builder) {
	x, w := b.In("x", ir.F32), b.In("w", s.f.t)
	out := b.InOut("out", ir.F32)
	m, n, k := b.Int("m"), b.Int("n"), b.Int("k")
	cols, tile := b.Tiles(n, quant.Rows), b.Tiles(m, max(s.rows, actRows))
	total := b.Shared("total", ir.F32, 16*s.rows)
	sum := b.Reg("sum", ir.F32, s.rows)
	wTile := cols.Mul(k)
	groups := make([]*ir.Value, (s.rows+actRows-1)/actRows)
	for g := range groups {
		groups[g] = tile.Mul(len(groups)).Add(g).Mul(k)
	}
	b.For(0, k, 256, func(segment *ir.Value) {
		sum.Fill(b.F32(0))
		b.For(segment, segment.Add(256).Min(k), 1, func(i *ir.Value) {
			v := b.Load(w, wTile.Add(i).Mul(quant.Rows).Add(b.Lane()))
			for j := range s.rows {
				a := b.Load(x, groups[j/actRows].Add(i).Mul(actRows).Add(j%actRows))
				if s.f.bits == 0 {
					sum.Add(a.Mul(v), j)
				} else {
					sum.Set(b.FMAExact(a, v, sum.At(j)), j)
				}
			}
		})
		addSegment(b, b.Lane(), total, sum, segment, s.rows)
	})
	storeTotals(b, total, out, tile.Mul(max(s.rows, actRows)), cols.Mul(quant.Rows), n, b.Int("ldo"), s.rows, 1, inOrder)
}

// floatWeights makes n rows of k elements, finite, as float32 and as stored.
func floatWeights(f floatFormat, n, k int, d *Data) ([]float32, []byte) {
	x := d.finite(n * k)
	size := f.t.Bytes()
	raw := make([]byte, n*k*size)
	for i, v := range x {
		switch f.t {
		case ir.F16:
			h := canon.F32ToF16(v)
			if h&0x7C00 == 0x7C00 {
				h = h&0x8000 | 0x7BFF
			}
			binary.LittleEndian.PutUint16(raw[2*i:], h)
			x[i] = canon.F16ToF32(h)
		case ir.BF16:
			h := canon.F32ToBF16(v)
			if x[i] = canon.BF16ToF32(h); math.Abs(float64(x[i])) < 1.0/(1<<45) {
				x[i], h = 0, 0
			}
			binary.LittleEndian.PutUint16(raw[2*i:], h)
		default:
			putFloat(raw, i, v)
		}
	}
	return x, raw
}

// packFloat is the scalar reference of packing rows of k elements of size bytes.
func packFloat(raw []byte, n, k, size int) []byte {
	out := make([]byte, (n+quant.Rows-1)/quant.Rows*quant.Rows*k*size)
	for r := range n {
		for i := range k {
			copy(out[((r/quant.Rows*k+i)*quant.Rows+r%quant.Rows)*size:][:size], raw[(r*k+i)*size:])
		}
	}
	return out
}

func gemmFloatCase(f floatFormat, rows int, s Shape, d *Data) *Case {
	m, n, k := gemmM(s[0], rows), s[1], s[2]
	w, raw := floatWeights(f, n, k, d)
	x := d.floats(m * k)
	xr := make([]float32, (m+actRows-1)/actRows*actRows*k)
	ldo, add := n+1, n%2
	old := d.floats(m * ldo)
	want := floatBytes(old)
	out := clone(want)
	for r := range m {
		for i := range k {
			v := x[r*k+i]
			if f.bits > 0 {
				v = canon.RoundSig(v, f.bits)
			}
			x[r*k+i] = v
			xr[(r/actRows*k+i)*actRows+r%actRows] = v
		}
		for c := range n {
			var total float32
			for first := 0; first < k; first += 256 {
				var sum float32
				for i := first; i < min(first+256, k); i++ {
					sum += float32(x[r*k+i] * w[c*k+i])
				}
				total += sum
			}
			if add != 0 {
				total += old[r*ldo+c]
			}
			putFloat(want, r*ldo+c, total)
		}
	}
	return &Case{
		Buf:  map[string][]byte{"x": floatBytes(xr), "w": packFloat(raw, n, k, f.t.Bytes()), "out": out},
		Want: map[string][]byte{"out": want},
		Int:  map[string]int64{"m": int64(m), "n": int64(n), "k": int64(k), "ldo": int64(ldo), "add": int64(add)},
	}
}

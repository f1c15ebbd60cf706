package mathx_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/mathx"
)

var functions = []struct {
	name   string
	macro  func(*ir.Value) *ir.Value
	scalar func(float32) float32
	domain func(x float32) bool // where the function is defined; nil: everywhere
}{
	{"exp", mathx.Exp, canon.Exp, nil},
	{"log", mathx.Log, canon.Log, nil},
	{"rcp", mathx.Rcp, canon.Rcp, nil},
	{"rsqrt", mathx.Rsqrt, canon.Rsqrt, nil},
	{"tanh", mathx.Tanh, canon.Tanh, nil},
	{"sigmoid", mathx.Sigmoid, canon.Sigmoid, nil},
	{"silu", mathx.SiLU, canon.SiLU, nil},
	{"gelu", mathx.GELU, canon.GELU, nil},
	{"exp_cut", func(x *ir.Value) *ir.Value { return mathx.ExpCut(x, -44) }, func(x float32) float32 {
		if x < -44 {
			return 0
		}
		return canon.Exp(x)
	}, func(x float32) bool { return !(x > 0) }},
	{"round_probability", func(x *ir.Value) *ir.Value { return mathx.RoundSigProbability(x, 13) }, func(x float32) float32 { return canon.RoundSig(x, 13) },
		func(x float32) bool {
			return !(x > 1) && !math.Signbit(float64(x)) && (x == x || math.Float32bits(x)&0x400000 != 0)
		}},
	{"round_13", func(x *ir.Value) *ir.Value { return mathx.RoundSig(x, 13) }, func(x float32) float32 { return canon.RoundSig(x, 13) }, nil},
	{"round_16", func(x *ir.Value) *ir.Value { return mathx.RoundSig(x, 16) }, func(x float32) float32 { return canon.RoundSig(x, 16) }, nil},
	{"round_i32", func(x *ir.Value) *ir.Value { return mathx.RoundI32(x).As(ir.F32) }, func(x float32) float32 { return math.Float32frombits(uint32(canon.RoundI32(x))) },
		func(x float32) bool { return x > -1<<22 && x < 1<<22 }},
}

// Every macro has its twin's bits, on inputs that step through all exponents and on the special ones.
func TestMacrosEqualCanon(t *testing.T) {
	n := 1 << 20
	if testing.Short() {
		n = 1 << 14
	}
	inputs := make([]uint32, 0, n)
	for _, s := range []float64{0, math.Inf(1), math.NaN(), 1, 0.5, 2, 87, 88, 104, 44, 10, math.MaxFloat32, math.SmallestNonzeroFloat32, 0x1p-126, 0x1p126, 0x1.000002p126, 0x1p-50, 0x1p64, 4194303.5} {
		b := math.Float32bits(float32(s))
		for d := range uint32(3) {
			inputs = append(inputs, b+d, b-d, (b+d)^1<<31, (b-d)^1<<31)
		}
	}
	for i := uint32(0); len(inputs) < n; i++ {
		inputs = append(inputs, i*uint32(0xFFFFFFFF/n)+i*2654435761>>20)
	}
	for _, f := range functions {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			k, err := ir.Build(f.name, 32, 1, func(b *ir.Builder) {
				x, y := b.In("x", ir.F32), b.Out("y", ir.F32)
				at := b.Tiles(b.Int("n"), 32).Mul(32).Add(b.Lane())
				b.Store(y, at, f.macro(b.Load(x, at)))
			})
			if err != nil {
				t.Fatal(err)
			}
			x, y := make([]byte, 4*n), make([]byte, 4*n)
			for i, b := range inputs {
				binary.LittleEndian.PutUint32(x[4*i:], b)
			}
			if _, err := interp.Run(k, interp.Args{Buffers: [][]byte{x, y}, Ints: []int64{int64(n)}}); err != nil {
				t.Fatal(err)
			}
			for i, b := range inputs {
				v := math.Float32frombits(b)
				if f.domain != nil && !f.domain(v) {
					continue
				}
				got, want := binary.LittleEndian.Uint32(y[4*i:]), math.Float32bits(f.scalar(v))
				nan := got&0x7FFFFFFF > 0x7F800000 && want&0x7FFFFFFF > 0x7F800000
				if got != want && !nan {
					t.Fatalf("%s(%v) = %08X, canon has %08X", f.name, v, got, want)
				}
			}
		})
	}
}

package canon

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"testing"
)

// digest collects results, all NaNs being one.
type digest struct{ hash.Hash }

func (d digest) f32(y float32) {
	if y != y {
		y = math.Float32frombits(nanBits)
	}
	d.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(y)))
}

func (d digest) f64(y float64) {
	if y != y {
		y = math.NaN()
	}
	d.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(y)))
}

// The bits of these functions are part of the numerics version: a change here is a new version.
func TestGolden(t *testing.T) {
	// Every exponent and sign, with mantissas that differ in each.
	each := func(f func(float32) float32) func(digest) {
		return func(d digest) {
			for i := range uint32(1 << 16) {
				d.f32(f(math.Float32frombits(i<<16 | i*40503&0xFFFF)))
			}
		}
	}
	doubles := func(f func(x float64) float64, lo, hi float64) func(digest) {
		return func(d digest) {
			rng := rand.New(rand.NewPCG(5, 6))
			for range 4096 {
				d.f64(f(lo + float64((hi-lo)*rng.Float64())))
				d.f64(f(math.Float64frombits(rng.Uint64())))
			}
		}
	}
	for _, c := range []struct {
		name string
		sum  func(digest)
		want string
	}{
		{"Exp", each(Exp), "4d514f1254fcee5a"},
		{"Log", each(Log), "ddf2a25f96326454"},
		{"Rcp", each(Rcp), "cb23e6cadbaae30f"},
		{"Rsqrt", each(Rsqrt), "669982422a1f790e"},
		{"Tanh", each(Tanh), "e6de0a35d5b8960e"},
		{"Sigmoid", each(Sigmoid), "8fd101f2f00b5c08"},
		{"SiLU", each(SiLU), "eb48d298587c2919"},
		{"GELU", each(GELU), "d2a8ab1619cfe67d"},
		{"RoundSig 13", each(func(x float32) float32 { return RoundSig(x, 13) }), "eb05d2884874e60a"},
		{"RoundSig 16", each(func(x float32) float32 { return RoundSig(x, 16) }), "4aeba39be886c638"},
		{"RoundSig 20", each(func(x float32) float32 { return RoundSig(x, 20) }), "3337188db18f6e84"},
		{"f16", each(func(x float32) float32 { return F16ToF32(F32ToF16(x)) }), "32d4fb26a4183352"},
		{"bf16", each(func(x float32) float32 { return BF16ToF32(F32ToBF16(x)) }), "0e40f64e72d01840"},
		{"SumRow", func(d digest) {
			rng := rand.New(rand.NewPCG(1, 2))
			for n := range 300 {
				x := make([]float32, n)
				for i := range x {
					x[i] = rng.Float32() - 0.5
				}
				d.f32(SumRow(x))
			}
		}, "5da31ef898676926"},
		{"QuantizeBlock", func(d digest) {
			rng := rand.New(rand.NewPCG(3, 4))
			for e := -60; e < 70; e++ {
				x, q := make([]float32, 32), make([]int8, 32)
				for i := range x {
					x[i] = float32(math.Ldexp(float64(rng.Float32()-0.5), e))
				}
				scale, sum0, sum1, sigma := QuantizeBlock(x, q)
				d.f32(scale)
				d.f32(sigma)
				binary.Write(d, binary.LittleEndian, []int32{sum0, sum1})
				binary.Write(d, binary.LittleEndian, q)
			}
		}, "a892b048d8b0aed8"},
		{"Exp64", doubles(Exp64, -745, 709), "22894fb51326e1fa"},
		{"Log64", doubles(Log64, 0.25, 4), "4ec67fab0a3dd584"},
		{"Sin64", doubles(Sin64, -10, 1<<31), "17c8c76f90ede5d7"},
		{"Cos64", doubles(Cos64, -10, 1<<31), "28fbf92d5367b6bb"},
		{"Pow64", doubles(func(x float64) float64 { return Pow64(10000, x) }, -1, 0), "bbd5b3dee05baa76"},
		{"Pow64 of the base", doubles(func(x float64) float64 { return Pow64(x, -0.375) }, 1, 1e7), "81c7dccbaf04128d"},
	} {
		d := digest{sha256.New()}
		c.sum(d)
		if got := fmt.Sprintf("%.8x", d.Sum(nil)); got != c.want {
			t.Errorf("%s: digest %s, want %s", c.name, got, c.want)
		}
	}
}

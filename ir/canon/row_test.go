package canon

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSumRow(t *testing.T) {
	// 1 + 2⁻²⁴ rounds to 1, so the result shows the order.
	const tiny = 0x1p-24
	row := func(n int, at map[int]float32) []float32 {
		x := make([]float32, n)
		for i, v := range at {
			x[i] = v
		}
		return x
	}
	for _, c := range []struct {
		name string
		x    []float32
		want float32
	}{
		{"empty", nil, 0},
		{"one", []float32{3}, 3},
		{"minus zero", []float32{zero}, 0},
		{"one lane", row(97, map[int]float32{0: 1, 32: tiny, 64: tiny, 96: tiny}), 1},
		{"two lanes", row(97, map[int]float32{0: 1, 33: tiny, 65: tiny}), 1 + 2*tiny},
		{"fold by 16", row(32, map[int]float32{0: 1, 1: tiny, 17: tiny}), 1 + 2*tiny},
		{"fold by 16, same lane", row(32, map[int]float32{0: 1, 16: tiny, 8: tiny, 4: tiny}), 1},
		{"fold by 8", row(32, map[int]float32{0: 1, 3: tiny, 11: tiny}), 1 + 2*tiny},
		{"fold by 1 last", row(32, map[int]float32{0: 1, 1: tiny, 3: tiny}), 1 + 2*tiny},
		{"NaN", row(40, map[int]float32{39: nan32}), nan32},
		{"Inf", row(40, map[int]float32{39: inf32, 1: -inf32}), nan32},
	} {
		if got := SumRow(c.x); !same(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	v := [32]float32{31: 2}
	if old := v; FoldLanes32(&v) != 2 || v != old {
		t.Errorf("FoldLanes32 = %v, lanes %v", FoldLanes32(&v), v)
	}
}

func TestQuantizeBlock(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 3000 {
		x, q := make([]float32, 32), make([]int8, 32)
		scale := math.Ldexp(1, rng.IntN(110)-48)
		amax := 0.0
		for i := range x {
			x[i] = float32(rng.NormFloat64() * scale)
			amax = max(amax, math.Abs(float64(x[i])))
		}
		d, sum0, sum1, sigma := QuantizeBlock(x, q)
		if amax >= 0x1p64 || amax < 0x1p-50 {
			continue
		}
		if want := float32(float32(amax) * (1.0 / 127)); d != want {
			t.Fatalf("block %d: d = %v, want %v", n, d, want)
		}
		var a, b int32
		for i, c := range q {
			want := math.RoundToEven(float64(float32(x[i] * Rcp(d))))
			if float64(c) != want || want > 127 || want < -127 {
				t.Fatalf("block %d: code %d is %d, want %v", n, i, c, want)
			}
			if i < 16 {
				a += int32(c)
			} else {
				b += int32(c)
			}
		}
		if sum0 != a || sum1 != b || sigma != float32(float32(a+b)*d) {
			t.Fatalf("block %d: sums %d, %d, %v, want %d, %d", n, sum0, sum1, sigma, a, b)
		}
	}
	for _, c := range []struct {
		name  string
		x     float32
		d     float32
		sigma float32
		code  int8
	}{
		{"zero", 0, 0, 0, 0}, {"minus zero", zero, 0, 0, 0}, {"subnormal", -least, 0, 0, 0}, {"below 2^-50", 0x1.fffffep-51, 0, 0, 0},
		{"2^-50", 0x1p-50, Inv127 * 0x1p-50, float32(32 * 127 * (Inv127 * 0x1p-50)), 127},
		{"-1", -1, Inv127, -32 * 127 * Inv127, -127},
		{"below 2^64", 0x1.fffffep63, float32(0x1.fffffep63 * float64(Inv127)), float32(32 * 127 * float64(float32(0x1.fffffep63*float64(Inv127)))), 127},
		{"2^64", 0x1p64, nan32, nan32, 0}, {"-Inf", -inf32, nan32, nan32, 0}, {"NaN", nan32, nan32, nan32, 0}, {"-NaN", -nan32, nan32, nan32, 0},
	} {
		x, q := make([]float32, 32), make([]int8, 32)
		for i := range x {
			x[i], q[i] = c.x, 99
		}
		d, sum0, sum1, sigma := QuantizeBlock(x, q)
		if !same(d, c.d) || sum0 != 16*int32(c.code) || sum1 != sum0 || !same(sigma, c.sigma) || q[0] != c.code || q[31] != c.code {
			t.Errorf("%s: d %v, sums %d %d, sigma %v, codes %d; want d %v, sigma %v, code %d", c.name, d, sum0, sum1, sigma, q[0], c.d, c.sigma, c.code)
		}
	}
}

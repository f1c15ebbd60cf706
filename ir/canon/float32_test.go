package canon

import (
	"math"
	"testing"
)

var (
	inf32 = float32(math.Inf(1))
	nan32 = float32(math.NaN())
	zero  = math.Float32frombits(signBit) // −0
)

const (
	least  = 0x1p-149        // the smallest subnormal
	below  = 0x1.fffffcp-127 // the largest subnormal
	normal = 0x1p-126        // the smallest normal
	most   = math.MaxFloat32 // the largest finite
	next   = 0x1.000002p+126 // the float32 after 2¹²⁶
)

func TestSpecial(t *testing.T) {
	for _, c := range []struct {
		name    string
		y, want float32
	}{
		{"exp 0", Exp(0), 1}, {"exp -0", Exp(zero), 1}, {"exp subnormal", Exp(least), 1}, {"exp NaN", Exp(nan32), nan32},
		{"exp negative NaN", Exp(-nan32), nan32}, {"exp Inf", Exp(inf32), Exp(87)}, {"exp max", Exp(most), Exp(87)},
		{"exp -Inf", Exp(-inf32), 0}, {"exp -max", Exp(-most), 0}, {"exp below -87", Exp(-0x1.5c0002p+6), 0},
		{"log 0", Log(0), -inf32}, {"log -0", Log(zero), -inf32}, {"log subnormal", Log(below), -inf32},
		{"log -subnormal", Log(-below), -inf32}, {"log 1", Log(1), 0}, {"log Inf", Log(inf32), inf32}, {"log -Inf", Log(-inf32), nan32},
		{"log -1", Log(-1), nan32}, {"log -normal", Log(-normal), nan32}, {"log NaN", Log(nan32), nan32}, {"log -NaN", Log(-nan32), nan32},
		{"log normal", Log(normal), -0x1.5d58ap+6}, {"log 2", Log(2), math.Ln2},
		{"rcp 0", Rcp(0), inf32}, {"rcp -0", Rcp(zero), -inf32}, {"rcp subnormal", Rcp(below), inf32}, {"rcp -subnormal", Rcp(-least), -inf32},
		{"rcp normal", Rcp(normal), 0x1p126}, {"rcp 2^126", Rcp(0x1p126), normal}, {"rcp -2^126", Rcp(-0x1p126), -normal},
		{"rcp above 2^126", Rcp(next), 0}, {"rcp below -2^126", Rcp(-next), zero}, {"rcp max", Rcp(most), 0},
		{"rcp Inf", Rcp(inf32), 0}, {"rcp -Inf", Rcp(-inf32), zero}, {"rcp NaN", Rcp(nan32), nan32}, {"rcp -NaN", Rcp(-nan32), nan32},
		{"rsqrt 0", Rsqrt(0), inf32}, {"rsqrt -0", Rsqrt(zero), inf32}, {"rsqrt subnormal", Rsqrt(below), inf32},
		{"rsqrt -subnormal", Rsqrt(-below), inf32}, {"rsqrt normal", Rsqrt(normal), 0x1p63}, {"rsqrt Inf", Rsqrt(inf32), 0},
		{"rsqrt -Inf", Rsqrt(-inf32), nan32}, {"rsqrt -1", Rsqrt(-1), nan32}, {"rsqrt -normal", Rsqrt(-normal), nan32},
		{"rsqrt NaN", Rsqrt(nan32), nan32}, {"rsqrt -NaN", Rsqrt(-nan32), nan32}, {"rsqrt 4", Rsqrt(4), 0.5},
		{"tanh 0", Tanh(0), 0}, {"tanh -0", Tanh(zero), zero}, {"tanh subnormal", Tanh(least), least}, {"tanh -subnormal", Tanh(-below), -below},
		{"tanh Inf", Tanh(inf32), 1}, {"tanh -Inf", Tanh(-inf32), -1}, {"tanh NaN", Tanh(nan32), nan32}, {"tanh 10", Tanh(10), 1},
		{"sigmoid 0", Sigmoid(0), 0.5}, {"sigmoid -0", Sigmoid(zero), 0.5}, {"sigmoid Inf", Sigmoid(inf32), 1},
		{"sigmoid -Inf", Sigmoid(-inf32), Sigmoid(-87)}, {"sigmoid NaN", Sigmoid(nan32), nan32},
		{"silu 0", SiLU(0), 0}, {"silu -0", SiLU(zero), zero}, {"silu Inf", SiLU(inf32), inf32}, {"silu -Inf", SiLU(-inf32), -inf32},
		{"silu NaN", SiLU(nan32), nan32}, {"silu 100", SiLU(100), 100},
		{"gelu 0", GELU(0), 0}, {"gelu -0", GELU(zero), zero}, {"gelu Inf", GELU(inf32), inf32}, {"gelu -Inf", GELU(-inf32), -inf32},
		{"gelu NaN", GELU(nan32), nan32}, {"gelu 20", GELU(20), 20}, {"gelu max", GELU(most), most},
		{"max score", MaxScore(1, 2), 2}, {"max score NaN", MaxScore(1, nan32), 1}, {"max score start", MaxScore(-inf32, -inf32), -inf32},
		{"max score zeros", MaxScore(zero, 0), zero},
	} {
		if !same(c.y, c.want) {
			t.Errorf("%s: %v (%08X), want %v (%08X)", c.name, c.y, math.Float32bits(c.y), c.want, math.Float32bits(c.want))
		}
	}
	for e := -126; e <= 126; e++ {
		x := float32(math.Ldexp(1, e))
		if Rcp(x) != 1/x || Rcp(-x) != -1/x {
			t.Errorf("rcp of ±2^%d: %v, %v", e, Rcp(x), Rcp(-x))
		}
	}
}

// Outside the accuracy test: Tanh is odd and within ±1, Rcp odd and never subnormal.
func TestShape(t *testing.T) {
	step := uint64(1021)
	if *exhaustive {
		step = 1
	}
	for b := uint64(0); b < signBit; b += step {
		x := math.Float32frombits(uint32(b))
		if y := Tanh(x); !(y <= 1) && x == x || !same(Tanh(-x), -y) {
			t.Fatalf("tanh of ±%v: %v, %v", x, y, Tanh(-x))
		}
		y := Rcp(x)
		if !same(Rcp(-x), -y) {
			t.Fatalf("rcp of ±%v: %v, %v", x, y, Rcp(-x))
		}
		if y != 0 && y < normal {
			t.Fatalf("rcp of %v is the subnormal %v", x, y)
		}
	}
	for b := uint32(0x7E7F0000); b <= 0x7E800000; b++ { // just below 2¹²⁶
		if x := math.Float32frombits(b); Rcp(x) < normal {
			t.Fatalf("rcp of %v is the subnormal %v", x, Rcp(x))
		}
	}
}

func TestGELU(t *testing.T) {
	if a := -2 * math.Sqrt(2/math.Pi); GELUA0 != float32(a) || GELUA1 != float32(0.044715*a) {
		t.Errorf("constants %v, %v", GELUA0, GELUA1)
	}
	// The error of t is that of an exponent: it is relative to |t|, so the result is judged by units of x.
	worst, at := 0.0, float32(0)
	for b := uint64(0); b < 1<<32; b += 1021 {
		x := math.Float32frombits(uint32(b))
		if !(math.Abs(float64(x)) < 9.9) || subnormal(x) {
			continue
		}
		v := float64(x)
		want := v / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		if u := math.Abs(float64(GELU(x))-want) / math.Ldexp(1, math.Ilogb(v)-23); u > worst {
			worst, at = u, x
		}
	}
	t.Logf("largest error %.3f units in the last place of x at %v", worst, at)
	if worst > 3 {
		t.Errorf("largest error %v units of x at %v", worst, at)
	}
}

func TestRoundI32(t *testing.T) {
	for _, x := range []float32{0, zero, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 126.5, -127.5, least, -least, 4194303.5, -4194303.5, 4194303, -4194303} {
		if got, want := RoundI32(x), int32(math.RoundToEven(float64(x))); got != want {
			t.Errorf("RoundI32(%v) = %d, want %d", x, got, want)
		}
	}
	for i := int32(-1<<22 + 1); i < 1<<22; i += 997 {
		for _, d := range []float32{0, 0.25, 0.5, 0.75} {
			if x := float32(i) + d; RoundI32(x) != int32(math.RoundToEven(float64(x))) {
				t.Fatalf("RoundI32(%v) = %d", x, RoundI32(x))
			}
		}
	}
}

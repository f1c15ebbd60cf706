package canon

import (
	"fmt"
	"math"
	"os"
	"strings"
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
		if y := Rsqrt(x); e%2 == 0 && y != float32(math.Ldexp(1, -e/2)) {
			t.Errorf("rsqrt of 2^%d: %v", e, y)
		}
	}
}

// Outside the accuracy test: Tanh is odd and within ±1, Rcp odd and never subnormal.
func TestShape(t *testing.T) {
	step := uint64(2039)
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
	// Nor are Rcp's guesses, which are least in [2¹²⁵, 2¹²⁶]; the second is never below 1/x.
	for b := uint32(0x7E000000); b <= 0x7E800000; b += 7 {
		x := math.Float32frombits(b)
		y := math.Float32frombits(RcpGuess - b)
		u := float32(x * y)
		z := float32(y * (float32((float32(RcpC2*u)+RcpC1)*u) + RcpC0))
		if y < normal || z < normal || float64(x)*float64(z) < 1 {
			t.Fatalf("rcp of %v: guesses %v, %v", x, y, z)
		}
	}
}

func TestConstants(t *testing.T) {
	doc, err := os.ReadFile("../../docs/math.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		y    float32
	}{
		{"Magic", Magic}, {"RcpGuess", math.Float32frombits(RcpGuess)}, {"RcpC0", RcpC0}, {"RcpC1", RcpC1}, {"RcpC2", RcpC2}, {"RcpMax", RcpMax},
		{"RsqrtGuess", math.Float32frombits(RsqrtGuess)}, {"RsqrtC0", RsqrtC0}, {"RsqrtC1", RsqrtC1}, {"RsqrtC", RsqrtC},
		{"ExpMax", ExpMax}, {"ExpMin", ExpMin}, {"ExpLog2E", ExpLog2E}, {"ExpMagic", ExpMagic}, {"Ln2Hi", Ln2Hi}, {"Ln2Lo", Ln2Lo},
		{"ExpC2", ExpC2}, {"ExpC3", ExpC3}, {"ExpC4", ExpC4}, {"ExpC5", ExpC5}, {"ExpC6", ExpC6},
		{"LogSplit", math.Float32frombits(LogSplit)}, {"LogC0", LogC0}, {"LogC1", LogC1}, {"LogC2", LogC2}, {"LogC3", LogC3},
		{"LogC4", LogC4}, {"LogC5", LogC5}, {"LogC6", LogC6}, {"LogC7", LogC7},
		{"TanhMax", TanhMax}, {"TanhScale", TanhScale}, {"TanhLn2Hi", TanhLn2Hi}, {"TanhLn2Lo", TanhLn2Lo},
		{"TanhC1", TanhC1}, {"TanhC2", TanhC2}, {"TanhC3", TanhC3}, {"TanhC4", TanhC4}, {"TanhC5", TanhC5},
		{"GELUA0", GELUA0}, {"GELUA1", GELUA1}, {"Inv127", Inv127},
	} {
		if s := fmt.Sprintf("`%s` %08X", c.name, math.Float32bits(c.y)); !strings.Contains(string(doc), s) {
			t.Errorf("docs/math.md does not state %s", s)
		}
	}
	// Some are given by a formula, rounded once.
	a0 := -2 * math.Sqrt(2/math.Pi)
	for _, c := range []struct {
		got  float32
		want float64
	}{
		{GELUA0, a0}, {GELUA1, 0.044715 * a0}, {Inv127, 1.0 / 127}, {ExpLog2E, 1 / math.Ln2}, {Ln2Lo, math.Ln2 - float64(Ln2Hi)},
		{RsqrtC, 3 * math.Pow(2, -2.0/3)}, {TanhScale, -2 / math.Ln2}, {TanhLn2Hi, float64(Ln2Hi) / 2}, {TanhLn2Lo, float64(Ln2Lo) / 2},
	} {
		if c.got != float32(c.want) {
			t.Errorf("constant %v, want %v", c.got, c.want)
		}
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

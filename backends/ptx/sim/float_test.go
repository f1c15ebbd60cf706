package sim

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// fma is compared with exact arithmetic, on numbers whose sums fall close to ties and to the subnormals.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	number := func(exponent int) float32 {
		m := r.Uint32() & 0x7FFFFF
		if r.IntN(2) == 0 {
			m &= 0x700003 // few bits, at both ends
		}
		return math.Float32frombits(r.Uint32()&(1<<31) | uint32(max(0, min(254, exponent)))<<23 | m)
	}
	var naive int
	for range 300_000 {
		e := r.IntN(255)
		a, b := number(e), number(127+r.IntN(60)-30)
		c := number(e + r.IntN(120) - 60)
		if r.IntN(2) == 0 {
			b = number(r.IntN(255))
		}
		// The sum may span 2¹⁵ bits at most.
		x := new(big.Float).SetPrec(2000)
		x.Mul(big.NewFloat(float64(a)), big.NewFloat(float64(b)))
		x.Add(x, big.NewFloat(float64(c)))
		want, _ := x.Float32()
		if x.Sign() == 0 {
			want = float32(float64(a)*float64(b)) + c
		}
		if got := fma(a, b, c); got != want {
			t.Fatalf("fma(%b, %b, %b) = %b, want %b", a, b, c, got, want)
		}
		if float32(math.FMA(float64(a), float64(b), float64(c))) != want {
			naive++
		}
	}
	if naive == 0 {
		t.Error("no case needs more than float64")
	}
	inf := float32(math.Inf(1))
	for _, c := range [][4]float32{{inf, 1, 1, inf}, {1, 1, -inf, -inf}, {math.MaxFloat32, 2, -math.MaxFloat32, math.MaxFloat32}, {1, 0, 0, 0}} {
		if got := fma(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("fma%v = %v", c, got)
		}
	}
	if x := fma(inf, 0, 1); x == x {
		t.Error("Inf · 0 + 1 is a number")
	}
}

// Every half converts to float32 exactly and back; every float32 goes to the nearest half.
func TestHalf(t *testing.T) {
	value := func(h uint32) float64 { return float64(math.Float32frombits(halfToFloat(h))) }
	for h := range uint32(1 << 16) {
		e, m := h>>10&31, float64(h&0x3FF)
		want := math.Ldexp(1024+m, int(e)-25)
		switch {
		case e == 0:
			want = math.Ldexp(m, -24)
		case e == 31 && m == 0:
			want = math.Inf(1)
		case e == 31:
			if halfToFloat(h) != nan32 || floatToHalf(nan32) != nan16 {
				t.Fatalf("%04X is no NaN", h)
			}
			continue
		}
		if h>>15 != 0 {
			want = -want
		}
		if got := value(h); got != want || math.Signbit(got) != math.Signbit(want) {
			t.Fatalf("%04X = %v, want %v", h, got, want)
		}
		if back := floatToHalf(halfToFloat(h)); back != h {
			t.Fatalf("%04X comes back as %04X", h, back)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 300_000 {
		w := r.Uint32()&0x80FFFFFF + uint32(100+r.IntN(46))<<23
		x, h := float64(math.Float32frombits(w)), floatToHalf(w)
		if h&0x7FFF == 0x7C00 {
			if math.Abs(x) < 65520 {
				t.Fatalf("%v becomes infinite", x)
			}
			continue
		}
		off := math.Abs(value(h) - x)
		for _, n := range []uint32{h - 1, h + 1} {
			if n&0x7C00 == 0x7C00 || n>>15 != h>>15 || n > 0xFFFF {
				continue
			}
			if d := math.Abs(value(n) - x); d < off || d == off && h&1 != 0 {
				t.Fatalf("%v becomes %v, %v is nearer or even", x, value(h), value(n))
			}
		}
	}
}

// The assembler's limits on types are those of fits.
func TestFits(t *testing.T) {
	for _, c := range []struct {
		t, reg typ
		wider  bool
		ok     bool
	}{
		{u32, b32, false, true}, {u32, s32, false, true}, {u32, f32, false, false}, {f32, b32, false, true}, {f32, u32, false, false}, {b32, f32, false, true},
		{u32, b64, false, false}, {u32, b64, true, true}, {u8, b16, true, true}, {u8, b32, true, true}, {f32, b64, true, false}, {u64, b32, true, false},
		{f16, b16, false, true}, {f16, b32, true, false}, {u8, f32, true, false}, {pred, pred, false, true}, {pred, b32, false, false}, {b32, pred, true, false},
	} {
		if err := c.t.fits(c.reg, c.wider); (err == nil) != c.ok {
			t.Errorf("%s in a .%s register, wider %t: %v", c.t, c.reg, c.wider, err)
		}
	}
}

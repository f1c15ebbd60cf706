package canon

import (
	"math"
	"testing"
)

// value16 is the value of a finite number with the given fraction and exponent bits, by its definition.
func value16(h uint16, fraction, bias int) float64 {
	e, f := int(h&0x7FFF)>>fraction, int(h)&(1<<fraction-1)
	y := math.Ldexp(float64(f), 1-bias-fraction)
	if e > 0 {
		y = math.Ldexp(float64(f|1<<fraction), e-bias-fraction)
	}
	if h>>15 == 1 {
		y = -y
	}
	return y
}

func TestWidening(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		sign := uint32(h>>15) << 31
		want := math.Float32bits(float32(value16(h, 10, 15)))
		switch {
		case h&0x7FFF == 0x7C00:
			want = sign | infBits
		case h&0x7FFF > 0x7C00:
			want = sign | nanBits | uint32(h&0x1FF)<<13
		}
		if h == 0x8000 {
			want = signBit
		}
		if got := math.Float32bits(F16ToF32(h)); got != want {
			t.Fatalf("F16ToF32(%04X) = %08X, want %08X", h, got, want)
		}
		if got := math.Float32bits(BF16ToF32(h)); got != uint32(h)<<16 {
			t.Fatalf("BF16ToF32(%04X) = %08X", h, got)
		}
	}
}

// Of two neighbours the nearer is right, of a midpoint the even one; every number between midpoints follows.
func TestNarrowing(t *testing.T) {
	for _, f := range []struct {
		name           string
		narrow         func(float32) uint16
		fraction, bias int
		inf            uint16
	}{
		{"F32ToF16", F32ToF16, 10, 15, 0x7C00},
		{"F32ToBF16", F32ToBF16, 7, 127, 0x7F80},
	} {
		check := func(x float32, want uint16) {
			t.Helper()
			if got := f.narrow(x); got != want {
				t.Fatalf("%s(%v) = %04X, want %04X", f.name, x, got, want)
			}
			if got := f.narrow(-x); got != want|0x8000 {
				t.Fatalf("%s(%v) = %04X, want %04X", f.name, -x, got, want|0x8000)
			}
		}
		for h := range f.inf {
			x := float32(value16(h, f.fraction, f.bias))
			up := value16(h+1, f.fraction, f.bias) // for the last, the power of two that would follow
			mid := float32((float64(x) + up) / 2)
			check(x, h)
			check(math.Nextafter32(mid, 0), h)
			check(mid, (h+1)&^1)
			if y := math.Nextafter32(mid, inf32); float64(y) < up {
				check(y, h+1)
			}
		}
		check(inf32, f.inf)
		for _, b := range []uint32{0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFABCDEF} {
			h := f.narrow(math.Float32frombits(b))
			quiet := uint16(1) << (f.fraction - 1)
			want := uint16(b>>16)&0x8000 | f.inf | quiet | uint16(b&0x7FFFFF>>(23-f.fraction))
			if h != want {
				t.Errorf("%s of NaN %08X: %04X, want %04X", f.name, b, h, want)
			}
		}
	}
	if h := F32ToF16(math.MaxFloat32); h != 0x7C00 {
		t.Errorf("F32ToF16(max) = %04X", h)
	}
}

func TestRoundSig(t *testing.T) {
	for _, significant := range []int{13, 16, 20} {
		for b := uint64(0); b < 1<<32; b += 20011 {
			x := math.Float32frombits(uint32(b))
			var want float32
			switch a := math.Abs(float64(x)); {
			case !(a < 0x1p64):
				want = nan32
			case a >= 0x1p-50:
				unit := math.Ldexp(1, math.Ilogb(a)+1-significant)
				want = float32(math.RoundToEven(float64(x)/unit) * unit)
			}
			if got := RoundSig(x, significant); !same(got, want) {
				t.Fatalf("RoundSig(%v, %d) = %v, want %v", x, significant, got, want)
			}
		}
	}
	for _, c := range []struct {
		x, want float32
	}{
		{0x1.fffffep-51, 0}, {-0x1.fffffep-51, 0}, {zero, 0}, {0x1p-50, 0x1p-50}, {-0x1p-50, -0x1p-50},
		{0x1.fffffep63, 0x1p64}, {0x1p64, nan32}, {-inf32, nan32}, {nan32, nan32},
		{0x1.001p0, 0x1.001p0}, {0x1.0008p0, 1}, {0x1.0018p0, 0x1.002p0}, {-0x1.0008p0, -1}, {0x1.00080ap0, 0x1.001p0},
	} {
		if got := RoundSig(c.x, 13); !same(got, c.want) {
			t.Errorf("RoundSig(%v, 13) = %v, want %v", c.x, got, c.want)
		}
	}
}

package lane

import (
	"math"
	"testing"

	"github.com/swizzle-rt/swizzle/ir/canon"
)

func TestF16ToF32(t *testing.T) {
	for h := range 1 << 16 {
		got, want := math.Float32bits(F16ToF32(uint16(h))), math.Float32bits(canon.F16ToF32(uint16(h)))
		if got != want {
			t.Fatalf("%04X: %08X, want %08X", h, got, want)
		}
	}
}

// Every binary16, the midpoints between neighbours and their neighbours decide all roundings.
func TestNarrowing(t *testing.T) {
	check := func(b uint32) {
		x := math.Float32frombits(b)
		if got, want := F32ToF16(x), canon.F32ToF16(x); got != want {
			t.Fatalf("f16 of %08X: %04X, want %04X", b, got, want)
		}
		if got, want := F32ToBF16(x), canon.F32ToBF16(x); got != want {
			t.Fatalf("bf16 of %08X: %04X, want %04X", b, got, want)
		}
	}
	for h := range uint32(1 << 16) {
		for _, low := range []uint32{0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF} {
			check(h<<16 | low)
		}
	}
	for h := range 1<<16 - 1 {
		a, b := canon.F16ToF32(uint16(h)), canon.F16ToF32(uint16(h+1))
		mid := math.Float32bits(float32((float64(a) + float64(b)) / 2))
		for _, x := range []uint32{mid - 1, mid, mid + 1, math.Float32bits(a) - 1, math.Float32bits(a) + 1} {
			check(x)
		}
	}
}

func TestDot4(t *testing.T) {
	for _, c := range []struct {
		x, y     uint32
		acc      int32
		unsigned int32
		signed   int32
	}{
		{0, 0, 7, 7, 7},
		{0xFFFFFFFF, 0x7F7F7F7F, 0, 4 * 255 * 127, -4 * 127},
		{0x80808080, 0x81818181, 1, 1 - 4*128*127, 1 + 4*128*127},
		{0x04030201, 0xFCFDFEFF, math.MaxInt32, math.MaxInt32 - 30, math.MaxInt32 - 30},
		{0xFF000000, 0x80000000, 0, -255 * 128, 128},
	} {
		if got := Dot4US(c.x, c.y, c.acc); got != c.unsigned {
			t.Errorf("Dot4US(%08X, %08X, %d) = %d, want %d", c.x, c.y, c.acc, got, c.unsigned)
		}
		if got := Dot4SS(c.x, c.y, c.acc); got != c.signed {
			t.Errorf("Dot4SS(%08X, %08X, %d) = %d, want %d", c.x, c.y, c.acc, got, c.signed)
		}
	}
}

func TestBytes(t *testing.T) {
	if got := Lookup16("\x80\xff\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\xc3", 0x0F000201); got != 0xC38002FF {
		t.Errorf("Lookup16: %08X", got)
	}
	if got := Pack4([]int32{-1, 0x1234, 128, -128}); got != 0x808034FF {
		t.Errorf("Pack4: %08X", got)
	}
}

func TestFolds(t *testing.T) {
	// 1 + 2²⁴ is lost, 2²⁴ − 2²⁴ first is not: the order is lanes l and l + 2, then 0 and 1.
	if got := FoldAddF32([]float32{1 << 24, 1, -1 << 24, 2}); got != 3 {
		t.Errorf("FoldAddF32: %v", got)
	}
	nan := float32(math.NaN())
	if got := FoldMaxF32([]float32{nan, -3, nan, -2}); got != -2 {
		t.Errorf("FoldMaxF32: %v", got)
	}
	if got := FoldMaxF32([]float32{nan, nan}); !math.IsInf(float64(got), -1) {
		t.Errorf("FoldMaxF32 of NaNs: %v", got)
	}
	if got := FoldAddI32([]int32{math.MaxInt32, 1, 0, -5}); got != math.MaxInt32-4 {
		t.Errorf("FoldAddI32: %v", got)
	}
	if got := FoldMaxU32([]uint32{1, 0x80000000, 7, 0}); got != 0x80000000 {
		t.Errorf("FoldMaxU32: %v", got)
	}
}

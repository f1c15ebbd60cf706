package canon

// The conversions are integer macros, but for two sums with 0.5 that are the same with and without flushing of subnormals.

// F16ToF32 returns the binary16 number h as float32, exactly. Subnormals are kept; NaN becomes quiet and keeps its payload.
func F16ToF32(h uint16) float32 {
	a := uint32(h & 0x7FFF)
	b := a<<13 + 0x38000000
	if a >= 0x7C00 {
		b = a<<13 + 0x70000000
	}
	if a > 0x7C00 {
		b |= 0x00400000
	}
	if a < 0x0400 { // the unit in the last place of [0.5, 1) is 2⁻²⁴, that of f16 subnormals
		b = toBits(fromBits(a+0x3F000000) - 0.5)
	}
	return fromBits(b | uint32(h&0x8000)<<16)
}

// F32ToF16 returns x rounded to binary16, ties to even, from 65520 on to infinity. Subnormals are kept; NaN becomes quiet
// and keeps the upper bits of its payload.
func F32ToF16(x float32) uint16 {
	a := toBits(x) & absMask
	h := (a - 0x38000000 + 0xFFF + a>>13&1) >> 13
	if a >= 0x47800000 {
		h = 0x7C00
	}
	if a > infBits {
		h = 0x7E00 | a>>13&0x3FF
	}
	if a < 0x38800000 {
		h = toBits(fromBits(a)+0.5) - 0x3F000000
	}
	return uint16(h | toBits(x)>>16&0x8000)
}

// BF16ToF32 returns the bfloat16 number h as float32, exactly.
func BF16ToF32(h uint16) float32 { return fromBits(uint32(h) << 16) }

// F32ToBF16 returns x rounded to bfloat16, ties to even. NaN becomes quiet and keeps the upper bits of its payload.
func F32ToBF16(x float32) uint16 {
	b := toBits(x)
	h := (b + 0x7FFF + b>>16&1) >> 16
	if b&absMask > infBits {
		h = b>>16 | 0x40
	}
	return uint16(h)
}

// RoundSig returns x rounded to that many significant bits, 1 to 23, ties to even: 13, 16 and 20 make products with f16,
// bf16 and fp8 factors exact. Magnitudes below 2⁻⁵⁰ become +0; from 2⁶⁴ on, and NaN, they become NaN. Both limits test the
// unrounded x.
func RoundSig(x float32, significant int) float32 {
	drop := 24 - significant
	b := toBits(x)
	r := (b + (1<<(drop-1) - 1) + b>>drop&1) &^ (1<<drop - 1)
	if b&absMask < tinyBits {
		r = 0
	}
	if b&absMask >= hugeBits {
		r = nanBits
	}
	return fromBits(r)
}

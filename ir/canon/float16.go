package canon

import "math"

// F16ToF32 returns the binary16 number h as float32, exactly; subnormals are kept, NaN becomes quiet.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10)&31, uint32(h)&1023
	switch {
	case exp == 31 && frac != 0:
		return math.Float32frombits(sign | 0x7FC00000 | frac<<13)
	case exp == 31:
		return math.Float32frombits(sign | 0x7F800000)
	case exp == 0:
		x := float32(float32(frac) * (1.0 / (1 << 24)))
		return math.Float32frombits(sign | math.Float32bits(x))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// F32ToF16 rounds x to binary16, to nearest even; subnormals are kept, NaN becomes quiet and keeps its upper payload bits.
func F32ToF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7FFFFFFF
	switch {
	case b > 0x7F800000:
		return sign | 0x7E00 | uint16(b>>13&0x1FF)
	case b >= 0x477FF000: // from 65520 on
		return sign | 0x7C00
	case b < 0x38800000: // below 2⁻¹⁴: add so that the last kept bit is 2⁻²⁴
		y := math.Float32bits(math.Float32frombits(b) + 0.5)
		return sign | uint16(y-0x3F000000)
	}
	b += 0xFFF + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

// BF16ToF32 returns the bfloat16 number h as float32, exactly.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds x to bfloat16, to nearest even; NaN becomes quiet and keeps its upper payload bits.
func F32ToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7FFFFFFF > 0x7F800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7FFF + b>>16&1) >> 16)
}

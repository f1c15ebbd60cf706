// Package lane holds the scalar functions that generated portable kernels call: one lane's work of an instruction that Go
// has no operator for, and the folds over a lane group. Each gives the bits that the kernel language defines.
package lane

import "math"

// Width is the largest number of lanes in a group.
const Width = 32

// Dot4US returns acc + Σ uᵢ·sᵢ over four bytes, u unsigned and s signed, the first in the low byte.
func Dot4US(u, s uint32, acc int32) int32 {
	return acc + int32(uint8(u))*int32(int8(s)) + int32(uint8(u>>8))*int32(int8(s>>8)) +
		int32(uint8(u>>16))*int32(int8(s>>16)) + int32(u>>24)*(int32(s)>>24)
}

// Dot4SS returns acc + Σ xᵢ·yᵢ over four signed bytes, the first in the low byte.
func Dot4SS(x, y uint32, acc int32) int32 {
	return acc + int32(int8(x))*int32(int8(y)) + int32(int8(x>>8))*int32(int8(y>>8)) +
		int32(int8(x>>16))*int32(int8(y>>16)) + (int32(x)>>24)*(int32(y)>>24)
}

// Lookup16 replaces each byte of v, 0 … 15, by the table's entry; the table has 16 bytes.
func Lookup16(table string, v uint32) uint32 {
	_ = table[15]
	return uint32(table[v&15]) | uint32(table[v>>8&15])<<8 | uint32(table[v>>16&15])<<16 | uint32(table[v>>24&15])<<24
}

// Select returns yes where c holds, else no.
func Select[T bool | int | int32 | uint32 | float32](c bool, yes, no T) T {
	if c {
		return yes
	}
	return no
}

// Pack4 returns the low bytes of four lanes' values as one word, the first in the low byte.
func Pack4(v []int32) uint32 {
	_ = v[3]
	return uint32(uint8(v[0])) | uint32(uint8(v[1]))<<8 | uint32(uint8(v[2]))<<16 | uint32(v[3])<<24
}

// FoldAddF32 returns the sum over the lanes, a power of two: lane l adds lane l + s for s = len/2 … 1.
func FoldAddF32(v []float32) float32 {
	var t [Width]float32
	n := copy(t[:], v)
	for s := n / 2; s > 0; s /= 2 {
		for l := range s {
			t[l] += t[l+s]
		}
	}
	return t[0]
}

// FoldMaxF32 returns the largest value that is not NaN, −Inf if there is none.
func FoldMaxF32(v []float32) float32 {
	top := float32(math.Inf(-1))
	for _, x := range v {
		if x > top {
			top = x
		}
	}
	return top
}

// FoldAddI32 returns the sum over the lanes modulo 2³².
func FoldAddI32(v []int32) int32 {
	var sum int32
	for _, x := range v {
		sum += x
	}
	return sum
}

// FoldMaxU32 returns the largest value.
func FoldMaxU32(v []uint32) uint32 {
	var top uint32
	for _, x := range v {
		top = max(top, x)
	}
	return top
}

// F16ToF32 returns the value of an IEEE binary16, exactly; a NaN becomes quiet and keeps its payload.
func F16ToF32(h uint16) float32 {
	sign, m := uint32(h&0x8000)<<16, uint32(h&0x7FFF)
	switch {
	case m > 0x7C00:
		m = m<<13 | 0x7FC00000
	case m == 0x7C00:
		m = 0x7F800000
	case m >= 0x400:
		m = m<<13 + (127-15)<<23
	default: // subnormal: m counts 2⁻²⁴, which gives a normal binary32
		m = math.Float32bits(float32(float32(m) * (1.0 / (1 << 24))))
	}
	return math.Float32frombits(sign | m)
}

// F32ToF16 returns f as an IEEE binary16, rounded to nearest even; a NaN becomes quiet.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign, m := uint16(b>>16&0x8000), b&0x7FFFFFFF
	switch {
	case m > 0x7F800000:
		return sign | 0x7E00 | uint16(m>>13&0x3FF)
	case m >= 0x477FF000: // from 65520 on
		return sign | 0x7C00
	case m >= 0x38800000: // normal: from 2⁻¹⁴ on
		m -= (127 - 15) << 23
		return sign | uint16((m+0xFFF+m>>13&1)>>13)
	case m < 0x33000000: // below 2⁻²⁵
		return sign
	}
	s := 126 - m>>23 // the significand's last bit counts 2^(e−150), binary16's 2⁻²⁴
	m = m&0x7FFFFF | 0x800000
	return sign | uint16((m+1<<(s-1)-1+m>>s&1)>>s)
}

// BF16ToF32 returns the value of a bfloat16.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 returns f as a bfloat16, rounded to nearest even; a NaN becomes quiet.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7FFFFFFF > 0x7F800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7FFF + b>>16&1) >> 16)
}

package sim

import "math"

// NaN that an instruction computes.
const (
	nan32 = 0x7FFFFFFF
	nan16 = 0x7FFF
)

// floats adds float32 arithmetic. Only the forms that say how they round are known: the assembler may fuse others.
func floats(add func(string, func(*frame) error, ...typ)) {
	add("add.rn.f32", addFloats, f32, f32, f32)
	add("sub.rn.f32", subFloats, f32, f32, f32)
	add("mul.rn.f32", mulFloats, f32, f32, f32)
	add("fma.rn.f32", word3(func(a, b, c uint32) uint32 {
		return bits32(fma(math.Float32frombits(a), math.Float32frombits(b), math.Float32frombits(c)))
	}), f32, f32, f32, f32)
}

func addFloats(f *frame) error {
	d, a, b := f.w[0], f.w[1], f.w[2]
	for l := range d {
		d[l] = bits32(math.Float32frombits(a[l]) + math.Float32frombits(b[l]))
	}
	return nil
}

func subFloats(f *frame) error {
	d, a, b := f.w[0], f.w[1], f.w[2]
	for l := range d {
		d[l] = bits32(math.Float32frombits(a[l]) - math.Float32frombits(b[l]))
	}
	return nil
}

func mulFloats(f *frame) error {
	d, a, b := f.w[0], f.w[1], f.w[2]
	for l := range d {
		d[l] = bits32(float32(math.Float32frombits(a[l]) * math.Float32frombits(b[l])))
	}
	return nil
}

// bits32 returns the bits of a result.
func bits32(x float32) uint32 {
	if x != x {
		return nan32
	}
	return math.Float32bits(x)
}

// fma returns a·b + c rounded once. The product is exact in float64. Their sum is rounded to odd: if it isn't exact, the
// neighbour with an odd last bit is taken, which is never halfway between two float32 values, so that the second rounding sees
// on which side the exact sum lies (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
func fma(a, b, c float32) float32 {
	p, z := float64(float64(a)*float64(b)), float64(c)
	s := p + z
	if math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	t := s - p
	e := (p - (s - t)) + (z - t) // the exact error of s
	if u := math.Float64bits(s); e != 0 && u&1 == 0 {
		if (e > 0) == (s > 0) {
			u++ // away from zero
		} else {
			u--
		}
		s = math.Float64frombits(u)
	}
	return float32(s)
}

type floatConversion struct {
	to, from typ
	f        func(*frame) error
}

// floatConversions holds the forms of cvt that touch floats, by what follows cvt.
var floatConversions = map[string]floatConversion{
	"f32.f16":    {f32, f16, word1(halfToFloat)},
	"rn.f16.f32": {f16, f32, word1(floatToHalf)},
	"rn.f32.s32": {f32, s32, word1(func(a uint32) uint32 { return math.Float32bits(float32(int32(a))) })},
	"rn.f32.u32": {f32, u32, word1(func(a uint32) uint32 { return math.Float32bits(float32(a)) })},
}

func halfToFloat(h uint32) uint32 {
	sign, e, m := h>>15<<31, h>>10&31, h&0x3FF
	switch {
	case e == 31 && m != 0:
		return nan32
	case e == 31:
		return sign | 0x7F800000
	case e == 0: // m · 2⁻²⁴
		return sign | math.Float32bits(float32(float32(m)*0x1p-24))
	}
	return sign | (e+127-15)<<23 | m<<13
}

// floatToHalf rounds to nearest even.
func floatToHalf(w uint32) uint32 {
	sign, mag := w>>31<<15, w&0x7FFFFFFF
	switch {
	case mag > 0x7F800000:
		return nan16
	case mag >= 0x47800000: // 65536 and Inf
		return sign | 0x7C00
	case mag < 0x33000000: // below half of the least half
		return sign
	}
	// The significand in units of the result's last place, with the rest below.
	e := int(mag >> 23)
	drop := 13
	if e < 127-14 {
		drop += 127 - 14 - e
	}
	m := mag&0x7FFFFF | 0x800000
	h := m >> drop
	rest, half := m&(1<<drop-1), uint32(1)<<(drop-1)
	if rest > half || rest == half && h&1 != 0 {
		h++
	}
	if e >= 127-14 { // the leading bit of h counts one up in the exponent
		h += uint32(e-(127-14)) << 10
	}
	return sign | h
}

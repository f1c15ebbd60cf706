package canon

import (
	"math"
	"math/bits"
)

// Sin64 returns the sine of x radians, for |x| < 2⁶³; of other arguments it is NaN. Sin64(±0) is ±0.
func Sin64(x float64) float64 {
	if x == 0 {
		return x
	}
	q, r, rest := reduce64(x)
	switch q & 3 {
	case 0:
		return sin64(r, rest)
	case 1:
		return cos64(r, rest)
	case 2:
		return -sin64(r, rest)
	}
	return -cos64(r, rest)
}

// Cos64 returns the cosine of x radians, for |x| < 2⁶³; of other arguments it is NaN.
func Cos64(x float64) float64 {
	q, r, rest := reduce64(x)
	switch q & 3 {
	case 0:
		return cos64(r, rest)
	case 1:
		return -sin64(r, rest)
	case 2:
		return -cos64(r, rest)
	}
	return sin64(r, rest)
}

// sin64 is the sine of r + rest, |r| ≤ π/4, by its series to r¹⁷.
func sin64(r, rest float64) float64 {
	z := float64(r * r)
	p := 1.0 / 355687428096000
	for _, c := range [...]float64{-1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6} {
		p = float64(p*z) + c
	}
	cube := float64(float64(z*r) * p)
	return r + (cube + (rest - float64(float64(0.5*z)*rest)))
}

// cos64 is the cosine of r + rest, |r| ≤ π/4, by its series to r¹⁸.
func cos64(r, rest float64) float64 {
	z := float64(r * r)
	p := -1.0 / 6402373705728000
	for _, c := range [...]float64{1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24} {
		p = float64(p*z) + c
	}
	h := float64(0.5 * z)
	w := 1 - h
	return w + (((1 - w) - h) + (float64(float64(z*z)*p) - float64(r*rest)))
}

// twoOverPi are the first 256 fraction bits of 2/π, the highest first.
var twoOverPi = [4]uint64{0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561}

// reduce64 returns q and r + rest with x = q·π/2 + r + rest, |r| ≤ π/4, q modulo 4. It multiplies x's mantissa with 2/π in
// integers (Payne and Hanek), so that the remainder has full precision, however close x is to a multiple of π/2.
func reduce64(x float64) (q int, r, rest float64) {
	const quarterPi, piBits = 0x1.921fb54442d18p-1, 0xC90FDAA22168C235 // π/4; π/2·2⁶³
	a := math.Abs(x)
	if a < quarterPi {
		return 0, x, 0
	}
	if !(a < 0x1p63) {
		return 0, math.NaN(), 0
	}
	b := math.Float64bits(a)
	mantissa := b&(1<<52-1) | 1<<52
	exponent := int(b>>52) - 1075 // a = mantissa·2^exponent, −53 ≤ exponent ≤ 10

	// product = mantissa·2/π·2²⁵⁶, the lowest word first; the bit of weight 1 is bit 256 − exponent.
	var product [5]uint64
	var carry uint64
	for i := range twoOverPi {
		hi, lo := bits.Mul64(mantissa, twoOverPi[3-i])
		var c uint64
		product[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	product[4] = carry

	// The quadrant's two bits and 126 + 2 bits of the fraction.
	top := 256 - exponent + 2
	w0, w1, w2 := word(&product, top-64), word(&product, top-128), word(&product, top-192)
	q = int(w0 >> 62)
	hi, lo := w0<<2|w1>>62, w1<<2|w2>>62
	negative := hi>>63 != 0
	if negative { // the nearer multiple is the next one
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
		q++
	}

	// The fraction times π/2. No float64 below 2⁶³ is within 2⁻⁶² of a multiple of π/2, so hi is not 0.
	zeros := bits.LeadingZeros64(hi)
	f := hi<<zeros | lo>>(64-zeros)
	f, _ = bits.Mul64(f, piBits)
	scale := power2(-63 - zeros)
	r = float64(float64(f&^0x7FF) * scale)
	rest = float64(float64(f&0x7FF) * scale)
	if negative {
		r, rest = -r, -rest
	}
	if x < 0 {
		q, r, rest = -q, -r, -rest
	}
	return q, r, rest
}

// word returns the 64 bits of p from bit at on.
func word(p *[5]uint64, at int) uint64 {
	i, shift := at/64, at%64
	w := p[i] >> shift
	if shift > 0 && i+1 < len(p) {
		w |= p[i+1] << (64 - shift)
	}
	return w
}

package canon

import "math"

// ln 2 in two parts; the first has 32 significant bits, so that its products with exponents are exact.
const (
	log2E64 = 0x1.71547652b82fep+0
	ln2Hi64 = 0x1.62e42feep-1
	ln2Lo64 = 0x1.a39ef35793c76p-33
)

// Exp64 returns eˣ. Above 709.78 it is +Inf, below −745.13 it is +0; subnormal results are rounded like others.
func Exp64(x float64) float64 { return expSum64(x, 0) }

// expSum64 returns e^(x+low), where low is a rounding error of x.
func expSum64(x, low float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x > 709.782712893384:
		return math.Inf(1)
	case x < -745.1332191019412:
		return 0
	}
	// x + low = n·ln 2 + r + rest.
	half := 0.5
	if x < 0 {
		half = -0.5
	}
	k := int(float64(x*log2E64) + half)
	n := float64(k)
	hi := x - float64(n*ln2Hi64) // exact
	lo := float64(n*ln2Lo64) - low
	r := hi - lo
	rest := (hi - r) - lo
	p := 1.0 / 6227020800
	for _, c := range [...]float64{
		1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
		1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2,
	} {
		p = float64(p*r) + c
	}
	y := 1 + (r + (rest + float64(float64(r*r)*p)))
	y = float64(y * power2(k>>1)) // two steps, as 2ᵏ alone may not be representable; only the second can round
	return float64(y * power2(k-k>>1))
}

// power2 returns 2ᵏ, a normal number.
func power2(k int) float64 { return math.Float64frombits(uint64(1023+k) << 52) }

// split64 returns n and f with x = 2ⁿ·(1 + f), 1 + f from √½ to √2, for finite x > 0.
func split64(x float64) (n, f float64) {
	const sqrtHalf = 0x3FE6A09E667F3BCD
	bias := 0
	if x < 0x1p-1022 {
		x, bias = float64(x*0x1p54), 54
	}
	b := math.Float64bits(x)
	e := int64(b-sqrtHalf) >> 52
	return float64(int(e) - bias), math.Float64frombits(b-uint64(e)<<52) - 1
}

// atanhTail64 is Σ 2z^k/(2k+1) over k = first … 11 divided by z^first: with z = s² the tail of ln((1+s)/(1−s))/s.
func atanhTail64(z float64, first int) float64 {
	c := [...]float64{2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23}
	p := c[len(c)-1]
	for k := len(c) - 2; k >= first; k-- {
		p = float64(p*z) + c[k]
	}
	return p
}

// Log64 returns the natural logarithm of x: −Inf of zeros, NaN of negatives, +Inf of +Inf.
func Log64(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0 || math.IsNaN(x):
		return math.NaN()
	case math.IsInf(x, 1):
		return x
	}
	// With s = f/(2+f), ln(1+f) = f − f²/2 + s·(f²/2 + tail).
	n, f := split64(x)
	s := f / (2 + f)
	z := float64(s * s)
	tail := float64(z * atanhTail64(z, 1))
	h := float64(0.5 * float64(f*f))
	rest := float64(s*(h+tail)) + float64(n*ln2Lo64)
	return float64(n*ln2Hi64) - ((h - rest) - f)
}

// Pow64 returns xʸ for x ≥ 0: 1 if x = 1 or y = 0, NaN if x < 0 or either is NaN.
func Pow64(x, y float64) float64 {
	switch {
	case x == 1 || y == 0:
		return 1
	case x < 0 || math.IsNaN(x) || math.IsNaN(y):
		return math.NaN()
	case x == 0 || math.IsInf(x, 1):
		if (x == 0) == (y < 0) {
			return math.Inf(1)
		}
		return 0
	}
	hi, lo := logSum64(x)
	if e := float64(y * hi); e > 800 || e < -800 {
		return Exp64(e)
	}
	e, low := product64(y, hi)
	return expSum64(e, low+float64(y*lo))
}

// logSum64 returns ln x as a sum of two, to about 2⁻¹⁰⁰ of it.
func logSum64(x float64) (hi, lo float64) {
	n, f := split64(x)
	// s + t = f/(2+f)
	d := 2 + f
	rest := f - (d - 2)
	s := f / d
	p, e := product64(s, d)
	t := (((f - p) - e) - float64(s*rest)) / d
	// 2/3·s³ = c + d, the further terms in float64
	z, ze := product64(s, s)
	ze += float64(2 * float64(s*t))
	q, qe := product64(z, s)
	qe += float64(ze*s) + float64(z*t)
	const third, thirdLow = 0x1.5555555555555p-1, 0x1.5555555555555p-55
	c, ce := product64(q, third)
	ce += float64(qe*third) + float64(q*thirdLow)
	tail := float64(float64(q*z) * atanhTail64(z, 2))
	// n·ln 2 + 2s + 2/3·s³ + …, the largest first
	hi, lo = sum64(float64(n*ln2Hi64), float64(2*s))
	hi, e = sum64(hi, c)
	lo += e
	lo += float64(2*t) + (ce + (tail + float64(n*ln2Lo64)))
	return sum64(hi, lo)
}

// sum64 returns a + b rounded and its rounding error.
func sum64(a, b float64) (sum, rest float64) {
	sum = a + b
	v := sum - a
	return sum, (a - (sum - v)) + (b - v)
}

// product64 returns a·b rounded and its rounding error (Dekker), for magnitudes whose halves neither over- nor underflow.
func product64(a, b float64) (product, rest float64) {
	a1, a2 := halves64(a)
	b1, b2 := halves64(b)
	product = float64(a * b)
	rest = float64(a1*b1) - product
	rest += float64(a1 * b2)
	rest += float64(a2 * b1)
	return product, rest + float64(a2*b2)
}

// halves64 splits a into 26 bits and the rest.
func halves64(a float64) (hi, lo float64) {
	c := float64(a * (1<<27 + 1))
	hi = c - (c - a)
	return hi, a - hi
}

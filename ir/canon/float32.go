package canon

// RoundI32 returns x rounded to the nearest integer, ties to even, for |x| < 2²². Other arguments, NaN among them, must have
// been ruled out.
func RoundI32(x float32) int32 {
	return int32(toBits(x+Magic)) - MagicBits
}

// Exp returns eˣ. Above 87 it is e⁸⁷, below −87 it is +0; Exp(±0) is 1, Exp(NaN) is NaN.
func Exp(x float32) float32 {
	c := x
	if x > ExpMax {
		c = ExpMax
	}
	// c = n·ln 2 + r. The low bits of t are n + 127, the exponent field of 2ⁿ.
	t := float32(c*ExpLog2E) + ExpMagic
	n := t - ExpMagic
	r := c - float32(n*Ln2Hi) // exact
	r -= float32(n * Ln2Lo)
	p := float32(ExpC6*r) + ExpC5
	p = float32(p*r) + ExpC4
	p = float32(p*r) + ExpC3
	p = float32(p*r) + ExpC2
	p = float32(p*r) + 1
	p = float32(p*r) + 1
	y := float32(p * fromBits(toBits(t)<<23)) // a product and not a sum of exponents, so that NaN stays NaN
	if x < ExpMin {
		y = 0
	}
	return y
}

// Log returns the natural logarithm of x. Log of zeros and subnormals, of either sign, is −Inf; Log(+Inf) is +Inf; Log of
// other negatives and of NaN is NaN.
func Log(x float32) float32 {
	b := toBits(x)
	// x = 2ⁿ·(1 + f), 1 + f between √½ and √2.
	e := int32(b-LogSplit) >> 23
	n := fromBits(uint32(e)+MagicBits) - Magic
	f := fromBits(b-uint32(e)<<23) - 1
	z := float32(f * f)
	p := float32(LogC7*f) + LogC6
	p = float32(p*f) + LogC5
	p = float32(p*f) + LogC4
	p = float32(p*f) + LogC3
	p = float32(p*f) + LogC2
	p = float32(p*f) + LogC1
	p = float32(p*f) + LogC0
	y := float32(z*p) + float32(n*Ln2Lo)
	y = f + y
	y += float32(n * Ln2Hi)
	a := b & absMask
	if a >= infBits {
		y = x
	}
	if x < 0 {
		y = fromBits(nanBits)
	}
	if a < minimum {
		y = fromBits(signBit | infBits)
	}
	return y
}

// Rcp returns 1/x, exactly for powers of two. Rcp of zeros and subnormals is an infinity of their sign, Rcp of magnitudes
// above 2¹²⁶, infinities among them, is a zero of their sign, Rcp(NaN) is NaN.
func Rcp(x float32) float32 {
	y := rcp(x)
	a, sign := toBits(x)&absMask, toBits(x)&signBit
	if fromBits(a) > RcpMax {
		y = fromBits(sign)
	}
	if a < minimum {
		y = fromBits(sign | infBits)
	}
	return y
}

// rcp is Rcp for 2⁻¹²⁶ ≤ |x| ≤ 2¹²⁶ and NaN, where Rcp's selections change nothing.
func rcp(x float32) float32 {
	y := fromBits(RcpGuess - toBits(x)) // between 1/x and 9/8 of it
	u := float32(x * y)
	p := float32(RcpC2*u) + RcpC1
	p = float32(p*u) + RcpC0
	y = float32(y * p)
	return float32(y * (2 - float32(x*y)))
}

// Rsqrt returns 1/√x. Rsqrt of zeros and subnormals, of either sign, is +Inf; Rsqrt(+Inf) is +0; Rsqrt of other negatives
// and of NaN is NaN.
func Rsqrt(x float32) float32 {
	b := toBits(x)
	y := fromBits(RsqrtGuess - b>>1)
	u := float32(float32(x*y) * y)
	p := float32((u+RsqrtC1)*u) + RsqrtC0
	y = float32(y * p) // 2^(−1/3)/√x, which makes the coefficient of the last step 1
	v := float32(float32(x*y) * y)
	y = float32(y * (RsqrtC - v))
	if b == infBits {
		y = 0
	}
	if x < 0 {
		y = fromBits(nanBits)
	}
	if b&absMask < minimum {
		y = fromBits(infBits)
	}
	return y
}

// Tanh returns the hyperbolic tangent of x; it is odd. Tanh(±Inf) is ±1, Tanh(±0) is ±0, Tanh(NaN) is NaN, and Tanh of a
// subnormal is that subnormal.
func Tanh(x float32) float32 {
	sign := toBits(x) & signBit
	a := fromBits(toBits(x) & absMask)
	if a > TanhMax {
		a = TanhMax
	}
	// w = 1 − e⁻²ᵃ, where e⁻²ᵃ = s·(1 − p); then tanh a = w/(2 − w).
	t := float32(a*TanhScale) + ExpMagic
	n := t - ExpMagic
	r := a + float32(n*TanhLn2Hi) // exact
	r += float32(n * TanhLn2Lo)
	p := float32(TanhC5*r) + TanhC4
	p = float32(p*r) + TanhC3
	p = float32(p*r) + TanhC2
	p = float32(p*r) + TanhC1
	p = float32(p*r) + 2
	p = float32(p * r)
	s := fromBits(toBits(t) << 23)
	w := (1 - s) + float32(s*p)
	y := float32(w * rcp(2-w))
	return fromBits(toBits(y) | sign)
}

// Sigmoid returns rcp(1 + exp(−x)).
func Sigmoid(x float32) float32 { return rcp(1 + Exp(neg(x))) }

// SiLU returns x·rcp(1 + exp(−x)), the activation of gated feed-forward layers. As exp is clamped, SiLU(x) is x·2⁻¹²⁵·0.70
// below −87 and not smaller in magnitude; SiLU(−Inf) is −Inf.
func SiLU(x float32) float32 { return float32(x * Sigmoid(x)) }

// GELU returns the tanh form of the Gaussian error linear unit, written with one exponential: x·rcp(1 + exp(t)),
// t = x·(a₀ + a₁·(x·x)). Below about −9.99, where exp is clamped, it behaves like SiLU.
func GELU(x float32) float32 {
	t := float32(x * (GELUA0 + float32(GELUA1*float32(x*x))))
	return float32(x * rcp(1+Exp(t)))
}

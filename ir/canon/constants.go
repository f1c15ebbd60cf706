package canon

// Rounding: adding 1.5·2²³ leaves the nearest integer in the low bits of a float32.
const (
	MagicBits         = 0x4B400000
	Magic     float32 = 0x1.8p+23 // the same as a number
)

// Constants of Rcp: the minuend of the first guess and a quadratic a little above 1/u on [1, 9/8].
const (
	RcpGuess         = 0x7F000000
	RcpC0    float32 = 0x1.6a0eaap+1 // 40350755
	RcpC1    float32 = -0x1.550e2p+1 // C02A8710
	RcpC2    float32 = 0x1.abfddep-1 // 3F55FEEF
	RcpMax   float32 = 0x1p+126      // 7E800000: the largest argument whose reciprocal is not a subnormal
)

// Constants of Rsqrt: the minuend of the first guess, a quadratic with leading coefficient 1 for 2^(−1/3)/√u, and 3·2^(−2/3).
const (
	RsqrtGuess         = 0x5F095C9C
	RsqrtC0    float32 = 0x1.e5e39ep+0  // 3FF2F1CF
	RsqrtC1    float32 = -0x1.071264p+1 // C0038932
	RsqrtC     float32 = 0x1.e3cf48p+0  // 3FF1E7A4
)

// Constants of Exp: its range, 1/ln 2, 1.5·2²³ + 127, ln 2 in two parts of which the first has 15 significant bits, and a
// polynomial for eʳ on ±ln 2/2 whose first two coefficients are 1.
const (
	ExpMax   float32 = 87
	ExpMin   float32 = -87
	ExpLog2E float32 = 0x1.715476p+0  // 3FB8AA3B
	ExpMagic float32 = 0x1.8000fep+23 // 4B40007F
	Ln2Hi    float32 = 0x1.62e4p-1    // 3F317200
	Ln2Lo    float32 = 0x1.7f7d1cp-20 // 35BFBE8E
	ExpC2    float32 = 0x1.fffffap-2  // 3EFFFFFD
	ExpC3    float32 = 0x1.555464p-3  // 3E2AAA32
	ExpC4    float32 = 0x1.5559ap-5   // 3D2AACD0
	ExpC5    float32 = 0x1.125f3ap-7  // 3C092F9D
	ExpC6    float32 = 0x1.6b1e12p-10 // 3AB58F09
)

// Constants of Log: the bits of √½, where the exponent is split off, and a polynomial for (ln(1+f) − f)/f².
const (
	LogSplit         = 0x3F3504F3
	LogC0    float32 = -0x1.fffffcp-2 // BEFFFFFE
	LogC1    float32 = 0x1.5556f6p-2  // 3EAAAB7B
	LogC2    float32 = -0x1.00048ep-2 // BE800247
	LogC3    float32 = 0x1.98d2a2p-3  // 3E4C6951
	LogC4    float32 = -0x1.535ddp-3  // BE29AEE8
	LogC5    float32 = 0x1.3189c4p-3  // 3E18C4E2
	LogC6    float32 = -0x1.250344p-3 // BE1281A2
	LogC7    float32 = 0x1.65991p-4   // 3DB2CC88
)

// Constants of Tanh: from where it is ±1, −2/ln 2, ln 2/2 in two parts and a polynomial for (1 − e⁻²ʳ)/r on ±ln 2/4 whose
// constant coefficient is 2.
const (
	TanhMax   float32 = 10
	TanhScale float32 = -0x1.715476p+1 // C038AA3B
	TanhLn2Hi float32 = 0x1.62e4p-2    // 3EB17200
	TanhLn2Lo float32 = 0x1.7f7d1cp-21 // 353FBE8E
	TanhC1    float32 = -0x1.fffffap+0 // BFFFFFFD
	TanhC2    float32 = 0x1.5554aap+0  // 3FAAAA55
	TanhC3    float32 = -0x1.555accp-1 // BF2AAD66
	TanhC4    float32 = 0x1.1225a4p-2  // 3E8912D2
	TanhC5    float32 = -0x1.67c3aep-4 // BDB3E1D7
)

// Constants of GELU, −2√(2/π) and 0.044715 times it, and of QuantizeBlock, 1/127; each the exact value rounded once.
const (
	GELUA0 float32 = -0x1.988454p+0 // BFCC422A
	GELUA1 float32 = -0x1.2444f2p-4 // BD922279
	Inv127 float32 = 0x1.020408p-7  // 3C010204
)

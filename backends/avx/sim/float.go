package sim

import "math"

// Arithmetic on float32, on the bits of the values, so that NaNs keep theirs.

const (
	quietBit   = 1 << 22
	defaultNaN = 0xFFC00000 // what invalid operations yield
)

func f32(x uint32) float32 { return math.Float32frombits(x) }

func isNaN32(x uint32) bool { return x&0x7FFFFFFF > 0x7F800000 }

func floats32() map[string]*opcode {
	add := arithmetic(func(a, b float32) float32 { return a + b })
	sub := arithmetic(func(a, b float32) float32 { return a - b })
	mul := arithmetic(func(a, b float32) float32 { return float32(a * b) })
	div := arithmetic(func(a, b float32) float32 { return a / b })
	t := map[string]*opcode{
		"VADDPS": {run: binary2(add), masked: true}, "VADDSS": {run: scalar(dropFirst(add), false), masked: true},
		"VSUBPS": {run: binary2(sub), masked: true}, "VSUBSS": {run: scalar(dropFirst(sub), false), masked: true},
		"VMULPS": {run: binary2(mul), masked: true}, "VMULSS": {run: scalar(dropFirst(mul), false), masked: true},
		"VDIVPS": {run: binary2(div), masked: true}, "VDIVSS": {run: scalar(dropFirst(div), false), masked: true},
		"VMAXPS": {run: binary2(maxFloat), masked: true}, "VMAXSS": {run: scalar(dropFirst(maxFloat), false), masked: true},
		"VMINPS": {run: binary2(minFloat), masked: true}, "VMINSS": {run: scalar(dropFirst(minFloat), false), masked: true},
		"VSQRTPS":  {run: unary(sqrt), masked: true},
		"VSQRTSS":  {run: scalar(func(_, _, b uint32) uint32 { return sqrt(b) }, false), masked: true},
		"VHADDPS":  {run: blocks(4, pairs(add))},
		"VHSUBPS":  {run: blocks(4, pairs(sub))},
		"VCMPPS":   {run: compare(relationFloat), masked: true},
		"VUCOMISS": {run: compareFlags}, "VCOMISS": {run: compareFlags},
		"VROUNDPS":    {run: unaryImm(func(a uint32, imm uint8) uint32 { return round(a, imm&15) })},
		"VRNDSCALEPS": {run: unaryImm(round), masked: true, evex: always},
	}
	// The digits of FMA mnemonics tell which operands are multiplied: 1 is the destination, 2 and 3 the sources; the third
	// digit is added.
	for name, negate := range map[string][2]uint32{"VFMADD": {0, 0}, "VFMSUB": {0, 1 << 31}, "VFNMADD": {1 << 31, 0}, "VFNMSUB": {1 << 31, 1 << 31}} {
		f := func(a, b, c uint32) uint32 { return fma(a, b, c, negate[0], negate[1]) }
		f132 := func(d, a, b uint32) uint32 { return f(d, b, a) }
		f213 := func(d, a, b uint32) uint32 { return f(a, d, b) }
		f231 := func(d, a, b uint32) uint32 { return f(a, b, d) }
		t[name+"132PS"] = &opcode{run: ternary(f132), masked: true}
		t[name+"213PS"] = &opcode{run: ternary(f213), masked: true}
		t[name+"231PS"] = &opcode{run: ternary(f231), masked: true}
		t[name+"132SS"] = &opcode{run: scalar(f132, true), masked: true}
		t[name+"213SS"] = &opcode{run: scalar(f213, true), masked: true}
		t[name+"231SS"] = &opcode{run: scalar(f231, true), masked: true}
	}
	return t
}

func dropFirst(f func(a, b uint32) uint32) func(d, a, b uint32) uint32 {
	return func(_, a, b uint32) uint32 { return f(a, b) }
}

// arithmetic gives a float32 operation x86's NaNs: the first operand that is one, made quiet; else the default.
func arithmetic(f func(a, b float32) float32) func(a, b uint32) uint32 {
	return func(a, b uint32) uint32 {
		switch {
		case isNaN32(a):
			return a | quietBit
		case isNaN32(b):
			return b | quietBit
		}
		return result(f(f32(a), f32(b)))
	}
}

// result returns the bits of an operation's result whose operands were no NaN.
func result(x float32) uint32 {
	if x != x {
		return defaultNaN
	}
	return math.Float32bits(x)
}

// maxFloat and minFloat yield the second operand where neither is larger: both zero, or one NaN.

func maxFloat(a, b uint32) uint32 {
	if f32(a) > f32(b) {
		return a
	}
	return b
}

func minFloat(a, b uint32) uint32 {
	if f32(a) < f32(b) {
		return a
	}
	return b
}

func sqrt(a uint32) uint32 {
	if isNaN32(a) {
		return a | quietBit
	}
	return result(float32(math.Sqrt(float64(f32(a)))))
}

// fma returns ±(a·b) ± c rounded once; the sign changes are given as bits to flip.
func fma(a, b, c, product, addend uint32) uint32 {
	for _, x := range [...]uint32{a, b, c} {
		if isNaN32(x) {
			return x | quietBit
		}
	}
	return result(fusedMultiplyAdd(f32(a^product), f32(b), f32(c^addend)))
}

// fusedMultiplyAdd rounds a·b + c once. The product is exact in float64. The sum is rounded to odd there: when it is inexact,
// its last bit is set, so that the rounding to float32, which has 29 bits fewer, is that of the exact sum.
func fusedMultiplyAdd(a, b, c float32) float32 {
	p, q := float64(float64(a)*float64(b)), float64(c)
	s := p + q
	if math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	// Knuth's TwoSum: s + e = p + q exactly.
	t := s - p
	e := (p - (s - t)) + (q - t)
	if e != 0 && math.Float64bits(s)&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

// relationFloat compares by one of the 32 predicates of VCMPPS. The upper half differs only in which NaNs raise exceptions.
func relationFloat(x, y uint32, imm uint8) bool {
	a, b := f32(x), f32(y)
	unordered := a != a || b != b
	switch imm & 15 {
	case 0:
		return a == b
	case 1:
		return a < b
	case 2:
		return a <= b
	case 3:
		return unordered
	case 4:
		return a != b
	case 5:
		return !(a < b)
	case 6:
		return !(a <= b)
	case 7:
		return !unordered
	case 8:
		return a == b || unordered
	case 9:
		return !(a >= b)
	case 10:
		return !(a > b)
	case 11:
		return false
	case 12:
		return a != b && !unordered
	case 13:
		return a >= b
	case 14:
		return a > b
	}
	return true
}

// compareFlags compares the destination with the source and sets ZF, PF and CF as an unsigned comparison would.
func compareFlags(m *Machine, in *instruction) {
	x, y := m.readVec(in.dst.reg), m.bytes(in, 0, 4)
	a, b := f32(get[uint32](&x, 0)), f32(get[uint32](&y, 0))
	switch {
	case a != a || b != b:
		m.setFlags(allFlags, zero|parity|carry)
	case a < b:
		m.setFlags(allFlags, carry)
	case a == b:
		m.setFlags(allFlags, zero)
	default:
		m.setFlags(allFlags, 0)
	}
}

// round rounds to a multiple of 2^-scale, the high four bits of the immediate; the low ones are those of a rounding control.
func round(a uint32, imm uint8) uint32 {
	if isNaN32(a) {
		return a | quietBit
	}
	scale := math.Ldexp(1, int(imm>>4))
	x := roundTo(float64(float64(f32(a))*scale), imm) / scale
	return math.Float32bits(float32(math.Copysign(x, float64(f32(a)))))
}

// roundTo rounds to an integer: bit 2 of the control takes MXCSR's mode, to nearest even; else the low two choose.
func roundTo(x float64, control uint8) float64 {
	if control&4 != 0 {
		return math.RoundToEven(x)
	}
	switch control & 3 {
	case 1:
		return math.Floor(x)
	case 2:
		return math.Ceil(x)
	case 3:
		return math.Trunc(x)
	}
	return math.RoundToEven(x)
}

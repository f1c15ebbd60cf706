package mathx

import "github.com/swizzle-rt/swizzle/ir"

// RoundI32 is x rounded to the nearest integer, to even, for |x| < 2²² (numerics rule 3): the bits of x + 1.5·2²³ less those
// of 1.5·2²³.
func RoundI32(x *ir.Value) *ir.Value {
	return x.Add(x.Builder().Const(ir.F32, magic)).As(ir.I32).Sub(magic)
}

const magic = 0x4B400000

// RoundSig is x rounded to that many significant bits, to nearest even (numerics rule 24): magnitudes below 2⁻⁵⁰ become +0,
// from 2⁶⁴ on NaN.
func RoundSig(x *ir.Value, bits int) *ir.Value {
	b := x.Builder()
	m := magnitude(x)
	kept := m.Lt(b.U32(0x26800000)).Select(b.U32(0), round(x, bits))
	return b.U32(0x5F7FFFFF).Lt(m).Select(b.U32(0x7FC00000), kept).As(ir.F32)
}

// RoundSigProbability is RoundSig for +0 ≤ x ≤ 1 or NaN.
func RoundSigProbability(x *ir.Value, bits int) *ir.Value {
	b := x.Builder()
	u := x.As(ir.U32)
	kept := u.Lt(b.U32(0x26800000)).Select(b.U32(0), round(x, bits))
	return b.U32(0x3F800000).Lt(u).Select(b.U32(0x7FC00000), kept).As(ir.F32)
}

// round rounds the bits of x to nearest even.
func round(x *ir.Value, bits int) *ir.Value {
	drop := 24 - bits
	u := x.As(ir.U32)
	return u.Add(1<<(drop-1) - 1).Add(u.Shr(drop).And(1)).And(0xFFFFFFFF << drop & 0xFFFFFFFF)
}

// neg flips the sign.
func neg(x *ir.Value) *ir.Value { return x.As(ir.U32).Xor(1 << 31).As(ir.F32) }

// Package canon is scalar arithmetic with the same bits on every architecture: the functions that canonical numerics need
// beyond + − × and that processors, compilers and standard libraries disagree about.
//
// The float32 functions are the Go twins of kernel macros. They use only f32 + − × rounded one by one, ordered compares,
// selections, 32-bit integer operations and bit casts, so that package mathx can state each of them one-to-one in the
// kernel IR; the constants are exported for that. An "if" in them stands for a selection: both sides are computed and nothing
// depends on a branch. The float64 functions serve tables and sampling on the host and use + − × ÷ and integer operations.
//
// Every product stands directly inside a conversion, which forbids the compiler to fuse it with a sum. NaN payloads are
// not part of any result: every NaN is the same value. docs/math.md states the steps, the constants and the errors.
package canon

import "math"

const (
	signBit  = 0x80000000
	absMask  = 0x7FFFFFFF
	infBits  = 0x7F800000
	nanBits  = 0x7FC00000
	minimum  = 0x00800000 // 2⁻¹²⁶, the smallest normal number
	tinyBits = 0x26800000 // 2⁻⁵⁰, below which activations count as +0
	hugeBits = 0x5F800000 // 2⁶⁴, from which activations count as NaN
)

func toBits(x float32) uint32   { return math.Float32bits(x) }
func fromBits(b uint32) float32 { return math.Float32frombits(b) }

// neg flips the sign bit, of zeros and NaN too.
func neg(x float32) float32 { return fromBits(toBits(x) ^ signBit) }

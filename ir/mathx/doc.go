// Package mathx holds the functions of package canon as macros over kernel values: the same steps in the same order, so the
// same bits. A kernel has no division and no library function; these are all it has.
package mathx

import "github.com/swizzle-rt/swizzle/ir"

func magnitude(x *ir.Value) *ir.Value { return x.As(ir.U32).And(0x7FFFFFFF) }
func sign(x *ir.Value) *ir.Value      { return x.As(ir.U32).And(1 << 31) }
func nan(b *ir.Builder) *ir.Value     { return b.Const(ir.F32, 0x7FC00000) }

const (
	infBits = 0x7F800000
	minimum = 0x00800000 // bits of the smallest normal number
)

// poly evaluates c[0]·x + c[1], then times x plus c[2], and so on: Horner's form, each step two rounded operations.
func poly(x *ir.Value, c ...float32) *ir.Value {
	b := x.Builder()
	p := b.F32(c[0])
	for _, k := range c[1:] {
		p = p.Mul(x).Add(k)
	}
	return p
}

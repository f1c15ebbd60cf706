package spirv

import (
	"fmt"
	"slices"
)

// Functions that modules contain where they need them. Drivers put them in the place of the calls; modules stay small.

// helper returns a function of words, written when it is first needed.
func (p *printer) helper(name string, params int, write func(f *function, args []id) id) id {
	if h, ok := p.helpers[name]; ok {
		return h
	}
	f, args := p.newFunction(p.word, slices.Repeat([]id{p.word}, params)...)
	p.helpers[name] = f.self
	f.do(opReturnValue, write(f, args))
	f.end()
	return f.self
}

// pick returns a function for the first of two words where the comparison holds, else the second. The extended instructions
// for this won't do: optimisers of SPIR-V evaluate SMax of unsigned constants as if they were not signed.
func (p *printer) pick(compare opcode) id {
	return p.helper(fmt.Sprint("pick", compare), 2, func(f *function, args []id) id {
		return f.op(opSelect, f.test(compare, args[0], args[1]), args[0], args[1])
	})
}

// dot returns a function that adds to its third argument the products of the bytes of the others; those of the second one are
// unsigned if op is opSUDot.
func (p *printer) dot(op opcode) id {
	return p.helper(fmt.Sprint("dot", op), 3, func(f *function, args []id) id {
		x, y, sum := args[0], args[1], args[2]
		if p.model.dot {
			p.need(dotProduct)
			p.need(dotPacked)
			p.extend("SPV_KHR_integer_dot_product")
			return f.op(opIAdd, sum, f.op(op, x, y, packed4x8))
		}
		second := opBitFieldSExtract
		if op == opSUDot {
			second = opBitFieldUExtract
		}
		for at := uint32(0); at < 32; at += 8 {
			a := f.op(opBitFieldSExtract, x, p.constant(at), p.constant(8))
			b := f.op(second, y, p.constant(at), p.constant(8))
			sum = f.op(opIAdd, sum, f.op(opIMul, a, b))
		}
		return sum
	})
}

// lookup replaces the bytes of v, 0 … 15, by the table's.
func (p *printer) lookup(v id, table *[16]byte) id {
	args := []uint32{p.lookupHelper(), v}
	for n := 0; n < 16; n += 4 {
		args = append(args, p.constant(uint32(table[n])|uint32(table[n+1])<<8|uint32(table[n+2])<<16|uint32(table[n+3])<<24))
	}
	return p.f.op(opFunctionCall, args...)
}

// lookupHelper returns a function of the bytes and the table's four words.
func (p *printer) lookupHelper() id {
	entry := p.helper("entry16", 5, func(f *function, args []id) id {
		n, t := args[0], args[1:]
		bit := func(mask uint32) id {
			return f.test(opINotEqual, f.op(opBitwiseAnd, n, p.constant(mask)), p.constant(0))
		}
		low := f.op(opSelect, bit(4), t[1], t[0])
		high := f.op(opSelect, bit(4), t[3], t[2])
		at := f.op(opShiftLeftLogical, f.op(opBitwiseAnd, n, p.constant(3)), p.constant(3))
		return f.op(opBitFieldUExtract, f.op(opSelect, bit(8), high, low), at, p.constant(8))
	})
	return p.helper("lookup16", 5, func(f *function, args []id) id {
		var r id
		for at := uint32(0); at < 32; at += 8 {
			n := f.op(opBitFieldUExtract, args[0], p.constant(at), p.constant(8))
			b := f.op(opFunctionCall, entry, n, args[1], args[2], args[3], args[4])
			if at == 0 {
				r = b
			} else {
				r = f.op(opBitFieldInsert, r, b, p.constant(at), p.constant(8))
			}
		}
		return r
	})
}

// fromHalf returns a function that widens a binary16 number to the bits of a float32, exactly: integers but for one
// difference that is the same with and without flushing of subnormals.
func (p *printer) fromHalf() id {
	return p.helper("fromHalf", 1, func(f *function, args []id) id {
		c := p.constant
		a := f.op(opBitwiseAnd, args[0], c(0x7FFF))
		special := f.test(opUGreaterThanEqual, a, c(0x7C00))
		b := f.op(opIAdd, f.op(opShiftLeftLogical, a, c(13)), f.op(opSelect, special, c(0x70000000), c(0x38000000)))
		b = f.op(opBitwiseOr, b, f.op(opSelect, f.test(opUGreaterThan, a, c(0x7C00)), c(0x00400000), c(0)))
		// The unit in the last place of [0.5, 1) is 2⁻²⁴, that of subnormals.
		small := f.exact(opFSub, p.float, f.asFloat(f.op(opIAdd, a, c(0x3F000000))), p.floatConstant(0x3F000000))
		b = f.op(opSelect, f.test(opULessThan, a, c(0x0400)), f.asWord(small), b)
		return f.op(opBitwiseOr, b, f.op(opShiftLeftLogical, f.op(opBitwiseAnd, args[0], c(0x8000)), c(16)))
	})
}

// toHalf returns a function that rounds the bits of a float32 to binary16, ties to even.
func (p *printer) toHalf() id {
	return p.helper("toHalf", 1, func(f *function, args []id) id {
		c := p.constant
		a := f.op(opBitwiseAnd, args[0], c(0x7FFFFFFF))
		odd := f.op(opBitFieldUExtract, a, c(13), c(1))
		h := f.op(opShiftRightLogical, f.op(opIAdd, f.op(opIAdd, a, c(1<<32+0xFFF-0x38000000)), odd), c(13))
		h = f.op(opSelect, f.test(opUGreaterThanEqual, a, c(0x47800000)), c(0x7C00), h)
		nan := f.op(opBitwiseOr, f.op(opBitFieldUExtract, a, c(13), c(10)), c(0x7E00))
		h = f.op(opSelect, f.test(opUGreaterThan, a, c(0x7F800000)), nan, h)
		small := f.exact(opFAdd, p.float, f.asFloat(a), p.floatConstant(0x3F000000))
		h = f.op(opSelect, f.test(opULessThan, a, c(0x38800000)), f.op(opISub, f.asWord(small), c(0x3F000000)), h)
		return f.op(opBitwiseOr, h, f.op(opBitwiseAnd, f.op(opShiftRightLogical, args[0], c(16)), c(0x8000)))
	})
}

// toBF16 returns a function that rounds the bits of a float32 to bfloat16, ties to even.
func (p *printer) toBF16() id {
	return p.helper("toBF16", 1, func(f *function, args []id) id {
		c := p.constant
		h := f.op(opIAdd, f.op(opIAdd, args[0], c(0x7FFF)), f.op(opBitFieldUExtract, args[0], c(16), c(1)))
		nan := f.test(opUGreaterThan, f.op(opBitwiseAnd, args[0], c(0x7FFFFFFF)), c(0x7F800000))
		return f.op(opShiftRightLogical, f.op(opSelect, nan, f.op(opBitwiseOr, args[0], c(0x400000)), h), c(16))
	})
}

package spirv

import (
	"math/bits"

	"github.com/swizzle-rt/swizzle/ir"
)

// lazy reports values that are written where they are used: constants, what every kernel has at its entry, and sums of an
// index and a constant, most of which become parts of addresses.
func lazy(v *ir.Value) bool {
	if _, ok := constant(v); ok {
		return true
	}
	switch v.Def.Op {
	case ir.OpLane, ir.OpGroup, ir.OpTile, ir.OpIntParam, ir.OpFloatParam:
		return true
	case ir.OpAddX:
		_, ok := constant(v.Def.Args[1])
		return ok
	}
	return false
}

// constant returns the bits of v if they are known: of a constant or one of another type.
func constant(v *ir.Value) (int64, bool) {
	for v.Def != nil && v.Def.Op == ir.OpCast {
		v = v.Def.Args[0]
	}
	return v.Const()
}

// value returns the operand.
func (p *printer) value(v *ir.Value) id {
	if c, ok := constant(v); ok {
		return p.literal(v.Type, c)
	}
	if r, ok := p.ids[v]; ok {
		return r
	}
	return p.compute(v.Def)
}

func (p *printer) literal(t ir.Type, c int64) id {
	switch {
	case t == ir.Bool && c != 0:
		return p.declare(opConstantTrue, p.boolean)
	case t == ir.Bool:
		return p.declare(opConstantFalse, p.boolean)
	case t == ir.F32 && uint32(c)<<1 == 0:
		return p.zero(c != 0)
	case t == ir.F32:
		return p.floatConstant(uint32(c))
	}
	return p.constant(uint32(c))
}

// wordOf returns the operand's bits.
func (p *printer) wordOf(v *ir.Value) id {
	if v.Type == ir.F32 {
		return p.f.asWord(p.value(v))
	}
	return p.value(v)
}

// plain are the ops that are one instruction on words.
var plain = map[ir.Op]opcode{
	ir.OpAddX: opIAdd, ir.OpSubX: opISub, ir.OpMulX: opIMul, ir.OpAndX: opBitwiseAnd, ir.OpXorX: opBitwiseXor,
	ir.OpShlX: opShiftLeftLogical, ir.OpShrX: opShiftRightLogical,
	ir.OpAddI: opIAdd, ir.OpSubI: opISub, ir.OpMulI: opIMul, ir.OpAnd: opBitwiseAnd, ir.OpOr: opBitwiseOr, ir.OpXor: opBitwiseXor,
}

// compares are the ops whose result is a Bool; those of floats are false for NaN.
var compares = map[ir.Op]opcode{
	ir.OpLtX: opSLessThan, ir.OpLeX: opSLessThanEqual, ir.OpEqX: opIEqual, ir.OpLtI: opSLessThan, ir.OpLtU: opULessThan, ir.OpEqI: opIEqual,
	ir.OpLtF: opFOrdLessThan, ir.OpLeF: opFOrdLessThanEqual, ir.OpEqF: opFOrdEqual,
	ir.OpAndB: opLogicalAnd, ir.OpOrB: opLogicalOr, ir.OpNotB: opLogicalNot,
}

// picks are the ops that are the first of two words where a comparison holds, else the second.
var picks = map[ir.Op]opcode{
	ir.OpMinX: opSLessThan, ir.OpMinI: opSLessThan, ir.OpMaxX: opSGreaterThan, ir.OpMaxI: opSGreaterThan, ir.OpMaxU: opUGreaterThan,
}

// floats are the ops of float arithmetic.
var floats = map[ir.Op]opcode{ir.OpAddF: opFAdd, ir.OpSubF: opFSub, ir.OpMulF: opFMul}

// compute writes a lane-wise instruction and returns its result.
func (p *printer) compute(i *ir.Instr) id {
	f := p.f
	args := make([]uint32, len(i.Args))
	for n, v := range i.Args {
		args[n] = p.value(v)
	}
	if op, ok := plain[i.Op]; ok {
		return f.op(op, args...)
	}
	if op, ok := floats[i.Op]; ok {
		return f.exact(op, p.float, args...)
	}
	if op, ok := compares[i.Op]; ok {
		if i.Args[0].Type == ir.F32 {
			return f.exact(op, p.boolean, args...)
		}
		return f.test(op, args...)
	}
	if op, ok := picks[i.Op]; ok {
		return f.op(opFunctionCall, p.pick(op), args[0], args[1])
	}
	switch i.Op {
	case ir.OpLane:
		return p.lane()
	case ir.OpGroup:
		if p.k.Groups > 1 {
			return f.once(opShiftRightLogical, p.word, p.self(), p.constant(5))
		}
		return p.constant(0)
	case ir.OpTile:
		return p.tileID[i.Imm]
	case ir.OpIntParam:
		return p.argument(int(i.Imm))
	case ir.OpFloatParam:
		return p.floatArgument(int(i.Imm))
	case ir.OpDivX, ir.OpModX:
		return p.divide(i.Op, args[0], args[1])
	case ir.OpToIndex, ir.OpFromIndex:
		return args[0]
	case ir.OpCast:
		return p.cast(i.Results[0].Type, i.Args[0])
	case ir.OpSelect:
		return f.value(opSelect, p.typeOf(i.Results[0].Type), args...)
	case ir.OpToF32:
		return f.value(opConvertSToF, p.float, args[0])
	case ir.OpFMAExact: // exact products: fused or not, the result is the same
		return f.exact(opExtInst, p.float, p.instructions(), glslFma, args[0], args[1], args[2])
	case ir.OpShl:
		return p.shift(opShiftLeftLogical, args[0], args[1])
	case ir.OpShrU:
		return p.shift(opShiftRightLogical, args[0], args[1])
	case ir.OpShrI:
		return p.shift(opShiftRightArithmetic, args[0], args[1])
	case ir.OpDot4US:
		return f.op(opFunctionCall, p.dot(opSUDot), args[1], args[0], args[2])
	case ir.OpDot4SS:
		return f.op(opFunctionCall, p.dot(opSDot), args[0], args[1], args[2])
	case ir.OpLookup16:
		return p.lookup(args[0], i.Table)
	}
	p.fail(i, "no SPIR-V for %s", i.Op)
	return args[0]
}

// lane returns the lane's number in its group.
func (p *printer) lane() id {
	if p.k.Groups == 1 {
		return p.self()
	}
	return p.f.once(opBitwiseAnd, p.word, p.self(), p.constant(31))
}

// instructions returns the set of extended instructions.
func (m *module) instructions() id {
	if m.glsl == 0 {
		m.glsl = m.newID()
	}
	return m.glsl
}

func (p *printer) cast(t ir.Type, v *ir.Value) id {
	switch {
	case t == ir.F32 && v.Type != ir.F32:
		return p.f.asFloat(p.value(v))
	case t != ir.F32:
		return p.wordOf(v)
	}
	return p.value(v)
}

// divide divides indices, which are not negative.
func (p *printer) divide(op ir.Op, x, y id) id {
	f := p.f
	if c, ok := p.bits[y]; ok && c&(c-1) == 0 && c > 0 {
		if op == ir.OpModX {
			return f.op(opBitwiseAnd, x, p.constant(c-1))
		}
		return f.op(opShiftRightLogical, x, p.constant(uint32(bits.TrailingZeros32(c))))
	}
	if op == ir.OpModX {
		return f.op(opUMod, x, y)
	}
	return f.op(opUDiv, x, y)
}

// shift shifts words; a distance of 32 or more, which SPIR-V leaves undefined, shifts everything out.
func (p *printer) shift(op opcode, x, by id) id {
	f := p.f
	if c, ok := p.bits[by]; ok {
		switch {
		case c < 32:
			return f.op(op, x, by)
		case op == opShiftRightArithmetic:
			return f.op(op, x, p.constant(31))
		}
		return p.constant(0)
	}
	low := f.test(opULessThan, by, p.constant(32))
	if op == opShiftRightArithmetic {
		return f.op(op, x, f.op(opSelect, low, by, p.constant(31)))
	}
	return f.op(opSelect, low, f.op(op, x, f.op(opBitwiseAnd, by, p.constant(31))), p.constant(0))
}

package spirv

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
)

// crossLane holds what ops across lanes share: functions exchange words between the lanes of a group through shared memory,
// or by shuffles between the lanes of a subgroup.
//
// Shared memory has two halves of a word a lane. An exchange writes to one of them, waits at a barrier and reads; the next one
// takes the other half, so that nobody writes where another lane may still read, with one barrier an exchange.
type crossLane struct {
	scratch id // array of two words a lane
	half    id // private: index of the half that is next
	self    id // private: number of the lane in its workgroup
	size    id // lanes of a subgroup, a specialisation constant
}

// start declares what exchanges need.
func (p *printer) start() {
	c := &p.cross
	if c.scratch != 0 {
		return
	}
	n := uint32(p.threads())
	c.scratch = p.variable(inWorkgroup, p.declare(opTypeArray, 0, p.word, p.constant(2*n)))
	c.half = p.variable(inPrivate, p.word, p.constant(0))
	c.self = p.variable(inPrivate, p.word)
	p.f.entry = instruction(p.f.entry, opStore, 0, 0, c.self, p.self())
}

// self returns the number of the lane in its workgroup.
//
// Lanes are numbered along subgroups, so that those of a subgroup are neighbours: SPIR-V doesn't say how a workgroup is cut
// into subgroups.
func (p *printer) self() id {
	f := p.f
	load := func(number uint32) id { return f.once(opLoad, p.word, p.input(number, p.word)) }
	if !p.model.subgroup || scratchBytes(p.k) == 0 {
		return load(invocationIndex)
	}
	p.need(subgroupBasic)
	several := p.declare(opSpecConstantOp, p.boolean, uint32(opUGreaterThan), p.subgroupSize(), p.constant(1))
	along := f.once(opIAdd, p.word, f.once(opIMul, p.word, load(subgroupID), p.subgroupSize()), load(subgroupLane))
	return f.once(opSelect, p.word, several, along, load(invocationIndex))
}

// subgroupSize returns the number of lanes of a subgroup, 1 where nothing is known.
func (p *printer) subgroupSize() id {
	c := &p.cross
	if c.size == 0 {
		c.size = p.newID()
		p.globals = instruction(p.globals, opSpecConstant, p.word, c.size, 1)
		p.decorate(c.size, specID, 0)
	}
	return c.size
}

// exchange writes an op across lanes and returns its result.
func (p *printer) exchange(i *ir.Instr) id {
	p.start()
	v := p.wordOf(i.Args[0])
	call := func(args ...uint32) id { return p.f.result(opFunctionCall, p.word, args...) }
	var r id
	switch i.Op {
	case ir.OpShuffleXor:
		r = call(p.shuffle(uint32(i.Imm)), v)
	case ir.OpReadLane:
		r = call(p.read(), v, p.constant(uint32(i.Imm)))
	case ir.OpPackLanes4:
		r = call(p.pack(), v)
	case ir.OpFoldAddF:
		r = call(p.fold("foldAddF", func(f *function, x, y id) id { return f.asWord(f.exact(opFAdd, p.float, f.asFloat(x), f.asFloat(y))) }), v)
	case ir.OpFoldAddI:
		r = call(p.fold("foldAddI", func(f *function, x, y id) id { return f.op(opIAdd, x, y) }), v)
	case ir.OpFoldMaxU:
		r = call(p.fold("foldMaxU", func(f *function, x, y id) id { return f.op(opSelect, f.test(opUGreaterThan, x, y), x, y) }), v)
	case ir.OpFoldMaxF:
		r = call(p.foldMax(), v)
	}
	if i.Results[0].Type == ir.F32 {
		return p.f.asFloat(r)
	}
	return r
}

// through returns a function that gives a word to the other lanes and takes that of the lane whose number in the workgroup is
// the second argument.
func (p *printer) through() id {
	return p.helper("through", 2, func(f *function, args []id) id {
		c := &p.cross
		half := f.result(opLoad, p.word, c.half)
		f.do(opStore, c.half, f.op(opBitwiseXor, half, p.constant(uint32(p.threads()))))
		at := func(lane id) id {
			return f.value(opAccessChain, p.pointerTo(inWorkgroup, p.word), c.scratch, f.op(opIAdd, half, lane))
		}
		f.do(opStore, at(f.result(opLoad, p.word, c.self)), args[0])
		f.barrier()
		return f.result(opLoad, p.word, at(args[1]))
	})
}

// shuffle returns a function for the word of the lane whose number differs by the mask. Lanes that differ by less than the size
// of a subgroup are in one.
func (p *printer) shuffle(mask uint32) id {
	return p.helper(fmt.Sprint("shuffle", mask), 1, func(f *function, args []id) id {
		return p.near(f, mask+1, func() id {
			return f.result(opShuffleXor, p.word, p.constant(scopeSubgroup), args[0], p.constant(mask))
		}, func() id {
			return f.result(opFunctionCall, p.word, p.through(), args[0], f.op(opBitwiseXor, f.result(opLoad, p.word, p.cross.self), p.constant(mask)))
		})
	})
}

// read returns a function of a word and a lane's number in its group: that lane's word.
func (p *printer) read() id {
	return p.helper("read", 2, func(f *function, args []id) id {
		in := func(number id) id {
			return f.op(opBitwiseOr, f.op(opBitwiseAnd, number, p.constant(^uint32(31))), args[1])
		}
		return p.near(f, 32, func() id {
			return f.result(opShuffle, p.word, p.constant(scopeSubgroup), args[0], in(f.result(opLoad, p.word, p.input(subgroupLane, p.word))))
		}, func() id {
			return f.result(opFunctionCall, p.word, p.through(), args[0], in(f.result(opLoad, p.word, p.cross.self)))
		})
	})
}

// near returns what inside gives where subgroups have that many lanes or more, else what outside gives. The condition is a
// constant when the pipeline is made.
func (p *printer) near(f *function, lanes uint32, inside, outside func() id) id {
	if !p.model.subgroup {
		return outside()
	}
	p.need(subgroupShuffle)
	enough := p.declare(opSpecConstantOp, p.boolean, uint32(opUGreaterThanEqual), p.subgroupSize(), p.constant(lanes))
	return f.choose(enough, p.word, inside, outside)
}

// pack returns a function that joins the low bytes of four neighbouring lanes.
func (p *printer) pack() id {
	return p.helper("pack", 1, func(f *function, args []id) id {
		quarter := f.op(opBitwiseAnd, f.result(opLoad, p.word, p.cross.self), p.constant(3))
		low := f.op(opBitwiseAnd, args[0], p.constant(0xFF))
		v := f.op(opShiftLeftLogical, low, f.op(opShiftLeftLogical, quarter, p.constant(3)))
		for mask := uint32(1); mask < 4; mask *= 2 {
			v = f.op(opBitwiseOr, v, f.result(opFunctionCall, p.word, p.shuffle(mask), v))
		}
		return v
	})
}

// fold returns a function that joins the words of a group's lanes by strides 16 … 1. Each lane joins its own word with that of
// the lane a stride away: since join commutes, all lanes end with the result of the first.
func (p *printer) fold(name string, join func(f *function, x, y id) id) id {
	return p.helper(name, 1, func(f *function, args []id) id {
		v := args[0]
		for stride := uint32(16); stride > 0; stride /= 2 {
			v = join(f, v, f.result(opFunctionCall, p.word, p.shuffle(stride), v))
		}
		return v
	})
}

// foldMax returns a function for the maximum of floats that are not NaN, through signed integers of the same order: the bits,
// those of negative numbers but the sign inverted.
func (p *printer) foldMax() id {
	max := p.fold("foldMaxI", func(f *function, x, y id) id { return f.op(opSelect, f.test(opSGreaterThan, x, y), x, y) })
	return p.helper("foldMaxF", 1, func(f *function, args []id) id {
		order := func(v id) id {
			sign := f.op(opShiftRightArithmetic, v, p.constant(31))
			return f.op(opBitwiseXor, v, f.op(opShiftRightLogical, sign, p.constant(1)))
		}
		const infinity = 0x7F800000
		nan := f.test(opUGreaterThan, f.op(opBitwiseAnd, args[0], p.constant(0x7FFFFFFF)), p.constant(infinity))
		v := f.op(opSelect, nan, p.constant(1<<31|infinity), args[0])
		return order(f.result(opFunctionCall, p.word, max, order(v)))
	})
}

package spirv

import (
	"fmt"
	"maps"

	"github.com/swizzle-rt/swizzle/ir"
)

// place is a *ir.Param or *ir.Array.
type place any

func placeOf(m ir.Memory) place {
	if m.Param != nil {
		return m.Param
	}
	return m.Array
}

// view is memory seen as elements of that many bytes.
type view struct {
	place place
	bytes int
}

// seen lists the element types that memory is seen as.
func seen(k *ir.Kernel) map[place]map[ir.Type]bool {
	types := map[place]map[ir.Type]bool{}
	see := func(m ir.Memory, t ir.Type) {
		at := placeOf(m)
		if types[at] == nil {
			types[at] = map[ir.Type]bool{}
		}
		types[at][t] = true
	}
	ir.Walk(k.Body, func(s ir.Stmt) {
		i, ok := s.(*ir.Instr)
		switch {
		case !ok:
		case i.Op == ir.OpLoad || i.Op == ir.OpStore:
			see(i.Mem, i.Mem.Type)
		case i.Op == ir.OpAsyncCopy: // of words, whatever they are
			see(i.Mem, ir.U32)
			see(i.Mem2, ir.U32)
		}
	})
	return types
}

// floatsOnly reports memory that is seen as F32 and nothing else: its elements are declared as floats.
func (p *printer) floatsOnly(m ir.Memory) bool {
	return maps.Equal(p.seen[placeOf(m)], map[ir.Type]bool{ir.F32: true})
}

// aliased reports memory that is declared with elements of several sizes.
func (p *printer) aliased(m ir.Memory) bool {
	sizes := map[int]bool{}
	for t := range p.seen[placeOf(m)] {
		sizes[t.Bytes()] = true
	}
	return len(sizes) > 1 && p.model.narrow
}

// cell is the type of the elements that memory is declared with, and its bytes.
func (p *printer) cell(m ir.Memory) (typ id, bytes int) {
	switch n := m.Type.Bytes(); {
	case p.floatsOnly(m):
		return p.float, 4
	case n == 4 || m.Array != nil || !p.model.narrow:
		return p.word, 4
	case n == 2:
		p.need(storage16)
		return p.declare(opTypeInt, 0, 16, 0), 2
	}
	p.need(storage8)
	p.extend("SPV_KHR_8bit_storage")
	return p.declare(opTypeInt, 0, 8, 0), 1
}

// variableOf returns the variable of memory with those elements.
func (p *printer) variableOf(m ir.Memory, typ id, bytes int) id {
	at := view{placeOf(m), bytes}
	if v, ok := p.views[at]; ok {
		return v
	}
	var v id
	if m.Array != nil {
		words := uint32(m.Array.Bytes()+3) / 4
		v = p.variable(inWorkgroup, p.declare(opTypeArray, 0, typ, p.constant(words)))
	} else {
		array := p.stride(p.declare(opTypeRuntimeArray, 0, typ), uint32(bytes))
		v = p.variable(inStorage, p.structOf(array))
		p.decorate(v, descriptorSet, 0)
		p.decorate(v, binding, uint32(m.Param.Slot))
		if m.Param.Access == ir.In {
			p.decorate(v, nonWritable)
		} else if p.aliased(m) {
			p.decorate(v, aliased)
		}
	}
	p.views[at] = v
	return v
}

// pointer returns a pointer to a cell of memory.
func (p *printer) pointer(f *function, m ir.Memory, x id) id {
	typ, bytes := p.cell(m)
	v := p.variableOf(m, typ, bytes)
	if m.Array != nil {
		return f.value(opAccessChain, p.pointerTo(inWorkgroup, typ), v, x)
	}
	return f.value(opAccessChain, p.pointerTo(inStorage, typ), v, p.constant(0), x)
}

// index is where an access starts: a variable part, 0 for none, and a constant.
type index struct {
	variable id
	constant int64
}

func (p *printer) index(v *ir.Value) index {
	if c, ok := v.Const(); ok {
		return index{0, c}
	}
	if v.Def != nil && v.Def.Op == ir.OpAddX {
		if c, ok := v.Def.Args[1].Const(); ok {
			return index{p.value(v.Def.Args[0]), c}
		}
	}
	return index{p.value(v), 0}
}

// at returns the index of element n from there.
func (p *printer) at(x index, n int) id {
	c := x.constant + int64(n)
	switch {
	case x.variable == 0:
		return p.constant(uint32(c))
	case c == 0:
		return x.variable
	}
	return p.f.op(opIAdd, x.variable, p.constant(uint32(c)))
}

// guarded replaces the index by 0, which every buffer has, where the mask doesn't hold.
func (p *printer) guarded(x index, mask id) index {
	return index{p.f.op(opSelect, mask, p.at(x, 0), p.constant(0)), 0}
}

// ---- loads

func (p *printer) load(i *ir.Instr) {
	f := p.f
	x := p.index(i.Args[0])
	var mask id
	if i.Args[1] != nil {
		mask = p.value(i.Args[1])
		x = p.guarded(x, mask)
	}
	for n, r := range i.Results {
		v := p.element(i.Mem, p.at(x, n))
		if mask != 0 {
			v = f.value(opSelect, p.typeOf(r.Type), mask, v, p.literal(r.Type, 0))
		}
		p.ids[r] = v
	}
}

// element loads an element, widened.
func (p *printer) element(m ir.Memory, x id) id {
	f := p.f
	typ, bytes := p.cell(m)
	if bytes == m.Type.Bytes() {
		v := f.result(opLoad, typ, p.pointer(f, m, x))
		switch {
		case typ == p.float:
			return v
		case bytes < 4 && signed(m.Type):
			v = f.op(opSConvert, v)
		case bytes < 4:
			v = f.op(opUConvert, v)
		}
		return p.widen(m.Type, v)
	}
	part := p.helper("load "+m.Type.String()+m.Name(), 1, func(f *function, args []id) id {
		word, shift := p.inWord(f, args[0], m.Type.Bytes())
		v := f.result(opLoad, p.word, p.pointer(f, m, word))
		extract := opBitFieldUExtract
		if signed(m.Type) {
			extract = opBitFieldSExtract
		}
		return f.op(extract, v, shift, p.constant(uint32(8*m.Type.Bytes())))
	})
	return p.widen(m.Type, f.result(opFunctionCall, p.word, part, x))
}

func signed(t ir.Type) bool { return t == ir.I8 || t == ir.I16 }

// widen returns what the bits of an element are in a register.
func (p *printer) widen(t ir.Type, v id) id {
	f := p.f
	switch t {
	case ir.F32:
		return f.asFloat(v)
	case ir.F16:
		return f.asFloat(f.op(opFunctionCall, p.fromHalf(), v))
	case ir.BF16:
		return f.asFloat(f.op(opShiftLeftLogical, v, p.constant(16)))
	}
	return v
}

// inWord returns the word that holds element x of that many bytes, and by how many bits it is shifted there.
func (p *printer) inWord(f *function, x id, size int) (word, shift id) {
	if size == 2 {
		return f.op(opShiftRightLogical, x, p.constant(1)), f.op(opShiftLeftLogical, f.op(opBitwiseAnd, x, p.constant(1)), p.constant(4))
	}
	return f.op(opShiftRightLogical, x, p.constant(2)), f.op(opShiftLeftLogical, f.op(opBitwiseAnd, x, p.constant(3)), p.constant(3))
}

// ---- stores

// store writes elements where the mask holds. What is the same for a lane group its first lane stores.
func (p *printer) store(i *ir.Instr) {
	f := p.f
	x := p.index(i.Args[0])
	var cond id
	span := ir.Block
	for _, v := range i.Args {
		if v != nil {
			span = max(span, v.Span)
		}
	}
	if i.Args[1] != nil {
		cond = p.value(i.Args[1])
	}
	if span != ir.Varying {
		first := f.test(opIEqual, p.lane(), p.constant(0))
		if cond != 0 {
			first = f.test(opLogicalAnd, cond, first)
		}
		cond = first
	}
	var values []id
	for _, v := range i.Args[2:] {
		values = append(values, p.narrowed(i.Mem, v))
	}
	write := func() {
		for n, v := range values {
			p.put(i.Mem, p.at(x, n), v)
		}
	}
	if cond == 0 {
		write()
		return
	}
	f.when(cond, write)
}

// narrowed returns the value as it is stored, bits beyond an element's undefined.
func (p *printer) narrowed(m ir.Memory, v *ir.Value) id {
	switch {
	case m.Type == ir.F16:
		return p.f.op(opFunctionCall, p.toHalf(), p.wordOf(v))
	case m.Type == ir.BF16:
		return p.f.op(opFunctionCall, p.toBF16(), p.wordOf(v))
	case p.floatsOnly(m):
		return p.value(v)
	}
	return p.wordOf(v)
}

// put stores an element.
func (p *printer) put(m ir.Memory, x, v id) {
	f := p.f
	typ, bytes := p.cell(m)
	size := m.Type.Bytes()
	switch {
	case size == 4:
		f.do(opStore, p.pointer(f, m, x), v)
	case size == bytes:
		f.do(opStore, p.pointer(f, m, x), f.value(opUConvert, typ, v))
	default:
		// The result is of no use, but spares a type of functions.
		part := p.helper("store "+fmt.Sprint(size)+m.Name(), 2, func(f *function, args []id) id { return p.putPart(f, m, args[0], args[1]) })
		f.result(opFunctionCall, p.word, part, x, v)
	}
}

// putPart stores an element as part of a word, whose other parts other lanes may be storing.
func (p *printer) putPart(f *function, m ir.Memory, x, v id) id {
	size := m.Type.Bytes()
	word, shift := p.inWord(f, x, size)
	at := p.pointer(f, m, word)
	ones := p.constant(1<<(8*size) - 1)
	scope := p.constant(scopeDevice)
	if m.Array != nil {
		scope = p.constant(scopeWorkgroup)
	}
	keep := f.op(opNot, f.op(opShiftLeftLogical, ones, shift))
	f.result(opAtomicAnd, p.word, at, scope, p.constant(relaxed), keep)
	return f.result(opAtomicOr, p.word, at, scope, p.constant(relaxed), f.op(opShiftLeftLogical, f.op(opBitwiseAnd, v, ones), shift))
}

// copy16 copies 16 bytes from a buffer to a shared array, zeros where the mask doesn't hold.
func (p *printer) copy16(i *ir.Instr) {
	f := p.f
	words := func(m ir.Memory, x index) (ir.Memory, index) {
		per := 4 / m.Type.Bytes()
		if per > 1 {
			x = index{p.divide(ir.OpDivX, p.at(x, 0), p.constant(uint32(per))), 0}
		}
		return m.As(ir.U32), x
	}
	to, at := words(i.Mem, p.index(i.Args[0]))
	from, x := words(i.Mem2, p.index(i.Args[1]))
	var mask id
	if i.Args[2] != nil {
		mask = p.value(i.Args[2])
		x = p.guarded(x, mask)
	}
	for n := range 4 {
		v := p.element(from, p.at(x, n))
		if mask != 0 {
			v = f.op(opSelect, mask, v, p.constant(0))
		}
		p.put(to, p.at(at, n), v)
	}
}

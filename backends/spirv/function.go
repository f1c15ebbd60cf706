package spirv

// function writes one function. Its first block begins with variables and the instructions of entry; everything of entry may
// be used anywhere. Results without effects are shared within the block that computes them and the blocks inside.
type function struct {
	m     *module
	head  []uint32
	vars  []uint32
	entry []uint32
	body  []uint32
	known []map[key]id // the innermost scope last; the first one is that of entry
	twin  map[id]id    // a value as the other of word and float
	open  id           // label of the block being written
	self  id           // the function itself
	first id           // label of the first block
}

// newFunction starts a function with parameters of these types.
func (m *module) newFunction(result id, params ...id) (f *function, args []id) {
	f = &function{m: m, known: []map[key]id{{}, {}}, twin: map[id]id{}, self: m.newID(), first: m.newID()}
	f.open = f.first
	typ := m.declare(opTypeFunction, 0, append([]uint32{result}, params...)...)
	f.head = instruction(nil, opFunction, result, f.self, 0, typ)
	for _, p := range params {
		a := m.newID()
		f.head = instruction(f.head, opFunctionParameter, p, a)
		args = append(args, a)
	}
	return f, args
}

// end adds the function to the module.
func (f *function) end() {
	m := f.m
	m.functions = append(m.functions, f.head...)
	m.functions = instruction(m.functions, opLabel, 0, f.first)
	m.functions = append(append(append(m.functions, f.vars...), f.entry...), f.body...)
	m.functions = instruction(m.functions, opFunctionEnd, 0, 0)
}

// local declares a variable of the function.
func (f *function) local(typ id) id {
	v := f.m.newID()
	f.vars = instruction(f.vars, opVariable, f.m.pointerTo(inFunction, typ), v, inFunction)
	return v
}

// scope runs body; what it computes is forgotten after.
func (f *function) scope(body func()) {
	f.known = append(f.known, map[key]id{})
	body()
	f.known = f.known[:len(f.known)-1]
}

// value returns the result of an instruction without effects, computed here or before.
func (f *function) value(op opcode, typ id, args ...uint32) id {
	k := keyOf(op, typ, args)
	for _, known := range f.known {
		if r, ok := known[k]; ok {
			return r
		}
	}
	r := f.result(op, typ, args...)
	f.known[len(f.known)-1][k] = r
	return r
}

// once is value in the function's entry; its arguments are from there.
func (f *function) once(op opcode, typ id, args ...uint32) id {
	k := keyOf(op, typ, args)
	if r, ok := f.known[0][k]; ok {
		return r
	}
	r := f.m.newID()
	f.entry = instruction(f.entry, op, typ, r, args...)
	f.known[0][k] = r
	return r
}

// result writes an instruction and returns its result.
func (f *function) result(op opcode, typ id, args ...uint32) id {
	r := f.m.newID()
	f.body = instruction(f.body, op, typ, r, args...)
	return r
}

// do writes an instruction without result.
func (f *function) do(op opcode, args ...uint32) { f.body = instruction(f.body, op, 0, 0, args...) }

// label starts a block.
func (f *function) label(l id) {
	f.body = instruction(f.body, opLabel, 0, l)
	f.open = l
}

// exact is value of an instruction on floats, which must be executed as written.
func (f *function) exact(op opcode, typ id, args ...uint32) id {
	before := f.m.bound
	r := f.value(op, typ, args...)
	if r >= before {
		f.m.exact = append(f.m.exact, r)
	}
	return r
}

func (f *function) op(op opcode, args ...uint32) id   { return f.value(op, f.m.word, args...) }
func (f *function) test(op opcode, args ...uint32) id { return f.value(op, f.m.boolean, args...) }

// asFloat returns the word as a float of the same bits.
func (f *function) asFloat(word id) id { return f.cast(f.m.float, word) }

// asWord returns the bits of a float.
func (f *function) asWord(float id) id { return f.cast(f.m.word, float) }

func (f *function) cast(typ, v id) id {
	if t, ok := f.twin[v]; ok {
		return t
	}
	r := f.value(opBitcast, typ, v)
	f.twin[r] = v
	return r
}

// when runs body where the condition holds.
func (f *function) when(cond id, body func()) {
	then, after := f.m.newID(), f.m.newID()
	f.do(opSelectionMerge, after, 0)
	f.do(opBranchConditional, cond, then, after)
	f.label(then)
	f.scope(body)
	f.do(opBranch, after)
	f.label(after)
}

// choose returns the result of yes or no, of that type.
func (f *function) choose(cond, typ id, yes, no func() id) id {
	then, other, after := f.m.newID(), f.m.newID(), f.m.newID()
	f.do(opSelectionMerge, after, 0)
	f.do(opBranchConditional, cond, then, other)
	var phi []uint32
	arm := func(label id, body func() id) {
		f.label(label)
		f.scope(func() { phi = append(phi, body()) })
		phi = append(phi, f.open)
		f.do(opBranch, after)
	}
	arm(then, yes)
	arm(other, no)
	f.label(after)
	return f.result(opPhi, typ, phi...)
}

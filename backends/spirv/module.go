package spirv

import (
	"encoding/binary"
	"slices"
)

// id names a result.
type id = uint32

// module collects the sections of a SPIR-V module. Types, constants and global variables that are alike are declared once.
type module struct {
	capabilities []capability
	extensions   []string
	inputs       []id // built-in variables
	decorations  []uint32
	exact        []id     // results decorated with NoContraction
	globals      []uint32 // declarations of types, constants and variables
	functions    []uint32

	bound   id
	known   map[key]id
	bits    map[id]uint32 // of word constants
	helpers map[string]id // functions by name
	glsl    id            // extended instructions, 0 if unused

	void, boolean, word, float id
}

// key is an instruction without its result.
type key struct {
	op    opcode
	typ   id
	args  [8]uint32
	count int
}

func keyOf(op opcode, typ id, args []uint32) key {
	k := key{op: op, typ: typ, count: len(args)}
	copy(k.args[:], args)
	return k
}

func newModule() *module {
	m := &module{bound: 1, known: map[key]id{}, bits: map[id]uint32{}, helpers: map[string]id{}}
	m.need(shader)
	m.void = m.declare(opTypeVoid, 0)
	m.boolean = m.declare(opTypeBool, 0)
	m.word = m.declare(opTypeInt, 0, 32, 0)
	m.float = m.declare(opTypeFloat, 0, 32)
	return m
}

func (m *module) newID() id {
	m.bound++
	return m.bound - 1
}

func (m *module) need(c capability) {
	if !slices.Contains(m.capabilities, c) {
		m.capabilities = append(m.capabilities, c)
	}
}

func (m *module) extend(name string) {
	if !slices.Contains(m.extensions, name) {
		m.extensions = append(m.extensions, name)
	}
}

// instruction appends an instruction; of type and result 0 stands for none.
func instruction(out []uint32, op opcode, typ, result id, args ...uint32) []uint32 {
	start := len(out)
	out = append(out, 0)
	if typ != 0 {
		out = append(out, typ)
	}
	if result != 0 {
		out = append(out, result)
	}
	out = append(out, args...)
	out[start] = uint32(len(out)-start)<<16 | uint32(op)
	return out
}

// declare returns the type or constant, declared if it is new.
func (m *module) declare(op opcode, typ id, args ...uint32) id {
	k := keyOf(op, typ, args)
	if r, ok := m.known[k]; ok {
		return r
	}
	r := m.newID()
	m.globals = instruction(m.globals, op, typ, r, args...)
	m.known[k] = r
	return r
}

// variable declares a global variable.
func (m *module) variable(class uint32, typ id, initial ...uint32) id {
	r := m.newID()
	m.globals = instruction(m.globals, opVariable, m.pointerTo(class, typ), r, append([]uint32{class}, initial...)...)
	return r
}

func (m *module) pointerTo(class uint32, typ id) id {
	return m.declare(opTypePointer, 0, class, typ)
}

// constant returns a word.
func (m *module) constant(bits uint32) id {
	r := m.declare(opConstant, m.word, bits)
	m.bits[r] = bits
	return r
}

// floatConstant returns the float of those bits.
func (m *module) floatConstant(bits uint32) id { return m.declare(opConstant, m.float, bits) }

func (m *module) decorate(target id, what ...uint32) {
	m.decorations = instruction(m.decorations, opDecorate, 0, target, what...)
}

// input returns a built-in variable.
func (m *module) input(number uint32, typ id) id {
	k := key{op: opVariable, typ: typ, args: [8]uint32{inInput, number}}
	if v, ok := m.known[k]; ok {
		return v
	}
	v := m.variable(inInput, typ)
	m.decorate(v, builtIn, number)
	m.inputs = append(m.inputs, v)
	m.known[k] = v
	return v
}

// structOf returns the type of a block that holds one member of that type at offset 0.
func (m *module) structOf(member id) id {
	k := key{op: opTypeStruct, args: [8]uint32{member}, count: 1}
	if s, ok := m.known[k]; ok {
		return s
	}
	s := m.declare(opTypeStruct, 0, member)
	m.decorate(s, block)
	m.decorations = instruction(m.decorations, opMemberDecorate, 0, s, 0, offset, 0)
	return s
}

// stride decorates an array type, once.
func (m *module) stride(array id, bytes uint32) id {
	k := key{op: opDecorate, args: [8]uint32{array, arrayStride, bytes}}
	if _, ok := m.known[k]; !ok {
		m.known[k] = array
		m.decorate(array, arrayStride, bytes)
	}
	return array
}

// literal returns a string as words, ended by zero.
func literal(s string) []uint32 {
	b := append([]byte(s), make([]byte, 4-len(s)%4)...)
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// binary returns the whole module with its entry point.
func (m *module) binary(entry id, name, header string, threads int) []byte {
	out := []uint32{magic, version, 0, 0, 0}
	add := func(op opcode, args ...uint32) { out = instruction(out, op, 0, 0, args...) }
	for _, c := range m.capabilities {
		add(opCapability, uint32(c))
	}
	for _, e := range m.extensions {
		add(opExtension, literal(e)...)
	}
	if m.glsl != 0 {
		add(opExtInstImport, append([]uint32{m.glsl}, literal("GLSL.std.450")...)...)
	}
	add(opMemoryModel, addressingLogical, memoryGLSL450)
	add(opEntryPoint, slices.Concat([]uint32{modelGLCompute, entry}, literal(name), m.inputs)...)
	add(opExecutionMode, entry, modeLocalSize, uint32(threads), 1, 1)
	if header != "" {
		add(opModuleProcessed, literal(header)...)
	}
	out = append(out, m.decorations...)
	if len(m.exact) > 0 {
		group := m.newID()
		add(opDecorate, group, noContraction)
		add(opDecorationGroup, group)
		for part := range slices.Chunk(m.exact, 1<<15) {
			add(opGroupDecorate, append([]uint32{group}, part...)...)
		}
	}
	out = append(out, m.globals...)
	out = append(out, m.functions...)
	out[3] = m.bound
	text := make([]byte, 0, 4*len(out))
	for _, w := range out {
		text = binary.LittleEndian.AppendUint32(text, w)
	}
	return text
}

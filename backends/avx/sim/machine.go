package sim

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/ir"
)

// Machine runs one kernel. It is not safe for concurrent use.
type Machine struct {
	name    string
	program []*instruction
	globals []region
	frame   int // bytes of local variables
	limit   int // steps of a run

	registers
	memory
	symbols map[string]uint64
	args    uint64 // address of the arguments in the caller's frame
	locals  uint64 // address of the local variables
	pc      int    // of the next instruction
	current int    // of the instruction being executed
	done    bool
	err     error
}

// maxSteps stops endless loops; a simulated second is about ten million steps.
const maxSteps = 1 << 28

// New prepares a function that avo's passes have compiled: registers allocated and bound. arch is avx2, avxvnni or
// avx512vnni; data are the DATA sections that the function refers to. Everything that can be seen without running is checked
// here: opcodes, encodings, registers and labels.
func New(f *ir.Function, arch string, data ...*ir.Global) (*Machine, error) {
	features, ok := architectures[arch]
	if !ok {
		return nil, fmt.Errorf("simulate %s: architecture %q: supported are avx2, avxvnni and avx512vnni", f.Name, arch)
	}
	m := &Machine{name: f.Name, frame: f.LocalSize, limit: maxSteps}
	known := map[string]bool{}
	for _, g := range data {
		p, err := globalBytes(g)
		if err != nil {
			return nil, fmt.Errorf("simulate %s: %w", f.Name, err)
		}
		m.globals = append(m.globals, region{name: g.Symbol.Name, data: p})
		known[g.Symbol.Name] = true
	}
	var err error
	if m.program, err = decode(f, features, known); err != nil {
		return nil, fmt.Errorf("simulate %s for %s: %w", f.Name, arch, err)
	}
	return m, nil
}

// Buffer is the contents of a buffer argument. Its address is a multiple of 64.
type Buffer struct {
	Data     []byte
	Writable bool
}

// Slots of the kernels' argument block and where they begin: what runtime/kernel declares as Args.
const (
	buffers = 12
	ints    = 12
	floats  = 4

	intsOffset    = 8 * buffers
	floatsOffset  = intsOffset + 8*ints
	scratchOffset = floatsOffset + 4*floats
	argsSize      = scratchOffset + 8
)

// Args are a kernel's arguments, with the buffers' contents in place of pointers. A buffer without data is a nil pointer.
type Args struct {
	Buf     [buffers]Buffer
	Int     [ints]int64
	F32     [floats]float32
	Scratch int // bytes of scratch that the kernel may use
}

// Run executes the kernel for the tiles lo … hi−1. The kernel writes into the buffers' data. The error names the first
// instruction that did something wrong.
func (m *Machine) Run(a *Args, lo, hi int) error {
	m.registers = registers{}
	m.memory = memory{}
	m.symbols = map[string]uint64{}
	m.err = nil

	args := make([]byte, argsSize)
	for i, b := range a.Buf {
		if b.Data == nil {
			continue
		}
		r := region{name: fmt.Sprintf("buffer %d", i), data: b.Data, tail: -len(b.Data) & 63, writable: b.Writable}
		binary.LittleEndian.PutUint64(args[8*i:], m.place(r))
	}
	for i, x := range a.Int {
		binary.LittleEndian.PutUint64(args[intsOffset+8*i:], uint64(x))
	}
	for i, x := range a.F32 {
		binary.LittleEndian.PutUint32(args[floatsOffset+4*i:], math.Float32bits(x))
	}
	if a.Scratch > 0 {
		r := region{name: "scratch", data: undefinedBytes(a.Scratch), writable: true}
		binary.LittleEndian.PutUint64(args[scratchOffset:], m.place(r))
	}

	// The ABI passes everything in the caller's frame: func(a *kernel.Args, lo, hi int).
	var stack [24]byte
	binary.LittleEndian.PutUint64(stack[0:], m.place(region{name: "args", data: args}))
	binary.LittleEndian.PutUint64(stack[8:], uint64(lo))
	binary.LittleEndian.PutUint64(stack[16:], uint64(hi))
	m.args = m.place(region{name: "arguments in the frame", data: stack[:]})
	m.locals = m.place(region{name: "local variables", data: undefinedBytes(m.frame), writable: true})
	for _, g := range m.globals {
		m.symbols[g.name] = m.place(g)
	}
	return m.execute()
}

// execute runs the program from its first instruction to RET.
func (m *Machine) execute() error {
	m.pc, m.done = 0, false
	for steps := 0; !m.done; steps++ {
		if m.pc >= len(m.program) {
			return fmt.Errorf("%s runs past its last instruction", m.name)
		}
		if steps == m.limit {
			return fmt.Errorf("%s has not returned after %d steps", m.name, steps)
		}
		m.current = m.pc
		m.pc++
		in := m.program[m.current]
		if in.cancels {
			m.define(in)
		}
		in.op.run(m, in)
		if m.err != nil {
			return fmt.Errorf("%s: instruction %d, %s: %w", m.name, m.current, in.text, m.err)
		}
	}
	return nil
}

// fail records the first fault of an instruction. The instruction goes on with harmless values; execute stops after it.
func (m *Machine) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// load and store access memory and record a fault.

func (m *Machine) load(addr uint64, p []byte) {
	if err := m.memory.load(addr, p); err != nil {
		m.fail("%w", err)
	}
}

func (m *Machine) store(addr uint64, p []byte) {
	if err := m.memory.store(addr, p); err != nil {
		m.fail("%w", err)
	}
}

// Package target describes what a target can do, as data. Backends fill it in; schedules and verification read it.
package target

import "github.com/swizzle-rt/swizzle/ir"

// Family tells which of an op's schedules a target takes.
type Family uint8

const (
	CPU Family = iota
	GPU
)

// Argument slots that a kernel may use, on every target: those of runtime/kernel.
const (
	MaxBuffers = 12
	MaxInts    = 12
	MaxFloats  = 4
)

// Caps is a target: one architecture of one backend.
type Caps struct {
	Arch    string // as in kernel names: portable, avx2, avxvnni, avx512vnni, …
	Family  Family
	Native  map[ir.Op]bool // intrinsics that the backend prints; absent ones are expanded or the config is refused
	DotUMax int            // largest unsigned code whose Dot4US is one cheap exact sequence: 255, or 127 where pairs of products saturate
	VecRegs int            // vector registers, 0 where there is no limit
	VecBits int            // width of a vector register
	Shared  int            // bytes of shared memory a block may use
	Threads int            // most lanes a block may have
	Atoms   []*ir.Atom
}

// Has reports whether the target prints the op itself.
func (c *Caps) Has(op ir.Op) bool { return c.Native[op] }

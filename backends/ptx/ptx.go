// Package ptx prints kernels as CUDA PTX.
//
// A lane group is a warp, a block a thread block with its groups one after the other. Varying and uniform values are
// registers alike; what is uniform is the same in all lanes, so that every branch is taken by whole warps. Indices have 64
// bits, addresses in shared memory 32.
//
// # Launch
//
// The grid is one-dimensional, ceil(tiles / Output.Tiles) blocks of Output.Threads threads; there are fewer than 2³¹ tiles.
// Warps whose tile is beyond the last do nothing. Parameters are the kernel's, in order: a buffer is a 64-bit address in global
// memory, an integer a 64-bit number, a float 32 bits.
//
// # Memory
//
// Buffers start at multiples of 16 bytes and don't overlap in one call unless they are the same parameter: what a kernel
// only reads goes through the read-only path. Two or four elements are one access where the index is a multiple of the
// width by its own structure (see divisor), whatever the parameters are; otherwise they are that many accesses.
package ptx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// model is what printing needs to know of an architecture.
type model struct {
	version string     // lowest PTX version that has it
	async   bool       // has asynchronous copies to shared memory
	rows    bool       // ldmatrix reads the addresses of all lanes, used or not
	atoms   []*ir.Atom // the best first
}

var (
	turing = []*ir.Atom{target.M8N8K16S8}
	ampere = []*ir.Atom{target.M16N8K32S8, target.M8N8K16S8}
)

// models is by architecture (CUDA binary utilities and PTX ISA, release notes).
var models = map[string]model{
	"sm_75":  {version: "7.0", rows: true, atoms: turing},
	"sm_80":  {version: "7.0", async: true, atoms: ampere},
	"sm_86":  {version: "7.1", async: true, atoms: ampere},
	"sm_89":  {version: "7.8", async: true, atoms: ampere},
	"sm_90":  {version: "8.0", async: true, atoms: ampere},
	"sm_100": {version: "8.6", async: true, atoms: ampere},
	"sm_120": {version: "8.7", async: true, atoms: ampere},
}

const (
	maxThreads = 1024
	maxShared  = 48 << 10 // that a block has without being configured at launch
	// warpTiles is the number of tiles in a block of a kernel whose lane groups need nothing of each other.
	warpTiles = 4
)

// Arches returns the architectures, oldest first.
func Arches() []string {
	return slices.SortedFunc(maps.Keys(models), func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		if a < b {
			return -1
		}
		return 1
	})
}

// Caps returns what an architecture of [Arches] can do, nil for others. Every op is native.
func Caps(arch string) *target.Caps {
	m, ok := models[arch]
	if !ok {
		return nil
	}
	c := &target.Caps{Arch: arch, Family: target.GPU, Native: map[ir.Op]bool{}, DotUMax: 255, Shared: maxShared, Threads: maxThreads, Atoms: m.atoms}
	for _, op := range ir.Ops() {
		c.Native[op] = true
	}
	return c
}

// Options say what to print.
type Options struct {
	Arch   string // one of Arches
	Symbol string // the kernel's name in the module
	Header string // text of a comment in the first line, none if empty
}

// Output is a printed kernel.
type Output struct {
	Text    []byte // a PTX module
	Threads int    // of a block
	Tiles   int    // tiles of the grid that a block computes
	Shared  int    // bytes of shared memory of a block, declared in the module
}

// Emit prints a kernel that has been verified as built; it lowers it itself. What the architecture lacks is an *ir.Error.
func Emit(k *ir.Kernel, o Options) (*Output, error) {
	m, ok := models[o.Arch]
	if !ok {
		return nil, &ir.Error{Kernel: k.Name, Msg: fmt.Sprintf("no architecture %q; there are %v", o.Arch, Arches())}
	}
	if err := check(k, Caps(o.Arch)); err != nil {
		return nil, err
	}
	k, err := lower.Run(k, lower.GPU)
	if err != nil {
		return nil, err
	}
	p := newPrinter(k, m)
	p.kernel()
	if p.err != nil {
		return nil, p.err
	}
	return &Output{Text: p.module(o), Threads: p.threads(), Tiles: p.tiles, Shared: k.SharedBytes()}, nil
}

// check reports what the printer relies on.
func check(k *ir.Kernel, c *target.Caps) error {
	fail := func(pos ir.Pos, stmt, format string, args ...any) error {
		return &ir.Error{Kernel: k.Name, Pos: pos, Stmt: stmt, Msg: fmt.Sprintf(format, args...)}
	}
	switch n := k.SharedBytes(); {
	case k.Lanes != 32:
		return fail(ir.Pos{}, "", "%d lanes; a warp of %s has 32", k.Lanes, c.Arch)
	case k.Groups < 1 || k.Groups > maxThreads/32:
		return fail(ir.Pos{}, "", "%d lane groups; a block of %s has 1 … %d", k.Groups, c.Arch, maxThreads/32)
	case n > maxShared:
		return fail(ir.Pos{}, "", "%d bytes of shared memory; a block of %s has %d", n, c.Arch, maxShared)
	}
	var err error
	ir.Walk(k.Body, func(s ir.Stmt) {
		i, ok := s.(*ir.Instr)
		if ok && err == nil && i.Atom != nil && !slices.Contains(c.Atoms, i.Atom) {
			var have []string
			for _, a := range c.Atoms {
				have = append(have, a.Name)
			}
			err = fail(i.Pos, ir.Format(k, i), "%s has no atom %s; it has %v", c.Arch, i.Atom.Name, have)
		}
	})
	return err
}

// independent reports whether lane groups of the kernel need nothing of each other.
func independent(k *ir.Kernel) bool {
	alone := k.Groups == 1 && len(k.Shared) == 0
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok && i.Op == ir.OpBarrier {
			alone = false
		}
	})
	return alone
}

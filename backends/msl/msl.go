// Package msl prints kernels as Metal Shading Language, for Apple GPUs (Metal 3): one kernel function a file that needs
// nothing but the standard library.
//
// # Launch
//
// Buffer slot s of the kernel is [[buffer(s)]]; buffers start at multiples of 16 bytes. [[buffer(12)]] holds the
// other parameters as 32-bit words: the integers by slot, the floats by slot, then a float that must be +0. Kernels with
// shared arrays take Output.Shared bytes of threadgroup memory at index 0. A threadgroup has Output.Threads threads and
// computes Output.Tiles tiles of the flattened grid: threadgroup (x, y) those from Tiles·(x + y·width) on; a tile beyond the
// last does nothing. A simdgroup has 32 threads. An empty grid is not launched.
//
// # Numerics
//
// Each file asks for safe mathematics and no contraction; where a compiler is too old to know these pragmas, the host must
// turn fast mathematics off. Constants are bit patterns; ±0 comes from the last parameter, so that no compiler can fold what is
// added to it. Folds are butterflies of shuffles in the order that the language defines: simd_sum has none. f16 and bf16 are
// converted by integer macros, since Metal may flush the subnormals of f16; float subnormals are kept or flushed by the GPU.
//
// # Values
//
// A float is a float, an index an int; every other word, signed ones too, is a uint, whose arithmetic wraps. Indices stay
// below 2³¹. Memory that a kernel writes is read and written through one type of each width, and where it is seen
// both as 2-byte and as 4-byte elements, the former go byte by byte, so that no compiler may reorder accesses by their types.
package msl

import (
	"fmt"
	"slices"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Limits of a threadgroup on every Apple GPU that Metal 3 runs on.
const (
	sharedBytes = 32 << 10
	threads     = 1024
)

// argsIndex is the buffer index of the integer and float parameters.
const argsIndex = target.MaxBuffers

// Arches returns the names of the architectures.
func Arches() []string { return []string{"metal3"} }

// Caps returns what an architecture can do, nil if there is no such architecture: every op but those of matrix units.
// Asynchronous copies are plain ones.
func Caps(arch string) *target.Caps {
	if !slices.Contains(Arches(), arch) {
		return nil
	}
	c := &target.Caps{Arch: arch, Family: target.GPU, Native: map[ir.Op]bool{}, DotUMax: 255, Shared: sharedBytes, Threads: threads}
	for _, op := range ir.Ops() {
		switch op {
		case ir.OpLdMatrix, ir.OpMMA, ir.OpFragCoord:
		default:
			c.Native[op] = true
		}
	}
	return c
}

// Options say what to print: for which architecture, the function's name, the first line of the file (a comment, or empty).
type Options struct {
	Arch, Symbol, Header string
}

// Output is a printed kernel and how to launch it.
type Output struct {
	Text    []byte
	Threads int // in a threadgroup
	Tiles   int // that a threadgroup computes
	Shared  int // bytes of threadgroup memory at index 0, a multiple of 16
}

// simdgroups is how many tiles a threadgroup computes where a tile is one simdgroup that shares nothing.
const simdgroups = 4

// Emit prints the kernel, which was verified as built; it lowers it itself. Errors are *ir.Error.
func Emit(k *ir.Kernel, o Options) (*Output, error) {
	if err := check(k, o.Arch); err != nil {
		return nil, err
	}
	k, err := lower.Run(k, lower.GPU)
	if err != nil {
		return nil, err
	}
	out := &Output{Tiles: 1, Shared: (k.SharedBytes() + 15) &^ 15}
	if k.Groups == 1 && out.Shared == 0 && !has(k, ir.OpBarrier) {
		out.Tiles = simdgroups
	}
	out.Threads = k.Lanes * k.Groups * out.Tiles
	p := newPrinter(k, out)
	out.Text = p.file(o)
	if p.err != nil {
		return nil, p.err
	}
	return out, nil
}

// check refuses what the architecture lacks.
func check(k *ir.Kernel, arch string) error {
	fail := func(i *ir.Instr, format string, args ...any) error {
		e := &ir.Error{Kernel: k.Name, Msg: fmt.Sprintf(format, args...)}
		if i != nil {
			e.Pos, e.Stmt = i.Pos, ir.Format(k, i)
		}
		return e
	}
	caps := Caps(arch)
	switch {
	case caps == nil:
		return fail(nil, "no architecture is named %q; there is %v", arch, Arches())
	case k.Lanes != 32:
		return fail(nil, "%d lanes; a simdgroup has 32", k.Lanes)
	case k.Groups*k.Lanes > caps.Threads:
		return fail(nil, "%d groups of 32 lanes; a threadgroup of %s has at most %d threads", k.Groups, arch, caps.Threads)
	case k.SharedBytes() > caps.Shared:
		return fail(nil, "%d bytes of shared arrays; a threadgroup of %s has %d", k.SharedBytes(), arch, caps.Shared)
	}
	for _, p := range k.Params {
		if p.Kind == ir.Buffer && p.Slot >= argsIndex {
			return fail(nil, "buffer %s has slot %d; %s has %d", p.Name, p.Slot, arch, argsIndex)
		}
	}
	var err error
	ir.Walk(k.Body, func(s ir.Stmt) {
		i, ok := s.(*ir.Instr)
		switch {
		case !ok || err != nil:
		case !caps.Has(i.Op):
			err = fail(i, "%s has no %s", arch, i.Op)
		case i.Op == ir.OpConst && i.Results[0].Type == ir.Index && int64(int32(i.Imm)) != i.Imm:
			err = fail(i, "index %d has more than 32 bits, those of an index of %s", i.Imm, arch)
		}
	})
	return err
}

func has(k *ir.Kernel, op ir.Op) (found bool) {
	ir.Walk(k.Body, func(s ir.Stmt) {
		i, ok := s.(*ir.Instr)
		found = found || ok && i.Op == op
	})
	return found
}

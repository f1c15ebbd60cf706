package spirv

import (
	"fmt"
	"slices"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// model is what printing needs to know of an architecture.
type model struct {
	narrow   bool // buffers have elements of 8 and 16 bits
	dot      bool // bytes have dot products
	subgroup bool // lanes shuffle in subgroups
}

var models = map[string]model{
	"vk":    {},
	"vkdot": {narrow: true, dot: true, subgroup: true},
}

// Limits of a workgroup.
const (
	maxThreads = 256
	maxShared  = 32 << 10
)

// Arches returns the names of the architectures.
func Arches() []string { return []string{"vk", "vkdot"} }

// Caps returns what an architecture can do, nil if there is none of that name: every op but those of matrix units.
// Asynchronous copies are plain ones.
func Caps(arch string) *target.Caps {
	if _, ok := models[arch]; !ok {
		return nil
	}
	c := &target.Caps{Arch: arch, Family: target.GPU, Native: map[ir.Op]bool{}, DotUMax: 255, Shared: maxShared, Threads: maxThreads}
	for _, op := range ir.Ops() {
		switch op {
		case ir.OpLdMatrix, ir.OpMMA, ir.OpFragCoord:
		default:
			c.Native[op] = true
		}
	}
	return c
}

// Options say what to print: for which architecture, the name of the entry point, and a text to keep in the module, which may
// be empty.
type Options struct {
	Arch, Symbol, Header string
}

// Output is a printed kernel and how to launch it.
type Output struct {
	Text    []byte // the module
	Threads int    // of a workgroup
	Tiles   int    // that a workgroup computes
	Shared  int    // bytes of a workgroup, declared in the module
}

// Emit prints the kernel, which was verified as built; it lowers it itself. Errors are *ir.Error.
func Emit(k *ir.Kernel, o Options) (*Output, error) {
	if err := check(k, o.Arch); err != nil {
		return nil, err
	}
	k, err := lower.Run(k, passes)
	if err != nil {
		return nil, err
	}
	p := newPrinter(k, models[o.Arch])
	text := p.print(o)
	if p.err != nil {
		return nil, p.err
	}
	return &Output{Text: text, Threads: p.threads(), Tiles: 1, Shared: k.SharedBytes() + scratchBytes(k)}, nil
}

// passes leave variables for register tiles only where control flow meets.
var passes = []lower.Pass{
	{Name: "unroll", Run: lower.Unroll},
	{Name: "share", Run: lower.Share},
	{Name: "promote", Run: lower.Promote},
	{Name: "prune", Run: lower.Prune},
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
		return fail(nil, "no architecture is named %q; there are %v", arch, Arches())
	case k.Lanes != 32:
		return fail(nil, "%d lanes; a lane group of %s has 32", k.Lanes, arch)
	case k.Groups < 1 || k.Groups*k.Lanes > caps.Threads:
		return fail(nil, "%d groups of 32 lanes; a workgroup of %s has at most %d threads", k.Groups, arch, caps.Threads)
	case k.SharedBytes()+scratchBytes(k) > caps.Shared:
		return fail(nil, "%d bytes of shared arrays and %d for exchanges between lanes; a workgroup of %s has %d", k.SharedBytes(), scratchBytes(k), arch, caps.Shared)
	}
	for _, p := range k.Params {
		if p.Kind == ir.Buffer && p.Slot >= target.MaxBuffers {
			return fail(nil, "buffer %s has slot %d; %s has %d", p.Name, p.Slot, arch, target.MaxBuffers)
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

// crosses reports ops that read other lanes.
func crosses(op ir.Op) bool {
	return slices.Contains([]ir.Op{ir.OpPackLanes4, ir.OpShuffleXor, ir.OpReadLane, ir.OpFoldAddF, ir.OpFoldAddI, ir.OpFoldMaxU, ir.OpFoldMaxF}, op)
}

// scratchBytes returns the shared memory through which lanes exchange words: two words a lane.
func scratchBytes(k *ir.Kernel) int {
	n := 0
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok && crosses(i.Op) {
			n = 2 * 4 * k.Lanes * k.Groups
		}
	})
	return n
}

// Package ops holds the operations, one file each: what an operation means (a scalar reference in canonical order), its
// schedules for CPUs and GPUs, the space of their configs and the shapes to test. Adding an operation touches its own file
// and the list in All.
package ops

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/layout"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Op is one operation.
type Op struct {
	Name   string // also the start of its kernels' names
	Source string // its file in this package
	Doc    string // one line: what it computes
	// Pack names the op that makes the packed weights that this one reads.
	Pack string
	// Layout describes the packed weights that this op (a pack) writes.
	Layout *Layout
	// Variants lists the configs for a target, the default first; nil where the target has no schedule.
	Variants func(c *target.Caps) []Variant
	// Shapes are the problem sizes to test, in the op's own terms.
	Shapes []Shape
	// Case makes inputs of that shape for the variant, and by the scalar reference the outputs to expect.
	Case func(v Variant, s Shape, d *Data) *Case
}

// Variant is one schedule under one config.
type Variant struct {
	Config string // see kernel.Name
	Lanes  int
	Groups int
	Build  func(b *ir.Builder)
	Rows   int // rows that a tile computes, of ops that have several row tiles
	// Tiles are the tiles that the schedule stages through shared memory under the swizzle for their rows.
	Tiles []StagedTile

	length  int     // of the transform
	bits    int     // that activations are rounded to
	pairing pairing // of rotary embedding
}

// StagedTile is a tile of a matrix in shared memory, and the type of its elements as GPUs name it: s8, f16.
type StagedTile struct {
	layout.Tile
	Type string
}

// Kernel builds the variant's kernel for a target.
func (o *Op) Kernel(v Variant, c *target.Caps) (*ir.Kernel, error) {
	k, err := ir.Build(o.Name+"__"+v.Config+"__"+c.Arch, v.Lanes, v.Groups, v.Build)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Source, err)
	}
	return k, nil
}

// Layout is the size of packed weights: tiles of Rows rows, each a run of records of Span elements of k and Record bytes.
// Block and BlockBytes describe the rows before packing.
type Layout struct {
	Rows, Span, Record, Block, BlockBytes int
}

// Shape is a problem size; each op says what its numbers mean.
type Shape []int

// Case is one test of a kernel: parameters by name, and what its outputs hold afterwards.
type Case struct {
	Buf   map[string][]byte // contents before the run
	Want  map[string][]byte // outputs' contents after the run, byte for byte
	Int   map[string]int64
	Float map[string]float32
}

// All returns every op, in order of name.
func All() []*Op {
	var list []*Op
	list = append(list, Add())
	list = append(list, Argmax())
	list = append(list, Attention()...)
	list = append(list, Gather()...)
	list = append(list, GEMMFloat()...)
	list = append(list, GEMM()...)
	list = append(list, KVStore()...)
	list = append(list, Pack()...)
	list = append(list, Quantize(), RMSNorm(), RMSNormQuantize(), RopeQuery(), Round())
	list = append(list, ActMul()...)
	list = append(list, ShortConv(), Softmax(), SwizzleCopy(), WHT())
	return list
}

// caps is what a schedule of one form asks of its target.
type caps struct {
	family target.Family
	wide   bool // registers for several vectors of 32 lanes at a time
}

func capsOf(c *target.Caps) caps {
	return caps{c.Family, c.Family == target.CPU && c.VecRegs*c.VecBits >= 32*512}
}

// onRows is the single variant of an op on rows, of 32 lanes.
func onRows(build func(b *ir.Builder, c caps)) func(c *target.Caps) []Variant {
	return func(c *target.Caps) []Variant {
		return []Variant{{Config: "any", Lanes: 32, Groups: 1, Build: func(b *ir.Builder) { build(b, capsOf(c)) }}}
	}
}

// perFamily lists an op's configs; the schedules may differ between families. On a GPU a lane group has 32 lanes, so
// schedules for both go by [ir.Builder.Lanes].
func perFamily(list func(f target.Family) []Variant) func(c *target.Caps) []Variant {
	return func(c *target.Caps) []Variant {
		vs := list(c.Family)
		if c.Family == target.GPU {
			for i := range vs {
				vs[i].Lanes = 32
			}
		}
		return vs
	}
}

// one is the single variant of an op with one schedule, of that many lanes on CPUs.
func one(lanes int, build func(b *ir.Builder)) func(c *target.Caps) []Variant {
	return two(lanes, func(b *ir.Builder, _ target.Family) { build(b) })
}

// two is the single variant of an op, of that many lanes on CPUs, whose schedule differs between families in part.
func two(lanes int, build func(b *ir.Builder, f target.Family)) func(c *target.Caps) []Variant {
	return perFamily(func(f target.Family) []Variant {
		return []Variant{{Config: "any", Lanes: lanes, Groups: 1, Build: func(b *ir.Builder) { build(b, f) }}}
	})
}

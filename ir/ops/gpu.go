package ops

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// What schedules for GPUs share. Where an op's work is the same for every element, row or head, its one schedule spreads it
// over more tiles on a GPU; where it needs several lane groups, the schedule stands in a file of its own.

// gpuSpan is the number of elements that a lane group of a GPU takes of a row: a GPU needs many tiles.
const gpuSpan = 128

// along runs body for first = 0, 32, … below n. On a GPU each gpuSpan elements are a tile of their own.
func along(b *ir.Builder, f target.Family, n *ir.Value, body func(first *ir.Value)) {
	if f != target.GPU {
		b.For(0, n, 32, body)
		return
	}
	first := b.Tiles(n, gpuSpan).Mul(gpuSpan)
	b.For(first, first.Add(gpuSpan).Min(n), 32, body)
}

// times runs body for i = 0 … n−1: a loop on a CPU, an axis of the grid on a GPU.
func times(b *ir.Builder, f target.Family, n *ir.Value, body func(i *ir.Value)) {
	if f != target.GPU {
		b.For(0, n, 1, body)
		return
	}
	body(b.Tiles(n, 1))
}

// withBlock lists a row op's variants: one lane group a row (config any) and, on GPUs, a block of eight groups (config g8),
// which is faster where rows are few and long.
func withBlock(block func(b *ir.Builder), build func(b *ir.Builder, c caps)) func(c *target.Caps) []Variant {
	return func(c *target.Caps) []Variant {
		vs := onRows(build)(c)
		if c.Family == target.GPU {
			vs = append(vs, Variant{Config: "g8", Lanes: 32, Groups: blockGroups, Build: block})
		}
		return vs
	}
}

const (
	blockGroups = 8
	blockLanes  = 32 * blockGroups
	blockTurns  = 4 // elements that a lane loads before it uses the first
)

// blockLane is the lane's number in its block.
func blockLane(b *ir.Builder) *ir.Value { return b.Group().Mul(32).Add(b.Lane()) }

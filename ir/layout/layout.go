package layout

import (
	"fmt"
	"slices"
)

// A Layout maps a coordinate (c₀, c₁, …) with 0 ≤ cᵢ < Shape[i] to the offset
// Σ cᵢ·Stride[i]. Each pair of extent and stride is a mode. The zero Layout has
// no mode and one coordinate, at offset 0.
//
// Layouts are values: nothing changes one, and the slices are not to be written.
type Layout struct {
	Shape  []int // extents, at least 1
	Stride []int // offsets between neighbours, not negative; 0 repeats
}

// maxOffset bounds sizes and offsets so that no product or sum overflows.
const maxOffset = 1 << 48

// New returns the layout shape : stride. It fails if the slices differ in
// length, an extent is below 1, a stride is negative, or the size or an offset
// exceeds 2⁴⁸.
func New(shape, stride []int) (Layout, error) {
	if len(shape) != len(stride) {
		return Layout{}, fmt.Errorf("layout: %d extents but %d strides", len(shape), len(stride))
	}
	size, last := 1, 0
	for i, n := range shape {
		d := stride[i]
		switch {
		case n < 1:
			return Layout{}, fmt.Errorf("layout: extent %d of mode %d is below 1", n, i)
		case d < 0:
			return Layout{}, fmt.Errorf("layout: stride %d of mode %d is negative", d, i)
		case n > maxOffset/size:
			return Layout{}, fmt.Errorf("layout: more than 2^48 coordinates at mode %d", i)
		case n > 1 && d > (maxOffset-last)/(n-1):
			return Layout{}, fmt.Errorf("layout: an offset exceeds 2^48 at mode %d", i)
		}
		size *= n
		last += (n - 1) * d
	}
	return Layout{slices.Clone(shape), slices.Clone(stride)}, nil
}

// RowMajor returns the compact layout of shape whose last coordinate has
// stride 1. Like an allocation of that shape, it panics if an extent is below 1
// or the size exceeds 2⁴⁸.
func RowMajor(shape ...int) Layout {
	stride := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		stride[i] = n
		n *= shape[i]
	}
	return must(New(shape, stride))
}

// ColMajor returns the compact layout of shape whose first coordinate has
// stride 1. It is the identity: ColMajor(shape...).At(i) = i. It panics as
// [RowMajor] does.
func ColMajor(shape ...int) Layout {
	stride := make([]int, len(shape))
	n := 1
	for i := range shape {
		stride[i] = n
		n *= shape[i]
	}
	return must(New(shape, stride))
}

func must(l Layout, err error) Layout {
	if err != nil {
		panic(err)
	}
	return l
}

// Rank returns the number of modes.
func (l Layout) Rank() int { return len(l.Shape) }

// Size returns the number of coordinates.
func (l Layout) Size() int {
	n := 1
	for _, s := range l.Shape {
		n *= s
	}
	return n
}

// Cosize returns one more than the largest offset: what an allocation needs.
func (l Layout) Cosize() int {
	n := 1
	for i, s := range l.Shape {
		n += (s - 1) * l.Stride[i]
	}
	return n
}

// Offset returns the offset of a coordinate, which has one number for each mode.
func (l Layout) Offset(coord ...int) int {
	offset := 0
	for i, c := range coord {
		offset += c * l.Stride[i]
	}
	return offset
}

// Coord returns coordinate number i, 0 ≤ i < Size; the first of its numbers
// runs fastest.
func (l Layout) Coord(i int) []int {
	coord := make([]int, len(l.Shape))
	for k, n := range l.Shape {
		coord[k] = i % n
		i /= n
	}
	return coord
}

// At returns the offset of coordinate number i: l.Offset(l.Coord(i)...).
func (l Layout) At(i int) int {
	offset := 0
	for k, n := range l.Shape {
		offset += i % n * l.Stride[k]
		i /= n
	}
	return offset
}

// Equal reports whether l and m have the same modes in the same order.
func (l Layout) Equal(m Layout) bool {
	return slices.Equal(l.Shape, m.Shape) && slices.Equal(l.Stride, m.Stride)
}

// append returns l with one more mode.
func (l Layout) append(extent, stride int) Layout {
	return Layout{append(l.Shape, extent), append(l.Stride, stride)}
}

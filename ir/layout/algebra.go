package layout

import (
	"cmp"
	"fmt"
	"slices"
)

// Coalesce returns the layout with the fewest modes that has the same offset at
// every index: modes of one element are dropped, and a mode that continues the
// one before it is joined to it.
func (l Layout) Coalesce() Layout {
	var c Layout
	for i, n := range l.Shape {
		d := l.Stride[i]
		last := len(c.Shape) - 1
		switch {
		case n == 1:
		case last >= 0 && d == c.Shape[last]*c.Stride[last]:
			c.Shape[last] *= n
		default:
			c = c.append(n, d)
		}
	}
	return c
}

// Permute returns l with its modes reordered: mode i of the result is mode
// order[i] of l. It fails if order is not a permutation of the modes.
func (l Layout) Permute(order ...int) (Layout, error) {
	seen := make([]bool, l.Rank())
	var p Layout
	for _, m := range order {
		if m < 0 || m >= l.Rank() || seen[m] {
			return Layout{}, fmt.Errorf("layout: permute %v: %v does not name each of its modes once", l, order)
		}
		seen[m] = true
		p = p.append(l.Shape[m], l.Stride[m])
	}
	if p.Rank() != l.Rank() {
		return Layout{}, fmt.Errorf("layout: permute %v: %v does not name each of its modes once", l, order)
	}
	return p, nil
}

// Divide cuts every mode into tiles of the given extent. The result has twice
// the rank, first the coordinate within a tile, then that of the tile:
//
//	l.Offset(t·c₀+w₀, …) = divided.Offset(w₀, …, c₀, …)
//
// It fails unless each extent of tile divides that of its mode.
func (l Layout) Divide(tile ...int) (Layout, error) {
	if len(tile) != l.Rank() {
		return Layout{}, fmt.Errorf("layout: divide %v by %v: %d extents for %d modes", l, tile, len(tile), l.Rank())
	}
	var within, tiles Layout
	for i, t := range tile {
		n, d := l.Shape[i], l.Stride[i]
		if t < 1 || n%t != 0 {
			return Layout{}, fmt.Errorf("layout: divide %v by %v: %d does not divide extent %d", l, tile, t, n)
		}
		within = within.append(t, d)
		tiles = tiles.append(n/t, t*d)
	}
	return Layout{append(within.Shape, tiles.Shape...), append(within.Stride, tiles.Stride...)}, nil
}

// Compose returns the layout with At(i) = l.At(m.At(i)): m chooses indices of l.
// Its size is that of m; a mode of m that runs through several modes of l becomes
// as many modes.
//
// Not every composition is a layout. Compose fails if m reaches beyond l, if a
// mode of m cuts a mode of l unevenly, or if modes of m together carry from one
// mode of l to the next (CuTe's conditions for composition).
func (l Layout) Compose(m Layout) (Layout, error) {
	fail := func(why string) (Layout, error) {
		return Layout{}, fmt.Errorf("layout: compose %v with %v: %s", l, m, why)
	}
	if m.Cosize() > l.Size() {
		return fail("the second reaches beyond the first")
	}
	a := l.Coalesce()
	room := make([]int, a.Rank()) // what each mode of a still takes without a carry
	for i, n := range a.Shape {
		room[i] = n - 1
	}
	var r Layout
	for k, rest := range m.Shape {
		// rest elements remain, step apart in units of mode i of a. As m stays
		// within l, (rest−1)·step is below the size of a's modes from i on.
		step := m.Stride[k]
		if rest == 1 || step == 0 {
			r = r.append(rest, 0)
			continue
		}
		for i := 0; rest > 1; i++ {
			n, d := a.Shape[i], a.Stride[i]
			if step%n == 0 {
				step /= n
				continue
			}
			take := rest
			if (rest-1)*step >= n {
				take = n / step
				if n%step != 0 || rest%take != 0 {
					return fail(fmt.Sprintf("mode %d of the second cuts extent %d unevenly", k, n))
				}
			}
			room[i] -= (take - 1) * step
			if room[i] < 0 {
				return fail(fmt.Sprintf("the modes up to %d of the second carry beyond extent %d", k, n))
			}
			r = r.append(take, step*d)
			rest /= take
			step = 1
		}
	}
	return r, nil
}

// Inverse returns the layout that maps offsets back: Inverse().At(l.At(i)) = i.
// It fails unless l is compact and bijective, reaching each offset below its
// size exactly once.
func (l Layout) Inverse() (Layout, error) {
	var r Layout
	for _, m := range l.byStride() {
		if m.stride != r.Size() {
			return Layout{}, fmt.Errorf("layout: %v has no inverse: it does not reach each offset below %d exactly once", l, l.Size())
		}
		r = r.append(m.extent, m.index)
	}
	return r, nil
}

// Complement returns the layout of the offsets that l leaves out: each offset
// below n is a sum of an offset of l and one of the complement, and of one pair
// only. If n is not a multiple of what l spans, the last repetition of l reaches
// beyond n. It fails if n is not from 1 to 2⁴⁸, and unless each stride of l, in
// rising order, is a multiple of what the modes before it span.
func (l Layout) Complement(n int) (Layout, error) {
	if n < 1 || n > maxOffset {
		return Layout{}, fmt.Errorf("layout: complement of %v in %d: want a number from 1 to 2^48", l, n)
	}
	var c Layout
	span := 1 // l and c together reach every offset below span once
	for _, m := range l.byStride() {
		if m.stride == 0 || m.stride%span != 0 {
			return Layout{}, fmt.Errorf("layout: %v has no complement: stride %d is not a multiple of %d", l, m.stride, span)
		}
		if gap := m.stride / span; gap > 1 {
			c = c.append(gap, span)
		}
		span = m.stride * m.extent
	}
	if repeat := (n + span - 1) / span; repeat > 1 {
		c = c.append(repeat, span)
	}
	return c, nil
}

// mode is a mode of a layout with the stride of its coordinate in the numbering
// of [Layout.Coord].
type mode struct{ extent, stride, index int }

// byStride returns the modes of more than one element by rising stride.
func (l Layout) byStride() []mode {
	var modes []mode
	index := 1
	for i, n := range l.Shape {
		if n > 1 {
			modes = append(modes, mode{n, l.Stride[i], index})
		}
		index *= n
	}
	slices.SortStableFunc(modes, func(a, b mode) int { return cmp.Compare(a.stride, b.stride) })
	return modes
}

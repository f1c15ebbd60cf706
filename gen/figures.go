package gen

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/backends/ptx"
	"github.com/swizzle-rt/swizzle/ir/layout"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// block is what the report states the occupancy of tiles for: the four warps of a product, two stages of both operands.
var block = kernel.Block{Threads: 128, Registers: 96, Tiles: 4}

// shape is a tile by its elements.
type shape struct {
	rows, cols int
	elem       string
}

// elements are the bytes of elements by type.
var elements = map[string]int{"s8": 1, "f16": 2}

// shapes are the tiles of the report beside those of kernels: what products of matrices usually stage.
var shapes = []shape{{64, 64, "s8"}, {64, 64, "f16"}, {64, 80, "f16"}, {128, 64, "f16"}, {128, 128, "f16"}}

// tiles returns the figures of the shapes, and of the tiles that kernels stage.
func tiles(shapes []shape, kernels []*Kernel) ([]kernel.Tile, error) {
	var list []kernel.Tile
	at := map[shape]int{}
	find := func(s shape) (*kernel.Tile, error) {
		n, ok := at[s]
		if !ok {
			k, err := figuresOf(s)
			if err != nil {
				return nil, fmt.Errorf("tile %d×%d %s: %w", s.rows, s.cols, s.elem, err)
			}
			n = len(list)
			at[s] = n
			list = append(list, k)
		}
		return &list[n], nil
	}
	for _, s := range shapes {
		if _, err := find(s); err != nil {
			return nil, err
		}
	}
	for _, k := range kernels {
		for _, t := range k.Variant.Tiles {
			size, ok := elements[t.Type]
			if !ok {
				return nil, fmt.Errorf("kernel %s stages a tile of %q", k.Name(), t.Type)
			}
			x, err := find(shape{t.Rows, t.RowBytes / size, t.Type})
			if err != nil {
				return nil, fmt.Errorf("kernel %s: %w", k.Name(), err)
			}
			x.Kernels = append(x.Kernels, k.Name().String())
		}
	}
	return list, nil
}

// figuresOf returns what a tile costs in its layouts.
func figuresOf(s shape) (k kernel.Tile, err error) {
	t := layout.Tile{Rows: s.rows, RowBytes: s.cols * elements[s.elem]}
	if err := t.Validate(); err != nil {
		return k, err
	}
	plain, padded, swizzled := t.Plain(), t.Padded(), t.Swizzled()
	count := func(f func(layout.Swizzled) (wavefronts, ideal int)) (w kernel.Wavefronts) {
		w.Plain, _ = f(plain)
		w.Padded, _ = f(padded)
		w.Swizzled, w.Ideal = f(swizzled)
		return w
	}
	k = kernel.Tile{
		Rows: s.rows, Cols: s.cols, Type: s.elem, RowBytes: t.RowBytes, Swizzle: swizzled.Swizzle.String(),
		PaddedBytes: t.Bytes(padded), SwizzledBytes: t.Bytes(swizzled), LdMatrix: count(t.LdMatrix), Copies: count(t.Copies),
	}
	for _, arch := range ptx.Arches() {
		k.Occupancy = append(k.Occupancy, kernel.Occupancy{Arch: arch, Padded: blocks(arch, k.PaddedBytes), Swizzled: blocks(arch, k.SwizzledBytes)})
	}
	return k, nil
}

// blocks returns how many blocks with tiles of so many bytes a multiprocessor holds.
func blocks(arch string, tileBytes int) int {
	n, _ := ptx.Occupancy(arch, block.Registers, block.Threads, block.Tiles*tileBytes)
	return n
}

// assembled returns the figures of PTX kernels, of those that there are figures of.
func assembled(kernels []*Kernel) ([]kernel.Assembled, error) {
	known, err := ptx.Figures()
	if err != nil {
		return nil, err
	}
	list := []kernel.Assembled{}
	at := map[string]int{}
	for _, k := range kernels {
		name := k.Name()
		f, ok := known[name.Entry()][name.Arch]
		if k.Target.Backend != "ptx" || !ok {
			continue
		}
		n, ok := at[name.Entry()]
		if !ok {
			n = len(list)
			at[name.Entry()] = n
			list = append(list, kernel.Assembled{Kernel: name.Entry(), On: map[string]kernel.Figure{}})
		}
		blocks, limit := ptx.Occupancy(name.Arch, f.Registers, k.Threads, k.Shared)
		list[n].On[name.Arch] = kernel.Figure{Registers: f.Registers, Instructions: f.Instructions, Blocks: blocks, Limit: limit}
	}
	return list, nil
}

// Package kernel holds what a generated kernel and its caller share: the argument block, the descriptor and the grammar of
// names. It is all that generated/ imports.
package kernel

import (
	"fmt"
	"slices"
	"unsafe"
)

// Slots of Args, the same on every device.
const (
	Buffers      = 12
	Ints         = 12
	Floats       = 4
	ScratchBytes = 64 << 10 // of each worker, 64-byte aligned: a kernel's shared arrays
)

// Args are a kernel's arguments; the descriptor's Params name the slots. Buffers are readable up to the next multiple of
// 64 bytes. Assembly reads this struct by offset: 0, 96, 192 and 208.
type Args struct {
	Buf     [Buffers]unsafe.Pointer
	Int     [Ints]int64
	F32     [Floats]float32
	Scratch unsafe.Pointer
}

// Func runs the tiles lo … hi−1 of the flattened grid. It is not preemptible in assembly: callers keep a call under 100 µs.
type Func func(a *Args, lo, hi int)

// Kind separates the three kinds of slots.
type Kind uint8

const (
	Buffer Kind = iota
	Int
	Float
)

var kinds = []string{"buffer", "int", "float"}

// MarshalText returns buffer, int or float.
func (k Kind) MarshalText() ([]byte, error) {
	if int(k) >= len(kinds) {
		return nil, fmt.Errorf("parameter kind %d; there are %v", k, kinds)
	}
	return []byte(kinds[k]), nil
}

// UnmarshalText parses what MarshalText returns.
func (k *Kind) UnmarshalText(text []byte) error {
	n := slices.Index(kinds, string(text))
	if n < 0 {
		return fmt.Errorf("parameter kind %q; there are %v", text, kinds)
	}
	*k = Kind(n)
	return nil
}

// Param names one slot.
type Param struct {
	Name   string `json:"name"`
	Kind   Kind   `json:"kind"`
	Slot   int    `json:"slot"`
	Type   string `json:"type,omitempty"`   // element type of a buffer as the IR prints it
	Access string `json:"access,omitempty"` // in, out or inout
}

// Axis is one axis of the grid: ceil(Int[Slot] / Tile) tiles; the first axis runs fastest.
type Axis struct {
	Slot int `json:"slot"`
	Tile int `json:"tile"`
}

// Kernel describes one generated kernel.
type Kernel struct {
	Name   Name
	Source string // the op's file
	Pack   string // of an op that reads packed weights: the op that makes them
	Layout Layout // of a pack: what it writes
	Params []Param
	Grid   []Axis
	Shared int // bytes of scratch it uses, or of a GPU's shared memory
	Func   Func
	Launch *Launch // of a GPU's kernel, in place of Func
}

// Launch is how a GPU runs a kernel: ceil(tiles / Tiles) blocks of Threads lanes. The entry point of the module is
// [Name.Entry]; the backend's documentation says how arguments are passed.
type Launch struct {
	File    string // the module, below generated/
	Threads int    // lanes of a block
	Tiles   int    // tiles of the grid that a block computes
}

// Layout is the size of packed weights: tiles of Rows rows, each a run of records of Span elements of k and Record bytes.
// Block and BlockBytes describe the rows before packing. The zero value belongs to ops that don't pack.
type Layout struct {
	Rows       int `json:"rows"`
	Span       int `json:"span"`
	Record     int `json:"record"`
	Block      int `json:"block"`
	BlockBytes int `json:"block_bytes"`
}

// Bytes returns the size of n packed rows of k elements.
func (l Layout) Bytes(n, k int) int {
	return (n + l.Rows - 1) / l.Rows * ((k + l.Span - 1) / l.Span) * l.Record
}

// RowBytes returns the size of a row of k elements before packing.
func (l Layout) RowBytes(k int) int { return k / l.Block * l.BlockBytes }

// Tiles returns the size of the flattened grid for these arguments.
func (k *Kernel) Tiles(a *Args) int {
	n := 1
	for _, x := range k.Grid {
		n *= int((a.Int[x.Slot] + int64(x.Tile) - 1) / int64(x.Tile))
	}
	return n
}

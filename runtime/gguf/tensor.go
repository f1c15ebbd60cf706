package gguf

import (
	"fmt"
	"math"
	"math/bits"
)

// maxDims is the number of dimensions a ggml tensor can have.
const maxDims = 4

// Tensor is one tensor of a file.
type Tensor struct {
	// Name is unique over all shards. It may hold any bytes: quote it for display.
	Name string
	Type Type
	// Dims has 1 to 4 dimensions, none of them zero, in the order of GGUF: Dims[0]
	// is the length of a row, whose elements are contiguous, and a matrix of 3 rows
	// and 5 columns is {5, 3}. A scalar is {1}.
	Dims []uint64
	// Offset is where the data begins in its shard, in bytes from the start of the
	// file.
	Offset uint64
	// Shard is the index of the file that holds the data, from 0.
	Shard int
	// Data is the tensor's encoding: Rows rows of RowBytes each. It is a slice of
	// the map, not to be written to, valid until the file is closed.
	Data []byte

	infoOffset int // of the description in the file's header, for errors
}

// Cols returns the number of elements in a row.
func (t *Tensor) Cols() uint64 { return t.Dims[0] }

// Rows returns the number of rows: the product of all dimensions after the first.
func (t *Tensor) Rows() uint64 {
	rows := uint64(1)
	for _, n := range t.Dims[1:] {
		rows *= n
	}
	return rows
}

// RowBytes returns the bytes of one row.
func (t *Tensor) RowBytes() uint64 {
	return t.Cols() / t.Type.BlockElems() * t.Type.BlockBytes()
}

// tensorBytes returns the size of a tensor's data. The error says what it found
// and what it expected of the type and the dimensions, which nobody has checked.
func tensorBytes(t Type, dims []uint64) (uint64, error) {
	block := t.BlockElems()
	if block == 0 {
		return 0, fmt.Errorf("%s, expected a type in use", t.describe())
	}
	if len(dims) == 0 || len(dims) > maxDims {
		return 0, fmt.Errorf("%d dimensions, expected 1 to %d", len(dims), maxDims)
	}
	elems := uint64(1)
	for i, n := range dims {
		if n == 0 || n > math.MaxInt64 {
			return 0, fmt.Errorf("dimension %d is %d, expected 1 to 2^63-1", i, int64(n))
		}
		hi, lo := bits.Mul64(elems, n)
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("dimensions %v make more than 2^63-1 elements", dims)
		}
		elems = lo
	}
	if dims[0]%block != 0 {
		return 0, fmt.Errorf("rows of %d elements, expected a multiple of %d, the block of %s", dims[0], block, t)
	}
	hi, size := bits.Mul64(elems/block, t.BlockBytes())
	if hi != 0 || size > math.MaxInt64 {
		return 0, fmt.Errorf("dimensions %v of %s make more than 2^63-1 bytes", dims, t)
	}
	return size, nil
}

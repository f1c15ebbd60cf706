package cpu

import (
	"fmt"
	"unsafe"
)

// A Buffer is zeroed memory for weights, activations and caches, aligned to 64 bytes.
type Buffer struct {
	data    []byte
	mapping []byte // what Free unmaps; nil if data is the garbage collector's
}

// alignment is the size of a cache line and of the widest vector. A buffer begins at a multiple of it, and is readable up
// to the next multiple past its end.
const alignment = 64

// hugePage is the size of a huge page, and of the smallest buffer that is worth one.
const hugePage = 2 << 20

// Alloc returns a buffer of n bytes. A large one is mapped apart from the Go heap, in huge pages where the system has
// them (Linux: MADV_HUGEPAGE), since streaming from small pages is slower by a third or so; its pages are taken from the
// system when they are first touched. It is an error if n is negative or the system refuses the mapping; the caller checks
// n against the memory there is.
func Alloc(n int) (*Buffer, error) {
	if n < 0 || n > maxBuffer {
		return nil, fmt.Errorf("allocate buffer: size %d is not between 0 and %d bytes", n, maxBuffer)
	}
	if n >= hugePage {
		mapping, err := mapMemory(n+hugePage, true)
		if err != nil {
			return nil, fmt.Errorf("allocate buffer of %d bytes: %w", n, err)
		}
		if mapping != nil {
			return &Buffer{data: align(mapping, n, hugePage), mapping: mapping}, nil
		}
	}
	return &Buffer{data: align(make([]byte, n+2*alignment), n, alignment)}, nil
}

// Reserve returns a buffer of n bytes that takes memory page by page as it is touched: for caches that may grow to n.
// Errors are those of Alloc.
func Reserve(n int) (*Buffer, error) {
	if n < hugePage || n > maxBuffer {
		return Alloc(n)
	}
	mapping, err := mapMemory(n+alignment, false)
	if err != nil {
		return nil, fmt.Errorf("reserve buffer of %d bytes: %w", n, err)
	}
	if mapping == nil {
		return Alloc(n)
	}
	return &Buffer{data: align(mapping, n, alignment), mapping: mapping}, nil
}

// maxBuffer bounds the size of a buffer, so that rounding it up cannot overflow.
const maxBuffer = int(^uint(0)>>1) - 2*hugePage

// Bytes returns the memory. Its capacity is its length rounded up to a multiple of 64: that much may be read.
func (b *Buffer) Bytes() []byte { return b.data }

// Free gives the memory back; its bytes may not be touched afterwards. Freeing a buffer twice is harmless.
func (b *Buffer) Free() error {
	mapping := b.mapping
	b.data, b.mapping = nil, nil
	if mapping == nil {
		return nil
	}
	if err := unmapMemory(mapping); err != nil {
		return fmt.Errorf("free buffer: %w", err)
	}
	return nil
}

// align returns n bytes of memory that begin at a multiple of to, a power of two, with a capacity that is n rounded up to
// a multiple of alignment.
func align(memory []byte, n, to int) []byte {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) & uintptr(to-1))
	return memory[skip : skip+n : skip+(n+alignment-1)&^(alignment-1)]
}

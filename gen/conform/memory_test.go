package conform

import (
	"bytes"
	"fmt"
	"os"
	"unsafe"
)

// line is the size of a cache line: a buffer is readable up to the next multiple of it.
const line = 64

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// placement says where in memory a buffer lies.
type placement int

const (
	atEnd   placement = iota // what may be read of it ends where an inaccessible page begins
	atStart                  // it begins where an inaccessible page ends
	offset                   // atEnd, but one element past a multiple of 64 bytes
	onHeap                   // on Go's heap, which the race detector watches
)

func (p placement) String() string {
	return [...]string{"before a guard page", "after a guard page", "off alignment", "on the heap"}[p]
}

// An arena is memory between two inaccessible pages, for one buffer after the other.
type arena struct {
	memory []byte
	mapped bool // memory is not the garbage collector's
	at, n  int  // the buffer in it
}

// margin is how much memory around a buffer is checked for stray stores.
const margin = 1024

// canary is what memory around buffers holds, and scratch at first: NaN as f32, f16 and bf16.
var canary = bytes.Repeat([]byte{0xC5, 0xFF}, margin/2)

// place copies content, of elements of size bytes, to memory surrounded by canaries and returns its address.
func (a *arena) place(content []byte, p placement, size int) (unsafe.Pointer, error) {
	a.n = len(content)
	need := roundUp(a.n+line, line) + 2*margin
	if p == onHeap || !a.mapped || len(a.memory) < need {
		if err := a.free(); err != nil {
			return nil, err
		}
		if p == onHeap {
			a.memory = make([]byte, need+line)
		} else {
			var err error
			if a.memory, a.mapped, err = guarded(roundUp(need, 1<<16)); err != nil {
				return nil, err
			}
		}
	}
	switch p {
	case atEnd:
		a.at = len(a.memory) - roundUp(a.n, line)
	case atStart:
		a.at = 0
	case offset:
		a.at = len(a.memory) - roundUp(a.n+size, line) + size
	case onHeap:
		a.at = margin + int(-uintptr(unsafe.Pointer(unsafe.SliceData(a.memory)))&(line-1))
	}
	before, after := a.around()
	copy(before, canary)
	copy(after, canary)
	copy(a.buffer(), content)
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(a.memory)), a.at), nil
}

func (a *arena) buffer() []byte { return a.memory[a.at : a.at+a.n] }

// around returns the checked memory before and after the buffer.
func (a *arena) around() (before, after []byte) {
	end := a.at + a.n
	return a.memory[max(0, a.at-margin):a.at], a.memory[end:min(len(a.memory), end+margin)]
}

// intact returns an error if memory around the buffer has changed.
func (a *arena) intact() error {
	before, after := a.around()
	for i := range before {
		if before[i] != canary[i] {
			return fmt.Errorf("byte %d was written; it has %d", i-len(before), a.n)
		}
	}
	for i := range after {
		if after[i] != canary[i] {
			return fmt.Errorf("byte %d was written; it has %d", a.n+i, a.n)
		}
	}
	return nil
}

// where returns an address as an offset in the buffer, if it lies in the arena or in the pages around it.
func (a *arena) where(addr uintptr) (int, bool) {
	page := os.Getpagesize()
	at := int(addr - uintptr(unsafe.Pointer(unsafe.SliceData(a.memory))))
	return at - a.at, a.memory != nil && at >= -page && at < len(a.memory)+page
}

func (a *arena) free() error {
	memory := a.memory
	a.memory = nil
	if !a.mapped {
		return nil
	}
	a.mapped = false
	return release(memory)
}

//go:build !unix

package conform

import "unsafe"

// guarded returns n bytes at a multiple of 64. There are no inaccessible pages around them here, only canaries.
func guarded(n int) (memory []byte, mapped bool, err error) {
	memory = make([]byte, n+line)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) & (line - 1))
	return memory[skip : skip+n : skip+n], false, nil
}

func release([]byte) error { return nil }

//go:build unix

package conform

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns n bytes, a multiple of the page size, between two inaccessible pages.
func guarded(n int) (memory []byte, mapped bool, err error) {
	page := os.Getpagesize()
	all, err := unix.MmapPtr(-1, 0, nil, uintptr(n+2*page), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, false, fmt.Errorf("map %d bytes: %w", n+2*page, err)
	}
	memory = unsafe.Slice((*byte)(unsafe.Add(all, page)), n)
	if err := unix.Mprotect(memory, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return nil, false, fmt.Errorf("make %d bytes accessible: %w", n, err)
	}
	return memory, true, nil
}

// release unmaps what guarded returned.
func release(memory []byte) error {
	page := os.Getpagesize()
	return unix.MunmapPtr(unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory)), -page), uintptr(len(memory)+2*page))
}

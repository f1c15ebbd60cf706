//go:build linux || darwin

package mmap

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

func unmap(data []byte) error { return unix.Munmap(data) }

func advise(data []byte, advice Advice) error {
	var flag int
	switch advice {
	case Sequential:
		flag = unix.MADV_SEQUENTIAL
	case WillNeed:
		flag = unix.MADV_WILLNEED
	case DontNeed:
		flag = unix.MADV_DONTNEED
	default:
		return fmt.Errorf("mmap: unknown advice %d", advice)
	}
	if err := unix.Madvise(data, flag); err != nil {
		return fmt.Errorf("mmap: advice: %w", err)
	}
	return nil
}

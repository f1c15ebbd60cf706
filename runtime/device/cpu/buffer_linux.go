package cpu

import "golang.org/x/sys/unix"

// mapMemory returns n zeroed bytes outside the Go heap, in huge or in small pages, or nil where the system has no such thing.
func mapMemory(n int, huge bool) ([]byte, error) {
	memory, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	advice := unix.MADV_NOHUGEPAGE
	if huge {
		advice = unix.MADV_HUGEPAGE
	}
	// This is advice: a kernel without huge pages refuses it, and the memory is as good.
	_ = unix.Madvise(memory, advice)
	return memory, nil
}

func unmapMemory(memory []byte) error { return unix.Munmap(memory) }

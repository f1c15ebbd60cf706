//go:build !linux

package cpu

// mapMemory returns n zeroed bytes outside the Go heap, or nil where the system has no such thing.
func mapMemory(int) ([]byte, error) { return nil, nil }

func unmapMemory([]byte) error { return nil }

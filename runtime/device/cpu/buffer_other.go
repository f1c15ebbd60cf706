//go:build !linux

package cpu

// mapMemory returns n zeroed bytes outside the Go heap, in huge or in small pages, or nil where the system has no such thing.
func mapMemory(int, bool) ([]byte, error) { return nil, nil }

func unmapMemory([]byte) error { return nil }

package cpu

import "golang.org/x/sys/unix"

// systemMemory leaves the available memory unknown: macOS tells it only through Mach calls.
func systemMemory() Memory {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Memory{}
	}
	return Memory{Total: total}
}

package bench

import "golang.org/x/sys/unix"

// peakMemory returns the most memory that the process had resident, in bytes.
func peakMemory() int64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Maxrss
}

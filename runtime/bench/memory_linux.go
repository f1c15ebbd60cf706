package bench

import (
	"os"
	"strconv"
	"strings"
)

// peakMemory returns the most memory that the process had resident, files that are mapped included, in bytes. Getrusage would
// count what the process was before exec too.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 53)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

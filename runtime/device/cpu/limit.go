package cpu

import (
	"io/fs"
	"os"
	"runtime"
)

// WorkerCount returns how many workers a pool should have. An explicit count (above 0) is the user's and stands as it is.
// Otherwise there is one for each CPU that the process may use: those of its affinity mask, no more than GOMAXPROCS, and no
// more than the CPU quota of its control groups, rounded down (a quota of 7.65 CPUs makes 7 workers: the eighth would be
// stopped in each period, and the others would wait for it) but at least 1.
func WorkerCount(explicit int) int {
	if explicit > 0 {
		return explicit
	}
	return limitCPUs(os.DirFS("/"), min(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
}

// limitCPUs lowers a number of CPUs to what the control groups of the process allow.
func limitCPUs(root fs.FS, cpus int) int {
	for _, g := range cgroups(root, "cpu") {
		if n, ok := g.cpus(); ok {
			cpus = min(cpus, n)
		}
	}
	return cpus
}

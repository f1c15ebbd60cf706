package cpu

import (
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// Info describes the CPU and the memory of the machine. What is unknown is 0 or "".
type Info struct {
	Vendor string // "GenuineIntel", "AuthenticAMD"
	Brand  string // the processor's name for itself

	// The CPUID signature, zeros on other architectures than amd64.
	Family, Model, Stepping int

	// Cores of the machine; WorkerCount has those that the process may use.
	PhysicalCores, LogicalCores int

	// Sizes of the caches in bytes. L1 and L2 are a core's; cores share L3.
	L1I, L1D, L2, L3 int

	Memory   Memory
	Features Features
}

// Memory is the main memory that the process may use, in bytes: the machine's, or less if a control group limits it.
type Memory struct {
	Total     uint64 // 0 is unknown
	Available uint64 // what can be allocated without swapping, page cache included; 0 is unknown
}

// Describe reads what the machine says of itself.
func Describe() Info {
	c := &cpuid.CPU
	root := os.DirFS("/")
	info := Info{
		Vendor:        c.VendorString,
		Brand:         strings.TrimSpace(c.BrandName),
		Family:        c.Family,
		Model:         c.Model,
		Stepping:      c.Stepping,
		PhysicalCores: c.PhysicalCores,
		LogicalCores:  c.LogicalCores,
		L1I:           max(c.Cache.L1I, 0),
		L1D:           max(c.Cache.L1D, 0),
		L2:            max(c.Cache.L2, 0),
		L3:            max(c.Cache.L3, 0),
		Memory:        limitMemory(root, systemMemory()),
		Features:      Detect(),
	}
	if physical, logical := linuxCores(root); logical > 0 {
		info.PhysicalCores, info.LogicalCores = physical, logical
	}
	if info.LogicalCores == 0 {
		info.LogicalCores = runtime.NumCPU()
	}
	return info
}

// linuxCores counts the cores that Linux shows in sysfs: cores with the same siblings are threads of one core. CPUID, the
// only other source, counts one socket, and hypervisors seldom get it right.
func linuxCores(root fs.FS) (physical, logical int) {
	names, _ := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list")
	cores := map[string]bool{}
	for _, name := range names {
		if siblings, err := fs.ReadFile(root, name); err == nil {
			cores[string(siblings)] = true
			logical++
		}
	}
	return len(cores), logical
}

// limitMemory lowers m to what the control groups of the process allow.
func limitMemory(root fs.FS, m Memory) Memory {
	for _, g := range cgroups(root, "memory") {
		// An unlimited version 1 group has a limit far above the machine's memory.
		if limit, ok := g.memory(); ok && m.Total > 0 {
			m.Total = min(m.Total, limit.Total)
			m.Available = min(m.Available, limit.Available)
		}
	}
	return m
}

// parseMeminfo reads the memory of a Linux machine from the file meminfo of proc, its sizes in KiB.
func parseMeminfo(proc fs.FS) Memory {
	var m Memory
	for line := range fileLines(proc, "meminfo") {
		name, value, _ := strings.Cut(line, ":")
		kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 53)
		if err != nil {
			continue
		}
		switch name {
		case "MemTotal":
			m.Total = kib << 10
		case "MemAvailable":
			m.Available = kib << 10
		}
	}
	return m
}

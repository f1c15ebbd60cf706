package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
)

type devicesCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*devicesCmd) Help() string {
	return `Examples:

    swizzle devices
    SWIZZLE_ISA=avx2 swizzle devices --json`
}

// deviceList is what devices --json prints.
type deviceList struct {
	CPU cpuDevice `json:"cpu"`
	GPU []string  `json:"gpu"` // this build has no GPU backends
}

type cpuDevice struct {
	Name            string    `json:"name"`
	Vendor          string    `json:"vendor"`
	GOARCH          string    `json:"goarch"`
	ISA             cpu.ISA   `json:"isa"` // the one that kernels are chosen for
	AvailableISAs   []cpu.ISA `json:"available_isas"`
	PhysicalCores   int       `json:"physical_cores"`
	LogicalCores    int       `json:"logical_cores"`
	Threads         int       `json:"threads"` // of a worker pool, by affinity and control group
	L1DBytes        int       `json:"l1d_bytes"`
	L2Bytes         int       `json:"l2_bytes"`
	L3Bytes         int       `json:"l3_bytes"`
	MemoryBytes     uint64    `json:"memory_bytes"`
	MemoryAvailable uint64    `json:"memory_available_bytes"`
}

// Run prints the devices.
func (c *devicesCmd) Run() error {
	info := cpu.Describe()
	isa, err := chosenISA()
	if err != nil {
		return err
	}
	d := cpuDevice{
		Name:            info.Brand,
		Vendor:          info.Vendor,
		GOARCH:          runtime.GOARCH,
		ISA:             isa,
		AvailableISAs:   info.Features.Available(),
		PhysicalCores:   info.PhysicalCores,
		LogicalCores:    info.LogicalCores,
		Threads:         cpu.WorkerCount(0),
		L1DBytes:        info.L1D,
		L2Bytes:         info.L2,
		L3Bytes:         info.L3,
		MemoryBytes:     info.Memory.Total,
		MemoryAvailable: info.Memory.Available,
	}
	if c.JSON {
		return printJSON(deviceList{CPU: d, GPU: []string{}})
	}
	var isas []string
	for _, i := range d.AvailableISAs {
		isas = append(isas, string(i))
	}
	name := d.Name
	if name == "" {
		name = d.GOARCH
	}
	return printTable([][]string{
		{"CPU", name},
		{"  kernels", fmt.Sprintf("%s (available: %s)", d.ISA, strings.Join(isas, ", "))},
		{"  threads", fmt.Sprintf("%d (%d cores, %d logical)", d.Threads, d.PhysicalCores, d.LogicalCores)},
		{"  caches", fmt.Sprintf("L1d %s, L2 %s a core, L3 %s", size(d.L1DBytes), size(d.L2Bytes), size(d.L3Bytes))},
		{"  memory", fmt.Sprintf("%s, %s available", size(d.MemoryBytes), size(d.MemoryAvailable))},
		{"GPU", "none in this build"},
	})
}

// size formats a size of which 0 is unknown.
func size[T int | uint64](n T) string {
	if n == 0 {
		return "unknown"
	}
	return formatBytes(uint64(n))
}

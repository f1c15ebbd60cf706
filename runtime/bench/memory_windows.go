package bench

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryCounters is PROCESS_MEMORY_COUNTERS of the Windows API.
type memoryCounters struct {
	size, pageFaults                 uint32
	peakWorkingSet, workingSet       uintptr
	quotaPeakPaged, quotaPaged       uintptr
	quotaPeakNonPaged, quotaNonPaged uintptr
	pagefileUsage, peakPagefileUsage uintptr
}

// peakMemory returns the most memory that the process had resident, in bytes.
func peakMemory() int64 {
	c := memoryCounters{size: uint32(unsafe.Sizeof(memoryCounters{}))}
	proc := windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")
	if ok, _, _ := proc.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&c)), uintptr(c.size)); ok == 0 {
		return 0
	}
	return int64(c.peakWorkingSet)
}

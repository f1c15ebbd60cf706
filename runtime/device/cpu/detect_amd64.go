package cpu

import (
	"runtime"

	"github.com/klauspost/cpuid/v2"
)

// Detect reads the features of the machine.
func Detect() Features {
	c := &cpuid.CPU
	f := Features{
		AVX:        c.Has(cpuid.AVX),
		AVX2:       c.Has(cpuid.AVX2),
		FMA:        c.Has(cpuid.FMA3),
		F16C:       c.Has(cpuid.F16C),
		AVXVNNI:    c.Has(cpuid.AVXVNNI),
		AVX512F:    c.Has(cpuid.AVX512F),
		AVX512BW:   c.Has(cpuid.AVX512BW),
		AVX512DQ:   c.Has(cpuid.AVX512DQ),
		AVX512VL:   c.Has(cpuid.AVX512VL),
		AVX512VNNI: c.Has(cpuid.AVX512VNNI),
		OSXSAVE:    c.Has(cpuid.OSXSAVE),
	}
	if f.OSXSAVE {
		// Package cpuid checks XCR0 for AVX, AVX2 and AVX-512, but not for FMA and F16C; Supports relies on none of it.
		f.XCR0 = xgetbv()
	}
	if runtime.GOOS == "darwin" && f.AVX512F {
		// macOS enables the AVX-512 states when a thread first uses them, so XCR0 does not show them yet. Package cpuid
		// has asked the system instead.
		f.XCR0 |= avx512State
	}
	return f
}

// xgetbv returns XCR0. It faults unless the system has set OSXSAVE.
func xgetbv() uint64

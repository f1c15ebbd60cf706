package cpu

import (
	"fmt"
	"slices"
	"strings"
)

// ISA names the instruction set that a family of kernels is written for.
type ISA string

// The instruction sets with kernels, and the features that each one's kernels may use. Nothing else may be assumed: BMI1
// and BMI2, for instance, are in none of them.
const (
	Portable   ISA = "portable"   // plain Go
	AVX2       ISA = "avx2"       // AVX, AVX2, FMA, F16C
	AVXVNNI    ISA = "avxvnni"    // AVX2's and AVX-VNNI (VPDPBUSD in VEX encoding)
	AVX512VNNI ISA = "avx512vnni" // AVX2's and AVX-512 F, BW, DQ, VL, VNNI
)

// preference lists every ISA, the fastest first.
var preference = [...]ISA{AVX512VNNI, AVXVNNI, AVX2, Portable}

// Features are the facts that decide which ISAs a machine can run: what CPUID says of the processor and what XCR0 says of
// the operating system. Both are needed: a processor may have registers that the system does not save on a context
// switch, and then using them faults. The zero value supports Portable alone.
type Features struct {
	AVX, AVX2, FMA, F16C                              bool
	AVXVNNI                                           bool
	AVX512F, AVX512BW, AVX512DQ, AVX512VL, AVX512VNNI bool

	OSXSAVE bool   // the system uses XSAVE, so XCR0 can be read
	XCR0    uint64 // the register states that the system saves; meaningless without OSXSAVE
}

// Parts of XCR0 (Intel SDM volume 1, section 13.3).
const (
	avxState    = 1<<1 | 1<<2                   // XMM, YMM
	avx512State = avxState | 1<<5 | 1<<6 | 1<<7 // opmask, upper halves of ZMM0–15, ZMM16–31
)

// saves reports whether the operating system saves all the given register states.
func (f Features) saves(state uint64) bool {
	return f.OSXSAVE && f.XCR0&state == state
}

// Supports reports whether kernels written for isa can run.
func (f Features) Supports(isa ISA) bool {
	avx2 := f.AVX && f.AVX2 && f.FMA && f.F16C && f.saves(avxState)
	switch isa {
	case Portable:
		return true
	case AVX2:
		return avx2
	case AVXVNNI:
		return avx2 && f.AVXVNNI
	case AVX512VNNI:
		return avx2 && f.AVX512F && f.AVX512BW && f.AVX512DQ && f.AVX512VL && f.AVX512VNNI && f.saves(avx512State)
	}
	return false
}

// Available lists the supported ISAs, the fastest first. The last one is always Portable.
func (f Features) Available() []ISA {
	var isas []ISA
	for _, isa := range preference {
		if f.Supports(isa) {
			isas = append(isas, isa)
		}
	}
	return isas
}

// Choose returns the ISA to run: override if it is not empty, else the fastest one that f supports. An override that no
// kernel is written for, or that f does not support, is an error.
func Choose(f Features, override string) (ISA, error) {
	available := f.Available()
	if override == "" {
		return available[0], nil
	}
	isa := ISA(override)
	if !slices.Contains(preference[:], isa) {
		return "", fmt.Errorf("instruction set %q is unknown: known are %s; available here are %s", override, list(preference[:]), list(available))
	}
	if !slices.Contains(available, isa) {
		return "", fmt.Errorf("instruction set %q is not available here: known are %s; available here are %s", override, list(preference[:]), list(available))
	}
	return isa, nil
}

func list(isas []ISA) string {
	var b strings.Builder
	for i, isa := range isas {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(isa))
	}
	return b.String()
}

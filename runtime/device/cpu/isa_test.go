package cpu

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// full is a machine with every feature and a system that saves every state.
var full = Features{
	AVX: true, AVX2: true, FMA: true, F16C: true, AVXVNNI: true,
	AVX512F: true, AVX512BW: true, AVX512DQ: true, AVX512VL: true, AVX512VNNI: true,
	OSXSAVE: true, XCR0: avx512State | 1,
}

func TestAvailable(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Features)
		want   []ISA
	}{
		{"everything", func(*Features) {}, []ISA{AVX512VNNI, AVXVNNI, AVX2, Portable}},
		{"no OSXSAVE", func(f *Features) { f.OSXSAVE = false }, []ISA{Portable}},
		{"XCR0 without YMM", func(f *Features) { f.XCR0 &^= 1 << 2 }, []ISA{Portable}},
		{"XCR0 without XMM", func(f *Features) { f.XCR0 &^= 1 << 1 }, []ISA{Portable}},
		{"XCR0 without opmask", func(f *Features) { f.XCR0 &^= 1 << 5 }, []ISA{AVXVNNI, AVX2, Portable}},
		{"XCR0 without upper ZMM0-15", func(f *Features) { f.XCR0 &^= 1 << 6 }, []ISA{AVXVNNI, AVX2, Portable}},
		{"XCR0 without ZMM16-31", func(f *Features) { f.XCR0 &^= 1 << 7 }, []ISA{AVXVNNI, AVX2, Portable}},
		{"XCR0 of AVX alone, no AVX-VNNI", func(f *Features) { f.XCR0, f.AVXVNNI = 7, false }, []ISA{AVX2, Portable}},
		{"AVX-512 without AVX-VNNI", func(f *Features) { f.AVXVNNI = false }, []ISA{AVX512VNNI, AVX2, Portable}},
		{"AVX-VNNI without AVX-512", func(f *Features) {
			f.AVX512F, f.AVX512BW, f.AVX512DQ, f.AVX512VL, f.AVX512VNNI = false, false, false, false, false
			f.XCR0 = 7
		}, []ISA{AVXVNNI, AVX2, Portable}},
		{"no AVX-512 F", func(f *Features) { f.AVX512F = false }, []ISA{AVXVNNI, AVX2, Portable}},
		{"no AVX-512 BW", func(f *Features) { f.AVX512BW = false }, []ISA{AVXVNNI, AVX2, Portable}},
		{"no AVX-512 DQ", func(f *Features) { f.AVX512DQ = false }, []ISA{AVXVNNI, AVX2, Portable}},
		{"no AVX-512 VL", func(f *Features) { f.AVX512VL = false }, []ISA{AVXVNNI, AVX2, Portable}},
		{"no AVX-512 VNNI", func(f *Features) { f.AVX512VNNI = false }, []ISA{AVXVNNI, AVX2, Portable}},
		{"no F16C", func(f *Features) { f.F16C = false }, []ISA{Portable}},
		{"no FMA", func(f *Features) { f.FMA = false }, []ISA{Portable}},
		{"no AVX2", func(f *Features) { f.AVX2 = false }, []ISA{Portable}},
		{"no AVX", func(f *Features) { f.AVX = false }, []ISA{Portable}},
		{"nothing", func(f *Features) { *f = Features{} }, []ISA{Portable}},
	}
	for _, tt := range tests {
		f := full
		tt.change(&f)
		if diff := cmp.Diff(tt.want, f.Available()); diff != "" {
			t.Errorf("%s: Available (-want +got):\n%s", tt.name, diff)
		}
		if got, err := Choose(f, ""); got != tt.want[0] || err != nil {
			t.Errorf("%s: Choose = %q, %v, want %q", tt.name, got, err, tt.want[0])
		}
	}
	if full.Supports("") || full.Supports("sse2") {
		t.Error("an unknown ISA is supported")
	}
}

func TestChooseOverride(t *testing.T) {
	for _, isa := range []ISA{AVX512VNNI, AVXVNNI, AVX2, Portable} {
		if got, err := Choose(full, string(isa)); got != isa || err != nil {
			t.Errorf("Choose(full, %q) = %q, %v", isa, got, err)
		}
	}
	noAVX512 := full
	noAVX512.XCR0 = avxState
	for _, tt := range []struct {
		override, want string
	}{
		{"avx512vnni", `"avx512vnni" is not available here: known are avx512vnni, avxvnni, avx2, portable; available here are avxvnni, avx2, portable`},
		{"AVX2", `"AVX2" is unknown: known are avx512vnni, avxvnni, avx2, portable; available here are avxvnni, avx2, portable`},
	} {
		got, err := Choose(noAVX512, tt.override)
		if err == nil || !strings.Contains(err.Error(), tt.want) || got != "" {
			t.Errorf("Choose(noAVX512, %q) = %q, %v, want an error with %s", tt.override, got, err, tt.want)
		}
	}
}

func TestDetect(t *testing.T) {
	f := Detect()
	t.Logf("%+v: %v", f, f.Available())
	if runtime.GOARCH != "amd64" && f != (Features{}) {
		t.Error("features of amd64 elsewhere")
	}
	if f.OSXSAVE && f.XCR0&1 == 0 {
		t.Errorf("XCR0 = %#x: x87 state is always on", f.XCR0)
	}
	if !slices.Contains(f.Available(), Portable) {
		t.Error("portable is not available")
	}
}

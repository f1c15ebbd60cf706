package dispatch

import (
	"slices"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// set makes kernels that compute nothing, by their names.
func set(names ...string) []kernel.Kernel {
	var list []kernel.Kernel
	for _, n := range names {
		name, err := kernel.ParseName(n)
		if err != nil {
			panic(err)
		}
		list = append(list, kernel.Kernel{Name: name, Params: []kernel.Param{{Name: "m", Kind: kernel.Int}}})
	}
	return list
}

func tiles(op, arch string, rows ...string) []string {
	var list []string
	for _, r := range rows {
		list = append(list, op+"__m"+r+"__"+arch)
	}
	return list
}

func names(list ...string) []kernel.Name {
	var out []kernel.Name
	for _, k := range set(list...) {
		out = append(out, k.Name)
	}
	return out
}

var everything = cpu.Features{
	AVX: true, AVX2: true, FMA: true, F16C: true, AVXVNNI: true, AVX512F: true, AVX512BW: true, AVX512DQ: true, AVX512VL: true,
	AVX512VNNI: true, OSXSAVE: true, XCR0: 0xE6,
}

func cutText(p *Plan, m int) string {
	var s []string
	for _, r := range p.Cut(m, nil) {
		s = append(s, r.Kernel.Name.Config+r.Kernel.Name.Arch[:4])
	}
	return strings.Join(s, " ")
}

func TestPlan(t *testing.T) {
	kernels := set(slices.Concat(tiles("g", "avx512vnni", "1", "2", "3", "4", "8", "12"), tiles("g", "avxvnni", "6"),
		tiles("g", "avx2", "1", "2", "3", "4"), tiles("g", "portable", "1", "2", "3", "4"))...)
	other := set("g__m16__avxvnni")
	other[0].Params = []kernel.Param{{Name: "m", Kind: kernel.Int, Slot: 3}}
	table := New(append(kernels, other...), cpu.AVX512VNNI)
	shape := Shape{"g", 64, 256}
	table.Choose(Choice{shape: {
		{From: 1, To: 1, Kernels: names("g__m1__avx2")},
		{From: 2, To: 2, Kernels: names("g__m1__avx2")}, // a tile of another height: passed over
		{From: 5, To: 5, Kernels: names("g__m4__avx2", "g__m1__portable")},
		{From: 6, To: 6, Kernels: names("g__m6__avxvnni")},    // not a multiple of four
		{From: 7, To: 7, Kernels: names("g__m5__avx512vnni")}, // not in the set
		{From: 9, To: 9, Kernels: names("h__m8__avx512vnni")}, // not of the op
		{From: 16, To: 16, Kernels: names("g__m16__avxvnni")}, // parameters in other slots
		{From: 17, To: 1 << 30, Kernels: names("g__m8__avx512vnni")},
	}}, everything)
	for _, c := range []struct {
		m             int
		chosen, other string
	}{
		{1, "m1avx2", "m1avx5"},
		{2, "m2avx5", "m2avx5"},
		{3, "m3avx5", "m3avx5"},
		{5, "m4avx2 m1port", "m4avx5 m1avx5"},
		{6, "m4avx5 m2avx5", "m4avx5 m2avx5"},
		{7, "m4avx5 m3avx5", "m4avx5 m3avx5"},
		{9, "m8avx5 m1avx5", "m8avx5 m1avx5"},
		{16, "m12avx5 m4avx5", "m12avx5 m4avx5"},
		{23, "m8avx5 m4avx5 m3avx5", "m12avx5 m8avx5 m3avx5"},
	} {
		for _, s := range []struct {
			shape Shape
			want  string
		}{{shape, c.chosen}, {Shape{"g", 64, 512}, c.other}} {
			p, err := table.Plan(s.shape, "m")
			if err != nil {
				t.Fatal(err)
			}
			if got := cutText(&p, c.m); got != s.want {
				t.Errorf("%d rows of %v: %s, want %s", c.m, s.shape, got, s.want)
			}
		}
	}
	// A table of another instruction set follows no order that needs more than it.
	table = New(kernels, cpu.AVX2)
	table.Choose(Choice{shape: {{From: 8, To: 8, Kernels: names("g__m8__avx512vnni")}, {From: 4, To: 4, Kernels: names("g__m4__portable")}}}, everything)
	p, err := table.Plan(shape, "m")
	if err != nil {
		t.Fatal(err)
	}
	if got := cutText(&p, 8); got != "m4avx2" {
		t.Errorf("8 rows on avx2: %s", got)
	}
	if got := cutText(&p, 4); got != "m4port" {
		t.Errorf("4 rows on avx2: %s", got)
	}
}

func TestTile(t *testing.T) {
	kernels := set("a__r1__portable", "a__r2__portable", "a__r3__portable", "a__r4__portable", "a__r8__portable", "a__r12__portable")
	table := New(kernels, cpu.Portable)
	table.Choose(Choice{Shape{"a", 2, 64}: {
		{From: 3, To: 3, Kernels: names("a__r4__portable")}, {From: 13, To: 99, Kernels: names("a__r1__portable", "a__r12__portable")},
	}}, everything)
	for _, c := range []struct {
		shape Shape
		m     int
		want  string
	}{
		{Shape{"a", 2, 64}, 3, "r4"}, {Shape{"a", 2, 64}, 13, "r12"}, {Shape{"a", 2, 64}, 2, "r2"},
		{Shape{"a", 1, 64}, 3, "r3"}, {Shape{"a", 1, 64}, 16, "r8"}, {Shape{"a", 1, 64}, 5, "r8"},
	} {
		p, err := table.Plan(c.shape, "r")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Tile(c.m).Name.Config; got != c.want {
			t.Errorf("%d rows of %v: %s, want %s", c.m, c.shape, got, c.want)
		}
	}
}

// Every cut covers its rows, whatever the order.
func TestCutCovers(t *testing.T) {
	table := New(set(tiles("g", "avx2", "1", "2", "3", "4", "8", "12")...), cpu.AVX2)
	rows, err := table.Rows("g", "m")
	if err != nil {
		t.Fatal(err)
	}
	for turn := range rows {
		order := append(append(Rows{}, rows[turn:]...), rows...)
		for m := range 70 {
			at := 0
			for _, r := range order.Cut(m, nil) {
				if r.First != at || r.First%4 != 0 || r.Rows%r.Tile != 0 || r.Tile < 4 && r.Rows != r.Tile {
					t.Fatalf("%d rows: run %+v at %d", m, r, at)
				}
				at += r.Rows
			}
			if at != m {
				t.Errorf("%d rows in the order from %d: %d covered", m, rows[turn].Rows, at)
			}
		}
	}
}

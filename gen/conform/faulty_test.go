package conform

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// The stage sees what kernels do wrong: each of these copies x to out, word by word, and something else besides.
func TestStageSeesFaults(t *testing.T) {
	word := func(p unsafe.Pointer, i int) *uint32 { return (*uint32)(unsafe.Add(p, 4*i)) }
	guards := runtime.GOOS != "windows" && runtime.GOOS != "plan9"
	const n = 32 // two lines
	for _, c := range []struct {
		name  string
		place placement
		also  func(a *kernel.Args, lo, hi int)
		want  string // in the error; "" for none
	}{
		{"nothing else", atEnd, func(*kernel.Args, int, int) {}, ""},
		{"nothing else", atStart, func(*kernel.Args, int, int) {}, ""},
		{"nothing else", offset, func(*kernel.Args, int, int) {}, ""},
		{"nothing else", onHeap, func(*kernel.Args, int, int) {}, ""},
		{"a store before the output", atEnd, func(a *kernel.Args, _, _ int) { *word(a.Buf[1], -1) = 0 }, "out: byte -4 was written; it has 128"},
		{"a store after the output", atStart, func(a *kernel.Args, _, _ int) { *word(a.Buf[1], n) = 0 }, "out: byte 128 was written; it has 128"},
		{"a store to the input", onHeap, func(a *kernel.Args, _, _ int) { *word(a.Buf[0], 3) ^= 1 }, "x, an input, was written"},
		{"a wrong bit", offset, func(a *kernel.Args, _, _ int) { *word(a.Buf[1], n-1) ^= 1 }, "out: element 31 (f32)"},
		{"a load past the line", atEnd, func(a *kernel.Args, _, _ int) { *word(a.Buf[1], 0) = *word(a.Buf[0], n) }, "fault at byte 128 of x, which has 128"},
		{"a load before the start", atStart, func(a *kernel.Args, _, _ int) { *word(a.Buf[1], 0) = *word(a.Buf[0], -1) }, "fault at byte -4 of x, which has 128"},
		{"a load past the line off alignment", offset, func(a *kernel.Args, _, _ int) { *word(a.Buf[1], 0) = *word(a.Buf[0], n+15) }, "fault at byte 188 of x"},
		{"a parameter that it doesn't have", onHeap, func(a *kernel.Args, _, _ int) { *word(a.Buf[2], 0) = 0 }, "nil pointer"},
		{"another argument", onHeap, func(a *kernel.Args, _, _ int) { a.Int[0]-- }, "changed its argument block"},
		{"too much scratch", atEnd, func(a *kernel.Args, _, _ int) { *word(a.Scratch, 16) = 0 }, "fault at byte 64 of scratch, of which it asked for 40"},
		{"scratch before its start", onHeap, func(a *kernel.Args, _, _ int) { *word(a.Scratch, -1) = 0 }, "scratch: byte -4 was written"},
	} {
		if !guards && strings.HasPrefix(c.want, "fault") {
			continue
		}
		k := &kernel.Kernel{
			Name: kernel.Name{Op: "copy", Config: "any", Arch: "portable"}, Grid: []kernel.Axis{{Slot: 0, Tile: 8}}, Shared: 40,
			Params: []kernel.Param{{Name: "x", Type: "f32", Access: "in"}, {Name: "out", Slot: 1, Type: "f32", Access: "out"}, {Name: "n", Kind: kernel.Int}},
			Func: func(a *kernel.Args, lo, hi int) {
				for i := 8 * lo; i < 8*hi; i++ {
					*word(a.Buf[1], i) = *word(a.Buf[0], i)
				}
				c.also(a, lo, hi)
			},
		}
		x := make([]byte, 4*n)
		for i := range x {
			x[i] = byte(5 * i)
		}
		cs := &ops.Case{
			Buf: map[string][]byte{"x": x, "out": make([]byte, len(x))}, Want: map[string][]byte{"out": x}, Int: map[string]int64{"n": n},
		}
		err := newStage(t).run(k, cs, c.place, whole)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %s: %v, want %q", c.name, c.place, err, c.want)
		}
	}
}

// Calls cover the grid once, in pieces.
func TestCalls(t *testing.T) {
	for name, calls := range map[string]func(int) []span{"whole": whole, "scattered": scattered(3), "singly": singly} {
		for _, tiles := range []int{0, 1, 2, 17} {
			ran := make([]int, tiles)
			for _, c := range calls(tiles) {
				for n := c.lo; n < c.hi; n++ {
					ran[n]++
				}
			}
			for n, times := range ran {
				if times != 1 {
					t.Errorf("%s: tile %d of %d runs %d times", name, n, tiles, times)
				}
			}
		}
	}
}

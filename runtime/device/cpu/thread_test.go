//go:build amd64 || arm64

package cpu

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
)

// flushControl makes a thread flush subnormals: FTZ and DAZ on amd64, FZ on arm64.
var flushControl = map[string]uint32{"amd64": 0x9FC0, "arm64": 1 << 24}[runtime.GOARCH]

// smallest is the smallest subnormal, a variable so that the compiler does not add it itself.
var smallest = math.Float32frombits(1)

// TestPoolFloatControl spoils the floating-point environment of every thread of a pool and looks at it in the next job.
func TestPoolFloatControl(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		p := NewPool(workers)
		for _, r := range runs {
			for range 20 {
				r.run(p, 64, func(_, _, _ int) { setFloatControl(flushControl) })
				var bad, flushed atomic.Uint32
				r.run(p, 64, func(worker, lo, hi int) {
					if v := floatControl(); v&^0x3F != defaultFloatControl { // status flags aside
						bad.Store(v)
					}
					x := smallest
					for range hi - lo {
						x = add(x, smallest)
					}
					if x != math.Float32frombits(uint32(hi-lo)+1) {
						flushed.Store(math.Float32bits(x) + 1)
					}
				})
				if v := bad.Load(); v != 0 {
					t.Errorf("%s with %d workers: control register %#x, want %#x", r.name, workers, v, defaultFloatControl)
				}
				if flushed.Load() != 0 {
					t.Errorf("%s with %d workers: subnormal sum is %#x", r.name, workers, flushed.Load()-1)
				}
			}
		}
		p.Close()
	}
}

// add adds where it is called: inlined, the sum might be scheduled past a change of the control register.
//
//go:noinline
func add(a, b float32) float32 { return a + b }

// TestSetFloatControl checks that the register holds what was set, and that it does what the tests above rely on.
func TestSetFloatControl(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	setFloatControl(flushControl)
	got := floatControl()
	sum := add(smallest, smallest)
	setFloatControl(defaultFloatControl)
	reset := floatControl()
	if got != flushControl {
		t.Errorf("control register %#x, want %#x", got, flushControl)
	}
	if reset != defaultFloatControl {
		t.Errorf("control register %#x, want %#x", reset, defaultFloatControl)
	}
	if sum != 0 {
		t.Errorf("sum of subnormals is %v with flushing on", sum)
	}
}

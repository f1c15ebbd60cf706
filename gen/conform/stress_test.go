package conform

import (
	"io"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"sync"
	"testing"
	"time"

	"github.com/swizzle-rt/swizzle/ir/ops"
)

// onePerOp keeps one config of each op.
func onePerOp(configs []*config) (list []*config) {
	for _, c := range configs {
		if len(list) == 0 || list[len(list)-1].op.Name != c.op.Name {
			list = append(list, c)
		}
	}
	return list
}

// Tiles of one grid may run at the same time. The buffers lie on Go's heap, where the race detector sees what portable
// kernels do, and the garbage is collected all the while.
func TestTilesInParallel(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	const workers = 2
	stage := newStage(t)
	for _, c := range onePerOp(runnable(t)) {
		shape := c.op.Shapes[len(c.op.Shapes)-1]
		cs := c.op.Case(c.variant, shape, ops.NewData(ops.Random, 5))
		for _, k := range c.kernels {
			if err := stage.set(k, cs, onHeap); err != nil {
				t.Fatalf("%s: %v", k.Name, err)
			}
			tiles := k.Tiles(&stage.args)
			var group sync.WaitGroup
			errs := make([]error, workers)
			for w := range workers {
				group.Go(func() {
					args := stage.args
					var scratch arena
					if errs[w] = lend(k, &args, &scratch, onHeap); errs[w] != nil {
						return
					}
					for n := w; n < tiles; n += workers {
						k.Func(&args, n, n+1)
					}
					if k.Shared > 0 {
						errs[w] = scratch.intact()
					}
				})
			}
			group.Wait()
			for _, err := range append(errs, stage.compare(k, cs)) {
				if err != nil {
					t.Errorf("%s, shape %v: %v", k.Name, shape, err)
				}
			}
		}
	}
}

// Kernels run while the execution tracer and the CPU profiler walk the stacks and garbage is collected: an unwinder that a
// kernel's frame or frame pointer misleads would crash.
func TestTracedAndProfiled(t *testing.T) {
	if err := trace.Start(io.Discard); err != nil {
		t.Skip(err)
	}
	defer trace.Stop()
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Skip(err)
	}
	defer pprof.StopCPUProfile()
	done := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	})
	defer collector.Wait()
	defer close(done)

	limit := time.Second
	if testing.Short() {
		limit /= 5
	}
	configs := runnable(t)
	stage := newStage(t)
	calls := 0
	for start, n := time.Now(), 0; time.Since(start) < limit || n < len(configs); n++ {
		c := configs[n%len(configs)]
		cs := c.op.Case(c.variant, c.op.Shapes[0], ops.NewData(ops.Random, 6))
		for _, k := range c.kernels {
			if err := stage.run(k, cs, atEnd, whole); err != nil {
				t.Fatalf("%s: %v", k.Name, err)
			}
			tiles := k.Tiles(&stage.args)
			for range 20 { // their results depend on how often they ran, where a sum goes to the output
				k.Func(&stage.args, 0, tiles)
				calls++
			}
		}
	}
	t.Logf("%d calls", calls)
}

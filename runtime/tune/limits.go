package tune

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Limits are a roofline: what the machine can do at most, by measurement on all workers.
type Limits struct {
	// Bandwidth is bytes a second: the product of one row with Q8_0 weights that no cache holds, in huge pages; the median of
	// several, since a machine that others share has moments of far more.
	Bandwidth float64 `json:"bandwidth"`
	// Int8 and Float are operations a second (a multiplication and an addition are two): the best that any product kernel
	// reaches, on quantized and on float weights, where all operands lie in the first cache.
	Int8  float64 `json:"int8"`
	Float float64 `json:"float"`
}

// peak returns the operations a second that bound an op.
func (l Limits) peak(op string) float64 {
	switch op {
	case "gemm_f32", "gemm_f16", "gemm_bf16":
		return l.Float
	}
	if strings.HasPrefix(op, "gemm_") {
		return l.Int8
	}
	return l.Float
}

// bound returns the nanoseconds that an op takes at least.
func (l Limits) bound(op string, bytes, ops int64) float64 {
	return nanosecondsOf(max(float64(bytes)/l.Bandwidth, float64(ops)/l.peak(op)))
}

const (
	minRegion = 256 << 20
	maxRegion = 1 << 30
)

// region is the size of memory that no cache holds: three times the last cache and no less than 256 MiB, since caches that a
// host shares may be larger than they say, as far as memory allows.
func region(info cpu.Info) int {
	n := min(max(3*max(info.L2, info.L3), minRegion), maxRegion)
	if a := info.Memory.Available; a > 0 && uint64(n) > a/8 {
		n = int(a / 8)
	}
	return n
}

// measureLimits measures the machine.
func (t *tuner) measureLimits() (l Limits, err error) {
	const k, tries = 1024, 11
	var mem memory
	defer mem.free()
	row, err := t.dev.Rows("gemm_q8_0", "m")
	if err != nil {
		return l, err
	}
	one := row[len(row)-1].Kernel
	pack, err := t.dev.Config(one.Pack, "any")
	if err != nil {
		return l, err
	}
	n := len(t.space) / pack.Layout.Bytes(pack.Layout.Rows, k) * pack.Layout.Rows
	p, err := newProduct(&mem, t.dev, one, n, k, 1, t.space, true)
	if err != nil {
		return l, err
	}
	j, err := p.job([]dispatch.Run{{Kernel: one, Rows: 1, Tile: 1}}, false)
	if err != nil {
		return l, err
	}
	j.run(t.dev) // touches everything
	var samples []float64
	for range tries {
		start := time.Now()
		j.run(t.dev)
		samples = append(samples, float64(p.stride)/time.Since(start).Seconds())
	}
	l.Bandwidth = math.Round(quantile(samples, 2))
	for _, op := range []string{"gemm_q8_0", "gemm_f16", "gemm_f32"} {
		rows, err := t.dev.Rows(op, "m")
		if err != nil {
			return l, err
		}
		for _, k := range rows {
			// A kernel that doesn't pass sets no limit.
			if t.checkBits(task{Problem: Problem{op, checkN, checkK, k.Rows}}, whole(k, k.Rows)) != nil {
				continue
			}
			rate, err := t.rate(k)
			if err != nil {
				return l, err
			}
			if op == "gemm_q8_0" {
				l.Int8 = max(l.Int8, rate)
			} else {
				l.Float = max(l.Float, rate)
			}
		}
	}
	return l, nil
}

// rate returns the operations a second of a product kernel whose operands lie in the first cache, on all workers together.
func (t *tuner) rate(k dispatch.RowKernel) (float64, error) {
	if r, ok := t.rates[k.Kernel.Name]; ok {
		return r, nil
	}
	const tries = 3
	elements := 512
	if paramOf(k.Kernel, "x") >= 0 {
		elements = 256 // of four bytes
	}
	var mem memory
	defer mem.free()
	workers := make([]kernel.Args, t.dev.Threads())
	for i := range workers {
		p, err := newProduct(&mem, t.dev, k.Kernel, 16, elements, k.Rows, nil, true)
		if err != nil {
			return 0, err
		}
		j, err := p.job([]dispatch.Run{{Kernel: k.Kernel, Rows: k.Rows, Tile: k.Rows}}, false)
		if err != nil {
			return 0, err
		}
		scratch, err := mem.alloc(kernel.ScratchBytes)
		if err != nil {
			return 0, err
		}
		workers[i] = j.args[0]
		workers[i].Scratch = pointer(scratch)
	}
	best := 0.0
	for range tries {
		sum := 0.0
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				calls := repeatFor(minSample/2, func() { k.Kernel.Func(&workers[i], 0, 1) })
				mu.Lock()
				defer mu.Unlock()
				sum += calls
			})
		}
		wg.Wait()
		best = max(best, sum)
	}
	best = math.Round(float64(best * float64(2*16*elements*k.Rows)))
	t.rates[k.Kernel.Name] = best
	return best, nil
}

// repeatFor calls f for a time and returns the calls a second. It looks at the clock after every few calls.
func repeatFor(d time.Duration, f func()) float64 {
	const few = 16
	start := time.Now()
	for calls := few; ; calls += few {
		for range few {
			f()
		}
		if spent := time.Since(start); spent >= d {
			return float64(calls) / spent.Seconds()
		}
	}
}

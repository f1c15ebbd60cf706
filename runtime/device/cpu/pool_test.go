package cpu

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// runs are the two ways to run a job.
var runs = []struct {
	name string
	run  func(p *Pool, tasks int, fn func(worker, lo, hi int))
}{
	{"Run", (*Pool).Run},
	{"RunStatic", (*Pool).RunStatic},
}

func TestPoolCoversTasks(t *testing.T) {
	for _, workers := range []int{-1, 1, 2, 3, 8} {
		p := NewPool(workers)
		if want := max(workers, 1); p.Workers() != want {
			t.Errorf("NewPool(%d).Workers() = %d", workers, p.Workers())
		}
		for _, r := range runs {
			for _, tasks := range []int{-5, 0, 1, 2, 3, 7, 16, 17, 63, 64, 65, 1000, 12345} {
				count := make([]atomic.Int32, max(tasks, 0))
				busy := make([]atomic.Bool, p.Workers())
				r.run(p, tasks, func(worker, lo, hi int) {
					if lo >= hi {
						t.Errorf("%s with %d workers, %d tasks: empty call %d, %d", r.name, workers, tasks, lo, hi)
					}
					if busy[worker].Swap(true) {
						t.Errorf("%s with %d workers, %d tasks: worker %d has two calls", r.name, workers, tasks, worker)
					}
					for i := lo; i < hi; i++ {
						count[i].Add(1)
					}
					busy[worker].Store(false)
				})
				for i := range count {
					if n := count[i].Load(); n != 1 {
						t.Fatalf("%s with %d workers: task %d of %d ran %d times", r.name, workers, i, tasks, n)
					}
				}
			}
		}
		p.Close()
	}
}

// TestPoolBarrier checks that what the workers write is the caller's to read, and that jobs do not overlap. The race
// detector sees to the first.
func TestPoolBarrier(t *testing.T) {
	for _, workers := range []int{2, 3} {
		p := NewPool(workers)
		data := make([]int, 300)
		for round := range 500 {
			runs[round%2].run(p, 1+round%len(data), func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					data[i]++
				}
			})
			if round%100 == 0 {
				time.Sleep(2 * spinTime) // so that workers park
			}
		}
		for i := range data {
			want := 0
			for round := range 500 {
				if i <= round%len(data) {
					want++
				}
			}
			if data[i] != want {
				t.Fatalf("%d workers: data[%d] = %d, want %d", workers, i, data[i], want)
			}
		}
		p.Close()
	}
}

// TestPoolParallel checks that all workers do take part: each call waits for the other's.
func TestPoolParallel(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for _, r := range runs {
		for range 20 {
			var started atomic.Int32
			r.run(p, 2, func(worker, lo, hi int) {
				started.Add(1)
				for began := time.Now(); started.Load() < 2; runtime.Gosched() {
					if time.Since(began) > 10*time.Second {
						t.Errorf("%s: worker %d is alone", r.name, worker)
						return
					}
				}
			})
		}
	}
}

func TestPoolStaticShares(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	for range 20 {
		var mu sync.Mutex
		got := map[int]int{}
		p.RunStatic(11, func(worker, lo, hi int) {
			mu.Lock()
			defer mu.Unlock()
			got[lo] = hi
		})
		if fmt.Sprint(got) != "map[0:4 4:8 8:11]" {
			t.Fatalf("shares %v", got)
		}
	}
}

func TestPoolPanic(t *testing.T) {
	cause := errors.New("cause")
	for _, workers := range []int{1, 2, 3} {
		p := NewPool(workers)
		for _, r := range runs {
			for bad := range 8 {
				err := func() (err error) {
					defer func() { err, _ = recover().(error) }()
					r.run(p, 8, func(worker, lo, hi int) {
						if lo <= bad && bad < hi {
							panic(cause)
						}
					})
					return nil
				}()
				var pe *Panic
				if !errors.As(err, &pe) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "pool_test.go") {
					t.Errorf("%s with %d workers, panic in task %d: recovered %v", r.name, workers, bad, err)
				}
			}
			var sum atomic.Int64
			r.run(p, 100, func(_, lo, hi int) { sum.Add(int64(hi - lo)) })
			if sum.Load() != 100 {
				t.Errorf("%s with %d workers does %d tasks of 100 after a panic", r.name, workers, sum.Load())
			}
		}
		p.Close()
	}
}

func TestPoolClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		p := NewPool(3)
		p.Run(10, func(_, _, _ int) {})
		p.Close()
		p.Close()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Run on a closed pool returns")
				}
			}()
			p.Run(10, func(_, _, _ int) { t.Error("a closed pool works") })
		}()
	}
	// A goroutine is counted for a moment after its last deferred call.
	for began := time.Now(); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestPoolConcurrentCallers(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var wg sync.WaitGroup
	data := make([]int, 64) // unsynchronised: jobs run one after the other
	for range 4 {
		wg.Go(func() {
			for range 50 {
				p.Run(len(data), func(_, lo, hi int) {
					for i := lo; i < hi; i++ {
						data[i]++
					}
				})
			}
		})
	}
	wg.Wait()
	for i, v := range data {
		if v != 200 {
			t.Fatalf("data[%d] = %d, want 200", i, v)
		}
	}
}

func TestPoolAllocs(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var sum atomic.Int64
	fn := func(_, lo, hi int) { sum.Add(int64(hi - lo)) }
	for _, r := range runs {
		if n := testing.AllocsPerRun(200, func() { r.run(p, 100, fn) }); n != 0 {
			t.Errorf("%s allocates %v times", r.name, n)
		}
	}
}

// TestPoolOversubscribed checks that more workers than CPUs, or a single P, do not crawl: if every job had to wait out a
// time slice of the scheduler (10 ms), they would take 2 s more than one worker does.
func TestPoolOversubscribed(t *testing.T) {
	const jobs = 200
	measure := func(workers int) time.Duration {
		p := NewPool(workers)
		defer p.Close()
		began := time.Now()
		var sum atomic.Int64
		for i := range jobs {
			runs[i%2].run(p, 64, func(_, lo, hi int) {
				for range (hi - lo) * 100 {
					pause()
				}
				sum.Add(int64(hi - lo))
			})
		}
		if sum.Load() != 64*jobs {
			t.Errorf("%d workers: %d tasks, want %d", workers, sum.Load(), 64*jobs)
		}
		return time.Since(began)
	}
	limit := 5*measure(1) + time.Second
	check := func(workers int) {
		if took := measure(workers); took > limit {
			t.Errorf("%d workers and %d Ps: %d jobs take %v, want at most %v", workers, runtime.GOMAXPROCS(0), jobs, took, limit)
		}
	}
	check(runtime.NumCPU() + 1)
	check(4 * runtime.NumCPU())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	check(2)
	check(3)
}

func BenchmarkPool(b *testing.B) {
	empty := func(_, _, _ int) {}
	for _, workers := range []int{1, 2, 3} {
		p := NewPool(workers)
		for _, r := range runs {
			b.Run(fmt.Sprintf("%s/empty/%d", r.name, workers), func(b *testing.B) {
				for b.Loop() {
					r.run(p, workers, empty)
				}
			})
		}
		p.Close()
	}
	p := NewPool(2)
	defer p.Close()
	// The caller waits in its part for the other worker to begin: the whole way there and back.
	var begun atomic.Bool
	meet := func(worker, _, _ int) {
		if worker != 0 {
			begun.Store(true)
			return
		}
		for !begun.Load() {
			pause()
		}
	}
	b.Run("meet/2", func(b *testing.B) {
		for b.Loop() {
			begun.Store(false)
			p.RunStatic(2, meet)
		}
	})
	b.Run("meet/2/parked", func(b *testing.B) {
		var took time.Duration
		for b.Loop() {
			time.Sleep(5 * spinTime)
			begun.Store(false)
			began := time.Now()
			p.RunStatic(2, meet)
			took += time.Since(began)
		}
		b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/wake")
	})
}

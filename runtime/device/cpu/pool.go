package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A Pool is a fixed set of threads that run the tiles of kernels. The caller of Run is worker 0; the others are
// goroutines of the pool, each locked to a thread. Between jobs they spin for a moment and then park, so an idle pool uses
// no CPU.
//
// Every worker starts its part of a job with the floating-point environment in its default state (round to nearest even,
// subnormals kept): a library loaded into the process may have left a thread in another, and new threads inherit it.
type Pool struct {
	mu     sync.Mutex // held through a job
	closed bool
	ended  sync.WaitGroup
	spin   bool

	start []signal // start[i] begins worker i's part of a job; start[0] is not used
	done  signal   // the last worker to finish tells the caller

	// The job: written by the caller before it sets the start signals.
	fn     func(worker, lo, hi int)
	tasks  int
	n      int  // workers taking part
	chunk  int  // tasks claimed at a time
	static bool // worker i has tasks i·tasks/n … (i+1)·tasks/n

	_       [cacheLine]byte
	next    atomic.Int64 // the first task that nobody has claimed
	_       [cacheLine]byte
	pending atomic.Int32 // workers that have not finished, the caller among them
	panic   atomic.Pointer[Panic]
	_       [cacheLine]byte
}

// cacheLine is the distance that keeps two words from sharing a cache line, with the neighbour that some processors
// prefetch along with it.
const cacheLine = 128

// leastShare is the smallest piece that Run makes of a job, as a share of a worker's part: small enough to level out workers
// of unequal speed at the end, large enough to be worth claiming.
const leastShare = 64

// Panic is what Run panics with in its caller when fn has panicked in a worker.
type Panic struct {
	Worker int
	Value  any    // what fn panicked with
	Stack  []byte // the worker's stack at that point
}

// Error describes the panic and shows where it happened.
func (p *Panic) Error() string {
	return fmt.Sprintf("panic in worker %d: %v\n\n%s", p.Worker, p.Value, p.Stack)
}

// Unwrap returns Value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// NewPool starts a pool of n workers, of which the caller of Run is one. An n below 1 counts as 1. Close ends it.
func NewPool(n int) *Pool {
	n = max(n, 1)
	p := &Pool{
		start: make([]signal, n),
		// With fewer CPUs than workers a spinning thread keeps from work the one that it waits for.
		spin: n <= min(runtime.NumCPU(), runtime.GOMAXPROCS(0)),
	}
	p.done.wake = make(chan struct{}, 1)
	p.ended.Add(n - 1)
	for i := 1; i < n; i++ {
		p.start[i].wake = make(chan struct{}, 1)
		go p.loop(i)
	}
	return p
}

// Workers returns the number of workers, the caller of Run included.
func (p *Pool) Workers() int { return len(p.start) }

// Run calls fn until it has covered the tasks 0 … tasks−1 and returns when all calls have. Each call does the tasks
// lo … hi−1 on the given worker (0 … Workers−1); a worker has one call at a time. Workers claim short runs of tasks in
// ascending order as they become free.
//
// Run allocates nothing, but a function literal that captures variables is itself allocated where it is written. If fn
// panics, Run panics with a *Panic once all workers have stopped. fn may not call Run or Close on the same pool, nor end
// its goroutine (runtime.Goexit). Jobs of several callers run one after the other.
func (p *Pool) Run(tasks int, fn func(worker, lo, hi int)) { p.run(tasks, false, fn) }

// RunStatic is Run with each worker given one contiguous range of tasks, the same for every job of the same size. It suits
// work that streams through memory. A range whose worker is late to start is done by the caller, as worker 0.
func (p *Pool) RunStatic(tasks int, fn func(worker, lo, hi int)) { p.run(tasks, true, fn) }

// Solo calls fn once, for all tasks, on the calling goroutine as worker 0: for work too small to share.
func (p *Pool) Solo(tasks int, fn func(worker, lo, hi int)) {
	if tasks <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		panic("cpu: Solo on a closed Pool")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	setFloatControl(defaultFloatControl)
	fn(0, 0, tasks)
}

func (p *Pool) run(tasks int, static bool, fn func(worker, lo, hi int)) {
	if tasks <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		panic("cpu: Run on a closed Pool")
	}
	// Locked, the caller stays on the thread whose floating-point environment it sets.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	n := min(len(p.start), tasks)
	p.fn, p.tasks, p.n, p.static = fn, tasks, n, static
	p.chunk = (tasks-1)/(n*leastShare) + 1
	p.next.Store(0)
	p.pending.Store(int32(n))
	for i := 1; i < n; i++ {
		p.start[i].set()
	}
	p.work(0, 0)
	// A worker that has not even started by now is not waited for: it may be parked, or its CPU taken by another thread.
	finished := int32(1)
	for i := 1; i < n; i++ {
		if p.start[i].retract() {
			if static {
				p.work(0, i)
			}
			finished++
		}
	}
	if p.pending.Add(-finished) > 0 {
		p.done.take(p.spin)
	}
	p.fn = nil
	if v := p.panic.Swap(nil); v != nil {
		panic(v)
	}
}

// Close ends the workers and waits until they are gone. Closing twice is harmless.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	for i := 1; i < len(p.start); i++ {
		p.start[i].set()
	}
	p.ended.Wait()
}

// loop is the life of a worker other than the caller.
func (p *Pool) loop(worker int) {
	defer p.ended.Done()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		p.start[worker].take(p.spin)
		if p.closed {
			return
		}
		p.work(worker, worker)
		if p.pending.Add(-1) == 0 {
			p.done.set()
		}
	}
}

// work does a worker's part of the job: of a static job the given share, of any other what it can claim.
func (p *Pool) work(worker, share int) {
	defer func() {
		if v := recover(); v != nil {
			p.panic.CompareAndSwap(nil, &Panic{Worker: worker, Value: v, Stack: debug.Stack()})
			p.next.Store(int64(p.tasks)) // the others need not go on
		}
	}()
	setFloatControl(defaultFloatControl)
	if p.static {
		if lo, hi := p.share(share), p.share(share+1); lo < hi {
			p.fn(worker, lo, hi)
		}
		return
	}
	for { // claim half of a fair share of what is left, so that pieces are long at first and short at the end
		lo := p.next.Load()
		left := p.tasks - int(lo)
		if left <= 0 {
			return
		}
		n := min(left, max(p.chunk, left/(2*p.n)))
		if p.next.CompareAndSwap(lo, lo+int64(n)) {
			p.fn(worker, int(lo), int(lo)+n)
		}
	}
}

// share returns the first task of the i-th of n shares of a static job; the first tasks%n shares are longer by one.
func (p *Pool) share(i int) int {
	return i*(p.tasks/p.n) + min(i, p.tasks%p.n)
}

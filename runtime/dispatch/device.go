package dispatch

import (
	"unsafe"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Device runs kernels on a pool of workers, each with scratch memory of its own. One batch runs at a time.
type Device struct {
	*Table
	pool    *cpu.Pool
	workers []worker
	job     func(worker, lo, hi int) // made once: a literal in Run would be allocated every time
	batch   []Call
}

type worker struct {
	args    kernel.Args
	scratch *cpu.Buffer
	_       [64]byte // keeps workers' arguments on different cache lines
}

// Call is one kernel with its arguments. Work is the size of a tile in multiply-adds; an element of an op on elements
// counts as [Element] of them.
type Call struct {
	Kernel *kernel.Kernel
	Args   *kernel.Args
	Work   int
	tiles  int // set by Run
}

// Element is the work of an element, in multiply-adds that take as long.
const Element = 64

// rate returns how many multiply-adds a kernel does in a nanosecond, roughly and rather too low.
func rate(k *kernel.Kernel) int {
	if k.Name.Arch == string(cpu.Portable) {
		return 1
	}
	return 64
}

// NewDevice starts the workers.
func NewDevice(t *Table, threads int) (*Device, error) {
	d := &Device{Table: t, pool: cpu.NewPool(threads), workers: make([]worker, threads)}
	for i := range d.workers {
		b, err := cpu.Alloc(kernel.ScratchBytes)
		if err != nil {
			d.pool.Close()
			return nil, err
		}
		d.workers[i].scratch = b
	}
	d.job = d.work
	return d, nil
}

// Close ends the workers.
func (d *Device) Close() { d.pool.Close() }

// Threads returns the number of workers.
func (d *Device) Threads() int { return len(d.workers) }

const (
	// callTime bounds one kernel call, in nanoseconds: assembly can't be preempted.
	callTime = 50_000
	// soloTime is what one worker does sooner than it could call others.
	soloTime = 1_000
)

// Run runs every tile of every call; the calls don't depend on each other.
func (d *Device) Run(calls ...Call) {
	tiles, time := 0, 0
	for i := range calls {
		c := &calls[i]
		c.tiles = c.Kernel.Tiles(c.Args)
		tiles += c.tiles
		time += c.tiles * c.Work / rate(c.Kernel)
	}
	d.batch = calls
	if time <= soloTime {
		d.pool.Solo(tiles, d.job)
	} else {
		d.pool.Run(tiles, d.job)
	}
	d.batch = nil
}

// work runs the tiles lo … hi−1, counted through the batch.
func (d *Device) work(n, lo, hi int) {
	w := &d.workers[n]
	for i := range d.batch {
		c := &d.batch[i]
		if lo < c.tiles && lo < hi {
			w.args = *c.Args
			w.args.Scratch = unsafe.Pointer(unsafe.SliceData(w.scratch.Bytes()))
			step := max(1, callTime*rate(c.Kernel)/max(c.Work, 1))
			end := min(hi, c.tiles)
			for at := lo; at < end; at += step {
				c.Kernel.Func(&w.args, at, min(at+step, end))
			}
			lo = end
		}
		lo, hi = lo-c.tiles, hi-c.tiles
		if hi <= 0 {
			return
		}
	}
}

package dispatch

import (
	"unsafe"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Device runs kernels on a pool of workers, each with scratch memory of its own. One kernel runs at a time.
type Device struct {
	*Table
	pool    *cpu.Pool
	workers []worker
	job     func(worker, lo, hi int) // made once: a literal in Run would be allocated every time
	kernel  *kernel.Kernel
	args    *kernel.Args
	step    int
}

type worker struct {
	args    kernel.Args
	scratch *cpu.Buffer
	_       [64]byte // keeps workers' arguments on different cache lines
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

// callWork bounds the work of one kernel call, in multiply-adds or elements, to well under 100 µs: assembly can't be
// preempted.
const callWork = 1 << 19

// Run runs every tile of the kernel's grid; work is the size of a tile in multiply-adds or elements.
func (d *Device) Run(k *kernel.Kernel, a *kernel.Args, work int) {
	d.kernel, d.args, d.step = k, a, max(1, callWork/max(work, 1))
	d.pool.Run(k.Tiles(a), d.job)
	d.kernel, d.args = nil, nil
}

func (d *Device) work(n, lo, hi int) {
	w := &d.workers[n]
	w.args = *d.args
	w.args.Scratch = unsafe.Pointer(unsafe.SliceData(w.scratch.Bytes()))
	for ; lo < hi; lo += d.step {
		d.kernel.Func(&w.args, lo, min(lo+d.step, hi))
	}
}

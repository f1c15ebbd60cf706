package bench

import (
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Limits measures what the machine allows: reading memory and multiplying integers, with all threads at once.
//
// The read bandwidth is that of a loop, in Go, over a buffer larger than the caches and in huge pages, a contiguous part for each
// thread; it touches a word of every cache line. The int8 peak is that of the fastest generated kernel for products of quantized
// rows and weights, on tiles that stay in the first-level cache: it includes unpacking and scaling, so the processor's bare
// instructions may reach more.
type Limits struct {
	pool    *cpu.Pool
	buffer  *cpu.Buffer // made by the first ReadBandwidth
	bytes   int
	sums    []uint64 // of each worker, so that its reads are not optimized away
	product *kernel.Kernel
	tiles   []tile // of each worker
}

// Bounds of the buffer's size.
const (
	minBuffer = 256 << 20
	maxBuffer = 1 << 30
)

const (
	limitTime = 50 * time.Millisecond // of one measurement, about
	sliceTime = 2 * time.Millisecond  // of its parts, the best of which counts: others may use the machine too
)

// NewLimits chooses the kernel and starts the threads.
func NewLimits(table *dispatch.Table, threads int) *Limits {
	info := cpu.Describe()
	l := &Limits{pool: cpu.NewPool(threads), sums: make([]uint64, threads), bytes: min(max(4*info.L3, minBuffer), maxBuffer)}
	if m := info.Memory.Available / 4; m > 0 {
		l.bytes = max(int(min(uint64(l.bytes), m)), 16*readChunk)
	}
	best := 0.0
	for _, k := range table.All() {
		t, ok := newTile(table, k)
		if !ok {
			continue
		}
		if rate := t.run(k, sliceTime); rate > best {
			best, l.product = rate, k
		}
	}
	if l.product != nil {
		for range threads {
			t, _ := newTile(table, l.product)
			l.tiles = append(l.tiles, t)
		}
	}
	return l
}

// Close ends the threads and frees the memory.
func (l *Limits) Close() {
	l.pool.Close()
	if l.buffer != nil {
		_ = l.buffer.Free() // nothing to do about it
	}
}

// Kernel returns the name of the kernel whose speed is the int8 peak, "" if there is none.
func (l *Limits) Kernel() string {
	if l.product == nil {
		return ""
	}
	return l.product.Name.String()
}

// readChunk is the memory that a thread reads at a time.
const readChunk = 1 << 20

// ReadBandwidth measures the read bandwidth in bytes per second: the best of several passes over the buffer.
func (l *Limits) ReadBandwidth() (float64, error) {
	if l.buffer == nil {
		b, err := cpu.Alloc(l.bytes)
		if err != nil {
			return 0, fmt.Errorf("read bandwidth: %w", err)
		}
		l.buffer = b
		data := b.Bytes()
		l.pool.RunStatic(l.bytes/readChunk, func(_, lo, hi int) { // untouched pages would all be the zero page
			for i := lo * readChunk; i < hi*readChunk; i += 4096 {
				data[i] = 1
			}
		})
	}
	data := l.buffer.Bytes()
	chunks := l.bytes / readChunk
	best := 0.0
	for start := time.Now(); best == 0 || time.Since(start) < limitTime; {
		pass := time.Now()
		l.pool.RunStatic(chunks, func(worker, lo, hi int) {
			for i := lo; i < hi; i++ {
				l.sums[worker] += sumLines(data[i*readChunk:][:readChunk])
			}
		})
		best = max(best, float64(chunks*readChunk)/time.Since(pass).Seconds())
	}
	return best, nil
}

// sumLines adds one word of every cache line. It reads both halves of data at once, two lines of each: of the loops that plain Go
// can have, this one is as fast as vector loads with prefetching, where one run of lines reaches 70 % of it.
func sumLines(data []byte) uint64 {
	p := unsafe.Pointer(unsafe.SliceData(data))
	half := len(data) / 2
	var a, b, c, d uint64
	for i := 0; i+128 <= half; i += 128 {
		a += *(*uint64)(unsafe.Add(p, i))
		b += *(*uint64)(unsafe.Add(p, i+64))
		c += *(*uint64)(unsafe.Add(p, half+i))
		d += *(*uint64)(unsafe.Add(p, half+i+64))
	}
	return a + b + c + d
}

// Int8Peak measures operations per second on quantized weights, a multiply-add counting two; 0 if no kernel has them.
func (l *Limits) Int8Peak() float64 {
	if l.product == nil {
		return 0
	}
	rates := make([]float64, len(l.tiles))
	l.pool.RunStatic(len(l.tiles), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			rates[i] = l.tiles[i].run(l.product, limitTime)
		}
	})
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum
}

// tile is a product whose operands fit into a first-level cache of 32 KiB.
type tile struct {
	args    *kernel.Args
	tiles   int
	ops     float64
	buffers []*cpu.Buffer // keeps them
}

// Size of a tile: 24 rows of activations, rounded up to what the kernel takes, 32 rows of weights.
const (
	tileRows    = 24
	tileWeights = 32
	tileK       = 256
)

// newTile makes a product for a kernel. It fails for kernels that compute no product of quantized rows, or fewer than four rows.
func newTile(table *dispatch.Table, k *kernel.Kernel) (tile, bool) {
	rows, ok := k.Name.Param("m")
	if !ok || rows < 4 || !strings.HasPrefix(k.Name.Op, "gemm_") {
		return tile{}, false
	}
	pack, err := table.Config(k.Pack, "any")
	if err != nil || pack.Layout.Block == 1 {
		return tile{}, false
	}
	m := (tileRows + rows - 1) / rows * rows
	t := tile{args: new(kernel.Args), ops: float64(2 * m * tileWeights * tileK)}
	ints := map[string]int{"m": m, "n": tileWeights, "k": tileK, "ldo": tileWeights, "add": 0}
	// Zeros: what the values are changes no kernel's time. Records of activations have less than 4 bytes for an element.
	bytes := map[string]int{"act": 4 * m * tileK, "w": pack.Layout.Bytes(tileWeights, tileK), "out": 4 * m * tileWeights}
	buffer := func(n int) unsafe.Pointer {
		b, err := cpu.Alloc(n)
		if err != nil {
			ok = false
			return nil
		}
		t.buffers = append(t.buffers, b)
		return unsafe.Pointer(unsafe.SliceData(b.Bytes()))
	}
	for _, p := range k.Params {
		if n, found := bytes[p.Name]; p.Kind == kernel.Buffer && found {
			t.args.Buf[p.Slot] = buffer(n)
		} else if n, found := ints[p.Name]; p.Kind == kernel.Int && found {
			t.args.Int[p.Slot] = int64(n)
		} else {
			return tile{}, false
		}
	}
	t.args.Scratch = buffer(kernel.ScratchBytes)
	t.tiles = k.Tiles(t.args)
	return t, ok
}

// run computes the product for so long and returns operations per second, of the best slice of that time.
func (t *tile) run(k *kernel.Kernel, d time.Duration) float64 {
	k.Func(t.args, 0, t.tiles) // brings it into the cache
	best := 0.0
	for start := time.Now(); best == 0 || time.Since(start) < d; {
		slice, n := time.Now(), 0
		took := time.Duration(0)
		for ; took < sliceTime; took = time.Since(slice) {
			for range 16 {
				k.Func(t.args, 0, t.tiles)
			}
			n += 16
		}
		best = max(best, float64(float64(n)*t.ops)/took.Seconds())
	}
	return best
}

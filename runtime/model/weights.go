package model

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"strings"
	"unsafe"

	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// formats maps the tensor types that can be weights to the format names of kernels; true marks float formats, which take
// rounded f32 activations instead of quantized ones.
var formats = map[gguf.Type]struct {
	name  string
	float bool
	bits  int // significant bits of activations beside float weights
}{
	gguf.TypeF32:  {"f32", true, 0},
	gguf.TypeF16:  {"f16", true, 13},
	gguf.TypeBF16: {"bf16", true, 16},
	gguf.TypeQ4_0: {"q4_0", false, 0},
	gguf.TypeQ4_1: {"q4_1", false, 0},
	gguf.TypeQ8_0: {"q8_0", false, 0},
	gguf.TypeQ4_K: {"q4_k", false, 0},
	gguf.TypeQ5_0: {"q5_0", false, 0},
	gguf.TypeQ5_1: {"q5_1", false, 0},
	gguf.TypeQ5_K: {"q5_k", false, 0},
	gguf.TypeQ6_K: {"q6_k", false, 0},
}

func formatNames() string {
	var s []string
	for t := range formats {
		s = append(s, t.String())
	}
	sort.Strings(s)
	return strings.Join(s, ", ")
}

// Matrix is a weight of N rows of K elements, packed for the device.
type Matrix struct {
	Format string
	Float  bool
	Bits   int
	N, K   int
	data   []byte
	tensor *gguf.Tensor
	pack   *kernel.Kernel
}

func (m *Matrix) ptr() unsafe.Pointer { return pointer(m.data) }

func pointer[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// weights collects what an architecture asks of a file, then loads it all.
type weights struct {
	file     *gguf.File
	dev      *dispatch.Device
	matrices []*Matrix
	vectors  []vector
	taken    map[string]bool
	err      error
}

type vector struct {
	tensor *gguf.Tensor
	to     []float32
	taps   int // of a convolution: the file has the taps of a channel together, to has the channels of a tap together
}

func newWeights(f *gguf.File, dev *dispatch.Device) *weights {
	return &weights{file: f, dev: dev, taken: map[string]bool{}}
}

func (w *weights) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%s: "+format, append([]any{w.file.Path()}, args...)...)
	}
}

// find returns the tensor, whose dimensions (contiguous one first) must be these; −1 takes any.
func (w *weights) find(name string, dims ...int) *gguf.Tensor {
	t, ok := w.file.Tensor(name)
	if !ok {
		w.fail("tensor %q is missing", name)
		return nil
	}
	w.taken[name] = true
	got := t.Dims
	for len(got) > len(dims) && got[len(got)-1] == 1 {
		got = got[:len(got)-1]
	}
	same := len(got) == len(dims)
	for i := range got {
		same = same && (dims[i] < 0 && got[i] < 1<<31 || got[i] == uint64(dims[i]))
	}
	if !same {
		w.fail("tensor %q: dimensions %v, expected %v", name, t.Dims, dims)
		return nil
	}
	return t
}

// matrix asks for a weight of n rows of k elements; n < 0 takes any number of rows.
func (w *weights) matrix(name string, n, k int) *Matrix {
	t := w.find(name, k, n)
	if t == nil {
		return &Matrix{}
	}
	f, ok := formats[t.Type]
	if !ok {
		w.fail("tensor %q: %w type %s; supported: %s", name, ErrUnsupported, t.Type, formatNames())
		return &Matrix{}
	}
	pack, err := w.dev.Config("pack_"+f.name, "any")
	if err != nil {
		w.fail("tensor %q: %w", name, err)
		return &Matrix{}
	}
	m := &Matrix{Format: f.name, Float: f.float, Bits: f.bits, N: int(t.Rows()), K: k, tensor: t, pack: pack}
	w.matrices = append(w.matrices, m)
	return m
}

// vector asks for n floats.
func (w *weights) vector(name string, n int) []float32 {
	t := w.find(name, n)
	if t == nil {
		return nil
	}
	if t.Type != gguf.TypeF32 && t.Type != gguf.TypeF16 {
		w.fail("tensor %q: %w type %s; supported here: F32, F16", name, ErrUnsupported, t.Type)
		return nil
	}
	v := vector{tensor: t, to: make([]float32, n, (n+15)&^15), taps: 1}
	w.vectors = append(w.vectors, v)
	return v.to
}

// taps asks for the weights of a convolution, channels of each tap.
func (w *weights) taps(name string, taps, channels int) []float32 {
	t := w.find(name, taps, channels)
	if t == nil {
		return nil
	}
	if t.Type != gguf.TypeF32 && t.Type != gguf.TypeF16 {
		w.fail("tensor %q: %w type %s; supported here: F32, F16", name, ErrUnsupported, t.Type)
		return nil
	}
	v := vector{tensor: t, to: make([]float32, taps*channels, (taps*channels+15)&^15), taps: taps}
	w.vectors = append(w.vectors, v)
	return v.to
}

func (w *weights) has(name string) bool { _, ok := w.file.Tensor(name); return ok }

// finish reports tensors that nobody asked for, since leaving one out would give another model's answers.
func (w *weights) finish() error {
	if w.err != nil {
		return w.err
	}
	for _, t := range w.file.Tensors() {
		if !w.taken[t.Name] {
			return fmt.Errorf("%s: tensor %q: %w: the architecture has no such tensor here", w.file.Path(), t.Name, ErrUnsupported)
		}
	}
	return nil
}

// bytes returns the size of all packed weights.
func (w *weights) bytes() int {
	n := 0
	for _, m := range w.matrices {
		n += packedBytes(m)
	}
	return n
}

// parameters returns the number of weights.
func (w *weights) parameters() uint64 {
	n := uint64(0)
	for _, m := range w.matrices {
		n += uint64(m.N) * uint64(m.K)
	}
	for _, v := range w.vectors {
		n += uint64(len(v.to))
	}
	return n
}

func packedBytes(m *Matrix) int { return (m.pack.Layout.Bytes(m.N, m.K) + 63) &^ 63 }

// load packs every matrix into one buffer, in the order of the file, and returns the buffer.
func (w *weights) load(ctx context.Context, progress func(done, total int64)) (*cpu.Buffer, error) {
	for _, v := range w.vectors {
		if err := readVector(v); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", w.file.Path(), v.tensor.Name, err)
		}
	}
	total := w.bytes()
	buf, err := cpu.Alloc(total)
	if err != nil {
		return nil, fmt.Errorf("%s: weights: %w", w.file.Path(), err)
	}
	at := 0
	for _, m := range w.matrices {
		n := packedBytes(m)
		m.data = buf.Bytes()[at : at+n]
		at += n
	}
	order := append([]*Matrix(nil), w.matrices...)
	sort.SliceStable(order, func(i, j int) bool {
		return order[i].tensor.Shard < order[j].tensor.Shard || order[i].tensor.Shard == order[j].tensor.Shard && order[i].tensor.Offset < order[j].tensor.Offset
	})
	done := 0
	for _, m := range order {
		if err := ctx.Err(); err != nil {
			return nil, freeAfter(err, buf)
		}
		if row := w.pack(m); row >= 0 {
			err := fmt.Errorf("%s: tensor %q: row %d holds a scale or a weight that is not finite or is too large", w.file.Path(), m.tensor.Name, row)
			return nil, freeAfter(err, buf)
		}
		w.file.Release(m.tensor) // the packed copy replaces it in memory
		done += len(m.data)
		if progress != nil {
			progress(int64(done), int64(total))
		}
		m.tensor = nil
	}
	return buf, nil
}

func freeAfter(err error, b *cpu.Buffer) error {
	if e := b.Free(); e != nil {
		return fmt.Errorf("%w (and %w)", err, e)
	}
	return err
}

// pack runs the format's pack kernel and returns the first bad row, −1 for none.
func (w *weights) pack(m *Matrix) int {
	bad := make([]int32, m.N)
	var a kernel.Args
	for _, p := range m.pack.Params {
		switch p.Name {
		case "rows":
			a.Buf[p.Slot] = pointer(m.tensor.Data)
		case "packed":
			a.Buf[p.Slot] = m.ptr()
		case "bad":
			a.Buf[p.Slot] = pointer(bad)
		case "n":
			a.Int[p.Slot] = int64(m.N)
		case "k":
			a.Int[p.Slot] = int64(m.K)
		}
	}
	w.dev.Run(dispatch.Call{Kernel: m.pack, Args: &a, Work: 16 * dispatch.Element * m.K})
	for r, b := range bad {
		if b != 0 {
			return r
		}
	}
	return -1
}

func readVector(v vector) error {
	channels := len(v.to) / v.taps
	for i := range v.to {
		var x float32
		if v.tensor.Type == gguf.TypeF16 {
			x = canon.F16ToF32(binary.LittleEndian.Uint16(v.tensor.Data[2*i:]))
		} else {
			x = math.Float32frombits(binary.LittleEndian.Uint32(v.tensor.Data[4*i:]))
		}
		if b := math.Float32bits(x) & 0x7FFFFFFF; b >= 0x5E800000 {
			return fmt.Errorf("element %d is %v: not finite or too large", i, x)
		}
		v.to[i%v.taps*channels+i/v.taps] = x
	}
	return nil
}

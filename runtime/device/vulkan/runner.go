package vulkan

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Launch is one run of a kernel on data of the host, with the parameters of its slots. Buffers are copied to the device and
// back.
type Launch struct {
	Buffers [][]byte
	Ints    []int64
	Floats  []float32
	Tiles   int // of the flattened grid
}

// Runner runs one kernel, for tests and for the conformance vectors by which a driver is admitted.
type Runner struct {
	pipeline     *Pipeline
	ints, floats int
	buffer       *Buffer
}

// NewRunner compiles a kernel that has that many integer and float parameters; its push constants follow from them.
func (d *Device) NewRunner(k Kernel, ints, floats int) (*Runner, error) {
	k.PushConstants = 4 * (ints + floats + 1)
	p, err := d.NewPipeline(k)
	if err != nil {
		return nil, err
	}
	return &Runner{pipeline: p, ints: ints, floats: floats}, nil
}

// Close frees the kernel.
func (r *Runner) Close() error {
	err := r.pipeline.Close()
	if r.buffer != nil {
		err = errors.Join(err, r.buffer.Close())
	}
	return err
}

// slack is the unit up to which a kernel may read beyond the end of a buffer; guard is what lies there.
const (
	slack = 64
	guard = 0xA5
)

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// Run runs all tiles, a workgroup each. A store beyond the end of a buffer, as far as the buffer may be read, is an error.
func (r *Runner) Run(l Launch) error {
	switch {
	case len(l.Ints) < r.ints || len(l.Floats) < r.floats || len(l.Buffers) < r.pipeline.kernel.Buffers:
		return fmt.Errorf("%s: %d buffers, %d integers and %d floats given, %d, %d and %d needed", r.pipeline.kernel.Entry,
			len(l.Buffers), len(l.Ints), len(l.Floats), r.pipeline.kernel.Buffers, r.ints, r.floats)
	case l.Tiles < 1:
		return nil
	}
	push := make([]uint32, 0, r.ints+r.floats+1)
	for n, v := range l.Ints[:r.ints] {
		if v != int64(int32(v)) {
			return fmt.Errorf("%s: integer %d is %d, which has more than 32 bits", r.pipeline.kernel.Entry, n, v)
		}
		push = append(push, uint32(v))
	}
	for _, v := range l.Floats[:r.floats] {
		push = append(push, math.Float32bits(v))
	}
	push = append(push, 0) // +0
	bindings, err := r.place(l.Buffers[:r.pipeline.kernel.Buffers])
	if err != nil {
		return err
	}
	x := min(l.Tiles, 65535)
	if err := r.pipeline.Run(bindings, push, x, roundUp(l.Tiles, x)/x); err != nil {
		return err
	}
	for n, b := range bindings {
		data := r.buffer.data[b.Offset:][:b.Size]
		end := len(l.Buffers[n])
		copy(l.Buffers[n], data)
		if bytes.Count(data[end:], []byte{guard}) != b.Size-end {
			return fmt.Errorf("%s: a store beyond the end of buffer %d, which has %d bytes", r.pipeline.kernel.Entry, n, end)
		}
	}
	return nil
}

// place copies the buffers to the device.
func (r *Runner) place(buffers [][]byte) ([]Binding, error) {
	size := 0
	bindings := make([]Binding, len(buffers))
	for n, b := range buffers {
		bindings[n] = Binding{Offset: size, Size: max(roundUp(len(b), slack), slack)}
		size = roundUp(size+bindings[n].Size, max(r.pipeline.device.Info.Limits.OffsetAlignment, slack))
	}
	if r.buffer == nil || len(r.buffer.data) < size {
		if r.buffer != nil {
			old := r.buffer
			r.buffer = nil
			if err := old.Close(); err != nil {
				return nil, err
			}
		}
		b, err := r.pipeline.device.NewBuffer(max(size, 1))
		if err != nil {
			return nil, err
		}
		r.buffer = b
	}
	for n := range bindings {
		b := &bindings[n]
		b.Buffer = r.buffer
		data := r.buffer.data[b.Offset:][:b.Size]
		for at := copy(data, buffers[n]); at < len(data); at++ {
			data[at] = guard
		}
	}
	return bindings, nil
}

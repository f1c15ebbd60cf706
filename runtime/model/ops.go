package model

import (
	"fmt"
	"unsafe"

	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// call is a kernel with its parameters resolved to slots, in the order they were asked for.
type call struct {
	dev   *dispatch.Device
	k     *kernel.Kernel
	slots []int
	args  kernel.Args
}

// bind resolves names to slots; every parameter of the kernel must be named.
func bind(dev *dispatch.Device, k *kernel.Kernel, names ...string) (*call, error) {
	c := &call{dev: dev, k: k}
	for _, n := range names {
		slot := -1
		for _, p := range k.Params {
			if p.Name == n {
				slot = p.Slot
			}
		}
		if slot < 0 {
			return nil, fmt.Errorf("kernel %s has no parameter %s", k.Name, n)
		}
		c.slots = append(c.slots, slot)
	}
	if len(names) != len(k.Params) {
		return nil, fmt.Errorf("kernel %s has %d parameters, not %d", k.Name, len(k.Params), len(names))
	}
	return c, nil
}

func (c *call) buf(i int, p unsafe.Pointer) { c.args.Buf[c.slots[i]] = p }
func (c *call) int(i, v int)                { c.args.Int[c.slots[i]] = int64(v) }
func (c *call) float(i int, v float32)      { c.args.F32[c.slots[i]] = v }
func (c *call) run(work int)                { c.dev.Run(c.k, &c.args, work) }

// one binds the op's only config.
func one(dev *dispatch.Device, op, config string, names ...string) (*call, error) {
	k, err := dev.Config(op, config)
	if err != nil {
		return nil, err
	}
	return bind(dev, k, names...)
}

// rowOp is an op with kernels for several row tiles; the parameters are the same in all.
type rowOp struct {
	rows  dispatch.Rows
	calls map[*kernel.Kernel]*call
	runs  []dispatch.Run
}

func bindRows(dev *dispatch.Device, op, param string, names ...string) (*rowOp, error) {
	rows, err := dev.Rows(op, param)
	if err != nil {
		return nil, err
	}
	r := &rowOp{rows: rows, calls: map[*kernel.Kernel]*call{}}
	for _, k := range rows {
		c, err := bind(dev, k.Kernel, names...)
		if err != nil {
			return nil, err
		}
		r.calls[k.Kernel] = c
	}
	return r, nil
}

// groupBytes returns the size of four rows of k elements: of records of 192 bytes per 32 elements (see op quantize), or of
// floats.
func groupBytes(k int, float bool) int {
	if float {
		return 16 * k
	}
	return (k + 63) / 64 * 2 * 192
}

// products multiplies activations with matrices of any format.
type products map[string]*rowOp

func newProducts(dev *dispatch.Device, matrices []*Matrix) (products, error) {
	p := products{}
	for _, m := range matrices {
		if p[m.Format] != nil {
			continue
		}
		act := "act"
		if m.Float {
			act = "x"
		}
		r, err := bindRows(dev, "gemm_"+m.Format, "m", act, "w", "out", "m", "n", "k", "ldo", "add")
		if err != nil {
			return nil, err
		}
		p[m.Format] = r
	}
	return p, nil
}

// mul computes out = act·wᵀ for m rows, or adds it to out; rows of out are w.N apart.
func (p products) mul(w *Matrix, act []byte, out []float32, m int, add bool) {
	r := p[w.Format]
	r.runs = r.rows.Cut(m, r.runs[:0])
	group := groupBytes(w.K, w.Float)
	residual := 0
	if add {
		residual = 1
	}
	for _, run := range r.runs {
		c := r.calls[run.Kernel]
		c.buf(0, pointer(act[run.First/4*group:]))
		c.buf(1, w.ptr())
		c.buf(2, pointer(out[run.First*w.N:]))
		for i, v := range [...]int{run.Rows, w.N, w.K, w.N, residual} {
			c.int(3+i, v)
		}
		c.run(16 * w.K * run.Kernel.Grid[0].Tile)
	}
}

package model

import (
	"fmt"
	"slices"
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
	batch [1]dispatch.Call
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

func (c *call) run(work int) {
	c.batch[0] = dispatch.Call{Kernel: c.k, Args: &c.args, Work: work}
	c.dev.Run(c.batch[:]...)
}

// one binds the op's only config.
func one(dev *dispatch.Device, op, config string, names ...string) (*call, error) {
	k, err := dev.Config(op, config)
	if err != nil {
		return nil, err
	}
	return bind(dev, k, names...)
}

// rowOp is an op on one shape, with kernels for several row tiles; the parameters are the same in all.
type rowOp struct {
	plan  dispatch.Plan
	slots []int
}

func bindRows(dev *dispatch.Device, s dispatch.Shape, param string, names ...string) (*rowOp, error) {
	plan, err := dev.Plan(s, param)
	if err != nil {
		return nil, err
	}
	rows, err := dev.Rows(s.Op, param)
	if err != nil {
		return nil, err
	}
	r := &rowOp{plan: plan}
	for _, k := range rows {
		c, err := bind(dev, k.Kernel, names...)
		if err != nil {
			return nil, err
		}
		if r.slots != nil && !slices.Equal(r.slots, c.slots) {
			return nil, fmt.Errorf("kernel %s has its parameters in other slots than its siblings", k.Kernel.Name)
		}
		r.slots = c.slots
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
type products struct {
	dev   *dispatch.Device
	ops   map[*Matrix]*rowOp
	runs  []dispatch.Run
	args  []kernel.Args
	batch []dispatch.Call
}

// product is one of several products that don't depend on each other: out = act·wᵀ, or added to out.
type product struct {
	w   *Matrix
	out []float32
	add bool
}

func newProducts(dev *dispatch.Device, matrices []*Matrix) (*products, error) {
	// Arguments must stay in place while a batch refers to them: room for three products in the runs of one cut.
	p := &products{dev: dev, ops: map[*Matrix]*rowOp{}, args: make([]kernel.Args, 0, 64)}
	shapes := map[dispatch.Shape]*rowOp{}
	for _, m := range matrices {
		s := dispatch.Shape{Op: "gemm_" + m.Format, N: m.N, K: m.K}
		if p.ops[m] = shapes[s]; p.ops[m] != nil {
			continue
		}
		act := "act"
		if m.Float {
			act = "x"
		}
		r, err := bindRows(dev, s, "m", act, "w", "out", "m", "n", "k", "ldo", "add")
		if err != nil {
			return nil, err
		}
		shapes[s], p.ops[m] = r, r
	}
	return p, nil
}

// begin empties the batch.
func (p *products) begin() { p.args, p.batch = p.args[:0], p.batch[:0] }

// append adds a product of m rows of activations to the batch; rows of out are w.N apart.
func (p *products) append(q product, act []byte, m int) {
	w, r := q.w, p.ops[q.w]
	p.runs = r.plan.Cut(m, p.runs[:0])
	group := groupBytes(w.K, w.Float)
	add := int64(0)
	if q.add {
		add = 1
	}
	// Panels of weights are met by all rows in turn, while they are in the cache.
	panel := dispatch.Panel(p.runs, w.pack.Layout, w.N, w.K)
	for col := 0; col < w.N; col += panel {
		for _, run := range p.runs {
			if len(p.args) == cap(p.args) { // the batch is full: run what there is
				p.run()
				p.begin()
			}
			p.args = append(p.args, kernel.Args{})
			a := &p.args[len(p.args)-1]
			a.Buf[r.slots[0]] = pointer(act[run.First/4*group:])
			a.Buf[r.slots[1]] = pointer(w.data[w.pack.Layout.Bytes(col, w.K):])
			a.Buf[r.slots[2]] = pointer(q.out[run.First*w.N+col:])
			for i, v := range [...]int64{int64(run.Rows), int64(min(panel, w.N-col)), int64(w.K), int64(w.N), add} {
				a.Int[r.slots[3+i]] = v
			}
			p.batch = append(p.batch, dispatch.Call{Kernel: run.Kernel, Args: a, Work: 16 * w.K * run.Tile})
		}
	}
}

// run computes the batch.
func (p *products) run() { p.dev.Run(p.batch...) }

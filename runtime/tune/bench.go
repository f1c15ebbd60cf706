package tune

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Timing is the time of one kernel on one shape, in nanoseconds.
type Timing struct {
	Problem
	Kernel  string  `json:"kernel"`
	Median  float64 `json:"median_ns"`
	Q1      float64 `json:"q1_ns"`
	Q3      float64 `json:"q3_ns"`
	Samples int     `json:"samples"`
	Bytes   int64   `json:"bytes"`         // from memory
	Ops     int64   `json:"ops,omitempty"` // of products and attention
	Bound   float64 `json:"bound_ns"`      // by the limits
	Error   string  `json:"error,omitempty"`
}

// Bench times every kernel of an op that runs here, each alone on about m rows, interleaved. For a product n and k are those of
// the weights, for attention key heads and the head's elements; ops on vectors have rows of k elements.
func Bench(ctx context.Context, o Options, op string, m, n, k int) ([]Timing, Limits, error) {
	t, err := newTuner(o)
	if err != nil {
		return nil, Limits{}, err
	}
	defer t.close()
	if t.limits, err = t.measureLimits(); err != nil {
		return nil, t.limits, err
	}
	list := t.defaults.Candidates(op, t.features)
	if len(list) == 0 {
		return nil, t.limits, fmt.Errorf("%w for %s", dispatch.ErrNoKernel, op)
	}
	var timings []Timing
	var trials []*trial
	for _, c := range list {
		r := Timing{Problem: Problem{op, n, k, m}, Kernel: c.Name.String()}
		j, err := t.alone(c, &r)
		tr := &trial{job: j}
		if err != nil {
			if j == nil {
				return nil, t.limits, err
			}
			r.Error, tr.out = err.Error(), true
		}
		timings, trials = append(timings, r), append(trials, tr)
	}
	for _, tr := range trials {
		if !tr.out {
			tr.job.run(t.dev)
			tr.repeats = 1
		}
	}
	for range maxRounds {
		for _, i := range t.random.Perm(len(trials)) {
			if err := ctx.Err(); err != nil {
				return nil, t.limits, err
			}
			if !trials[i].out {
				trials[i].sample(t.dev)
			}
		}
	}
	for i, tr := range trials {
		tr.summarize()
		r := &timings[i]
		r.Q1, r.Median, r.Q3, r.Samples = tr.Q1, tr.Median, tr.Q3, tr.Samples
		r.Bound = t.limits.bound(op, r.Bytes, r.Ops)
	}
	return timings, t.limits, nil
}

// alone makes a job of one kernel and completes what is known of it. An error with a job says that the kernel's bits are wrong.
func (t *tuner) alone(k *kernel.Kernel, r *Timing) (*job, error) {
	if RowParam(r.Op) == "" {
		return t.vector(k, r)
	}
	rows, ok := k.Name.Param(RowParam(r.Op))
	if !ok || rows < 1 {
		return nil, fmt.Errorf("kernel %s: no number of rows in its config", k.Name)
	}
	if rows < 4 {
		r.M = rows
	} else if RowParam(r.Op) == "m" {
		r.M = max(1, r.M/rows) * rows
	}
	q := task{Problem: r.Problem}
	if RowParam(r.Op) == "r" {
		q.group = r.M // rows of one token, which sees as many keys as a decoder's
	}
	c := whole(dispatch.RowKernel{Rows: rows, Kernel: k}, r.M)
	// Each kernel has operands of its own rows, which stay until the end.
	kept := memory{}
	t.mem, kept = kept, t.mem
	t.operands = operands{}
	err := t.prepare(q, k)
	t.mem.bufs = append(kept.bufs, t.mem.bufs...)
	if err != nil {
		return nil, err
	}
	r.Bytes, r.Ops = t.operands.size(r.M)
	j, err := t.operands.job(c)
	if err != nil {
		return nil, err
	}
	return j, t.checkBits(q, c)
}

// vector makes a job of an op on m rows of k elements.
func (t *tuner) vector(k *kernel.Kernel, r *Timing) (*job, error) {
	rows := (r.M + 3) &^ 3
	size := rows * max(4*r.K, (r.K+63)/64*2*192/4) // of f32, or of quantized activations
	v := values{
		bufs:   map[string][]byte{},
		ints:   map[string]int{"m": r.M, "k": r.K, "n": r.M * r.K},
		floats: map[string]float32{"inv": 1 / float32(r.K), "eps": 1e-5},
	}
	if paramOf(k, "m") >= 0 && paramOf(k, "n") >= 0 {
		v.ints["n"] = r.K // a row's elements
	}
	first := ""
	for _, name := range []string{"x", "y", "w", "act", "out"} {
		if paramOf(k, name) < 0 {
			continue
		}
		r.Bytes += int64(4 * r.M * r.K)
		var err error
		if first == "" {
			first = name
			v.bufs[name] = t.space[:len(t.space)/size*size]
			fillFloats(t.space[:size], rand.New(rand.NewPCG(1, 1)))
			repeat(v.bufs[name][size:], t.space[:size])
		} else if v.bufs[name], err = t.mem.alloc(size); err != nil {
			return nil, err
		} else {
			fillFloats(v.bufs[name], rand.New(rand.NewPCG(1, 2)))
		}
	}
	args, err := bind(k, v)
	if err != nil || first == "" {
		return nil, fmt.Errorf("%s can't be measured alone: its parameters are %v", k.Name.Op, names(k))
	}
	j := &job{args: []kernel.Args{args}, offsets: []int{0}, turn: turning{slotOf(k, first), v.bufs[first], size, len(t.space) / size}}
	j.calls = []dispatch.Call{{Kernel: k, Args: &j.args[0], Work: dispatch.Element * r.K}}
	return j, nil
}

func names(k *kernel.Kernel) []string {
	var list []string
	for _, p := range k.Params {
		list = append(list, p.Name)
	}
	slices.Sort(list)
	return list
}

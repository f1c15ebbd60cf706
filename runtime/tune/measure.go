package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Options of Measure.
type Options struct {
	Kernels    []kernel.Kernel
	ISA        cpu.ISA
	Threads    int
	Budget     time.Duration         // for everything; 0: no limit
	Exhaustive bool                  // measure everything, also what is in the profile and what the roofline rules out
	Progress   func(done, total int) // called at first and after each problem; may be nil

	spaceBytes int // for operands; 0: more than caches hold. Tests take less
}

// Result is what Measure did.
type Result struct {
	Loaded   int // problems that the profile had
	Measured int
	Left     int // problems that the budget left out
}

// How problems are measured.
const (
	minSample     = time.Millisecond
	minRounds     = 5
	maxRounds     = 9
	maxRoundsLong = 21 // of an exhaustive search
	problemBudget = 2 * time.Second
	dropAfter     = 3   // rounds
	dropFactor    = 1.5 // times the best median
	margin        = 1.1 // by which a bound may be wrong
	minGain       = 1.03
)

// tuner measures problems on one device.
type tuner struct {
	Options
	dev      *dispatch.Device
	defaults *dispatch.Table
	portable *dispatch.Table
	features cpu.Features
	space    []byte // for operands that must not be in a cache
	l3       int
	limits   Limits
	rates    map[kernel.Name]float64
	random   *rand.Rand

	// Kept from one problem to the next: they often share operands.
	mem      memory
	operands operands
	checks   map[Problem]*check
	checkMem memory
	spaceMem memory
}

// operands are those of one shape.
type operands struct {
	shape     dispatch.Shape
	rows      int
	product   *product
	attention *attention
}

// Measure solves the problems of needs that the profile has no entry for, the most important ones first, and puts the answers
// in the profile, which the caller saves. It stops when the budget is spent or ctx ends; then the error is ctx's, and the
// profile has what was measured. Kernels that fail or give other bits than the portable ones are never chosen; if a default
// one does, that is an error.
func Measure(ctx context.Context, o Options, needs []Need, p *Profile) (r Result, err error) {
	all := tasks(needs)
	var todo []task
	for _, q := range all {
		if _, ok := p.Entry(q.Problem); !ok || o.Exhaustive {
			todo = append(todo, q)
		}
	}
	r.Loaded, r.Left = len(all)-len(todo), len(todo)
	if len(todo) == 0 {
		return r, nil
	}
	t, err := newTuner(o)
	if err != nil {
		return r, err
	}
	defer t.close()
	start := time.Now()
	progress := func(done int) {
		if o.Progress != nil {
			o.Progress(done, len(todo))
		}
	}
	progress(0)
	if t.limits, err = t.measureLimits(); err != nil {
		return r, err
	}
	for i, q := range todo {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if o.Budget > 0 && time.Since(start) >= o.Budget {
			break
		}
		e, err := t.solve(ctx, q)
		if err != nil {
			return r, fmt.Errorf("%s, m %d, n %d, k %d: %w", q.Op, q.M, q.N, q.K, err)
		}
		p.Put(e)
		r.Measured++
		r.Left--
		progress(i + 1)
	}
	return r, nil
}

func newTuner(o Options) (*tuner, error) {
	info := cpu.Describe()
	t := &tuner{
		Options: o, defaults: dispatch.New(o.Kernels, o.ISA), portable: dispatch.New(o.Kernels, cpu.Portable), features: info.Features,
		l3: max(info.L3, info.L2), rates: map[kernel.Name]float64{}, random: rand.New(rand.NewPCG(1, 2)), checks: map[Problem]*check{},
	}
	var err error
	size := o.spaceBytes
	if size == 0 {
		size = region(info)
	}
	if t.space, err = t.spaceMem.alloc(size); err != nil {
		return nil, err
	}
	if t.dev, err = dispatch.NewDevice(t.defaults, o.Threads); err != nil {
		t.spaceMem.free()
		return nil, err
	}
	return t, nil
}

func (t *tuner) close() {
	t.mem.free()
	t.checkMem.free()
	t.spaceMem.free()
	t.dev.Close()
}

// trial is a candidate on its way through the measurement.
type trial struct {
	candidate
	Measurement
	job     *job
	repeats int // runs of a sample
	samples []float64
	out     bool // no longer measured
}

// drop ends a trial.
func (t *trial) drop(format string, args ...any) {
	t.out, t.Reason = true, fmt.Sprintf(format, args...)
}

// solve measures the candidates of one problem.
func (t *tuner) solve(ctx context.Context, q task) (Entry, error) {
	e := Entry{Problem: q.Problem, From: q.from, To: q.to, Limits: t.limits, Date: time.Now().UTC().Truncate(time.Second)}
	candidates, err := t.candidates(q.Problem)
	if err != nil {
		return e, err
	}
	if err := t.prepare(q, candidates[0].runs[0].Kernel); err != nil {
		return e, err
	}
	e.Bytes, e.Ops = t.operands.size(q.M)
	e.Bound = t.limits.bound(q.Op, e.Bytes, e.Ops)
	trials := make([]*trial, len(candidates))
	for i, c := range candidates {
		trials[i] = &trial{candidate: c, Measurement: Measurement{Kernels: c.names()}}
		if err := t.checkBits(q, c); err != nil {
			if i == 0 {
				return e, fmt.Errorf("the default kernels: %w", err)
			}
			trials[i].drop("%v", err)
		}
	}
	if err := t.time(ctx, trials, q); err != nil {
		return e, err
	}
	winner, err := t.confirmed(ctx, trials)
	if err != nil {
		return e, err
	}
	for _, tr := range trials {
		e.Measured = append(e.Measured, tr.Measurement)
	}
	e.Default, e.Winner = trials[0].Kernels, trials[winner].Kernels
	return e, nil
}

// prepare makes the operands of a problem, unless the last problem's serve.
func (t *tuner) prepare(q task, like *kernel.Kernel) (err error) {
	shape := dispatch.Shape{Op: q.Op, N: q.N, K: q.K}
	o := &t.operands
	if o.shape == shape && (o.product != nil && o.rows >= q.M || o.rows == q.M) {
		return nil
	}
	t.mem.free()
	*o = operands{shape: shape, rows: q.M}
	if q.group > 0 {
		last := decodeKeys - 1
		if q.M > exactTok*q.group {
			last = q.M/q.group - 1
		}
		o.attention, err = newAttention(&t.mem, like, q.N, q.K, q.M, q.group, last, t.space)
	} else {
		if q.M <= exactRows {
			o.rows = exactRows
		}
		o.product, err = newProduct(&t.mem, t.dev, like, q.N, q.K, o.rows, t.space, true)
	}
	return err
}

// decodeKeys is the number of keys in the cache where attention of few tokens is measured.
const decodeKeys = 1024

// size returns the bytes that must come from memory and the operations of m rows.
func (o *operands) size(m int) (bytes, ops int64) {
	if a := o.attention; a != nil {
		return int64(a.kvSize), 4 * int64(m) * int64(o.shape.N) * int64(o.shape.K) * int64(a.keys)
	}
	return int64(o.product.stride), 2 * int64(m) * int64(o.shape.N) * int64(o.shape.K)
}

func (o *operands) job(c candidate) (*job, error) {
	if o.attention != nil {
		return o.attention.job(c.runs[0].Kernel)
	}
	return o.product.job(c.runs, false)
}

// bound returns the least time in nanoseconds that a candidate can take: its kernels at the speed they have when nothing comes
// from memory, and weights that no cache holds read once for each run.
func (t *tuner) bound(c candidate, q task) (float64, error) {
	if t.operands.attention != nil {
		return 0, nil
	}
	read, busy := t.operands.product.stride, 0.0
	if t.operands.product.stride > t.l3 {
		read *= len(c.runs)
	}
	for _, run := range c.runs {
		i := slices.IndexFunc(c.rows, func(k dispatch.RowKernel) bool { return k.Kernel == run.Kernel })
		rate, err := t.rate(c.rows[i])
		if err != nil {
			return 0, err
		}
		busy += float64(2*run.Rows*q.N*q.K) / rate
	}
	return nanosecondsOf(max(float64(read)/t.limits.Bandwidth, busy) / margin), nil
}

// time samples the trials in rounds, each in an order of its own, so that what disturbs the machine disturbs all of them.
func (t *tuner) time(ctx context.Context, trials []*trial, q task) error {
	var want [][]byte
	best := math.Inf(1)
	for i, tr := range trials {
		if tr.out {
			continue
		}
		var err error
		if tr.Bound, err = t.bound(tr.candidate, q); err != nil {
			return err
		}
		if i > 0 && tr.Bound > best && !t.Exhaustive {
			tr.drop("can't take less than %s by the roofline, and %s was measured", nanoseconds(tr.Bound), nanoseconds(best))
			continue
		}
		if tr.job, err = t.operands.job(tr.candidate); err != nil {
			return err
		}
		tr.job.wipe(0xA5)
		tr.job.run(t.dev) // touches everything
		if i == 0 {
			want = tr.job.snapshot()
		} else if d := differs(tr.job.out, want); d != "" {
			tr.drop("wrong bits beside the default: %s", d)
			continue
		}
		start := time.Now()
		tr.job.run(t.dev)
		once := time.Since(start)
		tr.repeats = 1 + int(minSample/max(once, 100))
		best = min(best, float64(once))
	}
	rounds := maxRounds
	if t.Exhaustive {
		rounds = maxRoundsLong
	}
	start := time.Now()
	for round := range rounds {
		if round >= minRounds && !t.Exhaustive && time.Since(start) > problemBudget {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, i := range t.random.Perm(len(trials)) {
			if tr := trials[i]; !tr.out {
				tr.sample(t.dev)
			}
		}
		if round == dropAfter-1 && !t.Exhaustive {
			dropSlow(trials)
		}
	}
	for _, tr := range trials {
		tr.summarize()
	}
	return nil
}

// confirmed decides, and measures the winner and the default again, side by side and alone, before it believes the answer.
func (t *tuner) confirmed(ctx context.Context, trials []*trial) (int, error) {
	def := trials[0]
	for {
		winner := decide(trials)
		if winner == 0 {
			return 0, nil
		}
		w := trials[winner]
		gain := percentMore(def.Median, w.Median)
		w.samples, def.samples = nil, nil
		for range maxRounds {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			pair := [2]*trial{def, w}
			for _, i := range t.random.Perm(2) {
				pair[i].sample(t.dev)
			}
		}
		w.summarize()
		def.summarize()
		if w.clearly(def) {
			w.Reason = chosenReason(w, def)
			return winner, nil
		}
		w.drop("%.1f %% faster than the default at first, but not clearly when measured again", gain)
	}
}

func chosenReason(w, def *trial) string {
	return fmt.Sprintf("chosen: %.1f %% faster than the default", percentMore(def.Median, w.Median))
}

// sample runs the trial for at least minSample.
func (t *trial) sample(d *dispatch.Device) {
	for {
		start := time.Now()
		for range t.repeats {
			t.job.run(d)
		}
		spent := time.Since(start)
		if spent >= minSample {
			t.samples = append(t.samples, nanosecondsOf(spent.Seconds()/float64(t.repeats)))
			return
		}
		t.repeats = 1 + t.repeats*5/4 // the machine has become faster
	}
}

// dropSlow ends trials that are far from the best; the default stays.
func dropSlow(trials []*trial) {
	best := math.Inf(1)
	for _, t := range trials {
		if !t.out {
			best = min(best, quantile(t.samples, 2))
		}
	}
	for _, t := range trials[1:] {
		if m := quantile(t.samples, 2); !t.out && m/best > dropFactor {
			t.summarize()
			t.drop("%.1f times the best after %d rounds", m/best, len(t.samples))
		}
	}
}

func (t *trial) summarize() {
	if len(t.samples) == 0 {
		return
	}
	t.Samples = len(t.samples)
	t.Q1, t.Median, t.Q3 = quantile(t.samples, 1), quantile(t.samples, 2), quantile(t.samples, 3)
}

// quantile returns the sample below which about quarters/4 of the others lie.
func quantile(samples []float64, quarters int) float64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(samples))
	return s[(len(s)-1)*quarters/4]
}

// decide gives every trial its reason and returns the winner: the fastest that is faster than the default by 3 % or more with
// three quarters of its samples below three quarters of the default's, or else the default.
func decide(trials []*trial) int {
	def, winner := trials[0], 0
	for i, t := range trials[1:] {
		if !t.out && t.clearly(def) && t.Median < trials[winner].Median {
			winner = i + 1
		}
	}
	for i, t := range trials {
		switch {
		case t.out:
		case i == winner && i == 0:
			t.Reason = "the default; nothing is clearly faster"
		case i == winner:
			t.Reason = chosenReason(t, def)
		case i == 0:
			t.Reason = "the default"
		case t.Median >= def.Median:
			t.Reason = fmt.Sprintf("%.1f %% slower than the default", percentMore(t.Median, def.Median))
		case def.Median/t.Median < minGain:
			t.Reason = fmt.Sprintf("%.1f %% faster than the default, too little", percentMore(def.Median, t.Median))
		case t.Q3 >= def.Q1:
			t.Reason = fmt.Sprintf("%.1f %% faster than the default, but the quartiles overlap", percentMore(def.Median, t.Median))
		default:
			t.Reason = fmt.Sprintf("%.1f %% faster than the default, and another is faster still", percentMore(def.Median, t.Median))
		}
	}
	return winner
}

func (t *trial) clearly(def *trial) bool { return def.Median/t.Median >= minGain && t.Q3 < def.Q1 }

// percentMore returns by how many percent a is more than b.
func percentMore(a, b float64) float64 { return float64(100 * (a/b - 1)) }

// nanosecondsOf converts seconds, to a tenth.
func nanosecondsOf(seconds float64) float64 { return math.Round(float64(1e10*seconds)) / 10 }

// nanoseconds prints a time.
func nanoseconds(ns float64) string { return time.Duration(ns).Round(10 * time.Nanosecond).String() }

// errBits means that a kernel computes something else than the portable one.
var errBits = errors.New("wrong bits")

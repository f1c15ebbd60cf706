package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/generated/avx"
	"github.com/swizzle-rt/swizzle/generated/portable"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// small is a need of few problems.
func small(maxRows int) []Need {
	return []Need{{Shape: dispatch.Shape{Op: "gemm_q8_0", N: 48, K: 64}, MaxRows: maxRows, Times: 1}}
}

// like returns a copy of a portable kernel under another config.
func like(op, config, newConfig string, f func(of kernel.Func) kernel.Func) kernel.Kernel {
	for _, k := range portable.Kernels() {
		if k.Name.Op == op && k.Name.Config == config {
			k.Name.Config = newConfig
			k.Func = f(k.Func)
			return k
		}
	}
	panic("no kernel " + op + " " + config)
}

// eight is a tile of eight rows made of two of four, which it asks of f.
func eight(newConfig string, f func(of kernel.Func, a *kernel.Args, lo, hi int)) kernel.Kernel {
	k := like("gemm_q8_0", "m4", newConfig, func(of kernel.Func) kernel.Func {
		return func(a *kernel.Args, lo, hi int) { f(of, a, lo, hi) }
	})
	return k
}

// asFour computes tiles of so many rows by the kernel of four. Both grids have an axis of rows, slot 0, and one of columns.
func asFour(rows int, of kernel.Func, a *kernel.Args, lo, hi int) {
	four := like("gemm_q8_0", "m4", "m4", func(of kernel.Func) kernel.Func { return of })
	tall, wide := int(a.Int[0])/rows, (int(a.Int[1])+15)/16
	for t := lo; t < hi; t++ {
		row, col := t/wide, t%wide
		if four.Grid[0].Slot == 0 {
			row, col = t%tall, t/tall
		}
		for i := range rows / 4 {
			at := (row*rows/4+i)*wide + col
			if four.Grid[0].Slot == 0 {
				at = col*tall*rows/4 + row*rows/4 + i
			}
			of(a, at, at+1)
		}
	}
}

func withGrid(k kernel.Kernel, rows int) kernel.Kernel {
	k.Grid = slices.Clone(k.Grid)
	for i := range k.Grid {
		if k.Grid[i].Slot == 0 {
			k.Grid[i].Tile = rows
		}
	}
	return k
}

func measureSmall(t *testing.T, extra []kernel.Kernel, maxRows int, o Options) (*Profile, Result, error) {
	t.Helper()
	o.Kernels = append(portable.Kernels(), extra...)
	o.ISA, o.Threads, o.spaceBytes = cpu.Portable, 1, 1<<20
	p := mustLoad(t, t.TempDir(), testKey())
	r, err := Measure(t.Context(), o, small(maxRows), p)
	return p, r, err
}

// W08: a candidate that fails and one that gives wrong numbers, each the fastest by far, are listed and never chosen.
func TestFaultyCandidates(t *testing.T) {
	p, r, err := measureSmall(t, []kernel.Kernel{
		withGrid(eight("m8", func(kernel.Func, *kernel.Args, int, int) { panic("illegal instruction") }), 8),
		withGrid(eight("m12", func(kernel.Func, *kernel.Args, int, int) {}), 12),
		withGrid(eight("m16", func(of kernel.Func, a *kernel.Args, lo, hi int) {
			asFour(16, of, a, lo, hi)
			*(*uint32)(a.Buf[2]) ^= 1
		}), 16),
	}, 16, Options{Exhaustive: true})
	// The largest tile is the default: that a default is wrong is an error.
	if err == nil || !strings.Contains(err.Error(), "the default kernels") {
		t.Fatalf("a default that fails: %+v, %v", r, err)
	}
	if len(p.Entries()) == 0 {
		t.Error("what was measured before is lost")
	}

	// Of an architecture that isn't the default one.
	faulty := []kernel.Kernel{
		withGrid(eight("m8", func(kernel.Func, *kernel.Args, int, int) { panic("illegal instruction") }), 8),
		withGrid(eight("m12", func(kernel.Func, *kernel.Args, int, int) {}), 12),
		withGrid(eight("m4", func(of kernel.Func, a *kernel.Args, lo, hi int) {
			of(a, lo, hi)
			*(*uint32)(a.Buf[2]) ^= 1
		}), 4),
	}
	tuner, err := newTuner(Options{Kernels: append(portable.Kernels(), faulty[0], faulty[1]), ISA: cpu.Portable, Threads: 1, spaceBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer tuner.close()
	q := tasks(small(16))[0]
	for i, want := range []string{"failed: ", "wrong bits: element 0 of output 0"} {
		rows, _ := faulty[i].Name.Param("m")
		c := used(dispatch.Rows{{Rows: rows, Kernel: &faulty[i]}}, rows)
		q.M = rows
		if err := tuner.checkBits(q, c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", faulty[i].Name, err, want)
		}
	}
	c := used(dispatch.Rows{{Rows: 4, Kernel: &faulty[2]}}, 4)
	q.M = 4
	if err := tuner.checkBits(q, c); !errors.Is(err, errBits) {
		t.Errorf("one wrong bit: %v", err)
	}
}

// W08, whole: on a CPU with AVX2, portable kernels that fail or lie are candidates beside the default ones.
func TestFaultyCandidateIsListed(t *testing.T) {
	if !cpu.Detect().Supports(cpu.AVX2) {
		t.Skip("needs AVX2")
	}
	faulty := []kernel.Kernel{
		withGrid(eight("m8", func(kernel.Func, *kernel.Args, int, int) { panic("illegal instruction") }), 8),
		withGrid(eight("m12", func(kernel.Func, *kernel.Args, int, int) {}), 12),
	}
	o := Options{Kernels: slices.Concat(portable.Kernels(), avx.Kernels(), faulty), ISA: cpu.AVX2, Threads: 1, spaceBytes: 1 << 20}
	tuner, err := newTuner(o)
	if err != nil {
		t.Fatal(err)
	}
	defer tuner.close()
	if tuner.limits, err = tuner.measureLimits(); err != nil {
		t.Fatal(err)
	}
	q := task{Problem: Problem{"gemm_q8_0", 48, 64, 12}, from: 12, to: 12}
	e, err := tuner.solve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, m := range e.Measured {
		reasons[strings.Join(m.Kernels, " ")] = m.Reason
	}
	if r := reasons["gemm_q8_0__m12__portable"]; !strings.HasPrefix(r, "wrong bits") {
		t.Errorf("the kernel that does nothing: %q in %v", r, reasons)
	}
	if r := reasons["gemm_q8_0__m8__portable gemm_q8_0__m4__portable"]; !strings.HasPrefix(r, "failed") {
		t.Errorf("the kernel that fails: %q in %v", r, reasons)
	}
	if strings.Contains(strings.Join(e.Winner, " "), "portable") {
		t.Errorf("the winner is %v", e.Winner)
	}
	if e.Measured[0].Samples < minRounds || e.Measured[0].Median <= 0 || e.Measured[0].Q1 > e.Measured[0].Median || e.Measured[0].Median > e.Measured[0].Q3 {
		t.Errorf("the default: %+v", e.Measured[0])
	}
}

// W11: configs that differ in one number only are kernels of their own, each measured by running it.
func TestConfigsAreDistinct(t *testing.T) {
	var calls [3]atomic.Int64
	var extra []kernel.Kernel
	for i, rows := range []int{8, 12, 16} {
		extra = append(extra, withGrid(eight(fmt.Sprintf("m%d", rows), func(of kernel.Func, a *kernel.Args, lo, hi int) {
			calls[i].Add(1)
			asFour(rows, of, a, lo, hi)
		}), rows))
	}
	tuner, err := newTuner(Options{Kernels: append(portable.Kernels(), extra...), ISA: cpu.Portable, Threads: 1, Exhaustive: true, spaceBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer tuner.close()
	tuner.limits = Limits{Bandwidth: 1, Int8: 1, Float: 1}
	e, err := tuner.solve(t.Context(), task{Problem: Problem{"gemm_q8_0", 48, 64, 48}, from: 48, to: 48})
	if err != nil {
		t.Fatal(err)
	}
	for i, rows := range []int{8, 12, 16} {
		if m, ok := e.Of([]string{fmt.Sprintf("gemm_q8_0__m%d__portable", rows)}); !ok || m.Samples == 0 || calls[i].Load() == 0 {
			t.Errorf("m%d: %+v, %v, %d calls", rows, m, ok, calls[i].Load())
		}
	}
}

// W07: a warm profile of one instruction set has no say on another.
func TestOtherISAIgnoresProfile(t *testing.T) {
	shape := dispatch.Shape{Op: "gemm_q8_0", N: 64, K: 256}
	dir := t.TempDir()
	save(t, dir, testKey(), testEntry(4, "gemm_q8_0__m4__avx512vnni"))
	k := testKey()
	k.Device.ISA = cpu.Portable
	if n := len(mustLoad(t, dir, k).Choice()); n != 0 {
		t.Errorf("the profile of %s has %d choices for %s", testKey().Device.ISA, n, k.Device.ISA)
	}
	// And if its choice came through, the table would not follow it.
	table := dispatch.New(slices.Concat(portable.Kernels(), avx.Kernels()), cpu.Portable)
	table.Choose(mustLoad(t, dir, testKey()).Choice(), cpu.Detect())
	plan, err := table.Plan(shape, "m")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range plan.Cut(4, nil) {
		if r.Kernel.Name.Arch != "portable" {
			t.Errorf("kernel %s runs", r.Kernel.Name)
		}
	}
}

func TestMeasureLoads(t *testing.T) {
	p, r, err := measureSmall(t, nil, 2, Options{})
	if err != nil || r.Measured != 2 || r.Loaded != 0 || r.Left != 0 {
		t.Fatalf("first: %+v, %v", r, err)
	}
	o := Options{Kernels: portable.Kernels(), ISA: cpu.Portable, Threads: 1, spaceBytes: 1 << 20}
	if r, err = Measure(t.Context(), o, small(3), p); err != nil || r.Measured != 1 || r.Loaded != 2 {
		t.Errorf("with one more problem: %+v, %v", r, err)
	}
	ran := 0
	o.Progress = func(done, total int) { ran++ }
	if r, err = Measure(t.Context(), o, small(3), p); err != nil || r.Measured != 0 || r.Loaded != 3 || ran != 0 {
		t.Errorf("again: %+v, %v", r, err)
	}
	o.Budget = 1
	if r, err = Measure(t.Context(), o, small(5), p); err != nil || r.Measured != 0 || r.Left != 2 {
		t.Errorf("without time: %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Budget = time.Hour
	if _, err = Measure(ctx, o, small(5), p); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAttention(t *testing.T) {
	p := mustLoad(t, t.TempDir(), testKey())
	isa := cpu.Detect().Available()[0]
	o := Options{Kernels: slices.Concat(portable.Kernels(), avx.Kernels()), ISA: isa, Threads: 2, spaceBytes: 1 << 20}
	for _, hd := range []int{40, 64} {
		for _, op := range []string{"attention_f16", "attention_f32"} {
			tuner, err := newTuner(o)
			if err != nil {
				t.Fatal(err)
			}
			tuner.limits = Limits{Bandwidth: 1, Int8: 1, Float: 1}
			for _, tokens := range []int{1, 2, 13} {
				e, err := tuner.solve(t.Context(), task{Problem{op, 2, hd, 3 * tokens}, 1, 99, 3})
				if err != nil {
					t.Fatal(err)
				}
				p.Put(e)
				for _, m := range e.Measured {
					if strings.HasPrefix(m.Reason, "wrong") || strings.HasPrefix(m.Reason, "failed") {
						t.Errorf("%s, %d rows: %s: %s", op, e.M, m.Kernels, m.Reason)
					}
				}
			}
			tuner.close()
		}
	}
}

// Every candidate covers its rows with legal tiles, and none is there twice.
func TestCandidates(t *testing.T) {
	tuner, err := newTuner(Options{Kernels: slices.Concat(portable.Kernels(), avx.Kernels()), ISA: cpu.Detect().Available()[0], Threads: 1, Exhaustive: true, spaceBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer tuner.close()
	for m := 1; m <= 40; m++ {
		list, err := tuner.candidates(Problem{"gemm_q4_k", 64, 256, m})
		if err != nil || len(list) < 1 {
			t.Fatalf("%d rows: %v", m, err)
		}
		seen := map[string]bool{}
		for _, c := range list {
			at := 0
			for _, r := range c.runs {
				if r.First != at || at%4 != 0 || r.Rows%r.Tile != 0 || r.Tile < 4 && r.Rows != r.Tile {
					t.Fatalf("%d rows: %v has the run %+v at %d", m, c.names(), r, at)
				}
				at += r.Rows
			}
			key := fmt.Sprint(c.names())
			if at != m || seen[key] {
				t.Errorf("%d rows: %s covers %d, seen before: %v", m, key, at, seen[key])
			}
			seen[key] = true
		}
	}
}

func TestDecide(t *testing.T) {
	trialOf := func(q1, median, q3 float64) *trial {
		return &trial{Measurement: Measurement{Q1: q1, Median: median, Q3: q3, Samples: 5}}
	}
	out := trialOf(1, 1, 1)
	out.drop("wrong bits")
	for _, c := range []struct {
		trials  []*trial
		want    int
		reasons []string
	}{
		{[]*trial{trialOf(99, 100, 101)}, 0, []string{"the default; nothing"}},
		{[]*trial{trialOf(99, 100, 101), trialOf(97, 98, 98.5)}, 0, []string{"the default; nothing", "2.0 % faster than the default, too little"}},
		{[]*trial{trialOf(95, 100, 101), trialOf(80, 90, 95)}, 0, []string{"the default; nothing", "11.1 % faster than the default, but the quartiles"}},
		{[]*trial{trialOf(95, 100, 101), trialOf(80, 90, 94), trialOf(70, 80, 94), trialOf(100, 120, 130)}, 2, []string{"the default", "11.1 % faster than the default, and", "chosen: 25.0 %", "20.0 % slower"}},
		{[]*trial{trialOf(99, 100, 101), out}, 0, []string{"the default; nothing", "wrong bits"}},
	} {
		if got := decide(c.trials); got != c.want {
			t.Errorf("%v: winner %d, want %d", c.reasons, got, c.want)
		}
		for i, want := range c.reasons {
			if got := c.trials[i].Reason; !strings.HasPrefix(got, want) {
				t.Errorf("trial %d: %q, want %q", i, got, want)
			}
		}
	}
}

func TestQuantile(t *testing.T) {
	s := []float64{5, 1, 4, 2, 3}
	var got []float64
	for q := range 5 {
		got = append(got, quantile(s, q))
	}
	if diff := cmp.Diff([]float64{1, 2, 3, 4, 5}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTasks(t *testing.T) {
	seen := map[Problem]bool{}
	covered := map[dispatch.Shape][2]int{}
	list := tasks(DefaultNeeds("f16"))
	for _, q := range list {
		if seen[q.Problem] || q.M < q.from || q.M > q.to {
			t.Errorf("%+v is there twice or outside of its range", q)
		}
		seen[q.Problem] = true
		s := dispatch.Shape{Op: q.Op, N: q.N, K: q.K}
		covered[s] = [2]int{covered[s][0] + 1, covered[s][1] + q.to - q.from + 1}
	}
	for s, c := range covered {
		if strings.HasPrefix(s.Op, "gemm_") && (c[0] != exactRows+2 || c[1] != anyRows) && c != [2]int{logitRows, logitRows} {
			t.Errorf("%v: %d problems for %d numbers of rows", s, c[0], c[1])
		}
	}
	if list[0].M != 1 || list[1].M != manyRows && list[1].M != 1 {
		t.Errorf("the first problems are %+v", list[:2])
	}
}

package conform

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/swizzle-rt/swizzle/gen"
	"github.com/swizzle-rt/swizzle/generated/avx"
	"github.com/swizzle-rt/swizzle/generated/portable"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

var exhaustive = flag.Bool("exhaustive", false, "compare kernels with the scalar references on many more shapes")

// kernels lists the generated kernels.
func kernels() []kernel.Kernel { return append(portable.Kernels(), avx.Kernels()...) }

// units lists what ops, configs and targets should give.
func units(t testing.TB) []gen.Unit {
	t.Helper()
	list, err := allUnits()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var allUnits = sync.OnceValues(func() ([]gen.Unit, error) { return gen.Units(ops.All(), gen.Targets()) })

// config is an op under one config, with its kernels that this CPU can run.
type config struct {
	op      *ops.Op
	variant ops.Variant
	kernels []*kernel.Kernel
}

// runnable lists what this CPU can run, configs of an op next to each other.
func runnable(t testing.TB) []*config {
	t.Helper()
	isas := cpu.Detect().Available()
	byName := map[kernel.Name]*kernel.Kernel{}
	for _, k := range kernels() {
		if slices.Contains(isas, cpu.ISA(k.Name.Arch)) {
			byName[k.Name] = &k
		}
	}
	index := map[[2]string]*config{}
	var list []*config
	for _, u := range units(t) {
		k := byName[u.Name()]
		if k == nil {
			continue
		}
		c := index[[2]string{u.Op.Name, u.Variant.Config}]
		if c == nil {
			c = &config{op: u.Op, variant: u.Variant}
			index[[2]string{u.Op.Name, u.Variant.Config}] = c
			list = append(list, c)
		}
		if u.Variant.Rows != c.variant.Rows {
			t.Fatalf("%s: the rows of config %s depend on the target", u.Op.Name, u.Variant.Config)
		}
		c.kernels = append(c.kernels, k)
	}
	slices.SortStableFunc(list, func(a, b *config) int {
		return slices.Index(names, a.op.Name) - slices.Index(names, b.op.Name)
	})
	return list
}

// names are those of the ops, in order.
var names = func() (list []string) {
	for _, op := range ops.All() {
		list = append(list, op.Name)
	}
	return list
}()

// tally counts cases and time.
type tally struct {
	mu   sync.Mutex
	rows map[string]*score
}

type score struct {
	cases, bad int
	time       time.Duration
	first      string // what went wrong first
}

func (t *tally) add(row string, d time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[string]*score{}
	}
	s := t.rows[row]
	if s == nil {
		s = new(score)
		t.rows[row] = s
	}
	s.cases++
	s.time += d
	if err != nil {
		if s.bad++; s.bad == 1 {
			s.first = err.Error()
		}
	}
}

// report logs a row for each architecture or device.
func (t *tally) report(b testing.TB) {
	for _, row := range slices.Sorted(maps.Keys(t.rows)) {
		s := t.rows[row]
		b.Logf("%-14s %7d cases %7.2f s", row, s.cases, s.time.Seconds())
	}
}

// Every kernel has the scalar reference's bits, wherever its buffers lie and however its grid is cut into calls.
func TestKernelsEqualReference(t *testing.T) {
	more := 4
	switch {
	case *exhaustive:
		more = 60
	case testing.Short():
		more = 1
	}
	var total tally
	t.Run("ops", func(t *testing.T) {
		byOp := map[string][]*config{}
		for _, c := range runnable(t) {
			byOp[c.op.Name] = append(byOp[c.op.Name], c)
		}
		for _, name := range names {
			if list := byOp[name]; list != nil {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					testConfigs(t, list, shapes(list[0].op, more), &total)
				})
			}
		}
	})
	total.report(t)
}

// testConfigs runs one op's kernels on the shapes.
func testConfigs(t *testing.T, configs []*config, shapes []ops.Shape, total *tally) {
	stage := newStage(t)
	for _, c := range configs {
		var kernels tally
		for si, shape := range shapes {
			for pi, pattern := range ops.Patterns {
				if testing.Short() && pi != si%len(ops.Patterns) {
					continue
				}
				start := time.Now()
				seed := uint64(100*si + pi)
				cs := c.op.Case(c.variant, shape, ops.NewData(pattern, seed))
				total.add("reference", time.Since(start), nil)
				for _, k := range c.kernels {
					for _, way := range []struct {
						place placement
						name  string
						calls func(tiles int) []span
					}{{atEnd, "one call", whole}, {atStart, "scattered calls", scattered(seed)}, {offset, "a call a tile", singly}} {
						start := time.Now()
						err := stage.run(k, cs, way.place, way.calls)
						if err != nil {
							err = fmt.Errorf("shape %v, %s, %s, %s: %w", shape, pattern, way.place, way.name, err)
						}
						d := time.Since(start)
						kernels.add(k.Name.String(), d, err)
						total.add(k.Name.Arch, d, nil)
					}
				}
			}
		}
		for _, k := range c.kernels {
			if s := kernels.rows[k.Name.String()]; s.bad > 0 {
				t.Errorf("%s: %d of %d cases are wrong; the first: %s", k.Name, s.bad, s.cases, s.first)
			}
		}
	}
}

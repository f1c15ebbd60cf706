package conform

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/swizzle-rt/swizzle/backends/checkers"
	"github.com/swizzle-rt/swizzle/backends/msl/shim"
	"github.com/swizzle-rt/swizzle/backends/ptx/sim"
	"github.com/swizzle-rt/swizzle/generated"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// A device runs GPU kernels on a CPU.
type device struct {
	name string
	arch string // of the kernels, those that have a file of their own for it
	// driver is the Vulkan driver that must be the only one: a process of its own runs such devices.
	driver  string
	flushes bool // makes subnormals zero: patterns of data that have some are left out
	slow    bool // to compile kernels: left out of short tests
	// By default it runs the op's own shapes and so many ragged ones, on so many patterns of data each.
	ragged, patterns int
	open             func(t *testing.T, d *device) func(t *testing.T, op string, jobs []*job)
}

var devices = append([]*device{
	{name: "ptx/sim sm_75", arch: "sm_75", ragged: 4, patterns: 4, open: openPTX},
	{name: "ptx/sim sm_80", arch: "sm_80", ragged: 4, patterns: 4, open: openPTX},
	{name: "metal shim", arch: "metal3", slow: true, ragged: 3, patterns: 2, open: openMetal},
}, vulkanDevices...)

// module is a generated kernel of a GPU as it is shipped.
type module struct {
	*kernel.Kernel
	text string
}

// job is a run of a module on a case.
type job struct {
	*module
	*ops.Case
	name string
	seed uint64
	err  error         // what came of it
	time time.Duration // that it took
}

// modules lists the kernels that have a file of their own, by architecture and op.
func modules(t testing.TB) map[string]map[string][]*module {
	t.Helper()
	m := manifest(t)
	list, err := m.GPU()
	if err != nil {
		t.Fatal(err)
	}
	byFile := map[string]kernel.Entry{}
	for _, e := range m.Kernels {
		byFile[e.File] = e
	}
	out := map[string]map[string][]*module{}
	for _, k := range list {
		e := byFile[k.Launch.File]
		if e.Name != k.Name.String() {
			continue
		}
		text, err := e.Text(generated.Files)
		if err != nil {
			t.Fatal(err)
		}
		if out[k.Name.Arch] == nil {
			out[k.Name.Arch] = map[string][]*module{}
		}
		out[k.Name.Arch][k.Name.Op] = append(out[k.Name.Arch][k.Name.Op], &module{&k, text})
	}
	return out
}

// values are a case's arguments by slot; buffers are copies.
type values struct {
	buffers [][]byte
	ints    []int64
	floats  []float32
}

func (j *job) values() (v values, err error) {
	for _, p := range j.Params { // in order of slot within each kind
		known := false
		switch p.Kind {
		case kernel.Buffer:
			var b []byte
			b, known = j.Buf[p.Name]
			v.buffers = append(v.buffers, bytes.Clone(b))
		case kernel.Int:
			var n int64
			n, known = j.Int[p.Name]
			v.ints = append(v.ints, n)
		case kernel.Float:
			var f float32
			f, known = j.Float[p.Name]
			v.floats = append(v.floats, f)
		}
		if !known {
			return v, fmt.Errorf("the case has no value for parameter %s", p.Name)
		}
	}
	return v, nil
}

// tiles is the size of the flattened grid.
func (j *job) tiles() int {
	var a kernel.Args
	for _, p := range j.Params {
		if p.Kind == kernel.Int {
			a.Int[p.Slot] = j.Int[p.Name]
		}
	}
	return j.Kernel.Tiles(&a)
}

// blocks is the number of blocks that have them.
func (j *job) blocks() int { return (j.tiles() + j.Launch.Tiles - 1) / j.Launch.Tiles }

// compare holds buffers, by slot, to what the case expects.
func (j *job) compare(buffers [][]byte) error {
	for _, p := range j.Params {
		if p.Kind != kernel.Buffer {
			continue
		}
		want, output := j.Want[p.Name]
		if !output {
			if !bytes.Equal(buffers[p.Slot], j.Buf[p.Name]) {
				return fmt.Errorf("%s, an input, was written", p.Name)
			}
			continue
		}
		t, _ := ir.ParseType(p.Type) // TestDescriptors sees that it is one
		if err := ops.Compare(t, buffers[p.Slot], want); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// each runs jobs one by one with a function that leaves results in the buffers.
func each(jobs []*job, run func(j *job, v values) error) {
	for _, j := range jobs {
		start := time.Now()
		v, err := j.values()
		if err == nil {
			err = run(j, v)
		}
		if err == nil {
			err = j.compare(v.buffers)
		}
		j.err, j.time = err, time.Since(start)
	}
}

// openPTX runs kernels in the simulator, blocks and warps in an order that differs from job to job, on a grid with a block
// more than needed.
func openPTX(*testing.T, *device) func(t *testing.T, op string, jobs []*job) {
	return func(_ *testing.T, _ string, jobs []*job) {
		parsed := map[*module]*sim.Entry{}
		each(jobs, func(j *job, v values) error {
			e := parsed[j.module]
			if e == nil {
				var err error
				if e, err = j.parse(); err != nil {
					return err
				}
				parsed[j.module] = e
			}
			_, err := e.Run(j.launch(v))
			return err
		})
	}
}

// parse reads PTX.
func (m *module) parse() (*sim.Entry, error) {
	parsed, err := sim.Parse([]byte(m.text))
	if err != nil {
		return nil, err
	}
	return parsed.Entry(m.Name.Entry())
}

// launch is the run on the simulator.
func (j *job) launch(v values) *sim.Launch {
	l := &sim.Launch{Grid: j.blocks() + 1, Block: j.Launch.Threads, Seed: j.seed}
	for _, p := range j.Params {
		if p.Kind == kernel.Buffer {
			l.Memory = append(l.Memory, &sim.Buffer{Name: p.Name, Data: v.buffers[p.Slot], ReadOnly: p.Access == "in"})
		}
	}
	sim.Place(l.Memory...)
	next := 0
	for _, p := range j.Params {
		switch p.Kind {
		case kernel.Buffer:
			l.Params = append(l.Params, l.Memory[next].Addr)
			next++
		case kernel.Int:
			l.Params = append(l.Params, uint64(v.ints[p.Slot]))
		case kernel.Float:
			l.Params = append(l.Params, uint64(math.Float32bits(v.floats[p.Slot])))
		}
	}
	return l
}

// openMetal compiles all kernels of an op into one program, which runs each job in three orders of threads.
func openMetal(t *testing.T, _ *device) func(t *testing.T, op string, jobs []*job) {
	checkers.Need(t, shim.Compiler)
	c, err := shim.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, op string, jobs []*job) {
		start := time.Now()
		var kernels []shim.Kernel
		var cases []shim.Case
		var last *module
		for _, j := range jobs {
			if j.module != last {
				last = j.module
				kernels = append(kernels, shim.Kernel{Symbol: j.Name.Entry(), Text: []byte(j.text)})
			}
			v, err := j.values()
			if err != nil {
				t.Fatalf("%s: %v", j.Name, err)
			}
			s := shim.Case{Symbol: j.Name.Entry(), Threads: j.Launch.Threads, Shared: j.Shared, Width: max(1, min(7, j.blocks())), Floats: v.floats}
			s.Height = j.blocks()/s.Width + 1 // surplus blocks, too
			for _, n := range v.ints {
				s.Ints = append(s.Ints, int32(n))
			}
			for _, p := range j.Params {
				if p.Kind == kernel.Buffer {
					s.Buffers = append(s.Buffers, shim.Buffer{Contents: v.buffers[p.Slot], Writable: p.Access != "in"})
				}
			}
			cases = append(cases, s)
		}
		p, err := c.Build(op, kernels)
		if err != nil {
			t.Fatal(err)
		}
		results, err := p.Run(cases)
		if err != nil {
			t.Fatal(err)
		}
		for n, j := range jobs {
			for _, r := range results[n] {
				err := r.Err
				if err == nil {
					err = j.compare(r.Buffers)
				}
				if err != nil {
					j.err = errors.Join(j.err, fmt.Errorf("order %s: %w", r.Order, err))
				}
			}
			j.time = time.Since(start) / time.Duration(len(jobs))
		}
	}
}

// driverOf names the environment variable by which a process knows that it runs the devices of one driver.
const driverOf = "SWIZZLE_CONFORM_DRIVER"

// Every shipped kernel of a GPU has the scalar reference's bits.
func TestGPUKernelsEqualReference(t *testing.T) {
	driver := os.Getenv(driverOf)
	var total tally
	t.Run("devices", func(t *testing.T) {
		texts := modules(t)
		for arch := range texts {
			if !slices.ContainsFunc(devices, func(d *device) bool { return d.arch == arch }) && len(vulkanDevices) > 0 {
				t.Errorf("no device runs kernels for %s", arch)
			}
		}
		for _, d := range devices {
			if d.driver != driver {
				continue
			}
			if len(texts[d.arch]) == 0 {
				t.Errorf("%s: %s has no kernel", d.name, d.arch)
			}
			t.Run(d.name, func(t *testing.T) {
				if d.slow && testing.Short() {
					t.Skip("takes long to compile kernels")
				}
				run := d.open(t, d)
				var group sync.WaitGroup
				defer group.Wait()
				queue := make(chan *ops.Op)
				for range 2 {
					group.Go(func() {
						for op := range queue {
							d.test(t, op, texts[d.arch][op.Name], run, &total)
						}
					})
				}
				for _, op := range ops.All() {
					queue <- op
				}
				close(queue)
			})
		}
	})
	total.report(t)
}

// test runs an op's kernels on the device.
func (d *device) test(t *testing.T, op *ops.Op, list []*module, run func(t *testing.T, op string, jobs []*job), total *tally) {
	if len(list) == 0 {
		return
	}
	var jobs []*job
	for _, m := range list {
		variant := variantOf(t, m)
		for _, r := range d.cases(op) {
			start := time.Now()
			c := op.Case(variant, r.shape, ops.NewData(r.pattern, r.seed))
			total.add("reference", time.Since(start), nil)
			jobs = append(jobs, &job{module: m, Case: c, name: fmt.Sprintf("shape %v, %s", r.shape, r.pattern), seed: r.seed})
		}
	}
	run(t, op.Name, jobs)
	for _, j := range jobs {
		total.add(d.name, j.time, j.err)
		if j.err != nil {
			t.Errorf("%s, %s: %s: %v", d.name, j.Name, j.name, j.err)
		}
	}
}

// gpuCase is what to run a kernel on.
type gpuCase struct {
	shape   ops.Shape
	pattern ops.Pattern
	seed    uint64
}

// cases lists what the device runs an op's kernels on: shapes of the op and ragged ones, patterns in turn.
func (d *device) cases(op *ops.Op) (list []gpuCase) {
	patterns := ops.Patterns
	if d.flushes {
		patterns = slices.DeleteFunc(slices.Clone(patterns), func(p ops.Pattern) bool { return p == ops.Tiny || p == ops.Mixed })
	}
	all, turns := shapes(op, d.ragged), len(patterns)/d.patterns
	switch {
	case *exhaustive:
		all, turns = shapes(op, 40), 1
	case testing.Short():
		all, turns = all[len(all)-1:], len(patterns)
	}
	for si, s := range all {
		for pi, p := range patterns {
			if pi%turns == si%turns {
				list = append(list, gpuCase{s, p, uint64(100*si + pi + 1)})
			}
		}
	}
	return list
}

package msl

import (
	"bytes"
	"flag"
	"fmt"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/checkers"
	"github.com/swizzle-rt/swizzle/backends/msl/shim"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/verify"
)

var exhaustive = flag.Bool("exhaustive", false, "run every pattern of data and many more random kernels")

const arch = "metal3"

// toolchain returns a compiler of printed kernels.
func toolchain(t testing.TB) *shim.Toolchain {
	t.Helper()
	checkers.Need(t, shim.Compiler)
	c, err := shim.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// batch collects kernels and runs on them, for one program.
type batch struct {
	outputs map[*ir.Kernel]*Output
	kernels []shim.Kernel
	symbol  map[*ir.Kernel]string
	cases   []shim.Case
	expect  []expectation
}

// expectation tells what a run must leave.
type expectation struct {
	name   string
	kernel *ir.Kernel
	want   [][]byte // by slot
}

func newBatch() *batch {
	return &batch{outputs: map[*ir.Kernel]*Output{}, symbol: map[*ir.Kernel]string{}}
}

// add prints the kernel and checks what needs no execution.
func (b *batch) add(t testing.TB, k *ir.Kernel) {
	t.Helper()
	if b.outputs[k] != nil {
		return
	}
	if err := verify.Kernel(k, Caps(arch)); err != nil {
		t.Fatal(err)
	}
	symbol := fmt.Sprintf("k%d_%s", len(b.kernels), k.Name)
	o, err := Emit(k, Options{Arch: arch, Symbol: symbol, Header: "// Printed by a test."})
	if err != nil {
		t.Fatal(err)
	}
	if err := shim.Lint(k, o.Text); err != nil {
		t.Errorf("%v\n%s", err, o.Text)
	}
	b.outputs[k], b.symbol[k] = o, symbol
	b.kernels = append(b.kernels, shim.Kernel{Symbol: symbol, Text: o.Text})
}

// run schedules a run; want are the buffers' contents afterwards.
func (b *batch) run(t testing.TB, name string, k *ir.Kernel, a interp.Args, want [][]byte) {
	t.Helper()
	b.add(t, k)
	b.cases = append(b.cases, launch(k, b.outputs[k], b.symbol[k], a))
	b.expect = append(b.expect, expectation{name, k, want})
}

// launch returns the launch that runs all tiles, on a grid with surplus threadgroups.
func launch(k *ir.Kernel, o *Output, symbol string, a interp.Args) shim.Case {
	groups := (int(interp.Tiles(k, a.Ints)) + o.Tiles - 1) / o.Tiles
	c := shim.Case{Symbol: symbol, Threads: o.Threads, Shared: o.Shared, Width: min(7, max(groups, 1)), Floats: a.Floats}
	c.Height = groups/c.Width + 1
	for _, n := range a.Ints {
		c.Ints = append(c.Ints, int32(n))
	}
	for _, p := range k.Params {
		if p.Kind == ir.Buffer {
			c.Buffers = append(c.Buffers, shim.Buffer{Contents: a.Buffers[p.Slot], Writable: p.Access != ir.In})
		}
	}
	return c
}

// interpret schedules a run that must leave what the interpreter leaves.
func (b *batch) interpret(t testing.TB, name string, k *ir.Kernel, a interp.Args) {
	t.Helper()
	c := a
	c.Buffers = nil
	for _, x := range a.Buffers {
		c.Buffers = append(c.Buffers, bytes.Clone(x))
	}
	if _, err := interp.Run(k, c); err != nil {
		t.Fatalf("%s: interpreter: %v", name, err)
	}
	b.run(t, name, k, a, c.Buffers)
}

// finish compiles, checks address spaces, runs and compares.
func (b *batch) finish(t testing.TB, c *shim.Toolchain, name string) {
	t.Helper()
	if err := c.Check(name, b.kernels); err != nil {
		t.Error(err)
	}
	p, err := c.Build(name, b.kernels)
	if err != nil {
		t.Fatal(err)
	}
	results, err := p.Run(b.cases)
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	for n, x := range b.expect {
		if err := x.compare(results[n]); err != nil {
			if bad++; bad <= 5 {
				t.Errorf("%s: %v", x.name, err)
			}
		}
	}
	if bad > 5 {
		t.Errorf("%d of %d cases are wrong", bad, len(b.expect))
	}
}

// compare returns the first difference.
func (x expectation) compare(results []shim.Result) error {
	for _, r := range results {
		if r.Err != nil {
			return fmt.Errorf("order %s: %w", r.Order, r.Err)
		}
		for _, p := range x.kernel.Params {
			if p.Kind != ir.Buffer {
				continue
			}
			if err := ops.Compare(p.Type, r.Buffers[p.Slot], x.want[p.Slot]); err != nil {
				return fmt.Errorf("order %s: %s: %w", r.Order, p.Name, err)
			}
		}
	}
	return nil
}

func mustBuild(t testing.TB, name string, groups int, f func(b *ir.Builder)) *ir.Kernel {
	t.Helper()
	k, err := ir.Build(name, 32, groups, f)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

package ptx

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/ptx/sim"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/random"
)

// launch executes a printed kernel over the whole grid and leaves its results in the buffers. Warps and blocks run in an
// order that the seed chooses.
func launch(k *ir.Kernel, o *Output, a interp.Args, seed uint64) error {
	m, err := sim.Parse(o.Text)
	if err != nil {
		return err
	}
	e, err := m.Entry(k.Name)
	if err != nil {
		return err
	}
	tiles := int(interp.Tiles(k, a.Ints))
	l := &sim.Launch{Grid: (tiles+o.Tiles-1)/o.Tiles + 1, Block: o.Threads, Seed: seed} // one block more than needed
	for _, p := range k.Params {
		if p.Kind == ir.Buffer {
			l.Memory = append(l.Memory, &sim.Buffer{Name: p.Name, Data: a.Buffers[p.Slot], ReadOnly: p.Access == ir.In})
		}
	}
	sim.Place(l.Memory...)
	next := 0
	for _, p := range k.Params {
		switch p.Kind {
		case ir.Buffer:
			l.Params = append(l.Params, l.Memory[next].Addr)
			next++
		case ir.Integer:
			l.Params = append(l.Params, uint64(a.Ints[p.Slot]))
		default:
			l.Params = append(l.Params, uint64(math.Float32bits(a.Floats[p.Slot])))
		}
	}
	_, err = e.Run(l)
	return err
}

func clone(a interp.Args) interp.Args {
	c := a
	c.Buffers = nil
	for _, b := range a.Buffers {
		c.Buffers = append(c.Buffers, bytes.Clone(b))
	}
	return c
}

// compare runs a kernel in the interpreter and its text in the simulator and compares all buffers.
func compare(x trial, arch string, seed uint64) error {
	want, got := clone(x.args), clone(x.args)
	if _, err := interp.Run(x.kernel, want); err != nil {
		return err
	}
	o, err := Emit(x.kernel, Options{Arch: arch, Symbol: x.kernel.Name})
	if err != nil {
		return err
	}
	if err := launch(x.kernel, o, got, seed); err != nil {
		return fmt.Errorf("%w\n%s", err, number(o.Text))
	}
	for _, p := range x.kernel.Params {
		if p.Kind != ir.Buffer {
			continue
		}
		if err := ops.Compare(p.Type, got.Buffers[p.Slot], want.Buffers[p.Slot]); err != nil {
			return fmt.Errorf("kernel %s, %s: %s: %w\n%s\n%s", x.kernel.Name, arch, p.Name, err, x.kernel, number(o.Text))
		}
	}
	return nil
}

func TestFormsRun(t *testing.T) {
	list := slices.Concat(formTrials(t), storageTrials(t), tileTrials(t))
	each(len(list), func(n int) {
		if err := compare(list[n], Arches()[n%len(Arches())], uint64(n)); err != nil {
			t.Error(err)
		}
	})
}

func TestMatricesRun(t *testing.T) {
	for _, arch := range []string{"sm_75", "sm_80"} {
		for n, x := range matrixTrials(t, arch) {
			if err := compare(x, arch, uint64(n)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRandomKernelsRun(t *testing.T) {
	n := 150
	if *exhaustive {
		n = 5000
	}
	each(n, func(i int) {
		r := rand.New(rand.NewPCG(uint64(i), 12))
		k := random.Kernel(r, 32, 1+i%3, 60)
		k.Body = oneNaN(k, k.Body)
		if err := compare(trial{k, random.Args(r, k)}, Arches()[i%len(Arches())], uint64(i)); err != nil {
			t.Errorf("kernel %d: %v", i, err)
		}
	})
}

// oneNaN makes one of all NaNs where floats become other words: which NaN an operation gives differs between machines.
func oneNaN(k *ir.Kernel, body []ir.Stmt) (out []ir.Stmt) {
	add := func(op ir.Op, t ir.Type, bits int64, args ...*ir.Value) *ir.Value {
		i := &ir.Instr{Op: op, Args: args, Imm: bits}
		span := ir.Block
		for _, a := range args {
			span = max(span, a.Span)
		}
		v := k.NewValue(t, span)
		v.Def, i.Results = i, []*ir.Value{v}
		out = append(out, i)
		return v
	}
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			if v := s.Args; s.Op == ir.OpCast && v[0].Type == ir.F32 && s.Results[0].Type != ir.F32 {
				s.Args = []*ir.Value{add(ir.OpSelect, ir.F32, 0, add(ir.OpEqF, ir.Bool, 0, v[0], v[0]), v[0], add(ir.OpConst, ir.F32, 0x7FC00000))}
			}
		case *ir.For:
			s.Body = oneNaN(k, s.Body)
		case *ir.If:
			s.Then, s.Else = oneNaN(k, s.Then), oneNaN(k, s.Else)
		}
		out = append(out, s)
	}
	return out
}

// Kernels of the ops have the bits of the scalar references.
func TestOpsRun(t *testing.T) {
	list := units()
	each(len(list), func(n int) {
		u := list[n]
		k, err := u.kernel()
		if err != nil {
			t.Error(err)
			return
		}
		o, err := Emit(k, Options{Arch: u.arch, Symbol: k.Name})
		if err != nil {
			t.Error(err)
			return
		}
		for s, shape := range u.op.Shapes {
			if s > 0 && !*exhaustive {
				break
			}
			c := u.op.Case(u.variant, shape, ops.NewData(ops.Random, uint64(n)))
			a, want := arguments(k, c)
			if err := launch(k, o, a, uint64(n)); err != nil {
				t.Errorf("%s, shape %v: %v", k.Name, shape, err)
				continue
			}
			for _, p := range k.Params {
				if w, ok := want[p]; ok {
					if err := ops.Compare(p.Type, a.Buffers[p.Slot], w); err != nil {
						t.Errorf("%s, shape %v: %s: %v", k.Name, shape, p.Name, err)
					}
				}
			}
		}
	})
}

// arguments returns a case's arguments by slot, and what buffers hold afterwards.
func arguments(k *ir.Kernel, c *ops.Case) (interp.Args, map[*ir.Param][]byte) {
	var a interp.Args
	want := map[*ir.Param][]byte{}
	for _, p := range k.Params {
		switch p.Kind {
		case ir.Buffer:
			a.Buffers = append(a.Buffers, bytes.Clone(c.Buf[p.Name]))
			if w, ok := c.Want[p.Name]; ok {
				want[p] = w
			}
		case ir.Integer:
			a.Ints = append(a.Ints, c.Int[p.Name])
		default:
			a.Floats = append(a.Floats, c.Float[p.Name])
		}
	}
	return a, want
}

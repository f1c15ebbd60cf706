package msl

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/random"
)

// Every op's kernels have the scalar reference's bits.
func TestOpsEqualReference(t *testing.T) {
	c := toolchain(t)
	var total int
	t.Run("ops", func(t *testing.T) {
		for _, op := range ops.All() {
			variants := op.Variants(Caps(arch))
			if len(variants) == 0 {
				continue
			}
			total += len(variants)
			t.Run(op.Name, func(t *testing.T) {
				t.Parallel()
				b := newBatch()
				for _, v := range variants {
					k, err := op.Kernel(v, Caps(arch))
					if err != nil {
						t.Fatal(err)
					}
					b.addCases(t, op, v, k)
				}
				b.finish(t, c, op.Name)
				size := 0
				for _, k := range b.kernels {
					size += len(k.Text)
				}
				t.Logf("%d kernels, %d cases, %d bytes", len(b.kernels), len(b.cases), size)
			})
		}
	})
	if total == 0 {
		t.Error("no op has a schedule for GPUs")
	}
}

// addCases schedules the op's shapes, each with some pattern of data.
func (b *batch) addCases(t *testing.T, op *ops.Op, v ops.Variant, k *ir.Kernel) {
	t.Helper()
	for si, shape := range op.Shapes {
		for pi, pattern := range ops.Patterns {
			if !*exhaustive && pi%4 != si%4 {
				continue
			}
			cs := op.Case(v, shape, ops.NewData(pattern, uint64(100*si+pi)))
			a, want, err := arguments(k, cs)
			if err != nil {
				t.Fatalf("%s: %v", k.Name, err)
			}
			b.run(t, fmt.Sprintf("%s, shape %v, %s", k.Name, shape, pattern), k, a, want)
		}
	}
}

// arguments returns a case's values by slot, and what buffers hold afterwards.
func arguments(k *ir.Kernel, c *ops.Case) (a interp.Args, want [][]byte, err error) {
	for _, p := range k.Params {
		var known bool
		switch p.Kind {
		case ir.Buffer:
			var before []byte
			before, known = c.Buf[p.Name]
			after, written := c.Want[p.Name]
			if written != (p.Access != ir.In) {
				return a, nil, fmt.Errorf("parameter %s is %s; the case expects contents: %v", p.Name, p.Access, written)
			}
			if !written {
				after = before
			}
			a.Buffers, want = append(a.Buffers, before), append(want, after)
		case ir.Integer:
			var n int64
			n, known = c.Int[p.Name]
			a.Ints = append(a.Ints, n)
		case ir.Float:
			var f float32
			f, known = c.Float[p.Name]
			a.Floats = append(a.Floats, f)
		}
		if !known {
			return a, nil, fmt.Errorf("the case has no value for parameter %s", p.Name)
		}
	}
	return a, want, nil
}

// Random kernels do what the interpreter does.
func TestRandomKernels(t *testing.T) {
	c := toolchain(t)
	count, size := 3, 8
	if *exhaustive {
		count = 40
	}
	for part := range count {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			b := newBatch()
			for n := range size {
				r := rand.New(rand.NewPCG(uint64(size*part+n), 5))
				k := random.Kernel(r, 32, []int{1, 1, 2, 4}[n%4], 60)
				b.interpret(t, fmt.Sprintf("random kernel %d\n%s", size*part+n, k), k, random.Args(r, k))
			}
			b.finish(t, c, fmt.Sprintf("random%d", part))
		})
	}
}

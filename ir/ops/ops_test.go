package ops_test

import (
	"fmt"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// targets stand for the kinds of schedules: CPUs with any registers and full-range dots, or with few and narrow ones, and a
// GPU with matrix instructions.
var targets = []*target.Caps{
	{Arch: "portable", Family: target.CPU, DotUMax: 255},
	{Arch: "avx512vnni", Family: target.CPU, VecBits: 512, VecRegs: 32, DotUMax: 255},
	{Arch: "avx2", Family: target.CPU, VecBits: 256, VecRegs: 16, DotUMax: 127},
	{Arch: "gpu", Family: target.GPU, Atoms: target.Atoms()},
}

// run executes the kernel on a case and compares its outputs.
func run(k *ir.Kernel, c *ops.Case) (*interp.Report, error) {
	var a interp.Args
	got := map[string][]byte{}
	for _, p := range k.Params {
		switch p.Kind {
		case ir.Buffer:
			b, ok := c.Buf[p.Name]
			if !ok {
				return nil, fmt.Errorf("the case has no buffer %s", p.Name)
			}
			if p.Access != ir.In {
				b = append([]byte(nil), b...)
				got[p.Name] = b
			}
			a.Buffers = append(a.Buffers, b)
		case ir.Integer:
			a.Ints = append(a.Ints, c.Int[p.Name])
		case ir.Float:
			a.Floats = append(a.Floats, c.Float[p.Name])
		}
	}
	report, err := interp.Run(k, a)
	if err != nil {
		return nil, err
	}
	for _, p := range k.Params {
		want, ok := c.Want[p.Name]
		if (p.Kind == ir.Buffer && p.Access != ir.In) != ok {
			return nil, fmt.Errorf("parameter %s: output %v, expected by the case %v", p.Name, p.Access, ok)
		}
		if ok {
			if err := ops.Compare(p.Type, got[p.Name], want); err != nil {
				return nil, fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	return report, nil
}

// Every schedule, as written and lowered, has the scalar reference's bits.
func TestInterpreterEqualsReference(t *testing.T) {
	for _, op := range ops.All() {
		t.Run(op.Name, func(t *testing.T) {
			t.Parallel()
			for _, c := range targets {
				for _, v := range op.Variants(c) {
					k, err := op.Kernel(v, c)
					if err != nil {
						t.Fatal(err)
					}
					low, err := lower.Run(k, lower.CPU)
					if err != nil {
						t.Fatal(err)
					}
					for si, s := range op.Shapes {
						for pi, p := range ops.Patterns {
							if testing.Short() && pi > 0 {
								continue
							}
							cs := op.Case(v, s, ops.NewData(p, uint64(si)))
							if _, err := run(low, cs); err != nil {
								t.Fatalf("%s on %s, shape %v, %s, lowered: %v", v.Config, c.Arch, s, p, err)
							}
							if pi%4 == si%4 { // as written: the same meaning, more slowly
								if _, err := run(k, cs); err != nil {
									t.Fatalf("%s on %s, shape %v, %s: %v", v.Config, c.Arch, s, p, err)
								}
							}
						}
					}
				}
			}
		})
	}
}

// The swizzled GEMM and transpose access shared memory without conflicts, their plain twins don't: the swizzle is what frees
// them.
func TestSwizzleFreesBanks(t *testing.T) {
	gpu := &target.Caps{Arch: "gpu", Family: target.GPU, Atoms: target.Atoms()}
	for _, op := range []*ops.Op{ops.GEMMMatrix(), ops.SwizzleCopy()} {
		for i, v := range op.Variants(gpu) {
			k, err := op.Kernel(v, gpu)
			if err != nil {
				t.Fatal(err)
			}
			r, err := run(k, op.Case(v, op.Shapes[0], ops.NewData(ops.Random, 1)))
			if err != nil {
				t.Fatal(err)
			}
			free := r.SharedWavefronts == r.SharedIdeal
			if swizzled := i == 0; free != swizzled {
				t.Errorf("%s %s: %d wavefronts, %d at best", op.Name, v.Config, r.SharedWavefronts, r.SharedIdeal)
			}
		}
	}
}

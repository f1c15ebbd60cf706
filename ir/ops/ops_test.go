package ops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/ir/verify"
)

// targets stand for the kinds of schedules: CPUs with any registers and full-range dots, or with few and narrow ones, and
// GPUs of the least size that kernels must fit in, without and with matrix instructions.
var targets = []*target.Caps{
	{Arch: "portable", Family: target.CPU, DotUMax: 255},
	{Arch: "avx512vnni", Family: target.CPU, VecBits: 512, VecRegs: 32, DotUMax: 255},
	{Arch: "avx2", Family: target.CPU, VecBits: 256, VecRegs: 16, DotUMax: 127},
	gpu(),
	gpu(target.Atoms()...),
}

// gpu is a GPU that has every instruction and these atoms.
func gpu(atoms ...*ir.Atom) *target.Caps {
	c := &target.Caps{Arch: "gpu", Family: target.GPU, Native: map[ir.Op]bool{}, DotUMax: 255, Shared: 32 << 10, Threads: 256, Atoms: atoms}
	for _, op := range ir.Ops() {
		c.Native[op] = true
	}
	return c
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
			seen := map[string]bool{}
			for _, c := range targets {
				for _, v := range op.Variants(c) {
					k, err := op.Kernel(v, c)
					if err != nil {
						t.Fatal(err)
					}
					if c.Family == target.GPU {
						if err := verify.Kernel(k, c); err != nil {
							t.Fatal(err)
						}
					}
					_, text, _ := strings.Cut(k.String(), "\n")
					text = fmt.Sprint(k.Lanes, k.Groups, text)
					if seen[text] { // another target's, under another name
						continue
					}
					seen[text] = true
					passes := lower.CPU
					if c.Family == target.GPU {
						passes = lower.GPU
					}
					low, err := lower.Run(k, passes)
					if err != nil {
						t.Fatal(err)
					}
					for si, s := range op.Shapes {
						for pi, p := range ops.Patterns {
							if testing.Short() && pi > 0 || k.Groups > 1 && (pi+si)%3 > 0 { // several groups take their time
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
	gpu := gpu(target.Atoms()...)
	for _, op := range []*ops.Op{ops.SwizzleCopy()} {
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

// The row ops' schedules for GPUs access shared memory without conflicts, and wide elements in one piece.
func TestGPUMemory(t *testing.T) {
	c := gpu()
	for _, op := range ops.All() {
		if strings.HasPrefix(op.Name, "gemm_") || op.Name == "swizzle_copy" {
			continue
		}
		for _, v := range op.Variants(c) {
			k, err := op.Kernel(v, c)
			if err != nil {
				t.Fatal(err)
			}
			for si, s := range op.Shapes {
				r, err := run(k, op.Case(v, s, ops.NewData(ops.Random, uint64(si))))
				if err != nil {
					t.Fatalf("%s %s, shape %v: %v", op.Name, v.Config, s, err)
				}
				if r.SharedWavefronts != r.SharedIdeal || r.Unaligned > 0 {
					t.Errorf("%s %s, shape %v: %d wavefronts, %d at best, %d accesses are split", op.Name, v.Config, s, r.SharedWavefronts, r.SharedIdeal, r.Unaligned)
				}
			}
		}
	}
}

// Every op has a schedule for GPUs.
func TestGPUVariants(t *testing.T) {
	for _, op := range ops.All() {
		if len(op.Variants(gpu(target.Atoms()...))) == 0 {
			t.Errorf("%s has none", op.Name)
		}
	}
}

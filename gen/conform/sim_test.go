package conform

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/swizzle-rt/swizzle/backends/avx"
	"github.com/swizzle-rt/swizzle/backends/avx/sim"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/ops"
)

// Kernels as compiled have the scalar reference's bits in the simulator too, whatever this CPU can run: of every op the
// largest and the smallest config.
func TestSimulatedKernelsEqualReference(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles every kernel")
	}
	for _, arch := range avx.Arches() {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			start, cases := time.Now(), 0
			for _, op := range ops.All() {
				variants := op.Variants(avx.Caps(arch))
				if len(variants) > 2 && !*exhaustive {
					variants = []ops.Variant{variants[0], variants[len(variants)-1]}
				}
				for _, v := range variants {
					n, err := simulate(op, v, arch)
					if err != nil {
						t.Errorf("%s__%s__%s: %v", op.Name, v.Config, arch, err)
					}
					cases += n
				}
			}
			t.Logf("sim %-11s %7d cases %7.2f s", arch, cases, time.Since(start).Seconds())
		})
	}
}

// simulate compiles a kernel, runs it on cases and returns their number. A config that the target can't have gives none.
func simulate(op *ops.Op, v ops.Variant, arch string) (int, error) {
	built, err := op.Kernel(v, avx.Caps(arch))
	if err != nil {
		return 0, err
	}
	k, err := lower.Run(built, lower.CPU)
	if err != nil {
		return 0, err
	}
	fn, data, err := avx.Function(k, arch, op.Name)
	if rejected := (*ir.Error)(nil); errors.As(err, &rejected) {
		return 0, nil // TestComplete sees that the report has it
	} else if err != nil {
		return 0, err
	}
	m, err := sim.New(fn, arch, data)
	if err != nil {
		return 0, err
	}
	cases := 0
	patterns := []ops.Pattern{ops.Random, ops.Extremes, ops.Special}
	for si, shape := range op.Shapes {
		if si == 3 && !*exhaustive {
			break
		}
		for _, p := range patterns {
			cases++
			if err := simulateCase(m, k, op.Case(v, shape, ops.NewData(p, uint64(si)))); err != nil {
				return cases, fmt.Errorf("shape %v, %s: %w", shape, p, err)
			}
		}
	}
	return cases, nil
}

// simulateCase runs all tiles and compares the outputs. The simulator itself sees accesses outside of buffers, stores to
// inputs, and uses of what was never written.
func simulateCase(m *sim.Machine, k *ir.Kernel, c *ops.Case) error {
	a := sim.Args{Scratch: k.SharedBytes()}
	var ints []int64
	for _, p := range k.Params {
		switch p.Kind {
		case ir.Buffer:
			a.Buf[p.Slot] = sim.Buffer{Data: append([]byte{}, c.Buf[p.Name]...), Writable: p.Access != ir.In}
		case ir.Integer:
			a.Int[p.Slot] = c.Int[p.Name]
			ints = append(ints, c.Int[p.Name])
		case ir.Float:
			a.F32[p.Slot] = c.Float[p.Name]
		}
	}
	if err := m.Run(&a, 0, int(interp.Tiles(k, ints))); err != nil {
		return err
	}
	for _, p := range k.Params {
		want, ok := c.Want[p.Name]
		if !ok {
			continue
		}
		if err := ops.Compare(p.Type, a.Buf[p.Slot].Data, want); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

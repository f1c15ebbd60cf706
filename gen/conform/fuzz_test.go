package conform

import (
	"math/rand/v2"
	"testing"

	"github.com/swizzle-rt/swizzle/ir/ops"
)

// FuzzKernels compares all kernels of an op's config with the reference: op and config are indices into what the CPU can
// run, shape is the seed of a ragged shape.
func FuzzKernels(f *testing.F) {
	byOp := map[string][]*config{}
	for _, c := range runnable(f) {
		byOp[c.op.Name] = append(byOp[c.op.Name], c)
	}
	for i := range names {
		f.Add(uint(i), uint(i), uint64(i), uint(i), uint64(i))
	}
	stage := newStage(f)
	f.Fuzz(func(t *testing.T, op, variant uint, shape uint64, pattern uint, seed uint64) {
		configs := byOp[names[op%uint(len(names))]]
		if len(configs) == 0 {
			t.Skip("no kernel")
		}
		c := configs[variant%uint(len(configs))]
		s := ragged(c.op, rand.New(rand.NewPCG(shape, 0)))
		if s == nil {
			s = c.op.Shapes[shape%uint64(len(c.op.Shapes))]
		}
		p := ops.Patterns[pattern%uint(len(ops.Patterns))]
		cs := c.op.Case(c.variant, s, ops.NewData(p, seed))
		for _, k := range c.kernels {
			for _, place := range []placement{atEnd, atStart, offset} {
				if err := stage.run(k, cs, place, scattered(seed)); err != nil {
					t.Errorf("%s, shape %v, %s, %s: %v", k.Name, s, p, place, err)
				}
			}
		}
	})
}

package avx

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/random"
)

// Random legal kernels give the interpreter's bits, as written by a schedule and lowered.
func TestRandom(t *testing.T) {
	p := newProgram(t)
	fit := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		k := random.Kernel(r, allLanes[seed%3], 1, 40)
		k, err := lower.Run(k, lower.CPU)
		if err != nil {
			t.Fatal(err)
		}
		args := random.Args(r, k)
		for _, arch := range supported() {
			switch err := p.tryAdd(t, k, arch, args); {
			case err == nil:
				fit++
			case !strings.Contains(err.Error(), "there are 7") && !strings.Contains(err.Error(), "there are 16") && !strings.Contains(err.Error(), "frame of") && !strings.Contains(err.Error(), "more than"):
				t.Errorf("%s: %v", arch, err)
			}
		}
	}
	if fit < 100 {
		t.Errorf("only %d kernels fit their architectures' registers", fit)
	}
	p.check(t)
}

package avx

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/random"
)

// addRandom adds random legal kernels, as written by a schedule and lowered.
func (p *program) addRandom(t *testing.T, n uint64) {
	t.Helper()
	fit := 0
	for seed := range n {
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
	if fit < int(n) {
		t.Errorf("only %d kernels fit their architectures' registers", fit)
	}
}

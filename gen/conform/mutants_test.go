package conform

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/gen"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// A mutant is a kernel with a fault that its text in the kernel language was given.
type mutant struct {
	name       string
	op, config string
	shape      ops.Shape
	// from is a regular expression; match n of it, or every one where n is −1, becomes to.
	from, to string
	n        int
	// watched tells that only what watches each access sees the fault for certain: drivers are left out.
	watched bool
}

var mutants = []mutant{
	{"first barrier dropped", "rmsnorm", "g8", ops.Shape{2, 2100}, `(?m)^ *barrier\n`, "", 0, true},
	{"second barrier dropped", "rmsnorm", "g8", ops.Shape{2, 2100}, `(?m)^ *barrier\n`, "", 1, true},
	{"last barrier dropped", "rmsnorm", "g8", ops.Shape{2, 2100}, `(?m)^ *barrier\n`, "", 2, true},
	{"barrier of a product dropped", "gemm_q4_k", "m4g8", ops.Shape{5, 40, 4096}, `(?m)^ *barrier\n`, "", 0, true},
	{"barrier of a tile dropped", "gemm_q8_0", "m16n128", ops.Shape{17, 40, 512}, `(?m)^ *barrier\n`, "", 0, true},
	{"barrier of a swizzled tile dropped", "gemm_q8_0", "m64n64", ops.Shape{33, 40, 512}, `(?m)^ *barrier\n`, "", 0, true},
	{"swizzle of the reader changed", "swizzle_copy", "s1", ops.Shape{33, 70}, `const #0x00000005`, "const #0x00000004", 1, false},
	{"swizzle of the writer changed", "swizzle_copy", "s1", ops.Shape{33, 70}, `const #0x000003E0`, "const #0x000001E0", 0, false},
	{"swizzle of a copy left out", "gemm_q8_0", "m64n64", ops.Shape{33, 40, 512}, `xor\.index`, "max.index", 0, false},
	{"swizzle of ldmatrix left out", "gemm_q8_0", "m64n64", ops.Shape{33, 40, 512}, `xor\.index`, "max.index", 4, false},
	{"tile of the grid wider by one", "silu_mul", "any", ops.Shape{1000}, `const #128`, "const #129", 0, false},
	{"tile of weights wider by one", "gemm_f32", "m4g8", ops.Shape{3, 90, 300}, `const #32`, "const #33", 0, false},
	{"tile in shared memory wider by one", "swizzle_copy", "s1", ops.Shape{33, 70}, `(const) #32(\n +for)`, "$1 #33$2", 0, true},
	{"product and sum fused", "gemm_f32", "m4g8", ops.Shape{3, 40, 300}, "", "", 0, true},
	{"product and sum fused", "rmsnorm", "any", ops.Shape{3, 1000}, "", "", 0, true},
}

// apply returns the text with the fault.
func (m mutant) apply(text string) string {
	if m.from == "" {
		return fuse(text)
	}
	pattern := regexp.MustCompile(m.from)
	n := -1
	return pattern.ReplaceAllStringFunc(text, func(old string) string {
		if n++; n == m.n || m.n < 0 {
			return pattern.ReplaceAllString(old, m.to)
		}
		return old
	})
}

var (
	mulLine = regexp.MustCompile(`^ *(%\d+):f32.* = mul\.f32 (.*)$`)
	addLine = regexp.MustCompile(`^( *%\d+:f32.* = )add\.f32 (%\d+), (%\d+)$`)
)

// fuse makes every sum with a product an fma.
func fuse(text string) string {
	factors := map[string]string{}
	lines := strings.Split(text, "\n")
	for n, line := range lines {
		if m := mulLine.FindStringSubmatch(line); m != nil {
			factors[m[1]] = m[2]
		}
		if m := addLine.FindStringSubmatch(line); m != nil {
			for i, term := range m[2:] {
				if f := factors[term]; f != "" {
					lines[n] = m[1] + "fma.exact.f32 " + f + ", " + m[3-i]
				}
			}
		}
	}
	return strings.Join(lines, "\n")
}

// build returns a kernel with the fault, and whether the target has such a kernel.
func (m mutant) build(t *testing.T, arch string) (u gen.Unit, k *ir.Kernel, ok bool) {
	t.Helper()
	for _, u = range units(t) {
		if n := u.Name(); n.Op == m.op && n.Config == m.config && n.Arch == arch {
			ok = true
			break
		}
	}
	if !ok {
		return u, nil, false
	}
	built, err := u.Op.Kernel(u.Variant, u.Target.Caps)
	if err != nil {
		t.Fatal(err)
	}
	text := m.apply(built.String())
	if text == built.String() {
		t.Fatalf("%s: %s has no such place", m.name, u.Name())
	}
	if k, err = ir.Parse(text, target.Atoms()...); err != nil {
		t.Fatalf("%s: %s: %v", m.name, u.Name(), err)
	}
	return u, k, true
}

func (m mutant) job(t *testing.T, u gen.Unit, k *ir.Kernel) *job {
	t.Helper()
	gpu := describe(u, k)
	printed, err := u.Target.Print(k, u.Name().Entry(), "")
	if err != nil {
		t.Fatalf("%s: %s: %v", m.name, u.Name(), err)
	}
	gpu.Launch, gpu.Shared = &kernel.Launch{Threads: printed.Threads, Tiles: printed.Tiles}, printed.Shared
	return &job{module: &module{gpu, string(printed.Text)}, Case: u.Op.Case(u.Variant, m.shape, ops.NewData(ops.Random, 3)), seed: 3}
}

// What a fault in a schedule does is seen by everything that runs kernels.
func TestMutantsAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles kernels")
	}
	driver := os.Getenv(driverOf)
	for _, d := range devices {
		if d.driver != driver {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			run := d.open(t, d)
			seen, sound := 0, map[kernel.Name]bool{}
			for n, m := range mutants {
				if m.watched && d.driver != "" {
					continue
				}
				u, k, ok := m.build(t, d.arch)
				if !ok {
					continue
				}
				if name := u.Name(); !sound[name] {
					sound[name] = true
					built, err := u.Op.Kernel(u.Variant, u.Target.Caps)
					if err != nil {
						t.Fatal(err)
					}
					j := m.job(t, u, built)
					run(t, fmt.Sprintf("sound%d", n), []*job{j})
					if j.err != nil {
						t.Errorf("%s without a fault: %v", j.Name, j.err)
					}
				}
				j := m.job(t, u, k)
				run(t, fmt.Sprintf("mutant%d", n), []*job{j})
				if j.err == nil {
					t.Errorf("%s of %s is not seen", m.name, j.Name)
				} else {
					seen++
				}
			}
			t.Logf("%d faults seen", seen)
			if seen < 4 {
				t.Error("hardly any fault was tried")
			}
		})
	}
}

// The interpreter sees them, too.
func TestInterpreterSeesMutants(t *testing.T) {
	for _, m := range mutants {
		seen := false
		for _, d := range devices {
			u, k, ok := m.build(t, d.arch)
			if !ok || seen {
				continue
			}
			seen = true
			if built, err := u.Op.Kernel(u.Variant, u.Target.Caps); err != nil {
				t.Error(err)
			} else if _, err := interpret(u, built, m.shape); err != nil {
				t.Errorf("%s without a fault: %v", u.Name(), err)
			}
			if _, err := interpret(u, k, m.shape); err == nil {
				t.Errorf("%s of %s is not seen", m.name, u.Name())
			}
		}
		if !seen {
			t.Errorf("%s: no target has %s__%s", m.name, m.op, m.config)
		}
	}
}

// interpret runs a kernel on a case and compares.
func interpret(u gen.Unit, k *ir.Kernel, s ops.Shape) (*interp.Report, error) {
	j := &job{module: &module{Kernel: describe(u, k)}, Case: u.Op.Case(u.Variant, s, ops.NewData(ops.Random, 3))}
	v, err := j.values()
	if err != nil {
		return nil, err
	}
	r, err := interp.Run(k, interp.Args{Buffers: v.buffers, Ints: v.ints, Floats: v.floats})
	return r, errors.Join(err, j.compare(v.buffers))
}

// A swizzle that is left out on both sides changes no result. The counts of bank conflicts tell.
func TestConflictsTellOfSwizzles(t *testing.T) {
	m := mutant{name: "swizzle left out", op: "gemm_q8_0", config: "m64n64", shape: ops.Shape{33, 40, 512}, from: `xor\.index`, to: "max.index", n: -1}
	for _, arch := range []string{"sm_75", "sm_80"} {
		u, k, ok := m.build(t, arch)
		if !ok {
			t.Fatalf("%s has no such kernel", arch)
		}
		r, err := interpret(u, k, m.shape)
		if err != nil {
			t.Error(err)
		} else if r.SharedWavefronts == r.SharedIdeal {
			t.Errorf("%s: the interpreter counts %d wavefronts, all ideal", arch, r.SharedIdeal)
		}
		j := m.job(t, u, k)
		if c := counts(t, j.module, j.Case); c.SharedWavefronts == c.SharedIdeal {
			t.Errorf("%s: the simulator counts %d wavefronts, all ideal", arch, c.SharedIdeal)
		}
	}
}

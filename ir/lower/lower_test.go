package lower

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/random"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/ir/verify"
)

// anything is a target without limits that has every op.
func anything() *target.Caps {
	c := &target.Caps{Arch: "any", Family: target.GPU, Native: map[ir.Op]bool{}, Shared: 1 << 20, Atoms: target.Atoms()}
	for _, o := range ir.Ops() {
		c.Native[o] = true
	}
	return c
}

// run returns what the kernel leaves in its buffers.
func run(t *testing.T, k *ir.Kernel, seed uint64) [][]byte {
	t.Helper()
	a := random.Args(rand.New(rand.NewPCG(seed, 2)), k)
	if _, err := interp.Run(k, a); err != nil {
		t.Fatalf("%v\n%s", err, k)
	}
	return a.Buffers
}

func legal(k *ir.Kernel) error {
	c := anything()
	if k.Lanes != 32 {
		c.Family = target.CPU
		if k.Groups > 1 { // only tests have such
			return nil
		}
	}
	return verify.Kernel(k, c)
}

// checkPasses holds every pass to the kernel's meaning and the lowered kernel to its form.
func checkPasses(t *testing.T, seed uint64, lanes, groups int) {
	k := random.Kernel(rand.New(rand.NewPCG(seed, 1)), lanes, groups, 40)
	if err := legal(k); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, k)
	}
	want := run(t, k, seed)
	for _, p := range CPU {
		before := k.String()
		next, err := p.Run(k)
		if err != nil {
			t.Fatalf("seed %d: %s: %v\n%s", seed, p.Name, err, k)
		}
		if k.String() != before {
			t.Fatalf("seed %d: %s changes the kernel that it is given", seed, p.Name)
		}
		if err := legal(next); err != nil {
			t.Fatalf("seed %d: after %s: %v\n%s", seed, p.Name, err, next)
		}
		for n, got := range run(t, next, seed) {
			if !bytes.Equal(got, want[n]) {
				t.Fatalf("seed %d: %s changes buffer %d\nbefore\n%s\nafter\n%s", seed, p.Name, n, k, next)
			}
		}
		k = next
	}
	checkForm(t, k)
	again, err := ir.Parse(k.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, k)
	}
	if again.String() != k.String() {
		t.Fatalf("lowered kernel changes when printed and parsed")
	}
}

// checkForm checks what the passes promise to backends.
func checkForm(t *testing.T, k *ir.Kernel) {
	t.Helper()
	var body func(list []ir.Stmt)
	body = func(list []ir.Stmt) {
		known := map[element]bool{} // set or read since control flow last met
		for _, s := range list {
			switch s := s.(type) {
			case *ir.For:
				if s.Unroll {
					t.Errorf("an unrolled loop is left\n%s", k)
				}
				clear(known)
				body(s.Body)
			case *ir.If:
				clear(known)
				body(s.Then)
				body(s.Else)
			case *ir.Instr:
				if s.Reg == nil {
					continue
				}
				if _, ok := s.Args[0].Const(); !ok {
					t.Errorf("register index is not constant in %q", ir.Format(k, s))
				}
				if s.Op == ir.OpGet && known[elementOf(s)] {
					t.Errorf("%q reads what straight-line code has set or read", ir.Format(k, s))
				}
				known[elementOf(s)] = true
			}
		}
	}
	body(k.Body)
}

func TestPassesKeepMeaning(t *testing.T) {
	for seed := range uint64(150) {
		shape := [][2]int{{32, 1}, {8, 1}, {16, 1}, {32, 2}, {32, 3}}[seed%5]
		checkPasses(t, seed, shape[0], shape[1])
	}
}

// The list for GPUs keeps the meaning, leaves no unrolled loop, and addresses register tiles by constants.
func TestGPU(t *testing.T) {
	for seed := range uint64(30) {
		k := random.Kernel(rand.New(rand.NewPCG(seed, 1)), 32, 1+int(seed%3), 40)
		want := run(t, k, seed)
		k, err := Run(k, GPU)
		if err != nil {
			t.Fatal(err)
		}
		if err := legal(k); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, k)
		}
		for n, got := range run(t, k, seed) {
			if !bytes.Equal(got, want[n]) {
				t.Fatalf("seed %d: buffer %d changes\n%s", seed, n, k)
			}
		}
		ir.Walk(k.Body, func(s ir.Stmt) {
			switch s := s.(type) {
			case *ir.For:
				if s.Unroll {
					t.Errorf("an unrolled loop is left\n%s", k)
				}
			case *ir.Instr:
				if s.Reg == nil {
					return
				}
				if _, ok := s.Args[0].Const(); !ok {
					t.Errorf("register index is not constant in %q", ir.Format(k, s))
				}
			}
		})
	}
}

func FuzzPasses(f *testing.F) {
	f.Add(uint64(1000), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, shape uint8) {
		s := [][2]int{{8, 1}, {16, 1}, {32, 1}, {32, 2}, {8, 3}}[shape%5]
		checkPasses(t, seed, s[0], s[1])
	})
}

// count returns how often an op stands in the kernel.
func count(k *ir.Kernel, op ir.Op) int {
	n := 0
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok && i.Op == op {
			n++
		}
	})
	return n
}

func build(t *testing.T, f func(b *ir.Builder)) *ir.Kernel {
	t.Helper()
	k, err := ir.Build("test", 8, 1, f)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// An accumulator lives in a register tile across the loop and in values within: one Get and one Set an iteration.
func TestPromoteAccumulator(t *testing.T) {
	k := build(t, func(b *ir.Builder) {
		x, out, n := b.In("x", ir.F32), b.Out("out", ir.F32), b.Int("n")
		acc := b.Reg("acc", ir.F32, 2)
		acc.Fill(b.F32(0))
		b.For(0, n, 1, func(i *ir.Value) {
			b.Unroll(2, func(j *ir.Value) {
				acc.Add(b.Load(x, i.Mul(2).Add(j)), j)
				acc.Add(b.Load(x, i.Mul(2).Add(j)), j)
			})
		})
		b.Unroll(2, func(j *ir.Value) { b.Store(out, b.Lane().Mul(2).Add(j), acc.At(j)) })
	})
	k, err := Run(k, CPU)
	if err != nil {
		t.Fatal(err)
	}
	if g, s := count(k, ir.OpGet), count(k, ir.OpSet); g != 4 || s != 4 {
		t.Errorf("%d reads and %d sets of registers, 4 each are needed\n%s", g, s, k)
	}
}

func TestShare(t *testing.T) {
	k := build(t, func(b *ir.Builder) {
		x, out, base := b.In("x", ir.F32), b.Out("out", ir.F32), b.Int("base")
		sum := b.Reg("sum", ir.F32, 1)
		sum.Fill(b.F32(1))
		b.Unroll(4, func(i *ir.Value) {
			sum.Add(b.Load(x, base.Mul(8).Add(i).Add(b.Lane())), 0)
		})
		b.Store(out, b.Lane(), sum.At(0))
	})
	k, err := Run(k, CPU)
	if err != nil {
		t.Fatal(err)
	}
	// base·8 + lane once, then + 1, + 2, + 3.
	if m, a := count(k, ir.OpMulX), count(k, ir.OpAddX); m != 1 || a != 4 {
		t.Errorf("%d products and %d sums of indices, 1 and 4 are needed\n%s", m, a, k)
	}
}

func TestPrune(t *testing.T) {
	k := build(t, func(b *ir.Builder) {
		x, out := b.In("x", ir.F32), b.Out("out", ir.F32)
		b.Load(x, 5).Mul(b.Load(x, 6))
		b.For(0, 9, 1, func(i *ir.Value) { b.Load(x, i) })
		b.If(b.Load(x, 1).Lt(b.F32(0)), func() { b.F32(1) })
		b.Store(out, b.Lane(), b.F32(2))
	})
	k, err := Run(k, CPU)
	if err != nil {
		t.Fatal(err)
	}
	if len(k.Body) != 3 {
		t.Errorf("lane, constant and store are needed:\n%s", k)
	}
}

func TestUnrollErrors(t *testing.T) {
	for _, c := range []struct {
		want string
		f    func(b *ir.Builder)
	}{
		{"is not constant after unrolling", func(b *ir.Builder) {
			r := b.Reg("r", ir.F32, 4)
			b.For(0, 4, 1, func(i *ir.Value) { r.Set(b.F32(1), i) })
		}},
		{"element 4 of the register tile r, which has 4", func(b *ir.Builder) {
			r := b.Reg("r", ir.F32, 4)
			b.Unroll(5, func(i *ir.Value) { r.Set(b.F32(1), i) })
		}},
		{"statements after unrolling", func(b *ir.Builder) {
			b.Unroll(1<<30, func(i *ir.Value) { b.Barrier() })
		}},
	} {
		_, err := Unroll(build(t, c.f))
		var e *ir.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Pos.File != "lower_test.go" {
			t.Errorf("got %v, want an error of this file with %q", err, c.want)
		}
	}
}

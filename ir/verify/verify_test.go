package verify_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/random"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/ir/verify"
)

func native(without ...ir.Op) map[ir.Op]bool {
	m := map[ir.Op]bool{}
	for _, o := range ir.Ops() {
		m[o] = true
	}
	for _, o := range without {
		delete(m, o)
	}
	return m
}

func gpu() *target.Caps {
	return &target.Caps{Arch: "gpu", Family: target.GPU, Native: native(ir.OpPrefetch), Shared: 48 << 10, Threads: 256, Atoms: []*ir.Atom{target.M16N8K32S8}}
}

func cpu() *target.Caps {
	return &target.Caps{Arch: "cpu", Family: target.CPU, Native: native(ir.OpMMA, ir.OpLdMatrix), Shared: 64 << 10, VecRegs: 16, VecBits: 256}
}

// want holds the errors to contain each of the texts, in order, and nothing else.
func want(t *testing.T, name string, err error, texts ...string) {
	t.Helper()
	var all []error
	if err != nil {
		all = err.(interface{ Unwrap() []error }).Unwrap()
	}
	ok := len(all) == len(texts)
	for n, e := range all {
		var x *ir.Error
		ok = ok && errors.As(e, &x) && x.Kernel != "" && strings.Contains(e.Error(), texts[n])
	}
	if !ok {
		t.Errorf("%s: got %d errors\n%v\nwant %q", name, len(all), err, texts)
	}
}

func TestLegal(t *testing.T) {
	for seed := range uint64(40) {
		k := random.Kernel(rand.New(rand.NewPCG(seed, 3)), 32, 1+int(seed%3), 40)
		c := gpu()
		c.Native[ir.OpPrefetch] = true
		want(t, fmt.Sprint("seed ", seed), verify.Kernel(k, c))
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name          string
		caps          *target.Caps
		lanes, groups int
		f             func(b *ir.Builder)
		want          []string
	}{
		{"lanes of a GPU", gpu(), 8, 1, func(b *ir.Builder) {}, []string{"8 lanes; on a GPU a group has 32"}},
		{"threads", gpu(), 32, 9, func(b *ir.Builder) {}, []string{"9 lane groups of 32 lanes, gpu has 256 lanes a block"}},
		{"groups of a CPU", cpu(), 8, 2, func(b *ir.Builder) {}, []string{"2 lane groups; on a CPU a block has one"}},
		{"slots", cpu(), 8, 1, func(b *ir.Builder) {
			for n := range 13 {
				b.In(fmt.Sprint("b", n), ir.F32)
				b.Int(fmt.Sprint("i", n))
			}
			for n := range 5 {
				b.Float(fmt.Sprint("f", n))
			}
		}, []string{"13 buffers, a kernel may have 12", "13 integers, a kernel may have 12", "5 floats, a kernel may have 4"}},
		{"shared memory", gpu(), 32, 1, func(b *ir.Builder) { b.Shared("s", ir.F32, 12289) }, []string{"49156 bytes of shared memory, gpu has 49152"}},
		{"all of shared memory", gpu(), 32, 1, func(b *ir.Builder) { b.Shared("s", ir.F32, 12288) }, nil},
		{"missing op, several errors", gpu(), 32, 1, func(b *ir.Builder) {
			x := b.In("x", ir.F32)
			b.Prefetch(x, 0)
			b.Prefetch(x, 1)
		}, []string{`gpu has no prefetch in "prefetch x.f32 %1"`, `gpu has no prefetch in "prefetch x.f32 %2"`}},
		{"missing atom", gpu(), 32, 1, func(b *ir.Builder) { b.FragCoord(target.M8N8K16S8, 0) }, []string{"gpu has no atom m8n8k16.s8"}},
		{"matrices of 8 lanes", &target.Caps{Native: native(), Shared: 512, Atoms: target.Atoms()}, 8, 1, func(b *ir.Builder) {
			b.FragCoord(target.M8N8K16S8, 0)
			b.LdMatrix(b.Shared("s", ir.U32, 128), 1, b.Idx(0))
		}, []string{"frag.coord needs 32 lanes, the kernel has 8", "ldmatrix needs 32 lanes, the kernel has 8"}},
		{"register out of range", cpu(), 8, 1, func(b *ir.Builder) { b.Reg("r", ir.F32, 2).Set(b.F32(1), 2) }, []string{"element 2 of the register tile r, which has 2"}},
		{"register index of a loop", cpu(), 8, 1, func(b *ir.Builder) {
			r := b.Reg("r", ir.F32, 2)
			b.For(0, 2, 1, func(i *ir.Value) { r.Set(b.F32(1), i) })
		}, []string{"the register tile r is addressed by a value that is not constant"}},
		{"barrier under a condition of a group", gpu(), 32, 2, func(b *ir.Builder) {
			b.If(b.Group().Eq(0), func() { b.Barrier() })
		}, []string{"barrier where lane groups may have parted"}},
		{"under a bound of a group, deeper", gpu(), 32, 2, func(b *ir.Builder) {
			b.For(0, b.Group(), 1, func(i *ir.Value) {
				b.If(b.Idx(0).Eq(1), func() { b.F32(1).ShuffleXor(1); b.I32(1).PackLanes4(); b.F32(1).FoldAdd(); b.F32(1).ReadLane(0) })
			})
		}, []string{"shuffle.xor where", "pack.lanes4 where", "fold.add.f32 where", "read.lane where"}},
		{"after what is uniform over a group", gpu(), 32, 2, func(b *ir.Builder) {
			b.If(b.Group().Eq(0), func() {})
			b.Barrier()
		}, nil},
		{"else arm", gpu(), 32, 2, func(b *ir.Builder) { b.IfElse(b.Group().Eq(0), func() {}, func() { b.Barrier() }) }, []string{"barrier where"}},
		{"one group", gpu(), 32, 1, func(b *ir.Builder) { b.If(b.Group().Eq(0), func() { b.Barrier() }) }, nil},
		{"bound of the block", gpu(), 32, 2, func(b *ir.Builder) { b.For(0, b.Int("n"), 1, func(*ir.Value) { b.Barrier() }) }, nil},
		{"value of a branch", cpu(), 8, 1, func(b *ir.Builder) {
			var v *ir.Value
			b.If(b.Int("n").Lt(1), func() { v = b.F32(1).Add(b.F32(2)) })
			v.Add(v)
		}, []string{"is not defined on every path to here", "is not defined on every path"}},
		{"value of a loop", cpu(), 8, 1, func(b *ir.Builder) {
			var v *ir.Value
			b.For(0, b.Int("n"), 1, func(i *ir.Value) { v = i })
			b.If(v.Eq(1), func() {})
		}, []string{"is not defined on every path"}},
	} {
		k, err := ir.Build("k", c.lanes, c.groups, c.f)
		if err != nil {
			t.Fatal(err)
		}
		want(t, c.name, verify.Kernel(k, c.caps), c.want...)
	}
}

// Kernels that no builder makes.
func TestMalformed(t *testing.T) {
	base := func() *ir.Kernel {
		k, err := ir.Build("k", 8, 1, func(b *ir.Builder) {
			x := b.In("x", ir.F32)
			v := b.Load(x, b.Lane())
			b.Store(b.Out("o", ir.F32), b.Lane(), v.Add(v))
			b.Shared("s", ir.F32, 1)
			b.Shared("t", ir.F32, 1)
			b.Reg("r", ir.F32, 1)
		})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	instr := func(k *ir.Kernel, n int) *ir.Instr { return k.Body[n].(*ir.Instr) }
	for _, c := range []struct {
		name   string
		change func(k *ir.Kernel)
		want   []string
	}{
		{"nothing", func(k *ir.Kernel) {}, nil},
		{"order", func(k *ir.Kernel) { k.Body[0], k.Body[1] = k.Body[1], k.Body[0] }, []string{"value %1 is not defined on every path"}},
		{"twice", func(k *ir.Kernel) { k.Body = append(k.Body, k.Body[0]) }, []string{"value %1 is defined twice"}},
		{"foreign value", func(k *ir.Kernel) { instr(k, 1).Args[0] = base().Body[0].(*ir.Instr).Results[0] }, []string{"value %1 is not defined"}},
		{"type", func(k *ir.Kernel) { instr(k, 1).Results[0].Type = ir.I32 }, []string{"result of load is f32, not i32", "argument 1 of add.f32 is i32"}},
		{"span", func(k *ir.Kernel) { instr(k, 1).Results[0].Span = ir.Block }, []string{"result of load is varying, not block"}},
		{"missing argument", func(k *ir.Kernel) { instr(k, 3).Args[1] = nil }, []string{"argument 2 of add.f32 is missing"}},
		{"no op", func(k *ir.Kernel) { instr(k, 3).Op = 250 }, []string{"no op has number 250"}},
		{"immediate", func(k *ir.Kernel) { instr(k, 3).Imm = 3 }, []string{"add.f32 of 3"}},
		{"other kernel's buffer", func(k *ir.Kernel) { instr(k, 1).Mem.Param = base().Params[0] }, []string{"x is no buffer of this kernel"}},
		{"no memory", func(k *ir.Kernel) { instr(k, 1).Mem = ir.Memory{} }, []string{"load takes 1 memories, not 0"}},
		{"store to an input", func(k *ir.Kernel) { k.Params[1].Access = ir.In }, []string{"store to the input o"}},
		{"load from an output", func(k *ir.Kernel) { k.Params[0].Access = ir.Out }, []string{"load from the output x"}},
		{"slot", func(k *ir.Kernel) { k.Params[1].Slot = 0 }, []string{"parameter o has slot 0, not 1"}},
		{"names", func(k *ir.Kernel) { k.Params[1].Name = "x"; k.Shared[1].Name = "x" }, []string{"parameter x: the name is taken", "array x: the name is taken"}},
		{"overlap", func(k *ir.Kernel) { k.Shared[0].Len = 17 }, []string{"array t starts at byte 64, the one before ends at 68"}},
		{"alignment", func(k *ir.Kernel) { k.Shared[1].Offset = 68 }, []string{"array t starts at byte 68, which is not a multiple of 64"}},
		{"register tile", func(k *ir.Kernel) { k.Regs[0].Type = ir.Bool }, []string{"register tile r of 1 × varying bool"}},
		{"lanes", func(k *ir.Kernel) { k.Lanes = 12 }, []string{"12 lanes; 8, 16 or 32"}},
	} {
		k := base()
		c.change(k)
		err := verify.Kernel(k, cpu())
		var got []string
		if err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want %q", c.name, err, w)
			}
		}
		if len(c.want) == 0 && len(got) > 0 {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// gemm keeps m · n accumulators over a loop and adds products of n weights, half of a word each, and m activations to them.
func gemm(t *testing.T, lanes, m, n int) *ir.Kernel {
	k, err := ir.Build("gemm", lanes, 1, func(b *ir.Builder) {
		w, a, out := b.In("w", ir.F16), b.In("a", ir.F32), b.Out("out", ir.F32)
		acc := b.Reg("acc", ir.F32, m, n)
		acc.Fill(b.F32(0))
		lane := b.Lane()
		b.For(0, b.Int("k"), 1, func(i *ir.Value) {
			b.Unroll(n, func(j *ir.Value) {
				v := b.Load(w, i.Mul(n).Add(j).Mul(lanes).Add(lane))
				b.Unroll(m, func(r *ir.Value) { acc.Add(v.Mul(b.Load(a, i.Mul(m).Add(r))), r, j) })
			})
		})
		b.Unroll(m, func(r *ir.Value) {
			b.Unroll(n, func(j *ir.Value) { b.Store(out, r.Mul(n).Add(j).Mul(lanes).Add(lane), acc.At(r, j)) })
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if k, err = lower.Run(k, lower.CPU); err != nil {
		t.Fatal(err)
	}
	return k
}

func TestPressure(t *testing.T) {
	avx2, avx512 := &target.Caps{VecBits: 256}, &target.Caps{VecBits: 512}
	for _, c := range []struct {
		lanes, m, n int
		caps        *target.Caps
		want        int
	}{
		// Accumulators, a weight and a product; the activation is an operand in memory.
		{8, 1, 1, avx2, 1 + 1}, // the product in the place of the weight
		{8, 4, 1, avx2, 4 + 1 + 1},
		{8, 4, 3, avx2, 12 + 1 + 1},
		{16, 4, 1, avx2, 2*4 + 2 + 2},
		{16, 4, 1, avx512, 4 + 1 + 1},
		{8, 4, 1, avx512, 4 + 1 + 1},
		{32, 12, 1, avx512, 2*12 + 2 + 2},
	} {
		got, gprs := verify.Pressure(gemm(t, c.lanes, c.m, c.n), c.caps)
		if got != c.want {
			t.Errorf("%+v: %d vector registers, want %d", c, got, c.want)
		}
		if gprs < 5 || gprs > 12 { // three buffers, the loop and its bound at least
			t.Errorf("%+v: %d general registers", c, gprs)
		}
	}
}

func TestPressureError(t *testing.T) {
	c := cpu()
	want(t, "fits", verify.Kernel(gemm(t, 8, 8, 2), c))
	want(t, "too large", verify.Kernel(gemm(t, 8, 9, 3), c), "27 vector registers needed for register tiles, 16 available on cpu")
}

// What is live, in small.
func TestLiveness(t *testing.T) {
	for _, c := range []struct {
		name string
		want int
		f    func(b *ir.Builder, x, out ir.Memory, v func(i int) *ir.Value)
	}{
		{"a value and an operand in memory", 1, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) {
			b.Store(out, b.Lane(), v(0).Add(b.Load(x.As(ir.F32), 0)))
		}},
		{"two values", 2, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) {
			b.Store(out, b.Lane(), v(0).Add(v(1)))
		}},
		{"a constant is free", 1, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) {
			b.Store(out, b.Lane(), v(0).Add(b.F32(2)))
		}},
		{"an unused result", 1, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) { v(0) }},
		{"live over a loop that doesn't use it", 3, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) {
			a := v(0)
			b.For(0, 5, 1, func(*ir.Value) { b.Store(out, b.Lane(), v(1).Add(v(2))) })
			b.Store(out, b.Lane(), a)
		}},
		{"used early in a loop, so live to its end", 3, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) {
			a := v(0)
			b.For(0, 5, 1, func(*ir.Value) {
				b.Store(out, b.Lane(), a)
				b.Store(out, b.Lane(), v(1).Add(v(2)))
			})
		}},
		{"the arms of a branch don't add up", 2, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) {
			arm := func() { b.Store(out, b.Lane(), v(1).Add(v(2))) }
			b.IfElse(b.Int("n").Lt(1), arm, arm)
		}},
		{"an element that is set anew each time is dead between", 2, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) {
			r := b.Reg("r", ir.F32, 1)
			b.For(0, 5, 1, func(*ir.Value) {
				b.Store(out, b.Lane(), v(1).Add(v(2)))
				r.Set(v(0), 0)
				b.Store(out, b.Lane(), r.At(0))
			})
		}},
		{"an element and what was read of it are one register", 2, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) {
			r := b.Reg("r", ir.F32, 1)
			r.Set(v(0), 0)
			b.For(0, 5, 1, func(*ir.Value) { b.Store(out, b.Lane(), r.At(0).Add(v(1))) })
		}},
		{"a mask is a vector", 3, func(b *ir.Builder, x, out ir.Memory, v func(int) *ir.Value) {
			a := v(0)
			c := a.Lt(v(1))
			b.Store(out, b.Lane(), c.Select(a, v(2)))
		}},
	} {
		k, err := ir.Build("k", 8, 1, func(b *ir.Builder) {
			x, out := b.In("x", ir.F16), b.Out("out", ir.F32)
			c.f(b, x, out, func(i int) *ir.Value { return b.Load(x, b.Lane().Add(i)) })
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := verify.Pressure(k, &target.Caps{VecBits: 256}); got != c.want {
			t.Errorf("%s: %d, want %d\n%s", c.name, got, c.want, k)
		}
	}
}

package ptx

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/checkers"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/random"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/ir/verify"
)

func build(t testing.TB, name string, groups int, schedule func(b *ir.Builder)) *ir.Kernel {
	t.Helper()
	k, err := ir.Build(name, 32, groups, schedule)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func emit(t testing.TB, k *ir.Kernel, arch string) *Output {
	t.Helper()
	o, err := Emit(k, Options{Arch: arch, Symbol: k.Name})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// An accumulator is one register, an address is computed once, what is the same for the kernel at its entry.
func TestText(t *testing.T) {
	k := build(t, "sum", 1, func(b *ir.Builder) {
		x, out, n := b.In("x", ir.F32), b.Out("out", ir.F32), b.Int("n")
		row := b.Tiles(n, 1)
		sum := b.Reg("sum", ir.F32, 1)
		sum.Fill(b.F32(0))
		b.For(0, 8, 1, func(i *ir.Value) {
			v := b.LoadN(x, 2, row.Mul(512).Add(i.Mul(64)).Add(b.Lane().Mul(2)), nil)
			sum.Add(v[0].Mul(v[1]), 0)
		})
		b.Store(out, row, sum.At(0).FoldAdd())
	})
	o, err := Emit(k, Options{Arch: "sm_80", Symbol: "sum_sm_80", Header: "made from sum.go"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/sum.ptx")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(o.Text, want) {
		t.Errorf("got\n%s\nwant\n%s", o.Text, want)
	}
	if o.Threads != 128 || o.Tiles != 4 || o.Shared != 0 {
		t.Errorf("%d threads, %d tiles, %d bytes, want 128, 4 and 0", o.Threads, o.Tiles, o.Shared)
	}
	again, err := Emit(k, Options{Arch: "sm_80", Symbol: "sum_sm_80", Header: "made from sum.go"})
	if err != nil || !bytes.Equal(again.Text, o.Text) {
		t.Errorf("the second text is another one")
	}
}

// unit is a kernel of an op for an architecture.
type unit struct {
	op      *ops.Op
	variant ops.Variant
	arch    string
}

// variants returns an op's variants for GPUs or, if it has none, those for CPUs that would run on one.
func variants(op *ops.Op, arch string) []ops.Variant {
	c := Caps(arch)
	if vs := op.Variants(c); len(vs) > 0 {
		return vs
	}
	cpu := *c
	cpu.Family = target.CPU
	return slices.DeleteFunc(op.Variants(&cpu), func(v ops.Variant) bool { return v.Lanes != 32 || v.Groups != 1 })
}

// units lists kernels of all ops: the first and the last of each for one architecture in turn, or all of them.
func units() []unit {
	var list []unit
	for turn, op := range ops.All() {
		for n, arch := range Arches() {
			vs := variants(op, arch)
			for m, v := range vs {
				if *exhaustive || (m == 0 || m == len(vs)-1) && (turn+m)%len(Arches()) == n {
					list = append(list, unit{op, v, arch})
				}
			}
		}
	}
	return list
}

func (u unit) kernel() (*ir.Kernel, error) {
	c := Caps(u.arch)
	k, err := u.op.Kernel(u.variant, c)
	if err != nil {
		return nil, err
	}
	return k, verify.Kernel(k, c)
}

func TestOpsAssemble(t *testing.T) {
	checkers.Need(t, "ptxas")
	list := units()
	if len(list) < len(ops.All())/2 {
		t.Errorf("only %d kernels", len(list))
	}
	each(len(list), func(n int) {
		u := list[n]
		k, err := u.kernel()
		if rejected := (*ir.Error)(nil); errors.As(err, &rejected) && strings.Contains(err.Error(), "shared memory") {
			return // a config that the target can't have
		} else if err != nil {
			t.Error(err)
			return
		}
		o, err := Emit(k, Options{Arch: u.arch, Symbol: k.Name})
		if err != nil {
			t.Error(err)
			return
		}
		a, err := assemble(t, u.arch, o.Text)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			return
		}
		if blocks, limiter := Occupancy(u.arch, a.registers, o.Threads, a.shared); blocks == 0 {
			t.Errorf("%s: no block fits for its %s: %d registers, %d threads, %d bytes", k.Name, limiter, a.registers, o.Threads, a.shared)
		}
		if a.shared > o.Shared+1024 || a.shared < o.Shared {
			t.Errorf("%s: %d bytes of shared memory, ptxas counts %d", k.Name, o.Shared, a.shared)
		}
	})
}

func TestRandomKernelsAssemble(t *testing.T) {
	checkers.Need(t, "ptxas")
	n := 21
	if *exhaustive {
		n = 300
	}
	each(n, func(i int) {
		arch := Arches()[i%len(Arches())]
		k := random.Kernel(rand.New(rand.NewPCG(uint64(i), 11)), 32, 1+i%3, 60)
		if err := verify.Kernel(k, Caps(arch)); err != nil {
			t.Error(err)
			return
		}
		o, err := Emit(k, Options{Arch: arch, Symbol: "random"})
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := assemble(t, arch, o.Text); err != nil {
			t.Errorf("kernel %d, %s: %v\n%s", i, arch, err, k)
		}
	})
}

// Sums and products are never fused, but where the kernel says so.
func TestNothingIsFused(t *testing.T) {
	kernel := func(exact bool) *ir.Kernel {
		return build(t, "fuse", 1, func(b *ir.Builder) {
			x, out, n := b.In("x", ir.F32), b.Out("out", ir.F32), b.Int("n")
			at := b.Tiles(n, 1).Mul(32).Add(b.Lane())
			v := b.LoadN(x, 2, at, nil)
			sum := v[0].Mul(v[1]).Add(v[0])
			if exact {
				sum = b.FMAExact(v[0], v[1], v[0])
			}
			b.Store(out, at, sum.Sub(v[1].Mul(v[1])))
		})
	}
	for _, arch := range []string{"sm_75", "sm_90"} {
		for want, exact := range []bool{false, true} {
			a, err := assemble(t, arch, emit(t, kernel(exact), arch).Text)
			if err != nil {
				t.Fatal(err)
			}
			if n := has(opcodes(t, a.cubin), "FFMA"); n != want {
				t.Errorf("%s: %d fused operations, want %d", arch, n, want)
			}
		}
	}
}

// The matrix units, the copies past the registers and the byte dot products are used.
func TestOpcodes(t *testing.T) {
	for _, c := range []struct {
		config, arch string
		want         []string
	}{
		{"m64n64", "sm_75", []string{"IMMA.8816", "LDSM"}},
		{"m64n64", "sm_80", []string{"IMMA.16832", "LDSM", "LDGSTS"}},
		{"m64n64", "sm_120", []string{"IMMA.16832", "LDSM", "LDGSTS"}},
		{"m1g8", "sm_89", []string{"IDP.4A"}},
	} {
		u := find(t, "gemm_q8_0", c.config, c.arch)
		k, err := u.kernel()
		if err != nil {
			t.Fatal(err)
		}
		a, err := assemble(t, c.arch, emit(t, k, c.arch).Text)
		if err != nil {
			t.Error(err)
			continue
		}
		count := opcodes(t, a.cubin)
		for _, name := range c.want {
			if has(count, name) == 0 {
				t.Errorf("%s: no %s among %v", k.Name, name, count)
			}
		}
	}
}

func find(t *testing.T, op, config, arch string) unit {
	t.Helper()
	for _, o := range ops.All() {
		if o.Name != op {
			continue
		}
		for _, v := range o.Variants(Caps(arch)) {
			if v.Config == config {
				return unit{o, v, arch}
			}
		}
	}
	t.Fatalf("no %s with config %s for %s", op, config, arch)
	return unit{}
}

func TestRejections(t *testing.T) {
	plain := func(b *ir.Builder) { b.Store(b.Out("out", ir.U32), b.Lane(), b.U32(1)) }
	big := func(b *ir.Builder) { b.Store(b.Shared("s", ir.U32, 12289), b.Lane(), b.U32(1)) }
	product := func(b *ir.Builder) {
		w, z := b.U32(1).As(ir.I8x4), b.I32(0)
		d := b.MMA(target.M16N8K32S8, []*ir.Value{w, w, w, w}, []*ir.Value{w, w}, []*ir.Value{z, z, z, z})
		b.Store(b.Out("out", ir.I32), b.Lane(), d[0])
	}
	for _, c := range []struct {
		arch          string
		lanes, groups int
		schedule      func(b *ir.Builder)
		want          string
	}{
		{"sm_70", 32, 1, plain, `no architecture "sm_70"; there are [sm_75 sm_80`},
		{"sm_80", 16, 1, plain, "16 lanes; a warp of sm_80 has 32"},
		{"sm_80", 32, 1, big, "49156 bytes of shared memory; a block of sm_80 has 49152"},
		{"sm_75", 32, 1, product, "ptx_test.go:"},
		{"sm_75", 32, 1, product, "sm_75 has no atom m16n8k32.s8; it has [m8n8k16.s8]"},
	} {
		k, err := ir.Build("k", c.lanes, c.groups, c.schedule)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Emit(k, Options{Arch: c.arch, Symbol: "k"})
		var e *ir.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an *ir.Error with %q", err, c.want)
		}
	}
}

func TestCaps(t *testing.T) {
	if Caps("sm_70") != nil {
		t.Errorf("sm_70 has capabilities")
	}
	if got, want := fmt.Sprint(Arches()), "[sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120]"; got != want {
		t.Errorf("architectures %s, want %s", got, want)
	}
	for _, arch := range Arches() {
		if _, ok := multiprocessors[arch]; !ok {
			t.Errorf("no limits of %s", arch)
		}
		for _, op := range ir.Ops() {
			if !Caps(arch).Has(op) {
				t.Errorf("%s has no %s", arch, op)
			}
		}
	}
}

// Every coordinate of every atom is a sum over the lane's bits, as the printer computes it.
func TestFragments(t *testing.T) {
	for _, a := range target.Atoms() {
		for r := range a.C.Regs {
			i := &ir.Instr{Op: ir.OpFragCoord, Atom: a, Imm: int64(r)}
			i.Results = []*ir.Value{{Def: i}, {Def: i}}
			for n, v := range i.Results {
				table := coordinates(i, v)
				weight, ok := weights(table)
				if !ok {
					t.Errorf("%s, register %d, coordinate %d: %v", a.Name, r, n, table)
				}
				for l := range table {
					sum := table[0]
					for _, s := range bitSlices(weight) {
						sum += l >> s.from & s.mask * s.weight
					}
					if sum != table[l] {
						t.Errorf("%s, register %d, coordinate %d: lane %d has %d, not %d", a.Name, r, n, l, sum, table[l])
					}
				}
			}
		}
	}
	if _, ok := weights([32]int{0, 1, 2, 4}); ok {
		t.Errorf("a table that is no sum is taken for one")
	}
}

// Every form of every op, storage type and matrix instruction is assembled.
func TestFormsAssemble(t *testing.T) {
	checkers.Need(t, "ptxas")
	type one struct {
		trial
		arch string
	}
	var list []one
	for n, x := range append(formTrials(t), storageTrials(t)...) {
		list = append(list, one{x, Arches()[n%len(Arches())]})
	}
	for _, arch := range []string{"sm_75", "sm_80", "sm_120"} {
		for _, x := range matrixTrials(t, arch) {
			list = append(list, one{x, arch})
		}
	}
	each(len(list), func(n int) {
		k := list[n].kernel
		if err := verify.Kernel(k, Caps(list[n].arch)); err != nil {
			t.Error(err)
			return
		}
		if _, err := interp.Run(k, list[n].args); err != nil {
			t.Error(err)
			return
		}
		o, err := Emit(k, Options{Arch: list[n].arch, Symbol: k.Name})
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := assemble(t, list[n].arch, o.Text); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
	})
}

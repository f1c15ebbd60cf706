package msl

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/msl/shim"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
)

// subject is a kernel whose text has all that the mutants change: products and sums, shuffles, shared memory, barriers.
func subject(t *testing.T) (*ir.Kernel, interp.Args) {
	k := mustBuild(t, "subject", 2, func(b *ir.Builder) {
		x, y, out := b.In("x", ir.F32), b.In("y", ir.F32), b.Out("out", ir.F32)
		n := b.Int("n")
		thread := b.Group().Mul(32).Add(b.Lane())
		at := b.Tiles(n, 64).Mul(64).Add(thread)
		s := b.Shared("s", ir.F32, 64)
		mask := at.Lt(n)
		v := b.LoadMasked(x, at, mask)
		v = v.Mul(v).Add(b.LoadMasked(y, at, mask))
		b.Store(s, thread, v.Add(v.ShuffleXor(4)))
		b.Barrier()
		b.StoreMasked(out, at, b.Load(s, thread.Xor(33)), mask)
	})
	r := rand.New(rand.NewPCG(7, 8))
	const n = 64*5 - 9
	return k, interp.Args{Ints: []int64{n}, Buffers: [][]byte{finite(r, n), finite(r, n), make([]byte, 4*n)}}
}

func finite(r *rand.Rand, n int) []byte {
	return each(make([]byte, 4*n), func(uint32) uint32 { return 0x3F000000 + r.Uint32()>>7 })
}

// Faults in a printed kernel are found: by execution, by the check of address spaces or by the lint.
func TestMutants(t *testing.T) {
	c := toolchain(t)
	k, args := subject(t)
	b := newBatch()
	b.interpret(t, "subject", k, args)
	text := b.kernels[0].Text

	type finder func(name string, mutant []byte) error
	lint := func(_ string, m []byte) error { return shim.Lint(k, m) }
	check := func(name string, m []byte) error { return c.Check(name, []shim.Kernel{{Text: m}}) }
	run := func(name string, m []byte) error {
		p, err := c.Build(name, []shim.Kernel{{Symbol: b.kernels[0].Symbol, Text: m}})
		if err != nil {
			return fmt.Errorf("it doesn't compile: %w", err)
		}
		results, err := p.Run(b.cases)
		if err != nil {
			return err
		}
		return b.expect[0].compare(results[0])
	}
	for name, find := range map[string]finder{"lint": lint, "check": check, "run": run} {
		if err := find(name, text); err != nil {
			t.Fatalf("%s: the kernel as it is: %v\n%s", name, err, text)
		}
	}

	for _, m := range []struct {
		name     string
		from, to string // the first match of the regular expression from becomes to
		find     finder
		want     string
	}{
		{name: "no barrier", from: `(?m)^\tthreadgroup_barrier.*\n`, find: run, want: "out: element"},
		{name: "barrier on a part", from: `\tthreadgroup_barrier`, to: "\tif(l<20)threadgroup_barrier", find: run, want: "threads do not come to a barrier"},
		{name: "barrier elsewhere", from: `\tthreadgroup_barrier(.*)`, to: "\tif(l<20)threadgroup_barrier$1\telse threadgroup_barrier$1", find: run, want: "different barriers"},
		{name: "shuffle stride", from: `(simd_shuffle_xor\(\w+),4\)`, to: "$1,8)", find: run, want: "out: element"},
		{name: "shuffle on a part", from: `=(simd_shuffle_xor\(\w+,4\))`, to: "=l<3?$1:z", find: run, want: "does not come to a simdgroup operation"},
		{name: "shuffle elsewhere", from: `=(simd_shuffle_xor\(\w+,4\))`, to: "=l<3?$1:$1", find: run, want: "different simdgroup operations"},
		{name: "fma", from: `(v\d)\*(v\d)\+\((.*)\);`, to: "fma($1,$2,$3);", find: run, want: "out: element"},
		{name: "store beyond a buffer", from: `p2\[(\w+)\]=`, to: "p2[$1+1]=", find: run, want: "a store to byte 1244 of buffer 2, which has 1244"},
		{name: "store far away", from: `p2\[(\w+)\]=`, to: "p2[$1+5000]=", find: run, want: "of buffer 2, which has 1244"},
		{name: "load before a buffer", from: `p0\[(\w+)\]`, to: "p0[$1-4096]", find: run, want: "of buffer 0, which has 1244"},
		{name: "store to an input", from: `p2\[(\w+)\]=`, to: "((device float*)p1)[$1]=", find: run, want: "of buffer 1, which has 1244 and may not be written"},
		{name: "store beyond shared memory", from: `s0\[(\w+)\]=`, to: "s0[$1+64]=", find: run, want: "threadgroup memory, which has 256"},
		{name: "index overflow", from: `s0\[(\w+)\]=`, to: "s0[($1+0x7FFFFFFF)&63]=", find: run, want: "undefined behaviour"},
		{name: "no mask", from: `if\(\w+\)p2`, to: "p2", find: run, want: "buffer 2"},
		{name: "a tile less", from: `if\(t>=`, to: "if(t+1>=", find: run, want: "out: element"},
		{name: "another buffer", from: `\[\[buffer\(0\)\]\]((?s).*)\[\[buffer\(1\)\]\]`, to: "[[buffer(1)]]$1[[buffer(0)]]", find: run, want: "out: element"},
		{name: "parameters", from: `int n0; // n\n`, to: "int n0,n1;\n", find: run, want: "8 bytes of parameters; the kernel's have 12"},
		{name: "address space", from: `threadgroup float\* s0=\(threadgroup float\*\)S`, to: "device float*s0=(device float*)S", find: check, want: "address space"},
		{name: "constant store", from: `\tif\((\w+)\)p2\[`, to: "\tif($1)p0[", find: check, want: "read-only"},
		{name: "no contract", from: `#pragma METAL fp contract\(off\)\n`, find: lint, want: "pragmas"},
		{name: "fast", from: `math_mode\(safe\)`, to: "math_mode(fast)", find: lint, want: "pragmas"},
		{name: "simd_sum", from: `simd_shuffle_xor\((\w+),4\)`, to: "simd_sum($1)", find: lint, want: "simd_sum"},
		{name: "fma without exact", from: `(v\d)\*(v\d)\+`, to: "fma($1,$2,z)+", find: lint, want: "1 calls of fma for 0 exact products"},
		{name: "decimal", from: `(v\d)\*(v\d)\+`, to: "1.5*$1*$2+", find: lint, want: "no bit pattern"},
		{name: "zero", from: `:z;`, to: ":F(0x0);", find: lint, want: "F(0x0) is a zero"},
		{name: "one buffer twice", from: `\[\[buffer\(1\)\]\]`, to: "[[buffer(0)]]", find: lint, want: "are both buffer 0"},
		{name: "buffer index", from: `\[\[buffer\(1\)\]\]`, to: "[[buffer(31)]]", find: lint, want: "buffer index 31"},
		{name: "writable input", from: `device const float\* p1`, to: "device float* p1", find: lint, want: `buffer 1, y, is "device float*"`},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			pattern := regexp.MustCompile(m.from)
			done := false
			mutant := pattern.ReplaceAllFunc(text, func(old []byte) []byte {
				if done {
					return old
				}
				done = true
				return pattern.ReplaceAll(old, []byte(m.to))
			})
			if bytes.Equal(mutant, text) {
				t.Fatalf("the text has no %s\n%s", m.from, text)
			}
			err := m.find("mutant_"+strings.ReplaceAll(m.name, " ", "_"), mutant)
			if err == nil || !strings.Contains(err.Error(), m.want) || strings.Contains(err.Error(), "doesn't compile") {
				t.Errorf("%v does not mention %q\n%s", err, m.want, mutant)
			}
		})
	}
}

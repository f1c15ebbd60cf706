package ir_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/random"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// matrixKernel uses what random kernels don't: matrices, asynchronous copies, two kinds of float parameters.
func matrixKernel(t testing.TB) *ir.Kernel {
	a := target.M16N8K32S8
	k, err := ir.Build("matrix", 32, 2, func(b *ir.Builder) {
		x, out := b.In("x", ir.I8), b.Out("out", ir.I32)
		n, _, eps := b.Int("n"), b.Float("scale"), b.Float("eps")
		b.Tiles(n, 16)
		s := b.Shared("s", ir.I8x4, 256)
		lane := b.Lane()
		b.AsyncCopy(s, lane.Mul(4).Add(b.Group().Mul(128)), x, lane.Mul(16), lane.Lt(n))
		b.AsyncCommit()
		b.AsyncWait(0)
		b.Barrier()
		A := b.LdMatrix(s, 4, lane.Mul(4))
		B := b.LdMatrix(s, 2, lane.Mul(4))
		zero := b.I32(0)
		c := b.MMA(a, A, B, []*ir.Value{zero, zero, zero, zero})
		for i := range c {
			row, col := b.FragCoord(a, i)
			b.StoreMasked(out, row.Mul(8).Add(col), c[i], eps.Lt(b.F32(2)))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParseRoundTrip(t *testing.T) {
	for seed := range uint64(60) {
		lanes, groups := []int{8, 16, 32}[seed%3], 1+int(seed%2)
		k := random.Kernel(rand.New(rand.NewPCG(seed, 7)), lanes, groups, 40)
		text := k.String()
		again, err := ir.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if d := cmp.Diff(text, again.String()); d != "" {
			t.Fatal(d)
		}
		want, got := random.Args(rand.New(rand.NewPCG(seed, 8)), k), random.Args(rand.New(rand.NewPCG(seed, 8)), k)
		r1, err := interp.Run(k, want)
		if err != nil {
			t.Fatal(err)
		}
		r2, err := interp.Run(again, got)
		if err != nil {
			t.Fatal(err)
		}
		for n := range want.Buffers {
			if !bytes.Equal(want.Buffers[n], got.Buffers[n]) {
				t.Fatalf("seed %d: buffer %d differs", seed, n)
			}
		}
		if d := cmp.Diff(r1, r2); d != "" {
			t.Fatal(d)
		}
	}
}

func TestParseMatrix(t *testing.T) {
	text := matrixKernel(t).String()
	k, err := ir.Parse(text, target.Atoms()...)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text, k.String()); d != "" {
		t.Error(d)
	}
	if _, err := ir.Parse(text, target.M8N8K16S8); err == nil || !strings.Contains(err.Error(), "expected a known atom") {
		t.Errorf("unknown atom: %v", err)
	}
}

func TestParsePositions(t *testing.T) {
	k, err := ir.Parse("// made by hand\n\nkernel k lanes 8 groups 1 {\n\n  barrier // all\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	if p := k.Body[0].(*ir.Instr).Pos; p != (ir.Pos{File: "k.ir", Line: 5}) {
		t.Errorf("barrier at %v", p)
	}
}

func TestParseErrors(t *testing.T) {
	// %-lines go into a kernel of 8 lanes after these declarations; they start in line 9.
	const head = "kernel k lanes 8 groups 2 {\nin x: f32\nout o: f32\nint n\nfloat e\ngrid n / 4\nshared s: u32[64] @0\nreg r: varying f32[4]\n"
	for _, c := range []struct{ text, want string }{
		{"%1:f32 = const", `9:1`}, // no immediate
		{"%1:f32 block = const #0x1_0000_0000", "9:1: const of 4294967296"},
		{"%1:bool block = const #2", "9:1: const of 2"},
		{"%1:f32 = const #0", "9:1: result of const is block, not varying"},
		{"%1:f16 block = const #0", `9:4: expected the type of a value, found "f16"`},
		{"%1:index block = const #99999999999999999999", `expected a number`},
		{"%0:index block = const #1", "9:2: expected the number of a value"},
		{"%01:index block = const #1", "9:2: expected the number of a value"},
		{"%1048577:index block = const #1", "9:2: expected the number of a value"},
		{"%1:index = lane\n%1:index = lane", "10:2: value %1 is defined twice"},
		{"%1:index = lane\n%2:index = add.index %1, %2", "10:27: value %2 is not defined here"},
		{"%1:index block = const #0\nfor %2:index block = %1 to %1 step 1 {\n}\n%3:index block = add.index %2, %1", "12:29: value %2 is not defined here"},
		{"%1:index block = const #0\nfor %2:index block = %1 to %1 step 1 {\n%3:index = lane\n}\n%4:index = add.index %3, %1", "13:23: value %3 is not defined here"},
		{"%1:index block = const #0\nfor %2:index block = %1 to %1 step 0 {\n}", "expected a step, 1 … 1073741824"},
		{"%1:index = lane\nfor %2:index block = %1 to %1 step 1 {\n}", "10:1: a loop bound varies"},
		{"%1:index group = group\nfor %2:index block = %1 to %1 step 1 {\n}", "10:1: loop variable is group, not block"},
		{"%1:index = lane\n%2:bool = eq.index %1, %1\nif %2 {\n}", "11:1: a branch takes a uniform bool"},
		{"%1:index = lane\n%2:bool block = eq.index %1, %1", "10:1: result of eq.index is varying, not block"},
		{"%1:index = lane\n%2:f32 = eq.index %1, %1", "10:1: result of eq.index is bool, not f32"},
		{"%1:index = lane\n%2:f32 = add.f32 %1, %1", "10:1: argument 1 of add.f32 is index"},
		{"%1:index = lane\n%2:index = add.index %1", "10:1: add.index takes more than 1 arguments"},
		{"%1:index = lane\n%2:index = add.index %1, %1, %1", "10:1: add.index takes 2 arguments, not 3"},
		{"%1:index = lane\n%2:index, %3:index = add.index %1, %1", "10:1: add.index has 1 results, not 2"},
		{"%1:index = lane\nadd.index %1, %1", "10:1: add.index has 1 results, not 0"},
		{"%1:index = lane\n%2:f32 = load y.f32 #1 %1, _", `10:15: expected a buffer or an array`},
		{"%1:index = lane\n%2:f32 = load x.index #1 %1, _", `10:1: x as index`},
		{"%1:index = lane\n%2:f32 = load e.f32 #1 %1, _", `10:15: expected a buffer or an array`},
		{"%1:index = lane\n%2:f32 = load o.f32 #1 %1, _", "10:1: load from the output o"},
		{"%1:index = lane\n%2:f32, %3:f32, %4:f32 = load x.f32 #3 %1, _", "10:1: load of 3"},
		{"%1:index = lane\n%2:f32 block = const #0\nstore x.f32 #1 %1, _, %2", "11:1: store to the input x"},
		{"%1:index = lane\n%2:f32 block = const #0\nstore o.f32 #1 %1, _", "11:1: store takes more than 2"},
		{"%1:index = lane\n%2:f32 block = const #0\nstore o.f32 #2 %1, _, %2", "11:1: 1 values stored as 2"},
		{"%1:index = lane\n%2:f32 block = const #0\nstore o.i8 #1 %1, _, %2", "11:1: store of other types than i32"},
		{"%1:index = lane\n%2:f32 block = const #0\nstore o.f32 #4 %1, _, %2, _, %2, %2", "11:1: store of other types"},
		{"%1:index = lane\n%2:f32 = get r %1", "10:1: the index of a register tile is not constant"},
		{"%1:index block = const #0\n%2:f32 = get q %1", "10:14: expected a register tile"},
		{"%1:index block = const #0\n%2:f32 block = get r %1", "10:1: result of get is varying, not block"},
		{"%1:index block = const #0\n%2:i32 block = const #0\nset r %1, %2", "11:1: block i32 set in a register tile of varying f32"},
		{"%1:index block = arg.index #1", "9:1: arg.index of 1"},
		{"%1:f32 block = arg.f32 #-1", "9:1: arg.f32 of -1"},
		{"%1:index block = tile #1", "9:1: tile of 1"},
		{"%1:f32 = const #0x3F800000\n", "9:1: result of const"},
		{"%1:f32 block = const #0\n%2:f32 = shuffle.xor #8 %1", "10:1: shuffle.xor of 8"},
		{"%1:f32 block = const #0\n%2:f32 block = read.lane #0 %1", "10:1: result of read.lane is group, not block"},
		{"%1:u8x4 block = const #0\n%2:i8x4 block = lookup16 table:00 %1", "expected 16 bytes in hexadecimal"},
		{"%1:u8x4 block = const #0\n%2:i8x4 block = lookup16 table:0000000000000000000000000000000g %1", "expected 16 bytes in hexadecimal"},
		{"async.wait #-1", "9:1: async.wait of -1"},
		{"mma", "expected a known atom, found the end of the line"},
		{"nonsense", `9:1: expected an op or a value, found "nonsense"`},
		{"barrier barrier", `9:9: expected "%", found "barrier"`},
		{"int m", "9:1: parameters come first"},
		{"if %1 {", "9:5: value %1 is not defined here"},
		{"}\nbarrier", `10:1: expected the end of the text, found "barrier"`},
		{"é", "9:1: expected an op or a value"},
	} {
		_, err := ir.Parse(head + c.text + "\n}\n")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"", `1:1: expected "kernel", found the end of the text`},
		{"kernel 3", `1:8: expected the kernel's name, found "3"`},
		{"kernel k lanes 12 groups 1 {", "12 lanes; 8, 16 or 32 are possible"},
		{"kernel k lanes 32 groups 33 {", "33 groups of 32 lanes; a block has at most 1024 lanes"},
		{"kernel k lanes 8 groups 1 {", `expected the end of the line, found the end of the text`},
		{"kernel k lanes 8 groups 1 {\n", `2:1: expected a statement or "}", found the end of the text`},
		{"kernel k lanes 8 groups 1 {\nin x: bool\n}", `2:7: expected the type of a buffer's elements, found "bool"`},
		{"kernel k lanes 8 groups 1 {\nin x: i8\nint x\n}", "3:5: two parameters or shared arrays are named x"},
		{"kernel k lanes 8 groups 1 {\nin x: i8\ngrid x / 1\n}", "3:6: expected an integer parameter"},
		{"kernel k lanes 8 groups 1 {\nint n\ngrid n / 0\n}", "3:10: expected a tile"},
		{"kernel k lanes 8 groups 1 {\nint n\ngrid n / 1\nin x: i8\n}", "4:1: parameters come first"},
		{"kernel k lanes 8 groups 1 {\nshared s: f32[1] @0\nshared t: f32[1] @0\n}", "3:19: array t at 0: a multiple of 64 from 4 on is needed"},
		{"kernel k lanes 8 groups 1 {\nshared s: f32[1] @32\n}", "2:19: array s at 32"},
		{"kernel k lanes 8 groups 1 {\nshared s: f32[999999999999] @0\n}", "2:15: expected a number of elements, 1 … 262144"},
		{"kernel k lanes 8 groups 1 {\nreg r: block f32[1]\n}", "a register tile is group or varying"},
		{"kernel k lanes 8 groups 1 {\nreg r: varying bool[1]\n}", `expected a type of 32 bits, found "bool"`},
		{"kernel k lanes 8 groups 1 {\nreg r: varying f32[1]\nreg r: varying f32[1]\n}", "3:5: two register tiles are named r"},
		{"kernel k lanes 8 groups 1 {\n%1:index block = const #0\n%2:bool block = eq.index %1, %1\n" + strings.Repeat("if %2 {\n", 99), "68:1: blocks are nested more than 64 deep"},
	} {
		_, err := ir.Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(random.Kernel(rand.New(rand.NewPCG(seed, 7)), 8, 1+int(seed%2), 12).String())
	}
	f.Add(matrixKernel(f).String())
	f.Add("kernel k lanes 8 groups 1 {\n}\n")
	f.Fuzz(func(t *testing.T, src string) {
		k, err := ir.Parse(src, target.Atoms()...)
		if err != nil {
			var line, col int
			if n, _ := fmt.Sscanf(err.Error(), "%d:%d:", &line, &col); n != 2 {
				t.Fatalf("error without a position: %v", err)
			}
			return
		}
		ir.Walk(k.Body, func(s ir.Stmt) {
			if err := ir.Check(k, s); err != nil {
				t.Fatal(err)
			}
		})
		text := k.String()
		again, err := ir.Parse(text, target.Atoms()...)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if again.String() != text {
			t.Fatalf("printed\n%s\nand then\n%s", text, again)
		}
	})
}

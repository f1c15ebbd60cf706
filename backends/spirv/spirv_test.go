package spirv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/random"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/runtime/device/vulkan"
)

var exhaustive = flag.Bool("exhaustive", false, "run every config of every op with every pattern of data")

// places are where ops run. SwiftShader has no small elements, and takes ten seconds to compile some shuffles.
var places = []struct{ driver, arch string }{{"lavapipe", "vk"}, {"swiftshader", "vk"}, {"lavapipe", "vkdot"}}

// variants returns the configs of an op to run at a place: all, or, in turn, the first or the last one at one place.
func variants(op *ops.Op, turn, place int) []ops.Variant {
	vs := op.Variants(Caps(places[place].arch))
	switch {
	case *exhaustive || len(vs) == 0:
		return vs
	case turn%len(places) != place:
		return nil
	case turn%2 == 0:
		return vs[:1]
	}
	return vs[len(vs)-1:]
}

// Kernels of ops give the scalar references' bits on the drivers.
func TestOps(t *testing.T) {
	for place, at := range places {
		t.Run(at.driver+"/"+at.arch, func(t *testing.T) {
			d := device(t, at.driver)
			ran := 0
			for turn, op := range ops.All() {
				for _, v := range variants(op, turn, place) {
					k, err := op.Kernel(v, Caps(at.arch))
					if err != nil {
						t.Error(err)
						continue
					}
					if err := runOp(t, d, at.arch, at.driver == "swiftshader", op, v, k); err != nil {
						t.Errorf("%s: %v", k.Name, err)
					}
					ran++
				}
			}
			t.Logf("%d kernels", ran)
			if ran < 5 {
				t.Error("hardly any kernel ran")
			}
		})
	}
}

// lacking reports an error that says that the device lacks what a module uses: SwiftShader has no small elements.
func lacking(err error) bool {
	return err != nil && strings.Contains(err.Error(), "which the device lacks")
}

// runOp runs a kernel on the op's cases, but for those with subnormals where the driver flushes them.
func runOp(t *testing.T, d *vulkan.Device, arch string, flushes bool, op *ops.Op, v ops.Variant, k *ir.Kernel) (err error) {
	o, err := emit(k, arch)
	if err != nil {
		return err
	}
	if err := validate(t, o.Text); err != nil {
		return err
	}
	r, err := runner(d, k, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	shapes, patterns := op.Shapes[:1], []ops.Pattern{ops.Random, ops.Tiny}
	if *exhaustive {
		shapes, patterns = op.Shapes[:min(8, len(op.Shapes))], ops.Patterns
	}
	if flushes {
		patterns = slices.DeleteFunc(slices.Clone(patterns), func(p ops.Pattern) bool { return p == ops.Tiny || p == ops.Mixed })
	}
	for n, s := range shapes {
		for _, p := range patterns {
			c := op.Case(v, s, ops.NewData(p, uint64(n)))
			if c == nil {
				continue
			}
			got, err := run(r, k, arguments(k, c))
			if err != nil {
				return fmt.Errorf("%v, %s: %w", s, p, err)
			}
			for _, q := range k.Params {
				if want, ok := c.Want[q.Name]; ok {
					if err := ops.Compare(q.Type, got[q.Slot], want); err != nil {
						return fmt.Errorf("%v, %s: %s: %w", s, p, q.Name, err)
					}
				}
			}
		}
	}
	return nil
}

// Every config of every op is a valid module, the same at each printing.
func TestOpsValidate(t *testing.T) {
	for turn, op := range ops.All() {
		for n, arch := range Arches() {
			for m, v := range op.Variants(Caps(arch)) {
				if !*exhaustive && (turn+m)%len(Arches()) != n {
					continue
				}
				k, err := op.Kernel(v, Caps(arch))
				if err != nil {
					t.Error(err)
					continue
				}
				o, err := emit(k, arch)
				if err != nil {
					t.Error(err)
					continue
				}
				again, err := emit(k, arch)
				if err != nil || !bytes.Equal(o.Text, again.Text) {
					t.Errorf("%s: the second module is another one", k.Name)
				}
				if err := validate(t, o.Text); err != nil {
					t.Errorf("%s: %v", k.Name, err)
				}
			}
		}
	}
}

// Random kernels give the interpreter's bits on the drivers.
func TestRandom(t *testing.T) {
	each(t, func(t *testing.T, d *vulkan.Device, arch string) {
		n, ran := 12, 0
		if *exhaustive {
			n = 200
		}
		for seed := range n {
			r := rand.New(rand.NewPCG(uint64(seed), 5))
			k := random.Kernel(r, 32, 1+seed%4, 60)
			err := compare(t, d, k, arch, random.Args(r, k))
			if lacking(err) {
				continue
			} else if err != nil {
				t.Errorf("seed %d: %v\n%v", seed, err, k)
			}
			ran++
		}
		if arch == "vk" && ran < n {
			t.Errorf("%d of %d kernels ran", ran, n)
		}
	})
}

// specials are floats at which drivers err, the first of them so small that sums and products may be subnormal.
var specials = []uint32{
	1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000, 0x0C000000, 0x00000100, 0x20000000,
	0, 0x80000000, 0x33800000, 0x3F000000, 0x3F800000, 0xBF800000, 0x3F800001, 0x4B400000, 0xCB3FFFFF,
	0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x5F800000, 0x42F6E979,
}

const tiny = 8 // specials

func wordsOf(words []uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// floatTrials applies float arithmetic to all pairs of words of its input, with constants of those bits.
func floatTrials(t *testing.T, constants ...int64) (k *ir.Kernel, results int) {
	return build(t, "floats", 1, func(b *ir.Builder) {
		in, out, n, pairs := b.In("in", ir.F32), b.Out("out", ir.F32), b.Int("n"), b.Int("pairs")
		at := b.Tiles(pairs, 32).Mul(32).Add(b.Lane())
		mask := at.Lt(pairs)
		x, y := b.LoadMasked(in, at.Div(n), mask), b.LoadMasked(in, at.Mod(n), mask)
		zero, negative, one := b.F32(0), b.Const(ir.F32, 1<<31), b.Const(ir.F32, 0x3F800000)
		off := b.LoadMasked(in, at, b.Lane().Lt(0)) // +0
		list := []*ir.Value{
			x.Add(y), x.Sub(y), x.Mul(y), x.Mul(y).Add(x), x.Mul(y).Sub(one), x.Sub(x.Mul(y)),
			zero.Add(x), negative.Add(x), x.Add(zero), x.Sub(zero), x.Mul(zero), x.Mul(one), x.Sub(x), off.Add(x),
			x.Lt(y).Select(x, y), x.Gt(y).Select(x, y), x.Le(y).Select(x, y), x.Eq(y).Select(one, zero), x.Lt(y).Not().Select(x, y),
			x.As(ir.I32).And(0xFFFFFF).Sub(1 << 23).ToF32().Mul(y),
		}
		for _, c := range constants {
			list = append(list, b.Const(ir.F32, c).Add(x), b.Const(ir.F32, c).Mul(x), x.Lt(b.Const(ir.F32, c)).Select(one, zero))
		}
		for i, r := range list {
			b.StoreMasked(out, at.Mul(len(list)).Add(i), r, mask)
		}
		results = len(list)
	}), results
}

func floatArgs(in []uint32, results int) interp.Args {
	n := len(in)
	return interp.Args{Buffers: [][]byte{wordsOf(in), make([]byte, 4*n*n*results)}, Ints: []int64{int64(n), int64(n * n)}}
}

// Float arithmetic keeps signed zeros, rounds to nearest even, fuses nothing and folds nothing.
func TestFloats(t *testing.T) {
	k, results := floatTrials(t, 0x7FC00000, 0x42F6E979)
	each(t, func(t *testing.T, d *vulkan.Device, arch string) {
		if err := compare(t, d, k, arch, floatArgs(specials[tiny:], results)); err != nil {
			t.Error(err)
		}
	})
}

// Subnormals are kept where a driver is known to: as operands, results and constants.
func TestSubnormals(t *testing.T) {
	k, results := floatTrials(t, 1, 0x80400000)
	for _, arch := range Arches() {
		if err := compare(t, device(t, "lavapipe"), k, arch, floatArgs(specials, results)); err != nil {
			t.Errorf("lavapipe/%s: %v", arch, err)
		}
	}
	if err := compare(t, device(t, "swiftshader"), k, "vk", floatArgs(specials, results)); err == nil {
		t.Error("SwiftShader keeps subnormals: correct the package's documentation and the tests")
	}
}

// f16 and bf16 are converted as the interpreter does: all numbers of 16 bits, and floats around every one of them.
func TestConversions(t *testing.T) {
	k := build(t, "conversions", 1, func(b *ir.Builder) {
		small, halves, brains, wide := b.In("small", ir.U32), b.Out("halves", ir.F16), b.Out("brains", ir.BF16), b.Out("wide", ir.F32)
		count := b.Int("count")
		at := b.Tiles(count, 32).Mul(32).Add(b.Lane())
		h, bf := b.Load(small.As(ir.F16), at), b.Load(small.As(ir.BF16), at)
		b.StoreN(wide, at.Mul(2), nil, h, bf)
		for i, v := range []*ir.Value{h, bf} {
			for j, by := range []int{0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001} {
				x := v.As(ir.U32).Add(by).As(ir.F32)
				b.Store(halves, at.Mul(16).Add(8*i+j), x)
				b.Store(brains, at.Mul(16).Add(8*i+j), x)
			}
		}
	})
	small := make([]byte, 0, 2<<16)
	step := 7
	if *exhaustive {
		step = 1
	}
	for n := 0; n < 1<<16; n += step {
		small = binary.LittleEndian.AppendUint16(small, uint16(n))
	}
	small = small[:len(small)/64*64]
	n := len(small) / 2
	each(t, func(t *testing.T, d *vulkan.Device, arch string) {
		a := interp.Args{Buffers: [][]byte{small, make([]byte, 32*n), make([]byte, 32*n), make([]byte, 8*n)}, Ints: []int64{int64(n)}}
		if err := compare(t, d, k, arch, a); err != nil && !lacking(err) {
			t.Error(err)
		}
	})
}

// acrossLanes uses every op across lanes, in loops and one after the other, with lanes and groups that differ.
func acrossLanes(t *testing.T, groups int) *ir.Kernel {
	return build(t, "lanes", groups, func(b *ir.Builder) {
		in, out, sums, n := b.In("in", ir.U32), b.Out("out", ir.U32), b.Out("sums", ir.F32), b.Int("n")
		thread := b.Tiles(n, 1).Mul(groups).Add(b.Group()).Mul(32).Add(b.Lane())
		x := b.Load(in, thread)
		var results []*ir.Value
		for _, mask := range []int{1, 2, 3, 4, 7, 8, 16, 21, 31} {
			results = append(results, x.ShuffleXor(mask), x.As(ir.F32).ShuffleXor(mask).As(ir.U32))
		}
		for _, lane := range []int{0, 5, 8, 31} {
			results = append(results, x.ReadLane(lane))
		}
		results = append(results, x.As(ir.I32).PackLanes4().As(ir.U32), x.As(ir.I32).FoldAdd().As(ir.U32),
			x.FoldMax(), x.As(ir.F32).FoldMax().As(ir.U32))
		b.Store(sums, thread, x.As(ir.F32).FoldAdd())
		sum := b.Reg("sum", ir.U32, 1)
		sum.Fill(x)
		b.For(0, 5, 1, func(i *ir.Value) { // an odd number of exchanges a turn
			sum.Add(sum.At(0).ShuffleXor(16).Xor(i.FromIndex().As(ir.U32)), 0)
		})
		results = append(results, sum.At(0))
		for i, r := range results {
			b.Store(out, thread.Mul(len(results)).Add(i), r)
		}
	})
}

func laneArgs(groups int) interp.Args {
	r := rand.New(rand.NewPCG(7, 7))
	const tiles = 9
	in := make([]uint32, tiles*groups*32)
	for i := range in {
		switch {
		case i/32%4 == 0:
			in[i] = specials[r.IntN(len(specials))]
		case i/32%4 == 1:
			in[i] = 0xFFC00001 // NaN in all lanes
		default:
			in[i] = r.Uint32()
		}
	}
	return interp.Args{Buffers: [][]byte{wordsOf(in), make([]byte, 4*len(in)*27), make([]byte, 4*len(in))}, Ints: []int64{tiles}}
}

func TestLanes(t *testing.T) {
	each(t, func(t *testing.T, d *vulkan.Device, arch string) {
		for _, groups := range []int{1, 2, 3, 8} {
			if err := compare(t, d, acrossLanes(t, groups), arch, laneArgs(groups)); err != nil {
				t.Errorf("%d groups: %v", groups, err)
			}
		}
	})
}

// A device that promises no full subgroups runs the same modules through shared memory.
func TestNoSubgroups(t *testing.T) {
	d := device(t, "lavapipe")
	n := d.Info.Features.Subgroup
	if n != 8 {
		t.Logf("subgroups of %d lanes", n)
	}
	d.Info.Features.Subgroup = 0
	defer func() { d.Info.Features.Subgroup = n }()
	if err := compare(t, d, acrossLanes(t, 2), "vkdot", laneArgs(2)); err != nil {
		t.Error(err)
	}
}

// A store of a part of a word leaves the rest, in buffers and in shared memory; what is uniform is stored once; copies that
// would be asynchronous elsewhere land.
func TestMemory(t *testing.T) {
	const groups = 2
	k := build(t, "memory", groups, func(b *ir.Builder) {
		in, out, n := b.In("in", ir.I8), b.InOut("out", ir.I8), b.Int("n")
		tile := b.Tiles(n, 1)
		thread := b.Group().Mul(32).Add(b.Lane())
		bytes, copies := b.Shared("bytes", ir.I8, 8*64), b.Shared("copies", ir.I8, 16*64)
		from := tile.Mul(16 * 64)
		b.AsyncCopy(copies, thread.Mul(16), in, from.Add(thread.Mul(16)), thread.Mod(3).Lt(2))
		b.AsyncCommit()
		for i := range 4 {
			b.Store(bytes, thread.Mul(4).Add(i), b.Load(in, from.Add(thread).Add(i*64)))
		}
		b.Store(bytes.As(ir.I16), thread.Add(128), b.Load(in.As(ir.I16), tile.Mul(8*64).Add(thread)))
		b.AsyncWait(0)
		b.Barrier()
		to := tile.Mul(1024)
		b.StoreMasked(out, to.Add(thread), b.Load(bytes, thread.Xor(5)), thread.Mod(5).Lt(3))
		b.Store(out.As(ir.I16), tile.Mul(512).Add(64).Add(thread), b.Load(bytes.As(ir.I16), thread.Xor(9).Add(128)))
		b.StoreN(out, to.Add(256).Add(thread.Mul(4)), nil, b.LoadN(copies, 4, thread.Mul(16).Add(3), nil)...)
		b.If(b.Group().Eq(1), func() { b.Store(out, to.Add(517), b.I32(-3)) })
		b.StoreN(out.As(ir.U32), tile.Mul(256).Add(192).Add(b.Group().Mul(2)), nil, b.U32(7), b.U32(8))
	})
	r := rand.New(rand.NewPCG(1, 2))
	const tiles = 5
	a := interp.Args{Buffers: [][]byte{make([]byte, tiles*1024), make([]byte, tiles*1024)}, Ints: []int64{tiles}}
	for i := range a.Buffers[0] {
		a.Buffers[0][i], a.Buffers[1][i] = byte(r.Uint32()), byte(r.Uint32())
	}
	each(t, func(t *testing.T, d *vulkan.Device, arch string) {
		if err := compare(t, d, k, arch, a); err != nil && !lacking(err) {
			t.Error(err)
		}
	})
}

// Tile numbers go through two dimensions of workgroups, the last ones without a tile.
func TestGrid(t *testing.T) {
	k := build(t, "grid", 1, func(b *ir.Builder) {
		out, x, y, z := b.InOut("out", ir.I32), b.Int("x"), b.Int("y"), b.Int("z")
		i, j, l := b.Tiles(x, 3), b.Tiles(y, 1), b.Tiles(z, 4)
		tile := l.Mul(y).Add(j).Mul(x.Add(2).Div(3)).Add(i)
		b.StoreMasked(out, tile, b.Load(out, tile).Add(j.FromIndex()).Add(l.FromIndex()), b.Lane().Eq(0))
	})
	a := interp.Args{Ints: []int64{8, 211, 421}}
	tiles := interp.Tiles(k, a.Ints) // 3 · 211 · 106 = 67098, more than the 65535 of one dimension
	a.Buffers = [][]byte{make([]byte, 4*tiles)}
	o, err := emit(k, "vk")
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner(device(t, "swiftshader"), k, o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := run(r, k, a)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int(tiles) {
		if v := binary.LittleEndian.Uint32(got[0][4*n:]); int(v) != n/3%211+n/633 {
			t.Fatalf("tile %d holds %d, want %d", n, v, n/3%211+n/633)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	store := func(b *ir.Builder) { b.Store(b.Out("x", ir.I32), b.Lane(), b.I32(1)) }
	atom := target.M8N8K16S8
	for _, c := range []struct {
		arch   string
		lanes  int
		groups int
		want   string
		f      func(b *ir.Builder)
	}{
		{"vk2", 32, 1, `no architecture is named "vk2"; there are [vk vkdot]`, store},
		{"vk", 16, 1, "16 lanes; a lane group of vk has 32", store},
		{"vk", 32, 9, "9 groups of 32 lanes; a workgroup of vk has at most 256 threads", store},
		{"vkdot", 32, 8, "31744 bytes of shared arrays and 2048 for exchanges between lanes; a workgroup of vkdot has 32768", func(b *ir.Builder) {
			b.Shared("s", ir.I32, 7936)
			b.Store(b.Out("x", ir.I32), b.Lane(), b.Lane().FromIndex().ShuffleXor(1))
		}},
		{"vk", 32, 1, "index 4294967296 has more than 32 bits", func(b *ir.Builder) { b.Store(b.Out("x", ir.I32), 1<<32, b.I32(1)) }},
		{"vkdot", 32, 1, "vkdot has no mma", func(b *ir.Builder) {
			b.Store(b.Out("x", ir.I32), b.Lane(), b.MMA(atom, []*ir.Value{b.Const(ir.I8x4, 1)}, []*ir.Value{b.Const(ir.I8x4, 1)}, []*ir.Value{b.I32(1), b.I32(1)})[0])
		}},
	} {
		k, err := ir.Build("bad", c.lanes, c.groups, c.f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Emit(k, Options{Arch: c.arch, Symbol: "bad"})
		var e *ir.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if Caps("sm_80") != nil {
		t.Error("capabilities of an architecture that is none of these")
	}
}

// A module holds its entry point and the header, no names; without a use for more, both architectures have the same.
func TestModule(t *testing.T) {
	k := build(t, "copy", 1, func(b *ir.Builder) {
		in, out, n := b.In("in", ir.F32), b.Out("out", ir.F32), b.Int("n")
		at := b.Tiles(n, 32).Mul(32).Add(b.Lane())
		b.StoreMasked(out, at, b.LoadMasked(in, at, at.Lt(n)), at.Lt(n))
	})
	var modules [][]byte
	for _, arch := range Arches() {
		o, err := Emit(k, Options{Arch: arch, Symbol: "copy_entry", Header: "made from copy.go"})
		if err != nil {
			t.Fatal(err)
		}
		if o.Threads != 32 || o.Tiles != 1 || o.Shared != 0 {
			t.Errorf("%d threads, %d tiles, %d bytes, want 32, 1 and 0", o.Threads, o.Tiles, o.Shared)
		}
		modules = append(modules, o.Text)
	}
	if !bytes.Equal(modules[0], modules[1]) {
		t.Error("the architectures' modules differ")
	}
	words := decode(modules[0])
	ops := instructions(words)
	for _, c := range []struct {
		op   opcode
		want int
	}{{opEntryPoint, 1}, {5, 0}, {6, 0}, {opModuleProcessed, 1}, {opCapability, 1}, {opLoad, 7}, {opStore, 1}, {opTypeInt, 1}} {
		if got := len(ops[c.op]); got != c.want {
			t.Errorf("%d instructions of number %d, want %d", got, c.op, c.want)
		}
	}
	for name, op := range map[string]opcode{"copy_entry": opEntryPoint, "made from copy.go": opModuleProcessed} {
		var text []byte
		for _, w := range ops[op][0] {
			text = binary.LittleEndian.AppendUint32(text, w)
		}
		if !bytes.Contains(text, append([]byte(name), 0)) {
			t.Errorf("%q is not in %q", name, text)
		}
	}
}

// Every float instruction of a module is decorated with NoContraction; floats have 32 bits and are converted from integers
// only; no constant is a zero, with which drivers fold sums and products.
func TestFloatInstructions(t *testing.T) {
	const fConvert, fNegate, constantNull = 115, 127, 46
	exactly := []opcode{opFAdd, opFSub, opFMul, opExtInst, opFOrdEqual, opFOrdLessThan, opFOrdLessThanEqual}
	count := 0
	for _, op := range ops.All() {
		for _, arch := range Arches() {
			for _, v := range op.Variants(Caps(arch)) {
				k, err := op.Kernel(v, Caps(arch))
				if err != nil {
					t.Fatal(err)
				}
				o, err := emit(k, arch)
				if err != nil {
					t.Fatal(err)
				}
				all := instructions(decode(o.Text))
				exact := map[id]bool{}
				for _, d := range all[opGroupDecorate] {
					for _, r := range d[1:] {
						exact[r] = true
					}
				}
				for _, f := range exactly {
					for _, i := range all[f] {
						if count++; !exact[i[1]] {
							t.Errorf("%s, %s: result %d of instruction %d may be contracted", k.Name, arch, i[1], f)
						}
					}
				}
				if f := all[opTypeFloat]; len(f) != 1 || f[0][1] != 32 {
					t.Errorf("%s, %s: types of floats %v", k.Name, arch, f)
					continue
				}
				for _, c := range all[opConstant] {
					if c[0] == all[opTypeFloat][0][0] && c[2]<<1 == 0 {
						t.Errorf("%s, %s: a zero is constant", k.Name, arch)
					}
				}
				for _, f := range []opcode{fConvert, fNegate, constantNull} {
					if n := len(all[f]); n > 0 {
						t.Errorf("%s, %s: %d instructions of number %d", k.Name, arch, n, f)
					}
				}
			}
		}
	}
	if count == 0 {
		t.Error("no float instruction")
	}
}

func decode(b []byte) []uint32 {
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// instructions lists a module's instructions by number, without their first word.
func instructions(words []uint32) map[opcode][][]uint32 {
	all := map[opcode][][]uint32{}
	for at := 5; at < len(words); {
		op, size := opcode(words[at]&0xFFFF), int(words[at]>>16)
		all[op] = append(all[op], words[at+1:at+size])
		at += size
	}
	return all
}

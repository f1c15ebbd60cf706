package interp_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/layout"
	"github.com/swizzle-rt/swizzle/ir/target"
)

func build(t *testing.T, lanes, groups int, f func(b *ir.Builder)) *ir.Kernel {
	t.Helper()
	k, err := ir.Build("test", lanes, groups, f)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func words(ws ...uint32) []byte {
	var b []byte
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func word(b []byte, n int) uint32 { return binary.LittleEndian.Uint32(b[4*n:]) }

// What kernels promise and don't keep is found, at its line.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, want string
		groups     int
		f          func(b *ir.Builder)
	}{
		{"lanes race on a buffer", "race on byte 0 of out: lane 0 of tile 0 and lane 1 of tile 0", 1, func(b *ir.Builder) {
			b.Store(b.Out("out", ir.U32), 0, b.Lane().FromIndex().As(ir.U32))
		}},
		{"groups race", "race on byte 0 of out: lane 0 of tile 0 and lane 32 of tile 0", 2, func(b *ir.Builder) {
			b.Store(b.Out("out", ir.U32), b.Lane(), b.U32(1))
		}},
		{"a buffer over a barrier", "race on byte 4 of io: lane 1 of tile 0 and lane 0 of tile 0, which no barrier orders, the first writes", 1, func(b *ir.Builder) {
			io := b.InOut("io", ir.U32)
			b.Store(io, b.Lane(), b.U32(1))
			b.Barrier()
			b.Load(io, b.Lane().Xor(1))
		}},
		{"tiles race", "race on byte 0 of out: lane 0 of tile 0 and lane 0 of tile 1", 1, func(b *ir.Builder) {
			out := b.Out("out", ir.U32)
			b.Tiles(b.Int("n"), 1)
			b.Store(out, b.Lane(), b.U32(1))
		}},
		{"a tile stores what another has read", "race on byte 0 of io: several tiles and lane 0 of tile 1", 1, func(b *ir.Builder) {
			io := b.InOut("io", ir.U32)
			tile := b.Tiles(b.Int("n"), 1)
			b.Load(io, 0)
			b.If(tile.Eq(1), func() { b.Store(io, 0, b.U32(1)) })
		}},
		{"a tile stores what another and itself have read", "race on byte 0 of io", 1, func(b *ir.Builder) {
			io := b.InOut("io", ir.U32)
			tile := b.Tiles(b.Int("n"), 1)
			b.Load(io, b.Lane())
			b.If(tile.Eq(1), func() { b.Store(io, b.Lane(), b.U32(1)) })
		}},
		{"a tile reads what another has stored", "race on byte 0 of io", 1, func(b *ir.Builder) {
			io := b.InOut("io", ir.U32)
			tile := b.Tiles(b.Int("n"), 1)
			b.IfElse(tile.Eq(0), func() { b.Store(io, b.Lane(), b.U32(1)) }, func() { b.Load(io, b.Lane()) })
		}},
		{"missing barrier after a store", "race on byte 4 of s: lane 1 of tile 0 and lane 0 of tile 0 with no barrier between, the first writes", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 32)
			b.Store(s, b.Lane(), b.U32(1))
			b.Load(s, b.Lane().Xor(1))
		}},
		{"missing barrier after a load", "with no barrier between, the second writes", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 32)
			b.Store(s, b.Lane(), b.U32(1))
			b.Barrier()
			b.Load(s, b.Lane().Xor(1))
			b.Store(s, b.Lane(), b.U32(1))
		}},
		{"missing barrier after many loads", "several lanes of tile 0 and lane 3 of tile 0", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 32)
			b.Store(s, b.Lane(), b.U32(1))
			b.Barrier()
			b.Load(s, 3)
			b.Load(s, b.Lane())
			b.Store(s, b.Lane(), b.U32(1))
		}},
		{"parts of a word", "race on byte 2 of s", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 32)
			b.Store(s.As(ir.I16), b.Lane(), b.I32(1))
			b.Load(s, b.Lane().Shr(1))
		}},
		{"divergent barrier", "lane group 0 does not reach the barrier", 2, func(b *ir.Builder) {
			b.If(b.Group().Eq(1), func() { b.Barrier() })
		}},
		{"divergent barrier in a loop", "lane group 0 does not reach the barrier", 2, func(b *ir.Builder) {
			b.For(0, b.Group().Add(1), 1, func(*ir.Value) { b.Barrier() })
		}},
		{"undefined shared memory", "lane 31 of tile 0 reads byte 124 of s before it is written", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 32)
			b.StoreMasked(s, b.Lane(), b.U32(1), b.Lane().Lt(31))
			b.Load(s, b.Lane())
		}},
		{"shared memory of the tile before", "before it is written", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 32)
			tile := b.Tiles(b.Int("n"), 1)
			b.If(tile.Eq(0), func() { b.Store(s, b.Lane(), b.U32(1)) })
			b.Load(s, b.Lane())
		}},
		{"undefined register", "element 1 of the register tile r is read before it is set", 1, func(b *ir.Builder) {
			r := b.Reg("r", ir.F32, 2)
			r.Set(b.F32(1), 0)
			r.At(1)
		}},
		{"register set in another group", "element 0 of the register tile r is read before it is set", 2, func(b *ir.Builder) {
			r := b.Reg("r", ir.F32, 1)
			b.If(b.Group().Eq(0), func() { r.Set(b.F32(1), 0) })
			r.At(0)
		}},
		{"register of the tile before", "is read before it is set", 1, func(b *ir.Builder) {
			r := b.Reg("r", ir.F32, 1)
			tile := b.Tiles(b.Int("n"), 1)
			b.If(tile.Eq(0), func() { r.Set(b.F32(1), 0) })
			r.At(0)
		}},
		{"register out of range", "element 2 of the register tile r, which has 2", 1, func(b *ir.Builder) {
			r := b.Reg("r", ir.F32, 2)
			b.For(0, 3, 1, func(i *ir.Value) { r.Set(b.F32(1), i) })
		}},
		{"load past the slack", "load from byte 128 … 131 of in, which has 100", 1, func(b *ir.Builder) {
			b.Load(b.In("in", ir.U32), 32)
		}},
		{"load before the start", "load from byte -4 … -1 of in", 1, func(b *ir.Builder) {
			b.Load(b.In("in", ir.U32), b.Int("n").Sub(3))
		}},
		{"store into the slack", "store to byte 100 … 103 of out, which has 100", 1, func(b *ir.Builder) {
			b.Store(b.Out("out", ir.U32), 25, b.U32(1))
		}},
		{"store of four, the last in the slack", "store to byte 100 … 103 of out", 1, func(b *ir.Builder) {
			b.StoreN(b.Out("out", ir.U32), 22, nil, b.U32(1), b.U32(1), b.U32(1), b.U32(1))
		}},
		{"shared memory has no slack", "load from byte 12 … 15 of s, which has 12", 1, func(b *ir.Builder) {
			b.Load(b.Shared("s", ir.U32, 3), 3)
		}},
		{"product", "1.0000001 · 1.0000001 is not exact in float32", 1, func(b *ir.Builder) {
			x := b.Const(ir.F32, 0x3F800001)
			b.FMAExact(x, x, x)
		}},
		{"conversion", "lane 0: 16777216 has more than 24 bits", 1, func(b *ir.Builder) { b.I32(1 << 24).ToF32() }},
		{"bound of Dot4US", "byte 128 is above the stated bound 127", 1, func(b *ir.Builder) {
			b.Dot4US(b.Const(ir.U8x4, 0x80000000), b.Const(ir.I8x4, 0), b.I32(0), 127)
		}},
		{"−128 in Dot4SS", "second operand holds −128", 1, func(b *ir.Builder) {
			b.Dot4SS(b.Const(ir.I8x4, 0), b.Const(ir.I8x4, 0x00800000), b.I32(0))
		}},
		{"table", "lookup of 16 in 16 entries", 1, func(b *ir.Builder) { b.Lookup16(b.Const(ir.U8x4, 0x00001000), [16]byte{}) }},
		{"division", "div.index of 2 and 0", 1, func(b *ir.Builder) { n := b.Int("n"); n.Div(n.Sub(2)) }},
		{"negative division", "mod.index of -1 and 2", 1, func(b *ir.Builder) { n := b.Int("n"); n.Sub(3).Mod(n) }},

		{"copies that never land", "32 asynchronous copies are still pending at the end of the tile", 1, func(b *ir.Builder) {
			b.AsyncCopy(b.Shared("s", ir.U32, 128), b.Lane().Mul(4), b.In("in", ir.U32), 0, nil)
			b.AsyncCommit()
			b.AsyncWait(0)
		}},
		{"copy read before it lands", "touches byte 0 of s while an asynchronous copy to it is pending", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 128)
			b.AsyncCopy(s, b.Lane().Mul(4), b.In("in", ir.U32), 0, nil)
			b.AsyncCommit()
			b.AsyncWait(0)
			b.Load(s, b.Lane().Mul(4))
			b.Barrier()
		}},
		{"wait for one group too few", "touches byte 0 of s while an asynchronous copy to it is pending", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 128)
			b.AsyncCopy(s, b.Lane().Mul(4), b.In("in", ir.U32), 0, nil)
			b.AsyncCommit()
			b.AsyncWait(1)
			b.Barrier()
			b.Load(s, b.Lane().Mul(4))
		}},
		{"copy not committed", "pending", 1, func(b *ir.Builder) {
			b.AsyncCopy(b.Shared("s", ir.U32, 128), b.Lane().Mul(4), b.In("in", ir.U32), 0, nil)
			b.AsyncWait(0)
			b.Barrier()
		}},
		{"copies race", "touches byte 0 of s while an asynchronous copy to it is pending", 1, func(b *ir.Builder) {
			b.AsyncCopy(b.Shared("s", ir.U32, 128), 0, b.In("in", ir.U32), 0, nil)
		}},
		{"copy to an odd place", "lane 1 copies to byte 4 of s, which is not a multiple of 16", 1, func(b *ir.Builder) {
			b.AsyncCopy(b.Shared("s", ir.U32, 128), b.Lane(), b.In("in", ir.U32), 0, nil)
		}},
		{"copy from an odd place", "lane 1 copies from byte 4 of in, which is not a multiple of 16", 1, func(b *ir.Builder) {
			b.AsyncCopy(b.Shared("s", ir.U32, 128), b.Lane().Mul(4), b.In("in", ir.U32), b.Lane(), nil)
		}},
		{"copy of what another lane has stored", "race on byte 16 of io", 1, func(b *ir.Builder) {
			io := b.InOut("io", ir.U32)
			b.StoreMasked(io, b.Lane(), b.U32(1), b.Lane().Lt(5))
			b.AsyncCopy(b.Shared("s", ir.U32, 128), b.Lane().Mul(4), io, 4, nil)
		}},
		{"odd row of ldmatrix", "lane 1 gives byte 4 of s as a row of ldmatrix", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 128)
			b.For(0, 4, 1, func(i *ir.Value) { b.Store(s, i.Mul(32).Add(b.Lane()), b.U32(0)) })
			b.Barrier()
			b.LdMatrix(s, 1, b.Lane())
		}},
	} {
		k := build(t, 32, c.groups, c.f)
		a := interp.Args{Ints: []int64{2}, Buffers: [][]byte{make([]byte, 100)}}
		for _, p := range k.Params {
			if p.Name == "out" || p.Name == "io" {
				a.Buffers[0] = make([]byte, 256)
				if strings.Contains(c.name, "slack") {
					a.Buffers[0] = make([]byte, 100)
				}
			}
		}
		r, err := interp.Run(k, a)
		var e *ir.Error
		if r != nil || !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) || e.Pos.File != "interp_test.go" || e.Pos.Line == 0 {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestWarpOnly(t *testing.T) {
	for _, f := range []func(b *ir.Builder){
		func(b *ir.Builder) { b.LdMatrix(b.Shared("s", ir.U32, 128), 4, b.Lane().Mul(4)) },
		func(b *ir.Builder) {
			b.MMA(target.M8N8K16S8, []*ir.Value{b.Const(ir.I8x4, 0)}, []*ir.Value{b.Const(ir.I8x4, 0)}, []*ir.Value{b.I32(0), b.I32(0)})
		},
	} {
		if _, err := interp.Run(build(t, 8, 1, f), interp.Args{}); err == nil || !strings.Contains(err.Error(), "with 8 lanes, it takes 32") {
			t.Errorf("got %v", err)
		}
	}
}

func TestArguments(t *testing.T) {
	k := build(t, 8, 1, func(b *ir.Builder) {
		b.In("x", ir.F32)
		b.Tiles(b.Int("n"), 4)
		b.Float("f")
	})
	full := interp.Args{Buffers: make([][]byte, 1), Ints: []int64{9}, Floats: make([]float32, 1)}
	if n := interp.Tiles(k, full.Ints); n != 3 {
		t.Errorf("%d tiles", n)
	}
	if _, err := interp.RunTiles(k, full, 1, 3); err != nil {
		t.Error(err)
	}
	for _, r := range [][2]int64{{-1, 1}, {0, 4}} {
		if _, err := interp.RunTiles(k, full, r[0], r[1]); err == nil {
			t.Errorf("tiles %v are accepted", r)
		}
	}
	if _, err := interp.Run(k, interp.Args{Buffers: full.Buffers, Ints: []int64{0}, Floats: full.Floats}); err != nil {
		t.Errorf("an empty grid: %v", err)
	}
	for n, a := range []interp.Args{{}, {Ints: full.Ints, Floats: full.Floats}, {Buffers: full.Buffers, Ints: full.Ints}, {Buffers: full.Buffers, Floats: full.Floats}} {
		if _, err := interp.Run(k, a); err == nil {
			t.Errorf("case %d: missing arguments are accepted", n)
		}
	}
}

// Tile coordinates: the first axis runs fastest.
func TestGrid(t *testing.T) {
	k := build(t, 8, 1, func(b *ir.Builder) {
		out := b.Out("out", ir.U32)
		x, y := b.Tiles(b.Int("x"), 2), b.Tiles(b.Int("y"), 3)
		b.Store(out, y.Mul(3).Add(x), y.Mul(10).Add(x).FromIndex().As(ir.U32))
	})
	out := make([]byte, 24)
	if _, err := interp.Run(k, interp.Args{Buffers: [][]byte{out}, Ints: []int64{5, 6}}); err != nil {
		t.Fatal(err)
	}
	for n, want := range []uint32{0, 1, 2, 10, 11, 12} {
		if got := word(out, n); got != want {
			t.Errorf("tile %d wrote %d, want %d", n, got, want)
		}
	}
}

// Storage types widen and narrow; a masked load gives +0; loads may reach into the slack.
func TestMemory(t *testing.T) {
	in := []byte{0x80, 0xFF, 0x7F, 0x01, 0x00, 0x3C, 0x80, 0xBF}
	for _, c := range []struct {
		t    ir.Type
		at   int
		want uint32
	}{
		{ir.I8, 0, 0xFFFFFF80}, {ir.U8, 0, 0x80}, {ir.I8, 2, 0x7F}, {ir.I16, 0, 0xFFFFFF80}, {ir.I16, 1, 0x017F},
		{ir.F16, 2, 0x3F800000}, {ir.BF16, 3, 0xBF800000}, {ir.U32, 0, 0x017FFF80}, {ir.I8x4, 1, 0xBF803C00},
	} {
		k := build(t, 8, 1, func(b *ir.Builder) {
			x, out := b.In("x", ir.U8), b.Out("out", ir.U32)
			b.Store(out, 0, b.Load(x.As(c.t), c.at).As(ir.U32))
			b.Store(out, 1, b.LoadMasked(x.As(c.t), c.at, b.Idx(0).Eq(1)).As(ir.U32))
			v := b.Load(x.As(c.t), c.at)
			b.Store(out.As(c.t), 8/c.t.Bytes(), v)
			b.Load(x, 63)
		})
		out := words(9, 9, 9)
		if _, err := interp.Run(k, interp.Args{Buffers: [][]byte{in, out}}); err != nil {
			t.Fatal(err)
		}
		if word(out, 0) != c.want || word(out, 1) != 0 {
			t.Errorf("%s[%d] = %08X, masked %08X, want %08X", c.t, c.at, word(out, 0), word(out, 1), c.want)
		}
		n := c.t.Bytes()
		if got := string(out[8 : 8+n]); got != string(in[c.at*n:c.at*n+n]) {
			t.Errorf("%s[%d] stored as % X", c.t, c.at, got)
		}
		for _, x := range out[8+n:] {
			if x != 9 && x != 0 {
				t.Errorf("store of %s touches % X", c.t, out[8:])
			}
		}
	}
}

// Cross-lane ops against their definitions.
func TestCrossLane(t *testing.T) {
	const lanes = 32
	r := rand.New(rand.NewPCG(1, 1))
	in := make([]byte, 4*lanes)
	f := make([]float32, lanes)
	for l := range f {
		f[l] = float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(6))))
		binary.LittleEndian.PutUint32(in[4*l:], math.Float32bits(f[l]))
	}
	k := build(t, lanes, 1, func(b *ir.Builder) {
		x, out := b.In("x", ir.F32), b.Out("out", ir.U32)
		lane := b.Lane()
		v := b.Load(x, lane)
		for n, w := range []*ir.Value{v.FoldAdd(), v.FoldMax(), v.As(ir.U32).FoldMax(), v.As(ir.I32).FoldAdd(), v.ReadLane(5), v.ShuffleXor(21), v.As(ir.I32).PackLanes4()} {
			b.Store(out, lane.Add(n*lanes), b.Idx(0).Le(lane).Select(w.As(ir.U32), b.U32(0)))
		}
	})
	out := make([]byte, 4*7*lanes)
	if _, err := interp.Run(k, interp.Args{Buffers: [][]byte{in, out}}); err != nil {
		t.Fatal(err)
	}
	sum := append([]float32(nil), f...)
	for s := lanes / 2; s > 0; s /= 2 {
		for l := range s {
			sum[l] += sum[l+s]
		}
	}
	top, topU, sumI := f[0], uint32(0), uint32(0)
	for l, x := range f {
		top = max(top, x)
		topU = max(topU, word(in, l))
		sumI += word(in, l)
	}
	for l := range lanes {
		q := l &^ 3
		pack := uint32(in[4*q]) | uint32(in[4*q+4])<<8 | uint32(in[4*q+8])<<16 | uint32(in[4*q+12])<<24
		want := []uint32{math.Float32bits(sum[0]), math.Float32bits(top), topU, sumI, word(in, 5), word(in, l^21), pack}
		for n, w := range want {
			if got := word(out, n*lanes+l); got != w {
				t.Errorf("op %d lane %d: %08X, want %08X", n, l, got, w)
			}
		}
	}
}

func TestFoldMaxNaN(t *testing.T) {
	nan, inf := uint32(0x7FC00000), uint32(0xFF800000)
	for _, c := range []struct {
		in   []uint32
		want uint32
	}{
		{[]uint32{nan, nan, nan, nan, nan, nan, nan, nan}, inf},
		{[]uint32{nan, nan, 0xBF800000, nan, 0xC0000000, nan, nan, 0xFFC00000}, 0xBF800000},
		{[]uint32{inf, inf, inf, inf, inf, inf, inf, inf}, inf},
	} {
		k := build(t, 8, 1, func(b *ir.Builder) {
			b.Store(b.Out("out", ir.F32), 0, b.Load(b.In("x", ir.F32), b.Lane()).FoldMax())
		})
		in, out := words(c.in...), make([]byte, 4)
		// Out is declared first.
		if _, err := interp.Run(k, interp.Args{Buffers: [][]byte{out, in}}); err != nil {
			t.Fatal(err)
		}
		if got := word(out, 0); got != c.want {
			t.Errorf("%08X: %08X, want %08X", c.in, got, c.want)
		}
	}
}

// Groups part at conditions and bounds that differ between them, and meet again.
func TestGroups(t *testing.T) {
	k := build(t, 8, 3, func(b *ir.Builder) {
		out := b.Out("out", ir.I32)
		g := b.Group()
		n := b.Reg("n", ir.I32, 1)
		n.Fill(b.I32(0))
		b.For(0, g.Mul(2), 1, func(*ir.Value) { n.Add(b.I32(1), 0) })
		b.IfElse(g.Eq(1), func() { n.Add(b.I32(100), 0) }, func() { n.Add(b.I32(200), 0) })
		b.Store(out, g.Mul(8).Add(b.Lane()), n.At(0))
	})
	out := make([]byte, 4*24)
	if _, err := interp.Run(k, interp.Args{Buffers: [][]byte{out}}); err != nil {
		t.Fatal(err)
	}
	for n := range 24 {
		if want := []uint32{200, 102, 204}[n/8]; word(out, n) != want {
			t.Errorf("lane %d: %d, want %d", n, word(out, n), want)
		}
	}
}

// A tile of rows of 128 bytes: ldmatrix of one 16-byte column of eight rows conflicts eight ways unless swizzled.
func TestConflicts(t *testing.T) {
	swizzle, err := layout.ForRows(128)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s    layout.Swizzle
		want int64
	}{{layout.Swizzle{}, 8}, {swizzle, 1}} {
		k := build(t, 32, 1, func(b *ir.Builder) {
			x, out := b.In("x", ir.U32), b.Out("out", ir.U32)
			s := b.Shared("s", ir.U32, 256)
			lane := b.Lane()
			// at moves a word of the tile as the swizzle of bytes does: the chunk is xored with the row.
			at := func(row, col *ir.Value) *ir.Value {
				mask := int64(1)<<c.s.B - 1
				return row.Mul(32).Add(col.Xor(row.And(int(mask)).Shl(2)))
			}
			b.For(0, 2, 1, func(i *ir.Value) {
				row, chunk := i.Mul(4).Add(lane.Shr(3)), lane.And(7)
				b.AsyncCopy(s, at(row, chunk.Mul(4)), x, row.Mul(32).Add(chunk.Mul(4)), nil)
			})
			b.AsyncCommit()
			b.AsyncWait(0)
			b.Barrier()
			b.Store(out, lane, b.LdMatrix(s, 1, at(lane.And(7), b.Idx(12)))[0])
		})
		in, out := make([]byte, 1024), make([]byte, 128)
		for n := range in {
			in[n] = byte(n / 4 * 7)
		}
		r, err := interp.Run(k, interp.Args{Buffers: [][]byte{in, out}})
		if err != nil {
			t.Fatal(err)
		}
		if r.SharedWavefronts != c.want || r.SharedIdeal != 1 {
			t.Errorf("%v: %d wavefronts, %d ideal, want %d and 1", c.s, r.SharedWavefronts, r.SharedIdeal, c.want)
		}
		// Copies: 64 rows of 16 bytes, each sector once; the store: 4 sectors.
		if r.GlobalSectors != 32+4 || r.GlobalIdeal != 32+4 || r.AsyncCopies != 64 || r.Barriers != 1 {
			t.Errorf("%v: %d sectors, %d ideal, %d copies, %d barriers", c.s, r.GlobalSectors, r.GlobalIdeal, r.AsyncCopies, r.Barriers)
		}
		for l := range 32 {
			if got, want := word(out, l), word(in, l/4*32+12+l%4); got != want {
				t.Errorf("%v: lane %d has %08X, want %08X", c.s, l, got, want)
			}
		}
	}
}

func TestSectors(t *testing.T) {
	for _, c := range []struct {
		stride         int
		sectors, ideal int64
	}{{1, 4, 4}, {2, 8, 4}, {8, 32, 4}, {0, 1, 1}} {
		k := build(t, 32, 1, func(b *ir.Builder) { b.Load(b.In("x", ir.U32), b.Lane().Mul(c.stride)) })
		r, err := interp.Run(k, interp.Args{Buffers: [][]byte{make([]byte, 1024)}})
		if err != nil {
			t.Fatal(err)
		}
		if r.GlobalSectors != c.sectors || r.GlobalIdeal != c.ideal {
			t.Errorf("stride %d: %d sectors, %d ideal, want %d and %d", c.stride, r.GlobalSectors, r.GlobalIdeal, c.sectors, c.ideal)
		}
	}
}

// Wide accesses that a GPU must split are counted by lane.
func TestUnaligned(t *testing.T) {
	for _, c := range []struct {
		n, first int
		want     int64
	}{{1, 1, 0}, {2, 0, 0}, {2, 2, 0}, {2, 1, 32}, {4, 4, 0}, {4, 2, 32}} {
		k := build(t, 32, 1, func(b *ir.Builder) {
			b.LoadN(b.In("in", ir.F16), c.n, b.Lane().Mul(4).Add(c.first), nil)
		})
		r, err := interp.Run(k, interp.Args{Buffers: [][]byte{make([]byte, 512)}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Unaligned != c.want {
			t.Errorf("%d from %d on: %d unaligned, want %d", c.n, c.first, r.Unaligned, c.want)
		}
	}
}

func TestCounts(t *testing.T) {
	k := build(t, 8, 2, func(b *ir.Builder) {
		b.For(0, 3, 1, func(*ir.Value) { b.Barrier() })
		b.If(b.Group().Eq(0), func() { b.F32(1) })
	})
	r, err := interp.Run(k, interp.Args{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Barriers != 3 || r.ByOp[ir.OpBarrier] != 6 || r.ByOp[ir.OpConst] != 2*3+1 || r.Instrs != 2*(3+3+1+1)+1 {
		t.Errorf("%+v", r)
	}
}

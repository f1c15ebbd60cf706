package msl

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
)

// Kernels made for single ops and for what joins them do what the interpreter does.
func TestTrialsEqualInterpreter(t *testing.T) {
	c := toolchain(t)
	for name, trials := range map[string]func(*testing.T, *batch){"lanes": laneTrials, "memory": memoryTrials, "programs": programTrials} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBatch()
			trials(t, b)
			b.finish(t, c, name)
		})
	}
}

// Every op that the architecture has is in some trial.
func TestTrialsCoverCaps(t *testing.T) {
	b := newBatch()
	laneTrials(t, b)
	memoryTrials(t, b)
	programTrials(t, b)
	tried := map[ir.Op]bool{}
	for k := range b.outputs {
		ir.Walk(k.Body, func(s ir.Stmt) {
			if i, ok := s.(*ir.Instr); ok {
				tried[i.Op] = true
			}
		})
	}
	for _, op := range ir.Ops() {
		if Caps(arch).Has(op) && !tried[op] {
			t.Errorf("no trial has %s", op)
		}
	}
}

// edges are words that are special as floats, as integers, as bytes or as counts.
var edges = []uint32{
	0, 1, 2, 0x80000000, 0x80000001, 0x7FFFFFFF, 0xFFFFFFFF, 0x3F800000, 0xBF800001, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF,
	0x00800000, 0x007FFFFF, 0x807FFFFF, 0x33000000, 0x33000001, 0x387FE000, 0x387FF000, 0x38800000, 0x477FE000, 0x477FEFFF, 0x477FF000,
	0x3F808000, 0x3F818000, 0x80808080, 0x7F7F7F7F, 0x81818181, 0x00FFFFFF, 31, 32, 33, 63,
}

func randomWords(r *rand.Rand, n int) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		w := r.Uint32()
		switch r.IntN(4) {
		case 0, 1:
			w = edges[r.IntN(len(edges))]
		case 2:
			w = math.Float32bits(float32(r.NormFloat64()))
		}
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	return b
}

func each(b []byte, f func(w uint32) uint32) []byte {
	for i := 0; i < len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], f(binary.LittleEndian.Uint32(b[i:])))
	}
	return b
}

// laneTrials has a kernel for each lane-wise op: out = op(x, y, z) for varying operands, and with a uniform second one.
func laneTrials(t *testing.T, bt *batch) {
	type vs = []*ir.Value
	low11 := func(w uint32) uint32 { return w&0x8FFFE000 | 0x30000000 } // 11 significant bits, a middling exponent
	odd := func(w uint32) uint32 { return w | 0x01010101 }              // no byte is −128
	signed := func(v *ir.Value) *ir.Value { return v.As(ir.I32) }
	float := func(v *ir.Value) *ir.Value { return v.As(ir.F32) }
	index := func(v *ir.Value) *ir.Value { return v.Shr(18).As(ir.I32).ToIndex() }
	table := [16]byte{1: 0xFF, 2: 0x80, 3: 0x7F, 8: 5, 14: 200, 15: 3}
	ops := []struct {
		name string
		f    func(b *ir.Builder, v vs) *ir.Value
		fix  [2]func(uint32) uint32
	}{
		{name: "add", f: func(_ *ir.Builder, v vs) *ir.Value { return signed(v[0]).Add(signed(v[1])).Sub(signed(v[2])) }},
		{name: "mul", f: func(_ *ir.Builder, v vs) *ir.Value { return signed(v[0]).Mul(signed(v[1])).Mul(-5) }},
		{name: "bits", f: func(_ *ir.Builder, v vs) *ir.Value { return v[0].And(v[1]).Or(v[2]).Xor(v[0].Or(0x5A5A)) }},
		{name: "shl", f: func(_ *ir.Builder, v vs) *ir.Value { return v[0].Shl(v[1]).Xor(v[0].Shl(5)).Xor(v[0].Shl(32)) }},
		{name: "shl_signed", f: func(_ *ir.Builder, v vs) *ir.Value { return signed(v[0]).Shl(signed(v[1])) }},
		{name: "shr", f: func(_ *ir.Builder, v vs) *ir.Value { return v[0].Shr(v[1]).Xor(v[0].Shr(31)).Xor(v[0].Shr(40)) }},
		{name: "sar", f: func(_ *ir.Builder, v vs) *ir.Value {
			return signed(v[0]).Shr(signed(v[1])).Xor(signed(v[0]).Shr(7)).Xor(signed(v[0]).Shr(99))
		}},
		{name: "minmax", f: func(_ *ir.Builder, v vs) *ir.Value {
			return signed(v[0]).Min(signed(v[1])).Add(signed(v[0]).Max(-100)).Add(signed(v[0].Max(v[1]).Max(77)))
		}},
		{name: "compare", f: func(_ *ir.Builder, v vs) *ir.Value {
			a := signed(v[0]).Lt(signed(v[1])).Select(v[0], v[2])
			return v[0].Lt(v[1]).Select(a, v[1]).Add(v[0].And(3).Eq(v[1].And(3)).Select(v[1], v[0]))
		}},
		{name: "float", f: func(_ *ir.Builder, v vs) *ir.Value { return float(v[0]).Mul(float(v[1])).Add(float(v[2])) }},
		{name: "float_sub", f: func(_ *ir.Builder, v vs) *ir.Value {
			x, y, z := float(v[0]), float(v[1]), float(v[2])
			return x.Sub(y.Sub(z)).Sub(x.Mul(y.Mul(z))).Sub(x.Add(y))
		}},
		{name: "float_zero", f: func(_ *ir.Builder, v vs) *ir.Value {
			x := float(v[0])
			return x.Add(float32(0)).Mul(float32(1)).Sub(float(v[1]).Mul(float32(math.Copysign(0, -1))))
		}},
		{name: "float_compare", f: func(_ *ir.Builder, v vs) *ir.Value {
			x, y := float(v[0]), float(v[1])
			return x.Lt(y).Select(v[0], v[1]).Add(x.Le(y).Select(v[2], v[0])).Add(x.Eq(y).Not().Select(v[1], v[2]))
		}},
		{name: "bool", f: func(_ *ir.Builder, v vs) *ir.Value {
			x, y := v[0].Lt(v[1]), v[1].Lt(v[2])
			return x.AndB(y).OrB(x.OrB(y).Not()).Select(v[0], v[1])
		}},
		{name: "cast", f: func(_ *ir.Builder, v vs) *ir.Value {
			return v[2].Lt(v[1]).Select(float(v[0]), float(v[2])).As(ir.U32).Xor(signed(v[1]).As(ir.U32)).As(ir.I8x4).As(ir.U8x4).As(ir.F32)
		}},
		{name: "nan", f: func(b *ir.Builder, v vs) *ir.Value {
			return v[0].Lt(v[1]).Select(float(v[0]), b.Const(ir.F32, 0x7FC00000))
		}},
		{name: "fma", f: func(b *ir.Builder, v vs) *ir.Value { return b.FMAExact(float(v[0]), float(v[1]), float(v[2])) },
			fix: [2]func(uint32) uint32{low11, low11}},
		{name: "to_float", f: func(b *ir.Builder, v vs) *ir.Value { return signed(v[0]).Shr(8).ToF32().Add(b.I32(0).ToF32()) }},
		{name: "dot_us", f: func(b *ir.Builder, v vs) *ir.Value {
			return b.Dot4US(v[0].As(ir.U8x4), v[1].As(ir.I8x4), signed(v[2]), 255)
		}},
		{name: "dot_ss", f: func(b *ir.Builder, v vs) *ir.Value { return b.Dot4SS(v[0].As(ir.I8x4), v[1].As(ir.I8x4), signed(v[2])) },
			fix: [2]func(uint32) uint32{nil, odd}},
		{name: "lookup", f: func(b *ir.Builder, v vs) *ir.Value {
			return b.Lookup16(v[0].And(0x0F0F0F0F).As(ir.U8x4), table).As(ir.U32).Xor(b.Lookup16(v[1].Shr(4).And(0x0F0F0F0F).As(ir.U8x4), [16]byte{5: 1}).As(ir.U32))
		}},
		{name: "index", f: func(_ *ir.Builder, v vs) *ir.Value {
			x, y := index(v[0]), index(v[1]).Add(1)
			z := x.Mul(y).Add(x.Div(y)).Sub(x.Mod(y)).Xor(x.Min(y)).Add(x.Max(y))
			return z.And(0x7FFFFFF).Shl(3).Add(x.Shr(5)).Add(x.Div(16)).Add(x.Mod(16)).Add(x.Div(10)).Add(-7).Sub(x.Shl(0)).FromIndex()
		}},
		{name: "index_compare", f: func(_ *ir.Builder, v vs) *ir.Value {
			x, y := index(v[0]), index(v[1])
			return x.Lt(y).OrB(x.Le(y.Mul(2))).OrB(x.Mod(4).Eq(y.Mod(4))).Select(x.FromIndex(), y.Add(-3).Min(0).FromIndex())
		}},
		{name: "constants", f: func(b *ir.Builder, v vs) *ir.Value {
			c := b.I32(math.MaxInt32).Add(1).Shr(31).As(ir.U32).Add(b.U32(7).Shl(30))
			return c.Add(v[0]).Add(b.F32(3).Mul(b.F32(0.1)).As(ir.U32)).Add(b.Idx(math.MinInt32).FromIndex().As(ir.U32))
		}},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, o := range ops {
		for _, mode := range []string{"varying", "uniform"} {
			k := mustBuild(t, o.name+"_"+mode, 1, func(b *ir.Builder) {
				tile := b.Tiles(b.Int("n"), 32).Mul(32)
				var v vs
				for n, name := range []string{"x", "y", "z"} {
					at := tile
					if mode == "varying" || n != 1 {
						at = tile.Add(b.Lane())
					}
					v = append(v, b.Load(b.In(name, ir.U32), at))
				}
				w := o.f(b, v)
				b.Store(b.Out("out", w.Type), tile.Add(b.Lane()), w)
			})
			const n = 20 * 32
			a := interp.Args{Ints: []int64{n}}
			for x := range 3 {
				in := randomWords(r, n)
				if x < 2 && o.fix[x] != nil {
					each(in, o.fix[x])
				}
				a.Buffers = append(a.Buffers, in)
			}
			a.Buffers = append(a.Buffers, make([]byte, 4*n))
			bt.interpret(t, k.Name, k, a)
		}
	}
}

// memoryTrials read and write every type in every width, with and without masks, and narrow values.
func memoryTrials(t *testing.T, bt *batch) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, typ := range []ir.Type{ir.I8, ir.U8, ir.I16, ir.F16, ir.BF16, ir.F32, ir.I32, ir.U32, ir.I8x4, ir.U8x4} {
		for _, n := range []int{1, 2, 4} {
			k := mustBuild(t, fmt.Sprintf("memory_%s_x%d", typ, n), 1, func(b *ir.Builder) {
				count := b.Int("count")
				tile := b.Tiles(count, 32*n)
				at := tile.Mul(32).Add(b.Lane()).Mul(n)
				x, y, wide := b.In("x", typ), b.Out("copy", typ), b.Out("wide", typ.Reg())
				in := at.Lt(count)
				v := b.LoadN(x, n, at.Add(1), in)
				b.StoreN(y, at, in, v...)
				b.StoreN(wide, at, in, b.LoadN(x, n, at, in)...)
				b.Store(y, count.Add(tile), b.Load(x, tile)) // one store
			})
			count := 77 * n
			tiles := (count + 32*n - 1) / (32 * n)
			src := randomWords(r, count+1)[:(count+1)*typ.Bytes()]
			bt.interpret(t, k.Name, k, interp.Args{Ints: []int64{int64(count)}, Buffers: [][]byte{src, make([]byte, (count+tiles)*typ.Bytes()), make([]byte, count*4)}})
		}
	}

	// Every f16 is widened; words are narrowed to everything.
	k := mustBuild(t, "widen", 1, func(b *ir.Builder) {
		at := b.Tiles(b.Int("n"), 32).Mul(32).Add(b.Lane())
		v := b.Load(b.In("x", ir.F16), at)
		b.Store(b.Out("out", ir.F32), at, v)
	})
	all := make([]byte, 1<<17)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(all[2*i:], uint16(i))
	}
	bt.interpret(t, k.Name, k, interp.Args{Ints: []int64{1 << 16}, Buffers: [][]byte{all, make([]byte, 1<<18)}})
	k = mustBuild(t, "narrow", 1, func(b *ir.Builder) {
		at := b.Tiles(b.Int("n"), 32).Mul(32).Add(b.Lane())
		x := b.In("x", ir.F32)
		v := b.Load(x, at)
		b.Store(b.Out("f16", ir.F16), at, v)
		b.Store(b.Out("bf16", ir.BF16), at, v)
		b.Store(b.Out("i8", ir.I8), at, v.As(ir.I32))
		b.Store(b.Out("u8", ir.U8), at, v.As(ir.I32).Shr(3))
		b.Store(b.Out("i16", ir.I16), at, v.As(ir.I32).Shr(5))
		b.Prefetch(x, at.Add(512))
	})
	const n = 1 << 15
	src := randomWords(r, n)
	for i := range n / 2 { // around the ties of f16, of all exponents that it has and some more
		binary.LittleEndian.PutUint32(src[4*i:], uint32(i*2654435761)&0x80000000|0x32000000+uint32(i)*0x6000+uint32(i%5)*0x800-0x1000+uint32(i%3)-1)
	}
	bt.interpret(t, k.Name, k, interp.Args{Ints: []int64{n}, Buffers: [][]byte{src, make([]byte, 2*n), make([]byte, 2*n), make([]byte, n), make([]byte, n), make([]byte, 2*n)}})

	// Written memory that is seen as elements of several widths.
	k = mustBuild(t, "views", 1, func(b *ir.Builder) {
		tile := b.Tiles(b.Int("n"), 1)
		own := tile.Mul(32).Add(b.Lane()).Mul(4) // words
		m := b.InOut("m", ir.F32)
		s := b.Shared("s", ir.U32, 128)
		b.Store(m.As(ir.I16), own.Mul(2).Add(1), b.Load(m.As(ir.I32), own.Add(1)))
		f := b.LoadN(m.As(ir.F32), 4, own, nil)
		b.StoreN(m.As(ir.F16), own.Mul(2).Add(2), b.Lane().Lt(20), f[0], f[1])
		h := b.LoadN(m.As(ir.BF16), 2, own.Mul(2), b.Lane().Lt(25))
		b.StoreMasked(m.As(ir.U8), own.Mul(4).Add(15), b.I32(77), b.Lane().Lt(9))
		q := b.LoadN(m.As(ir.U32), 2, own.Add(2), b.Lane().Lt(30))
		b.Store(m, own, h[0].Add(h[1]).Add(q[0].As(ir.F32)).Add(q[1].As(ir.F32)))
		b.StoreN(s, b.Lane().Mul(4), nil, q[0], q[1], q[0], q[1])
		b.Store(s.As(ir.I16), b.Lane().Mul(8).Add(3), q[1].As(ir.I32))
		b.Barrier()
		other := b.Lane().Xor(9)
		g := b.LoadN(s.As(ir.F32), 2, other.Mul(4), b.Lane().Lt(31))
		b.Store(m, own.Add(1), g[0].Add(g[1]).Add(b.Load(s.As(ir.F16), other.Mul(8).Add(1))))
	})
	bt.interpret(t, k.Name, k, interp.Args{Ints: []int64{6}, Buffers: [][]byte{randomWords(r, 6*128)}})
}

// programTrials exercise the grid, loops, branches, registers, shared memory and exchanges.
func programTrials(t *testing.T, bt *batch) {
	r := rand.New(rand.NewPCG(5, 6))

	k := mustBuild(t, "cross", 1, func(b *ir.Builder) {
		tile := b.Tiles(b.Int("n"), 32)
		at := tile.Mul(32).Add(b.Lane())
		v := b.Load(b.In("x", ir.F32), at)
		w := v.As(ir.I32)
		x := v.ShuffleXor(1).Add(v.ShuffleXor(4)).Mul(v)
		b.Store(b.Out("words", ir.U32), at, w.Add(w.ShuffleXor(2)).PackLanes4().As(ir.U32))
		b.Store(b.Out("floats", ir.F32), at, x.ShuffleXor(31).Add(x))
		f, i := b.Out("f", ir.F32), b.Out("i", ir.I32)
		for n, y := range []*ir.Value{v.FoldAdd(), v.FoldMax(), x.FoldMax(), v.ReadLane(3).FoldAdd(), b.Lane().FromIndex().And(1).As(ir.U32).Shl(31).As(ir.F32).FoldMax()} {
			b.Store(f, tile.Mul(5).Add(n), y)
		}
		for n, y := range []*ir.Value{w.FoldAdd(), w.ReadLane(31), w.As(ir.U32).FoldMax().As(ir.I32), w.ReadLane(1).PackLanes4().As(ir.I32), w.ReadLane(2).ShuffleXor(5)} {
			b.Store(i, tile.Mul(5).Add(n), y)
		}
	})
	const rows = 21
	x := randomWords(r, rows*32)
	for i := range 32 { // one row of NaN, one of zeros
		binary.LittleEndian.PutUint32(x[4*i:], 0x7FC00000|uint32(i))
		binary.LittleEndian.PutUint32(x[4*(32+i):], uint32(i%3)<<31)
	}
	bt.interpret(t, k.Name, k, interp.Args{Ints: []int64{rows * 32}, Buffers: [][]byte{x, make([]byte, rows*128), make([]byte, rows*128), make([]byte, rows*20), make([]byte, rows*20)}})

	k = mustBuild(t, "grid", 1, func(b *ir.Builder) {
		x, y, z := b.Int("x"), b.Int("y"), b.Int("z")
		tx, _, tz := b.Tiles(x, 3), b.Tiles(y, 1), b.Tiles(z, 2)
		ty := tz.Mul(7).Add(tx)
		b.Store(b.Out("out", ir.F32), ty.Mul(32).Add(b.Lane()), b.Float("f").Add(b.Float("g").Mul(b.Lane().FromIndex().ToF32())))
	})
	for _, e := range [][]int64{{19, 1, 4}, {1, 1, 1}, {3, 1, 0}, {9, 1, 5}} {
		bt.interpret(t, fmt.Sprint("grid ", e), k, interp.Args{Ints: e, Floats: []float32{1.5, -3}, Buffers: [][]byte{make([]byte, 7*3*128)}})
	}
	k = mustBuild(t, "no_grid", 1, func(b *ir.Builder) { b.Store(b.InOut("out", ir.I32), b.Lane(), b.Group().FromIndex().Add(7)) })
	bt.interpret(t, k.Name, k, interp.Args{Buffers: [][]byte{make([]byte, 128)}})

	// Groups meet in shared memory, whose arrays have types of their own; copies land at the barrier.
	k = mustBuild(t, "groups", 3, func(b *ir.Builder) {
		tile := b.Tiles(b.Int("n"), 1)
		src, out := b.In("src", ir.U8), b.Out("out", ir.U32)
		thread := b.Group().Mul(32).Add(b.Lane())
		staged, half := b.Shared("staged", ir.I8x4, 96*4), b.Shared("half", ir.F16, 96)
		b.AsyncCopy(staged, thread.Mul(4), src, tile.Mul(96).Add(thread).Mul(16), b.Lane().Lt(29))
		b.AsyncCommit()
		b.Store(half, thread, thread.FromIndex().ToF32())
		b.AsyncWait(0)
		b.Barrier()
		other := b.Idx(95).Sub(thread)
		w := b.LoadN(staged.As(ir.U32), 4, other.Mul(4), nil)
		h := b.Load(half, thread.Xor(1))
		fifth := w[0].ReadLane(5)
		b.If(b.Group().Eq(1), func() { b.Store(out, tile.Mul(97).Add(96), fifth) })
		b.Store(out, tile.Mul(97).Add(thread), w[0].Xor(w[1]).Xor(w[2]).Xor(w[3]).Xor(h.As(ir.U32)))
	})
	bt.interpret(t, k.Name, k, interp.Args{Ints: []int64{5}, Buffers: [][]byte{randomWords(r, 5*96*4), make([]byte, 5*97*4)}})

	// Expressions that wait for their use keep the value that they had.
	k = mustBuild(t, "order", 1, func(b *ir.Builder) {
		at := b.Tiles(b.Int("n"), 32).Mul(32).Add(b.Lane())
		m := b.InOut("m", ir.F32)
		acc, uni := b.Reg("acc", ir.F32, 2), b.UniformReg("uni", ir.F32, 1)
		acc.Fill(b.F32(0))
		uni.Set(b.F32(2), 0)
		old, was := b.Load(m, at), acc.At(0)
		b.Store(m, at, old.Mul(float32(3)))
		acc.Set(old.Add(float32(1)), 0)
		acc.Add(old.Sub(acc.At(1)), 0)
		before := acc.At(0)
		b.For(0, 3, 1, func(i *ir.Value) {
			acc.Add(i.FromIndex().ToF32().Mul(uni.At(0)), 0)
			b.IfElse(i.Eq(1), func() { uni.Set(b.F32(5), 0) }, func() { acc.Set(acc.At(0).Add(uni.At(0)), 1) })
		})
		b.Unroll(2, func(i *ir.Value) { acc.Add(before, i) })
		b.Store(m, at, acc.At(0).Add(acc.At(1)).Add(was).Add(b.Load(m, at)).Add(before))
	})
	bt.interpret(t, k.Name, k, interp.Args{Ints: []int64{96}, Buffers: [][]byte{randomWords(r, 96)}})
}

// Emitting twice gives one text.
func TestDeterministic(t *testing.T) {
	b, c := newBatch(), newBatch()
	programTrials(t, b)
	programTrials(t, c)
	for n := range b.kernels {
		if !slices.Equal(b.kernels[n].Text, c.kernels[n].Text) {
			t.Errorf("%s is printed in two ways", b.kernels[n].Symbol)
		}
	}
}

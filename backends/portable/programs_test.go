package portable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
)

// programTrials exercise what joins ops: memory, registers, control flow, lanes that read each other, the grid.
func programTrials(t *testing.T) []trial {
	var out []trial
	r := rand.New(rand.NewPCG(3, 4))
	add := func(k *ir.Kernel, a interp.Args) { out = append(out, trial{k.Name, k, a}) }

	for _, typ := range []ir.Type{ir.I8, ir.U8, ir.I16, ir.F16, ir.BF16, ir.F32, ir.I32} {
		for _, n := range []int{1, 2, 4} {
			k := mustBuild(t, fmt.Sprintf("memory.%s.x%d", typ, n), 16, func(b *ir.Builder) {
				count := b.Int("count")
				tile := b.Tiles(count, 16*n)
				at := tile.Mul(16).Add(b.Lane()).Mul(n)
				x := b.In("range", typ)
				y := b.Out("copy", typ)
				wide := b.Out("wide", typ.Reg())
				in := at.Lt(count)
				v := b.LoadN(x, n, at, in)
				b.StoreN(y, at, in, v...)
				b.StoreN(wide, at, in, v...)
				b.If(tile.Lt(1), func() { b.Store(y, count, v[0].ReadLane(0)) })
			})
			count := 37 * n
			src := words(r, count+1)[:count*typ.Bytes()]
			add(k, interp.Args{Ints: []int64{int64(count)}, Buffers: [][]byte{src, make([]byte, (count+1)*typ.Bytes()), make([]byte, count*4)}})
		}
	}

	k := mustBuild(t, "narrow", 32, func(b *ir.Builder) {
		x := b.In("x", ir.F32)
		at := b.Tiles(b.Int("n"), 32).Mul(32).Add(b.Lane())
		v := b.Load(x, at)
		b.Store(b.Out("f16", ir.F16), at, v)
		b.Store(b.Out("bf16", ir.BF16), at, v)
		b.Store(b.Out("i8", ir.I8), at, v.As(ir.I32))
		b.Store(b.Out("i16", ir.I16), at, b.I32(-300))
		b.Prefetch(x, at.Add(512))
	})
	n := 32 * 64
	add(k, interp.Args{Ints: []int64{int64(n)}, Buffers: [][]byte{words(r, n), make([]byte, 2*n), make([]byte, 2*n), make([]byte, n), make([]byte, 2*n)}})

	for _, lanes := range []int{8, 16, 32} {
		k = mustBuild(t, fmt.Sprintf("lanes%d", lanes), lanes, func(b *ir.Builder) {
			tile := b.Tiles(b.Int("n"), lanes)
			at := tile.Mul(lanes).Add(b.Lane())
			v := b.Load(b.In("x", ir.F32), at)
			w := v.As(ir.I32)
			x := v.ShuffleXor(1).Add(v.ShuffleXor(4)).Mul(v)
			pack := w.Add(w.ShuffleXor(2)).PackLanes4()
			b.Store(b.Out("words", ir.U32), at, pack.As(ir.U32).Xor(x.As(ir.U32)))
			f, i, u := b.Out("f", ir.F32), b.Out("i", ir.I32), b.Out("u", ir.U32)
			b.Store(f, tile.Mul(4), v.FoldAdd())
			b.Store(f, tile.Mul(4).Add(1), v.FoldMax().Add(x.FoldMax()))
			b.Store(f, tile.Mul(4).Add(2), v.ReadLane(3).FoldAdd())
			b.Store(f, tile.Mul(4).Add(3), v.ReadLane(3).FoldMax())
			b.Store(i, tile, w.FoldAdd().Add(w.ReadLane(lanes-1)).Add(w.ReadLane(1).FoldAdd()).Add(w.ReadLane(1).ReadLane(2)))
			b.Store(u, tile.Mul(3), w.As(ir.U32).FoldMax())
			b.Store(u, tile.Mul(3).Add(1), w.ReadLane(1).PackLanes4().As(ir.U32).Add(w.ReadLane(0).ShuffleXor(1).As(ir.U32)))
			b.Store(u, tile.Mul(3).Add(2), b.Lane().FromIndex().As(ir.U32).ShuffleXor(3).FoldMax())
		})
		n = lanes * 9
		add(k, interp.Args{Ints: []int64{int64(n)}, Buffers: [][]byte{words(r, n), make([]byte, 4*n), make([]byte, 9*16), make([]byte, 9*4), make([]byte, 9*12)}})
	}

	k = mustBuild(t, "grid", 8, func(b *ir.Builder) {
		x, y, z := b.Int("ew"), b.Int("y"), b.Int("z")
		tx, ty, tz := b.Tiles(x, 3), b.Tiles(y, 1), b.Tiles(z, 2)
		at := tz.Mul(1000).Add(ty.Mul(100)).Add(tx.Mul(10)).Add(b.Lane())
		b.Store(b.Out("out", ir.I32), at, at.FromIndex().Add(b.Float("unc").As(ir.I32)))
	})
	for _, e := range [][]int64{{7, 5, 4}, {1, 1, 1}, {3, 0, 2}, {9, 1, 5}} {
		add(k, interp.Args{Ints: e, Floats: []float32{1.5}, Buffers: [][]byte{make([]byte, 4*4000)}})
	}
	k = mustBuild(t, "grid.unused", 8, func(b *ir.Builder) {
		tx := b.Tiles(b.Int("x"), 4)
		b.Tiles(b.Int("y"), 1)
		b.Store(b.InOut("out", ir.I32), tx, tx.FromIndex())
	})
	add(k, interp.Args{Ints: []int64{9, 1}, Buffers: [][]byte{make([]byte, 12)}})
	k = mustBuild(t, "no.grid", 8, func(b *ir.Builder) { b.Store(b.Out("out", ir.I32), b.Lane(), b.Lane().FromIndex()) })
	add(k, interp.Args{Buffers: [][]byte{make([]byte, 32)}})

	k = mustBuild(t, "shared", 16, func(b *ir.Builder) {
		at := b.Tiles(b.Int("n"), 16).Mul(16).Add(b.Lane())
		s := b.Shared("s", ir.U32, 16)
		q := b.Shared("q", ir.I16, 5)
		b.Store(s, b.Lane(), b.Load(b.In("x", ir.U32), at))
		b.Store(q, 3, b.I32(-7))
		b.Barrier()
		v := b.Load(s, b.Lane().Xor(5)).Add(b.Load(s, 7)).Add(b.Load(q, 3).As(ir.U32))
		b.Barrier()
		b.Store(s, b.Lane(), v)
		b.Barrier()
		b.Store(b.Out("out", ir.U32), at, b.Load(s, b.Lane().Mul(3).Mod(16)).Xor(b.Load(s, b.Lane().Div(3)).Add(b.Group().FromIndex().As(ir.U32))))
	})
	add(k, interp.Args{Ints: []int64{80}, Buffers: [][]byte{words(r, 80), make([]byte, 320)}})

	// Registers: rolled and unrolled loops, elements addressed by a variable, uniform tiles, branches.
	for _, m := range []int{2, 12} {
		k = mustBuild(t, fmt.Sprintf("registers%d", m), 16, func(b *ir.Builder) {
			n := b.Int("n")
			x, y := b.In("x", ir.F32), b.In("y", ir.F32)
			out := b.InOut("out", ir.F32)
			lane := b.Lane()
			acc := b.Reg("acc", ir.F32, m, 2)
			tmp := b.Reg("tmp", ir.F32, 1)
			uni := b.UniformReg("uni", ir.F32, m)
			acc.Fill(b.F32(0))
			uni.Fill(b.F32(2))
			b.For(0, n, 3, func(i *ir.Value) {
				v := b.LoadN(x, 4, i.Mul(64).Add(lane.Mul(4)), nil)
				b.Unroll(m, func(j *ir.Value) {
					u := b.Load(y, i.Mul(m).Add(j))
					tmp.Set(v[0], 0)
					b.Unroll(3, func(g *ir.Value) { tmp.Set(tmp.At(0).Mul(u).Add(v[1].Mul(v[2])), 0) })
					acc.Add(tmp.At(0), j, 0)
					acc.Add(v[3], j, 1)
					uni.Add(u, j)
					b.IfElse(u.Lt(float32(0)), func() { acc.Set(acc.At(j, 0).Sub(acc.At(0, 1)), j, 0) }, func() { uni.Set(u, j) })
					b.IfElse(j.Lt(1), func() { acc.Add(u, j, 1) }, func() { acc.Add(acc.At(j.Sub(1), 0), j, 1) })
				})
			})
			b.Unroll(m, func(j *ir.Value) {
				b.Store(out, j.Mul(16).Add(lane), acc.At(j, 0).Add(uni.At(j)).Mul(acc.At(j, 1)))
			})
		})
		add(k, interp.Args{Ints: []int64{10}, Buffers: [][]byte{words(r, 640), words(r, 10*m), make([]byte, 64*m)}})
	}

	// A value set uniformly, read and stored without the lane's number.
	k = mustBuild(t, "no.lane", 8, func(b *ir.Builder) {
		reg := b.Reg("r", ir.I32, 1)
		reg.Set(b.Int("n").FromIndex(), 0)
		b.Store(b.Out("out", ir.I32), b.Lane(), reg.At(0))
	})
	add(k, interp.Args{Ints: []int64{-9}, Buffers: [][]byte{make([]byte, 32)}})
	return out
}

// randomTrials are random programs over registers, a shared array, loops, branches and exchanges between lanes.
func randomTrials(t *testing.T, count int) []trial {
	var out []trial
	for seed := range count {
		r := rand.New(rand.NewPCG(uint64(seed), 99))
		lanes := []int{8, 16, 32}[seed%3]
		k := mustBuild(t, fmt.Sprintf("random%d", seed), lanes, func(b *ir.Builder) { randomProgram(b, r, lanes) })
		out = append(out, trial{k.Name, k, interp.Args{
			Ints:    []int64{2, int64(r.IntN(4))},
			Floats:  []float32{1.25},
			Buffers: [][]byte{words(r, 4096), make([]byte, 4*2*8*lanes)},
		}})
	}
	return out
}

func randomProgram(b *ir.Builder, r *rand.Rand, lanes int) {
	tile, n := b.Tiles(b.Int("n"), 1), b.Int("m")
	in, out := b.In("x", ir.U32), b.InOut("out", ir.U32)
	lane := b.Lane()
	s := b.Shared("s", ir.U32, lanes)
	reg := b.Reg("reg", ir.U32, 4)
	uni := b.UniformReg("uni", ir.U32, 3)
	reg.Fill(b.U32(5))
	b.Unroll(3, func(i *ir.Value) { uni.Set(b.Load(in, i.Add(tile)), i) })
	b.Store(s, lane, b.Load(in, lane))

	f := b.Float("f")
	vary := []*ir.Value{b.Load(in, tile.Mul(7).Add(lane)), lane.FromIndex().As(ir.U32)}
	same := []*ir.Value{b.Load(in, tile), tile.FromIndex().As(ir.U32), f.As(ir.U32)}
	index := []*ir.Value{tile, b.Idx(3), n}
	var body func(depth int)
	pick := func(l []*ir.Value) *ir.Value { return l[max(r.IntN(len(l)), r.IntN(len(l)))] }
	any := func() *ir.Value {
		if r.IntN(3) == 0 {
			return pick(same)
		}
		return pick(vary)
	}
	element := func() *ir.Value { return pick(index).And(1).Add(r.IntN(2)) }
	mix := func(x, y *ir.Value) *ir.Value {
		switch r.IntN(6) {
		case 0:
			return x.Add(y)
		case 1:
			return x.Xor(y.Shl(r.IntN(34)))
		case 2:
			return x.Lt(y).Select(x.Add(1), y)
		case 3:
			return x.As(ir.F32).Mul(y.As(ir.F32)).Add(x.As(ir.F32)).As(ir.U32).And(0x7F7FFFFF)
		case 4:
			return b.Dot4US(x.As(ir.U8x4), y.As(ir.I8x4), x.As(ir.I32), 255).As(ir.U32)
		}
		return x.Max(y)
	}
	statement := func(depth int) {
		switch r.IntN(14) {
		case 0, 1, 2:
			vary = append(vary, mix(pick(vary), any()))
		case 3:
			same = append(same, mix(pick(same), pick(same)))
		case 4:
			vary = append(vary, pick(vary).ShuffleXor(1+r.IntN(lanes-1)))
		case 5:
			vary = append(vary, pick(vary).As(ir.I32).PackLanes4().As(ir.U32))
		case 6:
			same = append(same, pick(vary).FoldMax(), pick(vary).As(ir.I32).FoldAdd().As(ir.U32), pick(vary).ReadLane(r.IntN(lanes)))
		case 7:
			reg.Set(any(), element())
		case 8:
			vary = append(vary, reg.At(element()))
		case 9:
			uni.Set(pick(same), element())
			same = append(same, uni.At(element()))
		case 10: // gather and masked gather
			at := pick(vary).And(511).As(ir.I32).ToIndex()
			vary = append(vary, b.Load(in, at.Add(r.IntN(5))), b.LoadMasked(in, at, pick(vary).Lt(pick(same))))
		case 11:
			b.Barrier()
			vary = append(vary, b.Load(s, lane.Xor(r.IntN(lanes))))
			same = append(same, b.Load(s, r.IntN(lanes)))
			b.Barrier()
			b.StoreMasked(s, lane, pick(vary), any().And(1).Eq(1))
			b.Barrier()
		case 12:
			at := tile.Mul(8).Add(r.IntN(8)).Mul(lanes).Add(lane)
			b.Store(out, at, mix(b.Load(out, at), any()))
		case 13:
			if depth > 2 {
				return
			}
			v, u, x := len(vary), len(same), len(index)
			scope := func() { vary, same, index = vary[:v:v], same[:u:u], index[:x:x] }
			switch r.IntN(3) {
			case 0:
				b.For(r.IntN(2), pick(index).And(3), 1+r.IntN(2), func(i *ir.Value) { index = append(index, i); body(depth + 1) })
			case 1:
				b.Unroll(1+r.IntN(4), func(i *ir.Value) { index = append(index, i); body(depth + 1) })
			default:
				b.IfElse(pick(same).Lt(pick(same)), func() { body(depth + 1) }, func() { scope(); body(depth + 1) })
			}
			scope()
		}
	}
	body = func(depth int) {
		for range 2 + r.IntN(10) {
			statement(depth)
		}
	}
	for range 4 {
		body(0)
	}
	for j := range 4 {
		at := tile.Mul(8).Add(j).Mul(lanes).Add(lane)
		b.Store(out, at, b.Load(out, at).Add(reg.At(j)).Add(pick(vary)).Xor(pick(same)))
	}
}

package ptx

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
)

// trial is a kernel with arguments.
type trial struct {
	kernel *ir.Kernel
	args   interp.Args
}

var extremes = []uint32{0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF,
	0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F812345, 0x7FFFFFFF, 0xFFFFFFFF, 0x33000000, 0x33000001, 0x477FF000, 0x477FEFFF,
	0x38800000, 0x387FFFFF, 0x3F808000, 0x3F818000, 0x80808080, 0x7F7F7F7F}

// words makes n words, extremes often; f changes each.
func words(r *rand.Rand, n int, f func(uint32) uint32) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		w := r.Uint32()
		if r.IntN(3) == 0 {
			w = extremes[r.IntN(len(extremes))]
		}
		if f != nil {
			w = f(w)
		}
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	return b
}

// short leaves a float 10 significant bits and no extreme exponent.
func short(w uint32) uint32 { return w&0x8FFFC000 | 0x30000000 }

// below128 takes −128 out of four signed bytes.
func below128(w uint32) uint32 {
	for b := 0; b < 32; b += 8 {
		if w>>b&0xFF == 0x80 {
			w ^= 1 << b
		}
	}
	return w
}

// lanewise is an op, or a few, applied to three words.
type lanewise struct {
	name string
	f    func(b *ir.Builder, x, y, z *ir.Value) *ir.Value
	fix  func(uint32) uint32 // makes words that the op may have
}

func floats(f func(x, y *ir.Value) *ir.Value) func(b *ir.Builder, x, y, z *ir.Value) *ir.Value {
	return func(_ *ir.Builder, x, y, _ *ir.Value) *ir.Value { return f(x.As(ir.F32), y.As(ir.F32)) }
}

func integers(f func(x, y *ir.Value) *ir.Value) func(b *ir.Builder, x, y, z *ir.Value) *ir.Value {
	return func(_ *ir.Builder, x, y, _ *ir.Value) *ir.Value { return f(x.As(ir.I32), y.As(ir.I32)) }
}

func unsigned(f func(x, y *ir.Value) *ir.Value) func(b *ir.Builder, x, y, z *ir.Value) *ir.Value {
	return func(_ *ir.Builder, x, y, _ *ir.Value) *ir.Value { return f(x, y) }
}

// indices gives f numbers that are not negative, the second positive.
func indices(f func(x, y *ir.Value) *ir.Value) func(b *ir.Builder, x, y, z *ir.Value) *ir.Value {
	return func(_ *ir.Builder, x, y, _ *ir.Value) *ir.Value {
		wide := func(v *ir.Value) *ir.Value { return v.And(0x7FFFFFFF).As(ir.I32).ToIndex() }
		return f(wide(x), wide(y.And(0xFFFF)).Add(1))
	}
}

func allForms() []lanewise {
	table := [16]byte{}
	for n := range table {
		table[n] = byte(n*n*7 + 200)
	}
	v := func(x *ir.Value) *ir.Value { return x }
	both := func(x, y *ir.Value) *ir.Value { return x.FromIndex().Xor(y.FromIndex().Mul(3)) }
	return []lanewise{
		{"addf", floats(func(x, y *ir.Value) *ir.Value { return x.Add(y) }), nil},
		{"subf", floats(func(x, y *ir.Value) *ir.Value { return x.Sub(y) }), nil},
		{"mulf", floats(func(x, y *ir.Value) *ir.Value { return x.Mul(y) }), nil},
		{"mulsub", floats(func(x, y *ir.Value) *ir.Value { return x.Mul(y).Add(x).Sub(y.Mul(y)) }), nil},
		{"ltf", floats(func(x, y *ir.Value) *ir.Value { return x.Lt(y).Select(x, y) }), nil},
		{"lef", floats(func(x, y *ir.Value) *ir.Value { return x.Le(y).Select(x, y) }), nil},
		{"eqf", floats(func(x, y *ir.Value) *ir.Value { return x.Eq(y).Not().Select(x, y) }), nil},
		{"bools", floats(func(x, y *ir.Value) *ir.Value {
			a, b := x.Lt(y), x.Lt(float32(1))
			return a.AndB(b).OrB(a.OrB(b).Not()).Select(x, y)
		}), nil},
		{"fma", func(b *ir.Builder, x, y, z *ir.Value) *ir.Value {
			return b.FMAExact(x.As(ir.F32), y.As(ir.F32), z.As(ir.F32))
		}, short},
		{"tofloat", integers(func(x, y *ir.Value) *ir.Value { return x.Shr(8).ToF32().Add(y.And(0xFFFFFF).ToF32()) }), nil},
		{"addi", integers(func(x, y *ir.Value) *ir.Value { return x.Add(y).Sub(y.Mul(x)).Sub(7) }), nil},
		{"bits", integers(func(x, y *ir.Value) *ir.Value { return x.And(y).Xor(x.Or(y).Mul(5)).Xor(-9) }), nil},
		{"minmaxi", integers(func(x, y *ir.Value) *ir.Value { return x.Min(y).Xor(x.Max(y).Mul(3)).Max(-100) }), nil},
		{"maxu", unsigned(func(x, y *ir.Value) *ir.Value { return x.Max(y).Max(0x80000000) }), nil},
		{"lti", integers(func(x, y *ir.Value) *ir.Value { return x.Lt(y).Select(x, y) }), nil},
		{"ltu", unsigned(func(x, y *ir.Value) *ir.Value { return x.Lt(y).Select(x, y) }), nil},
		{"eqi", unsigned(func(x, y *ir.Value) *ir.Value { return x.And(3).Eq(y.And(3)).Select(x, y) }), nil},
		{"shifti", integers(func(x, y *ir.Value) *ir.Value {
			s := x.Shr(y.And(63)).Xor(x.Shl(y.And(63)))
			for _, n := range []int{0, 1, 31, 32, 200} {
				s = s.Mul(3).Xor(x.Shr(n)).Xor(y.Shl(n))
			}
			return s
		}), nil},
		{"shiftu", unsigned(func(x, y *ir.Value) *ir.Value {
			s := x.Shr(y.And(63)).Xor(x.Shl(y)).Xor(y.Shr(x))
			for _, n := range []int{0, 1, 31, 32, 200} {
				s = s.Mul(3).Xor(x.Shr(n)).Xor(y.Shl(n))
			}
			return s
		}), nil},
		{"dotus", func(b *ir.Builder, x, y, z *ir.Value) *ir.Value {
			return b.Dot4US(x.As(ir.U8x4), y.As(ir.I8x4), z.As(ir.I32), 255)
		}, nil},
		{"dotss", func(b *ir.Builder, x, y, z *ir.Value) *ir.Value {
			return b.Dot4SS(x.As(ir.I8x4), y.As(ir.I8x4), z.As(ir.I32))
		}, below128},
		{"lookup", func(b *ir.Builder, x, y, _ *ir.Value) *ir.Value {
			low := func(w *ir.Value) *ir.Value { return b.Lookup16(w.And(0x0F0F0F0F).As(ir.U8x4), table).As(ir.U32) }
			return low(x).Xor(low(y.Shr(4)).Mul(3))
		}, nil},
		{"casts", func(_ *ir.Builder, x, y, _ *ir.Value) *ir.Value {
			return x.As(ir.I8x4).As(ir.F32).Mul(y.As(ir.F32)).As(ir.U8x4).As(ir.U32).Xor(x).As(ir.F32)
		}, short},
		{"indices", indices(func(x, y *ir.Value) *ir.Value {
			s := both(x.Add(y), x.Sub(y)).Xor(both(x.Mul(y), x.Div(y))).Mul(3)
			return s.Xor(both(x.Mod(y), x.Min(y))).Mul(3).Xor(both(x.Max(y), x.Xor(y))).Xor(both(x.And(y), x.And(0xFF0)))
		}), nil},
		{"constindices", indices(func(x, y *ir.Value) *ir.Value {
			s := both(x.Mul(8), x.Mul(12)).Xor(both(x.Div(16), x.Div(7))).Mul(3)
			s = s.Xor(both(x.Mod(16), x.Mod(7))).Mul(3).Xor(both(x.Shl(5), x.Shr(5))).Mul(3)
			return s.Xor(both(x.Sub(y).Add(5), y.Sub(x).Add(-5))).Xor(both(v(x).Add(1<<40).Shr(20), x.Mul(-3)))
		}), nil},
		{"indexshifts", indices(func(x, y *ir.Value) *ir.Value { return both(x.Shr(y.Mod(8)), y.Shl(x.Mod(8))) }), nil},
		{"indexcompares", indices(func(x, y *ir.Value) *ir.Value {
			return x.Lt(y.Mul(9999)).AndB(x.Le(y.Mul(8888))).OrB(x.Mod(4).Eq(y.Mod(4))).OrB(y.Lt(7)).Select(x.FromIndex(), y.FromIndex())
		}), nil},
		{"packlanes", integers(func(x, y *ir.Value) *ir.Value {
			return x.PackLanes4().As(ir.U32).Xor(y.PackLanes4().As(ir.U32).Mul(3))
		}), nil},
		{"shuffles", unsigned(func(x, y *ir.Value) *ir.Value {
			s := x
			for _, n := range []int{1, 2, 5, 16, 31} {
				s = s.Mul(3).Xor(x.ShuffleXor(n)).Xor(y.ReadLane(n))
			}
			return s
		}), nil},
		{"foldaddf", floats(func(x, y *ir.Value) *ir.Value { return x.Mul(float32(0.125)).FoldAdd().Add(y.FoldAdd()) }), func(w uint32) uint32 { return w&0xBFFFFFFF | 0x30000000 }},
		{"foldaddi", integers(func(x, y *ir.Value) *ir.Value { return x.FoldAdd().Mul(3).Xor(y.FoldAdd()) }), nil},
		{"foldmaxu", unsigned(func(x, y *ir.Value) *ir.Value { return x.FoldMax().Sub(y.FoldMax().Mul(3)) }), nil},
		{"foldmaxf", floats(func(x, y *ir.Value) *ir.Value { return x.FoldMax().Le(y.FoldMax()).Select(x.FoldMax(), y.FoldMax()) }), nil},
	}
}

// formTrials applies each form to mixes of varying, uniform and constant operands.
func formTrials(t *testing.T) []trial {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	const modes, tiles = 6, 6
	var list []trial
	for _, f := range allForms() {
		k := build(t, f.name, 1, func(b *ir.Builder) {
			n := b.Int("n")
			tile := b.Tiles(n, 1)
			var mems [3]ir.Memory
			for i, name := range []string{"x", "y", "z"} {
				mems[i] = b.In(name, ir.U32)
			}
			var out ir.Memory
			for mode, how := range []string{"vvv", "vuv", "uvv", "uuu", "vcc", "cvv"} {
				var v [3]*ir.Value
				for i := range v {
					at := tile.Mul(32)
					if how[i] == 'v' {
						at = at.Add(b.Lane())
					}
					if v[i] = b.Load(mems[i], at); how[i] == 'c' {
						c := uint32(0x40490000 + i)
						if f.fix != nil {
							c = f.fix(c)
						}
						v[i] = b.U32(c)
					}
				}
				w := f.f(b, v[0], v[1], v[2])
				if mode == 0 {
					out = b.Out("out", w.Type)
				}
				b.Store(out, tile.Mul(modes).Add(mode).Mul(32).Add(b.Lane()), w)
			}
		})
		a := interp.Args{Ints: []int64{tiles}}
		for range 3 {
			a.Buffers = append(a.Buffers, words(r, 32*tiles, f.fix))
		}
		a.Buffers = append(a.Buffers, make([]byte, 4*32*tiles*modes))
		list = append(list, trial{k, a})
	}
	return list
}

// storageTrials load and store every type, one, two and four at once, aligned and not, masked, uniform, through global and
// through shared memory.
func storageTrials(t *testing.T) []trial {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	const tiles = 5
	var list []trial
	for _, typ := range []ir.Type{ir.I8, ir.U8, ir.I16, ir.F16, ir.BF16, ir.F32, ir.U32} {
		for _, width := range []int{1, 2, 4} {
			for _, through := range []bool{false, true} {
				k := build(t, "storage_"+typ.String(), 1, func(b *ir.Builder) {
					n := b.Int("n")
					tile := b.Tiles(n, 1)
					// Both store what they load: as it is, and moved by one element, which no vector can do.
					in, out, odd, uniform := b.In("in", typ), b.Out("out", typ), b.Out("odd", typ), b.Out("uniform", typ)
					raw := b.Out("raw", typ.Reg())
					at := tile.Mul(32 * width).Add(b.Lane().Mul(width))
					mask := b.Lane().Lt(tile.Mul(9).Add(2))
					v := b.LoadN(in, width, at, nil)
					if through {
						s := b.Shared("s", typ, 32*width+8)
						b.StoreN(s, b.Lane().Mul(width), nil, v...)
						b.Barrier()
						v = b.LoadN(s, width, b.Lane().Mul(width), nil)
					}
					m := b.LoadN(in, width, at.Add(1), mask)
					for i := range v {
						b.Store(raw, at.Add(i), v[i])
					}
					b.StoreN(out, at, b.Lane().Xor(1).Lt(30), v...)
					b.StoreN(odd, at.Add(1), mask, m...)
					u := b.LoadN(in, width, tile.Mul(width), tile.Lt(3))
					b.StoreN(uniform, tile.Mul(width), tile.Lt(4), u...)
				})
				size := (32*width*tiles + 1) * typ.Bytes()
				in := words(r, (size+67)/4, nil)
				a := interp.Args{Ints: []int64{tiles}, Buffers: [][]byte{in, make([]byte, size), make([]byte, size), make([]byte, tiles*width*typ.Bytes()), make([]byte, 4*32*width*tiles)}}
				list = append(list, trial{k, a})
			}
		}
	}
	// Rounding to short floats.
	for _, typ := range []ir.Type{ir.F16, ir.BF16} {
		k := build(t, "round_"+typ.String(), 1, func(b *ir.Builder) {
			at := b.Tiles(b.Int("n"), 32).Mul(32).Add(b.Lane())
			b.Store(b.Out("out", typ), at, b.Load(b.In("in", ir.F32), at))
		})
		const n = 64 * 32
		in := words(r, n, func(w uint32) uint32 {
			if r.IntN(2) == 0 { // near the numbers that are halfway
				w = w&^0x1FFF | uint32(0x1000+r.IntN(3)-1)
			}
			if r.IntN(2) == 0 {
				w = w&0x87FFFFFF | 0x38000000
			}
			return w
		})
		list = append(list, trial{k, interp.Args{Ints: []int64{n}, Buffers: [][]byte{make([]byte, 2*n), in}}})
	}
	return list
}

// tileTrials read elements of register tiles whose value then changes: a read is a name for the element's register only while
// it lasts.
func tileTrials(t *testing.T) []trial {
	t.Helper()
	var list []trial
	add := func(name string, f func(b *ir.Builder, x ir.Memory, put func(v *ir.Value))) {
		k := build(t, name, 1, func(b *ir.Builder) {
			n, x, out := b.Int("n"), b.In("x", ir.I32), b.Out("out", ir.I32)
			tile, stored := b.Tiles(n, 1), 0
			f(b, x, func(v *ir.Value) {
				b.Store(out, tile.Mul(8).Add(stored).Mul(32).Add(b.Lane()), v)
				stored++
			})
		})
		list = append(list, trial{k, interp.Args{Ints: []int64{2}, Buffers: [][]byte{words(rand.New(rand.NewPCG(1, 1)), 64, nil), make([]byte, 4*2*8*32)}}})
	}
	add("used_in_a_loop", func(b *ir.Builder, x ir.Memory, put func(v *ir.Value)) {
		r, sum := b.Reg("r", ir.I32, 1), b.Reg("sum", ir.I32, 1)
		r.Set(b.Load(x, b.Lane()), 0)
		sum.Set(b.I32(1), 0)
		v := r.At(0)
		b.For(0, 3, 1, func(i *ir.Value) {
			sum.Set(sum.At(0).Mul(3).Add(v), 0)
			r.Set(v.Mul(7).Add(i.FromIndex()), 0)
		})
		put(sum.At(0))
		put(r.At(0))
	})
	add("used_in_a_branch", func(b *ir.Builder, x ir.Memory, put func(v *ir.Value)) {
		r := b.Reg("r", ir.I32, 2)
		r.Set(b.Load(x, b.Lane()), 0)
		v := r.At(0)
		b.IfElse(b.Load(x, 3).Lt(b.I32(0)), func() { r.Set(b.I32(5), 0); r.Set(v.Add(1), 1) }, func() { r.Set(v.Add(2), 1); r.Set(v.Mul(9), 0) })
		put(r.At(0))
		put(r.At(1))
	})
	add("used_after_the_next_value", func(b *ir.Builder, x ir.Memory, put func(v *ir.Value)) {
		r := b.Reg("r", ir.I32, 1)
		r.Set(b.Load(x, b.Lane()), 0)
		v := r.At(0)
		w := v.Mul(3)
		put(v.Add(1))
		r.Set(w, 0)
		put(r.At(0))
	})
	add("cast_and_kept", func(b *ir.Builder, x ir.Memory, put func(v *ir.Value)) {
		r := b.Reg("r", ir.I32, 1)
		r.Set(b.Load(x, b.Lane()), 0)
		v := r.At(0).As(ir.U32)
		r.Set(b.Load(x, b.Lane().Add(1)), 0)
		put(v.Shr(3).As(ir.I32))
		put(r.At(0))
	})
	add("exchanged", func(b *ir.Builder, x ir.Memory, put func(v *ir.Value)) {
		r := b.Reg("r", ir.I32, 2)
		r.Set(b.Load(x, b.Lane()), 0)
		r.Set(b.Load(x, b.Lane().Add(32)), 1)
		b.For(0, 3, 1, func(*ir.Value) {
			v, w := r.At(0), r.At(1)
			r.Set(w, 0)
			r.Set(v, 1)
		})
		put(r.At(0))
		put(r.At(1))
	})
	add("stored_twice", func(b *ir.Builder, x ir.Memory, put func(v *ir.Value)) {
		r := b.Reg("r", ir.I32, 3)
		v := b.Load(x, b.Lane())
		w := v.Add(5)
		r.Set(w, 0)
		r.Set(w, 1)
		r.Set(r.At(0).Mul(2), 0)
		r.Set(r.At(1).Add(r.At(0)), 2)
		put(r.At(0))
		put(r.At(1))
		put(r.At(2))
	})
	return list
}

// matrixTrials use copies, matrices and their coordinates.
func matrixTrials(t *testing.T, arch string) []trial {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	var list []trial
	for _, atom := range Caps(arch).Atoms {
		for groups := 1; groups <= 3; groups++ {
			k := build(t, "product", groups, func(b *ir.Builder) { product(b, atom, groups) })
			const tiles = 3
			operand := words(r, 16*8*tiles*groups, nil)
			a := interp.Args{Ints: []int64{tiles}, Buffers: [][]byte{operand, words(r, 16*8*tiles*groups, nil), make([]byte, 4*atom.M*atom.N*tiles*groups), make([]byte, 4*32*7*tiles*groups)}}
			list = append(list, trial{k, a})
		}
	}
	return list
}

// product multiplies matrices of 16 rows of 32 bytes as the atom wants them, one product for each group, and stores the
// coordinates of what each lane holds, and what ldmatrix loads.
func product(b *ir.Builder, atom *ir.Atom, groups int) {
	x, y, out, loaded := b.In("x", ir.I8x4), b.In("y", ir.U32), b.Out("out", ir.I32), b.Out("loaded", ir.I8x4)
	tile := b.Tiles(b.Int("n"), 1)
	s := b.Shared("s", ir.I8x4, 2*128*groups)
	lane, group := b.Lane(), b.Group()
	mine := tile.Mul(groups).Add(group)
	mem := group.Mul(256)
	b.AsyncCopy(s, mem.Add(lane.Mul(4)), x, mine.Mul(128).Add(lane.Mul(4)), nil)
	b.AsyncCommit()
	b.AsyncCopy(s, mem.Add(lane.Mul(4)).Add(128), y.As(ir.I8x4), mine.Mul(128).Add(lane.Mul(4)), lane.Lt(mine.Add(20)))
	b.AsyncCommit()
	b.AsyncWait(0)
	b.Barrier()
	var w []*ir.Value
	for _, n := range []int{1, 2, 4} {
		// Lanes whose address is not used have one that is outside of the array.
		w = append(w, b.LdMatrix(s, n, mem.Add(lane.Mul(4)).Add(4*n).Add(lane.Div(8*n).Mul(1<<20)))...)
	}
	for n, v := range w {
		b.Store(loaded, mine.Mul(7*32).Add(32*n).Add(lane), v)
	}
	const rowWords = 8
	var a, bb, c []*ir.Value
	for reg := range atom.A.Regs {
		row, k := coordinate(b, atom.A, reg)
		a = append(a, b.Load(s, mem.Add(row.Mul(rowWords)).Add(k.Div(4))))
	}
	for reg := range atom.B.Regs {
		k, col := coordinate(b, atom.B, reg)
		bb = append(bb, b.Load(s, mem.Add(col.Mul(rowWords)).Add(k.Div(4)).Add(128)))
	}
	for reg := range atom.C.Regs {
		row, col := b.FragCoord(atom, reg)
		c = append(c, row.Mul(100).Add(col).FromIndex())
	}
	d := b.MMA(atom, a, bb, c)
	for reg, v := range d {
		row, col := b.FragCoord(atom, reg)
		b.Store(out, mine.Mul(atom.M*atom.N).Add(row.Mul(atom.N)).Add(col), v)
	}
}

// coordinate computes the coordinate of a lane's register by its bits, as those of all atoms of ir/target can be.
func coordinate(b *ir.Builder, f ir.Fragment, reg int) (*ir.Value, *ir.Value) {
	r0, c0 := f.Coord(0, reg, 0)
	row, col := b.Idx(r0), b.Idx(c0)
	for bit := range 5 {
		r, c := f.Coord(1<<bit, reg, 0)
		on := b.Lane().Shr(bit).And(1)
		row, col = row.Add(on.Mul(r-r0)), col.Add(on.Mul(c-c0))
	}
	return row, col
}

package avx

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
)

// scene is a kernel with its arguments.
type scene struct {
	name  string
	lanes []int
	build func(b *ir.Builder)
	args  func(r *rand.Rand, lanes int) interp.Args
}

var allLanes = []int{8, 16, 32}

// addScenes builds the scenes' kernels and adds each with a few sets of arguments.
func (p *program) addScenes(t *testing.T, scenes []scene) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range scenes {
		for _, lanes := range s.lanes {
			k, err := ir.Build(s.name, lanes, 1, s.build)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				args := s.args(r, lanes)
				for _, arch := range supported() {
					p.add(t, k, arch, args)
				}
			}
		}
	}
}

var storage = []ir.Type{ir.F32, ir.I32, ir.U32, ir.I8x4, ir.I8, ir.U8, ir.I16, ir.F16, ir.BF16}

// patternOf suits values that pass through a storage type.
func patternOf(t ir.Type) pattern {
	if t == ir.F32 {
		return floats
	}
	return anyWord
}

func memoryScenes() []scene {
	var scenes []scene
	add := func(name string, build func(b *ir.Builder), args func(r *rand.Rand, lanes int) interp.Args) {
		scenes = append(scenes, scene{name, allLanes, build, args})
	}
	for _, ty := range storage {
		// Contiguous, masked at the ragged end, both ways.
		add("tail_"+ty.String(), func(b *ir.Builder) {
			n := b.Int("n")
			tile := b.Tiles(n, b.Lanes())
			in, out, wide := b.In("in", ty), b.Out("out", ty), b.Out("wide", ty.Reg())
			i := tile.Mul(b.Lanes()).Add(b.Lane())
			v := b.LoadMasked(in, i, i.Lt(n))
			b.StoreMasked(out, i, v, i.Lt(n))
			b.Store(wide, i, v)
		}, func(r *rand.Rand, lanes int) interp.Args {
			n := 1 + r.IntN(3*lanes)
			full := (n + lanes - 1) / lanes * lanes
			return interp.Args{Ints: []int64{int64(n)}, Buffers: [][]byte{fill(r, ty, n, patternOf(ty)), make([]byte, n*ty.Bytes()), make([]byte, full*4)}}
		})
		// Conversion by a store of any word.
		add("narrow_"+ty.String(), func(b *ir.Builder) {
			n := b.Int("n")
			tile := b.Tiles(n, b.Lanes())
			in, out := b.In("in", ty.Reg()), b.Out("out", ty)
			one := b.Out("one", ty)
			i := tile.Mul(b.Lanes()).Add(b.Lane())
			b.Store(out, i, b.Load(in, i))
			b.Store(one, tile, b.Load(in, tile.Mul(b.Lanes()).Add(3)))
		}, func(r *rand.Rand, lanes int) interp.Args {
			n := 4 * lanes
			return interp.Args{Ints: []int64{int64(n)}, Buffers: [][]byte{fill(r, ty.Reg(), n, patternOf(ty.Reg())), make([]byte, n*ty.Bytes()), make([]byte, 4*ty.Bytes())}}
		})
		// Uniform loads, two and four elements, uniform masks.
		add("uniform_"+ty.String(), func(b *ir.Builder) {
			n := b.Int("n")
			tile := b.Tiles(n, 1)
			in, out := b.In("in", ty), b.Out("out", ty.Reg())
			vs := b.LoadN(in, 4, tile.Mul(4), nil)
			vs = append(vs, b.LoadN(in, 2, tile.Mul(4).Add(1), tile.Lt(2))...)
			for j, v := range vs {
				b.Store(out, tile.Mul(8).Add(j).Mul(b.Lanes()).Add(b.Lane()), v)
			}
			b.StoreN(out, tile.Mul(8).Add(6).Mul(b.Lanes()), nil, vs[1], vs[2])
			b.StoreN(out, tile.Mul(8).Add(7).Mul(b.Lanes()), tile.Eq(1), vs[0], vs[1], vs[2], vs[3])
		}, func(r *rand.Rand, lanes int) interp.Args {
			const n = 4
			return interp.Args{Ints: []int64{n}, Buffers: [][]byte{fill(r, ty, 4*n, patternOf(ty)), make([]byte, n*8*lanes*4)}}
		})
		// Strided, gathered and scattered elements, with and without masks.
		add("gather_"+ty.String(), func(b *ir.Builder) {
			n := b.Int("n")
			tile := b.Tiles(n, 1)
			in, idx, out := b.In("in", ty), b.In("idx", ir.I32), b.Out("out", ty)
			wide := b.Out("wide", ty.Reg())
			l := b.Lanes()
			x := b.Load(idx, tile.Mul(l).Add(b.Lane())).ToIndex()
			even := x.And(1).Eq(0)
			perm := b.Lane().Xor(5).Mul(4) // a permutation of the lanes, four elements each
			j := 0
			store := func(v *ir.Value) {
				b.Store(wide, tile.Mul(6).Add(j).Mul(l).Add(b.Lane()), v)
				j++
			}
			for _, v := range b.LoadN(in, 2, b.Lane().Mul(2), nil) {
				store(v)
			}
			store(b.LoadMasked(in, tile, even))
			a := b.Load(in, x)
			store(a)
			c := b.LoadMasked(in, x.Add(1), even)
			store(c)
			b.StoreN(out, tile.Mul(4*l).Add(perm), nil, a, c)
			d := b.Load(in, b.Lane().Mul(3).Add(tile))
			store(d)
			b.StoreMasked(out, tile.Mul(4*l).Add(2).Add(perm), d, even)
		}, func(r *rand.Rand, lanes int) interp.Args {
			const n = 3
			return interp.Args{Ints: []int64{n}, Buffers: [][]byte{fill(r, ty, 64*3, patternOf(ty)), fill(r, ir.I32, n*lanes, below(64*3-1)),
				make([]byte, n*4*lanes*ty.Bytes()), make([]byte, n*6*lanes*4)}}
		})
	}
	// An element at the very end of a buffer that fills its last 64 bytes.
	for _, ty := range []ir.Type{ir.U8, ir.F16} {
		add("last_"+ty.String(), func(b *ir.Builder) {
			n := b.Int("n")
			b.Tiles(n, 64)
			in, idx, out := b.In("in", ty), b.In("idx", ir.I32), b.Out("out", ty.Reg())
			x := b.Load(idx, b.Lane()).ToIndex()
			b.Store(out, b.Lane(), b.Load(in, x.Add(n).Sub(64)))
		}, func(r *rand.Rand, lanes int) interp.Args {
			last := func(r *rand.Rand, _ int) uint32 { return 63 - uint32(r.IntN(3)) }
			return interp.Args{Ints: []int64{64}, Buffers: [][]byte{fill(r, ty, 64, floats), fill(r, ir.I32, lanes, last), make([]byte, 4*lanes)}}
		})
	}
	return scenes
}

func crossLaneScenes() []scene {
	var scenes []scene
	one := func(name string, in, out ir.Type, p pattern, per int, f func(b *ir.Builder, v *ir.Value, store func(*ir.Value))) {
		scenes = append(scenes, scene{name, allLanes, func(b *ir.Builder) {
			n := b.Int("n")
			tile := b.Tiles(n, 1)
			src, dst := b.In("in", in), b.Out("out", out)
			i := tile.Mul(b.Lanes()).Add(b.Lane())
			j := 0
			f(b, b.Load(src, i), func(v *ir.Value) {
				b.Store(dst, tile.Mul(per).Add(j).Mul(b.Lanes()).Add(b.Lane()), v)
				j++
			})
		}, func(r *rand.Rand, lanes int) interp.Args {
			const n = 5
			return interp.Args{Ints: []int64{n}, Buffers: [][]byte{fill(r, in, n*lanes, p), make([]byte, n*per*lanes*4)}}
		}})
	}
	one("shuffle", ir.U32, ir.U32, anyWord, 31, func(b *ir.Builder, v *ir.Value, store func(*ir.Value)) {
		for m := 1; m < b.Lanes(); m++ {
			store(v.ShuffleXor(m))
		}
	})
	one("readlane", ir.F32, ir.F32, floats, 32, func(b *ir.Builder, v *ir.Value, store func(*ir.Value)) {
		for l := range b.Lanes() {
			store(v.ReadLane(l))
		}
	})
	one("pack", ir.I32, ir.I8x4, anyWord, 1, func(b *ir.Builder, v *ir.Value, store func(*ir.Value)) { store(v.PackLanes4()) })
	finite := func(r *rand.Rand, i int) uint32 { return floats(r, 4*i)&^0x40000000 | 1 }
	one("foldadd", ir.F32, ir.F32, finite, 2, func(b *ir.Builder, v *ir.Value, store func(*ir.Value)) {
		store(v.FoldAdd())
		store(v.FoldAdd().FoldAdd())
	})
	one("foldaddi", ir.I32, ir.I32, anyWord, 1, func(b *ir.Builder, v *ir.Value, store func(*ir.Value)) { store(v.FoldAdd()) })
	one("foldmaxu", ir.U32, ir.U32, anyWord, 1, func(b *ir.Builder, v *ir.Value, store func(*ir.Value)) { store(v.FoldMax()) })
	noZero := func(r *rand.Rand, i int) uint32 {
		if r.IntN(3) == 0 {
			return 0x7FC00000
		}
		return floats(r, i) | 1
	}
	one("foldmaxf", ir.F32, ir.F32, noZero, 2, func(b *ir.Builder, v *ir.Value, store func(*ir.Value)) {
		store(v.FoldMax())
		store(b.Lane().Lt(b.Lanes()).Select(b.Const(ir.F32, 0x7FC00000), v).FoldMax())
	})
	return scenes
}

func controlScenes() []scene {
	return []scene{
		// A grid of three axes with ragged ends, every coordinate stored.
		{"grid", allLanes, func(b *ir.Builder) {
			x, y, z := b.Int("x"), b.Int("y"), b.Int("z")
			i, j, k := b.Tiles(x, 3), b.Tiles(y, 4), b.Tiles(z, 1)
			nx, ny := x.Add(2).Div(3), y.Add(3).Div(4)
			out := b.Out("out", ir.I32)
			at := k.Mul(ny).Add(j).Mul(nx).Add(i)
			b.Store(out, at, i.Add(j.Mul(100)).Add(k.Mul(10000)).FromIndex())
		}, func(r *rand.Rand, _ int) interp.Args {
			x, y, z := r.IntN(10)+1, r.IntN(9)+1, r.IntN(4)+1
			return interp.Args{Ints: []int64{int64(x), int64(y), int64(z)}, Buffers: [][]byte{make([]byte, 4*((x+2)/3)*((y+3)/4)*z)}}
		}},
		// Nested loops over a matrix with a stride, accumulators in a register tile, a branch, shared memory.
		{"loops", allLanes, func(b *ir.Builder) {
			n, m, stride := b.Int("n"), b.Int("m"), b.Int("stride")
			tile := b.Tiles(n, b.Lanes())
			scale := b.Float("scale")
			in, out := b.In("in", ir.F32), b.Out("out", ir.F32)
			tmp := b.Shared("tmp", ir.F32, 4*b.Lanes())
			acc := b.Reg("acc", ir.F32, 3)
			for e := range 3 {
				acc.Set(b.F32(float32(e)), e)
			}
			b.For(0, m, 4, func(i *ir.Value) {
				b.For(i, i.Add(4).Min(m), 1, func(j *ir.Value) {
					v := b.Load(in, j.Mul(stride).Add(tile.Mul(b.Lanes())).Add(b.Lane()))
					acc.Add(v.Mul(scale), 0)
					old := acc.At(1)
					acc.Set(v, 1)
					acc.Set(old.Sub(acc.At(2)), 2) // the old value outlives the assignment
				})
				b.IfElse(i.Eq(4), func() { acc.Add(acc.At(1), 0) }, func() { acc.Set(acc.At(0).Mul(float32(0.5)), 0) })
			})
			for e := range 3 {
				b.Store(tmp, b.Lane().Add(e*b.Lanes()), acc.At(e))
			}
			b.Barrier()
			for e := range 3 {
				v := b.Load(tmp, b.Lane().Add(e*b.Lanes()).Xor(1))
				b.Store(out, tile.Mul(3).Add(e).Mul(b.Lanes()).Add(b.Lane()), v)
			}
			b.Prefetch(in, tile.Mul(b.Lanes()).Add(b.Lane()))
		}, func(r *rand.Rand, lanes int) interp.Args {
			m, tiles := r.IntN(11)+1, 3
			stride := tiles*lanes + 5
			return interp.Args{Ints: []int64{int64(tiles * lanes), int64(m), int64(stride)}, Floats: []float32{1.7},
				Buffers: [][]byte{fill(r, ir.F32, m*stride+64, floats), make([]byte, tiles*3*lanes*4)}}
		}},
		// More pointers than registers.
		{"pointers", []int{16}, func(b *ir.Builder) {
			n, m := b.Int("n"), b.Int("m")
			tile := b.Tiles(n, b.Lanes())
			var in []ir.Memory
			for i := range 8 {
				in = append(in, b.In(fmt.Sprint("in", i), ir.F32))
			}
			out := b.Out("out", ir.F32)
			acc := b.Reg("acc", ir.F32, 1)
			acc.Set(b.F32(0), 0)
			b.For(0, m, 1, func(i *ir.Value) {
				for j, x := range in {
					acc.Add(b.Load(x, i.Mul(n).Mul(j+1).Add(tile.Mul(b.Lanes())).Add(b.Lane())), 0)
					acc.Add(b.Load(x, i.Mul(24*(j+1)).Add(b.Lane())), 0)
				}
			})
			b.Store(out, tile.Mul(b.Lanes()).Add(b.Lane()), acc.At(0))
		}, func(r *rand.Rand, lanes int) interp.Args {
			n, m := 2*lanes, r.IntN(5)
			a := interp.Args{Ints: []int64{int64(n), int64(m)}}
			for range 8 {
				a.Buffers = append(a.Buffers, fill(r, ir.F32, max(8*n*5, 24*8*5), floats))
			}
			a.Buffers = append(a.Buffers, make([]byte, n*4))
			return a
		}},
	}
}

// Index arithmetic of every kind, uniform and varying.
func indexScenes() []scene {
	type source func(b *ir.Builder, tile, lane, v, u *ir.Value) *ir.Value
	sources := []source{
		func(b *ir.Builder, tile, lane, v, u *ir.Value) *ir.Value { return tile.Add(40) },
		func(b *ir.Builder, tile, lane, v, u *ir.Value) *ir.Value { return u },
		func(b *ir.Builder, tile, lane, v, u *ir.Value) *ir.Value { return lane },
		func(b *ir.Builder, tile, lane, v, u *ir.Value) *ir.Value { return tile.Mul(b.Lanes()).Add(lane) },
		func(b *ir.Builder, tile, lane, v, u *ir.Value) *ir.Value { return v },
		func(b *ir.Builder, tile, lane, v, u *ir.Value) *ir.Value { return v.Add(lane).Add(tile.Mul(3)) },
		func(b *ir.Builder, tile, lane, v, u *ir.Value) *ir.Value { return lane.Mul(u) },
	}
	var scenes []scene
	for n, source := range sources {
		each := func(name string, f func(b *ir.Builder, x, tile, lane, v, u, d *ir.Value, store func(*ir.Value))) {
			scenes = append(scenes, scene{fmt.Sprint(name, n), []int{allLanes[(n+len(name))%3]}, func(b *ir.Builder) {
				size, d := b.Int("n"), b.Int("d")
				tile := b.Tiles(size, 1)
				out, data := b.Out("out", ir.I32), b.In("data", ir.I32)
				v := b.Load(data, tile.Mul(b.Lanes()).Add(b.Lane())).ToIndex()
				u := b.LoadIndex(data, tile)
				j := 0
				f(b, source(b, tile, b.Lane(), v, u), tile, b.Lane(), v, u, d, func(x *ir.Value) {
					b.Store(out, tile.Mul(64).Add(j).Mul(b.Lanes()).Add(b.Lane()), x)
					j++
				})
			}, func(r *rand.Rand, lanes int) interp.Args {
				const n = 5
				return interp.Args{Ints: []int64{n, int64(r.IntN(9) + 1)}, Buffers: [][]byte{make([]byte, n*64*lanes*4), fill(r, ir.I32, n*lanes, below(1000))}}
			}})
		}
		each("arith", func(b *ir.Builder, x, tile, lane, v, u, d *ir.Value, store func(*ir.Value)) {
			for _, f := range []func() *ir.Value{
				func() *ir.Value { return x.Div(4) }, func() *ir.Value { return x.Mod(8) }, func() *ir.Value { return x.Min(13) },
				func() *ir.Value { return x.Min(u) }, func() *ir.Value { return x.Max(9) }, func() *ir.Value { return x.Max(u) },
				func() *ir.Value { return x.And(12) }, func() *ir.Value { return x.Xor(3) }, func() *ir.Value { return x.Xor(tile) },
				func() *ir.Value { return x.And(u) }, func() *ir.Value { return x.Shl(3) }, func() *ir.Value { return x.Shr(2) },
				func() *ir.Value { return x.Mul(x) }, func() *ir.Value { return x.Mul(d) }, func() *ir.Value { return x.Sub(d) },
				func() *ir.Value { return b.Idx(100).Sub(x) }, func() *ir.Value { return x.Mul(12).Div(4) },
				func() *ir.Value { return x.Mul(16).Add(5).Mod(16) }, func() *ir.Value { return x.Mul(16).Xor(7) },
				func() *ir.Value { return x.Mul(16).Add(8).Xor(7) },
			} {
				store(f().FromIndex())
			}
		})
		each("div", func(b *ir.Builder, x, tile, lane, v, u, d *ir.Value, store func(*ir.Value)) {
			store(x.Div(d).FromIndex())
			store(x.Mod(7).FromIndex())
		})
		each("compare", func(b *ir.Builder, x, tile, lane, v, u, d *ir.Value, store func(*ir.Value)) {
			hit := b.UniformReg("hit", ir.I32, 1)
			hit.Set(b.I32(0), 0)
			for _, y := range []*ir.Value{d, lane, b.Idx(3), v, u, x} {
				for _, f := range []func() *ir.Value{
					func() *ir.Value { return x.Lt(y) }, func() *ir.Value { return x.Le(y) }, func() *ir.Value { return x.Eq(y) },
					func() *ir.Value { return x.Gt(y) }, func() *ir.Value { return x.Lt(y).AndB(tile.Eq(3)) },
					func() *ir.Value { return tile.Lt(3).OrB(x.Eq(y)).Not() },
				} {
					c := f()
					store(c.Select(b.I32(1), b.I32(2)))
					if c.Span != ir.Varying {
						b.If(c, func() { hit.Add(b.I32(1), 0) })
					}
				}
			}
			store(hit.At(0))
		})
	}
	return scenes
}

package portable

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/cpuid/v2"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
)

func supportsV3() bool { return cpuid.CPU.X64Level() >= 3 }

// opTrials has a kernel for each lane-wise op: out = op(x, y, z) for varying operands, varying beside uniform, and uniform.
func opTrials(t *testing.T) []trial {
	type vs = []*ir.Value
	i32 := func(f func(a, b *ir.Value) *ir.Value) func(*ir.Builder, vs) *ir.Value {
		return func(_ *ir.Builder, v vs) *ir.Value { return f(v[0].As(ir.I32), v[1].As(ir.I32)) }
	}
	u32 := func(f func(a, b *ir.Value) *ir.Value) func(*ir.Builder, vs) *ir.Value {
		return func(_ *ir.Builder, v vs) *ir.Value { return f(v[0], v[1]) }
	}
	f32 := func(f func(a, b *ir.Value) *ir.Value) func(*ir.Builder, vs) *ir.Value {
		return func(_ *ir.Builder, v vs) *ir.Value { return f(v[0].As(ir.F32), v[1].As(ir.F32)) }
	}
	idx := func(f func(a, b *ir.Value) *ir.Value) func(*ir.Builder, vs) *ir.Value {
		return func(_ *ir.Builder, v vs) *ir.Value {
			a := v[0].Shr(2).As(ir.I32).ToIndex()
			b := v[1].Shr(20).As(ir.I32).ToIndex().Add(1)
			return f(a, b)
		}
	}
	exact := func(w uint32) uint32 { return w &^ 0x1FFF } // 11 significant bits
	bytes127 := func(w uint32) uint32 {
		for s := 0; s < 32; s += 8 {
			if w>>s&0xFF == 0x80 {
				w += 1 << s
			}
		}
		return w
	}
	table := [16]byte{0: 0x80, 1: 0xFF, 2: 3, 7: 0x7F, 15: 0xC3}
	ops := []struct {
		name string
		f    func(b *ir.Builder, v vs) *ir.Value
		fix  [2]func(uint32) uint32
	}{
		{name: "add.i32", f: i32(func(a, b *ir.Value) *ir.Value { return a.Add(b) })},
		{name: "sub.i32", f: i32(func(a, b *ir.Value) *ir.Value { return a.Sub(b) })},
		{name: "mul.i32", f: i32(func(a, b *ir.Value) *ir.Value { return a.Mul(b).Mul(-5) })},
		{name: "and", f: i32(func(a, b *ir.Value) *ir.Value { return a.And(b) })},
		{name: "or", f: i32(func(a, b *ir.Value) *ir.Value { return a.Or(b) })},
		{name: "xor", f: u32(func(a, b *ir.Value) *ir.Value { return a.Xor(b) })},
		{name: "shl", f: u32(func(a, b *ir.Value) *ir.Value { return a.Shl(b.And(63)) })},
		{name: "shl.i32", f: i32(func(a, b *ir.Value) *ir.Value { return a.Shl(b) })},
		{name: "shl.31", f: u32(func(a, b *ir.Value) *ir.Value { return a.Shl(31).Xor(b.Shl(32)).Xor(b.Shr(40)) })},
		{name: "shr.u32", f: u32(func(a, b *ir.Value) *ir.Value { return a.Shr(b.And(63)).Xor(a.Shr(7)) })},
		{name: "shr.i32", f: i32(func(a, b *ir.Value) *ir.Value { return a.Shr(b.And(63)).Xor(a.Shr(7)).Xor(a.Shr(35)) })},
		{name: "min.i32", f: i32(func(a, b *ir.Value) *ir.Value { return a.Min(b) })},
		{name: "max.i32", f: i32(func(a, b *ir.Value) *ir.Value { return a.Max(b).Max(-100) })},
		{name: "max.u32", f: u32(func(a, b *ir.Value) *ir.Value { return a.Max(b) })},
		{name: "lt.i32", f: i32(func(a, b *ir.Value) *ir.Value { return a.Lt(b).Select(a, b) })},
		{name: "lt.u32", f: u32(func(a, b *ir.Value) *ir.Value { return a.Lt(b).Select(a, b) })},
		{name: "eq", f: u32(func(a, b *ir.Value) *ir.Value { return a.And(3).Eq(b.And(3)).Select(a, b) })},
		{name: "add.f32", f: f32(func(a, b *ir.Value) *ir.Value { return a.Add(b) })},
		{name: "sub.f32", f: f32(func(a, b *ir.Value) *ir.Value { return a.Sub(b) })},
		{name: "mul.f32", f: f32(func(a, b *ir.Value) *ir.Value { return a.Mul(b) })},
		{name: "mul.add", f: f32(func(a, b *ir.Value) *ir.Value { return a.Mul(b).Add(a).Sub(b.Mul(b)) })},
		{name: "add.0", f: f32(func(a, b *ir.Value) *ir.Value { return a.Add(float32(0)).Mul(float32(1)).Sub(b.Mul(float32(-1))) })},
		{name: "lt.f32", f: f32(func(a, b *ir.Value) *ir.Value { return a.Lt(b).Select(a, b) })},
		{name: "le.f32", f: f32(func(a, b *ir.Value) *ir.Value { return a.Le(b).Select(a, b) })},
		{name: "eq.f32", f: f32(func(a, b *ir.Value) *ir.Value { return a.Eq(b).Not().Select(a, b) })},
		{name: "nan.const", f: func(b *ir.Builder, v vs) *ir.Value {
			return v[0].Gt(v[1]).Select(v[0].As(ir.F32), b.Const(ir.F32, 0x7FC00000))
		}},
		{name: "bool", f: f32(func(a, b *ir.Value) *ir.Value {
			x, y := a.Lt(b), a.Lt(float32(1))
			return x.AndB(y).OrB(x.OrB(y).Not()).Select(a, b)
		})},
		{name: "cast", f: func(_ *ir.Builder, v vs) *ir.Value {
			return v[0].As(ir.F32).Add(v[1].As(ir.F32)).As(ir.U32).Xor(v[1].As(ir.I32).As(ir.U32)).As(ir.I8x4).As(ir.U8x4).As(ir.F32)
		}},
		{name: "fma.exact", f: func(b *ir.Builder, v vs) *ir.Value {
			return b.FMAExact(v[0].As(ir.F32), v[1].As(ir.F32), v[2].As(ir.F32))
		}, fix: [2]func(uint32) uint32{func(w uint32) uint32 { return exact(w)&0x8FFFFFFF | 0x30000000 }, func(w uint32) uint32 { return exact(w)&0x8FFFFFFF | 0x40000000 }}},
		{name: "f32.i32", f: func(_ *ir.Builder, v vs) *ir.Value { return v[0].As(ir.I32).Shr(8).ToF32() }},
		{name: "dot4.u8s8", f: func(b *ir.Builder, v vs) *ir.Value {
			return b.Dot4US(v[0].As(ir.U8x4), v[1].As(ir.I8x4), v[2].As(ir.I32), 255)
		}},
		{name: "dot4.s8s8", f: func(b *ir.Builder, v vs) *ir.Value {
			return b.Dot4SS(v[0].As(ir.I8x4), v[1].As(ir.I8x4), v[2].As(ir.I32))
		}, fix: [2]func(uint32) uint32{nil, bytes127}},
		{name: "lookup16", f: func(b *ir.Builder, v vs) *ir.Value {
			return b.Lookup16(v[0].And(0x0F0F0F0F).As(ir.U8x4), table).As(ir.U32).Add(b.Lookup16(v[1].Shr(4).And(0x0F0F0F0F).As(ir.U8x4), table).As(ir.U32))
		}},
		{name: "index", f: idx(func(a, b *ir.Value) *ir.Value {
			x := a.Mul(b).Add(a.Div(b)).Sub(a.Mod(b)).Xor(a.Min(b)).Add(a.Max(b)).And(0x7FFFFFFFFFFF)
			return x.Shl(3).Add(x.Shr(5)).Add(x.Div(16)).Add(x.Mod(16)).FromIndex()
		})},
		{name: "index.compare", f: idx(func(a, b *ir.Value) *ir.Value {
			return a.Lt(b).OrB(a.Le(b.Mul(2))).OrB(a.Mod(4).Eq(b.Mod(4))).Select(a.FromIndex(), b.FromIndex())
		})},
		{name: "index.shift", f: idx(func(a, b *ir.Value) *ir.Value { return a.Shr(b.Mod(8)).Add(b.Shl(a.Mod(8))).FromIndex() })},
		{name: "const.fold", f: func(b *ir.Builder, v vs) *ir.Value {
			c := b.I32(math.MaxInt32).Add(1).Shr(31).As(ir.U32).Add(b.U32(7).Shl(30))
			return c.Add(v[0]).Add(b.F32(3).Mul(b.F32(0.1)).As(ir.U32)).Add(b.I32(-3).ToIndex().FromIndex().As(ir.U32))
		}},
	}
	var out []trial
	r := rand.New(rand.NewPCG(1, 2))
	for n, o := range ops {
		for _, mode := range []string{"vvv", "vuv", "uvv", "uuu"} {
			lanes := []int{8, 16, 32}[n%3]
			k := mustBuild(t, o.name+"."+mode, lanes, func(b *ir.Builder) {
				n := b.Int("n")
				tile := b.Tiles(n, lanes)
				var v vs
				for a, name := range []string{"x", "y", "z"} {
					m := b.In(name, ir.U32)
					at := tile.Mul(lanes)
					if mode[a] == 'v' {
						at = at.Add(b.Lane())
					}
					v = append(v, b.Load(m, at))
				}
				w := o.f(b, v)
				dst := b.Out("out", w.Type)
				if mode == "uuu" {
					b.Store(dst, tile, w)
				} else {
					b.Store(dst, tile.Mul(lanes).Add(b.Lane()), w)
				}
			})
			n := 8 * 32
			a := interp.Args{Ints: []int64{int64(n)}}
			for x := range 3 {
				in := words(r, n)
				if x < 2 && o.fix[x] != nil {
					mapWords(in, o.fix[x])
				}
				a.Buffers = append(a.Buffers, in)
			}
			a.Buffers = append(a.Buffers, make([]byte, 4*n))
			out = append(out, trial{k.Name, k, a})
		}
	}
	return out
}

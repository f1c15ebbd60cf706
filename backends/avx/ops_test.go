package avx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
)

// pattern makes the 32-bit element i of a buffer.
type pattern func(r *rand.Rand, i int) uint32

var extremes = []uint32{0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF,
	0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7FFFFFFF, 0xFFFFFFFF, 0x33000000, 0x477FF000, 0x38800000, 0x80808080, 0x7F7F7F7F}

func anyWord(r *rand.Rand, i int) uint32 {
	if r.IntN(3) == 0 {
		return extremes[r.IntN(len(extremes))]
	}
	return r.Uint32()
}

func floats(r *rand.Rand, i int) uint32 {
	if r.IntN(4) == 0 {
		return extremes[r.IntN(len(extremes))]
	}
	return math.Float32bits(float32(r.NormFloat64()))
}

func below(n int) pattern { return func(r *rand.Rand, _ int) uint32 { return uint32(r.IntN(n)) } }

func halves(r *rand.Rand, _ int) uint32 { // short enough for exact products
	return math.Float32bits(float32(r.IntN(4096)-2048) / 64)
}

// bytesBelow makes four bytes, each at most n−1, extremes often.
func bytesBelow(n int) pattern {
	return func(r *rand.Rand, _ int) uint32 {
		w := uint32(0)
		for b := 0; b < 32; b += 8 {
			v := r.IntN(n)
			switch r.IntN(4) {
			case 0:
				v = n - 1
			case 1:
				v = 0
			}
			w |= uint32(v) << b
		}
		return w
	}
}

func noMin(r *rand.Rand, i int) uint32 { // signed bytes, none −128
	w := bytesBelow(256)(r, i)
	for b := 0; b < 32; b += 8 {
		if w>>b&0xFF == 0x80 {
			w ^= 1 << b
		}
	}
	return w
}

// fill makes the contents of a buffer of n elements.
func fill(r *rand.Rand, t ir.Type, n int, p pattern) []byte {
	b := make([]byte, n*t.Bytes())
	for i := range n {
		w := p(r, i)
		switch t.Bytes() {
		case 1:
			b[i] = byte(w)
		case 2:
			binary.LittleEndian.PutUint16(b[2*i:], uint16(w))
		default:
			binary.LittleEndian.PutUint32(b[4*i:], w)
		}
	}
	return b
}

// form is an op applied to three operands.
type form struct {
	name  string
	types [3]ir.Type // Invalid for operands that it doesn't take
	in    [3]pattern
	f     func(b *ir.Builder, x, y, z *ir.Value) *ir.Value
}

func forms() []form {
	f2 := func(name string, t ir.Type, p pattern, f func(x, y *ir.Value) *ir.Value) form {
		return form{name, [3]ir.Type{t, t}, [3]pattern{p, p}, func(_ *ir.Builder, x, y, _ *ir.Value) *ir.Value { return f(x, y) }}
	}
	pick := func(b *ir.Builder, c, x, y *ir.Value) *ir.Value { return c.Select(x, y) }
	out := []form{
		f2("addf", ir.F32, floats, func(x, y *ir.Value) *ir.Value { return x.Add(y) }),
		f2("subf", ir.F32, floats, func(x, y *ir.Value) *ir.Value { return x.Sub(y) }),
		f2("mulf", ir.F32, floats, func(x, y *ir.Value) *ir.Value { return x.Mul(y) }),
		{"fma", [3]ir.Type{ir.F32, ir.F32, ir.F32}, [3]pattern{halves, halves, floats}, func(b *ir.Builder, x, y, z *ir.Value) *ir.Value { return b.FMAExact(x, y, z) }},
		f2("ltf", ir.F32, floats, func(x, y *ir.Value) *ir.Value { return x.Lt(y).Select(x, y) }),
		f2("lef", ir.F32, floats, func(x, y *ir.Value) *ir.Value { return x.Le(y).Select(x, y) }),
		f2("eqf", ir.F32, floats, func(x, y *ir.Value) *ir.Value { return x.Eq(y).Not().Select(x, y) }),
		{"tof32", [3]ir.Type{ir.I32}, [3]pattern{below(1 << 24)}, func(_ *ir.Builder, x, _, _ *ir.Value) *ir.Value { return x.ToF32() }},
		{"cast", [3]ir.Type{ir.U32}, [3]pattern{floats}, func(_ *ir.Builder, x, _, _ *ir.Value) *ir.Value { return x.As(ir.F32).Mul(float32(0.5)) }},
		f2("addi", ir.I32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Add(y) }),
		f2("subi", ir.I32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Sub(y) }),
		f2("muli", ir.U32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Mul(y) }),
		f2("and", ir.I32, anyWord, func(x, y *ir.Value) *ir.Value { return x.And(y) }),
		f2("or", ir.I32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Or(y) }),
		f2("xor", ir.U32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Xor(y) }),
		f2("mini", ir.I32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Min(y) }),
		f2("maxi", ir.I32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Max(y) }),
		f2("maxu", ir.U32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Max(y) }),
		f2("lti", ir.I32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Lt(y).Select(x, y) }),
		f2("ltu", ir.U32, anyWord, func(x, y *ir.Value) *ir.Value { return x.Lt(y).Select(y, x) }),
		f2("eqi", ir.I32, below(3), func(x, y *ir.Value) *ir.Value { return x.Eq(y).Select(x, y.Sub(x)) }),
		f2("bools", ir.I32, below(4), func(x, y *ir.Value) *ir.Value {
			p, q := x.Lt(y), x.And(1).Eq(1)
			return p.AndB(q).Select(x, p.OrB(q.Not()).Select(y.Add(5), y.Sub(7)))
		}),
		{"select", [3]ir.Type{ir.I32, ir.U32, ir.U32}, [3]pattern{below(2), anyWord, anyWord},
			func(b *ir.Builder, c, x, y *ir.Value) *ir.Value { return pick(b, c.Eq(1), x, y) }},
		{"dotss", [3]ir.Type{ir.I8x4, ir.I8x4, ir.I32}, [3]pattern{bytesBelow(256), noMin, anyWord},
			func(b *ir.Builder, x, y, z *ir.Value) *ir.Value { return b.Dot4SS(x, y, z) }},
		{"lookup", [3]ir.Type{ir.U8x4}, [3]pattern{bytesBelow(16)}, func(b *ir.Builder, x, _, _ *ir.Value) *ir.Value {
			var table [16]byte
			for i := range table {
				table[i] = byte(i*i*7 + 200)
			}
			return b.Lookup16(x, table).As(ir.U32)
		}},
	}
	chain := func(x *ir.Value, shift func(x *ir.Value, n int) *ir.Value, mix func(a, b *ir.Value) *ir.Value) *ir.Value {
		sum := x
		for _, n := range []int{0, 1, 7, 24, 31, 32, 200} {
			sum = mix(sum.Mul(3), shift(x, n))
		}
		return sum
	}
	xor := func(a, b *ir.Value) *ir.Value { return a.Xor(b) }
	shl := func(x *ir.Value, n int) *ir.Value { return x.Shl(n) }
	shr := func(x *ir.Value, n int) *ir.Value { return x.Shr(n) }
	out = append(out,
		form{"shlconst", [3]ir.Type{ir.I32}, [3]pattern{anyWord}, func(_ *ir.Builder, x, _, _ *ir.Value) *ir.Value { return chain(x, shl, xor) }},
		form{"shruconst", [3]ir.Type{ir.U32}, [3]pattern{anyWord}, func(_ *ir.Builder, x, _, _ *ir.Value) *ir.Value { return chain(x, shr, xor) }},
		form{"shriconst", [3]ir.Type{ir.I32}, [3]pattern{anyWord}, func(_ *ir.Builder, x, _, _ *ir.Value) *ir.Value { return chain(x, shr, xor) }})
	counts := func(r *rand.Rand, i int) uint32 { return []uint32{0, 1, 5, 31, 32, 33, 0x80000000}[r.IntN(7)] }
	out = append(out,
		form{"shl", [3]ir.Type{ir.I32, ir.I32}, [3]pattern{anyWord, counts}, func(_ *ir.Builder, x, y, _ *ir.Value) *ir.Value { return x.Shl(y) }},
		form{"shru", [3]ir.Type{ir.U32, ir.U32}, [3]pattern{anyWord, counts}, func(_ *ir.Builder, x, y, _ *ir.Value) *ir.Value { return x.Shr(y) }},
		form{"shri", [3]ir.Type{ir.I32, ir.I32}, [3]pattern{anyWord, counts}, func(_ *ir.Builder, x, y, _ *ir.Value) *ir.Value { return x.Shr(y) }})
	for _, umax := range []int{15, 63, 127, 128, 255} {
		out = append(out, form{fmt.Sprint("dotus", umax), [3]ir.Type{ir.U8x4, ir.I8x4, ir.I32}, [3]pattern{bytesBelow(umax + 1), bytesBelow(256), anyWord},
			func(b *ir.Builder, x, y, z *ir.Value) *ir.Value { return b.Dot4US(x, y, z, umax) }},
			form{fmt.Sprint("dotchain", umax), [3]ir.Type{ir.U8x4, ir.I8x4, ir.I32}, [3]pattern{bytesBelow(umax + 1), bytesBelow(256), anyWord},
				func(b *ir.Builder, x, y, z *ir.Value) *ir.Value {
					for range 10 {
						z = b.Dot4US(x, y, z, umax)
					}
					return z
				}})
	}
	return out
}

// lanewise makes a kernel that applies a form to every mix of varying, uniform and constant operands.
func lanewise(t *testing.T, f form, lanes int) *ir.Kernel {
	k, err := ir.Build(f.name, lanes, 1, func(b *ir.Builder) {
		n := b.Int("n")
		tile := b.Tiles(n, lanes)
		var mems [3]ir.Memory
		arity := 0
		for i, ty := range f.types {
			if ty != ir.Invalid {
				mems[i] = b.In(fmt.Sprint("in", i), ty)
				arity++
			}
		}
		var result ir.Type
		var out ir.Memory
		written := 0
		store := func(v *ir.Value) {
			if written == 0 {
				result = v.Type
				out = b.Out("out", result)
			}
			at := tile.Mul(1 << (2 * arity)).Add(written).Mul(lanes)
			b.Store(out, at.Add(b.Lane()), v)
			written++
		}
		mixes := 1 << (2 * arity)
		if strings.HasPrefix(f.name, "dotchain") {
			mixes = 6 // a few, of many instructions each
		}
		for mix := range mixes {
			var v [3]*ir.Value
			for i := range arity {
				switch mix >> (2 * i) & 3 {
				case 0, 3: // twice, so that one of them is used once and can be folded
					v[i] = b.Load(mems[i], tile.Mul(lanes).Add(b.Lane()))
				case 1:
					v[i] = b.Load(mems[i], tile.Mul(lanes).Add(i))
				case 2:
					c := int64(0x00020304 + i)
					if f.types[i] == ir.F32 {
						c = 0x40490000 + int64(i)<<16
					}
					v[i] = b.Const(f.types[i], c)
				}
			}
			store(f.f(b, v[0], v[1], v[2]))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (p *program) addOps(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for n, f := range forms() {
		for _, lanes := range slices.Compact([]int{allLanes[n%3], 32}) {
			k := lanewise(t, f, lanes)
			const tiles = 4
			args := interp.Args{Ints: []int64{tiles*int64(lanes) - 3}}
			arity := 0
			for i, ty := range f.types {
				if ty != ir.Invalid {
					args.Buffers = append(args.Buffers, fill(r, ty, tiles*lanes, f.in[i]))
					arity++
				}
			}
			args.Buffers = append(args.Buffers, make([]byte, tiles*lanes*4<<(2*arity)))
			for _, arch := range supported() {
				p.add(t, k, arch, args)
			}
		}
	}
}

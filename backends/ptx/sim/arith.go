package sim

import (
	"math"
	"math/bits"
)

// lanes holds one value of a register for each lane of a warp.
type (
	wordLanes = [32]uint32
	longLanes = [32]uint64
)

// frame holds the operands of an instruction by position, results first, each in the field of its class. All 32 lanes are
// computed; those outside of mask hold anything and are dropped.
type frame struct {
	w    [5]*wordLanes
	x    [4]*longLanes
	p    [4]uint32 // a bit for each lane
	mask uint32
}

// form is the signature and the meaning of an instruction whose lanes don't meet.
type form struct {
	types []typ // result first
	f     func(*frame) error
}

// forms holds every such instruction under its full name: a modifier that isn't here is unknown.
var forms = makeForms()

func makeForms() map[string]form {
	m := map[string]form{}
	add := func(op string, f func(*frame) error, types ...typ) { m[op] = form{types: types, f: f} }
	same := func(op string, f func(*frame) error, n int, ts ...typ) {
		for _, t := range ts {
			add(op+"."+t.String(), f, []typ{t, t, t, t}[:n]...)
		}
	}
	same("add", addWords, 3, u32, s32)
	same("add", long2(func(a, b uint64) uint64 { return a + b }), 3, u64, s64)
	same("sub", word2(func(a, b uint32) uint32 { return a - b }), 3, u32, s32)
	same("sub", long2(func(a, b uint64) uint64 { return a - b }), 3, u64, s64)
	same("mul.lo", word2(func(a, b uint32) uint32 { return a * b }), 3, u32, s32)
	same("mul.lo", long2(func(a, b uint64) uint64 { return a * b }), 3, u64, s64)
	same("mul.hi", word2(func(a, b uint32) uint32 { return uint32(uint64(a) * uint64(b) >> 32) }), 3, u32)
	same("mul.hi", word2(func(a, b uint32) uint32 { return uint32(int64(int32(a)) * int64(int32(b)) >> 32) }), 3, s32)
	same("mul.hi", long2(func(a, b uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }), 3, u64)
	same("mad.lo", word3(func(a, b, c uint32) uint32 { return a*b + c }), 4, u32, s32)
	same("mad.lo", long3(func(a, b, c uint64) uint64 { return a*b + c }), 4, u64, s64)
	add("mul.wide.u32", wide(func(a, b uint32) uint64 { return uint64(a) * uint64(b) }), u64, u32, u32)
	add("mul.wide.s32", wide(func(a, b uint32) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) }), s64, s32, s32)
	add("mad.wide.u32", wideAdd(func(a, b uint32) uint64 { return uint64(a) * uint64(b) }), u64, u32, u32, u64)
	add("mad.wide.s32", wideAdd(func(a, b uint32) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) }), s64, s32, s32, s64)
	divisions(add)

	same("min", word2(func(a, b uint32) uint32 { return min(a, b) }), 3, u32)
	same("max", word2(func(a, b uint32) uint32 { return max(a, b) }), 3, u32)
	same("min", word2(func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) }), 3, s32)
	same("max", word2(func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) }), 3, s32)
	same("min", long2(func(a, b uint64) uint64 { return min(a, b) }), 3, u64)
	same("max", long2(func(a, b uint64) uint64 { return max(a, b) }), 3, u64)
	same("min", long2(func(a, b uint64) uint64 { return uint64(min(int64(a), int64(b))) }), 3, s64)
	same("max", long2(func(a, b uint64) uint64 { return uint64(max(int64(a), int64(b))) }), 3, s64)
	same("neg", word1(func(a uint32) uint32 { return -a }), 2, s32)
	same("neg", long1(func(a uint64) uint64 { return -a }), 2, s64)
	same("abs", word1(func(a uint32) uint32 { return uint32(max(int32(a), -int32(a))) }), 2, s32)

	same("and", andWords, 3, b32)
	same("or", word2(func(a, b uint32) uint32 { return a | b }), 3, b32)
	same("xor", word2(func(a, b uint32) uint32 { return a ^ b }), 3, b32)
	same("not", word1(func(a uint32) uint32 { return ^a }), 2, b32)
	same("and", long2(func(a, b uint64) uint64 { return a & b }), 3, b64)
	same("or", long2(func(a, b uint64) uint64 { return a | b }), 3, b64)
	same("xor", long2(func(a, b uint64) uint64 { return a ^ b }), 3, b64)
	same("not", long1(func(a uint64) uint64 { return ^a }), 2, b64)
	same("and", flag2(func(a, b uint32) uint32 { return a & b }), 3, pred)
	same("or", flag2(func(a, b uint32) uint32 { return a | b }), 3, pred)
	same("xor", flag2(func(a, b uint32) uint32 { return a ^ b }), 3, pred)
	same("not", func(f *frame) error { f.p[0] = ^f.p[1]; return nil }, 2, pred)

	add("cvta.to.global.u64", moveLongs, u64, u64) // global addresses are generic ones
	shifts(add)
	fields(add)
	dots(add)
	selections(add)
	comparisons(add)
	floats(add)
	return m
}

// divisions adds div and rem. Division by zero has no specified result: an error.
func divisions(add func(string, func(*frame) error, ...typ)) {
	w := func(f func(a, b uint32) uint32) func(*frame) error {
		return func(fr *frame) error {
			d, a, b := fr.w[0], fr.w[1], fr.w[2]
			for l := range d {
				if b[l] != 0 {
					d[l] = f(a[l], b[l])
				} else if fr.mask>>l&1 != 0 {
					return laneError{l, "division by zero"}
				}
			}
			return nil
		}
	}
	x := func(f func(a, b uint64) uint64) func(*frame) error {
		return func(fr *frame) error {
			d, a, b := fr.x[0], fr.x[1], fr.x[2]
			for l := range d {
				if b[l] != 0 {
					d[l] = f(a[l], b[l])
				} else if fr.mask>>l&1 != 0 {
					return laneError{l, "division by zero"}
				}
			}
			return nil
		}
	}
	add("div.u32", w(func(a, b uint32) uint32 { return a / b }), u32, u32, u32)
	add("rem.u32", w(func(a, b uint32) uint32 { return a % b }), u32, u32, u32)
	add("div.s32", w(func(a, b uint32) uint32 { return uint32(int32(a) / int32(b)) }), s32, s32, s32)
	add("rem.s32", w(func(a, b uint32) uint32 { return uint32(int32(a) % int32(b)) }), s32, s32, s32)
	add("div.u64", x(func(a, b uint64) uint64 { return a / b }), u64, u64, u64)
	add("rem.u64", x(func(a, b uint64) uint64 { return a % b }), u64, u64, u64)
	add("div.s64", x(func(a, b uint64) uint64 { return uint64(int64(a) / int64(b)) }), s64, s64, s64)
	add("rem.s64", x(func(a, b uint64) uint64 { return uint64(int64(a) % int64(b)) }), s64, s64, s64)
}

// shifts adds shl and shr. The amount always has 32 bits; one of the width or more shifts everything out.
func shifts(add func(string, func(*frame) error, ...typ)) {
	add("shl.b32", word2(func(a, b uint32) uint32 { return a << b }), b32, b32, u32)
	for _, t := range []typ{b32, u32} {
		add("shr."+t.String(), word2(func(a, b uint32) uint32 { return a >> b }), t, t, u32)
	}
	add("shr.s32", word2(func(a, b uint32) uint32 { return uint32(int32(a) >> b) }), s32, s32, u32)
	add("shl.b64", longShift(func(a uint64, b uint32) uint64 { return a << b }), b64, b64, u32)
	for _, t := range []typ{b64, u64} {
		add("shr."+t.String(), longShift(func(a uint64, b uint32) uint64 { return a >> b }), t, t, u32)
	}
	add("shr.s64", longShift(func(a uint64, b uint32) uint64 { return uint64(int64(a) >> b) }), s64, s64, u32)
	for _, dir := range []string{"l", "r"} { // funnel shifts of the pair c:… = b:a
		add("shf."+dir+".wrap.b32", word3(func(a, b, c uint32) uint32 { return funnel(dir == "l", a, b, c&31) }), b32, b32, b32, u32)
		add("shf."+dir+".clamp.b32", word3(func(a, b, c uint32) uint32 { return funnel(dir == "l", a, b, min(c, 32)) }), b32, b32, b32, u32)
	}
}

// funnel shifts the 64 bits hi:lo by n ≤ 32, to the left returning the upper half, to the right the lower one.
func funnel(left bool, lo, hi, n uint32) uint32 {
	v := uint64(hi)<<32 | uint64(lo)
	if left {
		return uint32(v << n >> 32)
	}
	return uint32(v >> n)
}

// fields adds bit fields, byte permutation and three-input logic.
func fields(add func(string, func(*frame) error, ...typ)) {
	add("bfe.u32", word3(func(a, b, c uint32) uint32 {
		pos, n := b&0xFF, c&0xFF
		return uint32(uint64(a) >> pos & (1<<n - 1))
	}), u32, u32, u32, u32)
	add("bfe.s32", word3(signedField), s32, s32, u32, u32)
	add("bfi.b32", word4(insertField), b32, b32, b32, u32, u32)
	add("lop3.b32", word4(logic3), b32, b32, b32, b32, u32)
	add("prmt.b32", word3(permute), b32, b32, b32, b32)
	add("popc.b32", word1(func(a uint32) uint32 { return uint32(bits.OnesCount32(a)) }), u32, b32)
	add("clz.b32", word1(func(a uint32) uint32 { return uint32(bits.LeadingZeros32(a)) }), u32, b32)
}

func signedField(a, b, c uint32) uint32 {
	pos, n := b&0xFF, c&0xFF
	if n == 0 {
		return 0
	}
	v := int64(int32(a)) >> min(pos, 63) // bits from pos on, then copies of the sign
	if n < 32 {
		v = v << (64 - n) >> (64 - n)
	}
	return uint32(v)
}

// insertField returns b with n bits from pos on replaced by the low bits of a.
func insertField(a, b, pos, n uint32) uint32 {
	mask := uint32((uint64(1)<<min(n&0xFF, 32) - 1) << (pos & 0xFF))
	return b&^mask | a<<(pos&0xFF)&mask
}

// permute picks four of the eight bytes b:a; bit 3 of a selector picks eight copies of the byte's sign instead.
func permute(a, b, c uint32) uint32 {
	pair, r := uint64(b)<<32|uint64(a), uint32(0)
	for n := 0; n < 4; n++ {
		s := c >> (4 * n)
		v := uint8(pair >> (8 * (s & 7)))
		if s&8 != 0 {
			v = uint8(int8(v) >> 7)
		}
		r |= uint32(v) << (8 * n)
	}
	return r
}

// logic3 applies the truth table lut: its bit 4a+2b+c is the result for bits a, b, c.
func logic3(a, b, c, lut uint32) uint32 {
	r := uint32(0)
	for n := range 8 {
		if lut>>n&1 == 0 {
			continue
		}
		x, y, z := a, b, c
		if n&4 == 0 {
			x = ^x
		}
		if n&2 == 0 {
			y = ^y
		}
		if n&1 == 0 {
			z = ^z
		}
		r |= x & y & z
	}
	return r
}

// dots adds dp4a: c + Σ aᵢ·bᵢ over four bytes of each sign.
func dots(add func(string, func(*frame) error, ...typ)) {
	// Flipping the sign bit and taking it off again extends the sign.
	elem := func(v uint32, n int, flip uint32) uint32 { return (v>>(8*n)&0xFF ^ flip) - flip }
	sign := map[typ]uint32{u32: 0, s32: 0x80}
	for _, ta := range []typ{u32, s32} {
		for _, tb := range []typ{u32, s32} {
			tc := u32
			if ta == s32 || tb == s32 {
				tc = s32
			}
			fa, fb := sign[ta], sign[tb]
			add("dp4a."+ta.String()+"."+tb.String(), word3(func(a, b, c uint32) uint32 {
				for n := range 4 {
					c += elem(a, n, fa) * elem(b, n, fb)
				}
				return c
			}), tc, ta, tb, tc)
		}
	}
}

// selections adds selp.
func selections(add func(string, func(*frame) error, ...typ)) {
	w := func(f *frame) error {
		d, a, b, p := f.w[0], f.w[1], f.w[2], f.p[3]
		for l := range d {
			if p>>l&1 != 0 {
				d[l] = a[l]
			} else {
				d[l] = b[l]
			}
		}
		return nil
	}
	x := func(f *frame) error {
		d, a, b, p := f.x[0], f.x[1], f.x[2], f.p[3]
		for l := range d {
			if p>>l&1 != 0 {
				d[l] = a[l]
			} else {
				d[l] = b[l]
			}
		}
		return nil
	}
	for _, t := range []typ{b16, b32, u32, s32, f32} {
		add("selp."+t.String(), w, t, t, t, pred)
	}
	for _, t := range []typ{b64, u64, s64} {
		add("selp."+t.String(), x, t, t, t, pred)
	}
}

// order tells, of two numbers, which is greater: one bit of the four that a comparison accepts.
type order uint8

const (
	less order = 1 << iota
	equal
	greater
	unordered
)

func compare[T uint32 | int32 | uint64 | int64 | float32](a, b T) order {
	switch {
	case a < b:
		return less
	case a > b:
		return greater
	case a == b:
		return equal
	}
	return unordered
}

// comparisons adds setp.
func comparisons(add func(string, func(*frame) error, ...typ)) {
	w := func(accept order, cmp func(a, b uint32) order) func(*frame) error {
		return func(f *frame) error {
			a, b, p := f.w[1], f.w[2], uint32(0)
			for l := range a {
				if cmp(a[l], b[l])&accept != 0 {
					p |= 1 << l
				}
			}
			f.p[0] = p
			return nil
		}
	}
	x := func(accept order, cmp func(a, b uint64) order) func(*frame) error {
		return func(f *frame) error {
			a, b, p := f.x[1], f.x[2], uint32(0)
			for l := range a {
				if cmp(a[l], b[l])&accept != 0 {
					p |= 1 << l
				}
			}
			f.p[0] = p
			return nil
		}
	}
	signedW := func(a, b uint32) order { return compare(int32(a), int32(b)) }
	signedX := func(a, b uint64) order { return compare(int64(a), int64(b)) }
	float := func(a, b uint32) order { return compare(math.Float32frombits(a), math.Float32frombits(b)) }
	for _, c := range []struct {
		name   string
		accept order
		types  []typ
	}{
		{"eq", equal, []typ{b32, u32, s32, f32, b64, u64, s64}},
		{"ne", less | greater, []typ{b32, u32, s32, f32, b64, u64, s64}},
		{"lt", less, []typ{u32, s32, f32, u64, s64}},
		{"le", less | equal, []typ{u32, s32, f32, u64, s64}},
		{"gt", greater, []typ{u32, s32, f32, u64, s64}},
		{"ge", greater | equal, []typ{u32, s32, f32, u64, s64}},
		{"lo", less, []typ{u32, u64}},
		{"ls", less | equal, []typ{u32, u64}},
		{"hi", greater, []typ{u32, u64}},
		{"hs", greater | equal, []typ{u32, u64}},
		{"equ", equal | unordered, []typ{f32}},
		{"neu", less | greater | unordered, []typ{f32}},
		{"ltu", less | unordered, []typ{f32}},
		{"leu", less | equal | unordered, []typ{f32}},
		{"gtu", greater | unordered, []typ{f32}},
		{"geu", greater | equal | unordered, []typ{f32}},
		{"num", less | equal | greater, []typ{f32}},
		{"nan", unordered, []typ{f32}},
	} {
		for _, t := range c.types {
			f := map[typ]func(*frame) error{
				b32: w(c.accept, compare[uint32]), u32: w(c.accept, compare[uint32]), s32: w(c.accept, signedW), f32: w(c.accept, float),
				b64: x(c.accept, compare[uint64]), u64: x(c.accept, compare[uint64]), s64: x(c.accept, signedX),
			}[t]
			add("setp."+c.name+"."+t.String(), f, pred, t, t)
		}
	}
}

package sim

import "math"

// Conversions between formats and widths.

func converts() map[string]*opcode {
	return map[string]*opcode{
		"VCVTDQ2PS":   {run: unary(func(a uint32) uint32 { return math.Float32bits(float32(int32(a))) }), masked: true},
		"VCVTUDQ2PS":  {run: unary(func(a uint32) uint32 { return math.Float32bits(float32(a)) }), masked: true, evex: always},
		"VCVTPS2DQ":   {run: unary(func(a uint32) uint32 { return toInt32(math.RoundToEven(float64(f32(a)))) }), masked: true},
		"VCVTTPS2DQ":  {run: unary(func(a uint32) uint32 { return toInt32(math.Trunc(float64(f32(a)))) }), masked: true},
		"VCVTPS2UDQ":  {run: unary(func(a uint32) uint32 { return toUint32(math.RoundToEven(float64(f32(a)))) }), masked: true, evex: always},
		"VCVTTPS2UDQ": {run: unary(func(a uint32) uint32 { return toUint32(math.Trunc(float64(f32(a)))) }), masked: true, evex: always},
		"VCVTPH2PS":   {run: widen(func(a uint16) uint32 { return fromHalf(a) }), masked: true},
		"VCVTPS2PH":   {run: toHalves, masked: true},
		"VCVTSI2SSL":  {run: fromGP(func(x uint64) float32 { return float32(int32(x)) }, 4)},
		"VCVTSI2SSQ":  {run: fromGP(func(x uint64) float32 { return float32(int64(x)) }, 8)},
		"VCVTSS2SI":   {run: toGP(math.RoundToEven, 4)}, "VCVTSS2SIQ": {run: toGP(math.RoundToEven, 8)},
		"VCVTTSS2SI": {run: toGP(math.Trunc, 4)}, "VCVTTSS2SIQ": {run: toGP(math.Trunc, 8)},

		"VPMOVSXBW": {run: widen(func(a int8) int16 { return int16(a) }), masked: true},
		"VPMOVSXBD": {run: widen(func(a int8) int32 { return int32(a) }), masked: true},
		"VPMOVSXBQ": {run: widen(func(a int8) int64 { return int64(a) }), masked: true},
		"VPMOVSXWD": {run: widen(func(a int16) int32 { return int32(a) }), masked: true},
		"VPMOVSXWQ": {run: widen(func(a int16) int64 { return int64(a) }), masked: true},
		"VPMOVSXDQ": {run: widen(func(a int32) int64 { return int64(a) }), masked: true},
		"VPMOVZXBW": {run: widen(func(a uint8) uint16 { return uint16(a) }), masked: true},
		"VPMOVZXBD": {run: widen(func(a uint8) uint32 { return uint32(a) }), masked: true},
		"VPMOVZXBQ": {run: widen(func(a uint8) uint64 { return uint64(a) }), masked: true},
		"VPMOVZXWD": {run: widen(func(a uint16) uint32 { return uint32(a) }), masked: true},
		"VPMOVZXWQ": {run: widen(func(a uint16) uint64 { return uint64(a) }), masked: true},
		"VPMOVZXDQ": {run: widen(func(a uint32) uint64 { return uint64(a) }), masked: true},

		"VPMOVWB": {run: narrow(func(a uint16) uint8 { return uint8(a) }), masked: true, evex: always},
		"VPMOVDB": {run: narrow(func(a uint32) uint8 { return uint8(a) }), masked: true, evex: always},
		"VPMOVDW": {run: narrow(func(a uint32) uint16 { return uint16(a) }), masked: true, evex: always},
		"VPMOVQB": {run: narrow(func(a uint64) uint8 { return uint8(a) }), masked: true, evex: always},
		"VPMOVQW": {run: narrow(func(a uint64) uint16 { return uint16(a) }), masked: true, evex: always},
		"VPMOVQD": {run: narrow(func(a uint64) uint32 { return uint32(a) }), masked: true, evex: always},

		"VPMOVSWB":  {run: narrow(func(a int16) int8 { return int8(min(max(a, -128), 127)) }), masked: true, evex: always},
		"VPMOVSDB":  {run: narrow(func(a int32) int8 { return int8(min(max(a, -128), 127)) }), masked: true, evex: always},
		"VPMOVSDW":  {run: narrow(func(a int32) int16 { return int16(min(max(a, -32768), 32767)) }), masked: true, evex: always},
		"VPMOVUSWB": {run: narrow(func(a uint16) uint8 { return uint8(min(a, 255)) }), masked: true, evex: always},
		"VPMOVUSDB": {run: narrow(func(a uint32) uint8 { return uint8(min(a, 255)) }), masked: true, evex: always},
		"VPMOVUSDW": {run: narrow(func(a uint32) uint16 { return uint16(min(a, 65535)) }), masked: true, evex: always},
	}
}

// toInt32 and toUint32 convert an integral float64; what does not fit becomes the integer indefinite value.

func toInt32(x float64) uint32 {
	if x >= -1<<31 && x < 1<<31 {
		return uint32(int32(x))
	}
	return 1 << 31
}

func toUint32(x float64) uint32 {
	if x >= 0 && x < 1<<32 {
		return uint32(x)
	}
	return math.MaxUint32
}

// widen converts the low elements of the source to wider ones that fill the destination. The source operand is narrower than
// the destination and has the same number of elements.
func widen[F, T lane](f func(F) T) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		from, to := sizeOf[F](), sizeOf[T]()
		n := in.dst.size / to
		var a, r vector
		if s := &in.src[0]; s.kind == memArg && in.mask != 0 {
			addr, active := m.base(&s.mem), m.active(in, n)
			for i := range n {
				if active>>i&1 != 0 {
					m.load(addr+uint64(i*from), a[i*from:(i+1)*from])
				}
			}
		} else {
			a = m.bytes(in, 0, n*from)
		}
		for i := range n {
			set(&r, i, f(get[F](&a, i)))
		}
		m.put(in, &r, to, in.dst.size)
	}
}

// narrow converts all elements of the source to smaller ones; a register destination is cleared above them.
func narrow[F, T lane](f func(F) T) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a := m.readVec(in.src[0].reg)
		var r vector
		n := in.src[0].size / sizeOf[F]()
		for i := range n {
			set(&r, i, f(get[F](&a, i)))
		}
		m.put(in, &r, sizeOf[T](), n*sizeOf[T]())
	}
}

// toHalves converts float32 to float16; the immediate is a rounding control.
func toHalves(m *Machine, in *instruction) {
	imm := m.immediate(in)
	narrow(func(a uint32) uint16 { return toHalf(a, imm) })(m, in)
}

// fromHalf converts a float16. Every value has a float32.
func fromHalf(h uint16) uint32 {
	s := uint32(h>>15) << 31
	exponent, fraction := uint32(h>>10&31), uint32(h&1023)
	switch {
	case exponent == 31 && fraction != 0:
		return s | 0x7F800000 | fraction<<13 | quietBit
	case exponent == 31:
		return s | 0x7F800000
	case exponent == 0:
		return s | math.Float32bits(float32(fraction)/(1<<24))
	}
	return s | (exponent+112)<<23 | fraction<<13
}

// toHalf rounds a float32 to float16; subnormal results are kept.
func toHalf(a uint32, control uint8) uint16 {
	s := uint16(a >> 31 << 15)
	if isNaN32(a) {
		return s | 0x7E00 | uint16(a>>13&1023)
	}
	x := math.Abs(float64(f32(a)))
	if math.IsInf(x, 0) {
		return s | 0x7C00
	}
	// One unit in the last place is 2^(exponent−10), that of the subnormals 2^−24.
	_, exponent := math.Frexp(x)
	ulp := max(exponent-11, -24)
	if control&4 == 0 && a>>31 != 0 { // directed rounding is that of the signed value
		switch control & 3 {
		case 1:
			control = 2
		case 2:
			control = 1
		}
	}
	units := roundTo(math.Ldexp(x, -ulp), control)
	if x = math.Ldexp(units, ulp); x >= 65536 {
		if c := control & 7; c == 1 || c == 3 {
			return s | 0x7BFF
		}
		return s | 0x7C00
	}
	if x < 1.0/(1<<14) {
		return s | uint16(math.Ldexp(x, 24))
	}
	fraction, exponent := math.Frexp(x)
	return s | uint16(exponent+14)<<10 | uint16(float64(fraction*2048))&1023
}

// fromGP converts a general register or memory operand to the lowest float32.
func fromGP(f func(uint64) float32, size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		r := m.readVec(in.src[0].reg)
		set(&r, 0, math.Float32bits(f(m.value(&in.src[1], size))))
		m.writeVec(in.dst.reg, 16, &r)
	}
}

// toGP converts the lowest float32 to a general register.
func toGP(round func(float64) float64, size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a := m.bytes(in, 0, 4)
		x := round(float64(f32(get[uint32](&a, 0))))
		r := uint64(toInt32(x))
		if size == 8 {
			r = 1 << 63
			if x >= -1<<63 && x < 1<<63 {
				r = uint64(int64(x))
			}
		}
		m.writeGP(in.dst.reg, size, false, r)
	}
}

package sim

// Integer arithmetic, logic, shifts, products and comparisons on vectors.

func integer() map[string]*opcode {
	return map[string]*opcode{
		"VPADDB":   {run: binary2(func(a, b uint8) uint8 { return a + b }), masked: true},
		"VPADDW":   {run: binary2(func(a, b uint16) uint16 { return a + b }), masked: true},
		"VPADDD":   {run: binary2(func(a, b uint32) uint32 { return a + b }), masked: true},
		"VPADDQ":   {run: binary2(func(a, b uint64) uint64 { return a + b }), masked: true},
		"VPSUBB":   {run: binary2(func(a, b uint8) uint8 { return a - b }), masked: true, cancels: sameSources},
		"VPSUBW":   {run: binary2(func(a, b uint16) uint16 { return a - b }), masked: true, cancels: sameSources},
		"VPSUBD":   {run: binary2(func(a, b uint32) uint32 { return a - b }), masked: true, cancels: sameSources},
		"VPSUBQ":   {run: binary2(func(a, b uint64) uint64 { return a - b }), masked: true, cancels: sameSources},
		"VPADDSB":  {run: binary2(func(a, b int8) int8 { return int8(saturate(int32(a)+int32(b), -128, 127)) }), masked: true},
		"VPADDSW":  {run: binary2(func(a, b int16) int16 { return int16(saturate(int32(a)+int32(b), -32768, 32767)) }), masked: true},
		"VPADDUSB": {run: binary2(func(a, b uint8) uint8 { return uint8(saturate(int32(a)+int32(b), 0, 255)) }), masked: true},
		"VPADDUSW": {run: binary2(func(a, b uint16) uint16 { return uint16(saturate(int32(a)+int32(b), 0, 65535)) }), masked: true},
		"VPSUBSB":  {run: binary2(func(a, b int8) int8 { return int8(saturate(int32(a)-int32(b), -128, 127)) }), masked: true},
		"VPSUBSW":  {run: binary2(func(a, b int16) int16 { return int16(saturate(int32(a)-int32(b), -32768, 32767)) }), masked: true},
		"VPSUBUSB": {run: binary2(func(a, b uint8) uint8 { return uint8(saturate(int32(a)-int32(b), 0, 255)) }), masked: true},
		"VPSUBUSW": {run: binary2(func(a, b uint16) uint16 { return uint16(saturate(int32(a)-int32(b), 0, 65535)) }), masked: true},
		"VPAVGB":   {run: binary2(func(a, b uint8) uint8 { return uint8((uint32(a) + uint32(b) + 1) >> 1) }), masked: true},
		"VPAVGW":   {run: binary2(func(a, b uint16) uint16 { return uint16((uint32(a) + uint32(b) + 1) >> 1) }), masked: true},

		"VPMAXSB": {run: binary2(largest[int8]), masked: true}, "VPMINSB": {run: binary2(least[int8]), masked: true},
		"VPMAXUB": {run: binary2(largest[uint8]), masked: true}, "VPMINUB": {run: binary2(least[uint8]), masked: true},
		"VPMAXSW": {run: binary2(largest[int16]), masked: true}, "VPMINSW": {run: binary2(least[int16]), masked: true},
		"VPMAXUW": {run: binary2(largest[uint16]), masked: true}, "VPMINUW": {run: binary2(least[uint16]), masked: true},
		"VPMAXSD": {run: binary2(largest[int32]), masked: true}, "VPMINSD": {run: binary2(least[int32]), masked: true},
		"VPMAXUD": {run: binary2(largest[uint32]), masked: true}, "VPMINUD": {run: binary2(least[uint32]), masked: true},
		"VPMAXSQ": {run: binary2(largest[int64]), masked: true, evex: always}, "VPMINSQ": {run: binary2(least[int64]), masked: true, evex: always},
		"VPMAXUQ": {run: binary2(largest[uint64]), masked: true, evex: always}, "VPMINUQ": {run: binary2(least[uint64]), masked: true, evex: always},

		"VPABSB": {run: unary(magnitude[int8]), masked: true},
		"VPABSW": {run: unary(magnitude[int16]), masked: true},
		"VPABSD": {run: unary(magnitude[int32]), masked: true},
		"VPABSQ": {run: unary(magnitude[int64]), masked: true, evex: always},

		"VPSIGNB": {run: binary2(withSign[int8])},
		"VPSIGNW": {run: binary2(withSign[int16])},
		"VPSIGND": {run: binary2(withSign[int32])},

		"VPSADBW": {run: sumOfDifferences},
		"VPHADDW": {run: blocks(2, pairs[int16](func(a, b int16) int16 { return a + b }))},
		"VPHADDD": {run: blocks(4, pairs[int32](func(a, b int32) int32 { return a + b }))},
		"VPHSUBW": {run: blocks(2, pairs[int16](func(a, b int16) int16 { return a - b }))},
		"VPHSUBD": {run: blocks(4, pairs[int32](func(a, b int32) int32 { return a - b }))},
	}
}

func saturate(x, lo, hi int32) int32 { return min(max(x, lo), hi) }

func largest[T lane](a, b T) T { return max(a, b) }
func least[T lane](a, b T) T   { return min(a, b) }

func magnitude[T int8 | int16 | int32 | int64](a T) T {
	if a < 0 {
		return -a
	}
	return a
}

func withSign[T int8 | int16 | int32](a, b T) T {
	switch {
	case b < 0:
		return -a
	case b == 0:
		return 0
	}
	return a
}

// pairs combines neighbours within a 128-bit block: those of a, then those of b.
func pairs[T lane](f func(x, y T) T) func(a, b *vector) vector {
	return func(a, b *vector) vector {
		var r vector
		n := 8 / sizeOf[T]()
		for i := range n {
			set(&r, i, f(get[T](a, 2*i), get[T](a, 2*i+1)))
			set(&r, n+i, f(get[T](b, 2*i), get[T](b, 2*i+1)))
		}
		return r
	}
}

func sumOfDifferences(m *Machine, in *instruction) {
	a, b := m.source(in, 0, 1), m.source(in, 1, 1)
	var r vector
	for i := range in.width {
		d := magnitude(int32(a[i]) - int32(b[i]))
		set(&r, i/8, get[uint64](&r, i/8)+uint64(d))
	}
	m.put(in, &r, 8, in.width)
}

func logic() map[string]*opcode {
	and := func(a, b uint64) uint64 { return a & b }
	andNot := func(a, b uint64) uint64 { return ^a & b }
	or := func(a, b uint64) uint64 { return a | b }
	xor := func(a, b uint64) uint64 { return a ^ b }
	and4 := func(a, b uint32) uint32 { return a & b }
	andNot4 := func(a, b uint32) uint32 { return ^a & b }
	or4 := func(a, b uint32) uint32 { return a | b }
	xor4 := func(a, b uint32) uint32 { return a ^ b }
	return map[string]*opcode{
		"VPAND": {run: binary2(and)}, "VPANDN": {run: binary2(andNot), cancels: sameSources},
		"VPOR": {run: binary2(or)}, "VPXOR": {run: binary2(xor), cancels: sameSources},
		"VPANDD": {run: binary2(and4), masked: true, evex: always}, "VPANDND": {run: binary2(andNot4), masked: true, evex: always, cancels: sameSources},
		"VPORD": {run: binary2(or4), masked: true, evex: always}, "VPXORD": {run: binary2(xor4), masked: true, evex: always, cancels: sameSources},
		"VPANDQ": {run: binary2(and), masked: true, evex: always}, "VPANDNQ": {run: binary2(andNot), masked: true, evex: always, cancels: sameSources},
		"VPORQ": {run: binary2(or), masked: true, evex: always}, "VPXORQ": {run: binary2(xor), masked: true, evex: always, cancels: sameSources},
		"VANDPS": {run: binary2(and4), masked: true}, "VANDNPS": {run: binary2(andNot4), masked: true, cancels: sameSources},
		"VORPS": {run: binary2(or4), masked: true}, "VXORPS": {run: binary2(xor4), masked: true, cancels: sameSources},
		"VANDPD": {run: binary2(and), masked: true}, "VANDNPD": {run: binary2(andNot), masked: true, cancels: sameSources},
		"VORPD": {run: binary2(or), masked: true}, "VXORPD": {run: binary2(xor), masked: true, cancels: sameSources},
		"VPTERNLOGD": {run: ternaryLogic[uint32], masked: true, evex: always, cancels: constantLogic},
		"VPTERNLOGQ": {run: ternaryLogic[uint64], masked: true, evex: always, cancels: constantLogic},
	}
}

// ternaryLogic looks each bit up in the immediate: bit 4·dst + 2·a + b.
func ternaryLogic[T uint32 | uint64](m *Machine, in *instruction) {
	imm := m.immediate(in)
	ternary(func(d, a, b T) T {
		var r T
		for i := range 8 {
			if imm>>i&1 == 0 {
				continue
			}
			x, y, z := d, a, b
			if i&4 == 0 {
				x = ^x
			}
			if i&2 == 0 {
				y = ^y
			}
			if i&1 == 0 {
				z = ^z
			}
			r |= x & y & z
		}
		return r
	})(m, in)
}

// constantLogic reports whether a ternary logic instruction's result depends on no operand.
func constantLogic(in *instruction) bool {
	imm := uint8(in.src[len(in.src)-1].imm)
	return imm == 0 || imm == 0xFF
}

func shifts() map[string]*opcode {
	return map[string]*opcode{
		"VPSLLW": {run: shift(left[uint16]), masked: true, evex: shiftsMemory}, "VPSRLW": {run: shift(right[uint16]), masked: true, evex: shiftsMemory}, "VPSRAW": {run: shift(rightSigned[int16]), masked: true, evex: shiftsMemory},
		"VPSLLD": {run: shift(left[uint32]), masked: true, evex: shiftsMemory}, "VPSRLD": {run: shift(right[uint32]), masked: true, evex: shiftsMemory}, "VPSRAD": {run: shift(rightSigned[int32]), masked: true, evex: shiftsMemory},
		"VPSLLQ": {run: shift(left[uint64]), masked: true, evex: shiftsMemory}, "VPSRLQ": {run: shift(right[uint64]), masked: true, evex: shiftsMemory}, "VPSRAQ": {run: shift(rightSigned[int64]), masked: true, evex: always},
		"VPSLLVW": {run: binary2(shiftEach(left[uint16])), masked: true, evex: always}, "VPSRLVW": {run: binary2(shiftEach(right[uint16])), masked: true, evex: always}, "VPSRAVW": {run: binary2(shiftEach(rightSigned[int16])), masked: true, evex: always},
		"VPSLLVD": {run: binary2(shiftEach(left[uint32])), masked: true}, "VPSRLVD": {run: binary2(shiftEach(right[uint32])), masked: true}, "VPSRAVD": {run: binary2(shiftEach(rightSigned[int32])), masked: true},
		"VPSLLVQ": {run: binary2(shiftEach(left[uint64])), masked: true}, "VPSRLVQ": {run: binary2(shiftEach(right[uint64])), masked: true}, "VPSRAVQ": {run: binary2(shiftEach(rightSigned[int64])), masked: true, evex: always},
		"VPROLD":  {run: unaryImm(func(a uint32, n uint8) uint32 { return rotate(a, uint64(n)) }), masked: true, evex: always},
		"VPROLQ":  {run: unaryImm(func(a uint64, n uint8) uint64 { return rotate(a, uint64(n)) }), masked: true, evex: always},
		"VPRORD":  {run: unaryImm(func(a uint32, n uint8) uint32 { return rotate(a, -uint64(n)) }), masked: true, evex: always},
		"VPRORQ":  {run: unaryImm(func(a uint64, n uint8) uint64 { return rotate(a, -uint64(n)) }), masked: true, evex: always},
		"VPROLVD": {run: binary2(func(a, n uint32) uint32 { return rotate(a, uint64(n)) }), masked: true, evex: always},
		"VPRORVD": {run: binary2(func(a, n uint32) uint32 { return rotate(a, -uint64(n)) }), masked: true, evex: always},
		"VPSLLDQ": {run: blocksImm(1, func(a *vector, imm uint8) vector { return slide(a, -int(imm)) }), evex: shiftsMemory},
		"VPSRLDQ": {run: blocksImm(1, func(a *vector, imm uint8) vector { return slide(a, int(imm)) }), evex: shiftsMemory},
	}
}

// shiftsMemory reports whether a memory operand is shifted by an immediate, which only EVEX encodes.
func shiftsMemory(in *instruction) bool {
	return len(in.src) == 2 && in.src[0].kind == memArg && in.src[1].kind == immArg
}

func left[T uint16 | uint32 | uint64](a T, n uint64) T     { return a << n }
func right[T uint16 | uint32 | uint64](a T, n uint64) T    { return a >> n }
func rightSigned[T int16 | int32 | int64](a T, n uint64) T { return a >> n }

func rotate[T uint32 | uint64](a T, n uint64) T {
	bits := uint64(8 * sizeOf[T]())
	n %= bits
	return a<<n | a>>(bits-n)
}

// shift shifts all elements by an immediate, or by the low 64 bits of the second source.
func shift[T lane](f func(a T, n uint64) T) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		size := sizeOf[T]()
		a := m.source(in, 0, size)
		n := in.src[1].imm & 0xFF
		if in.src[1].kind != immArg {
			b := m.bytes(in, 1, 16)
			n = get[uint64](&b, 0)
		}
		for i := range in.width / size {
			set(&a, i, f(get[T](&a, i), n))
		}
		m.put(in, &a, size, in.width)
	}
}

// shiftEach turns a shift into one by the count in the other source's element.
func shiftEach[T lane](f func(a T, n uint64) T) func(a, n T) T {
	return func(a, n T) T { return f(a, truncate(uint64(n), sizeOf[T]())) }
}

// slide moves the bytes of a 128-bit block down by n places, up by −n, and fills with zeros.
func slide(a *vector, n int) vector {
	var r vector
	for i := range 16 {
		if j := i + n; j >= 0 && j < 16 {
			r[i] = a[j]
		}
	}
	return r
}

func multiplies() map[string]*opcode {
	return map[string]*opcode{
		"VPMULLW":    {run: binary2(func(a, b int16) int16 { return a * b }), masked: true},
		"VPMULLD":    {run: binary2(func(a, b int32) int32 { return a * b }), masked: true},
		"VPMULLQ":    {run: binary2(func(a, b int64) int64 { return a * b }), masked: true, evex: always},
		"VPMULHW":    {run: binary2(func(a, b int16) int16 { return int16(int32(a) * int32(b) >> 16) }), masked: true},
		"VPMULHUW":   {run: binary2(func(a, b uint16) uint16 { return uint16(uint32(a) * uint32(b) >> 16) }), masked: true},
		"VPMULHRSW":  {run: binary2(func(a, b int16) int16 { return int16((int32(a)*int32(b)>>14 + 1) >> 1) }), masked: true},
		"VPMULDQ":    {run: binary2(func(a, b int64) int64 { return int64(int32(a)) * int64(int32(b)) }), masked: true},
		"VPMULUDQ":   {run: binary2(func(a, b uint64) uint64 { return uint64(uint32(a)) * uint64(uint32(b)) }), masked: true},
		"VPMADDWD":   {run: binary2(addPairs), masked: true},
		"VPMADDUBSW": {run: binary2(addPairsSaturating), masked: true},
		"VPDPBUSD":   {run: ternary(dotBytes), masked: true, evex: always},
		"VPDPWSSD":   {run: ternary(func(d, a, b uint32) uint32 { return d + addPairs(a, b) }), masked: true, evex: always},
	}
}

// addPairs is the sum of the two products of 16-bit elements; −32768² · 2 wraps.
func addPairs(a, b uint32) uint32 {
	return uint32(int32(int16(a))*int32(int16(b)) + int32(int16(a>>16))*int32(int16(b>>16)))
}

// addPairsSaturating is the saturated sum of the two products of unsigned bytes of a and signed bytes of b.
func addPairsSaturating(a, b uint16) uint16 {
	sum := int32(uint8(a))*int32(int8(b)) + int32(uint8(a>>8))*int32(int8(b>>8))
	return uint16(saturate(sum, -32768, 32767))
}

// dotBytes adds the four products of unsigned bytes of a and signed bytes of b to d.
func dotBytes(d, a, b uint32) uint32 {
	for i := 0; i < 32; i += 8 {
		d += uint32(int32(uint8(a>>i)) * int32(int8(b>>i)))
	}
	return d
}

func compares() map[string]*opcode {
	return map[string]*opcode{
		"VPCMPEQB": {run: compare(equal[int8]), masked: true, cancels: sameSources}, "VPCMPGTB": {run: compare(greater[int8]), masked: true},
		"VPCMPEQW": {run: compare(equal[int16]), masked: true, cancels: sameSources}, "VPCMPGTW": {run: compare(greater[int16]), masked: true},
		"VPCMPEQD": {run: compare(equal[int32]), masked: true, cancels: sameSources}, "VPCMPGTD": {run: compare(greater[int32]), masked: true},
		"VPCMPEQQ": {run: compare(equal[int64]), masked: true, cancels: sameSources}, "VPCMPGTQ": {run: compare(greater[int64]), masked: true},
		"VPCMPB": {run: compare(relation[int8]), masked: true, evex: always}, "VPCMPUB": {run: compare(relation[uint8]), masked: true, evex: always},
		"VPCMPW": {run: compare(relation[int16]), masked: true, evex: always}, "VPCMPUW": {run: compare(relation[uint16]), masked: true, evex: always},
		"VPCMPD": {run: compare(relation[int32]), masked: true, evex: always}, "VPCMPUD": {run: compare(relation[uint32]), masked: true, evex: always},
		"VPCMPQ": {run: compare(relation[int64]), masked: true, evex: always}, "VPCMPUQ": {run: compare(relation[uint64]), masked: true, evex: always},
		"VPTESTMB": {run: compare(meets[uint8]), masked: true, evex: always}, "VPTESTNMB": {run: compare(misses[uint8]), masked: true, evex: always},
		"VPTESTMW": {run: compare(meets[uint16]), masked: true, evex: always}, "VPTESTNMW": {run: compare(misses[uint16]), masked: true, evex: always},
		"VPTESTMD": {run: compare(meets[uint32]), masked: true, evex: always}, "VPTESTNMD": {run: compare(misses[uint32]), masked: true, evex: always},
		"VPTESTMQ": {run: compare(meets[uint64]), masked: true, evex: always}, "VPTESTNMQ": {run: compare(misses[uint64]), masked: true, evex: always},
		"VPTEST":  {run: test(^uint64(0))},
		"VTESTPS": {run: test(1<<63 | 1<<31)},
	}
}

func equal[T lane](a, b T, _ uint8) bool   { return a == b }
func greater[T lane](a, b T, _ uint8) bool { return a > b }
func meets[T lane](a, b T, _ uint8) bool   { return a&b != 0 }
func misses[T lane](a, b T, _ uint8) bool  { return a&b == 0 }

// relation compares by an immediate predicate.
func relation[T lane](a, b T, imm uint8) bool {
	switch imm & 7 {
	case 0:
		return a == b
	case 1:
		return a < b
	case 2:
		return a <= b
	case 3:
		return false
	case 4:
		return a != b
	case 5:
		return a >= b
	case 6:
		return a > b
	}
	return true
}

// test sets ZF if no bit of mask is set in both operands and CF if none is set in the source alone.
func test(mask uint64) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a, b := m.readVec(in.dst.reg), m.source(in, 0, 8)
		both, only := uint64(0), uint64(0)
		for i := range in.width / 8 {
			x, y := get[uint64](&a, i)&mask, get[uint64](&b, i)
			both |= x & y
			only |= ^x & mask & y
		}
		m.setFlags(allFlags, 0)
		if both == 0 {
			m.flags |= zero
		}
		if only == 0 {
			m.flags |= carry
		}
	}
}

package sim

// Shuffles, permutations, interleaving and packing.

func permutes() map[string]*opcode {
	variable := func(in *instruction) bool { return in.src[1].kind != immArg }
	return map[string]*opcode{
		"VPSHUFB":   {run: blocks(1, shuffleBytes), masked: true},
		"VPSHUFD":   {run: blocksImm(4, func(a *vector, imm uint8) vector { return shuffle4(a, a, imm) }), masked: true},
		"VPSHUFHW":  {run: blocksImm(2, func(a *vector, imm uint8) vector { return shuffleWords(a, imm, 4) }), masked: true},
		"VPSHUFLW":  {run: blocksImm(2, func(a *vector, imm uint8) vector { return shuffleWords(a, imm, 0) }), masked: true},
		"VSHUFPS":   {run: shuffleTwo, masked: true},
		"VSHUFPD":   {run: shuffleDoubles, masked: true},
		"VPERMILPS": {run: permuteInBlocks[uint32](0), masked: true},
		"VPERMILPD": {run: permuteInBlocks[uint64](1), masked: true},
		"VPALIGNR":  {run: alignBytes, masked: true},
		"VALIGND":   {run: align[uint32], masked: true, evex: always},
		"VALIGNQ":   {run: align[uint64], masked: true, evex: always},

		"VPERMD": {run: permute[uint32], masked: true}, "VPERMPS": {run: permute[uint32], masked: true},
		"VPERMW": {run: permute[uint16], masked: true, evex: always},
		"VPERMQ": {run: permuteQuads, masked: true, evex: variable}, "VPERMPD": {run: permuteQuads, masked: true, evex: variable},
		"VPERMI2D": {run: permuteTwo[uint32](true), masked: true, evex: always}, "VPERMI2PS": {run: permuteTwo[uint32](true), masked: true, evex: always},
		"VPERMT2D": {run: permuteTwo[uint32](false), masked: true, evex: always}, "VPERMT2PS": {run: permuteTwo[uint32](false), masked: true, evex: always},
		"VPERMI2W": {run: permuteTwo[uint16](true), masked: true, evex: always}, "VPERMT2W": {run: permuteTwo[uint16](false), masked: true, evex: always},
		"VPERMI2Q": {run: permuteTwo[uint64](true), masked: true, evex: always}, "VPERMT2Q": {run: permuteTwo[uint64](false), masked: true, evex: always},

		"VPERM2F128": {run: permuteBlocks}, "VPERM2I128": {run: permuteBlocks},
		"VSHUFF32X4": {run: shuffleBlocks(4), masked: true, evex: always}, "VSHUFI32X4": {run: shuffleBlocks(4), masked: true, evex: always},
		"VSHUFF64X2": {run: shuffleBlocks(8), masked: true, evex: always}, "VSHUFI64X2": {run: shuffleBlocks(8), masked: true, evex: always},

		"VPUNPCKLBW": {run: blocks(1, interleave[uint8](0)), masked: true}, "VPUNPCKHBW": {run: blocks(1, interleave[uint8](1)), masked: true},
		"VPUNPCKLWD": {run: blocks(2, interleave[uint16](0)), masked: true}, "VPUNPCKHWD": {run: blocks(2, interleave[uint16](1)), masked: true},
		"VPUNPCKLDQ": {run: blocks(4, interleave[uint32](0)), masked: true}, "VPUNPCKHDQ": {run: blocks(4, interleave[uint32](1)), masked: true},
		"VPUNPCKLQDQ": {run: blocks(8, interleave[uint64](0)), masked: true}, "VPUNPCKHQDQ": {run: blocks(8, interleave[uint64](1)), masked: true},
		"VUNPCKLPS": {run: blocks(4, interleave[uint32](0)), masked: true}, "VUNPCKHPS": {run: blocks(4, interleave[uint32](1)), masked: true},
		"VUNPCKLPD": {run: blocks(8, interleave[uint64](0)), masked: true}, "VUNPCKHPD": {run: blocks(8, interleave[uint64](1)), masked: true},

		"VPACKSSWB": {run: blocksOf(2, 1, pack(func(a int16) int8 { return int8(saturate(int32(a), -128, 127)) })), masked: true},
		"VPACKUSWB": {run: blocksOf(2, 1, pack(func(a int16) uint8 { return uint8(saturate(int32(a), 0, 255)) })), masked: true},
		"VPACKSSDW": {run: blocksOf(4, 2, pack(func(a int32) int16 { return int16(saturate(a, -32768, 32767)) })), masked: true},
		"VPACKUSDW": {run: blocksOf(4, 2, pack(func(a int32) uint16 { return uint16(saturate(a, 0, 65535)) })), masked: true},
	}
}

// shuffleBytes picks bytes of a by the low four bits of those of b; a negative one gives 0.
func shuffleBytes(a, b *vector) vector {
	var r vector
	for i := range 16 {
		if b[i] < 128 {
			r[i] = a[b[i]&15]
		}
	}
	return r
}

// shuffle4 picks two elements of a, then two of b, by two bits each.
func shuffle4(a, b *vector, imm uint8) vector {
	var r vector
	for i := range 4 {
		from := a
		if i >= 2 {
			from = b
		}
		set(&r, i, get[uint32](from, int(imm>>(2*i)&3)))
	}
	return r
}

// shuffleWords shuffles the four 16-bit elements from first on; the others stay.
func shuffleWords(a *vector, imm uint8, first int) vector {
	r := *a
	for i := range 4 {
		set(&r, first+i, get[uint16](a, first+int(imm>>(2*i)&3)))
	}
	return r
}

func shuffleTwo(m *Machine, in *instruction) {
	imm := m.immediate(in)
	blocks(4, func(a, b *vector) vector { return shuffle4(a, b, imm) })(m, in)
}

// shuffleDoubles picks an element of a, then one of b, in each block, by one bit each; every block has its own bits.
func shuffleDoubles(m *Machine, in *instruction) {
	a, b, imm := m.whole(in, 0, 8), m.whole(in, 1, 8), m.immediate(in)
	var r vector
	for i := range in.width / 8 {
		from := &a
		if i&1 != 0 {
			from = &b
		}
		set(&r, i, get[uint64](from, i&^1|int(imm>>i&1)))
	}
	m.put(in, &r, 8, in.width)
}

// permuteInBlocks picks elements of the same 128-bit block, by an immediate or by the elements of the second source, whose
// index begins at bit low.
func permuteInBlocks[T uint32 | uint64](low int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		size := sizeOf[T]()
		per := 16 / size
		var index vector
		if in.src[1].kind == immArg {
			for i := range in.width / size {
				x := in.src[1].imm >> (2 * (i % 4)) // two bits of the same byte for every block
				if per == 2 {
					x = in.src[1].imm >> i << low
				}
				set(&index, i, T(x))
			}
		} else {
			index = m.whole(in, 1, size)
		}
		a := m.whole(in, 0, size)
		var r vector
		for i := range in.width / size {
			from := int(get[T](&index, i)>>low) & (per - 1)
			set(&r, i, get[T](&a, i&^(per-1)|from))
		}
		m.put(in, &r, size, in.width)
	}
}

// alignBytes shifts each block of a (high) and b (low), joined, down by the immediate.
func alignBytes(m *Machine, in *instruction) {
	n := int(m.immediate(in))
	blocks(1, func(a, b *vector) vector {
		low, high := slide(b, n), slide(a, n-16)
		for i := range 16 {
			low[i] |= high[i]
		}
		return low
	})(m, in)
}

// align shifts a (high) and b (low), joined, down by a number of elements.
func align[T uint32 | uint64](m *Machine, in *instruction) {
	size := sizeOf[T]()
	a, b, imm := m.whole(in, 0, size), m.whole(in, 1, size), m.immediate(in)
	n := in.width / size
	var r vector
	for i := range n {
		if j := i + int(imm)%n; j < n {
			set(&r, i, get[T](&b, j))
		} else {
			set(&r, i, get[T](&a, j-n))
		}
	}
	m.put(in, &r, size, in.width)
}

// permute picks elements of the second source by the indices in the first.
func permute[T lane](m *Machine, in *instruction) {
	size := sizeOf[T]()
	index, a := m.whole(in, 0, size), m.whole(in, 1, size)
	n := in.width / size
	var r vector
	for i := range n {
		set(&r, i, get[T](&a, int(get[T](&index, i))&(n-1)))
	}
	m.put(in, &r, size, in.width)
}

// permuteQuads picks 64-bit elements: by an immediate within each 256 bits, or as permute does.
func permuteQuads(m *Machine, in *instruction) {
	if in.src[1].kind != immArg {
		permute[uint64](m, in)
		return
	}
	a, imm := m.whole(in, 0, 8), m.immediate(in)
	var r vector
	for i := range in.width / 8 {
		set(&r, i, get[uint64](&a, i&^3|int(imm>>(2*(i&3))&3)))
	}
	m.put(in, &r, 8, in.width)
}

// permuteTwo picks from two tables. Either the destination holds the indices and the sources are the tables, or the first
// source holds the indices and the tables are destination and second source.
func permuteTwo[T lane](indexInDestination bool) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		size := sizeOf[T]()
		index, a, b := m.destination(in), m.whole(in, 0, size), m.whole(in, 1, size)
		if !indexInDestination {
			index, a = a, index
		}
		n := in.width / size
		var r vector
		for i := range n {
			j := int(get[T](&index, i)) & (2*n - 1)
			if j < n {
				set(&r, i, get[T](&a, j))
			} else {
				set(&r, i, get[T](&b, j-n))
			}
		}
		m.put(in, &r, size, in.width)
	}
}

// permuteBlocks picks each half of the result among the four of the sources; bit 3 of a control clears it.
func permuteBlocks(m *Machine, in *instruction) {
	a, b, imm := m.whole(in, 0, 16), m.whole(in, 1, 16), m.immediate(in)
	var r vector
	for i := range 2 {
		control := imm >> (4 * i)
		from := &a
		if control&2 != 0 {
			from = &b
		}
		if control&8 == 0 {
			at := 16 * int(control&1)
			copy(r[16*i:16*i+16], from[at:at+16])
		}
	}
	m.put(in, &r, 16, 32)
}

// shuffleBlocks picks the lower half of the blocks from the first source and the upper one from the second.
func shuffleBlocks(size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a, b, imm := m.whole(in, 0, size), m.whole(in, 1, size), int(m.immediate(in))
		n := in.width / 16
		var r vector
		for i := range n {
			from := &a
			if i >= n/2 {
				from = &b
			}
			at := 16 * (imm & (n - 1))
			imm >>= n / 2
			copy(r[16*i:16*i+16], from[at:at+16])
		}
		m.put(in, &r, size, in.width)
	}
}

// interleave alternates the elements of the lower (0) or upper (1) halves.
func interleave[T lane](upper int) func(a, b *vector) vector {
	return func(a, b *vector) vector {
		var r vector
		n := 8 / sizeOf[T]()
		for i := range n {
			set(&r, 2*i, get[T](a, upper*n+i))
			set(&r, 2*i+1, get[T](b, upper*n+i))
		}
		return r
	}
}

// pack narrows the elements of a, then those of b.
func pack[F, T lane](f func(F) T) func(a, b *vector) vector {
	return func(a, b *vector) vector {
		var r vector
		n := 16 / sizeOf[F]()
		for i := range n {
			set(&r, i, f(get[F](a, i)))
			set(&r, n+i, f(get[F](b, i)))
		}
		return r
	}
}

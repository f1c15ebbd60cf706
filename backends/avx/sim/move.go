package sim

// Moves between registers and memory, broadcasts, insertion and extraction, blends, masked and gathering accesses.

func moves() map[string]*opcode {
	high := func(v *vector) uint64 { return get[uint64](v, 1) }
	return join(
		each(&opcode{run: move(4, false), masked: true}, "VMOVUPS"),
		each(&opcode{run: move(8, false), masked: true}, "VMOVUPD"),
		each(&opcode{run: move(4, true), masked: true}, "VMOVAPS"),
		each(&opcode{run: move(8, true), masked: true}, "VMOVAPD"),
		each(&opcode{run: move(1, false)}, "VMOVDQU", "VLDDQU"),
		each(&opcode{run: move(1, true)}, "VMOVDQA", "VMOVNTPS", "VMOVNTPD", "VMOVNTDQ", "VMOVNTDQA"),
		each(&opcode{run: move(1, false), masked: true, evex: always}, "VMOVDQU8"),
		each(&opcode{run: move(2, false), masked: true, evex: always}, "VMOVDQU16"),
		each(&opcode{run: move(4, false), masked: true, evex: always}, "VMOVDQU32"),
		each(&opcode{run: move(8, false), masked: true, evex: always}, "VMOVDQU64"),
		each(&opcode{run: move(4, true), masked: true, evex: always}, "VMOVDQA32"),
		each(&opcode{run: move(8, true), masked: true, evex: always}, "VMOVDQA64"),
		map[string]*opcode{
			"VMOVD": {run: moveLow(4)}, "VMOVQ": {run: moveLow(8)},
			"VMOVSS": {run: moveScalar(4), masked: true}, "VMOVSD": {run: moveScalar(8), masked: true},
			"VMOVHLPS":  {run: twoHalves(func(a, b *vector) (uint64, uint64) { return high(b), high(a) })},
			"VMOVLHPS":  {run: twoHalves(func(a, b *vector) (uint64, uint64) { return get[uint64](a, 0), get[uint64](b, 0) })},
			"VMOVSLDUP": {run: duplicate[uint32](0), masked: true}, "VMOVSHDUP": {run: duplicate[uint32](1), masked: true},
			"VMOVDDUP": {run: duplicateLow, masked: true},

			"VMASKMOVPS": {run: maskedMove(4)}, "VMASKMOVPD": {run: maskedMove(8)},
			"VPMASKMOVD": {run: maskedMove(4)}, "VPMASKMOVQ": {run: maskedMove(8)},
		},
	)
}

// move copies a vector; size is that of the elements that a mask counts.
func move(size int, aligned bool) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		if aligned {
			for _, a := range []*arg{&in.src[0], &in.dst} {
				if a.kind != memArg {
					continue
				}
				if addr := m.base(&a.mem); addr%uint64(in.width) != 0 {
					m.fail("address %#x is not a multiple of %d", addr, in.width)
				}
			}
		}
		v := m.source(in, 0, size)
		m.put(in, &v, size, in.width)
	}
}

// moveLow copies the low bytes between a vector register and another one, a general register or memory.
func moveLow(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		var x uint64
		if s := &in.src[0]; s.kind == vecArg {
			v := m.readVec(s.reg)
			x = truncate(get[uint64](&v, 0), n)
		} else {
			x = m.value(s, n)
		}
		if in.dst.kind != vecArg {
			m.assign(&in.dst, n, x)
			return
		}
		var v vector
		set(&v, 0, x)
		m.writeVec(in.dst.reg, 16, &v)
	}
}

// moveScalar loads or stores one element, or replaces the lowest one of the first source.
func moveScalar(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		active := m.active(in, 1) != 0
		if in.dst.kind == memArg {
			if v := m.readVec(in.src[0].reg); active {
				m.store(m.base(&in.dst.mem), v[:n])
			}
			return
		}
		var r vector
		low := in.src[0]
		if len(in.src) == 2 {
			r, low = m.readVec(in.src[0].reg), in.src[1]
		}
		switch {
		case active && low.kind == vecArg:
			v := m.readVec(low.reg)
			copy(r[:n], v[:n])
		case active:
			m.load(m.base(&low.mem), r[:n])
		case in.zeroing:
			clear(r[:n])
		default:
			v := m.destination(in)
			copy(r[:n], v[:n])
		}
		m.writeVec(in.dst.reg, 16, &r)
	}
}

// twoHalves makes the low 128 bits from two 64-bit halves, the low one first.
func twoHalves(f func(a, b *vector) (uint64, uint64)) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a, b := m.readVec(in.src[0].reg), m.readVec(in.src[1].reg)
		var r vector
		lo, hi := f(&a, &b)
		set(&r, 0, lo)
		set(&r, 1, hi)
		m.writeVec(in.dst.reg, 16, &r)
	}
}

// duplicate copies each even (0) or odd (1) element over its neighbour.
func duplicate[T lane](odd int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a := m.bytes(in, 0, in.width)
		var r vector
		for i := range in.width / sizeOf[T]() {
			set(&r, i, get[T](&a, i&^1|odd))
		}
		m.put(in, &r, sizeOf[T](), in.width)
	}
}

// duplicateLow is duplicate for 64-bit elements; the 128-bit form reads 8 bytes of memory.
func duplicateLow(m *Machine, in *instruction) {
	if in.width == 16 {
		a := m.bytes(in, 0, 8)
		set(&a, 1, get[uint64](&a, 0))
		m.put(in, &a, 8, 16)
		return
	}
	duplicate[uint64](0)(m, in)
}

// maskedMove loads or stores the elements whose sign bit in the mask register is set. Loads clear the others.
func maskedMove(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		mask := m.readVec(in.src[0].reg)
		var v vector
		access, addr := m.store, uint64(0)
		if in.dst.kind == memArg {
			v, addr = m.readVec(in.src[1].reg), m.base(&in.dst.mem)
		} else {
			access, addr = m.load, m.base(&in.src[1].mem)
		}
		for at := 0; at < in.width; at += n {
			if mask[at+n-1]>>7 != 0 {
				access(addr+uint64(at), v[at:at+n])
			}
		}
		if in.dst.kind == vecArg {
			m.writeVec(in.dst.reg, in.width, &v)
		}
	}
}

func broadcasts() map[string]*opcode {
	fromGeneral := func(in *instruction) bool { return in.src[0].kind == gpArg }
	return map[string]*opcode{
		"VBROADCASTSS": {run: repeat(4, 4), masked: true}, "VBROADCASTSD": {run: repeat(8, 8), masked: true},
		"VPBROADCASTB": {run: repeat(1, 1), masked: true, evex: fromGeneral}, "VPBROADCASTW": {run: repeat(2, 2), masked: true, evex: fromGeneral},
		"VPBROADCASTD": {run: repeat(4, 4), masked: true, evex: fromGeneral}, "VPBROADCASTQ": {run: repeat(8, 8), masked: true, evex: fromGeneral},
		"VBROADCASTF128": {run: repeat(16, 16)}, "VBROADCASTI128": {run: repeat(16, 16)},
		"VBROADCASTF32X2": {run: repeat(8, 4), masked: true, evex: always}, "VBROADCASTI32X2": {run: repeat(8, 4), masked: true, evex: always},
		"VBROADCASTF32X4": {run: repeat(16, 4), masked: true, evex: always}, "VBROADCASTI32X4": {run: repeat(16, 4), masked: true, evex: always},
		"VBROADCASTF64X2": {run: repeat(16, 8), masked: true, evex: always}, "VBROADCASTI64X2": {run: repeat(16, 8), masked: true, evex: always},
		"VBROADCASTF32X8": {run: repeat(32, 4), masked: true, evex: always}, "VBROADCASTI32X8": {run: repeat(32, 4), masked: true, evex: always},
		"VBROADCASTF64X4": {run: repeat(32, 8), masked: true, evex: always}, "VBROADCASTI64X4": {run: repeat(32, 8), masked: true, evex: always},
	}
}

// repeat fills the destination with copies of the source's low n bytes; size is that of the elements that a mask counts.
func repeat(n, size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		var v vector
		switch s := &in.src[0]; {
		case s.kind == gpArg:
			set(&v, 0, m.value(s, n))
		case s.kind == memArg && m.active(in, in.dst.size/size) == 0:
			// Nothing is read.
		default:
			v = m.bytes(in, 0, n)
		}
		for at := n; at < in.dst.size; at += n {
			copy(v[at:], v[:n])
		}
		m.put(in, &v, size, in.dst.size)
	}
}

func inserts() map[string]*opcode {
	return join(
		each(&opcode{run: insert(16, 16)}, "VINSERTF128", "VINSERTI128"),
		each(&opcode{run: insert(16, 4), masked: true, evex: always}, "VINSERTF32X4", "VINSERTI32X4"),
		each(&opcode{run: insert(16, 8), masked: true, evex: always}, "VINSERTF64X2", "VINSERTI64X2"),
		each(&opcode{run: insert(32, 4), masked: true, evex: always}, "VINSERTF32X8", "VINSERTI32X8"),
		each(&opcode{run: insert(32, 8), masked: true, evex: always}, "VINSERTF64X4", "VINSERTI64X4"),
		each(&opcode{run: extract(16, 16)}, "VEXTRACTF128", "VEXTRACTI128"),
		each(&opcode{run: extract(16, 4), masked: true, evex: always}, "VEXTRACTF32X4", "VEXTRACTI32X4"),
		each(&opcode{run: extract(16, 8), masked: true, evex: always}, "VEXTRACTF64X2", "VEXTRACTI64X2"),
		each(&opcode{run: extract(32, 4), masked: true, evex: always}, "VEXTRACTF32X8", "VEXTRACTI32X8"),
		each(&opcode{run: extract(32, 8), masked: true, evex: always}, "VEXTRACTF64X4", "VEXTRACTI64X4"),
		map[string]*opcode{
			"VPINSRB": {run: insertGP(1)}, "VPINSRW": {run: insertGP(2)}, "VPINSRD": {run: insertGP(4)}, "VPINSRQ": {run: insertGP(8)},
			"VPEXTRB": {run: extractGP(1)}, "VPEXTRW": {run: extractGP(2)}, "VPEXTRD": {run: extractGP(4)}, "VPEXTRQ": {run: extractGP(8)},
			"VEXTRACTPS": {run: extractGP(4)},
			"VINSERTPS":  {run: insertFloat},

			"VBLENDPS": {run: blend(4)}, "VPBLENDD": {run: blend(4)}, "VBLENDPD": {run: blend(8)}, "VPBLENDW": {run: blend(2)},
			"VBLENDVPS": {run: blendBySign(4)}, "VBLENDVPD": {run: blendBySign(8)}, "VPBLENDVB": {run: blendBySign(1)},
			"VPBLENDMB": {run: blendByMask(1), masked: true, evex: always}, "VPBLENDMW": {run: blendByMask(2), masked: true, evex: always},
			"VPBLENDMD": {run: blendByMask(4), masked: true, evex: always}, "VPBLENDMQ": {run: blendByMask(8), masked: true, evex: always},
			"VBLENDMPS": {run: blendByMask(4), masked: true, evex: always}, "VBLENDMPD": {run: blendByMask(8), masked: true, evex: always},
		},
	)
}

// insert replaces one part of n bytes of the first source by the second.
func insert(n, size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		r, part := m.readVec(in.src[0].reg), m.bytes(in, 1, n)
		at := int(m.immediate(in)) % (in.width / n) * n
		copy(r[at:at+n], part[:])
		m.put(in, &r, size, in.width)
	}
}

// extract takes one part of n bytes of the source.
func extract(n, size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a := m.readVec(in.src[0].reg)
		at := int(m.immediate(in)) % (in.width / n) * n
		var r vector
		copy(r[:], a[at:at+n])
		m.put(in, &r, size, n)
	}
}

func insertGP(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		r := m.readVec(in.src[0].reg)
		at := int(m.immediate(in)) % (16 / n) * n
		x := m.value(&in.src[1], n)
		var low vector
		set(&low, 0, x)
		copy(r[at:at+n], low[:])
		m.writeVec(in.dst.reg, 16, &r)
	}
}

// extractGP copies one element to memory or, zero-extended, to a general register.
func extractGP(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a := m.readVec(in.src[0].reg)
		at := int(m.immediate(in)) % (16 / n) * n
		var low vector
		copy(low[:n], a[at:])
		if x := get[uint64](&low, 0); in.dst.kind == gpArg {
			m.writeGP(in.dst.reg, 8, false, x)
		} else {
			m.assign(&in.dst, n, x)
		}
	}
}

// insertFloat replaces one float of the first source and clears those in the immediate's low four bits.
func insertFloat(m *Machine, in *instruction) {
	imm := m.immediate(in)
	r := m.readVec(in.src[0].reg)
	from := 0
	if in.src[1].kind == vecArg {
		from = int(imm >> 6)
	}
	b := m.bytes(in, 1, 4)
	set(&r, int(imm>>4&3), get[uint32](&b, from))
	for i := range 4 {
		if imm>>i&1 != 0 {
			set(&r, i, uint32(0))
		}
	}
	m.writeVec(in.dst.reg, 16, &r)
}

// choose takes each element of n bytes from b where second holds, else from a.
func choose(a, b *vector, n, width int, second func(i int) bool) vector {
	r := *a
	for i := range width / n {
		if second(i) {
			copy(r[i*n:(i+1)*n], b[i*n:])
		}
	}
	return r
}

// blend takes an element from the second source where the immediate's bit is set; eight bits serve all blocks.
func blend(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a, b, imm := m.source(in, 0, n), m.source(in, 1, n), m.immediate(in)
		r := choose(&a, &b, n, in.width, func(i int) bool { return imm>>(i%8)&1 != 0 })
		m.put(in, &r, n, in.width)
	}
}

// blendBySign takes an element from the second source where that of the third is negative.
func blendBySign(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a, b, c := m.source(in, 0, n), m.source(in, 1, n), m.source(in, 2, n)
		r := choose(&a, &b, n, in.width, func(i int) bool { return c[(i+1)*n-1]>>7 != 0 })
		m.put(in, &r, n, in.width)
	}
}

// blendByMask takes an element from the second source where the mask's bit is set, else from the first or, zeroing, 0.
func blendByMask(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a, b, active := m.readVec(in.src[0].reg), m.source(in, 1, n), m.active(in, in.width/n)
		if in.zeroing {
			a = vector{}
		}
		r := choose(&a, &b, n, in.width, func(i int) bool { return active>>i&1 != 0 })
		m.writeVec(in.dst.reg, in.width, &r)
	}
}

func gathers() map[string]*opcode {
	return join(
		each(&opcode{run: gather(4, 4), masked: true}, "VPGATHERDD", "VGATHERDPS"),
		each(&opcode{run: gather(4, 8), masked: true}, "VPGATHERDQ", "VGATHERDPD"),
		each(&opcode{run: gather(8, 4), masked: true}, "VPGATHERQD", "VGATHERQPS"),
		each(&opcode{run: gather(8, 8), masked: true}, "VPGATHERQQ", "VGATHERQPD"),
		each(&opcode{run: scatter, masked: true, evex: always}, "VPSCATTERDD", "VSCATTERDPS"),
	)
}

// element returns the address of element i of an operand with a vector of indices of size bytes.
func (m *Machine) element(a *address, i, size int) uint64 {
	v := m.readVec(a.index)
	var x vector
	copy(x[:size], v[i*size:])
	return m.base(a) + uint64(extend(get[uint64](&x, 0), size))*a.scale
}

// gather loads an element for each index whose mask is set, and clears the mask. AVX2's mask is a vector of signs.
func gather(indexSize, size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		mem := &in.src[0].mem
		n := min(in.dst.size/size, mem.indexSize/indexSize)
		r := m.destination(in)
		clear(r[n*size:])
		var active uint64
		if len(in.src) == 1 {
			active = m.active(in, n)
			if in.mask == 0 || mem.index == in.dst.reg {
				m.fail("needs a mask, and index and destination that differ")
			}
		} else {
			mask := in.src[1].reg
			if mask == in.dst.reg || mask == mem.index || mem.index == in.dst.reg {
				m.fail("mask, index and destination must differ")
			}
			v := m.readVec(mask)
			for i := range n {
				active |= uint64(v[(i+1)*size-1]>>7) << i
			}
		}
		for _, i := range lanesOf(active) {
			m.load(m.element(mem, i, indexSize), r[i*size:(i+1)*size])
		}
		m.writeVec(in.dst.reg, in.dst.size, &r)
		if len(in.src) == 1 {
			m.writeMask(in.mask, 0)
		} else {
			m.writeVec(in.src[1].reg, in.src[1].size, &vector{})
		}
	}
}

// scatter stores 32-bit elements by 32-bit indices and clears the mask.
func scatter(m *Machine, in *instruction) {
	v := m.readVec(in.src[0].reg)
	if in.mask == 0 {
		m.fail("needs a mask")
	}
	for _, i := range lanesOf(m.active(in, in.src[0].size/4)) {
		m.store(m.element(&in.dst.mem, i, 4), v[4*i:4*i+4])
	}
	m.writeMask(in.mask, 0)
}

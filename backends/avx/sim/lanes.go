package sim

// This file holds what vector instructions share: how they read sources lane by lane, and how they write under a mask.

// active returns the lanes of the write mask that an instruction with n lanes writes.
func (m *Machine) active(in *instruction, n int) uint64 {
	all := ^uint64(0) >> (64 - n)
	if in.mask == 0 {
		return all
	}
	return m.readMask(in.mask) & all
}

// source returns source i of an operation that is element by element, of size bytes. Elements of a memory operand that the
// mask excludes are not read, as in hardware, which suppresses their faults.
func (m *Machine) source(in *instruction, i, size int) vector {
	a := &in.src[i]
	if in.mask == 0 || a.kind != memArg {
		return m.whole(in, i, size)
	}
	var v vector
	addr, active := m.base(&a.mem), m.active(in, in.width/size)
	if in.broadcast && active != 0 {
		return m.whole(in, i, size)
	}
	for lane := range in.width / size {
		if active>>lane&1 != 0 {
			m.load(addr+uint64(lane*size), v[lane*size:(lane+1)*size])
		}
	}
	return v
}

// whole returns source i, as wide as the instruction; size is that of the element that an embedded broadcast repeats.
func (m *Machine) whole(in *instruction, i, size int) vector {
	if !in.broadcast || in.src[i].kind != memArg {
		return m.bytes(in, i, in.width)
	}
	v := m.bytes(in, i, size)
	for at := size; at < in.width; at += size {
		copy(v[at:], v[:size])
	}
	return v
}

// bytes returns n bytes of source i, from a register or from memory.
func (m *Machine) bytes(in *instruction, i, n int) vector {
	a := &in.src[i]
	if a.kind == vecArg {
		return m.readVec(a.reg)
	}
	var v vector
	if a.kind != memArg {
		m.fail("source %d is neither a vector register nor memory", i+1)
		return v
	}
	m.load(m.base(&a.mem), v[:n])
	return v
}

// destination returns the destination register's contents.
func (m *Machine) destination(in *instruction) vector { return m.readVec(in.dst.reg) }

// immediate returns the last source as an 8-bit immediate.
func (m *Machine) immediate(in *instruction) uint8 {
	a := in.src[len(in.src)-1]
	if a.kind != immArg {
		m.fail("last source is not an immediate")
	}
	return uint8(a.imm)
}

// put writes width bytes of elements of size bytes to the destination, a register or memory, under the write mask.
func (m *Machine) put(in *instruction, v *vector, size, width int) {
	n := width / size
	active := m.active(in, n)
	switch in.dst.kind {
	case vecArg:
		if in.mask != 0 {
			var old vector
			if !in.zeroing {
				old = m.destination(in)
			}
			for lane := range n {
				if active>>lane&1 == 0 {
					copy(v[lane*size:(lane+1)*size], old[lane*size:])
				}
			}
		}
		m.writeVec(in.dst.reg, width, v)
	case memArg:
		addr := m.base(&in.dst.mem)
		if in.mask == 0 {
			m.store(addr, v[:width])
			return
		}
		for lane := range n {
			if active>>lane&1 != 0 {
				m.store(addr+uint64(lane*size), v[lane*size:(lane+1)*size])
			}
		}
	default:
		m.fail("destination is neither a vector register nor memory")
	}
}

// unary is an operation on each element: dst = f(a).
func unary[T lane](f func(a T) T) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		size := sizeOf[T]()
		a := m.source(in, 0, size)
		for i := range in.width / size {
			set(&a, i, f(get[T](&a, i)))
		}
		m.put(in, &a, size, in.width)
	}
}

// binary2 is an operation on pairs of elements: dst = f(a, b).
func binary2[T lane](f func(a, b T) T) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		size := sizeOf[T]()
		a, b := m.source(in, 0, size), m.source(in, 1, size)
		for i := range in.width / size {
			set(&a, i, f(get[T](&a, i), get[T](&b, i)))
		}
		m.put(in, &a, size, in.width)
	}
}

// ternary is an operation that also reads the destination: dst = f(dst, a, b).
func ternary[T lane](f func(d, a, b T) T) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		size := sizeOf[T]()
		d, a, b := m.destination(in), m.source(in, 0, size), m.source(in, 1, size)
		for i := range in.width / size {
			set(&d, i, f(get[T](&d, i), get[T](&a, i), get[T](&b, i)))
		}
		m.put(in, &d, size, in.width)
	}
}

// unaryImm is an operation on each element with an immediate: dst = f(a, imm).
func unaryImm[T lane](f func(a T, imm uint8) T) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		size, imm := sizeOf[T](), m.immediate(in)
		a := m.source(in, 0, size)
		for i := range in.width / size {
			set(&a, i, f(get[T](&a, i), imm))
		}
		m.put(in, &a, size, in.width)
	}
}

// compare sets a mask register's bits, or the elements of a vector register to all ones, where f holds. The mask registers of
// the AVX-512 forms become 0 outside the write mask.
func compare[T lane](f func(a, b T, imm uint8) bool) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		size, imm := sizeOf[T](), uint8(0)
		if len(in.src) == 3 {
			imm = m.immediate(in)
		}
		a, b := m.source(in, 0, size), m.source(in, 1, size)
		n := in.width / size
		bits := uint64(0)
		for i := range n {
			if f(get[T](&a, i), get[T](&b, i), imm) {
				bits |= 1 << i
			}
		}
		m.putBits(in, bits, size, n)
	}
}

// putBits writes one truth value per lane to a mask register or, as all ones or zeros, to a vector register.
func (m *Machine) putBits(in *instruction, bits uint64, size, n int) {
	if in.dst.kind == maskArg {
		m.writeMask(in.dst.reg, bits&m.active(in, n))
		return
	}
	var v vector
	for i := range n {
		if bits>>i&1 != 0 {
			for j := range size {
				v[i*size+j] = 0xFF
			}
		}
	}
	m.put(in, &v, size, n*size)
}

// scalar applies an operation to the lowest float32 and takes the other bits of the low 128 from the first source.
func scalar(f func(d, a, b uint32) uint32, readsDst bool) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		var d vector
		if readsDst {
			d = m.destination(in)
		}
		a, b := m.bytes(in, 0, 16), m.bytes(in, 1, 4)
		r := a
		if readsDst {
			r = d
		}
		set(&r, 0, f(get[uint32](&d, 0), get[uint32](&a, 0), get[uint32](&b, 0)))
		m.put(in, &r, 16, 16)
	}
}

// blocks applies f to each 128-bit block of the two sources. The mask counts elements of size bytes.
func blocks(size int, f func(a, b *vector) vector) func(*Machine, *instruction) {
	return blocksOf(size, size, f)
}

// blocksOf is blocks for sources whose elements have another size, from.
func blocksOf(from, size int, f func(a, b *vector) vector) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a, b := m.whole(in, 0, from), m.whole(in, 1, from)
		var r vector
		for at := 0; at < in.width; at += 16 {
			var x, y vector
			copy(x[:16], a[at:])
			copy(y[:16], b[at:])
			z := f(&x, &y)
			copy(r[at:at+16], z[:])
		}
		m.put(in, &r, size, in.width)
	}
}

// blocksImm is blocks for one source and an immediate.
func blocksImm(size int, f func(a *vector, imm uint8) vector) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		a, imm := m.whole(in, 0, size), m.immediate(in)
		var r vector
		for at := 0; at < in.width; at += 16 {
			var x vector
			copy(x[:16], a[at:])
			z := f(&x, imm)
			copy(r[at:at+16], z[:])
		}
		m.put(in, &r, size, in.width)
	}
}

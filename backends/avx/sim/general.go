package sim

import (
	"encoding/binary"
	"math/bits"
)

// General-purpose instructions. The suffixes B, W, L and Q are the size.

var sizes = map[string]int{"B": 1, "W": 2, "L": 4, "Q": 8}

func general() map[string]*opcode {
	t := map[string]*opcode{
		"MOVBLZX": {run: moveExtended(1, 4, false)}, "MOVBQZX": {run: moveExtended(1, 8, false)},
		"MOVWLZX": {run: moveExtended(2, 4, false)}, "MOVWQZX": {run: moveExtended(2, 8, false)}, "MOVLQZX": {run: moveExtended(4, 8, false)},
		"MOVBLSX": {run: moveExtended(1, 4, true)}, "MOVBQSX": {run: moveExtended(1, 8, true)},
		"MOVWLSX": {run: moveExtended(2, 4, true)}, "MOVWQSX": {run: moveExtended(2, 8, true)}, "MOVLQSX": {run: moveExtended(4, 8, true)},
		"LEAQ": {run: leaq}, "LEAL": {run: leal},
		"MULQ": {run: mulq}, "CQO": {run: signIntoDX(8)}, "CDQ": {run: signIntoDX(4)},
		"NOP":        {run: func(*Machine, *instruction) {}},
		"PREFETCHT0": {run: prefetch}, "PREFETCHT1": {run: prefetch}, "PREFETCHT2": {run: prefetch}, "PREFETCHNTA": {run: prefetch},
	}
	for letter, n := range sizes {
		t["MOV"+letter] = &opcode{run: func(m *Machine, in *instruction) { m.assign(&in.dst, n, m.value(&in.src[0], n)) }}
		t["ADD"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.add(n, d, s, 0) })}
		t["SUB"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.sub(n, d, s, 0) }), cancels: sameSourceAndDestination}
		t["ADC"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.add(n, d, s, m.carryIn()) })}
		t["SBB"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.sub(n, d, s, m.carryIn()) })}
		t["AND"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.logical(n, d&s) })}
		t["OR"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.logical(n, d|s) })}
		t["XOR"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.logical(n, d^s) }), cancels: sameSourceAndDestination}
		// CMP a, b stands in Intel's order: a − b.
		t["CMP"+letter] = &opcode{run: func(m *Machine, in *instruction) { m.sub(n, m.value(&in.src[0], n), m.value(&in.dst, n), 0) }}
		t["TEST"+letter] = &opcode{run: func(m *Machine, in *instruction) { m.logical(n, m.value(&in.src[0], n)&m.value(&in.dst, n)) }}
		t["NOT"+letter] = &opcode{run: modify(n, func(m *Machine, d uint64) uint64 { return ^d })}
		t["NEG"+letter] = &opcode{run: modify(n, func(m *Machine, d uint64) uint64 { return m.sub(n, 0, d, 0) })}
		t["INC"+letter] = &opcode{run: modify(n, func(m *Machine, d uint64) uint64 { return m.keepCarry(func() uint64 { return m.add(n, d, 1, 0) }) })}
		t["DEC"+letter] = &opcode{run: modify(n, func(m *Machine, d uint64) uint64 { return m.keepCarry(func() uint64 { return m.sub(n, d, 1, 0) }) })}
		t["SHL"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.shiftLeft(n, d, s) })}
		t["SHR"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.shiftRight(n, d, s, false) })}
		t["SAR"+letter] = &opcode{run: arithmeticGP(n, func(m *Machine, d, s uint64) uint64 { return m.shiftRight(n, d, s, true) })}
		t["XCHG"+letter] = &opcode{run: func(m *Machine, in *instruction) {
			a, b := m.value(&in.src[0], n), m.value(&in.dst, n)
			m.assign(&in.src[0], n, b)
			m.assign(&in.dst, n, a)
		}}
		if n >= 4 {
			t["DIV"+letter] = &opcode{run: divide(n)}
			t["IDIV"+letter] = &opcode{run: divideSigned(n)}
			t["IMUL"+letter] = &opcode{run: multiply(n)}
			t["IMUL3"+letter] = t["IMUL"+letter]
			t["BT"+letter] = &opcode{run: bitTest(n)}
		}
	}
	return t
}

func sameSourceAndDestination(in *instruction) bool {
	return in.dst.kind == gpArg && in.src[0] == in.dst
}

// value reads size bytes of a general operand, zero-extended.
func (m *Machine) value(a *arg, size int) uint64 {
	switch a.kind {
	case gpArg:
		return m.readGP(a.reg, size, a.high)
	case immArg:
		return truncate(a.imm, size)
	case memArg:
		var b [8]byte
		m.load(m.base(&a.mem), b[:size])
		return binary.LittleEndian.Uint64(b[:])
	}
	m.fail("operand is no general register, memory or immediate")
	return 0
}

// assign writes size bytes to a general register or memory.
func (m *Machine) assign(a *arg, size int, x uint64) {
	switch a.kind {
	case gpArg:
		m.writeGP(a.reg, size, a.high, x)
	case memArg:
		m.store(m.base(&a.mem), binary.LittleEndian.AppendUint64(nil, x)[:size])
	default:
		m.fail("destination is no general register or memory")
	}
}

// arithmeticGP is dst = f(dst, src). Double shifts, with a third operand, are not implemented.
func arithmeticGP(n int, f func(m *Machine, d, s uint64) uint64) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		if len(in.src) != 1 {
			m.fail("the form with %d operands is not implemented", len(in.src)+1)
			return
		}
		size := n
		if s := &in.src[0]; s.kind == gpArg && s.size < n {
			size = s.size // the count of a shift is CL
		}
		m.assign(&in.dst, n, f(m, m.value(&in.dst, n), m.value(&in.src[0], size)))
	}
}

// modify is dst = f(dst).
func modify(n int, f func(m *Machine, d uint64) uint64) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) { m.assign(&in.dst, n, f(m, m.value(&in.dst, n))) }
}

func moveExtended(from, to int, signed bool) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		x := m.value(&in.src[0], from)
		if signed {
			x = uint64(extend(x, from))
		}
		m.assign(&in.dst, to, x)
	}
}

func leaq(m *Machine, in *instruction) { m.assign(&in.dst, 8, m.base(&in.src[0].mem)) }
func leal(m *Machine, in *instruction) { m.assign(&in.dst, 4, m.base(&in.src[0].mem)) }

// prefetch reads the registers of its address, no memory: hardware ignores one that goes nowhere.
func prefetch(m *Machine, in *instruction) { m.base(&in.dst.mem) }

// setFlags sets the flags in defined to those in on; the others become undefined.
func (m *Machine) setFlags(defined, on flags) {
	m.known, m.flags = defined, on
}

// ofResult returns SF, ZF and PF for a result.
func ofResult(size int, x uint64) flags {
	var f flags
	if truncate(x, size) == 0 {
		f |= zero
	}
	if extend(x, size) < 0 {
		f |= sign
	}
	if bits.OnesCount8(uint8(x))%2 == 0 {
		f |= parity
	}
	return f
}

func (m *Machine) carryIn() uint64 {
	if m.known&carry == 0 {
		m.fail("reads the carry flag, which is not defined")
	}
	return uint64(m.flags & carry)
}

func (m *Machine) add(size int, a, b, c uint64) uint64 {
	sum, out := bits.Add64(a<<(64-8*size), b<<(64-8*size), 0)
	if c != 0 {
		var again uint64
		sum, again = bits.Add64(sum, c<<(64-8*size), 0)
		out |= again
	}
	r := sum >> (64 - 8*size)
	f := ofResult(size, r)
	if out != 0 {
		f |= carry
	}
	if extend((a^r)&(b^r), size) < 0 {
		f |= overflow
	}
	m.setFlags(allFlags, f)
	return r
}

func (m *Machine) sub(size int, a, b, c uint64) uint64 {
	r := truncate(a-b-c, size)
	f := ofResult(size, r)
	if a, b = truncate(a, size), truncate(b, size); a < b || c != 0 && a == b {
		f |= carry
	}
	if extend((a^b)&(a^r), size) < 0 {
		f |= overflow
	}
	m.setFlags(allFlags, f)
	return r
}

func (m *Machine) logical(size int, r uint64) uint64 {
	m.setFlags(allFlags, ofResult(size, r))
	return r
}

// keepCarry restores the carry flag after f.
func (m *Machine) keepCarry(f func() uint64) uint64 {
	known, old := m.known&carry, m.flags&carry
	r := f()
	m.setFlags(allFlags&^carry|known, m.flags&^carry|old)
	return r
}

// shiftCount masks a count as hardware does: modulo 32, or 64 for 64-bit operands.
func shiftCount(size int, s uint64) uint64 {
	if size == 8 {
		return s & 63
	}
	return s & 31
}

func (m *Machine) shiftLeft(size int, d, s uint64) uint64 {
	n := shiftCount(size, s)
	if n == 0 {
		return d
	}
	r := truncate(d<<n, size)
	m.shiftFlags(size, r, n, n <= uint64(8*size) && d>>(uint64(8*size)-n)&1 != 0, func(out bool) bool { return out != (extend(r, size) < 0) })
	return r
}

func (m *Machine) shiftRight(size int, d, s uint64, signed bool) uint64 {
	n := shiftCount(size, s)
	if n == 0 {
		return d
	}
	if signed {
		x := extend(d, size)
		r := truncate(uint64(x>>n), size)
		m.shiftFlags(size, r, n, x>>(n-1)&1 != 0, func(bool) bool { return false })
		return r
	}
	r := truncate(d, size) >> n
	m.shiftFlags(size, r, n, truncate(d, size)>>(n-1)&1 != 0, func(bool) bool { return extend(d, size) < 0 })
	return r
}

// shiftFlags sets the flags of a shift by n ≥ 1: the bit shifted out is the carry, which is undefined when all were; the
// overflow is defined for n = 1.
func (m *Machine) shiftFlags(size int, r, n uint64, out bool, overflows func(out bool) bool) {
	defined, f := allFlags, ofResult(size, r)
	if out {
		f |= carry
	}
	if n >= uint64(8*size) {
		defined &^= carry
	}
	if n != 1 {
		defined &^= overflow
	} else if overflows(out) {
		f |= overflow
	}
	m.setFlags(defined, f)
}

// multiply is the signed product of two operands, or of a source and an immediate. The form with one operand, whose product
// is twice as wide, is not implemented.
func multiply(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		if len(in.src) == 0 {
			m.fail("the form with one operand is not implemented")
			return
		}
		a, b := &in.dst, &in.src[0]
		if len(in.src) == 2 {
			a = &in.src[1]
		}
		x, y := extend(m.value(a, n), n), extend(m.value(b, n), n)
		hi, lo := bits.Mul64(uint64(x), uint64(y))
		hi -= uint64(x>>63)&uint64(y) + uint64(y>>63)&uint64(x)
		r := truncate(lo, n)
		var f flags
		if full := extend(r, n); full != int64(lo) || hi != uint64(int64(lo)>>63) {
			f = carry | overflow
		}
		m.setFlags(carry|overflow, f)
		m.assign(&in.dst, n, r)
	}
}

// mulq is DX:AX = AX · operand, unsigned.
func mulq(m *Machine, in *instruction) {
	hi, lo := bits.Mul64(m.readGP(regAX, 8, false), m.value(&in.dst, 8))
	m.writeGP(regAX, 8, false, lo)
	m.writeGP(regDX, 8, false, hi)
	var f flags
	if hi != 0 {
		f = carry | overflow
	}
	m.setFlags(carry|overflow, f)
}

// divide is AX, DX = DX:AX / operand and its remainder, unsigned.
func divide(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		hi, lo, d := m.readGP(regDX, n, false), m.readGP(regAX, n, false), m.value(&in.dst, n)
		if hi >= d {
			m.fail("divides %#x:%#x by %#x: the quotient does not fit", hi, lo, d)
			return
		}
		if n == 4 {
			lo |= hi << 32
			hi = 0
		}
		q, r := bits.Div64(hi, lo, d)
		m.writeGP(regAX, n, false, q)
		m.writeGP(regDX, n, false, r)
		m.setFlags(0, 0)
	}
}

// divideSigned is divide for signed operands, rounded towards zero. DX must be the extension of AX's sign.
func divideSigned(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		hi, x, d := extend(m.readGP(regDX, n, false), n), extend(m.readGP(regAX, n, false), n), extend(m.value(&in.dst, n), n)
		switch {
		case hi != x>>63:
			m.fail("divides a dividend whose upper half is not the sign of the lower one: not implemented")
			return
		case d == 0, d == -1 && x == extend(1<<(8*n-1), n):
			m.fail("divides %d by %d: the quotient does not fit", x, d)
			return
		}
		m.writeGP(regAX, n, false, uint64(x/d))
		m.writeGP(regDX, n, false, uint64(x%d))
		m.setFlags(0, 0)
	}
}

// signIntoDX fills DX with the sign of AX.
func signIntoDX(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		m.writeGP(regDX, n, false, uint64(extend(m.readGP(regAX, n, false), n)>>63))
	}
}

// bitTest copies a bit of a register to the carry flag and leaves ZF.
func bitTest(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		if in.dst.kind != gpArg {
			m.fail("bit test of memory is not implemented")
			return
		}
		var f flags
		if m.value(&in.dst, n)>>(m.value(&in.src[0], n)%uint64(8*n))&1 != 0 {
			f = carry
		}
		m.setFlags(carry|m.known&zero, f|m.flags&zero)
	}
}

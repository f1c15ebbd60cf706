package sim

import (
	"encoding/binary"
	"math/bits"
)

// Instructions on mask registers: all are EVEX or VEX encodings that AVX-512 brought.

func masks() map[string]*opcode {
	t := map[string]*opcode{
		"KUNPCKBW": {run: binaryMask(2, func(a, b uint64) uint64 { return a<<8 | b&0xFF })},
		"KUNPCKWD": {run: binaryMask(4, func(a, b uint64) uint64 { return a<<16 | b&0xFFFF })},
		"KUNPCKDQ": {run: binaryMask(8, func(a, b uint64) uint64 { return a<<32 | b&0xFFFFFFFF })},
		"VPMOVB2M": {run: signsToMask(1)}, "VPMOVM2B": {run: maskToVector(1), evex: always},
		"VPMOVW2M": {run: signsToMask(2)}, "VPMOVM2W": {run: maskToVector(2), evex: always},
		"VPMOVD2M": {run: signsToMask(4)}, "VPMOVM2D": {run: maskToVector(4), evex: always},
		"VPMOVQ2M": {run: signsToMask(8)}, "VPMOVM2Q": {run: maskToVector(8), evex: always},
		"VPMOVMSKB": {run: signsToGP(1)}, "VMOVMSKPS": {run: signsToGP(4)}, "VMOVMSKPD": {run: signsToGP(8)},
	}
	for letter, n := range map[string]int{"B": 1, "W": 2, "D": 4, "Q": 8} {
		t["KMOV"+letter] = &opcode{run: moveMask(n)}
		t["KAND"+letter] = &opcode{run: binaryMask(n, func(a, b uint64) uint64 { return a & b })}
		t["KANDN"+letter] = &opcode{run: binaryMask(n, func(a, b uint64) uint64 { return ^a & b }), cancels: sameSources}
		t["KOR"+letter] = &opcode{run: binaryMask(n, func(a, b uint64) uint64 { return a | b })}
		t["KXOR"+letter] = &opcode{run: binaryMask(n, func(a, b uint64) uint64 { return a ^ b }), cancels: sameSources}
		t["KXNOR"+letter] = &opcode{run: binaryMask(n, func(a, b uint64) uint64 { return ^(a ^ b) }), cancels: sameSources}
		t["KADD"+letter] = &opcode{run: binaryMask(n, func(a, b uint64) uint64 { return a + b })}
		t["KNOT"+letter] = &opcode{run: func(m *Machine, in *instruction) {
			m.writeMask(in.dst.reg, truncate(^m.readMask(in.src[0].reg), n))
		}}
		t["KSHIFTL"+letter] = &opcode{run: shiftMask(n, func(a, by uint64) uint64 { return a << by })}
		t["KSHIFTR"+letter] = &opcode{run: shiftMask(n, func(a, by uint64) uint64 { return a >> by })}
		t["KORTEST"+letter] = &opcode{run: func(m *Machine, in *instruction) {
			x := truncate(m.readMask(in.src[0].reg)|m.readMask(in.dst.reg), n)
			m.setFlags(allFlags, which(x == 0, x == truncate(^uint64(0), n)))
		}}
		// KTEST a, b sets CF by a AND NOT b.
		t["KTEST"+letter] = &opcode{run: func(m *Machine, in *instruction) {
			x, y := truncate(m.readMask(in.src[0].reg), n), truncate(m.readMask(in.dst.reg), n)
			m.setFlags(allFlags, which(x&y == 0, x&^y == 0))
		}}
	}
	return t
}

func which(isZero, isCarry bool) flags {
	var f flags
	if isZero {
		f |= zero
	}
	if isCarry {
		f |= carry
	}
	return f
}

// moveMask moves n bytes between mask registers, general registers and memory.
func moveMask(n int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		var x uint64
		switch s := &in.src[0]; s.kind {
		case maskArg:
			x = truncate(m.readMask(s.reg), n)
		default:
			x = m.value(s, n)
		}
		switch d := &in.dst; d.kind {
		case maskArg:
			m.writeMask(d.reg, x)
		case memArg:
			m.store(m.base(&d.mem), binary.LittleEndian.AppendUint64(nil, x)[:n])
		default:
			m.writeGP(d.reg, 8, false, x) // zero-extended
		}
	}
}

func binaryMask(n int, f func(a, b uint64) uint64) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		m.writeMask(in.dst.reg, truncate(f(m.readMask(in.src[0].reg), m.readMask(in.src[1].reg)), n))
	}
}

func shiftMask(n int, f func(a, by uint64) uint64) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		x := truncate(m.readMask(in.src[0].reg), n)
		m.writeMask(in.dst.reg, truncate(f(x, uint64(m.immediate(in))), n))
	}
}

// signs returns the sign bits of the first source's elements.
func (m *Machine) signs(in *instruction, size int) uint64 {
	v := m.readVec(in.src[0].reg)
	var x uint64
	for i := range in.src[0].size / size {
		x |= uint64(v[i*size+size-1]>>7) << i
	}
	return x
}

func signsToMask(size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) { m.writeMask(in.dst.reg, m.signs(in, size)) }
}

func signsToGP(size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) { m.writeGP(in.dst.reg, 8, false, m.signs(in, size)) }
}

func maskToVector(size int) func(*Machine, *instruction) {
	return func(m *Machine, in *instruction) {
		m.putBits(in, m.readMask(in.src[0].reg), size, in.width/size)
	}
}

// lanesOf returns the numbers of the set bits.
func lanesOf(mask uint64) []int {
	var list []int
	for ; mask != 0; mask &= mask - 1 {
		list = append(list, bits.TrailingZeros64(mask))
	}
	return list
}

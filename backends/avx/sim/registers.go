package sim

import (
	"encoding/binary"
	"unsafe"
)

// A vector is a vector register, least significant byte first.
type vector [64]byte

// lane is the element type of a vector operation.
type lane interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64
}

func sizeOf[T lane]() int {
	var x T
	return int(unsafe.Sizeof(x))
}

// get returns element i of v.
func get[T lane](v *vector, i int) T {
	switch n := sizeOf[T](); n {
	case 1:
		return T(v[i])
	case 2:
		return T(binary.LittleEndian.Uint16(v[2*i:]))
	case 4:
		return T(binary.LittleEndian.Uint32(v[4*i:]))
	}
	return T(binary.LittleEndian.Uint64(v[8*i:]))
}

// set assigns element i of v.
func set[T lane](v *vector, i int, x T) {
	switch n := sizeOf[T](); n {
	case 1:
		v[i] = byte(x)
	case 2:
		binary.LittleEndian.PutUint16(v[2*i:], uint16(x))
	case 4:
		binary.LittleEndian.PutUint32(v[4*i:], uint32(x))
	default:
		binary.LittleEndian.PutUint64(v[8*i:], uint64(x))
	}
}

// Condition flags, as a set.
type flags uint8

const (
	carry flags = 1 << iota
	parity
	zero
	sign
	overflow
	allFlags = carry | parity | zero | sign | overflow
)

// registers is the register state. Nothing is defined at the start but what the ABI defines.
type registers struct {
	gp     [16]uint64
	gpSet  [16]uint8 // a bit for each byte that has been written
	vec    [32]vector
	vecSet [32]bool
	k      [8]uint64
	kSet   [8]bool
	flags  flags
	known  flags // the flags that are defined
	dirty  bool  // the upper half of a register 0 … 15 may be in use: VZEROUPPER is due
}

const (
	regAX = 0
	regCX = 1
	regDX = 2
	regSP = 4
	regBP = 5
)

var gpNames = [16]string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

// readGP returns the low size bytes of a register, or byte 1 if high is set.
func (m *Machine) readGP(reg, size int, high bool) uint64 {
	need, shift := uint8(1<<size-1), 0
	if high {
		need, shift = 2, 8
	}
	if m.gpSet[reg]&need != need {
		m.fail("reads %s, which is not defined", gpNames[reg])
	}
	return truncate(m.gp[reg]>>shift, size)
}

// writeGP writes the low size bytes of a register, or byte 1 if high is set. A 32-bit write clears the upper half.
func (m *Machine) writeGP(reg, size int, high bool, x uint64) {
	switch {
	case size >= 4:
		m.gp[reg] = truncate(x, size)
		m.gpSet[reg] = 0xFF
	case high:
		m.gp[reg] = m.gp[reg]&^0xFF00 | x&0xFF<<8
		m.gpSet[reg] |= 2
	default:
		mask := uint64(1)<<(8*size) - 1
		m.gp[reg] = m.gp[reg]&^mask | x&mask
		m.gpSet[reg] |= 1<<size - 1
	}
}

// readVec returns a whole vector register.
func (m *Machine) readVec(reg int) vector {
	if !m.vecSet[reg] {
		m.fail("reads vector register %d, which is not defined", reg)
	}
	return m.vec[reg]
}

// writeVec writes the low size bytes of a vector register and clears the others, as VEX and EVEX encodings do.
func (m *Machine) writeVec(reg, size int, v *vector) {
	clear(m.vec[reg][copy(m.vec[reg][:], v[:size]):])
	m.vecSet[reg] = true
	if size > 16 && reg < 16 {
		m.dirty = true
	}
}

func (m *Machine) readMask(reg int) uint64 {
	if !m.kSet[reg] {
		m.fail("reads mask K%d, which is not defined", reg)
	}
	return m.k[reg]
}

func (m *Machine) writeMask(reg int, x uint64) {
	m.k[reg] = x
	m.kSet[reg] = true
}

// define makes an instruction's registers count as defined, whatever they hold.
func (m *Machine) define(in *instruction) {
	for _, a := range append([]arg{in.dst}, in.src...) {
		switch a.kind {
		case gpArg:
			m.gpSet[a.reg] = 0xFF
		case vecArg:
			m.vecSet[a.reg] = true
		case maskArg:
			m.kSet[a.reg] = true
		}
	}
}

// truncate keeps the low size bytes of x.
func truncate(x uint64, size int) uint64 {
	return x << (64 - 8*size) >> (64 - 8*size)
}

// extend sign-extends the low size bytes of x.
func extend(x uint64, size int) int64 {
	return int64(x<<(64-8*size)) >> (64 - 8*size)
}

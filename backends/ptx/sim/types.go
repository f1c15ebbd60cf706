package sim

import "fmt"

// typ is a fundamental type of PTX.
type typ uint8

const (
	noType typ = iota
	pred
	b8
	u8
	s8
	b16
	u16
	s16
	f16
	b32
	u32
	s32
	f32
	b64
	u64
	s64
)

var typeNames = [...]string{"none", "pred", "b8", "u8", "s8", "b16", "u16", "s16", "f16", "b32", "u32", "s32", "f32", "b64", "u64", "s64"}

func (t typ) String() string { return typeNames[t] }

// typeOf returns the type of that name, written without a dot.
func typeOf(name string) (typ, bool) {
	for t := pred; int(t) < len(typeNames); t++ {
		if typeNames[t] == name {
			return t, true
		}
	}
	return noType, false
}

// bytes returns the size of a value in memory, 0 of predicates.
func (t typ) bytes() int {
	switch {
	case t >= b64:
		return 8
	case t >= b32:
		return 4
	case t >= b16:
		return 2
	case t >= b8:
		return 1
	}
	return 0
}

func (t typ) signed() bool { return t == s8 || t == s16 || t == s32 || t == s64 }
func (t typ) float() bool  { return t == f16 || t == f32 }
func (t typ) untyped() bool {
	return t == b8 || t == b16 || t == b32 || t == b64
}

// class returns where registers of the type are kept.
func (t typ) class() class {
	switch {
	case t == pred:
		return flags
	case t.bytes() == 8:
		return longs
	case t != noType:
		return words
	}
	return none
}

// fits reports whether a register of type r may be an operand of instruction type t: the same size, and the same kind
// unless one of them is untyped. Loads, stores and conversions take wider registers too, unless they are of floats.
func (t typ) fits(r typ, wider bool) error {
	switch {
	case (t == pred) != (r == pred):
	case t.bytes() != r.bytes() && !(wider && r.bytes() > t.bytes() && !t.float() && !r.float()):
	case t.float() != r.float() && !t.untyped() && !r.untyped():
	default:
		return nil
	}
	return fmt.Errorf("a .%s register where .%s is needed", r, t)
}

// narrow returns the value of type t in the low bits of v, extended by its sign or with zeros to 64 bits.
func (t typ) narrow(v uint64) uint64 {
	switch t.bytes() {
	case 1:
		if t.signed() {
			return uint64(int64(int8(v)))
		}
		return v & 0xFF
	case 2:
		if t.signed() {
			return uint64(int64(int16(v)))
		}
		return v & 0xFFFF
	case 4:
		if t.signed() {
			return uint64(int64(int32(v)))
		}
		return v & 0xFFFFFFFF
	}
	return v
}

// class is a kind of storage: words holds registers of 16 and 32 bits, longs those of 64, flags the predicates.
type class uint8

const (
	none class = iota
	words
	longs
	flags
)

// ref is a register, a constant or a special register: number n of its class.
type ref struct {
	class class
	n     int32
	typ   typ // as declared
}

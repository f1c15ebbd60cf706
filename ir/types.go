package ir

import "fmt"

// Type is the type of a value in a register, or of an element in memory.
//
// Register types hold 32 bits a lane (Index holds 64 on CPUs). The types from I8 on exist in memory only: a load widens them
// to [Type.Reg], a store narrows to them.
type Type uint8

const (
	Invalid Type = iota
	F32          // IEEE binary32
	I32          // two's complement
	U32
	I8x4 // four signed bytes in one word, the first in the low byte
	U8x4 // four unsigned bytes in one word, the first in the low byte
	Bool
	Index // position in a buffer, a loop variable, an extent

	// Storage only.
	I8
	U8
	I16
	F16
	BF16
)

var typeNames = [...]string{"invalid", "f32", "i32", "u32", "i8x4", "u8x4", "bool", "index", "i8", "u8", "i16", "f16", "bf16"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// ParseType returns the type of that name.
func ParseType(name string) (Type, bool) {
	for i, n := range typeNames {
		if n == name && i != 0 {
			return Type(i), true
		}
	}
	return Invalid, false
}

// Bytes returns the size of an element in memory, 0 for types that are never stored.
func (t Type) Bytes() int {
	switch t {
	case F32, I32, U32, I8x4, U8x4:
		return 4
	case I16, F16, BF16:
		return 2
	case I8, U8:
		return 1
	}
	return 0
}

// Reg returns the register type of a loaded element: I8, U8 and I16 become I32; F16 and BF16 become F32.
func (t Type) Reg() Type {
	switch t {
	case I8, U8, I16:
		return I32
	case F16, BF16:
		return F32
	}
	return t
}

// Word reports whether t is a register type of 32 bits, which Select, shuffles and bit casts take.
func (t Type) Word() bool { return t >= F32 && t <= U8x4 }

// Span tells how far a value is the same: over the whole block, over one lane group, or in no two lanes.
type Span uint8

const (
	Block   Span = iota // uniform over the block: the same in every lane group
	Group               // uniform over a lane group
	Varying             // one value per lane
)

func (s Span) String() string { return [...]string{"block", "group", "varying"}[s] }

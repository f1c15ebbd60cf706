package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ValueType is the type of a metadata value, as numbered in a file.
type ValueType uint32

// The types of metadata values.
const (
	ValueUint8 ValueType = iota
	ValueInt8
	ValueUint16
	ValueInt16
	ValueUint32
	ValueInt32
	ValueFloat32
	ValueBool
	ValueString
	ValueArray
	ValueUint64
	ValueInt64
	ValueFloat64
)

// valueTypes names each type and gives the bytes of one value, 0 if they vary.
var valueTypes = [...]struct {
	name string
	size int
}{
	ValueUint8:   {"uint8", 1},
	ValueInt8:    {"int8", 1},
	ValueUint16:  {"uint16", 2},
	ValueInt16:   {"int16", 2},
	ValueUint32:  {"uint32", 4},
	ValueInt32:   {"int32", 4},
	ValueFloat32: {"float32", 4},
	ValueBool:    {"bool", 1},
	ValueString:  {"string", 0},
	ValueArray:   {"array", 0},
	ValueUint64:  {"uint64", 8},
	ValueInt64:   {"int64", 8},
	ValueFloat64: {"float64", 8},
}

func (t ValueType) known() bool { return uint64(t) < uint64(len(valueTypes)) }

// String returns the name of t, or "type(N)".
func (t ValueType) String() string {
	if !t.known() {
		return fmt.Sprintf("type(%d)", uint32(t))
	}
	return valueTypes[t].name
}

// size returns the bytes of one value of a known type, or 0 if they vary.
func (t ValueType) size() int { return valueTypes[t].size }

func (t ValueType) signed() bool {
	return t == ValueInt8 || t == ValueInt16 || t == ValueInt32 || t == ValueInt64
}

func (t ValueType) unsigned() bool {
	return t == ValueUint8 || t == ValueUint16 || t == ValueUint32 || t == ValueUint64
}

// Value is one metadata value: a scalar or an array of scalars. It refers to the
// map, and is valid until the file is closed.
type Value struct {
	Type ValueType
	Elem ValueType // type of the elements, if Type is ValueArray
	Len  int       // number of elements, if Type is ValueArray

	raw    []byte // the scalar, the bytes of the string, or the elements, as encoded
	offset int    // of the encoding in the file, for errors
}

// Offset returns where in its file the value is encoded; an element's is that of its array.
func (v Value) Offset() int { return v.offset }

// Text returns the text of a string, "" of other types.
func (v Value) Text() string {
	if v.Type != ValueString {
		return ""
	}
	return string(v.raw)
}

// First returns the first elements of an array, at most n of them.
func (v Value) First(n int) []Value {
	if v.Type != ValueArray {
		return nil
	}
	elems := make([]Value, min(n, v.Len))
	rest := v.raw
	for i := range elems {
		elems[i] = Value{Type: v.Elem, offset: v.offset}
		elems[i].raw, rest = splitElem(v.Elem, rest)
	}
	return elems
}

// kind describes the type in an error.
func (v Value) kind() string {
	if v.Type == ValueArray {
		return fmt.Sprintf("array of %d %s", v.Len, v.Elem)
	}
	return v.Type.String()
}

// How much of a value String shows.
const (
	shownElems = 8
	shownBytes = 256
)

// String formats v for display on one line. Text is quoted as a Go string, so that
// nothing in a file can control a terminal; long text and long arrays are cut and
// followed by their length.
func (v Value) String() string {
	if v.Type != ValueArray {
		return formatScalar(v.Type, v.raw)
	}
	var b strings.Builder
	b.WriteByte('[')
	for i, elem := range v.First(shownElems) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(elem.String())
	}
	if v.Len > shownElems {
		fmt.Fprintf(&b, ", … %d in all", v.Len)
	}
	b.WriteByte(']')
	return b.String()
}

// splitElem cuts the first element off the encoding of an array. Of a string it
// returns the bytes, without the length in front of them. The encoding must have
// been checked.
func splitElem(t ValueType, raw []byte) (elem, rest []byte) {
	n := t.size()
	if t == ValueString {
		n = int(binary.LittleEndian.Uint64(raw))
		raw = raw[8:]
	}
	return raw[:n], raw[n:]
}

// formatScalar formats one value that isn't an array.
func formatScalar(t ValueType, raw []byte) string {
	switch {
	case t == ValueString:
		return quote(raw, shownBytes)
	case t == ValueBool:
		return strconv.FormatBool(raw[0] != 0)
	case t == ValueFloat32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(integer(t, raw)))), 'g', -1, 32)
	case t == ValueFloat64:
		return strconv.FormatFloat(math.Float64frombits(integer(t, raw)), 'g', -1, 64)
	case t.signed():
		return strconv.FormatInt(int64(integer(t, raw)), 10)
	}
	return strconv.FormatUint(integer(t, raw), 10)
}

// integer reads a scalar: an integer, signed ones extended to 64 bits, or the bits
// of a float.
func integer(t ValueType, raw []byte) uint64 {
	var v uint64
	switch len(raw) {
	case 1:
		v = uint64(raw[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(raw))
	case 4:
		v = uint64(binary.LittleEndian.Uint32(raw))
	case 8:
		v = binary.LittleEndian.Uint64(raw)
	}
	if t.signed() {
		shift := 64 - 8*len(raw)
		v = uint64(int64(v<<shift) >> shift)
	}
	return v
}

// quote formats text from a file as a Go string. Of a text longer than limit it
// shows a beginning of that many bytes and the length.
func quote[T string | []byte](text T, limit int) string {
	if len(text) <= limit {
		return strconv.Quote(string(text))
	}
	cut := limit
	for cut > limit-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(string(text[:cut])), len(text))
}

package gguf

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
)

// Limits on what a file may hold, far above what models have.
const (
	maxKeys      = 1 << 16
	maxTensors   = 1 << 17
	maxKeyBytes  = 1<<16 - 1 // given by the specification
	maxNameBytes = 1 << 10   // of a tensor; ggml takes 63
	maxTextBytes = 64 << 20  // of a text that stands alone: some hold a whole tokenizer
	maxElemBytes = 1 << 20   // of a text in an array
	maxArrayLen  = 1 << 24
	maxAlignment = 1 << 20
)

const (
	alignmentKey     = "general.alignment"
	defaultAlignment = 32
	magic            = "GGUF"

	minTextBytes   = 8                        // the length of a text
	minKeyBytes    = minTextBytes + 4 + 1     // of an entry: key, type, value
	minTensorBytes = minTextBytes + 4 + 4 + 8 // of a description: name, count of dimensions, type, offset
)

// shownName is how much of a key or name an error quotes.
const shownName = 64

// errorAt makes the one-line error for a place in a file. field is a kind of thing
// in the file; name is the key or tensor it belongs to, if it has one.
func errorAt(path, field, name string, offset int, format string, args ...any) error {
	if name != "" {
		field += " " + quote(name, shownName)
	}
	return fmt.Errorf("%s: %s: offset %d: %w", printable(path), field, offset, fmt.Errorf(format, args...))
}

// printable returns a path as it is, quoted if it would not print on one line.
func printable(path string) string {
	for _, r := range path {
		if !strconv.IsPrint(r) {
			return strconv.Quote(path)
		}
	}
	return path
}

// parser reads the header of one file from front to back.
type parser struct {
	path string
	data []byte
	pos  int

	field, name string // what is being read, for errors
}

// parse checks the bytes of one file. What it returns refers to them. path is for
// errors only.
func parse(path string, data []byte) (*File, error) {
	p := &parser{path: path, data: data}
	f := &File{
		path:   path,
		size:   int64(len(data)),
		values: make(map[string]Value),
		byName: make(map[string]*Tensor),
	}
	tensors, keys, err := p.header(f)
	if err != nil {
		return nil, err
	}
	for range keys {
		if err := p.keyValue(f); err != nil {
			return nil, err
		}
	}
	alignment, err := p.alignment(f)
	if err != nil {
		return nil, err
	}
	for range tensors {
		if err := p.tensorInfo(f); err != nil {
			return nil, err
		}
	}
	if err := p.tensorData(f, alignment); err != nil {
		return nil, err
	}
	return f, nil
}

// errorf is an error at an offset in what is being read.
func (p *parser) errorf(offset int, format string, args ...any) error {
	return errorAt(p.path, p.field, p.name, offset, format, args...)
}

// bytes reads n bytes.
func (p *parser) bytes(n uint64, what string) ([]byte, error) {
	left := len(p.data) - p.pos
	if n > uint64(left) {
		return nil, p.errorf(p.pos, "file is truncated: %d bytes left, expected %d bytes of %s", left, n, what)
	}
	b := p.data[p.pos : p.pos+int(n) : p.pos+int(n)]
	p.pos += int(n)
	return b, nil
}

func (p *parser) uint32(what string) (uint32, error) {
	b, err := p.bytes(4, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (p *parser) uint64(what string) (uint64, error) {
	b, err := p.bytes(8, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// text reads a string of at most limit bytes.
func (p *parser) text(limit uint64, what string) ([]byte, error) {
	start := p.pos
	n, err := p.uint64("string length")
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, p.errorf(start, "%s of %d bytes, expected at most %d", what, n, limit)
	}
	return p.bytes(n, what)
}

// count reads how many things follow, at most limit and each of at least size bytes.
func (p *parser) count(size int, limit uint64, what string) (uint64, error) {
	start := p.pos
	n, err := p.uint64("count of " + what)
	if err != nil {
		return 0, err
	}
	if most := uint64((len(p.data) - p.pos) / size); n > most {
		return 0, p.errorf(start, "%d %s, expected at most %d in the %d bytes left", n, what, most, len(p.data)-p.pos)
	}
	if n > limit {
		return 0, p.errorf(start, "%d %s, expected at most %d", n, what, limit)
	}
	return n, nil
}

// header reads the magic, the version and the counts.
func (p *parser) header(f *File) (tensors, keys uint64, err error) {
	p.field = "header"
	start := p.data[:min(len(p.data), 16)]
	if len(start) >= len(magic) && string(start[:len(magic)]) != magic {
		return 0, 0, p.errorf(0, "file begins with %s, expected %q", strconv.Quote(string(start)), magic)
	}
	if _, err := p.bytes(uint64(len(magic)), "magic"); err != nil {
		return 0, 0, err
	}
	if f.version, err = p.uint32("version"); err != nil {
		return 0, 0, err
	}
	switch v := f.version; {
	case v == 1:
		return 0, 0, p.errorf(4, "version 1, whose counts have 32 bits, expected version 2 or 3: convert the model again")
	case v != 0 && v&0xffff == 0:
		return 0, 0, p.errorf(4, "big-endian file of version %d, expected a little-endian one", bits.ReverseBytes32(v))
	case v != 2 && v != 3:
		return 0, 0, p.errorf(4, "version %d, expected version 2 or 3", v)
	}
	if tensors, err = p.count(minTensorBytes, maxTensors, "tensors"); err != nil {
		return 0, 0, err
	}
	if keys, err = p.count(minKeyBytes, maxKeys, "keys"); err != nil {
		return 0, 0, err
	}
	return tensors, keys, nil
}

// keyValue reads one entry of the metadata.
func (p *parser) keyValue(f *File) error {
	p.field, p.name = "key "+strconv.Itoa(len(f.keys)), ""
	start := p.pos
	key, err := p.text(maxKeyBytes, "key")
	if err != nil {
		return err
	}
	p.field, p.name = "key", string(key)
	if first, ok := f.values[p.name]; ok {
		return p.errorf(start, "duplicate key, expected one; the first value is at offset %d", first.offset)
	}
	t, err := p.valueType("value")
	if err != nil {
		return err
	}
	v, err := p.value(t)
	if err != nil {
		return err
	}
	f.keys = append(f.keys, p.name)
	f.values[p.name] = v
	return nil
}

func (p *parser) valueType(what string) (ValueType, error) {
	start := p.pos
	n, err := p.uint32(what + " type")
	if err != nil {
		return 0, err
	}
	t := ValueType(n)
	if !t.known() {
		return 0, p.errorf(start, "unknown %s type %d, expected 0 to %d", what, n, len(valueTypes)-1)
	}
	return t, nil
}

// value reads a value, the elements of an array only as far as is needed to find
// its end and to know that they can be read later without further checks.
func (p *parser) value(t ValueType) (v Value, err error) {
	v.Type, v.offset = t, p.pos
	switch t {
	case ValueString:
		v.raw, err = p.text(maxTextBytes, "string")
		return v, err
	case ValueArray:
		return p.array(v)
	}
	if v.raw, err = p.bytes(uint64(t.size()), t.String()); err != nil {
		return v, err
	}
	return v, p.checkBools(t, v.raw)
}

func (p *parser) array(v Value) (Value, error) {
	t, err := p.valueType("element")
	if err != nil {
		return v, err
	}
	if t == ValueArray {
		return v, p.errorf(v.offset, "array of arrays, expected an array of scalars")
	}
	size := t.size()
	if t == ValueString {
		size = minTextBytes
	}
	n, err := p.count(size, maxArrayLen, "elements")
	if err != nil {
		return v, err
	}
	v.Elem, v.Len = t, int(n)
	if t == ValueString {
		start := p.pos
		for range n {
			if _, err := p.text(maxElemBytes, "string in an array"); err != nil {
				return v, err
			}
		}
		v.raw = p.data[start:p.pos:p.pos]
		return v, nil
	}
	if v.raw, err = p.bytes(n*uint64(size), "array"); err != nil {
		return v, err
	}
	return v, p.checkBools(t, v.raw)
}

// checkBools refuses a bool that is neither 0 nor 1, just read.
func (p *parser) checkBools(t ValueType, raw []byte) error {
	if t != ValueBool {
		return nil
	}
	for i, b := range raw {
		if b > 1 {
			return p.errorf(p.pos-len(raw)+i, "bool of value %d, expected 0 or 1", b)
		}
	}
	return nil
}

// alignment returns the alignment of the tensors' data.
func (p *parser) alignment(f *File) (int, error) {
	v, ok := f.values[alignmentKey]
	if !ok {
		return defaultAlignment, nil
	}
	if v.Type != ValueUint32 {
		return 0, f.mismatch(alignmentKey, v, "a uint32")
	}
	n := integer(v.Type, v.raw)
	if n < 8 || n > maxAlignment || n&(n-1) != 0 {
		return 0, f.errorf(alignmentKey, v, "alignment %d, expected a power of two from 8 to %d", n, maxAlignment)
	}
	return int(n), nil
}

// tensorInfo reads the description of one tensor.
func (p *parser) tensorInfo(f *File) error {
	p.field, p.name = "tensor "+strconv.Itoa(len(f.tensors)), ""
	start := p.pos
	name, err := p.text(maxNameBytes, "name")
	if err != nil {
		return err
	}
	p.field, p.name = "tensor", string(name)
	if first, ok := f.byName[p.name]; ok {
		return p.errorf(start, "duplicate tensor, expected one; the first is at offset %d", first.infoOffset)
	}
	t := &Tensor{Name: p.name, infoOffset: start}

	start = p.pos
	dims, err := p.uint32("dimension count")
	if err != nil {
		return err
	}
	if dims > maxDims {
		return p.errorf(start, "%d dimensions, expected at most %d", dims, maxDims)
	}
	t.Dims = make([]uint64, dims)
	for i := range t.Dims {
		if t.Dims[i], err = p.uint64("dimension"); err != nil {
			return err
		}
	}
	if dims == 0 { // ggml's scalar
		t.Dims = []uint64{1}
	}
	typeOffset := p.pos
	id, err := p.uint32("tensor type")
	if err != nil {
		return err
	}
	t.Type = Type(id)
	if t.Type.BlockElems() == 0 {
		start = typeOffset
	}
	if _, err := tensorBytes(t.Type, t.Dims); err != nil {
		return p.errorf(start, "%w", err)
	}
	if t.Offset, err = p.uint64("tensor offset"); err != nil {
		return err
	}
	f.tensors = append(f.tensors, t)
	f.byName[t.Name] = t
	return nil
}

// tensorData finds the bytes of each tensor. The offsets read so far count from
// the first aligned byte after the descriptions.
func (p *parser) tensorData(f *File, alignment int) error {
	if len(f.tensors) == 0 {
		return nil
	}
	begin := uint64(p.pos)
	begin += -begin % uint64(alignment)
	end := uint64(len(p.data))

	for _, t := range f.tensors {
		p.field, p.name = "tensor", t.Name
		if t.Offset%uint64(alignment) != 0 {
			return p.errorf(t.infoOffset, "data offset %d, expected a multiple of the alignment %d", t.Offset, alignment)
		}
		size, err := tensorBytes(t.Type, t.Dims)
		if err != nil {
			return p.errorf(t.infoOffset, "%w", err)
		}
		start, carry := bits.Add64(begin, t.Offset, 0)
		if carry != 0 || start > end || size > end-start {
			return p.errorf(t.infoOffset, "%d bytes at data offset %d reach beyond the end of the file: it has %d bytes and the data begins at %d; the file is truncated or damaged",
				size, t.Offset, end, begin)
		}
		t.Offset = start
		t.Data = p.data[start : start+size : start+size]
	}
	return p.overlap(f.tensors)
}

// overlap refuses tensors that share bytes.
func (p *parser) overlap(tensors []*Tensor) error {
	sorted := slices.Clone(tensors)
	slices.SortStableFunc(sorted, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(sorted); i++ {
		before, t := sorted[i-1], sorted[i]
		if end := before.Offset + uint64(len(before.Data)); end > t.Offset {
			p.field, p.name = "tensor", t.Name
			return p.errorf(t.infoOffset, "data at offset %d overlaps tensor %s, which ends at offset %d", t.Offset, quote(before.Name, shownName), end)
		}
	}
	return nil
}

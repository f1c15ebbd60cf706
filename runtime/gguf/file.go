// Package gguf reads and writes GGUF files, the format in which llama.cpp and
// others keep language models: typed metadata under string keys, and tensors.
//
// The reader takes versions 2 and 3, little-endian. It maps the file and copies
// nothing: tensors and metadata are slices of the map. It trusts nothing: every
// count, length, offset and product in the file is checked before use, and no
// allocation is larger than a small multiple of the bytes that are really there.
// An error is one line that says where it is and what was expected:
//
//	model.gguf: tensor "output.weight": offset 1184: rows of 100 elements, expected a multiple of 256, the block of Q4_K
//
// The format is specified in docs/gguf.md of the ggml project.
package gguf

import (
	"fmt"
	"math"

	"github.com/swizzle-rt/swizzle/runtime/mmap"
)

// File is an open GGUF file, or an open model that is split over several. Its
// methods may be called from several goroutines, except for Close, which must come
// after all other use.
type File struct {
	path    string
	version uint32
	size    int64
	maps    []*mmap.Map
	keys    []string
	values  map[string]Value
	tensors []*Tensor
	byName  map[string]*Tensor
}

// Open maps a file and checks its structure. Of a split model, whose files are
// named like model-00001-of-00003.gguf, path is the first; the others are opened
// too, and their tensors follow.
func Open(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := parse(path, m.Bytes())
	if err != nil {
		m.Close()
		return nil, err
	}
	f.maps = append(f.maps, m)
	if err := f.openShards(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close removes the map. The values, and the data of the tensors, are invalid
// afterwards.
func (f *File) Close() error {
	for _, t := range f.tensors {
		t.Data = nil
	}
	f.keys, f.values, f.tensors, f.byName = nil, nil, nil, nil

	var first error
	for _, m := range f.maps {
		if err := m.Close(); err != nil && first == nil {
			first = fmt.Errorf("close %s: %w", f.path, err)
		}
	}
	f.maps = nil
	return first
}

// Path returns the path the file was opened by.
func (f *File) Path() string { return f.path }

// Version returns the version of the format.
func (f *File) Version() uint32 { return f.version }

// Size returns the bytes of the file, or of all files of a split model.
func (f *File) Size() int64 { return f.size }

// Keys returns the metadata keys in the order of the file. They may hold any bytes:
// quote them for display. Of a split model they are those of the first file.
func (f *File) Keys() []string { return f.keys }

// Value returns the value of a key.
func (f *File) Value(key string) (Value, bool) {
	v, ok := f.values[key]
	return v, ok
}

// Tensors returns the tensors in the order of the file.
func (f *File) Tensors() []*Tensor { return f.tensors }

// Tensor returns the tensor of a name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	t, ok := f.byName[name]
	return t, ok
}

// Release tells the system that the tensor's bytes won't be needed soon: their pages may leave memory, and come back
// from the file if they are read again.
func (f *File) Release(t *Tensor) {
	// Advice can't be needed for correctness.
	_ = f.maps[t.Shard].Advise(mmap.DontNeed, int(t.Offset), len(t.Data))
}

// String returns the text of a key. ok is false if there is no such key; another
// type is an error. The text may hold any bytes: quote it for display.
func (f *File) String(key string) (v string, ok bool, err error) {
	value, ok := f.values[key]
	if !ok {
		return "", false, nil
	}
	if value.Type != ValueString {
		return "", true, f.mismatch(key, value, "a string")
	}
	return string(value.raw), true, nil
}

// Uint returns the number of a key, an integer of any type that is not negative.
// ok is false if there is no such key; anything else is an error.
func (f *File) Uint(key string) (v uint64, ok bool, err error) {
	value, ok := f.values[key]
	if !ok {
		return 0, false, nil
	}
	if !value.Type.signed() && !value.Type.unsigned() {
		return 0, true, f.mismatch(key, value, "an integer")
	}
	v = integer(value.Type, value.raw)
	if value.Type.signed() && int64(v) < 0 {
		return 0, true, f.errorf(key, value, "%d, expected an integer that is not negative", int64(v))
	}
	return v, true, nil
}

// Float returns the number of a key, a float32 or a float64. ok is false if there
// is no such key; another type is an error.
func (f *File) Float(key string) (v float64, ok bool, err error) {
	value, ok := f.values[key]
	if !ok {
		return 0, false, nil
	}
	switch value.Type {
	case ValueFloat32:
		return float64(math.Float32frombits(uint32(integer(ValueFloat32, value.raw)))), true, nil
	case ValueFloat64:
		return math.Float64frombits(integer(ValueFloat64, value.raw)), true, nil
	}
	return 0, true, f.mismatch(key, value, "a float32 or float64")
}

// Bool returns the truth value of a key. ok is false if there is no such key;
// another type is an error.
func (f *File) Bool(key string) (v bool, ok bool, err error) {
	value, ok := f.values[key]
	if !ok {
		return false, false, nil
	}
	if value.Type != ValueBool {
		return false, true, f.mismatch(key, value, "a bool")
	}
	return value.raw[0] != 0, true, nil
}

// Strings returns the array of texts of a key. ok is false if there is no such
// key; another type is an error. Each call makes new strings, which stay valid
// after Close.
func (f *File) Strings(key string) (v []string, ok bool, err error) {
	value, ok, err := f.array(key, "strings", func(t ValueType) bool { return t == ValueString })
	if err != nil || !ok {
		return nil, ok, err
	}
	// One copy of the whole encoding, cut in place, is far cheaper than a small
	// allocation for each of some hundred thousand tokens.
	text := string(value.raw)
	v = make([]string, value.Len)
	rest := value.raw
	for i := range v {
		var elem []byte
		elem, rest = splitElem(ValueString, rest)
		end := len(text) - len(rest)
		v[i] = text[end-len(elem) : end]
	}
	return v, true, nil
}

// Floats returns the array of float32 of a key. ok is false if there is no such
// key; another type is an error.
func (f *File) Floats(key string) (v []float32, ok bool, err error) {
	value, ok, err := f.array(key, "float32", func(t ValueType) bool { return t == ValueFloat32 })
	if err != nil || !ok {
		return nil, ok, err
	}
	v = make([]float32, value.Len)
	for i := range v {
		v[i] = math.Float32frombits(uint32(integer(ValueFloat32, value.raw[4*i:4*i+4])))
	}
	return v, true, nil
}

// Ints returns the array of integers of a key, of any type as long as each of them
// fits an int32. ok is false if there is no such key; anything else is an error.
func (f *File) Ints(key string) (v []int32, ok bool, err error) {
	value, ok, err := f.array(key, "integers", func(t ValueType) bool { return t.signed() || t.unsigned() })
	if err != nil || !ok {
		return nil, ok, err
	}
	v = make([]int32, value.Len)
	size := value.Elem.size()
	for i := range v {
		raw := value.raw[size*i : size*i+size]
		n := integer(value.Elem, raw)
		v[i] = int32(n)
		if n != uint64(v[i]) || n > math.MaxInt32 && !value.Elem.signed() {
			return nil, true, f.errorf(key, value, "element %d is %s, expected an integer that fits an int32", i, formatScalar(value.Elem, raw))
		}
	}
	return v, true, nil
}

// array returns the value of a key if it is an array of an accepted type.
func (f *File) array(key, want string, accept func(ValueType) bool) (Value, bool, error) {
	value, ok := f.values[key]
	if !ok {
		return Value{}, false, nil
	}
	if value.Type != ValueArray || !accept(value.Elem) {
		return Value{}, true, f.mismatch(key, value, "an array of "+want)
	}
	return value, true, nil
}

// mismatch is the error for a value of another type than the expected one.
func (f *File) mismatch(key string, v Value, want string) error {
	return f.errorf(key, v, "type %s, expected %s", v.kind(), want)
}

// errorf is an error at the value of a key.
func (f *File) errorf(key string, v Value, format string, args ...any) error {
	return errorAt(f.path, "key", key, v.offset, format, args...)
}

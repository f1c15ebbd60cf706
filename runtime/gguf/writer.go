package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
)

// Writer collects metadata and tensors and writes them as a GGUF file: version 3,
// little-endian, the data of each tensor aligned to 32 bytes. Its zero value is
// ready for use:
//
//	var w gguf.Writer
//	w.Set("general.architecture", "llama")
//	w.Add("output_norm.weight", gguf.TypeF32, []uint64{2}, data)
//	_, err := w.WriteTo(out)
//
// It refuses what a reader would refuse. The first error stays, and WriteTo
// returns it.
type Writer struct {
	keys     uint64
	metadata []byte
	tensors  []writerTensor
	size     uint64 // of the data, with padding
	seen     map[string]bool
	err      error
}

type writerTensor struct {
	name   string
	typ    Type
	dims   []uint64
	offset uint64
	data   []byte
}

// Set adds a key. value is a bool, a string, an integer or a float of a given
// number of bits (uint32, not uint), or a slice of one of these; its type becomes
// the type in the file.
func (w *Writer) Set(key string, value any) {
	if w.err != nil {
		return
	}
	t, array, ok := valueTypeOf(value)
	switch {
	case !ok:
		w.err = fmt.Errorf("write gguf: key %s: a Go value of type %T, expected a scalar of fixed size, a string, or a slice of these", quote(key, shownName), value)
	case w.keys == maxKeys:
		w.err = fmt.Errorf("write gguf: key %s: expected at most %d keys", quote(key, shownName), maxKeys)
	case len(key) > maxKeyBytes:
		w.err = fmt.Errorf("write gguf: key %s: expected at most %d bytes", quote(key, shownName), maxKeyBytes)
	case key == alignmentKey:
		w.err = fmt.Errorf("write gguf: key %q: the alignment is always %d", key, defaultAlignment)
	case !w.claim("key " + key):
		w.err = fmt.Errorf("write gguf: key %s: set twice", quote(key, shownName))
	}
	if w.err != nil {
		return
	}
	b := appendText(w.metadata, key)
	if array {
		b = binary.LittleEndian.AppendUint32(b, uint32(ValueArray))
	}
	start := len(b) // of what p.value reads below
	if !array {
		start += 4
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(t))
	switch v := value.(type) {
	case string:
		b = appendText(b, v)
	case []string:
		b = binary.LittleEndian.AppendUint64(b, uint64(len(v)))
		for _, s := range v {
			b = appendText(b, s)
		}
	default:
		if array {
			b = binary.LittleEndian.AppendUint64(b, uint64(reflect.ValueOf(v).Len()))
		}
		b, w.err = binary.Append(b, binary.LittleEndian, v)
	}
	if w.err != nil { // a named string type
		w.err = fmt.Errorf("write gguf: key %s: %w", quote(key, shownName), w.err)
		return
	}
	// The reader's own checks are the limits of lengths.
	p := parser{path: "write gguf", data: b, pos: start, field: "key", name: key}
	if array {
		t = ValueArray
	}
	if _, w.err = p.value(t); w.err != nil {
		return
	}
	w.keys++
	w.metadata = b
}

// kinds gives the type in a file of each kind of Go value.
var kinds = map[reflect.Kind]ValueType{
	reflect.Uint8:   ValueUint8,
	reflect.Int8:    ValueInt8,
	reflect.Uint16:  ValueUint16,
	reflect.Int16:   ValueInt16,
	reflect.Uint32:  ValueUint32,
	reflect.Int32:   ValueInt32,
	reflect.Uint64:  ValueUint64,
	reflect.Int64:   ValueInt64,
	reflect.Float32: ValueFloat32,
	reflect.Float64: ValueFloat64,
	reflect.Bool:    ValueBool,
	reflect.String:  ValueString,
}

// valueTypeOf returns the type a Go value has in a file, or the type of its
// elements if it is a slice.
func valueTypeOf(value any) (t ValueType, array, ok bool) {
	rt := reflect.TypeOf(value)
	if rt == nil {
		return 0, false, false
	}
	if array = rt.Kind() == reflect.Slice; array {
		rt = rt.Elem()
	}
	t, ok = kinds[rt.Kind()]
	return t, array, ok
}

// Add adds a tensor. dims is in the order of GGUF, the length of a row first. data
// is its encoding, of exactly the size the type and dimensions give; it must not
// change before WriteTo.
func (w *Writer) Add(name string, t Type, dims []uint64, data []byte) {
	if w.err != nil {
		return
	}
	size, err := tensorBytes(t, dims)
	switch {
	case err != nil:
		w.err = fmt.Errorf("write gguf: tensor %s: %w", quote(name, shownName), err)
	case uint64(len(data)) != size:
		w.err = fmt.Errorf("write gguf: tensor %s: %d bytes of data, expected %d for %v of %s", quote(name, shownName), len(data), size, dims, t)
	case len(w.tensors) == maxTensors:
		w.err = fmt.Errorf("write gguf: tensor %s: expected at most %d tensors", quote(name, shownName), maxTensors)
	case len(name) > maxNameBytes:
		w.err = fmt.Errorf("write gguf: tensor %s: expected a name of at most %d bytes", quote(name, shownName), maxNameBytes)
	case !w.claim("tensor " + name):
		w.err = fmt.Errorf("write gguf: tensor %s: added twice", quote(name, shownName))
	}
	if w.err != nil {
		return
	}
	w.tensors = append(w.tensors, writerTensor{name, t, append([]uint64(nil), dims...), w.size, data})
	w.size += size + -size%defaultAlignment
}

// claim records a name and reports whether it is new.
func (w *Writer) claim(name string) bool {
	if w.seen == nil {
		w.seen = make(map[string]bool)
	}
	if w.seen[name] {
		return false
	}
	w.seen[name] = true
	return true
}

// WriteTo writes the file. It returns the bytes written and the first error of Set,
// Add or out.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	if w.err != nil {
		return 0, w.err
	}
	b := []byte(magic)
	b = binary.LittleEndian.AppendUint32(b, 3)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.tensors)))
	b = binary.LittleEndian.AppendUint64(b, w.keys)
	b = append(b, w.metadata...)
	for _, t := range w.tensors {
		b = appendText(b, t.name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.dims)))
		for _, n := range t.dims {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.typ))
		b = binary.LittleEndian.AppendUint64(b, t.offset)
	}
	written, err := writePadded(out, b)
	for _, t := range w.tensors {
		if err != nil {
			break
		}
		var n int64
		n, err = writePadded(out, t.data)
		written += n
	}
	if err != nil {
		return written, fmt.Errorf("write gguf: %w", err)
	}
	return written, nil
}

// writePadded writes b and zeros up to the next multiple of the alignment.
func writePadded(out io.Writer, b []byte) (int64, error) {
	n, err := out.Write(b)
	if err != nil {
		return int64(n), err
	}
	var zeros [defaultAlignment]byte
	m, err := out.Write(zeros[:-uint(len(b))%defaultAlignment])
	return int64(n) + int64(m), err
}

func appendText(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

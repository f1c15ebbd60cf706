package gguf

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestWriteMinimal writes a file of known bytes.
func TestWriteMinimal(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "minimal.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	got := build(t, func(w *Writer) {
		w.Set("general.architecture", "llama")
		w.Set("x.y", uint32(7))
		w.Add("a.weight", TypeF32, []uint64{8}, want[128:])
	})
	if !bytes.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// TestWritePadding writes data of odd sizes and no tensors at all.
func TestWritePadding(t *testing.T) {
	for n := range 4 {
		b := build(t, func(w *Writer) {
			for i := range n {
				w.Add(string(rune('a'+i)), TypeI8, []uint64{uint64(31 + i)}, bytes.Repeat([]byte{byte(i + 1)}, 31+i))
			}
		})
		if len(b)%32 != 0 {
			t.Errorf("%d tensors: file of %d bytes", n, len(b))
		}
		for i, tensor := range mustParse(t, b).Tensors() {
			if !bytes.Equal(tensor.Data, bytes.Repeat([]byte{byte(i + 1)}, 31+i)) {
				t.Errorf("%d tensors: data of tensor %d is %v", n, i, tensor.Data)
			}
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	type named []string
	for _, test := range []struct {
		name string
		fill func(*Writer)
		want string
	}{
		{"int", func(w *Writer) { w.Set("k", 1) }, `key "k": a Go value of type int`},
		{"nil", func(w *Writer) { w.Set("k", nil) }, `key "k": a Go value of type <nil>`},
		{"nested", func(w *Writer) { w.Set("k", [][]int32{}) }, `key "k": a Go value of type [][]int32`},
		{"key twice", func(w *Writer) { w.Set("k", true); w.Set("k", true) }, `key "k": set twice`},
		{"long key", func(w *Writer) { w.Set(strings.Repeat("k", 1<<16), true) }, "at most 65535 bytes"},
		{"alignment", func(w *Writer) { w.Set("general.alignment", uint32(64)) }, "the alignment is always 32"},
		{"long element", func(w *Writer) { w.Set("k", []string{strings.Repeat("x", 1<<20+1)}) }, "string in an array of 1048577 bytes"},
		{"long array", func(w *Writer) { w.Set("k", make([]uint8, 1<<24+1)) }, "16777217 elements, expected at most"},
		{"many keys", func(w *Writer) {
			for i := range 1<<16 + 1 {
				w.Set(strconv.Itoa(i), true)
			}
		}, `key "65536": expected at most 65536 keys`},
		{"many tensors", func(w *Writer) {
			for i := range 1<<17 + 1 {
				w.Add(strconv.Itoa(i), TypeI8, []uint64{1}, []byte{0})
			}
		}, `tensor "131072": expected at most 131072 tensors`},
		{"tensor twice", func(w *Writer) {
			w.Add("a", TypeI8, []uint64{1}, []byte{0})
			w.Add("a", TypeI8, []uint64{1}, []byte{0})
		}, `tensor "a": added twice`},
		{"long name", func(w *Writer) { w.Add(strings.Repeat("a", 1025), TypeI8, []uint64{1}, []byte{0}) }, "at most 1024 bytes"},
		{"short data", func(w *Writer) { w.Add("a", TypeQ4_0, []uint64{64, 2}, make([]byte, 71)) }, `tensor "a": 71 bytes of data, expected 72 for [64 2] of Q4_0`},
		{"partial block", func(w *Writer) { w.Add("a", TypeQ4_0, []uint64{33}, nil) }, "rows of 33 elements, expected a multiple of 32"},
		{"removed type", func(w *Writer) { w.Add("a", 4, []uint64{32}, nil) }, "tensor type 4 (Q4_2), which ggml has removed"},
		{"no dimensions", func(w *Writer) { w.Add("a", TypeI8, nil, nil) }, "0 dimensions, expected 1 to 4"},
		{"five dimensions", func(w *Writer) { w.Add("a", TypeI8, make([]uint64, 5), nil) }, "5 dimensions, expected 1 to 4"},
	} {
		var w Writer
		test.fill(&w)
		w.Set("later", true)
		n, err := w.WriteTo(io.Discard)
		if n != 0 || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: WriteTo = %d, %v, want error %q", test.name, n, err, test.want)
		}
	}
	var w Writer
	w.Set("k", named{"x"})
	if _, err := w.WriteTo(io.Discard); err == nil {
		t.Error("a named slice of strings: no error")
	}
}

// limited fails after a number of bytes.
type limited struct{ left int }

var errFull = errors.New("full")

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		n := l.left
		l.left = 0
		return n, errFull
	}
	l.left -= len(b)
	return len(b), nil
}

func TestWriteFails(t *testing.T) {
	var w Writer
	w.Add("a", TypeI8, []uint64{40}, make([]byte, 40))
	for n := range 128 {
		written, err := w.WriteTo(&limited{n})
		if written != int64(n) || !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: WriteTo = %d, %v", n, written, err)
		}
	}
	if written, err := w.WriteTo(&limited{128}); written != 128 || err != nil {
		t.Errorf("room for all: WriteTo = %d, %v", written, err)
	}
}

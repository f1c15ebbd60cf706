package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// build returns the bytes of the file that fill writes.
func build(t testing.TB, fill func(*Writer)) []byte {
	t.Helper()
	var w Writer
	fill(&w)
	var b bytes.Buffer
	n, err := w.WriteTo(&b)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(b.Len()) {
		t.Fatalf("WriteTo reports %d bytes, wrote %d", n, b.Len())
	}
	return b.Bytes()
}

func mustParse(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := parse("test.gguf", data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestOpenRefuses opens files that are wrong in one way each.
func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"version-1", `header: offset 4: version 1, whose counts have 32 bits, expected version 2 or 3: convert the model again`},
		{"big-endian", `header: offset 4: big-endian file of version 3, expected a little-endian one`},
		{"tensor-count-huge", `header: offset 8: 1152921504606846976 tensors, expected at most 6 in the 144 bytes left`},
		{"tensor-count-negative", `header: offset 8: 18446744073709551615 tensors, expected at most 6 in the 144 bytes left`},
		{"key-length-huge", `key 0: offset 24: key of 4611686018427387904 bytes, expected at most 65535`},
		{"array-count-huge", `key "x.arr": offset 90: 1073741824 elements, expected at most 0 in the 0 bytes left`},
		{"dimension-count-huge", `tensor "a.weight": offset 104: 2147483647 dimensions, expected at most 4`},
		{"element-count-wraps", `tensor "a.weight": offset 104: dimensions [4294967296 4294967296 8] make more than 2^63-1 elements`},
		{"dimension-negative", `tensor "a.weight": offset 104: dimension 0 is -8, expected 1 to 2^63-1`},
		{"offset-beyond-end", `tensor "a.weight": offset 88: 32 bytes at data offset 1048576 reach beyond the end of the file: it has 160 bytes and the data begins at 128; the file is truncated or damaged`},
		{"tensors-overlap", `tensor "b.weight": offset 128: data at offset 192 overlaps tensor "a.weight", which ends at offset 224`},
		{"key-twice", `key "x.y": offset 88: duplicate key, expected one; the first value is at offset 84`},
		{"alignment-zero", `key "general.alignment": offset 98: alignment 0, expected a power of two from 8 to 1048576`},
		{"alignment-24", `key "general.alignment": offset 98: alignment 24, expected a power of two from 8 to 1048576`},
		{"alignment-text", `key "general.alignment": offset 98: type string, expected a uint32`},
		{"type-removed", `tensor "a.weight": offset 116: tensor type 4 (Q4_2), which ggml has removed, expected a type in use`},
		{"value-type-unknown", `key "x.y": offset 80: unknown value type 13, expected 0 to 12`},
		{"truncated", `key 1: offset 69: file is truncated: 1 bytes left, expected 8 bytes of string length`},
		{"row-partial-block", `tensor "a.weight": offset 104: rows of 100 elements, expected a multiple of 256, the block of Q4_K`},
		{"odd-00001-of-00003", `key "split.count": offset 7800: 2 split files, expected 3 from the name of the file`},
	} {
		path := filepath.Join("testdata", test.file+".gguf")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := Open(path)
		runtime.ReadMemStats(&after)
		if err == nil {
			f.Close()
			t.Errorf("%s: accepted", test.file)
			continue
		}
		if diff := cmp.Diff(path+": "+test.want, err.Error()); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", test.file, diff)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n >= 1<<20 {
			t.Errorf("%s: refusing it allocates %d bytes", test.file, n)
		}
	}
}

func TestOpenUnmappable(t *testing.T) {
	for _, test := range []struct{ path, want string }{
		{filepath.Join("testdata", "empty.gguf"), "file is empty"},
		{"testdata", "is a directory"},
	} {
		if _, err := Open(test.path); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.path) {
			t.Errorf("Open(%s): error %v, want the path and %q", test.path, err, test.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent.gguf")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: error %v", err)
	}
}

// TestOpenAccepts opens files that are whole as far as this package goes, though
// some hold metadata that no model can be made of.
func TestOpenAccepts(t *testing.T) {
	for _, test := range []struct {
		file          string
		keys, tensors int
	}{
		{"minimal", 2, 1},
		{"architecture-number", 1, 1},
		{"model", 22, 11},
		{"model-heads-zero", 22, 11},
		{"model-blocks-huge", 22, 11},
		{"model-context-huge", 22, 11},
		{"model-token-types-short", 22, 11},
		{"model-no-tokens", 20, 11},
	} {
		path := filepath.Join("testdata", test.file+".gguf")
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Path() != path || f.Version() != 3 || f.Size() != info.Size() {
			t.Errorf("%s: path %s, version %d, size %d, want size %d", test.file, f.Path(), f.Version(), f.Size(), info.Size())
		}
		if len(f.Keys()) != test.keys || len(f.Tensors()) != test.tensors {
			t.Errorf("%s: %d keys, %d tensors, want %d, %d", test.file, len(f.Keys()), len(f.Tensors()), test.keys, test.tensors)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenMinimal(t *testing.T) {
	f, err := Open(filepath.Join("testdata", "minimal.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"general.architecture", "x.y"}, f.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	tensor, ok := f.Tensor("a.weight")
	if !ok {
		t.Fatal("no tensor a.weight")
	}
	var data []byte
	for i := range 8 {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i+1)))
	}
	want := &Tensor{Name: "a.weight", Type: TypeF32, Dims: []uint64{8}, Offset: 128, Data: data, infoOffset: 88}
	if diff := cmp.Diff(want, tensor, cmp.AllowUnexported(Tensor{})); diff != "" {
		t.Errorf("tensor (-want +got):\n%s", diff)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := f.Tensor("a.weight"); ok || tensor.Data != nil || len(f.Keys()) != 0 {
		t.Error("content is reachable after Close")
	}
	if err := f.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// patch returns data with b written at offset.
func patch(data []byte, offset int, b ...byte) []byte {
	data = bytes.Clone(data)
	copy(data[offset:], b)
	return data
}

func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// TestParseRefuses changes a good file in one place each.
func TestParseRefuses(t *testing.T) {
	good := build(t, func(w *Writer) {
		w.Set("b", true)               // key 24, type 33, value 37
		w.Set("l", []bool{true, true}) // key 38, type 47, element type 51, count 55, values 63
		w.Set("s", []string{"x", "y"}) // key 65, type 74, element type 78, count 82, strings 90, 99
		w.Set("t", "text")             // key 108, type 117, string 121
		w.Add("a", TypeF32, []uint64{8}, make([]byte, 32))
		w.Add("b", TypeF32, []uint64{2, 2}, make([]byte, 16))
		// a: name 133, count 142, dimension 146, type 154, offset 158
		// b: name 166, count 175, dimensions 179, 187, type 195, offset 199
	})
	mustParse(t, good)
	mustParse(t, patch(good, 4, u32(2)...)) // version 2 has the same layout

	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"no data", nil, `header: offset 0: file is truncated: 0 bytes left, expected 4 bytes of magic`},
		{"magic cut", good[:3], `header: offset 0: file is truncated: 3 bytes left, expected 4 bytes of magic`},
		{"other file", []byte("<!DOCTYPE html>\n<html>"), `header: offset 0: file begins with "<!DOCTYPE html>\n", expected "GGUF"`},
		{"version 0", patch(good, 4, u32(0)...), `header: offset 4: version 0, expected version 2 or 3`},
		{"version 4", patch(good, 4, u32(4)...), `header: offset 4: version 4, expected version 2 or 3`},
		{"key count", patch(good, 16, u64(1<<63)...), `header: offset 16: 9223372036854775808 keys, expected at most 20 in the 264 bytes left`},
		{"bool of 2", patch(good, 37, 2), `key "b": offset 37: bool of value 2, expected 0 or 1`},
		{"bool of 255 in array", patch(good, 64, 255), `key "l": offset 64: bool of value 255, expected 0 or 1`},
		{"nested array", patch(good, 51, u32(9)...), `key "l": offset 51: array of arrays, expected an array of scalars`},
		{"unknown element type", patch(good, 51, u32(13)...), `key "l": offset 51: unknown element type 13, expected 0 to 12`},
		{"string in array beyond end", patch(good, 99, u64(1000)...), `key "s": offset 107: file is truncated: 181 bytes left, expected 1000 bytes of string in an array`},
		{"string in array too long", patch(good, 99, u64(1<<20+1)...), `key "s": offset 99: string in an array of 1048577 bytes, expected at most 1048576`},
		{"string too long", patch(good, 121, u64(1<<26+1)...), `key "t": offset 121: string of 67108865 bytes, expected at most 67108864`},
		{"name too long", patch(good, 133, u64(1025)...), `tensor 0: offset 133: name of 1025 bytes, expected at most 1024`},
		{"tensor twice", patch(good, 174, 'a'), `tensor "a": offset 166: duplicate tensor, expected one; the first is at offset 133`},
		{"dimension zero", patch(good, 187, u64(0)...), `tensor "b": offset 175: dimension 1 is 0, expected 1 to 2^63-1`},
		{"too many bytes", patch(good, 187, u64(1<<61)...), `tensor "b": offset 175: dimensions [2 2305843009213693952] of F32 make more than 2^63-1 bytes`},
		{"unknown type", patch(good, 195, u32(43)...), `tensor "b": offset 195: unknown tensor type 43, expected a type in use`},
		{"unaligned", patch(good, 199, u64(33)...), `tensor "b": offset 166: data offset 33, expected a multiple of the alignment 32`},
		{"offset wraps", patch(good, 199, u64(1<<64-32)...), `tensor "b": offset 166: 16 bytes at data offset 18446744073709551584 reach beyond the end of the file: it has 288 bytes and the data begins at 224; the file is truncated or damaged`},
		{"data cut", good[:271-16], `tensor "a": offset 133: 32 bytes at data offset 0 reach beyond the end of the file: it has 255 bytes and the data begins at 224; the file is truncated or damaged`},
		{"control characters", patch(good, 32, 0x1b, 99), `key "\x1b": offset 33: unknown value type 99, expected 0 to 12`},
	}
	for _, test := range tests {
		_, err := parse("test.gguf", test.data)
		if err == nil {
			t.Errorf("%s: accepted", test.name)
			continue
		}
		if diff := cmp.Diff("test.gguf: "+test.want, err.Error()); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", test.name, diff)
		}
	}
	for n := range 256 + 16 { // what follows is padding
		if _, err := parse("test.gguf", good[:n:n]); err == nil {
			t.Errorf("accepted when cut to %d bytes", n)
		}
	}
	if _, err := parse("evil\n\x1b.gguf", nil); strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("error prints the path raw: %q", err)
	}
}

func TestAlignment(t *testing.T) {
	// The writer's alignment is fixed: a key of the same length stands in for it.
	file := func(alignment uint32) []byte {
		b := build(t, func(w *Writer) {
			w.Set("general.alignmenT", alignment)
			w.Add("a", TypeI8, []uint64{8}, []byte("contents"))
		})
		return bytes.Replace(b, []byte("alignmenT"), []byte("alignment"), 1)
	}
	for _, n := range []uint32{8, 16, 32} { // the descriptions end at byte 90
		f := mustParse(t, patch(append(file(n), "padding padding padding padding "...), (90+int(n)-1)/int(n)*int(n), []byte("12345678")...))
		if got := string(f.Tensors()[0].Data); got != "12345678" {
			t.Errorf("alignment %d: data %q", n, got)
		}
	}
	for _, n := range []uint32{0, 1, 4, 7, 33, 1<<20 + 1, 1 << 21, 1 << 31, math.MaxUint32} {
		if _, err := parse("test.gguf", file(n)); err == nil || !strings.Contains(err.Error(), "power of two") {
			t.Errorf("alignment %d: error %v", n, err)
		}
	}
}

func TestTypes(t *testing.T) {
	want := map[string][3]uint64{
		"F32": {0, 1, 4}, "F16": {1, 1, 2}, "BF16": {30, 1, 2}, "F64": {28, 1, 8},
		"I8": {24, 1, 1}, "I16": {25, 1, 2}, "I32": {26, 1, 4}, "I64": {27, 1, 8},
		"Q4_0": {2, 32, 18}, "Q4_1": {3, 32, 20}, "Q5_0": {6, 32, 22}, "Q5_1": {7, 32, 24}, "Q8_0": {8, 32, 34}, "Q8_1": {9, 32, 36},
		"Q2_K": {10, 256, 84}, "Q3_K": {11, 256, 110}, "Q4_K": {12, 256, 144}, "Q5_K": {13, 256, 176}, "Q6_K": {14, 256, 210}, "Q8_K": {15, 256, 292},
		"IQ2_XXS": {16, 256, 66}, "IQ2_XS": {17, 256, 74}, "IQ3_XXS": {18, 256, 98}, "IQ1_S": {19, 256, 50}, "IQ4_NL": {20, 32, 18},
		"IQ3_S": {21, 256, 110}, "IQ2_S": {22, 256, 82}, "IQ4_XS": {23, 256, 136}, "IQ1_M": {29, 256, 56},
		"TQ1_0": {34, 256, 54}, "TQ2_0": {35, 256, 66}, "MXFP4": {39, 32, 17}, "NVFP4": {40, 64, 36}, "Q1_0": {41, 128, 18}, "Q2_0": {42, 64, 18},
	}
	got := make(map[string][3]uint64)
	var removed []Type
	for id := range Type(1000) {
		if id.BlockElems() != 0 {
			got[id.String()] = [3]uint64{uint64(id), id.BlockElems(), id.BlockBytes()}
			continue
		}
		if id.BlockBytes() != 0 {
			t.Errorf("type %d: blocks of 0 elements and %d bytes", id, id.BlockBytes())
		}
		if !strings.HasPrefix(id.String(), "type(") {
			removed = append(removed, id)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("id, elements, bytes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Type{4, 5, 31, 32, 33, 36, 37, 38}, removed); diff != "" {
		t.Errorf("removed types (-want +got):\n%s", diff)
	}
	if got := Type(math.MaxUint32); got.String() != "type(4294967295)" || got.BlockElems() != 0 {
		t.Errorf("largest id: %s, %d", got, got.BlockElems())
	}
}

func TestTensorShape(t *testing.T) {
	f := mustParse(t, build(t, func(w *Writer) {
		w.Add("q", TypeQ4_K, []uint64{512, 3, 2, 5}, make([]byte, 2*144*30))
		w.Add("v", TypeBF16, []uint64{7}, make([]byte, 14))
	}))
	q, v := f.Tensors()[0], f.Tensors()[1]
	for _, test := range []struct {
		name      string
		got, want uint64
	}{
		{"q columns", q.Cols(), 512}, {"q rows", q.Rows(), 30}, {"q row bytes", q.RowBytes(), 288},
		{"v columns", v.Cols(), 7}, {"v rows", v.Rows(), 1}, {"v row bytes", v.RowBytes(), 14},
		{"v offset", v.Offset, q.Offset + 2*144*30},
	} {
		if test.got != test.want {
			t.Errorf("%s = %d, want %d", test.name, test.got, test.want)
		}
	}
	if cap(q.Data) != len(q.Data) {
		t.Error("the data of a tensor can be extended into its neighbour")
	}
}

// TestScalarTensor reads a tensor of no dimensions as one element.
func TestScalarTensor(t *testing.T) {
	b := build(t, func(w *Writer) { w.Add("s", TypeF32, []uint64{1}, []byte{1, 2, 3, 4}) })
	// Description: name 24, count 33, dimension 37, type 45, offset 49; data 64.
	b = append(b[:37], b[45:]...)
	b = patch(b, 33, u32(0)...)
	b = append(b[:49:49], append(make([]byte, 15), 1, 2, 3, 4)...)
	f := mustParse(t, b)
	want := &Tensor{Name: "s", Type: TypeF32, Dims: []uint64{1}, Offset: 64, Data: []byte{1, 2, 3, 4}, infoOffset: 24}
	if diff := cmp.Diff(want, f.Tensors()[0], cmp.AllowUnexported(Tensor{})); diff != "" {
		t.Errorf("tensor (-want +got):\n%s", diff)
	}
}

// TestParseMany gives files of more keys, tensors and elements than any model has. They are refused before any is read.
func TestParseMany(t *testing.T) {
	header := func(tensors, keys uint64) []byte {
		return append(append(append([]byte(magic), u32(3)...), u64(tensors)...), u64(keys)...)
	}
	var keys []byte // of three bytes
	for i := range uint32(2_800_000) {
		keys = append(append(keys, u64(3)...), byte(i), byte(i>>8), byte(i>>16))
		keys = append(append(keys, u32(uint32(ValueUint8))...), 0)
	}
	array := append(append(append(u64(1), 'a'), u32(uint32(ValueArray))...), u32(uint32(ValueUint8))...)
	array = append(append(array, u64(1<<24+1)...), make([]byte, 1<<24+1)...)
	for _, test := range []struct {
		data []byte
		want string
	}{
		{append(header(0, 2_800_000), keys...), "header: offset 16: 2800000 keys, expected at most 65536"},
		{append(header(1<<17+1, 0), make([]byte, 4<<20)...), "header: offset 8: 131073 tensors, expected at most 131072"},
		{append(header(0, 1), array...), `key "a": offset 41: 16777217 elements, expected at most 16777216`},
	} {
		start := time.Now()
		_, err := parse("test.gguf", test.data)
		if took := time.Since(start); err == nil || err.Error() != "test.gguf: "+test.want || took > 100*time.Millisecond {
			t.Errorf("error %v after %v, want %s", err, took, test.want)
		}
	}
	mustParse(t, append(header(0, maxKeys), keys[:16*maxKeys]...))
}

// TestOpenManyTokens holds the reader to its promise that opening a file costs no
// allocation for each string in it.
func TestOpenManyTokens(t *testing.T) {
	data := manyTokens(t, 250_000)
	if n := testing.AllocsPerRun(3, func() { mustParse(t, data) }); n > 50 {
		t.Errorf("parsing allocates %v times", n)
	}
	f := mustParse(t, data)
	if n := testing.AllocsPerRun(3, func() { f.Strings("tokens") }); n > 10 {
		t.Errorf("reading the strings allocates %v times", n)
	}
}

func manyTokens(t testing.TB, n int) []byte {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = strings.Repeat("x", i%11)
	}
	return build(t, func(w *Writer) { w.Set("tokens", tokens) })
}

func BenchmarkParse(b *testing.B) {
	data := manyTokens(b, 250_000)
	for b.Loop() {
		mustParse(b, data)
	}
}

func BenchmarkStrings(b *testing.B) {
	f := mustParse(b, manyTokens(b, 250_000))
	for b.Loop() {
		f.Strings("tokens")
	}
}

func FuzzOpen(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.gguf"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no test files: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 1000 { // larger ones only slow the fuzzer down
			f.Add(data)
		}
	}
	f.Add(build(f, everyValue))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parse("fuzz.gguf", data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b") || !strings.HasPrefix(err.Error(), "fuzz.gguf: ") {
				t.Errorf("error is not one clean line: %q", err)
			}
			return
		}
		for _, key := range file.Keys() {
			v, ok := file.Value(key)
			if !ok {
				t.Errorf("key %q has no value", key)
			}
			if s := v.String(); strings.ContainsAny(s, "\n\x1b") || len(s) > 16*1024 {
				t.Errorf("key %q: value is not displayed as one short clean line: %q", key, s)
			}
			file.String(key)
			file.Uint(key)
			file.Float(key)
			file.Bool(key)
			file.Strings(key)
			file.Floats(key)
			file.Ints(key)
		}
		for _, tensor := range file.Tensors() {
			if got, want := uint64(len(tensor.Data)), tensor.Rows()*tensor.RowBytes(); got != want {
				t.Errorf("tensor %q: %d bytes of data, want %d", tensor.Name, got, want)
			}
			if !bytes.Equal(tensor.Data, data[tensor.Offset:][:len(tensor.Data)]) {
				t.Errorf("tensor %q: data is not at its offset", tensor.Name)
			}
		}
		if _, err := file.shardCount(); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error is not one line: %q", err)
		}
	})
}

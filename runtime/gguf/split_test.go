package gguf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shardFile makes a file of a split model with the given metadata and one tensor of
// eight bytes, all equal to fill.
func shardFile(t *testing.T, no, count, total any, name string, fill byte) []byte {
	return build(t, func(w *Writer) {
		for key, v := range map[string]any{splitNo: no, splitCount: count, splitTensorCount: total} {
			if v != nil {
				w.Set(key, v)
			}
		}
		w.Add(name, TypeI8, []uint64{8}, []byte(strings.Repeat(string(rune(fill)), 8)))
	})
}

func TestOpenSplit(t *testing.T) {
	shard := func(no uint16) []byte {
		return shardFile(t, no, uint16(3), int32(3), string(rune('a'+no)), byte('0'+no))
	}
	good := map[string][]byte{
		"m-00001-of-00003.gguf": shard(0),
		"m-00002-of-00003.gguf": shard(1),
		"m-00003-of-00003.gguf": shard(2),
	}
	for _, test := range []struct {
		name   string
		open   string
		change map[string][]byte // files that differ from the good ones; nil: absent
		want   string            // part of the error; "": opens
	}{
		{name: "all there"},
		{name: "one missing", change: map[string][]byte{"m-00003-of-00003.gguf": nil},
			want: "split file 3 of 3: "},
		{name: "second opened", open: "m-00002-of-00003.gguf",
			want: "split file 2 of 3, expected the first: open m-00001-of-00003.gguf"},
		{name: "name without number", open: "m.gguf", change: map[string][]byte{"m.gguf": shard(0)},
			want: "one of 3 split files, expected a name that ends in -00001-of-00003.gguf"},
		{name: "count differs from name", open: "m-00001-of-00002.gguf", change: map[string][]byte{"m-00001-of-00002.gguf": shard(0)},
			want: "3 split files, expected 2 from the name of the file"},
		{name: "no count under a split name", change: map[string][]byte{"m-00001-of-00003.gguf": shardFile(t, uint16(0), nil, nil, "a", 0)},
			want: `key "split.count": missing, expected 3 from the name of the file`},
		{name: "count of the wrong type", change: map[string][]byte{"m-00001-of-00003.gguf": shardFile(t, uint16(0), "3", int32(3), "a", 0)},
			want: "type string, expected an integer"},
		{name: "no total", change: map[string][]byte{"m-00001-of-00003.gguf": shardFile(t, uint16(0), uint16(3), nil, "a", 0)},
			want: `key "split.tensors.count": missing, expected the number of tensors in 3 files`},
		{name: "negative total", change: map[string][]byte{"m-00001-of-00003.gguf": shardFile(t, uint16(0), uint16(3), int32(-3), "a", 0)},
			want: "-3, expected an integer that is not negative"},
		{name: "wrong total", change: map[string][]byte{"m-00001-of-00003.gguf": shardFile(t, uint16(0), uint16(3), int32(4), "a", 0)},
			want: "4 tensors, but the 3 files hold 3"},
		{name: "first has another number", change: map[string][]byte{"m-00001-of-00003.gguf": shard(1)},
			want: "1, expected 0 from the name of the file"},
		{name: "second has another number", change: map[string][]byte{"m-00002-of-00003.gguf": shard(2)},
			want: "2, expected 1 from the name of the file"},
		{name: "second has no number", change: map[string][]byte{"m-00002-of-00003.gguf": shardFile(t, nil, uint16(3), int32(3), "b", 0)},
			want: `key "split.no": missing, expected 1`},
		{name: "second of another count", change: map[string][]byte{"m-00002-of-00003.gguf": shardFile(t, uint16(1), uint16(4), int32(3), "b", 0)},
			want: "4, expected 3 from the name of the file"},
		{name: "tensor in two files", change: map[string][]byte{"m-00003-of-00003.gguf": shardFile(t, uint16(2), uint16(3), int32(3), "a", 0)},
			want: `tensor "a": offset 106: duplicate tensor, expected one; the first is in split file 1`},
		{name: "second damaged", change: map[string][]byte{"m-00002-of-00003.gguf": []byte("GGUF")},
			want: "m-00002-of-00003.gguf: header: offset 4: file is truncated"},
		{name: "split of one", open: "m-00001-of-00001.gguf", change: map[string][]byte{"m-00001-of-00001.gguf": shardFile(t, uint16(0), uint16(1), int32(1), "a", 0)}},
		{name: "count of zero", open: "m.gguf", change: map[string][]byte{"m.gguf": shardFile(t, uint16(0), uint16(0), int32(1), "a", 0)}},
	} {
		dir := t.TempDir()
		for _, files := range []map[string][]byte{good, test.change} {
			for name, data := range files {
				path := filepath.Join(dir, name)
				err := os.WriteFile(path, data, 0o600)
				if data == nil {
					err = os.Remove(path)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if test.open == "" {
			test.open = "m-00001-of-00003.gguf"
		}
		f, err := Open(filepath.Join(dir, test.open))
		if err == nil {
			f.Close()
		}
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
	}
}

func TestOpenSplitContent(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "m-00001-of-00002.gguf")
	size := int64(0)
	for no, path := range []string{first, filepath.Join(dir, "m-00002-of-00002.gguf")} {
		data := shardFile(t, uint16(no), uint16(2), int32(2), string(rune('a'+no)), byte('0'+no))
		size += int64(len(data))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open(first)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Size() != size || f.Path() != first {
		t.Errorf("size %d of %s, want %d of %s", f.Size(), f.Path(), size, first)
	}
	type place struct {
		Name, Data string
		Shard      int
	}
	var got []place
	for _, tensor := range f.Tensors() {
		got = append(got, place{tensor.Name, string(tensor.Data), tensor.Shard})
	}
	want := []place{{"a", "00000000", 0}, {"b", "11111111", 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
	if b, ok := f.Tensor("b"); !ok || b.Shard != 1 {
		t.Errorf("Tensor(b) = %v, %v", b, ok)
	}
}

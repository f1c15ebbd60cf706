package kernel

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestEntryText(t *testing.T) {
	files := fstest.MapFS{"ptx/a__any__sm_86.ptx": {Data: []byte("first")}, "spirv/b__any__vk.spv": {Data: []byte("second")}}
	for file, want := range map[string]string{"ptx/a__any__sm_86.ptx": "first", "spirv/b__any__vk.spv": "second"} {
		e := Entry{File: file}
		if got, err := e.Text(files); err != nil || got != want || !strings.HasPrefix(file, e.Target()+"/") {
			t.Errorf("%s of %s: %q, %v", file, e.Target(), got, err)
		}
	}
	if _, err := (Entry{File: "avx/d__any__avx2.s"}).Text(files); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that isn't there: %v", err)
	}
}

package mmap

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpen(t *testing.T) {
	page := os.Getpagesize()
	for _, size := range []int{1, page - 1, page, page + 1, 3*page + 17} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i * 7)
		}
		m, err := Open(write(t, want))
		if err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		if !bytes.Equal(m.Bytes(), want) {
			t.Errorf("size %d: content differs from the file", size)
		}
		for _, advice := range []Advice{Sequential, WillNeed, DontNeed} {
			for _, r := range [][2]int{{0, 0}, {0, size}, {size, 0}, {size / 2, size - size/2}, {size - 1, 1}} {
				if err := m.Advise(advice, r[0], r[1]); err != nil {
					t.Errorf("size %d: advice %d for %v: %v", size, advice, r, err)
				}
			}
		}
		if !bytes.Equal(m.Bytes(), want) {
			t.Errorf("size %d: content differs after advice", size)
		}
		for range 2 {
			if err := m.Close(); err != nil {
				t.Errorf("size %d: close: %v", size, err)
			}
		}
		if m.Bytes() != nil {
			t.Errorf("size %d: bytes after close", size)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name, path string
		want       error
	}{
		{"missing file", filepath.Join(dir, "absent"), fs.ErrNotExist},
		{"directory", dir, ErrDirectory},
		{"empty file", write(t, nil), ErrEmpty},
		{"device", os.DevNull, ErrNotRegular},
	} {
		m, err := Open(test.path)
		if m != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: Open = %v, %v, want error %v", test.name, m, err, test.want)
			continue
		}
		if !bytes.Contains([]byte(err.Error()), []byte(test.path)) {
			t.Errorf("%s: error %q does not name the path", test.name, err)
		}
	}
}

func TestAdviseRange(t *testing.T) {
	m, err := Open(write(t, make([]byte, 100)))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const maxInt = int(^uint(0) >> 1)
	for _, r := range [][2]int{{-1, 1}, {0, -1}, {0, 101}, {101, 0}, {100, 1}, {1, maxInt}, {maxInt, maxInt}} {
		if err := m.Advise(WillNeed, r[0], r[1]); err == nil {
			t.Errorf("offset %d, %d bytes: no error", r[0], r[1])
		}
	}
}

func TestPageRange(t *testing.T) {
	const page, size = 4096, 3*4096 + 100
	for _, test := range []struct {
		advice     Advice
		start, end int
		wantStart  int
		wantEnd    int
	}{
		{WillNeed, 5000, 9000, 4096, 9000},
		{Sequential, 4096, 8192, 4096, 8192},
		{DontNeed, 5000, 9000, 8192, 8192},
		{DontNeed, 4096, 8192, 4096, 8192},
		{DontNeed, 1, 12288, 4096, 12288},
		{DontNeed, 5000, size, 8192, size},
		{DontNeed, 5000, size - 1, 8192, 12288},
	} {
		start, end := pageRange(test.advice, test.start, test.end, size, page)
		if start != test.wantStart || end != test.wantEnd {
			t.Errorf("advice %d for [%d, %d): [%d, %d), want [%d, %d)", test.advice, test.start, test.end, start, end, test.wantStart, test.wantEnd)
		}
	}
}

// Package mmap maps files into memory for reading.
//
// The pages of a map belong to the operating system's page cache: they are read
// when they are touched, shared between processes, and dropped under memory
// pressure. A file must not be truncated while it is mapped: touching a page
// beyond its new end is a fault no Go program can recover from.
package mmap

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
)

// Errors found, wrapped in an [fs.PathError], when a path can't be mapped.
var (
	ErrDirectory  = errors.New("is a directory, expected a file")
	ErrNotRegular = errors.New("is not a regular file")
	ErrEmpty      = errors.New("file is empty")
	ErrTooLarge   = errors.New("file is larger than the address space")
)

// Map is a file mapped read-only. Writing to its bytes is a fault.
//
// Its methods may be called from several goroutines, except for Close, which
// must come after all other use.
type Map struct {
	data []byte
}

// Open maps the whole file at path. An empty file can't be mapped and is an
// error, as are a directory and anything else that isn't a regular file.
func Open(path string) (*Map, error) {
	// Looking at the path first keeps the open below from waiting on a pipe.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := mappable(info); err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: path, Err: err}
	}

	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the map outlives the descriptor

	info, err = f.Stat()
	if err != nil {
		return nil, err
	}
	if err := mappable(info); err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: path, Err: err}
	}
	data, err := mapFile(f, int(info.Size()))
	if err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: path, Err: err}
	}
	return &Map{data: data}, nil
}

// mappable reports why a file can't be mapped.
func mappable(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return ErrDirectory
	case !info.Mode().IsRegular():
		return ErrNotRegular
	case info.Size() == 0:
		return ErrEmpty
	case info.Size() > math.MaxInt:
		return ErrTooLarge
	}
	return nil
}

// Bytes returns the content of the file. The slice is valid until Close and must
// not be written to. It is nil after Close.
func (m *Map) Bytes() []byte { return m.data }

// Close removes the map. Every slice of its bytes becomes invalid. Closing it
// again does nothing.
func (m *Map) Close() error {
	data := m.data
	if data == nil {
		return nil
	}
	m.data = nil
	return unmap(data)
}

// Advice tells the operating system how a range of bytes is going to be used.
// It never changes what is read.
type Advice int

const (
	// Sequential announces one pass from the first byte to the last.
	Sequential Advice = iota
	// WillNeed asks for the range to be read ahead of its use.
	WillNeed
	// DontNeed says that the range isn't going to be used soon. Its pages may be
	// dropped, and are read again when they are touched.
	DontNeed
)

// Advise gives advice about the n bytes at offset. Sequential and WillNeed extend
// to the pages that hold the range; DontNeed shrinks to the pages that lie wholly
// inside it, so that it costs no neighbour anything. An operating system without
// such advice (Windows) ignores it. A range outside the file is an error.
func (m *Map) Advise(advice Advice, offset, n int) error {
	if offset < 0 || n < 0 || offset > len(m.data) || n > len(m.data)-offset {
		return fmt.Errorf("mmap: advice for %d bytes at offset %d, expected a range inside the %d bytes mapped", n, offset, len(m.data))
	}
	start, end := pageRange(advice, offset, offset+n, len(m.data), os.Getpagesize())
	if start >= end {
		return nil
	}
	return advise(m.data[start:end], advice)
}

// pageRange rounds the range [start, end) of a map of size bytes to pages.
func pageRange(advice Advice, start, end, size, page int) (int, int) {
	if advice != DontNeed {
		return start - start%page, end // the kernel rounds the length up
	}
	if rest := start % page; rest != 0 {
		start += page - rest
	}
	if end < size { // the file's last page holds nothing but the file's end
		end -= end % page
	}
	return start, end
}

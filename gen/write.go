package gen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the generated files below dir by those of the set: first every file that carries the generator's mark goes.
// A file without the mark is left alone, and an error if the set has one of its name.
func (s *Set) Write(dir string) error {
	if err := clean(dir); err != nil {
		return err
	}
	for _, f := range s.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s is in the way: it isn't marked as generated", path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return fmt.Errorf("write generated files: %w", err)
		}
		if err := writeFile(path, f.Text); err != nil {
			return fmt.Errorf("write generated files: %w", err)
		}
	}
	return nil
}

// writeFile writes under a temporary name and renames, so that no file is ever half there.
func writeFile(path string, text []byte) (err error) {
	t, err := os.CreateTemp(filepath.Dir(path), ".swizzlegen-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(t.Name())
		}
	}()
	if _, err := t.Write(text); err != nil {
		return errors.Join(err, t.Close())
	}
	if err := errors.Join(t.Chmod(0o644), t.Close()); err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}

// clean removes the files below dir that carry the mark.
func clean(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		ours, err := marked(path)
		if err != nil || !ours {
			return err
		}
		return os.Remove(path)
	})
	if err != nil {
		return fmt.Errorf("remove generated files: %w", err)
	}
	return nil
}

// marked reports whether the file's first bytes hold the mark.
func marked(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 1024) // a SPIR-V module names its capabilities and inputs first
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return bytes.Contains(head[:n], []byte(marker)), nil
}

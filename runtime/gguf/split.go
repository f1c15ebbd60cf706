package gguf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/swizzle-rt/swizzle/runtime/mmap"
)

// The metadata of a split model, as llama.cpp's gguf-split writes it.
const (
	splitNo          = "split.no"            // index of this file, from 0
	splitCount       = "split.count"         // number of files
	splitTensorCount = "split.tensors.count" // number of tensors in all files
)

// shardName matches the name of one file of a split model: prefix, number from 1,
// count.
var shardName = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})\.gguf$`)

// openShards opens the other files of a split model, if f is the first of one.
func (f *File) openShards() error {
	count, err := f.shardCount()
	if err != nil || count == 1 {
		return err
	}
	total, ok, err := f.Uint(splitTensorCount)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s: key %q: missing, expected the number of tensors in %d files", printable(f.path), splitTensorCount, count)
	}
	dir, base := filepath.Split(f.path)
	prefix := shardName.FindStringSubmatch(base)[1]
	for i := 1; i < count; i++ {
		if err := f.openShard(i, count, fmt.Sprintf("%s%s-%05d-of-%05d.gguf", dir, prefix, i+1, count)); err != nil {
			return err
		}
	}
	if uint64(len(f.tensors)) != total {
		return f.errorf(splitTensorCount, f.values[splitTensorCount], "%d tensors, but the %d files hold %d", total, count, len(f.tensors))
	}
	return nil
}

// shardCount returns the number of files of the model, from 1, after checking that
// the metadata and the name of the file agree on it and that f is the first.
func (f *File) shardCount() (int, error) {
	number, named := 1, 1
	match := shardName.FindStringSubmatch(filepath.Base(f.path))
	if match != nil {
		// Five digits can't fail to convert.
		number, _ = strconv.Atoi(match[2])
		named, _ = strconv.Atoi(match[3])
	}
	count, ok, err := f.Uint(splitCount)
	if err != nil {
		return 0, err
	}
	value := f.values[splitCount]
	switch {
	case !ok && named > 1:
		return 0, fmt.Errorf("%s: key %q: missing, expected %d from the name of the file", printable(f.path), splitCount, named)
	case count <= 1 && named <= 1:
		return 1, nil
	case match == nil:
		return 0, f.errorf(splitCount, value, "one of %d split files, expected a name that ends in -00001-of-%05d.gguf", count, count)
	case count != uint64(named):
		return 0, f.errorf(splitCount, value, "%d split files, expected %d from the name of the file", count, named)
	case number != 1:
		return 0, f.errorf(splitCount, value, "split file %d of %d, expected the first: open %s-%05d-of-%05d.gguf", number, count, printable(match[1]), 1, named)
	}
	return named, f.checkShard(0, named)
}

// checkShard checks that f describes itself as the shard at an index.
func (f *File) checkShard(index, count int) error {
	for _, want := range []struct {
		key   string
		value int
	}{{splitNo, index}, {splitCount, count}} {
		n, ok, err := f.Uint(want.key)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s: key %q: missing, expected %d", printable(f.path), want.key, want.value)
		}
		if n != uint64(want.value) {
			return f.errorf(want.key, f.values[want.key], "%d, expected %d from the name of the file", n, want.value)
		}
	}
	return nil
}

// openShard opens one of the later files of a split model and adds its tensors.
func (f *File) openShard(index, count int, path string) error {
	m, err := mmap.Open(path)
	if err != nil {
		return fmt.Errorf("%s: split file %d of %d: %w", printable(f.path), index+1, count, err)
	}
	f.maps = append(f.maps, m)
	shard, err := parse(path, m.Bytes())
	if err != nil {
		return err
	}
	if err := shard.checkShard(index, count); err != nil {
		return err
	}
	for _, t := range shard.tensors {
		if first, ok := f.byName[t.Name]; ok {
			return errorAt(path, "tensor", t.Name, t.infoOffset, "duplicate tensor, expected one; the first is in split file %d", first.Shard+1)
		}
		t.Shard = index
		f.tensors = append(f.tensors, t)
		f.byName[t.Name] = t
	}
	f.size += shard.size
	return nil
}

package model

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
)

// ErrContextFull means that the tokens don't fit into the context.
var ErrContextFull = errors.New("the context is full")

// PageTokens is the number of positions in a page of the cache: a segment of attention.
const PageTokens = 256

// Cache holds the pages of keys and values of all layers. A page has the same number in every layer. Memory is reserved for
// all pages and taken as they are used.
type Cache struct {
	pages   int
	free    []int32
	keyPage int // bytes of a page of one layer's keys
	valPage int // of its values, whose rows are multiples of 16 elements (see op kv_store)
	keys    []*cpu.Buffer
	values  []*cpu.Buffer
	used    []bool // pages that have been used before and must be zeroed
}

// newCache reserves pages for so many tokens; elem is the size of an element.
func newCache(c Config, tokens, elem int) (*Cache, error) {
	row := PageTokens * c.KVHeads * elem
	k := &Cache{pages: (tokens + PageTokens - 1) / PageTokens, keyPage: row * c.HeadDim, valPage: row * ((c.HeadDim + 15) &^ 15)}
	k.used = make([]bool, k.pages)
	for p := k.pages - 1; p >= 0; p-- {
		k.free = append(k.free, int32(p))
	}
	for _, l := range c.Layers {
		if l.Conv {
			k.keys, k.values = append(k.keys, &cpu.Buffer{}), append(k.values, &cpu.Buffer{})
			continue
		}
		for _, part := range []struct {
			list *[]*cpu.Buffer
			page int
		}{{&k.keys, k.keyPage}, {&k.values, k.valPage}} {
			b, err := cpu.Reserve(k.pages * part.page)
			if err != nil {
				k.close()
				return nil, fmt.Errorf("cache of %d tokens: %w", tokens, err)
			}
			*part.list = append(*part.list, b)
		}
	}
	return k, nil
}

func (k *Cache) close() {
	for _, list := range [][]*cpu.Buffer{k.keys, k.values} {
		for _, b := range list {
			_ = b.Free() // nothing to do about it
		}
	}
}

func (k *Cache) layer(l int) (keys, values unsafe.Pointer) {
	return pointer(k.keys[l].Bytes()), pointer(k.values[l].Bytes())
}

// alloc takes a zeroed page.
func (k *Cache) alloc() (int32, error) {
	if len(k.free) == 0 {
		return 0, fmt.Errorf("%w: all %d pages of %d tokens are in use", ErrContextFull, k.pages, PageTokens)
	}
	p := k.free[len(k.free)-1]
	k.free = k.free[:len(k.free)-1]
	if k.used[p] {
		for l := range k.keys {
			if len(k.keys[l].Bytes()) == 0 {
				continue // a layer without attention
			}
			clear(k.keys[l].Bytes()[int(p)*k.keyPage:][:k.keyPage])
			clear(k.values[l].Bytes()[int(p)*k.valPage:][:k.valPage])
		}
	}
	k.used[p] = true
	return p, nil
}

func (k *Cache) release(pages []int32) { k.free = append(k.free, pages...) }

// Sequence is a run of tokens whose keys and values are in the cache.
type Sequence struct {
	cache *Cache
	pages []int32 // page of each 256 positions
	n     int
	state [][]float32 // of layers with a convolution: its last inputs; nil for models without
}

// Len returns the number of tokens in the cache.
func (s *Sequence) Len() int { return s.n }

// Truncate keeps the first n tokens, or all if there are fewer, and gives back pages that hold none of them. A recurrent
// sequence keeps all or none.
func (s *Sequence) Truncate(n int) {
	if s.state != nil && n < s.n {
		s.Reset()
		return
	}
	s.n = min(s.n, n)
	keep := (s.n + PageTokens - 1) / PageTokens
	s.cache.release(s.pages[keep:])
	s.pages = s.pages[:keep]
}

// Reset empties the sequence.
func (s *Sequence) Reset() {
	s.n = 0
	s.cache.release(s.pages)
	s.pages = s.pages[:0]
	for _, x := range s.state {
		clear(x)
	}
}

// grow takes pages for positions below n.
func (s *Sequence) grow(n int) error {
	for len(s.pages)*PageTokens < n {
		p, err := s.cache.alloc()
		if err != nil {
			return err
		}
		s.pages = append(s.pages, p)
	}
	return nil
}

// floats sees a buffer as float32.
func floats(b *cpu.Buffer) []float32 {
	d := b.Bytes()
	return unsafe.Slice((*float32)(pointer(d)), len(d)/4)
}

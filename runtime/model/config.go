// Package model turns a model file into weights on a device and computes its logits: one file per architecture.
package model

import (
	"errors"
	"fmt"
	"strings"

	"github.com/swizzle-rt/swizzle/runtime/gguf"
)

// ErrUnsupported means that the model needs something this version doesn't have.
var ErrUnsupported = errors.New("unsupported")

// Config is what a decoder's layers are made of, read from the file's metadata.
type Config struct {
	Arch         string
	Name         string
	Layers       int
	Width        int // elements of the residual stream
	FF           int // elements of the feed-forward layer
	Heads        int
	KVHeads      int
	HeadDim      int
	Rot          int // elements of a head that turn
	RopeBase     float64
	RopeScale    float64 // positions are divided by it
	Eps          float32
	Vocab        int
	TrainContext int
}

// Architectures lists those supported.
func Architectures() []string { return []string{"llama"} }

// limits of plausible models; they keep products of dimensions far from overflow.
const (
	maxLayers = 1024
	maxDim    = 1 << 20
	// maxHead is a segment of a contraction: attention sums a head in one.
	maxHead = 256
)

// ReadConfig reads and checks the metadata of a model of a supported architecture.
func ReadConfig(f *gguf.File) (Config, error) {
	arch, ok, err := f.String("general.architecture")
	if err != nil {
		return Config{}, err
	}
	if !ok {
		return Config{}, fmt.Errorf("%s: general.architecture is missing: this is no model", f.Path())
	}
	if arch != "llama" {
		return Config{}, fmt.Errorf("%s: general.architecture: %w architecture %q; supported: %s", f.Path(), ErrUnsupported, arch, strings.Join(Architectures(), ", "))
	}
	r := reader{f: f, arch: arch}
	c := Config{Arch: arch, RopeScale: 1}
	c.Name, _, _ = f.String("general.name")
	c.Layers = r.dim("block_count", maxLayers, 0)
	c.Width = r.dim("embedding_length", maxDim, 0)
	c.FF = r.dim("feed_forward_length", maxDim, 0)
	c.Heads = r.dim("attention.head_count", 4096, 0)
	c.KVHeads = r.dim("attention.head_count_kv", 4096, c.Heads)
	c.TrainContext = r.dim("context_length", 1<<32-1, 0)
	c.Eps = float32(r.float("attention.layer_norm_rms_epsilon", 0))
	c.RopeBase = r.float("rope.freq_base", 10000)
	if r.err != nil {
		return Config{}, r.err
	}
	if c.Heads%c.KVHeads != 0 {
		return Config{}, r.wrong("attention.head_count", "%d heads are no multiple of the %d key heads", c.Heads, c.KVHeads)
	}
	if c.Width%c.Heads != 0 {
		r.need = "embedding_length is no multiple of it"
	}
	c.HeadDim = r.dim("attention.key_length", maxHead, c.Width/c.Heads)
	if v := r.dim("attention.value_length", maxHead, c.HeadDim); r.err == nil && v != c.HeadDim {
		return Config{}, r.wrong("attention.value_length", "%d differs from the key length %d: %w", v, c.HeadDim, ErrUnsupported)
	}
	c.Rot = r.dim("rope.dimension_count", maxHead, c.HeadDim)
	if kind, ok, err := f.String(arch + ".rope.scaling.type"); err != nil {
		return Config{}, err
	} else if ok && kind != "none" {
		if kind != "linear" {
			return Config{}, r.wrong("rope.scaling.type", "%w scaling %q; supported: none, linear", ErrUnsupported, kind)
		}
		c.RopeScale = r.float("rope.scaling.factor", 1)
	}
	if e, ok, _ := f.Uint(arch + ".expert_count"); ok && e > 0 {
		return Config{}, r.wrong("expert_count", "%w: mixture of %d experts", ErrUnsupported, e)
	}
	if r.err != nil {
		return Config{}, r.err
	}
	switch {
	case c.HeadDim > maxHead:
		return Config{}, r.wrong("embedding_length", "heads of %d elements: %w, at most %d", c.HeadDim, ErrUnsupported, maxHead)
	case c.Rot > c.HeadDim || c.Rot%2 != 0:
		return Config{}, r.wrong("rope.dimension_count", "%d of a head of %d elements", c.Rot, c.HeadDim)
	case !(c.Eps > 0 && c.Eps < 1):
		return Config{}, r.wrong("attention.layer_norm_rms_epsilon", "%g is not between 0 and 1", c.Eps)
	case !(c.RopeBase > 0 && c.RopeBase < 1e12):
		return Config{}, r.wrong("rope.freq_base", "%g is not between 0 and 1e12", c.RopeBase)
	case !(c.RopeScale > 0 && c.RopeScale < 1e6):
		return Config{}, r.wrong("rope.scaling.factor", "%g is not between 0 and 1e6", c.RopeScale)
	}
	return c, nil
}

// reader reads keys of the architecture and keeps the first error.
type reader struct {
	f    *gguf.File
	arch string
	need string // why the default can't serve
	err  error
}

func (r *reader) wrong(key, format string, args ...any) error {
	return fmt.Errorf("%s: %s.%s: "+format, append([]any{r.f.Path(), r.arch, key}, args...)...)
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// dim reads a size between 1 and most; 0 as the default means that the key is required.
func (r *reader) dim(key string, most uint64, otherwise int) int {
	v, ok, err := r.f.Uint(r.arch + "." + key)
	switch {
	case err != nil:
		r.fail(err)
	case !ok && otherwise == 0:
		r.fail(r.wrong(key, "the key is missing"))
	case !ok && r.need != "":
		r.fail(r.wrong(key, "the key is missing and %s", r.need))
	case !ok:
		return otherwise
	case v < 1 || v > most:
		r.fail(r.wrong(key, "%d is not between 1 and %d", v, most))
	default:
		return int(v)
	}
	return 1
}

func (r *reader) float(key string, otherwise float64) float64 {
	v, ok, err := r.f.Float(r.arch + "." + key)
	switch {
	case err != nil:
		r.fail(err)
	case !ok && otherwise == 0:
		r.fail(r.wrong(key, "the key is missing"))
	case !ok:
		return otherwise
	}
	return v
}

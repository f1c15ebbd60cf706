// Package model turns a model file into weights on a device and computes its logits. An architecture is one file, which
// describes its layers; decoder.go runs them.
package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swizzle-rt/swizzle/runtime/gguf"
)

// ErrUnsupported means that the model needs something this version doesn't have.
var ErrUnsupported = errors.New("unsupported")

// Config describes a decoder, read from the file's metadata.
type Config struct {
	Arch         string
	Name         string
	Width        int // elements of the residual stream
	FF           int // elements of the feed-forward layer
	Heads        int
	KVHeads      int // of layers with attention
	HeadDim      int
	Rot          int // elements of a head that turn
	Eps          float32
	Vocab        int
	TrainContext int

	Neighbours bool    // rotary embedding turns pairs (2i, 2i+1), else (i, i + Rot/2)
	QKNorm     bool    // heads of queries and keys are normalised
	PostNorms  bool    // the results of attention and feed-forward are normalised before they are added
	EmbedScale float32 // multiplies token embeddings
	Activation string  // of the feed-forward gate: silu or gelu
	OutputNorm string  // tensor of the last norm
	Taps       int     // of short convolutions

	Layers []LayerConfig
}

// LayerConfig is what differs between layers.
type LayerConfig struct {
	Conv   bool // a short convolution takes the place of attention
	Window int  // most keys that a query sees, 0 for all
	Rope   Rope // unused with Conv
}

// Rope says how fast the pairs of a head turn: pair i by position / Scale · Base^(−2i/Rot).
type Rope struct{ Base, Scale float64 }

// architecture reads what its family of models has beyond the common keys.
type architecture func(r *reader, c *Config)

// architectures by the value of general.architecture.
var architectures = map[string]architecture{
	"gemma3": gemma3,
	"lfm2":   lfm2,
	"llama":  llama,
	"qwen3":  qwen3,
}

// Architectures lists those supported.
func Architectures() []string {
	var names []string
	for n := range architectures {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

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
	read, ok := architectures[arch]
	if !ok {
		return Config{}, fmt.Errorf("%s: general.architecture: %w architecture %q; supported: %s", f.Path(), ErrUnsupported, arch, strings.Join(Architectures(), ", "))
	}
	r := &reader{f: f, arch: arch}
	c := Config{Arch: arch, EmbedScale: 1, Activation: "silu", OutputNorm: "output_norm.weight"}
	c.Name, _, _ = f.String("general.name")
	layers := r.dim("block_count", maxLayers, 0)
	c.Width = r.dim("embedding_length", maxDim, 0)
	c.FF = r.dim("feed_forward_length", maxDim, 0)
	c.Heads = r.dim("attention.head_count", 4096, 0)
	c.TrainContext = r.dim("context_length", 1<<32-1, 0)
	c.Eps = float32(r.float("attention.layer_norm_rms_epsilon", 0))
	if r.err != nil {
		return Config{}, r.err
	}
	rope := Rope{Base: r.float("rope.freq_base", 10000), Scale: r.ropeScale()}
	for range layers {
		c.Layers = append(c.Layers, LayerConfig{Rope: rope})
	}
	r.kvHeads(&c)
	if c.Width%c.Heads != 0 {
		r.need = "embedding_length is no multiple of the heads"
	}
	c.HeadDim = r.dim("attention.key_length", maxHead, c.Width/c.Heads)
	if v := r.dim("attention.value_length", maxHead, c.HeadDim); v != c.HeadDim {
		r.wrong("attention.value_length", "%d differs from the key length %d: %w", v, c.HeadDim, ErrUnsupported)
	}
	c.Rot = r.dim("rope.dimension_count", maxHead, c.HeadDim)
	if n, ok, _ := f.Uint(arch + ".expert_count"); ok && n > 0 {
		r.wrong("expert_count", "%w: mixture of %d experts", ErrUnsupported, n)
	}
	read(r, &c)
	r.check(c)
	return c, r.err
}

// check refuses what the kernels can't compute.
func (r *reader) check(c Config) {
	switch {
	case c.HeadDim > maxHead:
		r.wrong("embedding_length", "heads of %d elements: %w, at most %d", c.HeadDim, ErrUnsupported, maxHead)
	case c.Rot > c.HeadDim || c.Rot%2 != 0:
		r.wrong("rope.dimension_count", "%d of a head of %d elements", c.Rot, c.HeadDim)
	case !(c.Eps > 0 && c.Eps < 1):
		r.wrong("attention.layer_norm_rms_epsilon", "%g is not between 0 and 1", c.Eps)
	}
	for _, l := range c.Layers {
		switch {
		case !(l.Rope.Base >= 1 && l.Rope.Base < 1e12):
			r.wrong("rope.freq_base", "%g is not between 1 and 1e12", l.Rope.Base)
		case !(l.Rope.Scale > 0 && l.Rope.Scale < 1e6):
			r.wrong("rope.scaling.factor", "%g is not between 0 and 1e6", l.Rope.Scale)
		}
	}
}

// reader reads keys of the architecture and keeps the first error.
type reader struct {
	f    *gguf.File
	arch string
	need string // why a default can't serve
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// wrong records what is wrong with a key.
func (r *reader) wrong(key, format string, args ...any) {
	where := ""
	if v, ok := r.f.Value(r.arch + "." + key); ok {
		where = fmt.Sprintf("offset %d: ", v.Offset())
	}
	r.fail(fmt.Errorf("%s: %s.%s: %s"+format, append([]any{r.f.Path(), r.arch, key, where}, args...)...))
}

// dim reads a size between 1 and most; 0 as the default means that the key is required.
func (r *reader) dim(key string, most uint64, otherwise int) int {
	v, ok, err := r.f.Uint(r.arch + "." + key)
	switch {
	case err != nil:
		r.fail(err)
	case !ok && otherwise == 0:
		r.wrong(key, "the key is missing")
	case !ok && r.need != "":
		r.wrong(key, "the key is missing and %s", r.need)
	case !ok:
		return otherwise
	case v < 1 || v > most:
		r.wrong(key, "%d is not between 1 and %d", v, most)
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
		r.wrong(key, "the key is missing")
	case !ok:
		return otherwise
	}
	return v
}

// kvHeads reads the number of key heads: one for all layers, or one for each, where 0 marks a layer without attention.
func (r *reader) kvHeads(c *Config) {
	const key = "attention.head_count_kv"
	if v, ok := r.f.Value(r.arch + "." + key); ok && v.Type == gguf.ValueArray {
		list, _, err := r.f.Ints(r.arch + "." + key)
		if err != nil {
			r.fail(err)
			return
		}
		if len(list) != len(c.Layers) {
			r.wrong(key, "%d numbers for %d layers", len(list), len(c.Layers))
			return
		}
		for i, n := range list {
			switch {
			case n == 0:
				c.Layers[i].Conv = true
			case n < 0 || n > 4096 || c.KVHeads != 0 && int(n) != c.KVHeads:
				r.wrong(key, "layer %d has %d key heads: %w, all or none are alike", i, n, ErrUnsupported)
				return
			default:
				c.KVHeads = int(n)
			}
		}
		if c.KVHeads == 0 {
			r.wrong(key, "no layer has attention: %w", ErrUnsupported)
		}
	} else {
		c.KVHeads = r.dim(key, 4096, c.Heads)
	}
	if c.KVHeads > 0 && c.Heads%c.KVHeads != 0 {
		r.wrong("attention.head_count", "%d heads are no multiple of the %d key heads", c.Heads, c.KVHeads)
	}
}

// ropeScale reads what positions are divided by. A file without a type scales linearly if it names a factor; 0 is none.
func (r *reader) ropeScale() float64 {
	kind, ok, err := r.f.String(r.arch + ".rope.scaling.type")
	switch {
	case err != nil:
		r.fail(err)
	case kind == "none":
		return 1
	case ok && kind != "linear":
		r.wrong("rope.scaling.type", "%w scaling %q; supported: none, linear", ErrUnsupported, kind)
	}
	if f := r.float("rope.scaling.attn_factor", 1); f != 1 {
		r.wrong("rope.scaling.attn_factor", "%g: %w", f, ErrUnsupported)
	}
	for _, key := range []string{"rope.scaling.factor", "rope.scale_linear"} { // the second is the older name
		if s := r.float(key, 1); s != 0 && s != 1 {
			return s
		}
	}
	return 1
}

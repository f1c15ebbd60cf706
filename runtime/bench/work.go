package bench

import (
	"fmt"
	"strings"

	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/model"
)

// Work is what evaluations must read and compute.
type Work struct {
	body, head matrices // of the layers, and of the vocabulary
	windows    []int    // of the layers with attention: most keys that a query sees, 0 for all
	kv         int64    // bytes of a position in a layer's cache
}

// matrices are weights that evaluations multiply by.
type matrices struct {
	bytes int64 // packed
	ops   int64 // multiplications and additions for a token; those with quantized weights only
}

// ReadWork reads it from a model file. The table tells the sizes of packed weights; kv is the element type of the cache.
func ReadWork(path string, table *dispatch.Table, kv string) (w Work, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return w, err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	c, err := model.ReadConfig(f)
	if err != nil {
		return w, err
	}
	elem := int64(2)
	if kv == "f32" {
		elem = 4
	}
	w.kv = 2 * elem * int64(c.KVHeads) * int64(c.HeadDim)
	for _, l := range c.Layers {
		if !l.Conv {
			w.windows = append(w.windows, l.Window)
		}
	}
	head := "token_embd.weight"
	if _, ok := f.Tensor("output.weight"); ok {
		head = "output.weight"
	}
	for _, t := range f.Tensors() {
		// Of an embedding that is not the head too, only the rows of the tokens are read.
		if len(t.Dims) < 2 || t.Name == "token_embd.weight" && head != t.Name {
			continue
		}
		m := &w.body
		if t.Name == head {
			m = &w.head
		}
		format := strings.ToLower(t.Type.String())
		pack, err := table.Config("pack_"+format, "any")
		if err != nil {
			return w, fmt.Errorf("%s: tensor %q: %w", path, t.Name, err)
		}
		n, k := int(t.Rows()), int(t.Cols())
		m.bytes += int64(pack.Layout.Bytes(n, k))
		if pack.Layout.Block > 1 {
			m.ops += 2 * int64(n) * int64(k)
		}
	}
	return w, nil
}

// Eval returns what it takes to evaluate n tokens after depth others: the bytes of weights and of the cache that are read, each
// weight once for every model.ChunkTokens tokens and the head once, and the operations on quantized weights. Attention's
// operations, on floats, don't count.
func (w *Work) Eval(depth, n int) (bytes, ops int64) {
	for at := depth; at < depth+n; at += model.ChunkTokens {
		m := min(model.ChunkTokens, depth+n-at)
		bytes += w.body.bytes
		for _, window := range w.windows {
			positions := at + m
			if window > 0 {
				positions = min(positions, window-1+m)
			}
			bytes += int64(positions) * w.kv
		}
		ops += int64(m) * w.body.ops
	}
	return bytes + w.head.bytes, ops + w.head.ops
}

// Usage is how much of the machine a test used.
type Usage struct {
	BytesPerToken float64
	OpsPerToken   float64 // see Work.Eval
	// Shares of the machine's limits, 0 where a limit is unknown: of the read bandwidth, of the int8 peak, and of the speed
	// at which every evaluation would take only as long as whichever of both it needs longer (roofline model: Williams,
	// Waterman, Patterson 2009).
	Bandwidth, Int8, Roofline float64
}

// Usage relates a number of tokens per second in a test to the limits, in bytes and operations per second.
func (w *Work) Usage(t Test, rate, bandwidth, peak float64) Usage {
	var bytes, ops int64
	tokens, floor := 0, 0.0 // seconds
	for at, n := range t.steps() {
		b, o := w.Eval(at, n)
		bytes, ops, tokens = bytes+b, ops+o, tokens+n
		least := 0.0
		if bandwidth > 0 {
			least = float64(b) / bandwidth
		}
		if peak > 0 {
			least = max(least, float64(o)/peak)
		}
		floor += least
	}
	if tokens == 0 {
		return Usage{}
	}
	u := Usage{BytesPerToken: float64(bytes) / float64(tokens), OpsPerToken: float64(ops) / float64(tokens)}
	if bandwidth > 0 {
		u.Bandwidth = float64(u.BytesPerToken*rate) / bandwidth
	}
	if peak > 0 {
		u.Int8 = float64(u.OpsPerToken*rate) / peak
	}
	u.Roofline = float64(floor*rate) / float64(tokens)
	return u
}

package model

import (
	"context"
	"fmt"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
)

// Options of Open.
type Options struct {
	KV string // element type of the cache: f16 or f32
}

// Decoder is a model that predicts tokens: RMS norms, attention over a cache or a short convolution in each layer, a gated
// feed-forward layer.
type Decoder struct {
	Config  Config
	KV      string
	dev     *dispatch.Device
	weights *weights
	packed  *cpu.Buffer
	embed   *Matrix
	norm    []float32
	head    *Matrix
	layers  []layer
	factors []float32 // of the rotary frequencies, or nil
	ropes   map[Rope]*ropeTable
	cache   *Cache
	pass    *pass
}

// layer holds the weights of a layer; those that its kind has not are nil.
type layer struct {
	LayerConfig
	norm, ffnNorm         []float32
	postNorm, postFFNNorm []float32
	q, k, v, o            *Matrix
	qNorm, kNorm          []float32
	in, out               *Matrix   // of the convolution
	taps                  []float32 // channels of each tap
	gate, up, down        *Matrix
}

// Open checks a file against its architecture; Load then makes it ready. The file must stay open until Load is done.
func Open(f *gguf.File, dev *dispatch.Device, o Options) (*Decoder, error) {
	c, err := ReadConfig(f)
	if err != nil {
		return nil, err
	}
	if o.KV != "f16" && o.KV != "f32" {
		return nil, fmt.Errorf("%w cache type %q; supported: f16, f32", ErrUnsupported, o.KV)
	}
	w := newWeights(f, dev)
	m := &Decoder{Config: c, KV: o.KV, dev: dev, weights: w, ropes: map[Rope]*ropeTable{}}
	m.embed = w.matrix("token_embd.weight", -1, c.Width)
	m.Config.Vocab = m.embed.N
	m.norm = w.vector(c.OutputNorm, c.Width)
	m.head = m.embed
	if w.has("output.weight") {
		m.head = w.matrix("output.weight", m.embed.N, c.Width)
	}
	for i := 0; i < len(c.Layers) && w.err == nil; i++ {
		m.layers = append(m.layers, w.layer(c, i))
	}
	if w.has("rope_freqs.weight") {
		m.factors = w.vector("rope_freqs.weight", c.Rot/2)
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// layer asks for the weights of layer i.
func (w *weights) layer(c Config, i int) layer {
	name := func(s string) string { return fmt.Sprintf("blk.%d.%s.weight", i, s) }
	heads, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	l := layer{LayerConfig: c.Layers[i], norm: w.vector(name("attn_norm"), c.Width), ffnNorm: w.vector(name("ffn_norm"), c.Width)}
	if l.Conv {
		l.taps = w.taps(name("shortconv.conv"), c.Taps, c.Width)
		l.in, l.out = w.matrix(name("shortconv.in_proj"), 3*c.Width, c.Width), w.matrix(name("shortconv.out_proj"), c.Width, c.Width)
	} else {
		l.q, l.k, l.v = w.matrix(name("attn_q"), heads, c.Width), w.matrix(name("attn_k"), kv, c.Width), w.matrix(name("attn_v"), kv, c.Width)
		l.o = w.matrix(name("attn_output"), c.Width, heads)
		if c.QKNorm {
			l.qNorm, l.kNorm = w.vector(name("attn_q_norm"), c.HeadDim), w.vector(name("attn_k_norm"), c.HeadDim)
		}
	}
	if c.PostNorms {
		l.postNorm, l.postFFNNorm = w.vector(name("post_attention_norm"), c.Width), w.vector(name("post_ffw_norm"), c.Width)
	}
	l.gate, l.up = w.matrix(name("ffn_gate"), c.FF, c.Width), w.matrix(name("ffn_up"), c.FF, c.Width)
	l.down = w.matrix(name("ffn_down"), c.Width, c.FF)
	return l
}

// WeightBytes returns the size of the packed weights.
func (m *Decoder) WeightBytes() int { return m.weights.bytes() }

// Parameters returns the number of weights.
func (m *Decoder) Parameters() uint64 { return m.weights.parameters() }

func (m *Decoder) kvElem() int {
	if m.KV == "f32" {
		return 4
	}
	return 2
}

// KVBytesPerToken returns what a token takes in the cache.
func (m *Decoder) KVBytesPerToken() int {
	n := 0
	for _, l := range m.Config.Layers {
		if !l.Conv {
			n += 2 * m.Config.KVHeads * m.Config.HeadDim * m.kvElem()
		}
	}
	return n
}

// MemoryBytes returns what sequences of so many tokens in all, of at most longest each, need beside the weights: cache,
// tables and activations. It is a float64, which no size overflows.
func (m *Decoder) MemoryBytes(tokens, longest int) float64 {
	c := m.Config
	rows := min(longest, ChunkTokens)
	values := (c.HeadDim + 15) &^ 15
	bytes := product64(16, longest, c.HeadDim) // rotary tables, at most two
	for _, l := range c.Layers {
		if !l.Conv {
			bytes += product64(tokens, c.KVHeads, c.HeadDim+values, m.kvElem())
		}
	}
	bytes += product64(4, partialRows(c, longest), c.HeadDim+2)       // partial results of attention
	bytes += product64(4, rows, 4*c.Width+6*c.Heads*c.HeadDim+4*c.FF) // other activations
	return bytes + product64(4, logitRows, c.Vocab)
}

func product64(factors ...int) float64 {
	p := 1.0
	for _, f := range factors {
		p = float64(p * float64(f))
	}
	return p
}

// Recurrent reports whether a sequence has state that can't be cut back to fewer tokens.
func (m *Decoder) Recurrent() bool {
	for _, l := range m.Config.Layers {
		if l.Conv {
			return true
		}
	}
	return false
}

// Load packs the weights and reserves the cache for so many tokens in all, in sequences of at most longest. After an error only
// Close is left to call.
func (m *Decoder) Load(ctx context.Context, tokens, longest int, progress func(done, total int64)) (err error) {
	if m.packed, err = m.weights.load(ctx, progress); err != nil {
		return err
	}
	for _, l := range m.Config.Layers {
		if l.Conv || m.ropes[l.Rope] != nil {
			continue
		}
		if m.ropes[l.Rope], err = newRopeTable(m.Config, l.Rope, longest, m.factors); err != nil {
			return fmt.Errorf("%s: %w", m.weights.file.Path(), err)
		}
	}
	if m.cache, err = newCache(m.Config, tokens, m.kvElem()); err != nil {
		return err
	}
	m.pass, err = newPass(m, longest)
	return err
}

// Close frees the model's memory.
func (m *Decoder) Close() {
	if m.packed != nil {
		_ = m.packed.Free() // nothing to do about it
	}
	for _, r := range m.ropes {
		if r != nil {
			r.free()
		}
	}
	if m.cache != nil {
		m.cache.close()
	}
	if m.pass != nil {
		m.pass.free()
	}
}

// NewSequence returns an empty sequence.
func (m *Decoder) NewSequence() *Sequence {
	s := &Sequence{cache: m.cache}
	if m.Recurrent() {
		s.state = make([][]float32, len(m.layers))
		for i, l := range m.layers {
			if l.Conv {
				s.state[i] = make([]float32, (m.Config.Taps-1)*m.Config.Width)
			}
		}
	}
	return s
}

// Forward appends ids to the sequence and computes logits: those after the last id, or with all after every one, in order.
// row gets the number of the id and its logits, which are valid during the call. Either all ids become part of the sequence
// or, after an error, none; a recurrent sequence is empty after an error.
func (m *Decoder) Forward(ctx context.Context, s *Sequence, ids []int32, all bool, row func(i int, logits []float32) error) error {
	start := s.n
	err := m.forward(ctx, s, ids, all, row)
	if err != nil {
		s.Truncate(start)
		if s.state != nil {
			s.Reset() // layers before the failure have moved on
		}
	}
	return err
}

func (m *Decoder) forward(ctx context.Context, s *Sequence, ids []int32, all bool, row func(i int, logits []float32) error) error {
	for _, id := range ids {
		if id < 0 || int(id) >= m.Config.Vocab {
			return fmt.Errorf("token %d is not among the vocabulary's %d", id, m.Config.Vocab)
		}
	}
	if err := s.grow(s.n + len(ids)); err != nil {
		return err
	}
	for _, r := range m.ropes {
		r.upTo(s.n + len(ids))
	}
	for first := 0; first < len(ids); first += ChunkTokens {
		chunk := ids[first:min(first+ChunkTokens, len(ids))]
		if err := m.chunk(ctx, s, chunk); err != nil {
			return err
		}
		s.n += len(chunk)
		from := 0
		if !all {
			if first+len(chunk) < len(ids) {
				continue
			}
			from = len(chunk) - 1
		}
		if err := m.logits(from, len(chunk), func(i int, logits []float32) error { return row(first+i, logits) }); err != nil {
			return err
		}
	}
	return nil
}

// chunk runs tokens through all layers; their residual stream ends in pass.x.
func (m *Decoder) chunk(ctx context.Context, s *Sequence, ids []int32) error {
	p, n := m.pass, len(ids)
	p.place(s, ids)
	p.embed(m.embed, n)
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := &m.layers[i]
		if l.Conv {
			p.normalise(p.x, l.norm, n, l.in)
			p.mul(n, product{w: l.in, out: p.bcx})
			p.convolve(l, s.state[i], n)
			p.convert(p.attn, p.c.Width, n, l.out)
			p.residual(l.out, l.postNorm, n)
		} else {
			p.normalise(p.x, l.norm, n, l.q, l.k, l.v)
			q, k := p.q, p.k
			if l.qNorm != nil {
				q, k = p.rawQ, p.rawK
			}
			p.mul(n, product{w: l.q, out: q}, product{w: l.k, out: k}, product{w: l.v, out: p.v})
			if l.qNorm != nil {
				p.runNorm(p.norm, q, l.qNorm, pointer(p.q), n*p.c.Heads, p.c.HeadDim)
				p.runNorm(p.norm, k, l.kNorm, pointer(p.k), n*p.c.KVHeads, p.c.HeadDim)
			}
			p.attend(s, i, l, m.ropes[l.Rope], n)
			p.convert(p.attn, p.c.Heads*p.c.HeadDim, n, l.o)
			p.residual(l.o, l.postNorm, n)
		}
		p.normalise(p.x, l.ffnNorm, n, l.gate, l.up)
		p.mul(n, product{w: l.gate, out: p.gate}, product{w: l.up, out: p.up})
		p.activate(n, l.down)
		p.residual(l.down, l.postFFNNorm, n)
	}
	return nil
}

// logits computes those of rows from … to−1 of the chunk.
func (m *Decoder) logits(from, to int, row func(i int, logits []float32) error) error {
	p, v := m.pass, m.Config.Vocab
	for ; from < to; from += logitRows {
		n := min(logitRows, to-from)
		p.normalise(p.x[from*m.Config.Width:], m.norm, n, m.head)
		p.mul(n, product{w: m.head, out: p.logits})
		for i := range n {
			if err := row(from+i, p.logits[i*v:i*v+v]); err != nil {
				return err
			}
		}
	}
	return nil
}

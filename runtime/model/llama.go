package model

import (
	"context"
	"fmt"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
)

// Options of OpenLlama.
type Options struct {
	KV string // element type of the cache: f16 or f32
}

// Llama is a decoder of the Llama family: RMS norms, rotary embedding of neighbouring pairs, grouped-query attention, a gated
// feed-forward layer with SiLU.
type Llama struct {
	Config  Config
	KV      string
	dev     *dispatch.Device
	weights *weights
	packed  *cpu.Buffer
	embed   *Matrix
	norm    []float32
	head    *Matrix
	layers  []llamaLayer
	factors []float32 // of the rotary frequencies, or nil
	rope    *ropeTable
	cache   *Cache
	pass    *pass
}

type llamaLayer struct {
	attnNorm, ffnNorm []float32
	q, k, v, o        *Matrix
	gate, up, down    *Matrix
}

// OpenLlama checks a file against the architecture; Load then makes it ready. The file must stay open until Load is done.
func OpenLlama(f *gguf.File, dev *dispatch.Device, o Options) (*Llama, error) {
	c, err := ReadConfig(f)
	if err != nil {
		return nil, err
	}
	if o.KV != "f16" && o.KV != "f32" {
		return nil, fmt.Errorf("%w cache type %q; supported: f16, f32", ErrUnsupported, o.KV)
	}
	w := newWeights(f, dev)
	m := &Llama{Config: c, KV: o.KV, dev: dev, weights: w}
	m.embed = w.matrix("token_embd.weight", -1, c.Width)
	m.Config.Vocab = m.embed.N
	m.norm = w.vector("output_norm.weight", c.Width)
	m.head = m.embed
	if w.has("output.weight") {
		m.head = w.matrix("output.weight", m.embed.N, c.Width)
	}
	heads, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	for i := 0; i < c.Layers && w.err == nil; i++ {
		name := func(s string) string { return fmt.Sprintf("blk.%d.%s.weight", i, s) }
		m.layers = append(m.layers, llamaLayer{
			attnNorm: w.vector(name("attn_norm"), c.Width),
			ffnNorm:  w.vector(name("ffn_norm"), c.Width),
			q:        w.matrix(name("attn_q"), heads, c.Width),
			k:        w.matrix(name("attn_k"), kv, c.Width),
			v:        w.matrix(name("attn_v"), kv, c.Width),
			o:        w.matrix(name("attn_output"), c.Width, heads),
			gate:     w.matrix(name("ffn_gate"), c.FF, c.Width),
			up:       w.matrix(name("ffn_up"), c.FF, c.Width),
			down:     w.matrix(name("ffn_down"), c.Width, c.FF),
		})
	}
	if w.has("rope_freqs.weight") {
		m.factors = w.vector("rope_freqs.weight", c.Rot/2)
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// WeightBytes returns the size of the packed weights.
func (m *Llama) WeightBytes() int { return m.weights.bytes() }

// Parameters returns the number of weights.
func (m *Llama) Parameters() uint64 { return m.weights.parameters() }

func (m *Llama) kvElem() int {
	if m.KV == "f32" {
		return 4
	}
	return 2
}

// KVBytesPerToken returns what a token takes in the cache.
func (m *Llama) KVBytesPerToken() int {
	return 2 * m.Config.Layers * m.Config.KVHeads * m.Config.HeadDim * m.kvElem()
}

// Load packs the weights and reserves the cache for so many tokens. After an error only Close is left to call.
func (m *Llama) Load(ctx context.Context, tokens int, progress func(done, total int64)) (err error) {
	if m.packed, err = m.weights.load(ctx, progress); err != nil {
		return err
	}
	if m.rope, err = newRopeTable(m.Config, tokens, true, m.factors); err != nil {
		return err
	}
	if m.cache, err = newCache(m.Config, tokens, m.kvElem()); err != nil {
		return err
	}
	m.pass, err = newPass(m, tokens)
	return err
}

// Close frees the model's memory.
func (m *Llama) Close() {
	if m.packed != nil {
		_ = m.packed.Free() // nothing to do about it
	}
	if m.rope != nil {
		m.rope.free()
	}
	if m.cache != nil {
		m.cache.close()
	}
	if m.pass != nil {
		m.pass.free()
	}
}

// NewSequence returns an empty sequence.
func (m *Llama) NewSequence() *Sequence { return &Sequence{cache: m.cache} }

// Forward appends ids to the sequence and computes logits: those after the last id, or with all after every one, in order.
// row gets the number of the id and its logits, which are valid during the call. Either all ids become part of the sequence
// or, after an error, none.
func (m *Llama) Forward(ctx context.Context, s *Sequence, ids []int32, all bool, row func(i int, logits []float32) error) error {
	start := s.n
	err := m.forward(ctx, s, ids, all, row)
	if err != nil {
		s.Truncate(start)
	}
	return err
}

func (m *Llama) forward(ctx context.Context, s *Sequence, ids []int32, all bool, row func(i int, logits []float32) error) error {
	for _, id := range ids {
		if id < 0 || int(id) >= m.Config.Vocab {
			return fmt.Errorf("token %d is not among the vocabulary's %d", id, m.Config.Vocab)
		}
	}
	if err := s.grow(s.n + len(ids)); err != nil {
		s.Truncate(s.n) // pages taken before the failure
		return err
	}
	m.rope.upTo(s.n + len(ids))
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
func (m *Llama) chunk(ctx context.Context, s *Sequence, ids []int32) error {
	p, c, n := m.pass, m.Config, len(ids)
	p.place(s, ids)
	p.embed(m.embed, n)
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := &m.layers[i]
		p.normalise(p.x, l.attnNorm, n, l.q, l.k, l.v)
		p.mul(n, product{w: l.q, out: p.q}, product{w: l.k, out: p.k}, product{w: l.v, out: p.v})
		p.attend(s, i, n)
		p.convert(p.attn, c.Heads*c.HeadDim, n, l.o)
		p.mul(n, product{l.o, p.x, true})
		p.normalise(p.x, l.ffnNorm, n, l.gate, l.up)
		p.mul(n, product{w: l.gate, out: p.gate}, product{w: l.up, out: p.up})
		p.activate(n, l.down)
		p.mul(n, product{l.down, p.x, true})
	}
	return nil
}

// logits computes those of rows from … to−1 of the chunk.
func (m *Llama) logits(from, to int, row func(i int, logits []float32) error) error {
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

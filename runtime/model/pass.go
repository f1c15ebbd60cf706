package model

import (
	"fmt"
	"unsafe"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
)

const (
	// ChunkTokens is the most tokens that one pass through the layers takes.
	ChunkTokens = 512
	// logitRows is the most rows of logits computed at once.
	logitRows = 12
)

// pass holds the kernels of a pass through the layers, bound to their parameters, and its activations: rows of the chunk's
// tokens.
type pass struct {
	c     Config
	bufs  []*cpu.Buffer
	prod  *products
	cache *Cache

	gather                       *call
	norm, normQuantize, quantize *call
	round                        map[int]*call // by significant bits
	ropeQuery, kvStore, merge    *call
	attention                    *rowOp
	segments                     call // the attention kernel of the tile in use
	gated, gatedQuantize         *call
	shortConv, add               *call

	x, y             []float32 // residual stream; rows before they are converted or added
	q, k, v, attn    []float32
	rawQ, rawK       []float32 // queries and keys before their norm
	bcx              []float32 // what a convolution's layer begins with
	gate, up         []float32
	turned, o, ml    []float32 // queries by key head; partial results of attention
	logits           []float32
	records          []byte         // quantized activations
	rounded          map[int][]byte // rounded activations, by significant bits
	ids, pos, rowPos []int32
}

// newPass binds kernels and reserves memory for chunks in a context of so many tokens.
func newPass(m *Decoder, tokens int) (p *pass, err error) {
	c := m.Config
	p = &pass{c: c, cache: m.cache, round: map[int]*call{}, rounded: map[int][]byte{}}
	defer func() {
		if err != nil {
			p.free()
		}
	}()
	if err := p.bind(m); err != nil {
		return p, err
	}
	n, group := min(ChunkTokens, tokens), c.Heads/c.KVHeads
	n = (n + 3) &^ 3
	heads, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	partial := partialRows(c, tokens)
	wide := max(c.Width, c.FF, heads)
	bcx, rawQ, rawK := 0, 0, 0
	if m.Recurrent() {
		bcx = 3 * c.Width
	}
	if c.QKNorm {
		rawQ, rawK = heads, kv
	}
	for _, b := range []struct {
		to *[]float32
		n  int
	}{
		{&p.x, n * c.Width}, {&p.y, n * wide}, {&p.q, n * heads}, {&p.k, n * kv}, {&p.v, n * kv}, {&p.attn, n * max(heads, c.Width)},
		{&p.bcx, n * bcx}, {&p.rawQ, n * rawQ}, {&p.rawK, n * rawK},
		{&p.gate, n * c.FF}, {&p.up, n * c.FF}, {&p.turned, (min(n, attentionTokens(c, 1))*group + 3) &^ 3 * kv},
		{&p.o, partial * c.HeadDim}, {&p.ml, 2 * partial}, {&p.logits, logitRows * c.Vocab},
	} {
		buf, err := p.reserve(4 * b.n)
		if err != nil {
			return p, err
		}
		*b.to = floats(buf)
	}
	buf, err := p.reserve(n / 4 * groupBytes(wide, false))
	if err != nil {
		return p, err
	}
	p.records = buf.Bytes()
	for bits := range p.round {
		if buf, err = p.reserve(n / 4 * groupBytes(wide, true)); err != nil {
			return p, err
		}
		p.rounded[bits] = buf.Bytes()
	}
	p.ids, p.pos, p.rowPos = make([]int32, n), make([]int32, n), make([]int32, n*group)
	return p, nil
}

func (p *pass) reserve(n int) (*cpu.Buffer, error) {
	b, err := cpu.Reserve(n)
	if err != nil {
		return nil, fmt.Errorf("activations: %w", err)
	}
	p.bufs = append(p.bufs, b)
	return b, nil
}

func (p *pass) free() {
	for _, b := range p.bufs {
		_ = b.Free() // nothing to do about it
	}
}

// bind resolves the kernels.
func (p *pass) bind(m *Decoder) (err error) {
	dev := m.dev
	get := func(to **call, op, config string, names ...string) {
		if err == nil {
			*to, err = one(dev, op, config, names...)
		}
	}
	bits := 13
	if m.KV == "f32" {
		bits = 0
	}
	get(&p.gather, "gather_"+m.embed.Format, "any", "ids", "w", "out", "m", "k", "scale")
	get(&p.norm, "rmsnorm", "any", "x", "w", "out", "m", "k", "inv", "eps")
	get(&p.normQuantize, "rmsnorm_quantize", "any", "x", "w", "act", "m", "k", "inv", "eps")
	get(&p.quantize, "quantize", "any", "x", "act", "m", "k")
	get(&p.gated, m.Config.Activation+"_mul", "any", "x", "y", "out", "n")
	get(&p.gatedQuantize, m.Config.Activation+"_mul_quantize", "any", "x", "y", "act", "m", "k")
	get(&p.add, "add", "any", "x", "out", "n")
	get(&p.shortConv, "shortconv", "any", "bcx", "w", "state", "out", "m", "d")
	pairs := 2
	if m.Config.Neighbours {
		pairs = 1
	}
	get(&p.ropeQuery, "rope_query", fmt.Sprintf("p%dr%d", pairs, bits), "q", "c", "s", "pos", "out", "rows", "kv", "group", "hd", "rot", "scale")
	get(&p.kvStore, "kv_store_"+m.KV, fmt.Sprintf("p%d", pairs), "k", "v", "c", "s", "pos", "pages", "kcache", "vcache", "m", "kv", "hd", "rot")
	get(&p.merge, "attention_merge", "any", "o", "ml", "position", "out", "rows", "kv", "group", "hd", "window")
	for _, w := range m.weights.matrices {
		if w.Float && p.round[w.Bits] == nil && err == nil {
			p.round[w.Bits], err = one(dev, "round", fmt.Sprintf("r%d", w.Bits), "x", "out", "m", "k")
		}
	}
	if err == nil {
		p.attention, err = bindRows(dev, dispatch.Shape{Op: "attention_" + m.KV, N: m.Config.KVHeads, K: m.Config.HeadDim}, "r", "q", "kcache", "vcache", "pages", "position", "o", "ml", "rows", "kv", "segments", "hd", "window")
	}
	if err == nil {
		p.segments = call{dev: dev, slots: p.attention.slots}
		p.prod, err = newProducts(dev, m.weights.matrices)
	}
	return err
}

// place sets ids and positions of a chunk that follows the sequence.
func (p *pass) place(s *Sequence, ids []int32) {
	group := p.c.Heads / p.c.KVHeads
	copy(p.ids, ids)
	for i := range ids {
		p.pos[i] = int32(s.n + i)
		for g := range group {
			p.rowPos[i*group+g] = int32(s.n + i)
		}
	}
}

func (p *pass) embed(w *Matrix, n int) {
	g := p.gather
	g.buf(0, pointer(p.ids))
	g.buf(1, w.ptr())
	g.buf(2, pointer(p.x))
	g.int(3, n)
	g.int(4, p.c.Width)
	g.float(5, p.c.EmbedScale)
	g.run(dispatch.Element * p.c.Width)
}

// mul computes products with the activations of n rows that normalise, convert or activate left for their matrices.
func (p *pass) mul(n int, list ...product) {
	p.prod.begin()
	for _, q := range list {
		act := p.records
		if q.w.Float {
			act = p.rounded[q.w.Bits]
		}
		p.prod.append(q, act, n)
	}
	p.prod.run()
}

// quantizedOnly reports whether all the matrices take quantized activations.
func quantizedOnly(users []*Matrix) bool {
	for _, w := range users {
		if w.Float {
			return false
		}
	}
	return true
}

// normalise makes activations of n rows of x for the matrices: their norm, quantized or rounded as each of them reads it.
func (p *pass) normalise(x, norm []float32, n int, users ...*Matrix) {
	c, out := p.normQuantize, pointer(p.records)
	fused := quantizedOnly(users)
	if !fused {
		c, out = p.norm, pointer(p.y)
	}
	p.runNorm(c, x, norm, out, n, p.c.Width)
	if !fused {
		p.convert(p.y, p.c.Width, n, users...)
	}
}

// runNorm normalises m rows of k elements of x to out.
func (p *pass) runNorm(c *call, x, norm []float32, out unsafe.Pointer, m, k int) {
	c.buf(0, pointer(x))
	c.buf(1, pointer(norm))
	c.buf(2, out)
	c.int(3, m)
	c.int(4, k)
	c.float(5, 1/float32(k))
	c.float(6, p.c.Eps)
	c.run(dispatch.Element * k * c.k.Grid[0].Tile)
}

// residual adds the product of the activations of n rows with w to the residual stream, after its norm where there is one.
func (p *pass) residual(w *Matrix, norm []float32, n int) {
	if norm == nil {
		p.mul(n, product{w, p.x, true})
		return
	}
	p.mul(n, product{w: w, out: p.attn})
	p.runNorm(p.norm, p.attn, norm, pointer(p.y), n, p.c.Width)
	p.add.buf(0, pointer(p.y))
	p.add.buf(1, pointer(p.x))
	p.add.int(2, n*p.c.Width)
	p.add.run(dispatch.Element * p.add.k.Grid[0].Tile)
}

// convolve runs a layer's short convolution on bcx and leaves its result in attn.
func (p *pass) convolve(l *layer, state []float32, n int) {
	c := p.shortConv
	for i, x := range [...][]float32{p.bcx, l.taps, state, p.attn} {
		c.buf(i, pointer(x))
	}
	c.int(4, n)
	c.int(5, p.c.Width)
	c.run(dispatch.Element * c.k.Grid[0].Tile * n)
}

// activate makes activations of the gated feed-forward layer.
func (p *pass) activate(n int, user *Matrix) {
	if !user.Float {
		c := p.gatedQuantize
		c.buf(0, pointer(p.gate))
		c.buf(1, pointer(p.up))
		c.buf(2, pointer(p.records))
		c.int(3, n)
		c.int(4, p.c.FF)
		c.run(2 * dispatch.Element * p.c.FF)
		return
	}
	c := p.gated
	c.buf(0, pointer(p.gate))
	c.buf(1, pointer(p.up))
	c.buf(2, pointer(p.y))
	c.int(3, n*p.c.FF)
	c.run(2 * dispatch.Element * c.k.Grid[0].Tile)
	p.convert(p.y, p.c.FF, n, user)
}

// convert makes activations of n rows of k floats in every form that the matrices read.
func (p *pass) convert(x []float32, k, n int, users ...*Matrix) {
	quantized := false
	done := [33]bool{}
	for _, w := range users {
		if !w.Float && !quantized {
			quantized = true
			runConversion(p.quantize, x, p.records, k, n)
		}
		if w.Float && !done[w.Bits] {
			done[w.Bits] = true
			runConversion(p.round[w.Bits], x, p.rounded[w.Bits], k, n)
		}
	}
}

func runConversion(c *call, x []float32, to []byte, k, n int) {
	c.buf(0, pointer(x))
	c.buf(1, pointer(to))
	c.int(2, n)
	c.int(3, k)
	c.run(dispatch.Element * k * c.k.Grid[0].Tile)
}

// attend turns queries and keys, stores keys and values of the layer and leaves the heads' results in attn.
func (p *pass) attend(s *Sequence, i int, l *layer, rope *ropeTable, n int) {
	c := p.c
	window := noWindow
	if l.Window > 0 {
		window = l.Window
	}
	keys, values := p.cache.layer(i)
	st := p.kvStore
	for i, b := range [...]unsafe.Pointer{pointer(p.k), pointer(p.v), pointer(rope.cos), pointer(rope.sin), pointer(p.pos), pointer(s.pages), keys, values} {
		st.buf(i, b)
	}
	for i, v := range [...]int{n, c.KVHeads, c.HeadDim, c.Rot} {
		st.int(8+i, v)
	}
	st.run(2 * dispatch.Element * st.k.Grid[0].Tile * c.KVHeads * c.HeadDim)

	for first := 0; first < n; {
		segments := (s.n + first + PageTokens) / PageTokens // at least
		count := min(attentionTokens(c, segments), n-first)
		if last := (s.n + first + count + PageTokens - 1) / PageTokens; last > segments {
			segments = last
			count = min(attentionTokens(c, segments), n-first)
		}
		p.attendTo(s, keys, values, rope, window, first, count, segments)
		first += count
	}
}

// partialBytes is what attention's partial results may take, to be in the cache when they are merged.
const partialBytes = 2 << 20

// attentionTokens returns the number of tokens that attention over so many segments takes at once: a multiple of every row
// tile, and enough that keys and values, once they are in a cache, meet many rows.
func attentionTokens(c Config, segments int) int {
	const (
		tile  = 12
		least = 8 * tile
	)
	return max(least, partialBytes/(4*segments*c.Heads*c.HeadDim*tile)*tile)
}

// partialRows returns the most partial results, rows of a head's elements, that attention over so many tokens has at once.
func partialRows(c Config, tokens int) int {
	segments := (tokens + PageTokens - 1) / PageTokens
	return max(partialBytes/(4*c.HeadDim), segments*attentionTokens(c, segments)*c.Heads)
}

// attendTo is attention of count tokens of the chunk, from number first on.
func (p *pass) attendTo(s *Sequence, keys, values unsafe.Pointer, rope *ropeTable, window, first, count, segments int) {
	c, group := p.c, p.c.Heads/p.c.KVHeads
	heads, rows := c.Heads*c.HeadDim, count*group
	q := p.ropeQuery
	for i, b := range [...]unsafe.Pointer{pointer(p.q[first*heads:]), pointer(rope.cos), pointer(rope.sin), pointer(p.pos[first:]), pointer(p.turned)} {
		q.buf(i, b)
	}
	for i, v := range [...]int{rows, c.KVHeads, group, c.HeadDim, c.Rot} {
		q.int(5+i, v)
	}
	q.float(10, attentionScale(c.HeadDim))
	q.run(dispatch.Element * q.k.Grid[0].Tile * c.KVHeads * c.HeadDim)

	tile := p.attention.plan.Tile(rows)
	a := &p.segments
	a.k = tile
	position := pointer(p.rowPos[first*group:])
	for i, b := range [...]unsafe.Pointer{pointer(p.turned), keys, values, pointer(s.pages), position, pointer(p.o), pointer(p.ml)} {
		a.buf(i, b)
	}
	for i, v := range [...]int{rows, c.KVHeads, segments, c.HeadDim, window} {
		a.int(7+i, v)
	}
	a.run(4 * PageTokens * c.HeadDim * tile.Grid[0].Tile)

	g := p.merge
	for i, b := range [...]unsafe.Pointer{pointer(p.o), pointer(p.ml), position, pointer(p.attn[first*heads:])} {
		g.buf(i, b)
	}
	for i, v := range [...]int{rows, c.KVHeads, group, c.HeadDim, window} {
		g.int(4+i, v)
	}
	g.run(dispatch.Element * segments * c.HeadDim)
}

// noWindow is a window that no position reaches.
const noWindow = 1 << 30

package model_test

import (
	"fmt"
	"math"
	"slices"
)

// architecture is what a model computes beside products with its weights, in the terms of this file alone.
type architecture struct {
	name       string
	neighbours bool    // rotary embedding turns elements 2i and 2i+1 of a head, else i and i + half
	qkNorm     bool    // heads of queries and keys are normalised
	postNorms  bool    // results are normalised before they are added to the residual stream
	gelu       bool    // else SiLU
	embedScale float64 // of token embeddings
	lastNorm   string
}

// shape holds the sizes of a model.
type shape struct {
	width, ff, heads, kvHeads, headDim, layers, vocab int
	attention                                         []int // the layers with attention, where others have a short convolution
	window                                            int   // keys that queries of local layers see; 0: no layer is local
	base, localBase, scale                            float64
	eps                                               float64
}

// local reports whether a layer has a sliding window: five of six.
func (s *shape) local(layer int) bool { return s.window > 0 && layer%6 != 5 }

func (s *shape) convolves(layer int) bool {
	return s.attention != nil && !slices.Contains(s.attention, layer)
}

// reference computes a model in float64 by plain loops, all positions of a text at once. It shares no code with the
// package under test, and follows the architectures' publications: Llama (Touvron et al. 2023), Qwen3 (Yang et al. 2025),
// Gemma 3 (Gemma Team 2025), LFM2 (Liquid AI 2025).
type reference struct {
	architecture
	shape
	weights map[string][]float64 // by the names of GGUF tensors, without ".weight"; rows of a matrix one after the other
}

// logits returns those after each of ids.
func (r *reference) logits(ids []int32) [][]float64 {
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = slices.Clone(r.weights["token_embd"][int(id)*r.width:][:r.width])
		for j := range x[i] {
			x[i][j] *= r.embedScale
		}
	}
	for layer := range r.layers {
		blk := func(name string) string { return fmt.Sprintf("blk.%d.%s", layer, name) }
		h := r.norm(x, blk("attn_norm"))
		if r.convolves(layer) {
			h = r.convolution(h, blk)
		} else {
			h = r.attend(h, layer, blk)
		}
		if r.postNorms {
			h = r.norm(h, blk("post_attention_norm"))
		}
		add(x, h)
		h = r.norm(x, blk("ffn_norm"))
		gate, up := r.multiply(h, blk("ffn_gate")), r.multiply(h, blk("ffn_up"))
		for i := range gate {
			for j, g := range gate[i] {
				gate[i][j] = r.activation(g) * up[i][j]
			}
		}
		h = r.multiply(gate, blk("ffn_down"))
		if r.postNorms {
			h = r.norm(h, blk("post_ffw_norm"))
		}
		add(x, h)
	}
	x = r.norm(x, r.lastNorm)
	if _, ok := r.weights["output"]; ok {
		return r.multiply(x, "output")
	}
	return r.multiply(x, "token_embd")
}

func add(x, y [][]float64) {
	for i := range x {
		for j := range x[i] {
			x[i][j] += y[i][j]
		}
	}
}

// multiply returns the product of every row of x with each row of a matrix.
func (r *reference) multiply(x [][]float64, name string) [][]float64 {
	w, k := r.weights[name], len(x[0])
	out := make([][]float64, len(x))
	for i := range x {
		out[i] = make([]float64, len(w)/k)
		for n := range out[i] {
			for j, v := range x[i] {
				out[i][n] += v * w[n*k+j]
			}
		}
	}
	return out
}

// norm divides groups of elements, as many as there are weights, by their root mean square.
func (r *reference) norm(x [][]float64, name string) [][]float64 {
	w := r.weights[name]
	out := make([][]float64, len(x))
	for i := range x {
		for group := range slices.Chunk(x[i], len(w)) {
			var squares float64
			for _, v := range group {
				squares += v * v
			}
			rms := math.Sqrt(squares/float64(len(w)) + r.eps)
			for j, v := range group {
				out[i] = append(out[i], v/rms*w[j])
			}
		}
	}
	return out
}

func (r *reference) activation(x float64) float64 {
	if r.gelu {
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return x / (1 + math.Exp(-x))
}

// attend is attention of a layer, its products with weights included.
func (r *reference) attend(x [][]float64, layer int, blk func(string) string) [][]float64 {
	q, k, v := r.multiply(x, blk("attn_q")), r.multiply(x, blk("attn_k")), r.multiply(x, blk("attn_v"))
	if r.qkNorm {
		q, k = r.norm(q, blk("attn_q_norm")), r.norm(k, blk("attn_k_norm"))
	}
	for i := range x {
		r.turn(q[i], i, layer)
		r.turn(k[i], i, layer)
	}
	d := r.headDim
	out := make([][]float64, len(x))
	for i := range x {
		out[i] = make([]float64, r.heads*d)
		first := 0
		if r.local(layer) {
			first = max(0, i-r.window+1)
		}
		for head := range r.heads {
			kv := head / (r.heads / r.kvHeads) * d
			p := make([]float64, i+1)
			var sum float64
			for j := first; j <= i; j++ {
				var dot float64
				for e := range d {
					dot += q[i][head*d+e] * k[j][kv+e]
				}
				p[j] = math.Exp(dot / math.Sqrt(float64(d)))
				sum += p[j]
			}
			for j := first; j <= i; j++ {
				for e := range d {
					out[i][head*d+e] += p[j] / sum * v[j][kv+e]
				}
			}
		}
	}
	return r.multiply(out, blk("attn_output"))
}

// turn is the rotary embedding of all heads in row at a position.
func (r *reference) turn(row []float64, position, layer int) {
	base, scale := r.base, r.scale
	if r.local(layer) {
		base, scale = r.localBase, 1
	}
	d := r.headDim
	for head := range slices.Chunk(row, d) {
		for i := range d / 2 {
			a, b := i, i+d/2
			if r.neighbours {
				a, b = 2*i, 2*i+1
			}
			angle := float64(position) / scale / math.Pow(base, 2*float64(i)/float64(d))
			if f := r.weights["rope_freqs"]; f != nil {
				angle /= f[i]
			}
			sin, cos := math.Sincos(angle)
			head[a], head[b] = head[a]*cos-head[b]*sin, head[b]*cos+head[a]*sin
		}
	}
}

// convolution is a layer's gated short convolution: of b·x over three positions, times c.
func (r *reference) convolution(h [][]float64, blk func(string) string) [][]float64 {
	const taps = 3
	bcx, w := r.multiply(h, blk("shortconv.in_proj")), r.weights[blk("shortconv.conv")]
	n := r.width
	out := make([][]float64, len(h))
	for i := range h {
		out[i] = make([]float64, n)
		for ch := range n {
			for tap := range taps { // the oldest first
				if at := i - (taps - 1) + tap; at >= 0 {
					out[i][ch] += w[ch*taps+tap] * bcx[at][ch] * bcx[at][2*n+ch]
				}
			}
			out[i][ch] *= bcx[i][n+ch]
		}
	}
	return r.multiply(out, blk("shortconv.out_proj"))
}

package model_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/generated/avx"
	"github.com/swizzle-rt/swizzle/generated/portable"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/model"
)

// tinyModels are models of every architecture with pseudo-random weights.
func tinyModels() []*reference {
	models := []*reference{
		{
			architecture: architecture{name: "llama", neighbours: true, embedScale: 1, lastNorm: "output_norm"},
			shape:        shape{width: 64, ff: 96, heads: 4, kvHeads: 2, headDim: 16, layers: 2, base: 10000, scale: 1, eps: 1e-3},
		},
		{
			architecture: architecture{name: "llama", neighbours: true, embedScale: 1, lastNorm: "output_norm"},
			shape:        shape{width: 96, ff: 160, heads: 3, kvHeads: 1, headDim: 32, layers: 1, base: 500000, scale: 4, eps: 1e-6},
			weights:      map[string][]float64{"output": nil, "rope_freqs": nil},
		},
		{ // queries wider than the residual stream
			architecture: architecture{name: "qwen3", qkNorm: true, embedScale: 1, lastNorm: "output_norm"},
			shape:        shape{width: 64, ff: 160, heads: 4, kvHeads: 2, headDim: 32, layers: 2, base: 1e6, scale: 1, eps: 1e-6},
		},
		{
			architecture: architecture{name: "gemma3", qkNorm: true, postNorms: true, gelu: true, embedScale: math.Sqrt(64), lastNorm: "output_norm"},
			shape:        shape{width: 64, ff: 128, heads: 4, kvHeads: 1, headDim: 32, layers: 7, window: 8, base: 1e6, localBase: 10000, scale: 8, eps: 1e-6},
		},
		{ // no layer is local
			architecture: architecture{name: "gemma3", qkNorm: true, postNorms: true, gelu: true, embedScale: math.Sqrt(64), lastNorm: "output_norm"},
			shape:        shape{width: 64, ff: 128, heads: 2, kvHeads: 2, headDim: 32, layers: 2, base: 1e6, scale: 1, eps: 1e-6},
		},
		{
			architecture: architecture{name: "lfm2", qkNorm: true, embedScale: 1, lastNorm: "token_embd_norm"},
			shape:        shape{width: 64, ff: 160, heads: 4, kvHeads: 2, headDim: 16, layers: 4, attention: []int{1, 3}, base: 1e6, scale: 1, eps: 1e-5},
		},
	}
	for i, m := range models {
		m.vocab = len(vocabulary().tokens)
		m.fill(rand.New(rand.NewPCG(1, uint64(i))))
	}
	return models
}

// fill makes the weights, numbers that half precision holds: products keep the size of what they multiply, and norms of
// queries and keys differ enough for attention to choose.
func (m *reference) fill(random *rand.Rand) {
	extra := m.weights
	m.weights = map[string][]float64{}
	make := func(name string, n int, mean, deviation float64) {
		w := make([]float64, n)
		for i := range w {
			w[i] = float64(canon.F16ToF32(canon.F32ToF16(float32(mean + deviation*random.NormFloat64()))))
		}
		m.weights[name] = w
	}
	matrix := func(name string, rows, k int) { make(name, rows*k, 0, 1/math.Sqrt(float64(k))) }
	norm := func(name string, n int) { make(name, n, 1, 0.2) }

	make("token_embd", m.vocab*m.width, 0, 1)
	norm(m.lastNorm, m.width)
	if _, ok := extra["output"]; ok {
		matrix("output", m.vocab, m.width)
	}
	if _, ok := extra["rope_freqs"]; ok {
		make("rope_freqs", m.headDim/2, 2, 0.3)
	}
	for layer := range m.layers {
		blk := fmt.Sprintf("blk.%d.", layer)
		norm(blk+"attn_norm", m.width)
		norm(blk+"ffn_norm", m.width)
		if m.convolves(layer) {
			make(blk+"shortconv.conv", 3*m.width, 0, 0.6)
			matrix(blk+"shortconv.in_proj", 3*m.width, m.width)
			matrix(blk+"shortconv.out_proj", m.width, m.width)
		} else {
			matrix(blk+"attn_q", m.heads*m.headDim, m.width)
			matrix(blk+"attn_k", m.kvHeads*m.headDim, m.width)
			matrix(blk+"attn_v", m.kvHeads*m.headDim, m.width)
			matrix(blk+"attn_output", m.width, m.heads*m.headDim)
			if m.qkNorm {
				make(blk+"attn_q_norm", m.headDim, 1.5, 0.5)
				make(blk+"attn_k_norm", m.headDim, 1.5, 0.5)
			}
		}
		if m.postNorms {
			norm(blk+"post_attention_norm", m.width)
			norm(blk+"post_ffw_norm", m.width)
		}
		matrix(blk+"ffn_gate", m.ff, m.width)
		matrix(blk+"ffn_up", m.ff, m.width)
		matrix(blk+"ffn_down", m.width, m.ff)
	}
}

// write writes the model to a file with matrices of a type, F32 or F16.
func (m *reference) write(t *testing.T, kind gguf.Type) string {
	t.Helper()
	var w gguf.Writer
	set := func(key string, value any) { w.Set(m.name+"."+key, value) }
	w.Set("general.architecture", m.name)
	set("block_count", uint32(m.layers))
	set("context_length", uint32(512))
	set("embedding_length", uint32(m.width))
	set("feed_forward_length", uint32(m.ff))
	set("attention.head_count", uint32(m.heads))
	set("attention.layer_norm_rms_epsilon", float32(m.eps))
	set("rope.freq_base", float32(m.base))
	if m.scale != 1 {
		set("rope.scaling.type", "linear")
		set("rope.scaling.factor", float32(m.scale))
	}
	if m.window > 0 {
		set("attention.sliding_window", uint32(m.window))
		set("rope.freq_base_swa", float32(m.localBase))
	}
	if m.attention != nil {
		kv := make([]int32, m.layers)
		for _, layer := range m.attention {
			kv[layer] = int32(m.kvHeads)
		}
		set("attention.head_count_kv", kv)
		set("shortconv.l_cache", uint32(3))
	} else {
		set("attention.head_count_kv", uint32(m.kvHeads))
		set("attention.key_length", uint32(m.headDim))
		set("attention.value_length", uint32(m.headDim))
	}
	v := vocabulary()
	w.Set("tokenizer.ggml.model", "llama")
	w.Set("tokenizer.ggml.tokens", v.tokens)
	w.Set("tokenizer.ggml.scores", v.scores)
	w.Set("tokenizer.ggml.token_type", v.types)

	for _, name := range slices.Sorted(maps.Keys(m.weights)) {
		values := m.weights[name]
		k, f := m.columns(name), kind
		if k == 0 || k == 3 {
			f = gguf.TypeF32 // norms and taps are so in all files
		}
		dims := []uint64{uint64(len(values))}
		if k > 0 {
			dims = []uint64{uint64(k), uint64(len(values) / k)}
		}
		var data []byte
		for _, v := range values {
			if f == gguf.TypeF16 {
				data = binary.LittleEndian.AppendUint16(data, canon.F32ToF16(float32(v)))
			} else {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
			}
		}
		w.Add(name+".weight", f, dims, data)
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// columns returns the elements of a matrix's row, 0 for a vector.
func (m *reference) columns(name string) int {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "token_embd", "output", "attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up", "in_proj", "out_proj":
		return m.width
	case "attn_output":
		return m.heads * m.headDim
	case "ffn_down":
		return m.ff
	case "conv":
		return 3
	}
	return 0
}

// vocab is a vocabulary of the "llama" kind.
type vocab struct {
	tokens []string
	scores []float32
	types  []int32
}

// vocabulary has three special tokens, one for each byte and some letters: an odd number.
func vocabulary() vocab {
	v := vocab{tokens: []string{"<unk>", "<s>", "</s>"}, types: []int32{2, 3, 3}}
	for b := range 256 {
		v.tokens = append(v.tokens, fmt.Sprintf("<0x%02X>", b))
		v.types = append(v.types, 6)
	}
	for r := 'A'; r <= 'Z'; r++ {
		v.tokens = append(v.tokens, string(r))
		v.types = append(v.types, 1)
	}
	v.scores = make([]float32, len(v.tokens))
	return v
}

func load(t *testing.T, path, kv string) *engine.Engine {
	t.Helper()
	e, err := engine.Load(context.Background(), path, engine.Options{
		Kernels: slices.Concat(portable.Kernels(), avx.Kernels()), Threads: 2, Context: 400, Sessions: 8, KV: kv,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func session(t *testing.T, e *engine.Engine) *engine.Session {
	t.Helper()
	s, err := e.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// evaluate returns the logits after each of ids, which are fed in chunks of at most so many tokens.
func evaluate(t *testing.T, s *engine.Session, ids []int32, chunk int) [][]float32 {
	t.Helper()
	var rows [][]float32
	for part := range slices.Chunk(ids, chunk) {
		err := s.EvalAll(context.Background(), part, func(_ int, logits []float32) error {
			rows = append(rows, slices.Clone(logits))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// text returns pseudo-random tokens.
func text(n, vocab int) []int32 {
	random := rand.New(rand.NewPCG(7, 8))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = random.Int32N(int32(vocab))
	}
	return ids
}

// The engine computes what the reference computes, in a text that crosses two pages of the cache. Its arithmetic is
// another (float32, in its own order, with half precision where asked for), so the results are near, not equal: within a
// tolerance that is a part of the logits' root mean square, and some times what rounding alone makes.
func TestReference(t *testing.T) {
	for i, m := range tinyModels() {
		ids := text(model.PageTokens+14, m.vocab)
		want := m.logits(ids)
		var squares float64
		for _, row := range want {
			for _, l := range row {
				squares += l * l
			}
		}
		rms := math.Sqrt(squares / float64(len(ids)*m.vocab))
		for _, c := range []struct {
			weights   gguf.Type
			kv        string
			tolerance float64
		}{
			{gguf.TypeF32, "f32", 1e-4},
			{gguf.TypeF16, "f16", 1e-2},
		} {
			t.Run(fmt.Sprintf("%d %s %s", i, m.name, c.weights), func(t *testing.T) {
				s := session(t, load(t, m.write(t, c.weights), c.kv))
				worst, where := 0.0, 0
				for i, row := range evaluate(t, s, ids, len(ids)) {
					for id, l := range row {
						if d := math.Abs(float64(l) - want[i][id]); !(d <= worst) {
							worst, where = d, i
						}
					}
				}
				t.Logf("the largest difference is %.2g of the root mean square %.3g, after token %d", worst/rms, rms, where)
				if !(worst <= c.tolerance*rms) {
					t.Errorf("a logit after token %d differs by %g, at most %g of %g is allowed", where, worst, c.tolerance, rms)
				}
			})
		}
	}
}

// equalBits fails the test if rows differ in a bit.
func equalBits(t *testing.T, what string, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		for id := range want[i] {
			if math.Float32bits(got[i][id]) != math.Float32bits(want[i][id]) {
				t.Errorf("%s: row %d: logit %d is %v, want %v", what, i, id, got[i][id], want[i][id])
				return
			}
		}
	}
}

// A logit's bits don't depend on how the tokens before it got into the cache. The chunks cut a text of 30 tokens before,
// at and after the edge of a window of 8; the sessions of the recurrent model evaluate again what they can't cut back.
func TestEqualBits(t *testing.T) {
	for i, m := range tinyModels() {
		for kind, kv := range map[gguf.Type]string{gguf.TypeF32: "f32", gguf.TypeF16: "f16"} {
			t.Run(fmt.Sprintf("%d %s %s", i, m.name, kind), func(t *testing.T) {
				e := load(t, m.write(t, kind), kv)
				ids := text(30, m.vocab)
				want := evaluate(t, session(t, e), ids, len(ids))
				for _, chunk := range []int{1, 5, 7, 8, 9} {
					equalBits(t, fmt.Sprintf("chunks of %d", chunk), evaluate(t, session(t, e), ids, chunk), want)
				}
				s := session(t, e)
				for _, n := range []int{13, 29, 8, 1, 7} { // the prefix stays, the rest is evaluated again
					if s.Len() == 0 {
						evaluate(t, s, ids[:n], n)
					}
					s.Truncate(n)
					equalBits(t, fmt.Sprintf("after the first %d", n), evaluate(t, s, ids[n:], len(ids)), want[n:])
				}
				s.Truncate(9)
				evaluate(t, s, ids[:20], 6) // another text
				s.Truncate(9)
				equalBits(t, "after another text", evaluate(t, s, ids[9:], 4), want[9:])
				s.Truncate(0)
				last, err := s.Eval(context.Background(), ids)
				if err != nil {
					t.Fatal(err)
				}
				equalBits(t, "the last alone", [][]float32{last}, want[len(want)-1:])
			})
		}
	}
}

// A failed evaluation leaves the session as it was, the recurrent model's too.
func TestFailedEval(t *testing.T) {
	for i, m := range tinyModels() {
		t.Run(fmt.Sprintf("%d %s", i, m.name), func(t *testing.T) {
			e := load(t, m.write(t, gguf.TypeF32), "f32")
			ids := text(30, m.vocab)
			want := evaluate(t, session(t, e), ids, len(ids))
			s := session(t, e)
			evaluate(t, s, ids[:13], 13)
			cancelled, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := s.Eval(cancelled, ids[:5]); err == nil {
				t.Error("a cancelled evaluation succeeds")
			}
			if _, err := s.Eval(context.Background(), []int32{1, int32(m.vocab)}); err == nil {
				t.Error("a token outside the vocabulary is accepted")
			}
			if _, err := s.Eval(context.Background(), text(388, m.vocab)); err == nil {
				t.Error("more tokens than the context has are accepted")
			}
			equalBits(t, "after failures", evaluate(t, s, ids[13:], len(ids)), want[13:])
		})
	}
}

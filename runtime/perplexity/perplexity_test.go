package perplexity_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/generated/avx"
	"github.com/swizzle-rt/swizzle/generated/portable"
	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/perplexity"
)

func load(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.Load(context.Background(), filepath.Join("..", "gguf", "testdata", "model.gguf"), engine.Options{
		Kernels: slices.Concat(portable.Kernels(), avx.Kernels()), Threads: 1, Context: 16, Sessions: 2,
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

const text = "The quick brown fox jumps over the lazy dog; names of control tokens such as <s> are plain text here."

// rows evaluates a chunk and returns its logits after each token.
func rows(t *testing.T, e *engine.Engine, ids []int32) [][]float32 {
	t.Helper()
	s, err := e.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out [][]float32
	if err := s.EvalAll(context.Background(), ids, func(_ int, logits []float32) error {
		out = append(out, slices.Clone(logits))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// chunkOf returns the tokens of a chunk as they are evaluated.
func chunkOf(e *engine.Engine, ids []int32, size, i int) []int32 {
	c := slices.Clone(ids[i*size : i*size+size])
	if e.Tokenizer().AddBOS() {
		c[0] = e.Tokenizer().BOS()
	}
	return c
}

// writeBase writes what the model itself predicts, as llama-perplexity does.
func writeBase(t *testing.T, e *engine.Engine, ids []int32, size, chunks int) string {
	t.Helper()
	vocab := e.Info().Vocab
	b := []byte("_logits_")
	for _, v := range []int{size, vocab, chunks} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	for _, id := range ids[:size*chunks] {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	for c := range chunks {
		for _, row := range rows(t, e, chunkOf(e, ids, size, c))[size/2 : size-1] {
			top := slices.Max(row)
			least := max(slices.Min(row), top-16)
			var sum float64
			for _, l := range row {
				sum += math.Exp(float64(l - top))
			}
			scale := (top - least) / math.MaxUint16
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scale))
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(least-top-float32(math.Log(sum))))
			for _, l := range row {
				b = binary.LittleEndian.AppendUint16(b, uint16(math.RoundToEven(float64(max(0, l-least)/scale))))
			}
			if vocab%2 == 1 {
				b = append(b, 0, 0)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "base.kld")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMeasure(t *testing.T) {
	e := load(t)
	ids := perplexity.Tokens(e.Tokenizer(), text)
	for _, size := range []int{4, 9, 16} {
		chunks := min(3, len(ids)/size)
		var nll float64
		scored := 0
		for c := range chunks {
			chunk := chunkOf(e, ids, size, c)
			logits := rows(t, e, chunk)
			for i := size / 2; i <= size-2; i++ {
				var sum float64
				for _, l := range logits[i] {
					sum += math.Exp(float64(l))
				}
				nll += math.Log(sum) - float64(logits[i][chunk[i+1]])
				scored++
			}
		}
		var steps []int
		r, err := perplexity.Measure(context.Background(), e, ids, perplexity.Options{Context: size, Chunks: 3, Progress: func(done, total int) {
			if total != chunks*size {
				t.Errorf("%d tokens in all, want %d", total, chunks*size)
			}
			steps = append(steps, done)
		}})
		if err != nil {
			t.Fatal(err)
		}
		want := math.Exp(nll / float64(scored))
		if r.Context != size || r.Chunks != chunks || r.Scored != scored || math.Abs(r.PPL-want) > 1e-9*want || r.Divergence != nil {
			t.Errorf("chunks of %d: %+v, want a PPL of %g over %d", size, r, want, scored)
		}
		if !slices.IsSorted(steps) || steps[len(steps)-1] != chunks*size {
			t.Errorf("chunks of %d: progress %v", size, steps)
		}
	}
}

// A model compared with itself differs by what the file rounds.
func TestMeasureItself(t *testing.T) {
	e := load(t)
	ids := perplexity.Tokens(e.Tokenizer(), text)
	path := writeBase(t, e, ids, 8, 4)
	for _, chunks := range []int{0, 2} {
		b, err := perplexity.OpenBase(path)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		r, err := perplexity.Measure(context.Background(), e, ids, perplexity.Options{Context: 8, Chunks: chunks, Base: b})
		if err != nil {
			t.Fatal(err)
		}
		if want := 4 - chunks; r.Chunks != want || r.Scored != 3*want {
			t.Errorf("%d chunks, %d positions", r.Chunks, r.Scored)
		}
		if d := r.Divergence; math.Abs(d.KLDMax) > 1e-6 || d.SameTop != 100 || math.Abs(d.PPLRatio-1) > 1e-3 {
			t.Errorf("%+v", *d)
		}
		if _, err := perplexity.Measure(context.Background(), e, ids, perplexity.Options{Context: 8, Base: b}); err == nil {
			t.Error("a base is read twice")
		}
	}
}

func TestMeasureRefuses(t *testing.T) {
	e := load(t)
	ids := perplexity.Tokens(e.Tokenizer(), text)
	path := writeBase(t, e, ids, 8, 2)
	other := slices.Clone(ids)
	other[9]++
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(t.TempDir(), "small.kld") // a row is 8 bytes and 4 codes
	header := append(slices.Clone(data[:12]), 4, 0, 0, 0, 1, 0, 0, 0)
	if err := os.WriteFile(small, append(header, make([]byte, 8*4+3*16)...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		text []int32
		size int
		base string
		want string
	}{
		{"short text", ids[:7], 8, "", "the text has 7 tokens, expected at least those of a chunk, 8"},
		{"no text", nil, 8, "", "the text has 0 tokens"},
		{"small chunks", ids, 3, "", "chunks of 3 tokens, expected at least 4"},
		{"beyond the context", ids, 24, "", "chunk 0: the context is full"},
		{"other chunks", ids, 9, path, "base.kld: chunks of 8 tokens, expected 9"},
		{"other text", other, 8, path, "base.kld: token 9 is "},
		{"other vocabulary", ids, 8, small, "small.kld: a vocabulary of 4 tokens, the model has 324"},
	} {
		o := perplexity.Options{Context: test.size}
		if test.base != "" {
			if o.Base, err = perplexity.OpenBase(test.base); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			defer o.Base.Close()
		}
		if _, err := perplexity.Measure(context.Background(), e, test.text, o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := perplexity.Measure(ctx, e, ids, perplexity.Options{Context: 8}); err == nil {
		t.Error("a cancelled measurement succeeds")
	}
}

// The text is plain: the name of a control token doesn't become the token.
func TestTokens(t *testing.T) {
	tok := load(t).Tokenizer()
	ids := perplexity.Tokens(tok, "a<s>")
	want := tok.Encode("a<s>", false)
	if tok.AddBOS() {
		want = append([]int32{tok.BOS()}, want...)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !tok.AddBOS() {
		t.Error("the model adds no BOS: this tests half")
	}
}

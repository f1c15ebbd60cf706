package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/swizzle-rt/swizzle/generated/avx"
	"github.com/swizzle-rt/swizzle/generated/portable"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
	"github.com/swizzle-rt/swizzle/runtime/sample"
	"github.com/swizzle-rt/swizzle/runtime/template"
)

func kernels() []kernel.Kernel { return append(portable.Kernels(), avx.Kernels()...) }

// modelPath finds a test model; without it the test is skipped, in CI it fails.
func modelPath(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("SWIZZLE_TEST_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		dir = filepath.Join(cache, "swizzle", "models")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("model is missing (.ci/models.sh fetches it): %v", err)
	}
	return path
}

func load(t testing.TB, o engine.Options) *engine.Engine {
	t.Helper()
	path := modelPath(t, "SmolLM2-135M-Instruct.Q4_1.gguf")
	o.Kernels = kernels()
	e, err := engine.Load(context.Background(), path, o)
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

func session(t testing.TB, e *engine.Engine) *engine.Session {
	t.Helper()
	s, err := e.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Against the dequantised model in F32 and against llama.cpp on the same file, teacher-forced: docs/numerics.md, quality.
func TestGoldenLogits(t *testing.T) {
	if testing.Short() {
		t.Skip("evaluates 1024 tokens")
	}
	g := loadGolden(t, "smollm2")
	e := load(t, engine.Options{Context: 512})
	var total goldenScore
	peer, samePeer, english := 0.0, 0, 0
	for _, text := range g.Texts {
		s := session(t, e)
		rows := make([][]float32, len(text.Tokens))
		err := s.EvalAll(context.Background(), text.Tokens, func(i int, logits []float32) error {
			rows[i] = slices.Clone(logits)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		score := text.score(func(i int) []float32 { return rows[i] })
		same := 0
		for i, p := range text.Positions {
			peer += klBuckets(p.Peer, logBuckets(rows[i], p.IDs))
			if argmax(rows[i]) == p.PeerTop {
				same++
			}
		}
		// The model knows English. Elsewhere its likeliest tokens are so close that a quantized model often takes another
		// than the F32 model, llama.cpp's too: such a text says nothing about the engine.
		if text.Name != "languages" {
			samePeer += same
			english += len(text.Positions)
		}
		t.Logf("%s: KLD %.6f (llama.cpp %.6f), same top %d of %d (llama.cpp %d), as llama.cpp %d", text.Name, score.KLDBuckets, text.Score.KLDBuckets, score.SameTop, score.Positions, text.Score.SameTop, same)
		total.KLDBuckets += score.KLDBuckets * float64(score.Positions)
		total.SameTop += score.SameTop
		total.Positions += score.Positions
	}
	n := float64(total.Positions)
	total.KLDBuckets /= n
	t.Logf("all: KLD %.6f (llama.cpp %.6f), same top %d of %d (llama.cpp %d); against llama.cpp: KLD %.6f, same top %.1f %% of the English texts",
		total.KLDBuckets, g.Total.KLDBuckets, total.SameTop, total.Positions, g.Total.SameTop, peer/n, 100*float64(samePeer)/float64(english))
	if total.KLDBuckets > 1.2*g.Total.KLDBuckets {
		t.Errorf("KLD to the F32 model is %.6f, at most 1.2 times llama.cpp's %.6f is allowed", total.KLDBuckets, g.Total.KLDBuckets)
	}
	if peer/n > 5e-3 || float64(samePeer) < 0.96*float64(english) {
		t.Errorf("against llama.cpp on the same file: KLD %.6f, same top %d of %d", peer/n, samePeer, english)
	}
}

// prompt is a fixed run of tokens that crosses two segments of the cache.
func prompt(e *engine.Engine, n int) []int32 {
	ids := make([]int32, n)
	x := uint32(1)
	for i := range ids {
		x = x*1664525 + 1013904223
		ids[i] = int32(x>>8) % int32(e.Info().Vocab)
	}
	return ids
}

// digest hashes the bits of the logits after every one of the ids, fed in chunks.
func digest(t *testing.T, e *engine.Engine, ids []int32, chunk int) string {
	t.Helper()
	s := session(t, e)
	h := fnv.New128a()
	var b [4]byte
	for first := 0; first < len(ids); first += chunk {
		err := s.EvalAll(context.Background(), ids[first:min(first+chunk, len(ids))], func(_ int, logits []float32) error {
			for _, l := range logits {
				binary.LittleEndian.PutUint32(b[:], math.Float32bits(l))
				h.Write(b[:])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	return fmt.Sprintf("%x", h.Sum(nil))
}

// The bits of every logit are the same for any instruction set, number of threads and chunk of the prompt.
func TestSameBits(t *testing.T) {
	if testing.Short() {
		t.Skip("evaluates a model many times")
	}
	want := map[string]string{}
	isas := cpu.Detect().Available()
	for _, kv := range []string{"f16", "f32"} {
		for _, isa := range isas {
			for _, threads := range []int{1, 2, 3} {
				e := load(t, engine.Options{ISA: string(isa), Threads: threads, Context: 600, KV: kv})
				n, chunks := 290, []int{1, 7, 64, 512}
				switch {
				case isa == cpu.Portable:
					n, chunks = 22, []int{22, 5}
				case threads != 2 || kv == "f32":
					chunks = []int{64, 512}
				}
				ids := prompt(e, 290)
				for _, chunk := range chunks {
					key := fmt.Sprintf("%s, %d tokens", kv, n)
					got := digest(t, e, ids[:n], chunk)
					if want[key] == "" {
						want[key] = got
					}
					if got != want[key] {
						t.Errorf("%s: %s with %d threads in chunks of %d gives other bits", key, isa, threads, chunk)
					}
				}
				if isa != cpu.Portable && threads == 1 { // what the portable kernels are compared with
					key := kv + ", 22 tokens"
					got := digest(t, e, ids[:22], 22)
					if want[key] == "" {
						want[key] = got
					}
					if got != want[key] {
						t.Errorf("%s: %s gives other bits", key, isa)
					}
				}
			}
		}
	}
}

// A prompt that attention takes in more than one block of tokens has the bits of one taken in small pieces.
func TestLongPromptKeepsBits(t *testing.T) {
	if testing.Short() {
		t.Skip("evaluates a model many times")
	}
	e := load(t, engine.Options{Context: 600})
	ids := prompt(e, 510)
	last := func(chunk int) (bits []uint32) {
		s := session(t, e)
		defer s.Close()
		for at := 0; at < len(ids); at += chunk {
			logits, err := s.Eval(context.Background(), ids[at:min(at+chunk, len(ids))])
			if err != nil {
				t.Fatal(err)
			}
			bits = bits[:0]
			for _, l := range logits {
				bits = append(bits, math.Float32bits(l))
			}
		}
		return bits
	}
	whole := last(len(ids))
	for _, chunk := range []int{37, 128} {
		if !slices.Equal(last(chunk), whole) {
			t.Errorf("in pieces of %d the last logits have other bits", chunk)
		}
	}
}

func ask(t *testing.T, e *engine.Engine, question string, r engine.Request) engine.Result {
	t.Helper()
	ids, err := e.Prompt([]template.Message{{Role: "user", Content: question}}, template.Options{AddGenerationPrompt: true})
	if err != nil {
		t.Fatal(err)
	}
	r.Prompt = ids
	var text strings.Builder
	s := session(t, e)
	defer s.Close()
	res, err := s.Generate(context.Background(), r, func(tok engine.Token) error {
		text.WriteString(tok.Text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != res.Text {
		t.Errorf("the stream gave %q, the result holds %q", text.String(), res.Text)
	}
	return res
}

// The prompt is tokenized as llama.cpp does it, and the greedy answer, whose margins are wide, is its answer.
func TestGreedyAnswer(t *testing.T) {
	e := load(t, engine.Options{Context: 512})
	ids, err := e.Prompt([]template.Message{{Role: "user", Content: "Name the capital of France."}}, template.Options{AddGenerationPrompt: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []int32{1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182, 2, 198, 1, 4093, 198,
		5820, 260, 3575, 282, 4649, 30, 2, 198, 1, 520, 9531, 198}
	if !slices.Equal(ids, want) {
		t.Errorf("prompt is %v, want %v", ids, want)
	}
	res := ask(t, e, "Name the capital of France.", engine.Request{Max: 48, Params: sample.Greedy()})
	if res.Text != "The capital of France is Paris." || res.Finish != engine.FinishStop {
		t.Errorf("%q (%s)", res.Text, res.Finish)
	}
}

func TestGenerateEnds(t *testing.T) {
	e := load(t, engine.Options{Context: 64})
	q := "Name the capital of France."
	for _, c := range []struct {
		name         string
		r            engine.Request
		text, finish string
		tokens       int
	}{
		{"no tokens", engine.Request{Max: 0}, "", engine.FinishLength, 0},
		{"length", engine.Request{Max: 3}, "The capital of", engine.FinishLength, 3},
		{"stop string", engine.Request{Max: -1, Stop: []string{" is"}}, "The capital of France", engine.FinishStop, 5},
		{"stop string across tokens", engine.Request{Max: -1, Stop: []string{"tal of Fr"}}, "The capi", engine.FinishStop, 4},
		{"stop string held back to the end", engine.Request{Max: -1, Stop: []string{"Paris.!"}}, "The capital of France is Paris.", engine.FinishStop, 7},
		{"first of two", engine.Request{Max: -1, Stop: []string{"France", "capital"}}, "The ", engine.FinishStop, 2},
	} {
		c.r.Params = sample.Greedy()
		res := ask(t, e, q, c.r)
		if res.Text != c.text || res.Finish != c.finish || res.NewTokens != c.tokens {
			t.Errorf("%s: %q, %s, %d tokens; want %q, %s, %d", c.name, res.Text, res.Finish, res.NewTokens, c.text, c.finish, c.tokens)
		}
	}
	res := ask(t, e, "Explain in three sentences why the sky is blue.", engine.Request{Max: -1, Params: sample.Greedy()})
	if res.Finish != engine.FinishContext || res.PromptTokens+res.NewTokens != 65 {
		t.Errorf("a full context ends as %q after %d tokens", res.Finish, res.NewTokens)
	}
	long := session(t, e)
	if _, err := long.Eval(context.Background(), prompt(e, 65)); err == nil || long.Len() != 0 {
		t.Errorf("65 tokens in a context of 64: %v, %d in the cache", err, long.Len())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := long.Eval(ctx, prompt(e, 8)); err == nil || long.Len() != 0 {
		t.Errorf("cancelled evaluation: %v, %d tokens in the cache", err, long.Len())
	}
}

// Seeds repeat, and a truncated session continues as a fresh one would.
func TestSeedsAndTruncate(t *testing.T) {
	e := load(t, engine.Options{Context: 512})
	p := sample.Default()
	p.Temperature, p.Seed = 1.2, 1
	one := ask(t, e, "Tell a story.", engine.Request{Max: 24, Params: p})
	again := ask(t, e, "Tell a story.", engine.Request{Max: 24, Params: p})
	p.Seed = 2
	two := ask(t, e, "Tell a story.", engine.Request{Max: 24, Params: p})
	if one.Text != again.Text || one.Text == two.Text {
		t.Errorf("seeds 1, 1, 2 give %q, %q, %q", one.Text, again.Text, two.Text)
	}
	ids := prompt(e, 300)
	s := session(t, e)
	evaluate := func(ids []int32) []float32 {
		l, err := s.Eval(context.Background(), ids)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(l)
	}
	want := evaluate(ids)
	s.Truncate(255)
	evaluate(prompt(e, 20))
	s.Truncate(255)
	if got := evaluate(ids[255:]); !slices.Equal(got, want) {
		t.Error("a truncated session gives other logits")
	}
}

// A token of a warm session allocates nothing.
func TestDecodeAllocatesNothing(t *testing.T) {
	e := load(t, engine.Options{Context: 512})
	s := session(t, e)
	if _, err := s.Eval(context.Background(), prompt(e, 4)); err != nil {
		t.Fatal(err)
	}
	id := []int32{5}
	if n := testing.AllocsPerRun(20, func() {
		if _, err := s.Eval(context.Background(), id); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a token", n)
	}
}

// Sessions side by side don't change each other's logits; there are no more than the engine was loaded for.
func TestSessionsSideBySide(t *testing.T) {
	e := load(t, engine.Options{Context: 300, Sessions: 2})
	ids := prompt(e, 280)
	logits := func(s *engine.Session, chunk int) []float32 {
		var l []float32
		for first := 0; first < len(ids); first += chunk {
			var err error
			if l, err = s.Eval(context.Background(), ids[first:min(first+chunk, len(ids))]); err != nil {
				t.Error(err)
				return nil
			}
		}
		return slices.Clone(l)
	}
	one, two := session(t, e), session(t, e)
	if _, err := e.NewSession(); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a third session: %v", err)
	}
	var wg sync.WaitGroup
	var got [2][]float32
	for i, s := range []*engine.Session{one, two} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			got[i] = logits(s, 90+50*i)
		}()
	}
	wg.Wait()
	if !slices.Equal(got[0], got[1]) {
		t.Error("two sessions with the same tokens have other logits")
	}
	one.Close()
	three := session(t, e)
	if !slices.Equal(logits(three, 280), got[1]) {
		t.Error("a session on used pages has other logits")
	}
	if _, err := one.Eval(context.Background(), ids[:1]); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a closed session evaluates: %v", err)
	}
}

// Penalties see the whole sequence, whether its beginning was evaluated before or not.
func TestPenaltiesSeeTheCache(t *testing.T) {
	e := load(t, engine.Options{Context: 300})
	ids := prompt(e, 40)
	p := sample.Greedy()
	p.RepeatPenalty, p.RepeatLastN = 1.5, -1
	var texts []string
	for _, cached := range []int{0, 39} {
		s := session(t, e)
		if cached > 0 {
			if _, err := s.Eval(context.Background(), ids[:cached]); err != nil {
				t.Fatal(err)
			}
		}
		res, err := s.Generate(context.Background(), engine.Request{Prompt: ids[cached:], Max: 20, Params: p}, func(engine.Token) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, res.Text)
		s.Close()
	}
	if texts[0] != texts[1] {
		t.Errorf("%q with an empty cache, %q with 39 tokens in it", texts[0], texts[1])
	}
}

// An engine that is closed under a session gives an error.
func TestCloseUnderSession(t *testing.T) {
	e := load(t, engine.Options{Context: 300})
	s := session(t, e)
	ids := prompt(e, 3)
	_, err := s.Generate(context.Background(), engine.Request{Prompt: ids, Max: 20, Params: sample.Greedy()}, func(engine.Token) error { return e.Close() })
	if !errors.Is(err, engine.ErrClosed) {
		t.Errorf("generation over a closed engine: %v", err)
	}
	if _, err := e.NewSession(); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("session of a closed engine: %v", err)
	}
}

// A model that can't fit is refused before it is loaded, with the bytes needed and available.
func TestTooLargeContext(t *testing.T) {
	path := modelPath(t, "SmolLM2-135M-Instruct.Q4_1.gguf")
	for _, c := range []struct {
		context int
		want    string
	}{{1 << 24, "bytes needed"}, {1 << 55, "at most"}} {
		_, err := engine.Load(context.Background(), path, engine.Options{Kernels: kernels(), Context: c.context})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a context of %d: %v", c.context, err)
		}
	}
}

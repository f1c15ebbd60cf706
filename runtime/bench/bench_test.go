package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/generated/avx"
	"github.com/swizzle-rt/swizzle/generated/portable"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

func kernels() []kernel.Kernel { return append(portable.Kernels(), avx.Kernels()...) }

// smallModel is a llama of a few kilobytes with pseudo-random weights.
var smallModel = filepath.Join("..", "gguf", "testdata", "model.gguf")

func open(t *testing.T, tests []Test) *engine.Engine {
	t.Helper()
	sessions, tokens := Sessions(tests)
	e, err := engine.Load(t.Context(), smallModel, engine.Options{Kernels: kernels(), Threads: 2, Context: tokens, Sessions: sessions})
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

func table() *dispatch.Table { return dispatch.New(kernels(), cpu.Detect().Available()[0]) }

func TestRun(t *testing.T) {
	tests := []Test{
		{Prompt: 5}, {Gen: 3}, {Prompt: 4, Gen: 2}, {Depth: 300, Prompt: 7}, {Depth: 300, Gen: 2}, {Depth: 1, Gen: 1},
		NewBatch(0, 24), {Kind: FirstToken, Prompt: 8},
	}
	var order []string
	report, err := Run(t.Context(), open(t, tests), Options{Tests: tests, Rounds: 2, Progress: func(round int, it string) {
		order = append(order, strings.Repeat("+", round)+it)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != len(tests) {
		t.Fatalf("%d results of %d tests", len(report.Results), len(tests))
	}
	var want []string
	for round := range 3 {
		for _, test := range tests {
			want = append(want, strings.Repeat("+", round)+test.Name())
		}
	}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for i, r := range report.Results {
		if r.Test != tests[i] || len(r.Samples) != 2 || r.Start.IsZero() || r.Control() == 0 || r.Ratio() != 0 {
			t.Errorf("%s: %+v", tests[i].Name(), r)
		}
		for _, s := range r.Samples {
			if s.Tokens != tests[i].Prompt+tests[i].Gen || s.Time <= 0 || s.Rate() <= 0 {
				t.Errorf("%s: %+v", tests[i].Name(), s)
			}
		}
	}
	if runtime.GOOS == "linux" && report.PeakMemory < 1<<20 {
		t.Errorf("peak memory is %d bytes", report.PeakMemory)
	}
}

// TestEdit checks the edit task's prompt and count of tokens. The model's weights are random: it may end its answer at once.
func TestEdit(t *testing.T) {
	tests := []Test{NewEdit()}
	e := open(t, tests)
	prompt, err := editPrompt(e)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := editPrompt(e); !slices.Equal(prompt, again) || len(prompt) < 100 {
		t.Errorf("prompts of %d and %d tokens", len(prompt), len(again))
	}
	if n := strings.Count(editFile, "Shelf"); n < 10 || strings.Contains(editFile, "Rack") {
		t.Errorf("the file has the name %d times", n)
	}
	report, err := Run(t.Context(), e, Options{Tests: tests, Rounds: 1})
	if err != nil {
		if !strings.HasPrefix(err.Error(), "edit256: the model ended its answer after ") {
			t.Error(err)
		}
		return
	}
	if r := report.Results[0]; r.Test.Prompt != len(prompt) || r.Samples[0].Tokens < 1 || r.Samples[0].Tokens > 255 {
		t.Errorf("%+v", r)
	}
}

// peerScript returns a command that prints text and notes in a file that it ran.
func peerScript(t *testing.T, text string) (command string, runs func() int) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	dir := t.TempDir()
	out, log := filepath.Join(dir, "it's out"), filepath.Join(dir, "log")
	if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "echo run >>" + QuoteShell(log) + "; cat " + QuoteShell(out), func() int {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "run\n")
	}
}

func TestRunPeer(t *testing.T) {
	tests := []Test{{Prompt: 5}, {Gen: 3}}
	e := open(t, tests)
	command, runs := peerScript(t, `[{"n_prompt":5,"n_gen":0,"samples_ts":[2,4]},{"n_prompt":6,"n_gen":0,"avg_ts":1}]`)
	var order []string
	report, err := Run(t.Context(), e, Options{Tests: tests, Rounds: 2, Peer: &Peer{command}, Progress: func(_ int, it string) { order = append(order, it) }})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("peer pp5 tg3 pp5 tg3 pp5 tg3 pp5 tg3 peer peer pp5 tg3 pp5 tg3")
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	pp, tg := report.Results[0], report.Results[1]
	if runs() != 3 || !slices.Equal(pp.Peer, []float64{2, 4, 2, 4}) || tg.Peer != nil || len(pp.Samples) != 4 {
		t.Errorf("%d runs, %+v, %+v", runs(), pp, tg)
	}
	if pp.Ratio() != Summarize(pp.Rates()).Median/3 || tg.Ratio() != 0 {
		t.Errorf("ratios %v and %v", pp.Ratio(), tg.Ratio())
	}
	for _, c := range []struct{ command, want string }{
		{"echo no tests here >&2; exit 3", "exit status 3: no tests here"},
		{"true", "its output has no JSON array"},
		{`echo '[{"n_prompt":512,"n_gen":0,"n_depth":64,"avg_ts":1},{"n_gen":8,"avg_ts":1}]'`, "ran pp512 @ d64, tg8, none of the tests here"},
	} {
		if _, err := Run(t.Context(), e, Options{Tests: tests, Rounds: 1, Peer: &Peer{c.command}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.command, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Peer{"sleep 10"}).run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestLoads(t *testing.T) {
	opened := 0
	samples, err := Loads(2, func() (*engine.Engine, error) {
		opened++
		return engine.Load(t.Context(), smallModel, engine.Options{Kernels: kernels(), Threads: 1})
	})
	if err != nil || opened != 3 || len(samples) != 2 || samples[0].Time <= 0 {
		t.Errorf("%d opened, %v, %v", opened, samples, err)
	}
	want := errors.New("no file")
	if _, err := Loads(2, func() (*engine.Engine, error) { return nil, want }); !errors.Is(err, want) {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	l := NewLimits(table(), 2)
	defer l.Close()
	l.bytes = 4 << 20 // as quick as a test should be
	bandwidth, err := l.ReadBandwidth()
	if err != nil || bandwidth < 1e8 {
		t.Errorf("%v bytes per second, %v", bandwidth, err)
	}
	if peak := l.Int8Peak(); peak < 1e7 || !strings.HasPrefix(l.Kernel(), "gemm_") {
		t.Errorf("%v operations per second by %q", peak, l.Kernel())
	}
	none := NewLimits(dispatch.New(nil, cpu.Portable), 1)
	defer none.Close()
	if peak := none.Int8Peak(); peak != 0 || none.Kernel() != "" {
		t.Errorf("without kernels %v by %q", peak, none.Kernel())
	}
}

// TestSumLines checks that every cache line is read, once.
func TestSumLines(t *testing.T) {
	b, err := cpu.Alloc(readChunk)
	if err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	for i := 0; i < len(data); i += 64 {
		data[i] = 1
	}
	if got := sumLines(data); got != readChunk/64 {
		t.Errorf("%d lines of %d", got, readChunk/64)
	}
	if err := b.Free(); err != nil {
		t.Error(err)
	}
}

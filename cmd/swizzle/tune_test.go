package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
	"github.com/swizzle-rt/swizzle/runtime/tune"
)

// checkModel writes a small model with weights of a format.
func checkModel(t *testing.T, kind gguf.Type) (path, kv string) {
	t.Helper()
	for _, w := range weightFormats {
		if w.kind == kind {
			path = filepath.Join(t.TempDir(), "model.gguf")
			if err := writeCheckModel(path, w); err != nil {
				t.Fatal(err)
			}
			return path, w.kv
		}
	}
	t.Fatalf("no weights of %s", kind)
	return "", ""
}

func modelNeeds(t *testing.T, path, kv string) []tune.Need {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needs, err := tune.Needs(f, kv)
	if err != nil {
		t.Fatal(err)
	}
	return needs
}

// tunedHash is the hash of logits, chunk by chunk, of an engine that follows a choice.
func tunedHash(t *testing.T, set []kernel.Kernel, path, kv string, choice dispatch.Choice) string {
	t.Helper()
	e, err := engine.Load(t.Context(), path, engine.Options{Kernels: set, KV: kv, Choice: choice, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sum := blake3.New()
	random := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{270, 33, 16, 15, 13, 12, 10, 9, 7, 4, 3, 2, 1, 1} {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = random.Int32N(int32(e.Info().Vocab))
		}
		err := s.EvalAll(context.Background(), ids, func(_ int, logits []float32) error { return binary.Write(sum, binary.LittleEndian, logits) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// randomChoice orders random kernels that this CPU runs, of any architecture, for every number of rows of every need.
func randomChoice(needs []tune.Need, random *rand.Rand) dispatch.Choice {
	features := cpu.Detect()
	table := dispatch.New(kernels(), features.Available()[0])
	c := dispatch.Choice{}
	for _, n := range needs {
		list := table.Candidates(n.Op, features)
		for m := 1; m <= 40; m++ {
			o := dispatch.Order{From: m, To: m}
			if m == 40 {
				o.To = 1 << 30
			}
			for _, i := range random.Perm(len(list))[:1+random.IntN(len(list))] {
				o.Kernels = append(o.Kernels, list[i].Name)
			}
			c[n.Shape] = append(c[n.Shape], o)
		}
	}
	return c
}

// Tuning changes no bit: any choice of kernels gives the logits of the default.
func TestTuningKeepsBits(t *testing.T) {
	for _, kind := range []gguf.Type{gguf.TypeQ8_0, gguf.TypeQ4_K, gguf.TypeF16} {
		path, kv := checkModel(t, kind)
		needs := modelNeeds(t, path, kv)
		if len(needs) < 3 {
			t.Fatalf("%s: needs are %v", kind, needs)
		}
		want := tunedHash(t, kernels(), path, kv, nil)
		for seed := range uint64(3) {
			if got := tunedHash(t, kernels(), path, kv, randomChoice(needs, rand.New(rand.NewPCG(seed, 1)))); got != want {
				t.Errorf("%s: choice %d gives other logits", kind, seed)
			}
		}
	}
}

// A model runs the kernels that a choice names.
func TestChoiceIsFollowed(t *testing.T) {
	path, kv := checkModel(t, gguf.TypeQ8_0)
	set := kernels()
	var calls atomic.Int64
	choice := dispatch.Choice{}
	for i := range set {
		if k := &set[i]; k.Name.Arch == "portable" && (k.Name.Op == "gemm_q8_0" && k.Name.Config == "m4" || k.Name.Op == "attention_"+kv && k.Name.Config == "r4") {
			run := k.Func
			k.Func = func(a *kernel.Args, lo, hi int) {
				calls.Add(1)
				run(a, lo, hi)
			}
			for _, n := range modelNeeds(t, path, kv) {
				if n.Op == k.Name.Op {
					choice[n.Shape] = []dispatch.Order{{From: 4, To: 40, Kernels: []kernel.Name{k.Name}}}
				}
			}
		}
	}
	if cpu.Detect().Available()[0] != cpu.Portable {
		tunedHash(t, set, path, kv, nil)
		if n := calls.Load(); n != 0 {
			t.Errorf("without a choice the portable kernels run %d times", n)
		}
	}
	tunedHash(t, set, path, kv, choice)
	if calls.Load() == 0 || len(choice) < 3 {
		t.Errorf("the kernels of %d shapes run %d times", len(choice), calls.Load())
	}
}

// tuned is what tune --json prints.
type tuned struct {
	Profile                string
	Loaded, Measured, Left int
	Entries                []tune.Entry
}

func TestTune(t *testing.T) {
	path, kv := checkModel(t, gguf.TypeQ8_0)
	env := []string{"XDG_CACHE_HOME=" + t.TempDir()}
	text := func() string {
		got := swizzleEnv(t, env, "", "run", "-m", path, "--kv", kv, "--raw", "-p", "ab", "-n", "12", "--temp", "0")
		if got.status != 0 {
			t.Fatalf("run: %+v", got)
		}
		return got.stdout
	}
	before := text()
	page := filepath.Join(t.TempDir(), "report.html")
	got := swizzleEnv(t, env, "", "tune", "--device", "cpu:0", "-m", path, "--kv", kv, "--budget", "4s", "--json", "--report", page)
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	first := decode[tuned](t, got.stdout)
	if first.Measured == 0 || first.Loaded != 0 || len(first.Entries) != first.Measured {
		t.Errorf("the first time %d are measured, %d loaded, %d listed", first.Measured, first.Loaded, len(first.Entries))
	}
	for _, e := range first.Entries {
		if _, ok := e.Of(e.Default); !ok || e.Bound <= 0 || len(e.Measured) == 0 || e.Measured[0].Median <= 0 {
			t.Errorf("entry %+v", e)
		}
		for _, m := range e.Measured {
			if m.Reason == "" || m.Samples > 0 && m.Samples < 3 {
				t.Errorf("%s, m %d: %+v", e.Op, e.M, m)
			}
		}
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "<svg") || strings.Contains(string(html), "ZgotmplZ") {
		t.Errorf("report: %v, %d bytes", err, len(html))
	}
	if after := text(); after != before {
		t.Errorf("tuning changed %q to %q", before, after)
	}
	got = swizzleEnv(t, env, "", "tune", "-m", path, "--kv", kv, "--budget", "1ns", "--json")
	if second := decode[tuned](t, got.stdout); got.status != 0 || second.Loaded != first.Measured || second.Measured != 0 || second.Profile != first.Profile {
		t.Errorf("the second time: status %d, %+v", got.status, second)
	}
	if !strings.Contains(got.stderr, fmt.Sprintf("%d were there", first.Measured)) && !strings.Contains(got.stderr, "nothing is measured") {
		t.Errorf("the second time it says %q", got.stderr)
	}
	e := first.Entries[0]
	got = swizzleEnv(t, env, "", "kernels", "explain", e.Op, "--m", fmt.Sprint(e.M), "--n", fmt.Sprint(e.N), "--k", fmt.Sprint(e.K))
	if got.status != 0 || !strings.Contains(got.stdout, "measured with") {
		t.Errorf("explain: %+v", got)
	}
	if len(e.Winner) > 0 && !strings.Contains(got.stdout, e.Winner[0]) {
		t.Errorf("explain doesn't show %s:\n%s", e.Winner[0], got.stdout)
	}
	// A profile that can't be read stops nothing.
	if err := os.WriteFile(first.Profile, []byte("{broken\n\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := text(); after != before {
		t.Errorf("with a broken profile %q", after)
	}
}

func TestTuneUsage(t *testing.T) {
	for _, c := range []struct {
		status int
		args   []string
	}{
		{2, []string{"tune", "--device", "cuda:0"}},
		{2, []string{"tune", "--budget", "-1s"}},
		{2, []string{"tune", "--budget", "soon"}},
		{2, []string{"tune", "-t", "-1"}},
		{1, []string{"tune", "-m", "nothing.gguf"}},
		{1, []string{"kernels", "explain", "nothing"}},
		{2, []string{"kernels", "explain", "gemm_q8_0", "--m", "0"}},
		{1, []string{"kernels", "bench", "nothing"}},
		{2, []string{"kernels", "bench", "add", "--m", "0"}},
	} {
		if got := swizzle(t, "", c.args...); got.status != c.status || got.stdout != "" || got.stderr == "" {
			t.Errorf("%q: %+v, want status %d", c.args, got, c.status)
		}
	}
	if text := ok(t, "", "kernels", "explain", "rmsnorm"); !strings.Contains(text, "why: ") {
		t.Errorf("explain rmsnorm: %s", text)
	}
}

package bench

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		test  Test
		name  string
		evals int
	}{
		{Test{Prompt: 512}, "pp512", 1},
		{Test{Gen: 128}, "tg128", 128},
		{Test{Prompt: 512, Gen: 128}, "pp512+tg128", 129},
		{Test{Prompt: 512, Depth: 4096}, "pp512 @ d4096", 1},
		{Test{Gen: 32, Depth: 1}, "tg32 @ d1", 32},
		{NewBatch(0, 1), "pp64 b1", 64},
		{NewBatch(0, 16), "pp64 b16", 4},
		{NewBatch(256, 48), "pp96 b48 @ d256", 2},
		{NewBatch(0, 100), "pp100 b100", 1},
		{NewEdit(), "edit256", 255},
		{Test{Kind: FirstToken, Prompt: 512}, "ttft512", 1},
		{Test{Kind: Load}, "load", 0},
	} {
		if got := c.test.Name(); got != c.name {
			t.Errorf("%+v is %q, want %q", c.test, got, c.name)
		}
		if got := c.test.Evals(); got != c.evals {
			t.Errorf("%s: %d evaluations, want %d", c.name, got, c.evals)
		}
		if timed := c.test.Timed(); timed != (c.name == "ttft512" || c.name == "load") {
			t.Errorf("%s: timed is %v", c.name, timed)
		}
	}
}

func TestSteps(t *testing.T) {
	var got [][2]int
	for at, n := range (Test{Depth: 10, Prompt: 7, Gen: 2, Batch: 3}).steps() {
		got = append(got, [2]int{at, n})
	}
	if diff := cmp.Diff([][2]int{{10, 3}, {13, 3}, {16, 1}, {17, 1}, {18, 1}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for at, n := range (Test{Kind: Edit, Prompt: 7, Gen: 2}).steps() {
		if at != 7 || n != 1 {
			t.Errorf("edit: %d tokens at %d", n, at)
		}
	}
}

func TestSessions(t *testing.T) {
	for _, c := range []struct {
		tests            []Test
		sessions, tokens int
	}{
		{nil, 1, 0},
		{[]Test{{Prompt: 512}, {Gen: 128}, {Prompt: 512, Gen: 2}}, 1, 514},
		{[]Test{{Depth: 300, Prompt: 512}, {Depth: 300, Gen: 1}, {Gen: 900}}, 2, 900},
		{[]Test{{Depth: 256, Gen: 1}, {Depth: 512, Gen: 1}}, 3, 513},
		{[]Test{NewEdit()}, 1, editRoom + 256},
	} {
		if sessions, tokens := Sessions(c.tests); sessions != c.sessions || tokens != c.tokens {
			t.Errorf("%+v: %d of %d, want %d of %d", c.tests, sessions, tokens, c.sessions, c.tokens)
		}
	}
}

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    Summary[float64]
	}{
		{nil, Summary[float64]{}},
		{[]float64{7}, Summary[float64]{7, 7, 7}},
		{[]float64{4, 1}, Summary[float64]{1, 2.5, 4}},
		{[]float64{9, 1, 2}, Summary[float64]{1, 2, 9}},
		{[]float64{8, 1, 2, 4}, Summary[float64]{1, 3, 8}},
		{[]float64{math.Inf(1), 0, -1}, Summary[float64]{-1, 0, math.Inf(1)}},
	} {
		before := append([]float64(nil), c.samples...)
		if got := Summarize(c.samples); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.samples, got, c.want)
		}
		if diff := cmp.Diff(before, c.samples); diff != "" {
			t.Errorf("the samples have changed: %s", diff)
		}
	}
	if got := Summarize([]time.Duration{math.MaxInt64, math.MaxInt64 - 2}); got.Median != math.MaxInt64-1 {
		t.Errorf("of large times: %+v", got)
	}
}

// result returns a result with so many tokens per second.
func result(peer []float64, rates ...int) Result {
	r := Result{Test: Test{Prompt: 512}, Peer: peer}
	for _, n := range rates {
		r.Samples = append(r.Samples, Sample{n, time.Second})
	}
	return r
}

func TestControl(t *testing.T) {
	peer := []float64{50}
	for _, c := range []struct {
		result Result
		ratio  float64
		noisy  bool
	}{
		{result(peer, 100, 100), 1, false},
		{result(peer, 105, 100), 1.05, false},
		{result(peer, 106, 100), 1.06, true},
		{result(peer, 100, 106), 100. / 106, true},
		{result(peer, 100, 100, 100, 900, 100, 100), 1, false}, // of medians
		{result(peer, 0, 0), math.NaN(), true},
		{result(nil, 200, 100), 2, false}, // nothing to compare with
	} {
		if got := c.result.Control(); got != c.ratio && !(math.IsNaN(got) && math.IsNaN(c.ratio)) {
			t.Errorf("%v: control %v, want %v", c.result.Rates(), got, c.ratio)
		}
		report := Report{Results: []Result{result(peer, 100, 101), c.result}}
		if err := report.CheckControl(); errors.Is(err, ErrNoise) != c.noisy {
			t.Errorf("%v: %v", c.result.Rates(), err)
		}
	}
	report := Report{Results: []Result{result(peer, 150, 100)}}
	if err := report.CheckControl(); err == nil || !strings.Contains(err.Error(), "more than 5 % (pp512 +50.0 %)") {
		t.Error(err)
	}
	one := result(peer, 100)
	if one.Control() != 0 || one.Ratio() != 2 {
		t.Errorf("control %v, ratio %v", one.Control(), one.Ratio())
	}
}

func TestParsePeer(t *testing.T) {
	const full = `loading…
[
  {"build_commit": "abc", "n_batch": 2048, "n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 3, "samples_ts": [ 2.5, 3.5 ]},
  {"n_batch": 2048, "n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ts": 7.25}
]
done`
	got, err := ParsePeer([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := []PeerResult{{Prompt: 512, Batch: 2048, Rates: []float64{2.5, 3.5}}, {Gen: 128, Depth: 4096, Batch: 2048, Rates: []float64{7.25}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range []struct{ text, want string }{
		{"", "no JSON array"},
		{"| model | t/s |", "no JSON array (llama-bench prints one with -o json): \"| model"},
		{"[]", "is empty"},
		{"[", "its JSON at offset 0: unexpected EOF"},
		{"x [1]", "its JSON at offset 2: json: cannot unmarshal number"},
		{`[{"n_prompt":"512"}]`, "cannot unmarshal string"},
		{`[{"avg_ts":1}]`, "test 0 has n_prompt 0 and n_gen 0"},
		{`[{"n_prompt":1,"n_gen":-1,"avg_ts":1}]`, "n_gen -1"},
		{`[{"n_prompt":1}]`, "samples_ts [0] and avg_ts 0"},
		{`[{"n_prompt":1,"samples_ts":[3,-1]}]`, "samples_ts [3 -1]"},
		{`[{"n_prompt":1,"avg_ts":1e999}]`, "cannot unmarshal number"},
		{`[{"n_prompt":99999999999999999999,"avg_ts":1}]`, "cannot unmarshal number"},
	} {
		if got, err := ParsePeer([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, %v; want %q", c.text, got, err, c.want)
		}
	}
}

func FuzzParsePeer(f *testing.F) {
	f.Add([]byte(`[{"n_prompt":512,"n_gen":0,"samples_ts":[2.5]}]`))
	f.Add([]byte(`[[`))
	f.Fuzz(func(t *testing.T, out []byte) {
		rows, err := ParsePeer(out)
		if (err == nil) != (len(rows) > 0) {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for _, r := range rows {
			if !(Summarize(r.Rates).Min > 0) || r.Prompt+r.Gen == 0 {
				t.Fatalf("%+v", r)
			}
		}
	})
}

func TestSame(t *testing.T) {
	peer := PeerResult{Prompt: 64, Depth: 8, Batch: 16}
	for _, c := range []struct {
		test Test
		want bool
	}{
		{Test{Prompt: 64, Depth: 8}, true},
		{Test{Prompt: 64, Depth: 8, Batch: 16}, true},
		{Test{Prompt: 64, Depth: 8, Batch: 8}, false},
		{Test{Prompt: 64}, false},
		{Test{Prompt: 64, Depth: 8, Gen: 1}, false},
		{Test{Kind: FirstToken, Prompt: 64, Depth: 8}, false},
	} {
		if got := peer.same(c.test); got != c.want {
			t.Errorf("%+v: %v", c.test, got)
		}
	}
}

// TestReadWork compares the weights with those that the engine packs.
func TestReadWork(t *testing.T) {
	w, err := ReadWork(smallModel, table(), "f16")
	if err != nil {
		t.Fatal(err)
	}
	info := open(t, nil).Info()
	if w.kv*int64(len(w.windows)) != info.KVBytesPerToken {
		t.Errorf("%d bytes of cache for each of %d layers, want %d in all", w.kv, len(w.windows), info.KVBytesPerToken)
	}
	// The model's head is its embedding, or the embedding is read by rows only.
	if got := w.body.bytes + w.head.bytes; got > info.WeightBytes || got < info.WeightBytes/2 {
		t.Errorf("%d bytes of weights, the engine has %d", got, info.WeightBytes)
	}
	if _, err := ReadWork("absent.gguf", table(), "f16"); err == nil {
		t.Error("an absent file")
	}
}

func TestUsage(t *testing.T) {
	w := Work{body: matrices{1000, 10}, head: matrices{100, 5}, windows: []int{0, 4}, kv: 2}
	for _, c := range []struct {
		depth, n   int
		bytes, ops int64
	}{
		{0, 1, 1000 + 100 + 2 + 2, 15},
		{9, 1, 1100 + 2*10 + 2*4, 15},
		{9, 2, 1100 + 2*11 + 2*5, 25},
		{0, 513, 2*1000 + 100 + 2*512 + 2*512 + 2*513 + 2*4, 5135},
	} {
		if bytes, ops := w.Eval(c.depth, c.n); bytes != c.bytes || ops != c.ops {
			t.Errorf("%d tokens after %d: %d bytes and %d operations, want %d and %d", c.n, c.depth, bytes, ops, c.bytes, c.ops)
		}
	}
	// One token: 1104 bytes in 1 s at that bandwidth, 15 operations in 0.5 s at the peak.
	want := Usage{BytesPerToken: 1104, OpsPerToken: 15, Bandwidth: 0.5, Int8: 0.25, Roofline: 0.5}
	if got := w.Usage(Test{Gen: 1}, 0.5, 1104, 30); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = Usage{BytesPerToken: 1104, OpsPerToken: 15}
	if got := w.Usage(Test{Gen: 1}, 0.5, 0, 0); got != want {
		t.Errorf("without limits %+v, want %+v", got, want)
	}
	if got := w.Usage(Test{Kind: Load}, 1, 1, 1); got != (Usage{}) {
		t.Errorf("of no tokens: %+v", got)
	}
}

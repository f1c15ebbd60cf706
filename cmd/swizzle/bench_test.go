package main

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/runtime/bench"
	"github.com/swizzle-rt/swizzle/runtime/engine"
)

func TestBar(t *testing.T) {
	for _, c := range []struct {
		share         float64
		blocks, ascii string
	}{
		{0, "", ""},
		{-1, "", ""},
		{1e-9, "▏", "#"},
		{1. / 240, "▏", "#"},
		{1. / 30, "█", "#"},
		{1.5 / 30, "█▌", "##"},
		{0.5, strings.Repeat("█", 15), strings.Repeat("#", 15)},
		{29.9 / 30, strings.Repeat("█", 29) + "▉", strings.Repeat("#", 30)},
		{1, strings.Repeat("█", 30), strings.Repeat("#", 30)},
		{7, strings.Repeat("█", 30), strings.Repeat("#", 30)},
	} {
		if got := blockBars.bar(c.share); got != c.blocks {
			t.Errorf("%v is %q, want %q", c.share, got, c.blocks)
		}
		if got := asciiBars.bar(c.share); got != c.ascii {
			t.Errorf("%v is %q, want %q", c.share, got, c.ascii)
		}
	}
}

func TestBarTable(t *testing.T) {
	rows := []row{
		{test: "pp512 @ d4096", median: "1402.4", least: "706.6", most: "1585.9", unit: "tok/s", eval: "366.24", read: "1.0 %", int8: "20.7 %", ratio: "3.10 x", roofline: 0.207},
		{test: "  peer", median: "452.0", least: "448.1", most: "460.3", unit: "tok/s", roofline: 0.067},
		{test: "load", median: "88.5", least: "87.0", most: "101.2", unit: "ms"},
	}
	want := `
TEST           MEDIAN    MIN     MAX         MS/EVAL   READ    INT8   RATIO
pp512 @ d4096  1402.4  706.6  1585.9  tok/s   366.24  1.0 %  20.7 %  3.10 x  ██████▎
  peer          452.0  448.1   460.3  tok/s                                  ██
load             88.5   87.0   101.2  ms
`
	if diff := cmp.Diff(want, "\n"+barTable(rows, blockBars)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := barTable(rows, asciiBars); strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) || !strings.Contains(text, "3.10 x  ######\n") {
		t.Error(text)
	}
}

func TestSpeaksUTF8(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a console there shows any character")
	}
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false},
		{map[string]string{"LANG": "en_GB.UTF-8"}, true},
		{map[string]string{"LANG": "C.utf8"}, true},
		{map[string]string{"LANG": "C"}, false},
		{map[string]string{"LC_ALL": "C", "LANG": "en_GB.UTF-8"}, false},
		{map[string]string{"LC_CTYPE": "de_CH.UTF-8", "LANG": "C"}, true},
	} {
		if got := speaksUTF8(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %v", c.env, got)
		}
	}
}

// measured returns a benchmark with a peer of 50 tokens a second, and these of our own.
func measured(rates ...int) *benchmark {
	b := &benchmark{info: engine.Info{Threads: 2, ISA: "portable", KV: "f16"}, name: "a\nmodel", peer: "peer"}
	r := bench.Result{Test: bench.Test{Prompt: 8}, Peer: []float64{50}}
	for _, n := range rates {
		r.Samples = append(r.Samples, bench.Sample{Tokens: n, Time: time.Second})
	}
	b.report = bench.Report{Results: []bench.Result{r}, ReadBandwidth: []float64{4e9}, PeakMemory: 3 << 20}
	return b
}

// TestRatio checks that ratios are printed, and that they are not after runs that differ too much.
func TestRatio(t *testing.T) {
	quiet := measured(100, 104)
	want := `a\nmodel, 0 B of weights, 0 parameters; portable, threads: 2, KV cache: f16, rounds: 1

TEST    MEDIAN    MIN    MAX         MS/EVAL   RATIO
pp8      102.0  100.0  104.0  tok/s  1000.00  2.04 x
  peer    50.0   50.0   50.0  tok/s

read bandwidth 4.0 GB/s (4.0 to 4.0); peak memory 3.0 MiB
`
	if diff := cmp.Diff(want, quiet.text(asciiBars)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if j := quiet.results()[0]; j.Ratio != 2.04 || j.Control != 100./104 || j.PeerMedian != 50 || j.MedianTS != 102 {
		t.Errorf("%+v", j)
	}
	noisy := measured(100, 106)
	text, markdown := noisy.text(asciiBars), noisy.markdown()
	if j := noisy.results()[0]; strings.Contains(text, " x\n") || strings.Contains(markdown, " x |") || j.Ratio != 0 || j.PeerMedian != 50 {
		t.Errorf("ratios of a noisy machine: %s%s%+v", text, markdown, j)
	}
	want = `
| pp8 | 102.0 | 100.0 | 104.0 | tok/s | 1000.00 |  |  |  | 2.04 x |
|   peer | 50.0 | 50.0 | 50.0 | tok/s |  |  |  |  |  |
`
	if got := quiet.markdown(); !strings.Contains(got, want) {
		t.Errorf("%s is not in\n%s", want, got)
	}
}

// TestBenchTests runs every kind of test on a small model and checks names and the shape of the JSON.
func TestBenchTests(t *testing.T) {
	out := ok(t, "", "bench", "-m", testFile("model.gguf"), "-p", "5,7", "-n", "3", "--pg", "4,2", "-d", "0,9", "-b", "1,40", "--ttft", "--load", "-r", "2", "-t", "1", "--json")
	var names []string
	for _, j := range decode[[]benchResult](t, out) {
		names = append(names, j.Test)
		if j.Bandwidth <= 0 || j.MedianNS <= 0 || len(j.SamplesNS) != 2 || j.MinNS > j.MedianNS || j.MedianNS > j.MaxNS {
			t.Errorf("%+v", j)
		}
		if timed := j.Test == "load" || j.Test == "ttft512"; timed != (len(j.SamplesTS) == 0) || timed != (j.MedianTS == 0) || (j.Test == "load") != (j.Bytes == 0) {
			t.Errorf("%+v", j)
		}
	}
	want := strings.Split("pp5,pp7,pp64 b1,pp80 b40,tg3,pp4+tg2,pp5 @ d9,pp7 @ d9,pp64 b1 @ d9,pp80 b40 @ d9,tg3 @ d9,pp4+tg2 @ d9,ttft512,load", ",")
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	var fields []map[string]any
	if err := json.Unmarshal([]byte(out), &fields); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		for _, name := range []string{"n_prompt", "n_gen", "n_depth", "n_threads", "avg_ts", "stddev_ts", "samples_ts", "samples_ns", "model_filename"} {
			if f[name] == nil {
				t.Errorf("%s has no %s", f["test"], name)
			}
		}
	}
	markdown := ok(t, "", "bench", "-m", testFile("model.gguf"), "-p", "5", "-n", "0", "-r", "1", "--markdown")
	if !strings.Contains(markdown, "\n| pp5 | ") {
		t.Error(markdown)
	}
}

// TestBenchPeer compares with a peer that prints fixed figures. Whether the machine is quiet enough for a ratio is not known.
func TestBenchPeer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	const peer = `test {model} = "$(echo {model})" && echo '[{"n_prompt":{p},"n_gen":0,"samples_ts":[2]},{"n_prompt":0,"n_gen":{n},"n_depth":{d},"avg_ts":{reps}}]' | sed s/n_threads/{t}/`
	got := swizzle(t, "", "bench", "-m", testFile("model.gguf"), "-p", "5", "-n", "3", "-r", "2", "-t", "1", "--json", "--vs", peer)
	results := decode[[]benchResult](t, got.stdout)
	if len(results) != 2 || results[0].PeerMedian != 2 || results[1].PeerMedian != 1 || len(results[0].PeerTS) != 2 || len(results[0].SamplesTS) != 4 {
		t.Fatalf("%+v %s", results, got.stderr)
	}
	for _, r := range results {
		switch {
		case got.status == 0 && r.Ratio == r.MedianTS/r.PeerMedian && got.stderr == "":
		case got.status == statusFailure && r.Ratio == 0 && strings.Contains(got.stderr, "no ratio: too noisy to compare: "):
		default:
			t.Errorf("status %d, stderr %q, %+v", got.status, got.stderr, r)
		}
	}
	got = swizzle(t, "", "bench", "-m", testFile("model.gguf"), "-p", "5", "-n", "0", "-r", "1", "--vs", "echo nothing")
	if got.status != statusFailure || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	checkErrorLine(t, []string{"bench", "--vs"}, got.stderr, `peer "echo nothing": its output has no JSON array`)
}

func TestBenchUsage(t *testing.T) {
	model := testFile("model.gguf")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--n-prompt=-1"}, "-p is -1, expected 0 to 16777216 tokens"},
		{[]string{"-p", "5,x"}, "--n-prompt"},
		{[]string{"-n", "99999999"}, "-n is 99999999, expected 0 to"},
		{[]string{"--n-depth=-4"}, "-d is -4, expected 0 to"},
		{[]string{"-b", "0"}, "-b is 0, expected 1 to"},
		{[]string{"--pg", "5"}, `--pg is "5", expected two numbers`},
		{[]string{"--pg", "5,0"}, `--pg is "5,0", expected two numbers`},
		{[]string{"-p", "0", "-n", "0", "--load", "--vs", "x"}, "expected numbers of tokens"},
		{[]string{"--json", "--markdown"}, "can't be used together"},
	} {
		args := append([]string{"bench", "-m", model}, test.args...)
		got := swizzle(t, "", args...)
		if got.status != statusUsage || got.stdout != "" {
			t.Errorf("%q: status %d, stdout %q", args, got.status, got.stdout)
		}
		checkErrorLine(t, args, got.stderr, test.want)
	}
}

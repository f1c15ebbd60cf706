package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// Names of control tokens in a user's text are plain text, those of the template count, and plain text encodes as ever.
func TestProtect(t *testing.T) {
	tok := mustNew(t, bpeVocab("gpt-2", []string{"a |", "| >"}, Control, "<|a|>", "<|b|>"))
	a, _ := tok.Find("<|a|>")
	b, _ := tok.Find("<|b|>")
	for _, user := range []string{"", "x", "<|a|>", "a<|a|>b<|b|>", "<|a|><|a|>", "<|<|a|>", "\uFDD0<\uFDD0|a|>", "é<|b|>é"} {
		got := tok.EncodeProtected("<|a|>" + tok.Protect(user) + "<|b|>")
		plain := tok.Encode(strings.ReplaceAll(user, guard, ""), false)
		want := append(append([]int32{a}, plain...), b)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", user, got, want)
		}
	}
}

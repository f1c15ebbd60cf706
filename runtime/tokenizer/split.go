package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A splitter returns the length of the first pre-token of a text; neither is empty. Applied again to the rest it cuts
// the text in linear time. Bytes that are no UTF-8 are of class other.
type splitter func(text string) int

// preTokenizer is how vocabularies of some names cut text.
type preTokenizer struct {
	names        []string // values of tokenizer.ggml.pre
	split        splitter
	ignoreMerges bool // Vocab.IgnoreMerges of these names
	addBOS       bool // Vocab.AddBOS where the file says nothing
}

// preTokenizers are the names supported. Names with one rule are models that were published with equal rules.
var preTokenizers = []preTokenizer{
	{names: []string{"gpt-2", "default", "", "phi-2", "mpt", "olmo", "exaone4"}, split: splitGPT2},
	{names: []string{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}, split: splitSmolLM},
	{names: []string{"llama-bpe", "llama3", "llama-v3", "lfm2", "falcon3", "falcon-h1", "pixtral"}, split: splitLlama3, ignoreMerges: true, addBOS: true},
	{names: []string{"smaug-bpe", "dbrx"}, split: splitLlama3},
	{names: []string{"qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez"}, split: splitQwen2},
}

func findPreTokenizer(name string) (preTokenizer, error) {
	var names []string
	for _, p := range preTokenizers {
		for _, n := range p.names {
			if n == name {
				return p, nil
			}
			if n != "" {
				names = append(names, n)
			}
		}
	}
	return preTokenizer{}, fmt.Errorf("tokenizer.ggml.pre %.64q is not supported; supported are %s", name, strings.Join(names, ", "))
}

// class is what the rules know of a rune.
type class uint8

const (
	none   class = iota // beyond the end of the text
	letter              // \p{L}, without combining marks
	number              // \p{N}
	space               // \s, the property White_Space
	other               // all else
)

func classOf(r rune) class {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		return letter
	case '0' <= r && r <= '9':
		return number
	case unicode.IsSpace(r):
		return space
	case r < 0x80:
		return other
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case 0x2EBF0 <= r && r <= 0x2EE5D: // ideographs of Unicode 15.1, newer than package unicode
		return letter
	}
	return other
}

// first returns the first rune of text, its class and its length, 0 at the end of the text.
func first(text string) (r rune, c class, n int) {
	if text == "" {
		return 0, none, 0
	}
	r, n = utf8.DecodeRuneInString(text)
	return r, classOf(r), n
}

// run returns the length of the first runes of text that are of class c.
func run(text string, c class) int {
	i := 0
	for {
		_, got, n := first(text[i:])
		if got != c {
			return i
		}
		i += n
	}
}

// splitGPT2 is the rule
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func splitGPT2(text string) int {
	if n := contraction(text, 0); n > 0 {
		return n
	}
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if _, c, _ := first(text[start:]); c != none && c != space {
		return start + run(text[start:], c)
	}
	return spaces(text, none)
}

// splitSmolLM cuts out each \p{N} alone and applies the rule of splitGPT2 to the texts between them, so white space
// before a number is taken like white space at the end.
func splitSmolLM(text string) int {
	if n := contraction(text, 0); n > 0 {
		return n
	}
	_, c, n := first(text)
	if c == number {
		return n
	}
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if _, c, _ := first(text[start:]); c == letter || c == other {
		return start + run(text[start:], c)
	}
	return spaces(text, number)
}

// splitLlama3 is the rule
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitLlama3(text string) int { return splitCL100K(text, 3) }

// splitQwen2 is the rule of splitLlama3 with \p{N} alone.
func splitQwen2(text string) int { return splitCL100K(text, 1) }

// splitCL100K is the common part of splitLlama3 and splitQwen2: numbers are cut after a count of digits.
func splitCL100K(text string, digits int) int {
	if n := contraction(text, 0x20); n > 0 {
		return n
	}
	r, c, n := first(text)
	_, second, _ := first(text[n:])
	switch {
	case c == letter:
		return run(text, letter)
	case second == letter && c != number && r != '\r' && r != '\n':
		return n + run(text[n:], letter)
	case c == number:
		for i := 1; i < digits; i++ {
			_, c, size := first(text[n:])
			if c != number {
				break
			}
			n += size
		}
		return n
	case c == other:
		n = run(text, other)
	case r == ' ' && second == other:
		n = 1 + run(text[1:], other)
	default:
		if n := run(text, space); strings.ContainsAny(text[:n], "\r\n") {
			return strings.LastIndexAny(text[:n], "\r\n") + 1
		}
		return spaces(text, none)
	}
	for n < len(text) && (text[n] == '\r' || text[n] == '\n') {
		n++
	}
	return n
}

// spaces is the rule \s+(?!\S)|\s+: a run of white space without its last character, which goes with the word after
// it, unless the run is that one character or at the end of the text. A rune of class end ends the text as well.
func spaces(text string, end class) int {
	n := run(text, space)
	_, next, _ := first(text[n:])
	if next == none || next == end {
		return n
	}
	_, last := utf8.DecodeLastRuneInString(text[:n])
	if last == n {
		return n
	}
	return n - last
}

// contraction is the rule 's|'t|'re|'ve|'m|'ll|'d. Bits of fold do not count: 0x20 ignores the case of ASCII letters.
func contraction(text string, fold byte) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	second := text[1] | fold
	switch second {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) > 2 {
		switch third := text[2] | fold; {
		case (second == 'r' || second == 'v') && third == 'e', second == 'l' && third == 'l':
			return 3
		}
	}
	return 0
}

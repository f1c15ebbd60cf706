package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Each text is the concatenation of the pieces it must be cut into. The pieces are those of the regular expressions in
// the comments of the splitters, found with Python's regex module.
var splitTests = []struct {
	pre   string
	texts [][]string
}{
	{"gpt-2", [][]string{
		{"Hello", " world"},
		{"it", "'s", " ", " a", "\t", "tab", "\n\n"},
		{"I", "'", "LL", " don", "'t", " we", "'", "Ve", " '", "sam", " ''", "s", " '"},
		{"x", "'", "RE", " o", "'re", "'"},
		{"1234567890"},
		{" 12", " ", " 345", "  ", " 6"},
		{"a", "1", "b", "22", "c", "333"},
		{"½Ⅷ٣२"},
		{"  ", " leading"},
		{"trailing", "   "},
		{"a", "\r\n\r", "\n", "b", " \r\n", " c"},
		{"\n\n ", " x", "\n  \n", " y"},
		{"\t", "\t", "abc", "\t", "def"},
		{" !", "abc", " !!", " x", "?!", "\n", "\n", "?"},
		{"foo", "_", "bar", "(", "baz", ")==", "1", ";", "\r\n"},
		{"e", "\u0301", "क", "\u094d", "ष"},
		{"中文", " 日本語テスト"},
		{"🙂👨\u200d👩", " ok"},
		{"a", "\u00a0", "b", "\u3000", "\u3000", "c", "\u2028", "d", "\u0085", "e"},
		{"\u2003", " 7"},
		{"a", "  ", "\n", "1"},
		{"'"},
		{"'", " '", "s"},
	}},
	{"smollm", [][]string{
		{"Hello", " world"},
		{"it", "'s", " ", " a", "\t", "tab", "\n\n"},
		{"I", "'", "LL", " don", "'t", " we", "'", "Ve", " '", "sam", " ''", "s", " '"},
		{"x", "'", "RE", " o", "'re", "'"},
		{"1", "2", "3", "4", "5", "6", "7", "8", "9", "0"},
		{" ", "1", "2", "  ", "3", "4", "5", "   ", "6"},
		{"a", "1", "b", "2", "2", "c", "3", "3", "3"},
		{"½", "Ⅷ", "٣", "२"},
		{"  ", " leading"},
		{"trailing", "   "},
		{"a", "\r\n\r", "\n", "b", " \r\n", " c"},
		{"\n\n ", " x", "\n  \n", " y"},
		{"\t", "\t", "abc", "\t", "def"},
		{" !", "abc", " !!", " x", "?!", "\n", "\n", "?"},
		{"foo", "_", "bar", "(", "baz", ")==", "1", ";", "\r\n"},
		{"e", "\u0301", "क", "\u094d", "ष"},
		{"中文", " 日本語テスト"},
		{"🙂👨\u200d👩", " ok"},
		{"a", "\u00a0", "b", "\u3000", "\u3000", "c", "\u2028", "d", "\u0085", "e"},
		{"\u2003 ", "7"},
		{"a", "  \n", "1"},
		{"'"},
		{"'", " '", "s"},
	}},
	{"llama-bpe", [][]string{
		{"Hello", " world"},
		{"it", "'s", " ", " a", "\ttab", "\n\n"},
		{"I", "'LL", " don", "'t", " we", "'Ve", " '", "sam", " ''", "s", " '"},
		{"x", "'RE", " o", "'re", "'"},
		{"123", "456", "789", "0"},
		{" ", "12", " ", " ", "345", "  ", " ", "6"},
		{"a", "1", "b", "22", "c", "333"},
		{"½Ⅷ٣", "२"},
		{"  ", " leading"},
		{"trailing", "   "},
		{"a", "\r\n\r\n", "b", " \r\n", " c"},
		{"\n\n", " ", " x", "\n  \n", " y"},
		{"\t", "\tabc", "\tdef"},
		{" !", "abc", " !!", " x", "?!\n\n", "?"},
		{"foo", "_bar", "(baz", ")==", "1", ";\r\n"},
		{"e", "\u0301क", "\u094dष"},
		{"中文", " 日本語テスト"},
		{"🙂👨\u200d👩", " ok"},
		{"a", "\u00a0b", "\u3000", "\u3000c", "\u2028d", "\u0085e"},
		{"\u2003", " ", "7"},
		{"a", "  \n", "1"},
		{"'"},
		{"'", " '", "s"},
	}},
	{"qwen2", [][]string{
		{"Hello", " world"},
		{"it", "'s", " ", " a", "\ttab", "\n\n"},
		{"I", "'LL", " don", "'t", " we", "'Ve", " '", "sam", " ''", "s", " '"},
		{"x", "'RE", " o", "'re", "'"},
		{"1", "2", "3", "4", "5", "6", "7", "8", "9", "0"},
		{" ", "1", "2", " ", " ", "3", "4", "5", "  ", " ", "6"},
		{"a", "1", "b", "2", "2", "c", "3", "3", "3"},
		{"½", "Ⅷ", "٣", "२"},
		{"  ", " leading"},
		{"trailing", "   "},
		{"a", "\r\n\r\n", "b", " \r\n", " c"},
		{"\n\n", " ", " x", "\n  \n", " y"},
		{"\t", "\tabc", "\tdef"},
		{" !", "abc", " !!", " x", "?!\n\n", "?"},
		{"foo", "_bar", "(baz", ")==", "1", ";\r\n"},
		{"e", "\u0301क", "\u094dष"},
		{"中文", " 日本語テスト"},
		{"🙂👨\u200d👩", " ok"},
		{"a", "\u00a0b", "\u3000", "\u3000c", "\u2028d", "\u0085e"},
		{"\u2003", " ", "7"},
		{"a", "  \n", "1"},
		{"'"},
		{"'", " '", "s"},
	}},
}

func split(t testing.TB, pre, text string) []string {
	t.Helper()
	p, err := findPreTokenizer(pre)
	if err != nil {
		t.Fatal(err)
	}
	var pieces []string
	for text != "" {
		n := p.split(text)
		if n < 1 || n > len(text) {
			t.Fatalf("%s: piece of %d bytes at %.20q, which has %d", pre, n, text, len(text))
		}
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

func TestSplit(t *testing.T) {
	for _, tt := range splitTests {
		for _, want := range tt.texts {
			text := strings.Join(want, "")
			if got := split(t, tt.pre, text); !slices.Equal(got, want) {
				t.Errorf("%s: %q\n got %q\nwant %q", tt.pre, text, got, want)
			}
		}
	}
}

// Bytes that are no UTF-8 are symbols, each a character of its own.
func TestSplitInvalidUTF8(t *testing.T) {
	for _, pre := range []string{"gpt-2", "smollm", "llama-bpe", "qwen2"} {
		got := split(t, pre, "a \xff\xc3 b")
		if want := []string{"a", " \xff\xc3", " b"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", pre, got, want)
		}
	}
}

// Ideographs that Unicode 15.1 added are letters, whatever the version of package unicode.
func TestClassNewIdeographs(t *testing.T) {
	for r, want := range map[rune]class{0x2EBEF: other, 0x2EBF0: letter, 0x2EE5D: letter, 0x2EE5E: other, '\u0301': other, '\u00a0': space, 'Ⅷ': number} {
		if got := classOf(r); got != want {
			t.Errorf("%U: class %d, want %d", r, got, want)
		}
	}
}

func TestSplitLinear(t *testing.T) {
	const n = 1 << 17
	for _, tt := range splitTests {
		for _, unit := range []string{" ", "\n", "\t \n", "'", "a", "1", "_", "   1", " \n1", "\xff"} {
			text := strings.Repeat(unit, n)
			start := time.Now()
			split(t, tt.pre, text)
			if d := time.Since(start); d > time.Second {
				t.Errorf("%s: %q x %d takes %v", tt.pre, unit, n, d)
			}
		}
	}
}

func TestUnknownPreTokenizer(t *testing.T) {
	_, err := findPreTokenizer("kimi-k2")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"kimi-k2"`, "gpt-2", "smollm", "llama-bpe", "qwen2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %s", err, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, tt := range splitTests {
		for _, pieces := range tt.texts {
			f.Add(strings.Join(pieces, ""))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tt := range splitTests {
			if got := strings.Join(split(t, tt.pre, text), ""); got != text {
				t.Errorf("%s: pieces of %q make %q", tt.pre, text, got)
			}
		}
	})
}

package tokenizer

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/swizzle-rt/swizzle/runtime/gguf"
)

// bpeVocab has a token for each byte, id equal to the byte, then what the merges make, then more tokens of a type.
func bpeVocab(pre string, merges []string, kind int32, more ...string) Vocab {
	v := Vocab{Model: "gpt2", Pre: pre, Merges: merges, BOS: -1, EOS: -1, EOT: -1, EOM: -1, UNK: -1, PAD: -1}
	for _, r := range byteRunes {
		v.Tokens = append(v.Tokens, string(r))
	}
	for _, m := range merges {
		left, right, _ := strings.Cut(m, " ")
		if text := left + right; !slices.Contains(v.Tokens, text) {
			v.Tokens = append(v.Tokens, text)
		}
	}
	for range v.Tokens {
		v.Types = append(v.Types, Normal)
	}
	for _, text := range more {
		v.Tokens = append(v.Tokens, text)
		v.Types = append(v.Types, kind)
	}
	return v
}

// spmVocab has <unk>, <s>, </s>, a token for each byte, then pieces with scores.
func spmVocab(spacePrefix bool, pieces map[string]float32) Vocab {
	v := Vocab{Model: "llama", BOS: 1, EOS: 2, EOT: -1, EOM: -1, UNK: 0, PAD: -1, AddBOS: true, AddSpacePrefix: spacePrefix}
	add := func(text string, score float32, kind int32) {
		v.Tokens, v.Scores, v.Types = append(v.Tokens, text), append(v.Scores, score), append(v.Types, kind)
	}
	add("<unk>", 0, Unknown)
	add("<s>", 0, Control)
	add("</s>", 0, Control)
	for b := range 256 {
		add(byteName(byte(b)), 0, Byte)
	}
	var names []string
	for text := range pieces {
		names = append(names, text)
	}
	slices.Sort(names)
	for _, text := range names {
		add(text, pieces[text], Normal)
	}
	return v
}

func mustNew(t testing.TB, v Vocab) *Tokenizer {
	t.Helper()
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// texts returns the tokens' texts joined by "|".
func texts(tok *Tokenizer, ids []int32) string {
	var s []string
	for _, id := range ids {
		s = append(s, tok.Text(id))
	}
	return strings.Join(s, "|")
}

func TestEncodeBPE(t *testing.T) {
	merges := []string{"b c", "a b", "ab c", "Ġ a", "Ġ Ġ", "ĠĠ ĠĠ", "Ġ ĠĠĠ", "a bc"}
	v := bpeVocab("gpt-2", merges[:6], Control, "<|im_start|>", "<|im_end|>")
	v.Tokens = append(v.Tokens, "[tool]", "ĠĠĠ", "Ġabc")
	v.Types = append(v.Types, UserDefined, Normal, Normal)
	v.Merges = append(v.Merges, "ĠĠ Ġ")
	ignoring := v
	ignoring.IgnoreMerges = true
	plain, ignore := mustNew(t, v), mustNew(t, ignoring)
	for _, tt := range []struct {
		tok     *Tokenizer
		text    string
		special bool
		want    string
	}{
		{plain, "", true, ""},
		{plain, "abc", true, "a|bc"},   // by rank, not from the left
		{plain, "abab", true, "ab|ab"}, // of equal rank from the left
		{plain, " abc", true, "Ġa|bc"}, // Ġabc is a token that no merge makes
		{ignore, " abc", true, "Ġabc"}, // unless merges are ignored
		{ignore, " abcd", true, "Ġa|bc|d"},
		{plain, "     !", true, "ĠĠĠĠ|Ġ|!"}, // cut before the last space
		{plain, "a<|im_end|>b", true, "a|<|im_end|>|b"},
		{plain, "a<|im_end|>b", false, "a|<|||i|m|_|e|n|d|||>|b"},
		{plain, "<|im_start|><|im_end|>", true, "<|im_start|>|<|im_end|>"},
		{plain, "a[tool]", false, "a|[tool]"},
		{plain, "\xff\x00\n", false, "ÿ|Ā|Ċ"},
	} {
		if got := texts(tt.tok, tt.tok.Encode(tt.text, tt.special)); got != tt.want {
			t.Errorf("Encode(%q, %v) = %s, want %s", tt.text, tt.special, got, tt.want)
		}
	}
}

// Control tokens that merges could make, or that are a byte or a whole pre-token, are not made from plain text.
// TestHugeWord bounds the memory for a text that is one word, so that a text of a size that fits does not use up the machine.
func TestHugeWord(t *testing.T) {
	word := strings.Repeat("helloworld", 100_000)
	for _, tok := range []*Tokenizer{
		mustNew(t, bpeVocab("", []string{"h e", "l l", "he ll", "hell o"}, Control, "<|im_end|>")),
		mustNew(t, spmVocab(false, map[string]float32{"he": -1, "ll": -2, "hell": -3, "hello": -4})),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ids := tok.Encode(word, false)
		runtime.ReadMemStats(&after)
		if got := tok.Decode(ids); got != word {
			t.Errorf("%s: not the same text", tok.vocab.Model)
		}
		if n := (after.TotalAlloc - before.TotalAlloc) / uint64(len(word)); n > 32 {
			t.Errorf("%s: %d bytes of memory for each of the text", tok.vocab.Model, n)
		}
	}
}

func TestControlTokensAreNotMadeFromText(t *testing.T) {
	v := bpeVocab("gpt-2", []string{"a b", "ab c"}, Control, "stop")
	v.IgnoreMerges = true
	for _, name := range []string{"ab", "x"} {
		v.Types[slices.Index(v.Tokens, name)] = Control
	}
	tok := mustNew(t, v)
	for text, want := range map[string]string{"ab": "a|b", "abc": "abc", "stop": "s|t|o|p", "axb": "a|b"} {
		if got := texts(tok, tok.Encode(text, false)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got := texts(tok, tok.Encode("stop ab", true)); got != "stop|Ġ|ab" {
		t.Errorf("with specials: got %s", got)
	}
}

// A merge line is cut at its first space, but the left part is never empty: runs of spaces load whether they are
// spelled in the byte alphabet or not.
func TestMergesOfSpaces(t *testing.T) {
	v := bpeVocab("gpt-2", []string{"Ġ Ġ", "Ġ ĠĠ", "Ġ ĠĠĠ"}, Normal, " ", "  ", "   ")
	v.Merges = append(v.Merges, "   ", "    ")
	tok := mustNew(t, v)
	if got := texts(tok, tok.Encode("     x", false)); got != "ĠĠ|ĠĠ|Ġ|x" {
		t.Errorf("got %s", got)
	}
	if got := len(tok.merges); got != 5 {
		t.Errorf("%d merges, want 5", got)
	}
}

func TestEncodeSPM(t *testing.T) {
	pieces := map[string]float32{"▁": -10, "a": -10, "b": -10, "c": -10, "s": -10, ">": -10, "<": -10, "</": -1, "s>": -1, "ab": -3, "bc": -2, "▁▁": -4, "▁a": -5, "é": -20}
	v := spmVocab(false, pieces)
	v.Tokens, v.Scores, v.Types = append(v.Tokens, "   ", "cc"), append(v.Scores, -99, float32(math.Inf(1))), append(v.Types, UserDefined, Unused)
	plain := mustNew(t, v)
	v.AddSpacePrefix = true
	prefix := mustNew(t, v)
	for _, tt := range []struct {
		tok     *Tokenizer
		text    string
		special bool
		want    string
	}{
		{plain, "", true, ""},
		{prefix, "", true, ""},
		{plain, "abc", true, "a|bc"}, // by score
		{plain, "aab", true, "a|ab"},
		{plain, "  a", true, "▁▁|a"},
		{plain, "   a", true, "   |a"}, // the user-defined run of spaces
		{prefix, "a", true, "▁a"},
		{prefix, "a</s>a", true, "▁a|</s>|▁a"},
		{plain, "</s>", true, "</s>"},
		{plain, "</s>", false, "</|s>"}, // not from its parts, though the name is in the vocabulary
		{plain, "<unk>", false, "<|<0x75>|<0x6E>|<0x6B>|>"},
		{plain, "é", false, "é"},
		{plain, "è\n", false, "<0xC3>|<0xA8>|<0x0A>"},
		{plain, "\xffa\xc3", false, "<0xFF>|a|<0xC3>"},
		{plain, "ccc", false, "cc|c"},
	} {
		if got := texts(tt.tok, tt.tok.Encode(tt.text, tt.special)); got != tt.want {
			t.Errorf("Encode(%q, %v) = %s, want %s", tt.text, tt.special, got, tt.want)
		}
	}
}

// Without byte tokens a character becomes one unknown token.
func TestEncodeSPMUnknown(t *testing.T) {
	v := Vocab{Model: "llama", Tokens: []string{"<unk>", "a"}, Scores: []float32{0, 0}, Types: []int32{Unknown, Normal}, BOS: -1, EOS: -1, EOT: -1, EOM: -1, PAD: -1}
	if got, want := mustNew(t, v).Encode("aéa", true), []int32{1, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	v.UNK = -1
	if got, want := mustNew(t, v).Encode("aéa", true), []int32{1, 1}; !slices.Equal(got, want) {
		t.Errorf("without unknown token: got %v, want %v", got, want)
	}
	v.UNK, v.Types = 0, []int32{Control, Normal}
	if got, want := mustNew(t, v).Encode("aéa", true), []int32{1, 1}; !slices.Equal(got, want) {
		t.Errorf("unknown token is a control token: got %v, want %v", got, want)
	}
}

func TestDecode(t *testing.T) {
	bpe := mustNew(t, bpeVocab("", []string{"Ġ a"}, Control, "<|im_end|>"))
	spm := mustNew(t, spmVocab(true, map[string]float32{"▁": -1, "▁a": -1, "a": -1}))
	for _, tt := range []struct {
		tok  *Tokenizer
		ids  []int32
		want string
	}{
		{bpe, nil, ""},
		{bpe, []int32{256, 257, 255, -1, 258, math.MaxInt32}, " a\xff"},
		{spm, nil, ""},
		{spm, spm.Encode("a a", false), "a a"},
		{spm, spm.Encode("  a", false), "  a"},
		{spm, append([]int32{1}, spm.Encode("aé", false)...), "aé"}, // BOS is not the text's beginning
		{spm, []int32{0, 1, 2, math.MinInt32}, ""},
	} {
		if got := tt.tok.Decode(tt.ids); got != tt.want {
			t.Errorf("Decode(%v) = %q, want %q", tt.ids, got, tt.want)
		}
	}
	if got := spm.Piece(3 + 0xC3); string(got) != "\xc3" {
		t.Errorf("piece of <0xC3> is %q", got)
	}
	if got := bpe.Piece(257); got != nil {
		t.Errorf("piece of a control token is %q", got)
	}
}

// An added token whose text is outside the byte alphabet is its own text.
func TestDecodeOutsideAlphabet(t *testing.T) {
	tok := mustNew(t, bpeVocab("", nil, Normal, "a b", "日本", "ĠČ日"))
	for i, want := range []string{"a b", "日本", "ĠČ日"} {
		if got := string(tok.Piece(int32(256 + i))); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSpecialTokens(t *testing.T) {
	v := bpeVocab("qwen2", nil, Control, "<|endoftext|>", "<|im_end|>", "<tool>")
	v.Tokens, v.Types = append(v.Tokens, "</s>"), append(v.Types, Normal)
	v.BOS, v.EOS, v.PAD = 256, 256, 9999
	tok := mustNew(t, v)
	for id, want := range map[int32]struct{ eog, control bool }{
		-1: {}, 0: {}, 256: {true, true}, 257: {true, true}, 258: {false, true}, 259: {}, 260: {}, math.MaxInt32: {},
	} {
		if got := tok.IsEOG(id); got != want.eog {
			t.Errorf("IsEOG(%d) = %v", id, got)
		}
		if got := tok.IsControl(id); got != want.control {
			t.Errorf("IsControl(%d) = %v", id, got)
		}
	}
	if tok.EOT() != 257 || tok.BOS() != 256 || tok.EOS() != 256 || tok.Size() != 260 || tok.AddBOS() || tok.AddEOS() {
		t.Errorf("EOT %d, BOS %d, EOS %d, Size %d, AddBOS %v, AddEOS %v", tok.EOT(), tok.BOS(), tok.EOS(), tok.Size(), tok.AddBOS(), tok.AddEOS())
	}
	if id, ok := tok.Find("<tool>"); id != 258 || !ok {
		t.Errorf("Find: %d, %v", id, ok)
	}
	if _, ok := tok.Find("<tools>"); ok {
		t.Error("Find finds a token that is not there")
	}
	if got := tok.Text(-1) + tok.Text(260); got != "" {
		t.Errorf("text outside the vocabulary: %q", got)
	}

	v.Types = nil // then names decide
	tok = mustNew(t, v)
	if !tok.IsControl(257) || !tok.IsControl(256) || tok.IsControl(258) || !tok.IsEOG(259) {
		t.Error("control tokens of a vocabulary without types")
	}
}

func TestMatcherTakesTheLongest(t *testing.T) {
	v := bpeVocab("", nil, Control, "<a", "<a>", "<a><b>", "<b", "b>c")
	tok := mustNew(t, v)
	for text, want := range map[string]string{
		"<a":         "<a",
		"<a><b":      "<a>|<b",
		"<a><b>c":    "<a><b>|c",
		"x<a>y<ab>c": "x|<a>|y|<a|b>c",
		"<<a":        "<|<a",
	} {
		if got := texts(tok, tok.Encode(text, true)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestNewErrors(t *testing.T) {
	bpe := func(change func(*Vocab)) Vocab {
		v := bpeVocab("", []string{"a b"}, Normal)
		change(&v)
		return v
	}
	spm := func(change func(*Vocab)) Vocab {
		v := spmVocab(false, nil)
		change(&v)
		return v
	}
	for _, tt := range []struct {
		vocab Vocab
		want  []string
	}{
		{bpe(func(v *Vocab) { v.Tokens = nil }), []string{"tokenizer.ggml.tokens", "no tokens"}},
		{bpe(func(v *Vocab) { v.Types = v.Types[:10] }), []string{"tokenizer.ggml.token_type", "10", "257"}},
		{bpe(func(v *Vocab) { v.Types = []int32{} }), []string{"tokenizer.ggml.token_type", "0 types"}},
		{spm(func(v *Vocab) { v.Scores = v.Scores[:258] }), []string{"tokenizer.ggml.scores", "258", "259"}},
		{spm(func(v *Vocab) { v.Scores = nil }), []string{"tokenizer.ggml.scores", "0 scores"}},
		{bpe(func(v *Vocab) { v.Model = "bert" }), []string{"tokenizer.ggml.model", "bert", "gpt2", "llama"}},
		{bpe(func(v *Vocab) { v.Pre = "nope" }), []string{"tokenizer.ggml.pre", "nope", "smollm"}},
		{bpe(func(v *Vocab) { v.EOS = 257 }), []string{"tokenizer.ggml.eos_token_id 257", "257 tokens"}},
		{bpe(func(v *Vocab) { v.BOS = -2 }), []string{"tokenizer.ggml.bos_token_id -2"}},
		{bpe(func(v *Vocab) { v.Merges = []string{"ab"} }), []string{"tokenizer.ggml.merges", `merge 0 is "ab"`}},
		{bpe(func(v *Vocab) { v.Merges = []string{"a b", ""} }), []string{"merge 1", `""`}},
		{bpe(func(v *Vocab) { v.Merges = []string{" ab"} }), []string{"merge 0", `" ab"`}},
		{bpe(func(v *Vocab) { v.Merges = []string{"a c"} }), []string{"merge 0", `"ac"`, "must be tokens"}},
		{bpe(func(v *Vocab) { v.Tokens[0] = "a" }), []string{"tokens 0 and 97", `"a"`}},
		{spm(func(v *Vocab) { v.Tokens[3] = "<0x-1>" }), []string{"byte token 3", `"<0x-1>"`, "<0x0A>"}},
		{spm(func(v *Vocab) { v.Tokens[3] = "<0xZZ>" }), []string{"byte token 3"}},
		{spm(func(v *Vocab) { v.Tokens[3] = "<0x0>" }), []string{"byte token 3"}},
	} {
		_, err := New(tt.vocab)
		if err == nil {
			t.Errorf("no error, want one with %q", tt.want)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q lacks %q", err, want)
			}
		}
	}
}

// Tokens without text are in no text; malformed byte names of normal tokens are text.
func TestOddTokens(t *testing.T) {
	v := spmVocab(false, map[string]float32{"<0xZZ>": 0, "<0x-1>": 0, "": 0})
	v.Tokens, v.Scores, v.Types = append(v.Tokens, ""), append(v.Scores, 0), append(v.Types, Control)
	tok := mustNew(t, v)
	id, _ := tok.Find("<0xZZ>")
	if got := tok.Decode([]int32{id}); got != "<0xZZ>" {
		t.Errorf("got %q", got)
	}
	if got := tok.Decode(tok.Encode("<0x-1>a", true)); got != "<0x-1>a" {
		t.Errorf("got %q", got)
	}
}

func TestFromGGUF(t *testing.T) {
	dir := t.TempDir()
	load := func(set map[string]any) (*Tokenizer, error) {
		t.Helper()
		var w gguf.Writer
		w.Set("general.architecture", "llama")
		for key, value := range set {
			w.Set("tokenizer.ggml."+key, value)
		}
		var b bytes.Buffer
		if _, err := w.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "v.gguf")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return FromGGUF(f)
	}

	s := spmVocab(true, map[string]float32{"▁": -2, "a": -2, "▁a": -1})
	spm, err := load(map[string]any{"model": "llama", "tokens": s.Tokens, "scores": s.Scores, "token_type": s.Types})
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(spm, spm.Encode("a", false)); got != "▁a" || spm.BOS() != 1 || spm.EOS() != 2 || !spm.AddBOS() || spm.AddEOS() {
		t.Errorf("llama: %s, BOS %d, EOS %d, AddBOS %v, AddEOS %v", got, spm.BOS(), spm.EOS(), spm.AddBOS(), spm.AddEOS())
	}
	b := bpeVocab("", []string{"a b"}, Control, "<s>", "</s>")
	keys := map[string]any{"model": "gpt2", "pre": "llama-bpe", "tokens": b.Tokens, "token_type": b.Types, "merges": b.Merges, "bos_token_id": uint32(257), "eos_token_id": uint32(258)}
	bpe, err := load(keys)
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(bpe, bpe.Encode("ab", false)); got != "ab" || bpe.BOS() != 257 || bpe.EOS() != 258 || !bpe.AddBOS() || !bpe.vocab.IgnoreMerges {
		t.Errorf("gpt2: %s, BOS %d, EOS %d, AddBOS %v, IgnoreMerges %v", got, bpe.BOS(), bpe.EOS(), bpe.AddBOS(), bpe.vocab.IgnoreMerges)
	}
	for key, tt := range map[string]struct {
		value any
		want  string
	}{
		"add_bos_token": {uint32(1), "tokenizer.ggml.add_bos_token"},
		"bos_token_id":  {uint64(1) << 40, "tokenizer.ggml.bos_token_id"},
		"token_type":    {[]int32{1}, "v.gguf: tokenizer.ggml.token_type: 1 types for 259 tokens"},
		"merges":        {nil, "tokenizer.ggml.merges"},
		"tokens":        {nil, "v.gguf: tokenizer.ggml.tokens: no tokens"},
		"model":         {nil, "tokenizer.ggml.model"},
		"pre":           {"other", "v.gguf: tokenizer.ggml.pre \"other\" is not supported"},
	} {
		broken := map[string]any{}
		for k, v := range keys {
			broken[k] = v
		}
		broken[key] = tt.value
		if tt.value == nil {
			delete(broken, key)
		}
		if _, err := load(broken); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %v: error %v, want one with %s", key, tt.value, err, tt.want)
		}
	}
}

func TestStream(t *testing.T) {
	bpe := mustNew(t, bpeVocab("", []string{"â Ĥ"}, Control, "<|im_end|>"))
	euro, smile := []byte("€"), []byte("🙂")
	for _, tt := range []struct {
		ids  []int32
		want []string // of each Add, then of Flush
	}{
		{[]int32{'a', 'b'}, []string{"a", "b", ""}},
		{[]int32{int32(euro[0]), int32(euro[1]), int32(euro[2])}, []string{"", "", "€", ""}},
		{[]int32{256, 257, int32(euro[2])}, []string{"", "", "€", ""}}, // a control token inside a character
		{[]int32{int32(smile[0]), int32(smile[1]), int32(smile[2])}, []string{"", "", "", "\ufffd"}},
		{[]int32{int32(smile[0]), int32(smile[1]), 'a'}, []string{"", "", "\ufffd\ufffda", ""}},
		{[]int32{0xFF, 'a'}, []string{"\ufffd", "a", ""}},
		{[]int32{-1, 9999}, []string{"", "", ""}},
	} {
		s := bpe.NewStream()
		var got []string
		for _, id := range tt.ids {
			got = append(got, s.Add(id))
		}
		if got = append(got, s.Flush()); !slices.Equal(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.ids, got, tt.want)
		}
	}
	spm := mustNew(t, spmVocab(true, map[string]float32{"▁a": 0}))
	id, _ := spm.Find("▁a")
	if got := spm.NewStream().Add(id); got != " a" {
		t.Errorf("a stream continues a text: got %q", got)
	}
}

// replaceInvalid returns text with U+FFFD for each invalid byte, and one for an incomplete character at the end.
func replaceInvalid(text string) string {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; !utf8.FullRuneInString(end) {
			text = text[:len(text)-n] + "\ufffd"
			break
		}
	}
	return string([]rune(text))
}

func FuzzEncodeDecode(f *testing.F) {
	merges := []string{"h e", "l l", "he ll", "hell o", "Ġ t", "Ġt h", "Ċ Ċ", "Ġ Ġ", "ĠĠ ĠĠ", "1 2", "ä ¸"}
	var toks []*Tokenizer
	for _, pre := range []string{"gpt-2", "smollm", "llama-bpe", "qwen2"} {
		v := bpeVocab(pre, merges, Control, "<|im_end|>")
		v.IgnoreMerges = pre == "llama-bpe"
		toks = append(toks, mustNew(f, v))
	}
	spm := spmVocab(false, map[string]float32{"▁": -9, "he": -1, "ll": -2, "▁t": -3, "▁▁": -4, "中": -5})
	toks = append(toks, mustNew(f, spm))
	spm.AddSpacePrefix = true
	toks = append(toks, mustNew(f, spm))
	for _, text := range []string{"", "hello  the\n\n12345", "中文 \xff\xc3<|im_end|></s>", "    \t\r\n", "\xf0\x9f"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			want := text
			if tok.vocab.Model == "llama" {
				want = strings.ReplaceAll(text, spaceMark, " ") // one token for both
			}
			ids := tok.Encode(text, false)
			for _, id := range ids {
				if tok.IsControl(id) {
					t.Fatalf("%s %s: control token %q from plain text %q", tok.vocab.Model, tok.vocab.Pre, tok.Text(id), text)
				}
			}
			if got := tok.Decode(ids); got != want {
				t.Errorf("%s %s: got %q, want %q", tok.vocab.Model, tok.vocab.Pre, got, want)
			}
			s := tok.NewStream()
			var streamed strings.Builder
			for _, id := range ids {
				part := s.Add(id)
				if !utf8.ValidString(part) {
					t.Fatalf("stream gives %q", part)
				}
				streamed.WriteString(part)
			}
			streamed.WriteString(s.Flush())
			if tok.vocab.AddSpacePrefix && text != "" {
				want = " " + want
			}
			if got := streamed.String(); got != replaceInvalid(want) {
				t.Errorf("stream: got %q, want %q", got, want)
			}
		}
	})
}

// No vocabulary, however odd, makes New, Encode or Decode panic or never end.
func FuzzNew(f *testing.F) {
	f.Add("a\nb\nab\n<0x61>\n<0x-1>\n\n<s>", "a b\n", "\x01\x01\x01\x06\x01\x03\x03", "ab<s>é")
	f.Add("<\n<s>\n<s\n \n▁\n▁ ", " \n  \na", "\x04\x04\x04\x04\x04", "<s <s> ▁")
	f.Fuzz(func(t *testing.T, tokens, merges, types, text string) {
		v := Vocab{Tokens: strings.Split(tokens, "\n"), Merges: strings.Split(merges, "\n"), BOS: -1, EOS: int32(len(types)), EOT: -1, EOM: -1, UNK: 0, PAD: int32(len(text))}
		for i := range v.Tokens {
			v.Scores = append(v.Scores, float32(i%7))
		}
		for i := range len(types) {
			v.Types = append(v.Types, int32(types[i]))
		}
		for _, v.Model = range []string{"gpt2", "llama"} {
			tok, err := New(v)
			if err != nil {
				continue
			}
			for _, special := range []bool{false, true} {
				ids := tok.Encode(text, special)
				tok.Decode(ids)
				for _, id := range ids {
					if !special && tok.IsControl(id) {
						t.Errorf("control token %d from plain text %q", id, text)
					}
				}
			}
		}
	})
}

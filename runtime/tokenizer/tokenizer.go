// Package tokenizer turns text into token ids and back, exactly as the model's own tokenizer does.
//
// Two families are read, both described by the tokenizer.ggml.* keys of a GGUF file:
//
//   - "gpt2": byte-level byte pair encoding (Radford et al. 2019). The text is cut into pre-tokens by a rule that
//     the model names, and the bytes of each pre-token are merged in the order of the merge list.
//   - "llama": SentencePiece BPE (Kudo and Richardson 2018). The whole text is merged in the order of the token
//     scores; what is in no token is spelled with byte tokens.
package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// Token types, the values of [Vocab.Types].
const (
	Normal      int32 = 1 // made by merging
	Unknown     int32 = 2 // stands for text that no token spells
	Control     int32 = 3 // <s>, <|im_end|>: steers the model, is no text
	UserDefined int32 = 4 // taken whole from the text before anything is merged
	Unused      int32 = 5
	Byte        int32 = 6 // <0x0A>: one byte
)

// Vocab is what a model file says about its tokenizer.
type Vocab struct {
	Model  string    // "gpt2" or "llama"
	Pre    string    // pre-tokenizer of a "gpt2" vocabulary; "" and "default" mean "gpt-2"
	Tokens []string  // text of each token; "gpt2" spells bytes in the alphabet of [Tokenizer.Text]
	Scores []float32 // "llama" only: merge priority of each token, the highest first
	Types  []int32   // type of each token; nil if all are [Normal]
	Merges []string  // "gpt2" only: "left right", the first pair is merged first

	BOS, EOS, EOT, EOM, UNK, PAD int32 // -1 if absent

	AddBOS         bool // a prompt begins with BOS
	AddEOS         bool // a prompt ends with EOS
	AddSpacePrefix bool // "llama" only: a space is put before the text
	IgnoreMerges   bool // "gpt2" only: a pre-token that is a token is not spelled from parts
}

// Tokenizer encodes and decodes text. It is safe for concurrent use.
type Tokenizer struct {
	vocab  Vocab
	ids    map[string]int32 // token text to id
	maxLen int              // bytes of the longest token text
	eog    []int32          // tokens that end a generation, sorted

	special     matcher // tokens found in text whose specials count
	userDefined matcher // tokens found in any text

	byteIDs [256]int32 // token of each single byte, -1 if there is none

	// "gpt2" only
	split  splitter
	merges map[pair]merge
}

const spaceMark = "\u2581" // stands for a space in the tokens of a "llama" vocabulary

// New returns the tokenizer of a vocabulary. It keeps v's slices. The error names the field that is wrong.
func New(v Vocab) (*Tokenizer, error) {
	t := &Tokenizer{vocab: v}
	if err := t.checkFields(); err != nil {
		return nil, err
	}
	if err := t.indexTokens(); err != nil {
		return nil, err
	}
	t.findSpecials()
	var err error
	switch v.Model {
	case "gpt2":
		err = t.initBPE()
	case "llama":
		t.initSPM()
	default:
		err = fmt.Errorf("tokenizer.ggml.model %.64q is not supported; supported are \"gpt2\" and \"llama\"", v.Model)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tokenizer) checkFields() error {
	v := &t.vocab
	n := len(v.Tokens)
	if n == 0 {
		return fmt.Errorf("tokenizer.ggml.tokens: no tokens")
	}
	if v.Types != nil && len(v.Types) < n {
		return fmt.Errorf("tokenizer.ggml.token_type: %d types for %d tokens", len(v.Types), n)
	}
	if v.Model == "llama" && len(v.Scores) < n {
		return fmt.Errorf("tokenizer.ggml.scores: %d scores for %d tokens", len(v.Scores), n)
	}
	// Nothing reads the padding token, and published fine-tunes are known to name one beyond their vocabulary.
	if int(v.PAD) >= n {
		v.PAD = -1
	}
	for _, s := range []struct {
		key string
		id  int32
	}{
		{"bos", v.BOS}, {"eos", v.EOS}, {"eot", v.EOT}, {"eom", v.EOM}, {"unknown", v.UNK}, {"padding", v.PAD},
	} {
		if s.id < -1 || int(s.id) >= n {
			return fmt.Errorf("tokenizer.ggml.%s_token_id %d: the vocabulary has %d tokens", s.key, s.id, n)
		}
	}
	return nil
}

// indexTokens builds the map from text to id. Tokens without text are in no text and stay out of it.
func (t *Tokenizer) indexTokens() error {
	t.ids = make(map[string]int32, len(t.vocab.Tokens))
	indexed := 0
	for id, text := range t.vocab.Tokens {
		if text == "" {
			continue
		}
		indexed++
		t.ids[text] = int32(id)
		t.maxLen = max(t.maxLen, len(text))
		if t.typeOf(int32(id)) == Byte {
			if _, ok := parseByte(text); !ok {
				return fmt.Errorf("tokenizer.ggml.tokens: byte token %d is %.64q, want the form <0x0A>", id, text)
			}
		}
	}
	if len(t.ids) == indexed {
		return nil
	}
	for id, text := range t.vocab.Tokens {
		if text != "" && t.ids[text] != int32(id) {
			return fmt.Errorf("tokenizer.ggml.tokens: tokens %d and %d are both %.64q", id, t.ids[text], text)
		}
	}
	return nil
}

// endNames are control tokens that end a turn or a text in the models that have them. Files name one of them as EOS
// and rarely the others, but a chat model may emit any.
var endNames = []string{
	"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|end_of_text|>", "<|endoftext|>", "<end_of_turn>", "<eos>", "</s>",
	"<EOT>", "[EOT]", "[EOS]", "<|return|>", "<|call|>", "<end_of_utterance>", "<｜end▁of▁sentence｜>",
	// fill-in-the-middle: the end of a file
	"<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<fim_pad>", "<reponame>",
}

// findSpecials fills eog and the two matchers.
func (t *Tokenizer) findSpecials() {
	v := &t.vocab
	for _, id := range []int32{v.EOS, v.EOT, v.EOM} {
		if id >= 0 {
			t.eog = append(t.eog, id)
		}
	}
	for _, name := range endNames {
		// A vocabulary may hold </s> as ordinary text, so the name alone decides only where there are no types.
		if id, ok := t.ids[name]; ok && (v.Types == nil || v.Types[id] == Control) {
			t.eog = append(t.eog, id)
			if v.EOT < 0 {
				v.EOT = id
			}
		}
	}
	slices.Sort(t.eog)
	t.eog = slices.Compact(t.eog)

	var special, userDefined []entry
	for id, text := range v.Tokens {
		if text == "" {
			continue
		}
		if v.Model == "llama" {
			text = strings.ReplaceAll(text, " ", spaceMark) // as Encode does with the text
		}
		switch e := (entry{text, int32(id)}); {
		case t.typeOf(e.id) == UserDefined:
			userDefined = append(userDefined, e)
			special = append(special, e)
		case t.isMarkup(e.id):
			special = append(special, e)
		}
	}
	t.special = newMatcher(special)
	t.userDefined = newMatcher(userDefined)
}

// isMarkup reports whether id is a token that plain text must never produce and that decodes to no text.
func (t *Tokenizer) isMarkup(id int32) bool { return t.IsControl(id) || t.typeOf(id) == Unknown }

func (t *Tokenizer) typeOf(id int32) int32 {
	if t.vocab.Types == nil {
		return Normal
	}
	return t.vocab.Types[id]
}

// Encode returns the ids of text, without BOS and EOS. With special, the names of control tokens in the text
// become their ids; without it no text produces a control token. [UserDefined] tokens are found either way.
//
// Every byte of the text is kept, invalid UTF-8 too, if the vocabulary has a token for each byte. Of bytes without a
// token "gpt2" vocabularies leave nothing, "llama" vocabularies the unknown token, if they have one.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	if special {
		return t.encode(text, &t.special, false)
	}
	return t.encode(text, &t.userDefined, false)
}

func (t *Tokenizer) encode(text string, found *matcher, guarded bool) []int32 {
	spm := t.vocab.Model == "llama"
	if spm {
		text = strings.ReplaceAll(text, " ", spaceMark)
	}
	e := encoder{Tokenizer: t}
	for text != "" {
		start, end, id := found.find(text)
		part := text[:start]
		if guarded {
			part = strings.ReplaceAll(part, guard, "")
		}
		switch {
		case part == "":
		case !spm:
			e.bpe(part)
		case t.vocab.AddSpacePrefix:
			e.spm(spaceMark + part)
		default:
			e.spm(part)
		}
		if id >= 0 {
			e.ids = append(e.ids, id)
		}
		text = text[end:]
	}
	return e.ids
}

// encoder holds the result and the reused memory of one [Tokenizer.Encode].
type encoder struct {
	*Tokenizer
	merger
	ids  []int32
	word []byte
}

// Decode returns the text of ids. Control and unknown tokens are left out, as are ids outside the vocabulary. If the
// model puts a space before a text, the text's first space is taken away again.
func (t *Tokenizer) Decode(ids []int32) string {
	var text []byte
	for _, id := range ids {
		text = t.appendPiece(text, id)
	}
	if t.vocab.AddSpacePrefix && t.vocab.Model == "llama" && len(text) > 0 && text[0] == ' ' {
		text = text[1:]
	}
	return string(text)
}

// Piece returns the bytes that id adds to a text, which may end inside a character. Control and unknown tokens add
// nothing; their names are in [Tokenizer.Text].
func (t *Tokenizer) Piece(id int32) []byte { return t.appendPiece(nil, id) }

func (t *Tokenizer) appendPiece(dst []byte, id int32) []byte {
	if id < 0 || int(id) >= t.Size() || t.isMarkup(id) {
		return dst
	}
	text := t.vocab.Tokens[id]
	switch kind := t.typeOf(id); {
	case kind == Byte:
		b, _ := parseByte(text)
		return append(dst, b)
	case t.vocab.Model == "llama":
		return append(dst, strings.ReplaceAll(text, spaceMark, " ")...)
	case kind == UserDefined:
		return append(dst, text...)
	}
	return appendDecoded(dst, text)
}

// Text returns the text of id as the vocabulary has it, "" outside the vocabulary. "gpt2" tokens spell each byte as a
// character: printable Latin-1 as itself, the other 68 bytes in order from U+0100, so "Ġ" is a space. "llama" tokens
// have "▁" for a space.
func (t *Tokenizer) Text(id int32) string {
	if id < 0 || int(id) >= t.Size() {
		return ""
	}
	return t.vocab.Tokens[id]
}

// Find returns the id of the token whose [Tokenizer.Text] is text.
func (t *Tokenizer) Find(text string) (id int32, ok bool) {
	id, ok = t.ids[text]
	return id, ok
}

// MaxLen returns a number of bytes that no token's text exceeds. So a text of n bytes takes n/MaxLen tokens or more, but for
// bytes that no token spells.
func (t *Tokenizer) MaxLen() int { return t.maxLen }

// Size returns the number of tokens.
func (t *Tokenizer) Size() int { return len(t.vocab.Tokens) }

// BOS returns the token that begins a text, or -1.
func (t *Tokenizer) BOS() int32 { return t.vocab.BOS }

// EOS returns the token that ends a text, or -1.
func (t *Tokenizer) EOS() int32 { return t.vocab.EOS }

// EOT returns the token that ends a turn of a chat, or -1. Where the file names none, it is known by its text.
func (t *Tokenizer) EOT() int32 { return t.vocab.EOT }

// AddBOS reports whether the model expects BOS before a prompt.
func (t *Tokenizer) AddBOS() bool { return t.vocab.AddBOS && t.vocab.BOS >= 0 }

// AddEOS reports whether the model expects EOS after a prompt.
func (t *Tokenizer) AddEOS() bool { return t.vocab.AddEOS && t.vocab.EOS >= 0 }

// IsEOG reports whether id ends a generation: EOS, EOT or another control token that ends a turn or a text.
func (t *Tokenizer) IsEOG(id int32) bool {
	_, ok := slices.BinarySearch(t.eog, id)
	return ok
}

// IsControl reports whether id is a control token.
func (t *Tokenizer) IsControl(id int32) bool {
	if t.vocab.Types == nil {
		return id >= 0 && (id == t.vocab.BOS || t.IsEOG(id))
	}
	return id >= 0 && int(id) < t.Size() && t.vocab.Types[id] == Control
}

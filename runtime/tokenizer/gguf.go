package tokenizer

import (
	"fmt"
	"math"

	"github.com/swizzle-rt/swizzle/runtime/gguf"
)

// FromGGUF returns the tokenizer of a model file, described by its keys tokenizer.ggml.*. What the keys leave open is
// as the format's converters assume: a "llama" vocabulary has the ids of SentencePiece (unknown 0, BOS 1, EOS 2), a BOS
// before a prompt and a space before a text, and a pre-tokenizer decides whether merges are ignored.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	v, err := readVocab(f)
	if err != nil {
		return nil, err
	}
	t, err := New(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
	return t, nil
}

func readVocab(f *gguf.File) (Vocab, error) {
	k := keys{file: f}
	v := Vocab{
		Model:  value(&k, f.String, "model", ""),
		Pre:    value(&k, f.String, "pre", ""),
		Tokens: value(&k, f.Strings, "tokens", nil),
		Types:  value(&k, f.Ints, "token_type", nil),
	}
	unknown, bos, eos := int32(-1), int32(-1), int32(-1)
	switch v.Model {
	case "llama":
		v.Scores = value(&k, f.Floats, "scores", nil)
		v.AddBOS, v.AddSpacePrefix = true, true
		if len(v.Tokens) > 2 {
			unknown, bos, eos = 0, 1, 2
		}
	case "gpt2":
		v.Merges = value(&k, f.Strings, "merges", nil)
		if v.Merges == nil && k.err == nil {
			return v, fmt.Errorf("%s: no key tokenizer.ggml.merges, which a \"gpt2\" vocabulary needs", f.Path())
		}
		if p, err := findPreTokenizer(v.Pre); err == nil {
			v.AddBOS, v.IgnoreMerges = p.addBOS, p.ignoreMerges
		}
	}
	v.BOS = k.id("bos_token_id", bos)
	v.EOS = k.id("eos_token_id", eos)
	v.EOT = k.id("eot_token_id", -1)
	v.EOM = k.id("eom_token_id", -1)
	v.UNK = k.id("unknown_token_id", unknown)
	v.PAD = k.id("padding_token_id", -1)
	v.AddBOS = value(&k, f.Bool, "add_bos_token", v.AddBOS)
	v.AddEOS = value(&k, f.Bool, "add_eos_token", false)
	v.AddSpacePrefix = value(&k, f.Bool, "add_space_prefix", v.AddSpacePrefix)
	return v, k.err
}

// keys reads the keys of a tokenizer and keeps the first error.
type keys struct {
	file *gguf.File
	err  error
}

// value returns what get finds under a key, or the default.
func value[T any](k *keys, get func(key string) (T, bool, error), name string, absent T) T {
	if k.err != nil {
		return absent
	}
	v, ok, err := get("tokenizer.ggml." + name)
	if err != nil {
		k.err = err
	}
	if !ok {
		return absent
	}
	return v
}

// id returns the token id under a key. One too large for an int32 becomes the largest, which no vocabulary has.
func (k *keys) id(name string, absent int32) int32 {
	const missing = math.MaxUint64
	id := value(k, k.file.Uint, name, missing)
	if id == missing {
		return absent
	}
	return int32(min(id, math.MaxInt32))
}

package tokenizer

import (
	"math"
	"slices"
	"unicode/utf8"
)

// initSPM finds the byte tokens of a "llama" vocabulary.
func (t *Tokenizer) initSPM() {
	for b := range t.byteIDs {
		id, ok := t.ids[byteName(byte(b))]
		if !ok || t.isMarkup(id) {
			id = noToken
		}
		t.byteIDs[b] = id
	}
}

// spm adds the ids of text, whose spaces are already marks.
func (e *encoder) spm(text string) {
	e.reset(len(text))
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		e.add(i, e.mergeable(text[i:i+n]))
		i += n
	}
	e.run(func(l, r int32) (uint32, int32, bool) {
		id := e.mergeable(text[l:e.end(r)])
		if id < 0 {
			return 0, 0, false
		}
		return scoreKey(e.vocab.Scores[id]), id, true
	})
	e.ids = slices.Grow(e.ids, e.count)
	for i := int32(0); i >= 0; i = e.symbols[i].next {
		if id := e.symbols[i].id; id >= 0 {
			e.ids = append(e.ids, id)
		} else {
			e.spell(text[i:e.end(i)])
		}
	}
}

// mergeable returns the token that is text, noToken if there is none. Control, unknown and byte tokens are not made
// from text that happens to be their name.
func (t *Tokenizer) mergeable(text string) int32 {
	if len(text) > t.maxLen {
		return noToken
	}
	id, ok := t.ids[text]
	if !ok || t.isMarkup(id) || t.typeOf(id) == Byte {
		return noToken
	}
	return id
}

// spell adds the byte tokens of a character that is in no token, or the unknown token if there are no such bytes.
func (e *encoder) spell(char string) {
	start := len(e.ids)
	for i := range len(char) {
		id := e.byteIDs[char[i]]
		if id < 0 {
			e.ids = e.ids[:start]
			if unknown := e.vocab.UNK; unknown >= 0 && !e.IsControl(unknown) {
				e.ids = append(e.ids, unknown)
			}
			return
		}
		e.ids = append(e.ids, id)
	}
}

// scoreKey maps scores to integers that are the smaller the higher the score.
func scoreKey(score float32) uint32 {
	if score == 0 {
		score = 0 // -0 and +0 are equal scores
	}
	bits := math.Float32bits(score)
	if bits>>31 != 0 {
		return bits
	}
	return ^(bits | 1<<31)
}

package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// pair is two neighbouring tokens.
type pair struct{ left, right int32 }

// merge is what a pair becomes, and its place in the merge list.
type merge struct {
	rank uint32
	id   int32
}

// initBPE reads the pre-tokenizer, the byte tokens and the merge list of a "gpt2" vocabulary.
func (t *Tokenizer) initBPE() error {
	p, err := findPreTokenizer(t.vocab.Pre)
	if err != nil {
		return err
	}
	t.split = p.split
	for b, r := range byteRunes {
		id, ok := t.ids[string(r)]
		if !ok || t.isMarkup(id) {
			id = noToken
		}
		t.byteIDs[b] = id
	}
	t.merges = make(map[pair]merge, len(t.vocab.Merges))
	var joined []byte
	for rank, line := range t.vocab.Merges {
		// The first space separates, but never the first byte: no part is empty.
		space := 1 + strings.IndexByte(line[min(1, len(line)):], ' ')
		if space == 0 {
			return fmt.Errorf("tokenizer.ggml.merges: merge %d is %.64q, want two tokens separated by a space", rank, line)
		}
		left, right := line[:space], line[space+1:]
		joined = append(append(joined[:0], left...), right...)
		l, okL := t.ids[left]
		r, okR := t.ids[right]
		id, ok := t.ids[string(joined)]
		if !okL || !okR || !ok {
			return fmt.Errorf("tokenizer.ggml.merges: merge %d is %.64q: %.64q, %.64q and %.64q must be tokens", rank, line, left, right, joined)
		}
		// Of equal lines the first counts. Nothing merges into a control token.
		if _, twice := t.merges[pair{l, r}]; !twice && !t.isMarkup(id) {
			t.merges[pair{l, r}] = merge{uint32(rank), id}
		}
	}
	return nil
}

// bpe adds the ids of text, byte-level BPE.
func (e *encoder) bpe(text string) {
	for text != "" {
		n := e.split(text)
		e.bpeWord(text[:n])
		text = text[n:]
	}
}

// bpeWord adds the ids of one pre-token.
func (e *encoder) bpeWord(word string) {
	if e.vocab.IgnoreMerges && len(word) <= e.maxLen {
		e.word = appendEncoded(e.word[:0], word)
		if id, ok := e.Tokenizer.ids[string(e.word)]; ok && !e.isMarkup(id) {
			e.ids = append(e.ids, id)
			return
		}
	}
	e.reset(len(word))
	for i := range len(word) {
		e.add(i, e.byteIDs[word[i]])
	}
	e.run(func(l, r int32) (uint32, int32, bool) {
		m, ok := e.merges[pair{e.symbols[l].id, e.symbols[r].id}]
		return m.rank, m.id, ok
	})
	e.ids = slices.Grow(e.ids, e.count)
	for i := int32(0); i >= 0; i = e.symbols[i].next {
		if id := e.symbols[i].id; id >= 0 {
			e.ids = append(e.ids, id)
		}
	}
}

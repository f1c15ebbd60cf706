package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// matcher finds the tokens that are taken whole from a text: at the leftmost place, of several there the longest.
type matcher struct {
	entries []entry     // sorted by text
	first   [256][2]int // range of the entries that begin with a byte
}

// entry is a token that a matcher finds; its text is not empty.
type entry struct {
	text string
	id   int32
}

func newMatcher(entries []entry) matcher {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.text, b.text), cmp.Compare(a.id, b.id))
	})
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.text == b.text })
	m := matcher{entries: entries}
	for i, e := range entries {
		r := &m.first[e.text[0]]
		if r[1] == 0 {
			r[0] = i
		}
		r[1] = i + 1
	}
	return m
}

// find returns the bytes [start, end) of the next token in text and its id; both are len(text) and the id -1 if there
// is none.
func (m *matcher) find(text string) (start, end int, id int32) {
	if len(m.entries) > 0 {
		for i := range len(text) {
			if n, id := m.longest(text[i:]); n > 0 {
				return i, i + n, id
			}
		}
	}
	return len(text), len(text), -1
}

// longest returns the longest token that text begins with, and its length, 0 if there is none. Byte by byte it narrows
// the range of entries that share the bytes so far.
func (m *matcher) longest(text string) (n int, id int32) {
	r := m.first[text[0]]
	entries := m.entries[r[0]:r[1]]
	for depth := 1; len(entries) > 0; depth++ {
		if len(entries[0].text) == depth {
			n, id = depth, entries[0].id
			entries = entries[1:]
		}
		if depth == len(text) {
			break
		}
		c := text[depth]
		low, _ := slices.BinarySearchFunc(entries, c, func(e entry, c byte) int { return cmp.Compare(e.text[depth], c) })
		entries = entries[low:]
		high, _ := slices.BinarySearchFunc(entries, c, func(e entry, c byte) int {
			if e.text[depth] > c {
				return 1
			}
			return -1
		})
		entries = entries[:high]
	}
	return n, id
}

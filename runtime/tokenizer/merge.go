package tokenizer

import "slices"

// merger joins neighbouring symbols, the pair of the smallest key first and of equal keys the leftmost, until no pair
// can be joined. Symbols form a linked list and candidate pairs a binary heap, so n symbols take O(n log n) steps.
type merger struct {
	symbols []symbol // one for each byte of the text; a symbol of several stands at the first, the others are not used
	heap    []candidate
	last    int32 // symbol added, -1 before the first
	count   int   // of the symbols that are left
}

// A symbol is a part of the text that is one token, or none yet.
type symbol struct {
	prev, next int32 // neighbours in symbols, -1 at the ends
	id         int32 // token, noToken or merged
}

const (
	noToken = -1
	merged  = -2 // now part of the symbol on its left
)

// A candidate is a pair that could be joined when it was found: its key, then the index of the left symbol. It still counts
// if the symbol and the one that now follows have this key: then they are a candidate themselves, and this is its order.
type candidate uint64

// reset makes room for the symbols of n bytes.
func (m *merger) reset(n int) {
	m.symbols = slices.Grow(m.symbols[:0], n)[:n]
	m.heap = slices.Grow(m.heap[:0], n)
	m.last, m.count = -1, 0
}

// add appends the symbol that starts at a byte of the text.
func (m *merger) add(start int, id int32) {
	n := int32(start)
	if m.last >= 0 {
		m.symbols[m.last].next = n
	}
	m.symbols[n] = symbol{prev: m.last, next: -1, id: id}
	m.last = n
	m.count++
}

// end returns where a symbol ends.
func (m *merger) end(i int32) int {
	if next := m.symbols[i].next; next >= 0 {
		return int(next)
	}
	return len(m.symbols)
}

// run joins symbols. join returns the key and the token of two neighbours, ok only if they may be joined.
func (m *merger) run(join func(left, right int32) (key uint32, id int32, ok bool)) {
	push := func(left int32) {
		if left < 0 || m.symbols[left].next < 0 {
			return
		}
		if key, _, ok := join(left, m.symbols[left].next); ok {
			m.push(candidate(key)<<32 | candidate(left))
		}
	}
	for i := int32(0); i <= m.last; i = int32(m.end(i)) {
		push(i)
	}
	for len(m.heap) > 0 {
		c := m.pop()
		left := int32(uint32(c))
		l := &m.symbols[left]
		if l.id == merged || l.next < 0 {
			continue
		}
		r := &m.symbols[l.next]
		key, id, ok := join(left, l.next)
		if !ok || key != uint32(c>>32) {
			continue
		}
		l.id, l.next = id, r.next
		r.id = merged
		m.count--
		if l.next >= 0 {
			m.symbols[l.next].prev = left
		}
		push(l.prev)
		push(left)
	}
}

func (m *merger) push(c candidate) {
	h := append(m.heap, c)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent] <= c {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = c
	m.heap = h
}

func (m *merger) pop() candidate {
	h := m.heap
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	m.heap = h
	for i := 0; len(h) > 0; {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if child >= len(h) || last <= h[child] {
			h[i] = last
			break
		}
		h[i] = h[child]
		i = child
	}
	return top
}

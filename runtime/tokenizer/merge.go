package tokenizer

// merger joins neighbouring symbols, the pair of the smallest key first and of equal keys the leftmost, until no pair
// can be joined. Symbols form a linked list and candidate pairs a binary heap, so n symbols take O(n log n) steps.
type merger struct {
	symbols []symbol
	heap    []candidate
}

// A symbol is a part of the text that is one token, or none yet.
type symbol struct {
	prev, next int32 // neighbours in symbols, -1 at the ends
	start, end int32 // bytes of the text
	id         int32 // token, noToken or merged
}

const (
	noToken = -1
	merged  = -2 // now part of the symbol on its left
)

// A candidate is a pair that could be joined when it was found. It is stale once either symbol has changed.
type candidate struct {
	order           uint64 // key, then index of the left symbol
	right           int32  // index of the right symbol
	leftID, rightID int32
	id              int32 // of the joined symbol
}

// reset empties the list of symbols.
func (m *merger) reset() { m.symbols = m.symbols[:0] }

// add appends a symbol of the text's bytes [start, end).
func (m *merger) add(start, end int, id int32) {
	n := int32(len(m.symbols))
	if n > 0 {
		m.symbols[n-1].next = n
	}
	m.symbols = append(m.symbols, symbol{prev: n - 1, next: -1, start: int32(start), end: int32(end), id: id})
}

// run joins symbols. join returns the key and the token of two neighbours, ok only if they may be joined.
func (m *merger) run(join func(left, right *symbol) (key uint32, id int32, ok bool)) {
	push := func(left, right int32) {
		if left < 0 || right < 0 {
			return
		}
		l, r := &m.symbols[left], &m.symbols[right]
		if key, id, ok := join(l, r); ok {
			m.push(candidate{uint64(key)<<32 | uint64(left), right, l.id, r.id, id})
		}
	}
	for i := 1; i < len(m.symbols); i++ {
		push(int32(i-1), int32(i))
	}
	for len(m.heap) > 0 {
		c := m.pop()
		left := int32(uint32(c.order))
		l, r := &m.symbols[left], &m.symbols[c.right]
		if l.id != c.leftID || r.id != c.rightID || l.next != c.right {
			continue
		}
		l.id, l.end, l.next = c.id, r.end, r.next
		r.id = merged
		if l.next >= 0 {
			m.symbols[l.next].prev = left
		}
		push(l.prev, left)
		push(left, l.next)
	}
}

func (m *merger) push(c candidate) {
	h := append(m.heap, c)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].order <= c.order {
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
		if child+1 < len(h) && h[child+1].order < h[child].order {
			child++
		}
		if child >= len(h) || last.order <= h[child].order {
			h[i] = last
			break
		}
		h[i] = h[child]
		i = child
	}
	return top
}

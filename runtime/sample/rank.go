package sample

import (
	"cmp"
	"math"
	"slices"
)

// candidate is a token that may be chosen.
type candidate struct {
	logit float64
	id    int32
}

// byRank orders candidates by falling logit, then by id.
func byRank(a, b candidate) int {
	if a.logit != b.logit {
		return cmp.Compare(b.logit, a.logit)
	}
	return cmp.Compare(a.id, b.id)
}

func byID(a, b candidate) int { return cmp.Compare(a.id, b.id) }

// ranking selects the first n in rank of the candidates it is offered, without
// sorting the others. reset starts a selection.
type ranking struct {
	n     int
	floor float64     // what a logit must exceed to be selected
	kept  []candidate // once there are n: a heap whose root is the last in rank
}

// reset empties the ranking for a selection of n, at least 1.
func (r *ranking) reset(n int) {
	r.n = n
	r.floor = math.Inf(-1)
	r.kept = r.kept[:0]
}

// offer adds a candidate with a logit above −Inf. Candidates come in the order of
// their ids, so one with an equal logit never displaces another.
func (r *ranking) offer(c candidate) {
	if c.logit > r.floor {
		r.add(c)
	}
}

func (r *ranking) add(c candidate) {
	switch {
	case len(r.kept) == r.n:
		r.kept[0] = c
		r.sink(0)
	case len(r.kept) == r.n-1:
		r.kept = append(r.kept, c)
		for i := r.n/2 - 1; i >= 0; i-- {
			r.sink(i)
		}
	default:
		r.kept = append(r.kept, c)
		return
	}
	r.floor = r.kept[0].logit
}

// sink restores the heap below i.
func (r *ranking) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(r.kept) {
			return
		}
		if right := child + 1; right < len(r.kept) && byRank(r.kept[right], r.kept[child]) > 0 {
			child = right
		}
		if byRank(r.kept[i], r.kept[child]) >= 0 {
			return
		}
		r.kept[i], r.kept[child] = r.kept[child], r.kept[i]
		i = child
	}
}

// ranked ends the selection and returns it in rank. It is valid until the next
// reset.
func (r *ranking) ranked() []candidate {
	slices.SortFunc(r.kept, byRank)
	return r.kept
}

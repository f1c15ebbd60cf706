package sample

// recent counts the last n tokens of a sequence, all of them if n is negative.
type recent struct {
	n      int
	count  []int32 // by token
	window []int32 // the last n tokens as a ring, unless all count
	oldest int     // in window, once it is full
}

func newRecent(n, vocab int) *recent {
	return &recent{n: n, count: make([]int32, vocab)}
}

// add appends a token. One outside the vocabulary takes its place in the window
// but counts for nothing.
func (r *recent) add(id int32) {
	r.change(id, 1)
	switch {
	case r.n < 0:
	case len(r.window) < r.n:
		r.window = append(r.window, id)
	default:
		r.change(r.window[r.oldest], -1)
		r.window[r.oldest] = id
		r.oldest = (r.oldest + 1) % r.n
	}
}

func (r *recent) change(id, by int32) {
	if id >= 0 && int(id) < len(r.count) {
		r.count[id] += by
	}
}

// penalize returns the logit l of a token that occurs count times, count > 0.
func (p Params) penalize(l float64, count int32) float64 {
	if l > 0 {
		l /= p.RepeatPenalty
	} else {
		l = float64(l * p.RepeatPenalty)
	}
	return l - (float64(float64(count)*p.FrequencyPenalty) + p.PresencePenalty)
}

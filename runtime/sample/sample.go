package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/swizzle-rt/swizzle/ir/canon"
)

// ErrNaN reports a logit that is no number.
var ErrNaN = errors.New("logit is NaN")

// ErrMasked reports logits that are all −Inf, so that there is no token to choose.
var ErrMasked = errors.New("every token is masked")

// maxVocab keeps a wrong size from becoming a huge allocation.
const maxVocab = 1 << 24

// A Sampler chooses the tokens of one request. Several goroutines must not use
// one at the same time.
type Sampler struct {
	params   Params
	vocab    int
	position int     // tokens accepted
	words    mt19937 // two words a position
	recent   *recent // nil if there are no penalties

	// Scratch of Sample, kept so that a token costs no allocation.
	all  []candidate // candidates in the order of ids
	best ranking     // candidates in rank
}

// New returns the sampler of a request, at position 0, for rows of vocab logits.
func New(p Params, vocab int) (*Sampler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if vocab < 1 || vocab > maxVocab {
		return nil, fmt.Errorf("sample: vocabulary of %d tokens, want 1 to %d", vocab, maxVocab)
	}
	s := &Sampler{params: p, vocab: vocab}
	s.words.seed(p.Seed)
	if p.penalizes() {
		s.recent = newRecent(p.RepeatLastN, vocab)
	}
	return s, nil
}

// Prime shows the prompt to the penalties. It comes before the first Accept.
func (s *Sampler) Prime(prompt []int32) {
	if s.recent == nil {
		return
	}
	for _, id := range prompt {
		s.recent.add(id)
	}
}

// Accept records that id was emitted: the penalties see it, and the next position
// becomes the current one.
func (s *Sampler) Accept(id int32) {
	s.position++
	if s.recent != nil {
		s.recent.add(id)
	}
}

// Sample returns the token for the current position from a row of logits, one for
// each token of the vocabulary; −Inf masks a token. It neither changes the logits
// nor advances the sampler: the same call gives the same token until Accept. The
// error wraps [ErrNaN] or [ErrMasked] where it is one of these.
func (s *Sampler) Sample(logits []float32) (int32, error) {
	if len(logits) != s.vocab {
		return 0, fmt.Errorf("sample: %d logits for a vocabulary of %d tokens", len(logits), s.vocab)
	}
	p := s.params
	limit := p.TopK
	if p.Temperature == 0 {
		if s.recent == nil {
			return Argmax(logits)
		}
		limit = 1
	}
	kept, err := s.gather(logits, limit)
	if err != nil {
		return 0, err
	}
	if p.Temperature == 0 {
		return kept[0].id, nil
	}
	top := largest(kept)
	if p.TopP < 1 {
		kept = s.topP(kept, top)
	}
	if p.MinP > 0 {
		kept = slices.DeleteFunc(kept, func(c candidate) bool { return canon.Exp64(below(c.logit, top)) < p.MinP })
	}
	return draw(kept, top, p.Temperature, s.words.uniform(s.position)), nil
}

// gather returns the tokens that are not masked, with the penalties applied: the
// first limit of them in rank, or if limit is not positive all in the order of ids.
func (s *Sampler) gather(logits []float32, limit int) ([]candidate, error) {
	s.all = s.all[:0]
	if limit > 0 {
		s.best.reset(limit)
	} else {
		s.all = slices.Grow(s.all, s.vocab)
	}
	masked := float32(math.Inf(-1))
	for id, logit := range logits {
		if !(logit > masked) {
			if logit != masked {
				return nil, nanError(id)
			}
			continue
		}
		c := candidate{float64(logit), int32(id)}
		if s.recent != nil && s.recent.count[id] > 0 {
			c.logit = s.params.penalize(c.logit, s.recent.count[id])
		}
		if limit > 0 {
			s.best.offer(c)
		} else {
			s.all = append(s.all, c)
		}
	}
	kept := s.all
	if limit > 0 {
		kept = s.best.ranked()
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("sample: %w", ErrMasked)
	}
	return kept, nil
}

func largest(kept []candidate) float64 {
	top := kept[0].logit
	for _, c := range kept {
		if c.logit > top {
			top = c.logit
		}
	}
	return top
}

// topP returns the shortest run of kept, in rank, whose probabilities reach TopP
// of the total. top is the largest logit.
//
// Few candidates are usually enough, so only those are sorted: the probability
// that lies in each sixteenth of a logit below top tells how far down to go.
func (s *Sampler) topP(kept []candidate, top float64) []candidate {
	if s.params.TopK > 0 {
		s.all = append(s.all[:0], kept...)
		slices.SortFunc(s.all, byID)
	}
	const steps = 1024
	step := func(l float64) int { return int(min(float64(below(l, top)*-16), steps-1)) }

	var total float64
	var sum [steps]float64
	for _, c := range s.all {
		p := canon.Exp64(below(c.logit, top))
		total += p
		sum[step(c.logit)] += p
	}
	target := float64(s.params.TopP * total)

	last := 0
	for run := sum[0]; run < target && last < steps-1; run += sum[last] {
		last++
	}
	for {
		best := s.best.kept[:0]
		for _, c := range s.all {
			if step(c.logit) <= last {
				best = append(best, c)
			}
		}
		slices.SortFunc(best, byRank)
		s.best.kept = best
		var run float64
		for i, c := range best {
			run += canon.Exp64(below(c.logit, top))
			if run >= target {
				return best[:i+1]
			}
		}
		if len(best) == len(s.all) {
			return best // the sum in rank is rounded to less than target
		}
		last = steps - 1 // the sums by step were rounded to more than the sum in rank
	}
}

// draw returns the first candidate whose running sum of p = exp((l − top)/t)
// reaches u of the total. It overwrites the logits by p.
func draw(kept []candidate, top, t, u float64) int32 {
	var total float64
	for i, c := range kept {
		p := canon.Exp64(below(c.logit, top) / t)
		kept[i].logit = p
		total += p
	}
	target := float64(u * total)
	i := 0 // stays inside: u < 1, and the last running sum is the total
	for run := kept[0].logit; run < target; run += kept[i].logit {
		i++
	}
	return kept[i].id
}

// below returns l − top, 0 where both are the same infinity.
func below(l, top float64) float64 {
	if l == top {
		return 0
	}
	return l - top
}

// Argmax returns the token with the largest logit, the lowest id among equals
// (−0 equals +0). It fails with [ErrNaN] if any logit is NaN and with [ErrMasked] if
// none is above −Inf.
func Argmax(logits []float32) (int32, error) {
	best := -1
	top := float32(math.Inf(-1))
	for id, l := range logits {
		if l > top {
			best, top = id, l
		} else if l != l {
			return 0, nanError(id)
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("sample: %w", ErrMasked)
	}
	return int32(best), nil
}

func nanError(id int) error {
	return fmt.Errorf("sample: token %d: %w", id, ErrNaN)
}

package sample

import (
	"fmt"
	"math"

	"github.com/swizzle-rt/swizzle/ir/canon"
)

// LogProb is a token with the natural logarithm of its probability.
type LogProb struct {
	ID      int32
	LogProb float64 // −Inf for a masked token
}

// LogProbs returns the log-probability of each of ids under the softmax of the
// logits as they are, before any penalty, filter or temperature:
// l − max − log Σ exp(l − max), the sum in the order of ids. It fails if an id is
// not a token, and as [Argmax] does.
func LogProbs(logits []float32, ids []int32) ([]float64, error) {
	norm, err := newNormalizer(logits)
	if err != nil {
		return nil, err
	}
	probs := make([]float64, len(ids))
	for i, id := range ids {
		if id < 0 || int(id) >= len(logits) {
			return nil, fmt.Errorf("sample: log-probability of token %d: want 0 to %d", id, len(logits)-1)
		}
		probs[i] = norm.logProb(float64(logits[id]))
	}
	return probs, nil
}

// TopLogProbs returns the n most probable tokens, most probable first and lower
// ids first among equals, with the log-probabilities of [LogProbs]. Masked tokens
// are left out, so there may be fewer than n.
func TopLogProbs(logits []float32, n int) ([]LogProb, error) {
	norm, err := newNormalizer(logits)
	if err != nil || n < 1 {
		return nil, err
	}
	var best ranking
	best.reset(n)
	for id, l := range logits {
		if !math.IsInf(float64(l), -1) {
			best.offer(candidate{float64(l), int32(id)})
		}
	}
	var top []LogProb
	for _, c := range best.ranked() {
		top = append(top, LogProb{c.id, norm.logProb(c.logit)})
	}
	return top, nil
}

// normalizer turns logits into log-probabilities.
type normalizer struct{ top, logSum float64 }

func newNormalizer(logits []float32) (normalizer, error) {
	id, err := Argmax(logits)
	if err != nil {
		return normalizer{}, err
	}
	top := float64(logits[id])
	var sum float64
	for _, l := range logits {
		sum += canon.Exp64(below(float64(l), top))
	}
	return normalizer{top, canon.Log64(sum)}, nil
}

func (n normalizer) logProb(l float64) float64 { return below(l, n.top) - n.logSum }

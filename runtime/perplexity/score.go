package perplexity

import (
	"fmt"
	"math"
	"slices"

	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/runtime/sample"
)

// Result of Measure. An error is the standard error of its figure.
type Result struct {
	Context  int     `json:"context"`
	Chunks   int     `json:"chunks"`
	Scored   int     `json:"scored"` // positions
	PPL      float64 `json:"ppl"`    // exp of the mean of −ln of the probability of the token that follows
	PPLError float64 `json:"ppl_error"`

	*Divergence // from the base; nil without one
}

// Divergence compares the predictions of two models: P of the base and Q of the one measured. KLD is the Kullback-Leibler
// divergence at a position, Σ P·ln(P/Q) over the tokens with P > e⁻¹⁶, in nats.
type Divergence struct {
	BasePPL       float64 `json:"ppl_base"`
	BasePPLError  float64 `json:"ppl_base_error"`
	PPLRatio      float64 `json:"ppl_ratio"` // PPL / BasePPL
	PPLRatioError float64 `json:"ppl_ratio_error"`
	KLDMean       float64 `json:"kld_mean"`
	KLDError      float64 `json:"kld_error"`
	KLDMax        float64 `json:"kld_max"`
	KLD999        float64 `json:"kld_99_9"` // 99.9 % of the positions are below
	KLD99         float64 `json:"kld_99"`
	KLDMedian     float64 `json:"kld_median"`
	SameTop       float64 `json:"same_top_percent"` // positions with the same likeliest token
	SameTopError  float64 `json:"same_top_error"`
}

// score collects the positions.
type score struct {
	base    *Base
	nll     []float64 // −ln of the probability of the token that follows
	nllBase []float64
	kld     []float64
	sameTop int
}

// add scores the logits of a position, and compares them with the base's next row. next is the token that follows.
func (s *score) add(logits []float32, next int32) error {
	top, err := sample.Argmax(logits)
	if err != nil {
		return err
	}
	norm := logSumExp(logits, float64(logits[top]))
	s.nll = append(s.nll, norm-float64(logits[next]))
	if s.base == nil {
		return nil
	}
	return s.compare(logits, norm, top, next)
}

// compare compares with the base's next row. norm is the logarithm of the sum of the logits' exponentials.
func (s *score) compare(logits []float32, norm float64, top, next int32) error {
	b := s.base
	if err := b.next(); err != nil {
		return err
	}
	scale, least := b.scale(), b.least()
	var kld, sum float64
	likeliest := 0
	for id, l := range logits {
		code := b.code(id)
		if code > b.code(likeliest) {
			likeliest = id
		}
		logP := float64(scale*float64(code)) + least
		if logP <= leastLogProb {
			continue
		}
		p := canon.Exp64(logP)
		sum += p
		kld += float64(p * (logP - (float64(l) - norm)))
	}
	// What is left out has a small part of the probability.
	if !(sum > 0.5 && sum < 1.1) {
		return fmt.Errorf("%s: row %d: the probabilities sum to %g, expected 1: the file is damaged", b.path, b.read-1, sum)
	}
	s.kld = append(s.kld, kld)
	s.nllBase = append(s.nllBase, -(float64(scale*float64(b.code(int(next)))) + least))
	if likeliest == int(top) {
		s.sameTop++
	}
	return nil
}

// leastLogProb is where rows of a base are cut off.
const leastLogProb = -16

// logSumExp returns ln Σ exp(logits), the sum in the order of the vocabulary. top is the largest of them.
func logSumExp(logits []float32, top float64) float64 {
	var sum float64
	for _, l := range logits {
		sum += canon.Exp64(float64(l) - top)
	}
	return top + canon.Log64(sum)
}

func (s *score) result() Result {
	mean, se := meanError(s.nll)
	ppl := canon.Exp64(mean)
	r := Result{Scored: len(s.nll), PPL: ppl, PPLError: float64(ppl * se)}
	if s.base == nil {
		return r
	}
	baseMean, baseSE := meanError(s.nllBase)
	basePPL := canon.Exp64(baseMean)
	diff := make([]float64, len(s.nll)) // of pairs, whose errors have much in common
	for i := range diff {
		diff[i] = s.nll[i] - s.nllBase[i]
	}
	diffMean, diffSE := meanError(diff)
	ratio := canon.Exp64(diffMean)
	kldMean, kldSE := meanError(s.kld)
	kld := slices.Sorted(slices.Values(s.kld))
	n := float64(len(kld))
	same := float64(s.sameTop) / n
	r.Divergence = &Divergence{
		BasePPL: basePPL, BasePPLError: float64(basePPL * baseSE),
		PPLRatio: ratio, PPLRatioError: float64(ratio * diffSE),
		KLDMean: kldMean, KLDError: kldSE,
		KLDMax: kld[len(kld)-1], KLD999: quantile(kld, 0.999), KLD99: quantile(kld, 0.99), KLDMedian: quantile(kld, 0.5),
		SameTop: float64(100 * same), SameTopError: float64(100 * math.Sqrt(float64(same*(1-same))/max(1, n-1))),
	}
	return r
}

// meanError returns the mean and its standard error, 0 of fewer than two values.
func meanError(x []float64) (mean, se float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v
	}
	mean /= n
	if len(x) < 2 {
		return mean, 0
	}
	var squares float64
	for _, v := range x {
		d := v - mean
		squares += float64(d * d)
	}
	return mean, math.Sqrt(squares / float64(n*(n-1)))
}

// quantile interpolates between the values of a sorted list.
func quantile(sorted []float64, q float64) float64 {
	at := float64(q * float64(len(sorted)-1))
	i := int(at)
	part := at - float64(i)
	next := sorted[min(i+1, len(sorted)-1)]
	return float64((1-part)*sorted[i]) + float64(part*next)
}

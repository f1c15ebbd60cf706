package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Number is a type of samples.
type Number interface{ ~int64 | ~float64 }

// Summary is the smallest sample, the median and the largest sample.
type Summary[T Number] struct{ Min, Median, Max T }

// Summarize sums up samples; the median of an even number of them is the mean of the two in the middle. No samples give zeros.
func Summarize[T Number](samples []T) Summary[T] {
	n := len(samples)
	if n == 0 {
		return Summary[T]{}
	}
	s := slices.SortedFunc(slices.Values(samples), cmp.Compare)
	return Summary[T]{s[0], s[(n-1)/2] + (s[n/2]-s[(n-1)/2])/2, s[n-1]}
}

// ErrNoise means that two equal halves of a measurement differ too much for a comparison.
var ErrNoise = errors.New("too noisy to compare")

// MaxControl is the largest difference between our two turns at which a ratio to a peer counts.
const MaxControl = 0.05

// Control returns the ratio of our first turn to our second, of medians; 0 without a second.
func (r *Result) Control() float64 {
	var turns [2][]float64
	for i, rate := range r.Rates() {
		turns[i%2] = append(turns[i%2], rate)
	}
	if len(turns[1]) == 0 {
		return 0
	}
	return Summarize(turns[0]).Median / Summarize(turns[1]).Median
}

// Ratio returns the ratio of our median to the peer's, 0 where the peer didn't run the test.
func (r *Result) Ratio() float64 {
	if len(r.Peer) == 0 {
		return 0
	}
	return Summarize(r.Rates()).Median / Summarize(r.Peer).Median
}

// CheckControl returns an error, ErrNoise, that names the tests that the peer ran too and in which our two turns differ by more
// than MaxControl.
func (p *Report) CheckControl() error {
	var off []string
	for i := range p.Results {
		r := &p.Results[i]
		if c := r.Control(); len(r.Peer) > 0 && !(max(c, 1/c) <= 1+MaxControl) {
			off = append(off, fmt.Sprintf("%s %+.1f %%", r.Test.Name(), float64(100*(c-1))))
		}
	}
	if off == nil {
		return nil
	}
	return fmt.Errorf("%w: our first turn and our second differ by more than %.0f %% (%s)", ErrNoise, 100*MaxControl, strings.Join(off, ", "))
}

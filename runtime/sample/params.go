package sample

import "fmt"

// Params says how tokens are chosen. The zero Params is not valid; [Greedy] and
// [Default] are places to start.
type Params struct {
	Temperature float64 // divides the logits; 0 takes the largest
	TopK        int     // candidates kept, by logit; 0 or below keeps all
	TopP        float64 // share of the probability kept, largest first; 1 keeps all, 0 the largest
	MinP        float64 // smallest probability kept, as a share of the largest; 0 keeps all

	// The penalties change the logits of tokens among the last RepeatLastN of
	// prompt and output, as llama.cpp's do: a positive logit is divided by
	// RepeatPenalty and any other multiplied by it, then FrequencyPenalty times
	// the token's count, and PresencePenalty, are subtracted.
	RepeatPenalty    float64 // 1 changes nothing
	PresencePenalty  float64
	FrequencyPenalty float64
	RepeatLastN      int // 0 for no penalties, −1 for all tokens

	Seed uint32
}

// Default returns llama.cpp's defaults, with seed 0.
func Default() Params {
	return Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1, RepeatLastN: 64}
}

// Greedy returns the parameters that always take the largest logit.
func Greedy() Params {
	return Params{TopP: 1, RepeatPenalty: 1}
}

// Validate reports the first parameter out of its range, with its value and range.
func (p Params) Validate() error {
	for _, f := range []struct {
		name      string
		value     float64
		low, high float64
	}{
		{"temperature", p.Temperature, 0, 1e6},
		{"top-p", p.TopP, 0, 1},
		{"min-p", p.MinP, 0, 1},
		{"repeat penalty", p.RepeatPenalty, 1e-3, 1e3},
		{"presence penalty", p.PresencePenalty, -1e3, 1e3},
		{"frequency penalty", p.FrequencyPenalty, -1e3, 1e3},
	} {
		if !(f.value >= f.low && f.value <= f.high) {
			return fmt.Errorf("sample: %s is %v, want a number from %v to %v", f.name, f.value, f.low, f.high)
		}
	}
	if p.RepeatLastN < -1 {
		return fmt.Errorf("sample: repeat last n is %d, want -1 (all tokens), 0 (none) or a number of tokens", p.RepeatLastN)
	}
	return nil
}

// penalizes reports whether any penalty can change a logit.
func (p Params) penalizes() bool {
	return p.RepeatLastN != 0 && (p.RepeatPenalty != 1 || p.PresencePenalty != 0 || p.FrequencyPenalty != 0)
}

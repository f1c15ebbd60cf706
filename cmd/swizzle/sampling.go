package main

import (
	"flag"
	"fmt"
	"math/rand/v2"

	"github.com/swizzle-rt/swizzle/runtime/sample"
)

// samplingFlags say how tokens are chosen. Their defaults are those of sample.Default.
type samplingFlags struct {
	Temp             float64 `default:"0.8" placeholder:"T" help:"Temperature; 0 always takes the likeliest token. Default: ${default}."`
	TopK             int     `default:"40" placeholder:"K" help:"Choose among the K likeliest tokens; 0 among all. Default: ${default}."`
	TopP             float64 `default:"0.95" placeholder:"P" help:"Choose among the likeliest tokens that make up P of the probability. Default: ${default}."`
	MinP             float64 `default:"0.05" placeholder:"P" help:"Leave out tokens less likely than P times the likeliest. Default: ${default}."`
	RepeatPenalty    float64 `default:"1" placeholder:"R" help:"Divide the logits of recent tokens by R; 1 changes nothing. Default: ${default}."`
	PresencePenalty  float64 `default:"0" placeholder:"X" help:"Subtract X from the logits of recent tokens. Default: ${default}."`
	FrequencyPenalty float64 `default:"0" placeholder:"X" help:"Subtract X for each time a token is among the recent ones. Default: ${default}."`
	RepeatLastN      int     `default:"64" placeholder:"N" help:"Tokens that count as recent; -1 for all. Default: ${default}."`
	Seed             int64   `default:"-1" placeholder:"S" help:"Seed of the choice; the same seed gives the same text. Default: another one each time."`
}

// settings returns the flags under their names, for a chat to list and set. Setting one changes s.
func (s *samplingFlags) settings() *flag.FlagSet {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.Float64Var(&s.Temp, "temp", s.Temp, "")
	set.IntVar(&s.TopK, "top-k", s.TopK, "")
	set.Float64Var(&s.TopP, "top-p", s.TopP, "")
	set.Float64Var(&s.MinP, "min-p", s.MinP, "")
	set.Float64Var(&s.RepeatPenalty, "repeat-penalty", s.RepeatPenalty, "")
	set.Float64Var(&s.PresencePenalty, "presence-penalty", s.PresencePenalty, "")
	set.Float64Var(&s.FrequencyPenalty, "frequency-penalty", s.FrequencyPenalty, "")
	set.IntVar(&s.RepeatLastN, "repeat-last-n", s.RepeatLastN, "")
	set.Int64Var(&s.Seed, "seed", s.Seed, "")
	return set
}

// change sets the flag of a name that settings has, or changes nothing and says why.
func (s *samplingFlags) change(name, value string) error {
	changed := *s
	set := changed.settings()
	was := set.Lookup(name).Value.String()
	if err := set.Set(name, value); err != nil {
		return fmt.Errorf("%s: %q, expected a number such as %s", name, value, was)
	}
	if err := changed.params().Validate(); err != nil {
		return err
	}
	*s = changed
	return nil
}

// params returns the flags as parameters of a request. Seeds count modulo 2³²; for -1 each call draws another.
func (s *samplingFlags) params() sample.Params {
	seed := uint32(s.Seed)
	if s.Seed == -1 {
		seed = rand.Uint32()
	}
	return sample.Params{
		Temperature:      s.Temp,
		TopK:             s.TopK,
		TopP:             s.TopP,
		MinP:             s.MinP,
		RepeatPenalty:    s.RepeatPenalty,
		PresencePenalty:  s.PresencePenalty,
		FrequencyPenalty: s.FrequencyPenalty,
		RepeatLastN:      s.RepeatLastN,
		Seed:             seed,
	}
}

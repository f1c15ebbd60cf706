package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/sample"
	"github.com/swizzle-rt/swizzle/runtime/tokenizer"
)

// Request asks for a continuation.
type Request struct {
	Prompt       []int32 // evaluated after what the session holds
	Max          int     // most new tokens; negative: until the context is full
	Params       sample.Params
	Stop         []string // end the text, and are not part of it
	WantLogProbs bool
	LogProbs     int // alternatives for each token, with WantLogProbs
}

// Token is one step of a generation.
type Token struct {
	ID      int32            // −1 for text that was held back until the end
	Text    string           // complete UTF-8; empty while a character or a possible stop string is incomplete
	LogProb float64          // of ID under the softmax of the logits, if asked for
	Top     []sample.LogProb // the most likely tokens, if asked for
}

// Reasons for the end of a generation.
const (
	FinishStop    = "stop"    // the model's end token or a stop string
	FinishLength  = "length"  // Max tokens
	FinishContext = "context" // the context is full
)

// Result sums up a generation.
type Result struct {
	Finish       string // empty after an error
	PromptTokens int
	NewTokens    int // an end token is not counted
	Text         string
	Prefill      time.Duration
	Decode       time.Duration
}

// Generate evaluates the prompt and draws tokens. emit gets every token in order; an error of its own ends the generation.
// A cancelled ctx ends it between tokens and within the prompt; the result then holds what was made so far.
func (s *Session) Generate(ctx context.Context, r Request, emit func(Token) error) (res Result, err error) {
	res.PromptTokens = len(r.Prompt)
	sampler, err := sample.New(r.Params, s.e.info.Vocab)
	if err != nil {
		return res, err
	}
	sampler.Prime(s.ids)
	sampler.Prime(r.Prompt)
	out := newOutput(s.e.tok, r.Stop)
	start := time.Now()
	logits, err := s.Eval(ctx, r.Prompt)
	res.Prefill = time.Since(start)
	if err != nil {
		return res, err
	}
	start = time.Now()
	defer func() { res.Decode, res.Text = time.Since(start), out.text.String() }()
	for {
		if r.Max >= 0 && res.NewTokens >= r.Max {
			res.Finish = FinishLength
			break
		}
		if err := ctx.Err(); err != nil {
			return res, err
		}
		id, err := sampler.Sample(logits)
		if err != nil {
			return res, fmt.Errorf("token %d after %d of the prompt: %w", res.NewTokens, res.PromptTokens, err)
		}
		if s.e.tok.IsEOG(id) {
			res.Finish = FinishStop
			break
		}
		t := Token{ID: id}
		if r.WantLogProbs {
			if t.LogProb, t.Top, err = logProbs(logits, id, r.LogProbs); err != nil {
				return res, err
			}
		}
		sampler.Accept(id)
		res.NewTokens++
		t.Text = out.add(id)
		if err := emit(t); err != nil {
			return res, err
		}
		if out.stopped {
			res.Finish = FinishStop
			return res, nil
		}
		if r.Max >= 0 && res.NewTokens >= r.Max {
			continue // the last token needs no logits
		}
		if s.Len() >= s.e.info.Context {
			res.Finish = FinishContext
			break
		}
		if logits, err = s.Eval(ctx, []int32{id}); err != nil {
			return res, err
		}
	}
	if rest := out.flush(); rest != "" {
		return res, emit(Token{ID: -1, Text: rest})
	}
	return res, nil
}

func logProbs(logits []float32, id int32, n int) (float64, []sample.LogProb, error) {
	p, err := sample.LogProbs(logits, []int32{id})
	if err != nil {
		return 0, nil, err
	}
	var top []sample.LogProb
	if n > 0 {
		top, err = sample.TopLogProbs(logits, n)
	}
	return p[0], top, err
}

// output turns tokens into text that ends before the first stop string.
type output struct {
	stream  *tokenizer.Stream
	stop    []string
	held    string // text that may begin a stop string
	text    strings.Builder
	stopped bool
}

func newOutput(t *tokenizer.Tokenizer, stop []string) *output {
	o := &output{stream: t.NewStream()}
	for _, s := range stop {
		if s != "" {
			o.stop = append(o.stop, s)
		}
	}
	return o
}

// add returns the text that the token completes and that no stop string can take back.
func (o *output) add(id int32) string { return o.release(o.held+o.stream.Add(id), false) }

// flush returns what is held back at the end.
func (o *output) flush() string { return o.release(o.held+o.stream.Flush(), true) }

func (o *output) release(s string, end bool) string {
	cut := len(s)
	for _, stop := range o.stop {
		if i := strings.Index(s, stop); i >= 0 && i < cut {
			cut, o.stopped = i, true
		}
	}
	o.held = ""
	if !o.stopped && !end {
		keep := 0
		for _, stop := range o.stop {
			for n := min(len(stop)-1, len(s)); n > keep; n-- {
				if strings.HasSuffix(s, stop[:n]) {
					keep = n
				}
			}
		}
		cut -= keep
		o.held = s[cut:]
	}
	o.text.WriteString(s[:cut])
	return s[:cut]
}

// Package perplexity measures how well a model predicts a text, and how far its predictions are from those of another
// model. It does what llama-perplexity does, so that figures compare: the text is tokenized whole and cut into chunks, each
// is evaluated for itself, and the second half of its positions counts.
package perplexity

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/tokenizer"
)

// DefaultContext is the usual number of tokens of a chunk.
const DefaultContext = 512

// MinContext is the least number of tokens of a chunk; fewer leave no position to score.
const MinContext = 4

// Options of Measure.
type Options struct {
	Context  int                   // tokens of a chunk
	Chunks   int                   // most chunks, 0 for all that the text fills
	Base     *Base                 // what to compare with, or nil; its rows must all be unread
	Progress func(done, total int) // tokens evaluated, or nil
}

// Tokens tokenizes a text whole: names of control tokens are plain text, and a BOS precedes it where the model adds one.
func Tokens(t *tokenizer.Tokenizer, text string) []int32 {
	var ids []int32
	if t.AddBOS() {
		ids = append(ids, t.BOS())
	}
	return append(ids, t.Encode(text, false)...)
}

// Measure evaluates chunks of the text with the engine, whose context must hold one. A BOS takes the place of the first
// token of each where the model adds one. The token after each of the positions Context/2 … Context−2 is scored.
func Measure(ctx context.Context, e *engine.Engine, text []int32, o Options) (Result, error) {
	n := o.Context
	if n < MinContext {
		return Result{}, fmt.Errorf("chunks of %d tokens, expected at least %d", n, MinContext)
	}
	chunks := len(text) / n
	if o.Chunks > 0 {
		chunks = min(chunks, o.Chunks)
	}
	if chunks == 0 {
		return Result{}, fmt.Errorf("the text has %d tokens, expected at least those of a chunk, %d", len(text), n)
	}
	if o.Base != nil {
		if err := o.Base.matches(text, o, e.Info().Vocab); err != nil {
			return Result{}, err
		}
		chunks = min(chunks, o.Base.Chunks)
	}
	s, err := e.NewSession()
	if err != nil {
		return Result{}, err
	}
	defer s.Close()

	progress := o.Progress
	if progress == nil {
		progress = func(int, int) {}
	}
	first, done := n/2, 0
	advance := func(tokens int) {
		done += tokens
		progress(done, chunks*n)
	}
	sc := &score{base: o.Base}
	for c := range chunks {
		ids := slices.Clone(text[c*n : c*n+n])
		if t := e.Tokenizer(); t.AddBOS() {
			ids[0] = t.BOS()
		}
		s.Truncate(0)
		if _, err := s.Eval(ctx, ids[:first]); err != nil {
			return Result{}, fmt.Errorf("chunk %d: %w", c, err)
		}
		advance(first)
		err := s.EvalAll(ctx, ids[first:n-1], func(i int, logits []float32) error {
			advance(1)
			return sc.add(logits, ids[first+i+1])
		})
		if err != nil {
			return Result{}, fmt.Errorf("chunk %d: %w", c, err)
		}
		advance(1) // the last token is only predicted
	}
	r := sc.result()
	r.Context, r.Chunks = n, chunks
	return r, nil
}

// scoredRows returns the number of positions of a chunk that count.
func scoredRows(context int) int { return context - 1 - context/2 }

// matches checks that the base was made for the same chunks of a text, and for a model with the same vocabulary.
func (b *Base) matches(text []int32, o Options, vocab int) error {
	switch {
	case b.read > 0:
		return errors.New("rows of the base have been read already")
	case b.Context != o.Context:
		return fmt.Errorf("%s: chunks of %d tokens, expected %d", b.path, b.Context, o.Context)
	case b.Vocab != vocab:
		return fmt.Errorf("%s: a vocabulary of %d tokens, the model has %d", b.path, b.Vocab, vocab)
	}
	n := min(len(b.Tokens), len(text))
	for i, id := range b.Tokens[:n] {
		if text[i] != id {
			return fmt.Errorf("%s: token %d is %d, the text has %d: it was made from another text or by another tokenizer", b.path, i, id, text[i])
		}
	}
	return nil
}

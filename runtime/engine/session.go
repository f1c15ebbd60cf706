package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/swizzle-rt/swizzle/runtime/model"
	"github.com/swizzle-rt/swizzle/runtime/template"
)

// Session is one sequence of tokens with its pages of the cache. Its methods are for one goroutine at a time; sessions of
// one engine may be used side by side.
type Session struct {
	e      *Engine
	seq    *model.Sequence
	ids    []int32
	again  []int32 // tokens to evaluate again before the next ones: a recurrent model can't be cut back
	logits []float32
	keep   func(i int, logits []float32) error // copies to logits; made once, since a literal in Eval would be allocated each time
	closed bool
}

// NewSession returns an empty sequence, for which pages of the cache are set aside. The error is ErrBusy if there are as many as
// the engine was loaded for.
func (e *Engine) NewSession() (*Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, ErrClosed
	case e.free == 0:
		return nil, ErrBusy
	}
	e.free--
	s := &Session{e: e, seq: e.model.NewSequence(), logits: make([]float32, e.info.Vocab)}
	s.keep = func(_ int, logits []float32) error {
		copy(s.logits, logits)
		return nil
	}
	return s, nil
}

// Close gives the session's pages back. Closing twice is harmless; a closed session evaluates nothing.
func (s *Session) Close() {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.e.free++
	s.ids, s.again = nil, nil
	if !s.e.closed {
		s.seq.Reset()
	}
}

// Len returns the number of tokens in the cache.
func (s *Session) Len() int { return len(s.ids) }

// Tokens returns the tokens in the cache.
func (s *Session) Tokens() []int32 { return slices.Clone(s.ids) }

// Truncate keeps the first n tokens.
func (s *Session) Truncate(n int) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if s.closed || s.e.closed {
		return
	}
	s.ids = s.ids[:max(0, min(n, len(s.ids)))]
	s.seq.Truncate(len(s.ids))
	s.again = s.ids[s.seq.Len():]
}

// Eval appends ids and returns the logits after the last, valid until the session's next call. If they don't fit, the error
// is ErrContextFull and nothing has changed.
func (s *Session) Eval(ctx context.Context, ids []int32) ([]float32, error) {
	err := s.eval(ctx, ids, false, s.keep)
	return s.logits, err
}

// EvalAll appends ids and calls row with the logits after each, valid during the call.
func (s *Session) EvalAll(ctx context.Context, ids []int32, row func(i int, logits []float32) error) error {
	return s.eval(ctx, ids, true, row)
}

func (s *Session) eval(ctx context.Context, ids []int32, all bool, row func(i int, logits []float32) error) error {
	if len(ids) == 0 {
		return fmt.Errorf("no tokens to evaluate")
	}
	if n := len(s.ids) + len(ids); n > s.e.info.Context {
		return fmt.Errorf("%w: %d tokens and %d more exceed its %d", ErrContextFull, len(s.ids), len(ids), s.e.info.Context)
	}
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if s.closed || s.e.closed {
		return ErrClosed
	}
	if len(s.again) > 0 {
		if err := s.e.model.Forward(ctx, s.seq, s.again, false, func(int, []float32) error { return nil }); err != nil {
			return err
		}
		s.again = nil
	}
	if err := s.e.model.Forward(ctx, s.seq, ids, all, row); err != nil {
		s.again = s.ids[s.seq.Len():]
		return err
	}
	s.ids = append(s.ids, ids...)
	return nil
}

// Prompt renders messages by the model's chat template and tokenizes the text. Names of control tokens count where the
// template writes them; in the messages they are plain text.
func (e *Engine) Prompt(messages []template.Message, opt template.Options) ([]int32, error) {
	if e.chat == nil {
		return nil, fmt.Errorf("%s: %w: the model has no chat template", e.info.Path, ErrUnsupported)
	}
	safe := make([]template.Message, len(messages))
	for i, m := range messages {
		safe[i] = template.Message{Role: m.Role, Content: e.tok.Protect(m.Content)}
		for _, f := range m.Fields {
			safe[i].Fields = append(safe[i].Fields, template.Field{Name: f.Name, Value: e.protect(f.Value)})
		}
	}
	text, err := e.chat.Render(safe, opt)
	if err != nil {
		return nil, err
	}
	ids := e.tok.EncodeProtected(text)
	if bos := e.tok.BOS(); e.tok.AddBOS() && (len(ids) == 0 || ids[0] != bos) {
		ids = append([]int32{bos}, ids...)
	}
	return ids, nil
}

// protect marks the strings within a value of a message.
func (e *Engine) protect(v any) any {
	switch v := v.(type) {
	case string:
		return e.tok.Protect(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = e.protect(v[i])
		}
		return out
	case template.Object:
		out := make(template.Object, len(v))
		for i, f := range v {
			out[i] = template.Field{Name: f.Name, Value: e.protect(f.Value)}
		}
		return out
	}
	return v
}

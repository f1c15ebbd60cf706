package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/template"
)

// conversation asks a model one prompt after the other. With a chat template the model sees the whole conversation each
// time, without one each prompt alone.
type conversation struct {
	engine   *engine.Engine
	session  *engine.Session
	raw      bool // no template: a prompt is continued as it is
	system   string
	predict  int // most new tokens, -1 for no limit
	sampling samplingFlags
	messages []template.Message // without the system message
}

func newConversation(e *engine.Engine, c *runCmd) (*conversation, error) {
	t := &conversation{engine: e, raw: c.Raw || e.Chat() == nil, predict: c.Predict, sampling: c.Sampling}
	if err := t.setSystem(c.System); err != nil {
		return nil, err
	}
	s, err := e.NewSession()
	if err != nil {
		return nil, err
	}
	t.session = s
	return t, nil
}

func (t *conversation) close() { t.session.Close() }

// setSystem sets the system message, "" for none.
func (t *conversation) setSystem(text string) error {
	if text != "" && t.raw {
		return errors.New("a system message needs a chat template, and this model has none or is used without")
	}
	t.system = text
	return nil
}

// clear forgets what was said.
func (t *conversation) clear() {
	t.messages = nil
	t.session.Truncate(0)
}

// ask puts a prompt to the model and gives the answer to emit, piece by piece. A cancelled answer is returned, as far
// as it went, with the context's error, and stays part of the conversation; any other error leaves the conversation as
// it was.
func (t *conversation) ask(ctx context.Context, prompt string, emit func(text string) error) (*reply, error) {
	messages := append(t.messages[:len(t.messages):len(t.messages)], template.Message{Role: "user", Content: prompt})
	ids, err := t.tokens(messages)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errors.New("the prompt is empty")
	}
	params := t.sampling.params()
	result, err := t.session.Generate(ctx, engine.Request{
		Prompt: t.keepPrefix(ids),
		Max:    t.predict,
		Params: params,
	}, func(tok engine.Token) error { return emit(tok.Text) })
	cancelled := errors.Is(err, context.Canceled)
	if err != nil && !cancelled {
		if errors.Is(err, engine.ErrContextFull) {
			hint := "-c N makes it larger"
			if len(t.messages) > 0 && !t.raw {
				hint = "/clear forgets the conversation, " + hint
			}
			return nil, fmt.Errorf("the prompt of %d tokens exceeds the context of %d; %s", len(ids), t.engine.Info().Context, hint)
		}
		return nil, err
	}
	if cancelled {
		result.Finish = interrupted
	}
	t.messages = append(messages, template.Message{Role: "assistant", Content: result.Text})
	return &reply{Result: result, seed: params.Seed}, err
}

// tokens returns the tokens that the model is to continue after messages.
func (t *conversation) tokens(messages []template.Message) ([]int32, error) {
	if t.raw {
		return t.engine.Text(messages[len(messages)-1].Content), nil
	}
	if t.system != "" {
		messages = append([]template.Message{{Role: "system", Content: t.system}}, messages...)
	}
	ids, err := t.engine.Prompt(messages, template.Options{AddGenerationPrompt: true})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.engine.Info().Path, err)
	}
	return ids, nil
}

// keepPrefix cuts the session back to what it has in common with ids and returns the rest of ids, at least the last
// one: a token has to be evaluated to know what follows.
func (t *conversation) keepPrefix(ids []int32) []int32 {
	have := t.session.Tokens()
	n := 0
	for n < len(have) && n < len(ids)-1 && have[n] == ids[n] {
		n++
	}
	t.session.Truncate(n)
	return ids[n:]
}

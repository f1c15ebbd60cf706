package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/sample"
	"github.com/swizzle-rt/swizzle/runtime/template"
	"github.com/swizzle-rt/swizzle/serve/openai"
)

// defaultCompletion is max_tokens of a text completion that names none, as in OpenAI's API. A chat goes on until the model
// ends its turn or the context is full.
const defaultCompletion = 16

func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	var req openai.ChatRequest
	if err := readBody(w, r, &req); err != nil {
		return err
	}
	if err := req.Validate(); err != nil {
		return err
	}
	messages, err := conversation(req.Messages)
	if err != nil {
		return err
	}
	prompt, err := s.model.prompt(messages, template.Options{AddGenerationPrompt: true})
	if err != nil {
		return openai.Invalid("messages", "%v", err)
	}
	g, err := s.request(prompt, &req.Generation)
	if err != nil {
		return err
	}
	g.WantLogProbs = req.LogProbs
	set(&g.LogProbs, req.TopLogProbs)
	return s.answer(w, r, g, &req.Generation, s.newChatReply(req.LogProbs))
}

func (s *Server) completion(w http.ResponseWriter, r *http.Request) error {
	var req openai.CompletionRequest
	if err := readBody(w, r, &req); err != nil {
		return err
	}
	if err := req.Validate(); err != nil {
		return err
	}
	if req.MaxTokens == nil {
		req.MaxTokens = new(int)
		*req.MaxTokens = defaultCompletion
	}
	prompt := req.Prompt.IDs
	if prompt == nil {
		prompt = s.model.text(req.Prompt.Text)
	}
	for i, id := range prompt {
		if size := s.model.tokenizer.Size(); id < 0 || int(id) >= size {
			return openai.Invalid("prompt", "token %d is %d, want 0 to %d", i, id, size-1)
		}
	}
	g, err := s.request(prompt, &req.Generation)
	if err != nil {
		return err
	}
	g.WantLogProbs = req.LogProbs != nil
	set(&g.LogProbs, req.LogProbs)
	return s.answer(w, r, g, &req.Generation, s.newCompletionReply(req.LogProbs != nil))
}

// conversation returns messages as chat templates know them.
func conversation(messages []openai.Message) ([]template.Message, error) {
	out := make([]template.Message, len(messages))
	for i := range messages {
		m := &messages[i]
		text, err := m.Text(fmt.Sprintf("messages[%d].content", i))
		if err != nil {
			return nil, err
		}
		role := m.Role
		if role == "developer" { // OpenAI's later name of system, which no template knows
			role = "system"
		}
		out[i] = template.Message{Role: role, Content: text}
		for _, f := range []struct {
			name  string
			value json.RawMessage
		}{
			{"name", m.Name}, {"tool_calls", m.ToolCalls}, {"tool_call_id", m.ToolCallID},
		} {
			if f.value != nil {
				out[i].Fields = append(out[i].Fields, template.Field{Name: f.name, Value: f.value})
			}
		}
	}
	return out, nil
}

// request returns what the engine is to do, without log-probabilities.
func (s *Server) request(prompt []int32, g *openai.Generation) (engine.Request, error) {
	switch {
	case len(prompt) == 0:
		return engine.Request{}, openai.Invalid("", "the prompt is empty")
	case len(prompt) > s.model.context:
		err := openai.Invalid("", "the prompt has %d tokens, which exceeds the available context size of %d",
			len(prompt), s.model.context)
		err.Code = openai.CodeContextLength
		return engine.Request{}, err
	}
	r := engine.Request{Prompt: prompt, Max: -1, Params: sample.Default(), Stop: g.Stop}
	if g.MaxTokens != nil {
		r.Max = min(*g.MaxTokens, s.model.context)
	}
	p := &r.Params
	set(&p.Temperature, g.Temperature)
	set(&p.TopK, g.TopK)
	set(&p.TopP, g.TopP)
	set(&p.MinP, g.MinP)
	set(&p.RepeatPenalty, g.RepeatPenalty)
	set(&p.PresencePenalty, g.PresencePenalty)
	set(&p.FrequencyPenalty, g.FrequencyPenalty)
	p.Seed = rand.Uint32()
	set((*openai.Seed)(&p.Seed), g.Seed)
	if err := p.Validate(); err != nil {
		return r, openai.Invalid("", "%s", strings.TrimPrefix(err.Error(), "sample: "))
	}
	return r, nil
}

// set stores what a request gives.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// answer runs a request and answers it, whole or streamed.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, g engine.Request, o *openai.Generation, as reply) error {
	if !s.queue.enter() {
		w.Header().Set("Retry-After", "5")
		return &openai.Error{
			Status:  http.StatusServiceUnavailable,
			Type:    openai.ServerError,
			Code:    openai.CodeOverloaded,
			Message: "the server is busy and its queue is full",
		}
	}
	defer s.queue.leave()
	if o.Stream {
		s.stream(w, r, g, o.StreamOptions != nil && o.StreamOptions.IncludeUsage, as)
		return nil
	}
	var (
		text   strings.Builder
		tokens []engine.Token
	)
	result, err := s.generate(r.Context(), g, func(p piece) error {
		text.WriteString(p.text)
		tokens = append(tokens, p.tokens...)
		return nil
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, as.whole(piece{text.String(), tokens}, finishReason(result), usage(result)))
	return nil
}

// piece is a part of an answer.
type piece struct {
	text   string
	tokens []engine.Token // that the text is made of, if log-probabilities are asked for
}

// generate waits for the engine and runs g. emit gets the answer in pieces with text, each with the tokens whose text it
// completes; the last may have tokens alone. Tokens of a stop string are in none.
func (s *Server) generate(ctx context.Context, g engine.Request, emit func(piece) error) (result engine.Result, err error) {
	if err := s.queue.turn(ctx); err != nil {
		return engine.Result{}, err
	}
	defer s.queue.done()
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p)
			err = errPanic
		}
	}()
	var held []engine.Token
	result, err = s.model.generate(ctx, g, func(t engine.Token) error {
		if g.WantLogProbs && t.ID >= 0 {
			held = append(held, t)
		}
		if t.Text == "" {
			return nil
		}
		p := piece{t.Text, held}
		held = nil
		return emit(p)
	})
	if err == nil && result.Finish != "stop" && len(held) > 0 {
		err = emit(piece{"", held})
	}
	if err == nil {
		s.log.Info("generated", "prompt_tokens", result.PromptTokens, "tokens", result.NewTokens,
			"finish", result.Finish, "prefill", result.Prefill, "decode", result.Decode)
	}
	return result, err
}

// finishReason says why an answer ended, in OpenAI's words: a full context is a limit of length too.
func finishReason(r engine.Result) string {
	if r.Finish == "stop" {
		return "stop"
	}
	return "length"
}

func usage(r engine.Result) openai.Usage {
	return openai.Usage{
		PromptTokens:     r.PromptTokens,
		CompletionTokens: r.NewTokens,
		TotalTokens:      r.PromptTokens + r.NewTokens,
	}
}

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
	if err := s.readBody(w, r, &req); err != nil {
		return err
	}
	if err := req.Validate(); err != nil {
		return err
	}
	messages, err := conversation(req.Messages)
	if err != nil {
		return err
	}
	if err := s.checkMessages(messages); err != nil {
		return err
	}
	g, err := s.request(&req.Generation)
	if err != nil {
		return err
	}
	g.WantLogProbs = req.LogProbs
	set(&g.LogProbs, req.TopLogProbs)
	return s.answer(w, r, g, streamed(&req.Generation), s.newChatReply(req.LogProbs), func() ([]int32, error) {
		ids, err := s.model.prompt(messages, template.Options{AddGenerationPrompt: true})
		if err != nil {
			return nil, openai.Invalid("messages", "%v", err)
		}
		return ids, nil
	})
}

func (s *Server) completion(w http.ResponseWriter, r *http.Request) error {
	var req openai.CompletionRequest
	if err := s.readBody(w, r, &req); err != nil {
		return err
	}
	if err := req.Validate(); err != nil {
		return err
	}
	if req.MaxTokens == nil {
		req.MaxTokens = new(int)
		*req.MaxTokens = defaultCompletion
	}
	prompt := req.Prompt
	if err := s.checkPrompt(prompt); err != nil {
		return err
	}
	g, err := s.request(&req.Generation)
	if err != nil {
		return err
	}
	g.WantLogProbs = req.LogProbs != nil
	set(&g.LogProbs, req.LogProbs)
	return s.answer(w, r, g, streamed(&req.Generation), s.newCompletionReply(req.LogProbs != nil), func() ([]int32, error) {
		if prompt.IDs != nil {
			return prompt.IDs, nil
		}
		return s.model.text(prompt.Text), nil
	})
}

// checkMessages refuses a conversation that no template makes fit into the context.
func (s *Server) checkMessages(messages []template.Message) error {
	size := 0
	for i := range messages {
		m := &messages[i]
		size += len(m.Role) + len(m.Content)
		for _, f := range m.Fields {
			if raw, ok := f.Value.(json.RawMessage); ok {
				size += len(raw)
			}
		}
	}
	if n := len(messages); n > s.model.context {
		return s.tooLong(n, "messages")
	}
	return s.checkSize(size)
}

// checkPrompt refuses a prompt of unknown tokens, or one that does not fit into the context.
func (s *Server) checkPrompt(p *openai.Prompt) error {
	if err := s.checkLen(len(p.IDs)); err != nil {
		return err
	}
	for i, id := range p.IDs {
		if size := s.model.tokenizer.Size(); id < 0 || int(id) >= size {
			return openai.Invalid("prompt", "token %d is %d, want 0 to %d", i, id, size-1)
		}
	}
	return s.checkSize(len(p.Text))
}

// checkSize refuses a text of more bytes than the longest tokens hold. It spares the time and the memory to tokenize it.
func (s *Server) checkSize(bytes int) error {
	if bytes > s.model.context*s.model.tokenizer.MaxLen() {
		return s.tooLong(bytes, "bytes")
	}
	return nil
}

func (s *Server) checkLen(tokens int) error {
	if tokens > s.model.context {
		return s.tooLong(tokens, "tokens")
	}
	return nil
}

// tooLong is the error for what exceeds the context.
func (s *Server) tooLong(n int, unit string) error {
	err := openai.Invalid("", "the prompt has %d %s, which exceeds the available context size of %d tokens", n, unit, s.model.context)
	err.Code = openai.CodeContextLength
	return err
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

// request returns what the engine is to do, without prompt and log-probabilities.
func (s *Server) request(g *openai.Generation) (engine.Request, error) {
	r := engine.Request{Max: -1, Params: sample.Default(), Stop: g.Stop}
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

// delivery is how an answer reaches the client.
type delivery struct {
	stream bool // or whole
	usage  bool // at the end of a stream
}

func streamed(g *openai.Generation) delivery {
	return delivery{g.Stream, g.StreamOptions != nil && g.StreamOptions.IncludeUsage}
}

// answer runs a request and answers it. The prompt is made when the request has a place in the queue, and before an answer
// begins, so that its errors have a status.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, g engine.Request, d delivery, as reply, prompt func() ([]int32, error)) error {
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
	var err error
	if g.Prompt, err = s.tokens(r.Context(), prompt); err != nil {
		return err
	}
	if d.stream {
		s.stream(w, r, g, d.usage, as)
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

// tokens makes a prompt when its turn has come.
func (s *Server) tokens(ctx context.Context, prompt func() ([]int32, error)) ([]int32, error) {
	if err := s.queue.tokenizer.take(ctx); err != nil {
		return nil, err
	}
	defer s.queue.tokenizer.give()
	ids, err := prompt()
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, openai.Invalid("", "the prompt is empty")
	}
	return ids, s.checkLen(len(ids))
}

// piece is a part of an answer.
type piece struct {
	text   string
	tokens []engine.Token // that the text is made of, if log-probabilities are asked for
}

// generate waits for the engine and runs g. emit gets the answer in pieces with text, each with the tokens whose text it
// completes; the last may have tokens alone. Tokens of a stop string are in none.
func (s *Server) generate(ctx context.Context, g engine.Request, emit func(piece) error) (result engine.Result, err error) {
	if err := s.queue.engine.take(ctx); err != nil {
		return engine.Result{}, err
	}
	defer s.queue.engine.give()
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
	if err == nil && result.Finish != engine.FinishStop && len(held) > 0 {
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
	if r.Finish == engine.FinishStop {
		return openai.FinishStop
	}
	return openai.FinishLength
}

func usage(r engine.Result) openai.Usage {
	return openai.Usage{
		PromptTokens:     r.PromptTokens,
		CompletionTokens: r.NewTokens,
		TotalTokens:      r.PromptTokens + r.NewTokens,
	}
}

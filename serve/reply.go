package serve

import (
	"crypto/rand"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/tokenizer"
	"github.com/swizzle-rt/swizzle/serve/openai"
)

// reply puts an answer into the shape of its route: as a whole, or as the frames of a stream.
type reply interface {
	whole(p piece, finish string, u openai.Usage) any
	first() any // nil for no frame
	delta(p piece) any
	last(finish string) any
	usage(u openai.Usage) any
}

// chatReply is the reply of /v1/chat/completions.
type chatReply struct {
	chunk    openai.ChatChunk // without choices
	logProbs bool
	vocab    vocabulary
}

func (s *Server) newChatReply(logProbs bool) reply {
	return &chatReply{
		chunk: openai.ChatChunk{
			ID:      "chatcmpl-" + rand.Text(),
			Object:  "chat.completion.chunk",
			Created: time.Now().Unix(),
			Model:   s.id,
			Choices: []openai.ChatChunkChoice{},
		},
		logProbs: logProbs,
		vocab:    vocabulary{s.model.tokenizer},
	}
}

func (c *chatReply) whole(p piece, finish string, u openai.Usage) any {
	return openai.ChatCompletion{
		ID:      c.chunk.ID,
		Object:  "chat.completion",
		Created: c.chunk.Created,
		Model:   c.chunk.Model,
		Choices: []openai.ChatChoice{{
			Message:      openai.ChatMessage{Role: "assistant", Content: p.text},
			LogProbs:     c.scores(p.tokens),
			FinishReason: finish,
		}},
		Usage: u,
	}
}

func (c *chatReply) first() any {
	return c.with(openai.ChatChunkChoice{Delta: openai.ChatDelta{Role: "assistant", Content: new(string)}})
}

func (c *chatReply) delta(p piece) any {
	return c.with(openai.ChatChunkChoice{Delta: openai.ChatDelta{Content: &p.text}, LogProbs: c.scores(p.tokens)})
}

func (c *chatReply) last(finish string) any {
	return c.with(openai.ChatChunkChoice{FinishReason: &finish})
}

func (c *chatReply) usage(u openai.Usage) any {
	chunk := c.chunk
	chunk.Usage = &u
	return chunk
}

func (c *chatReply) with(choice openai.ChatChunkChoice) openai.ChatChunk {
	chunk := c.chunk
	chunk.Choices = []openai.ChatChunkChoice{choice}
	return chunk
}

func (c *chatReply) scores(tokens []engine.Token) *openai.ChatLogProbs {
	if !c.logProbs {
		return nil
	}
	scores := &openai.ChatLogProbs{Content: make([]openai.ChatToken, len(tokens))}
	for i, t := range tokens {
		top := make([]openai.TokenLogProb, len(t.Top))
		for j, alt := range t.Top {
			top[j] = c.vocab.score(alt.ID, alt.LogProb)
		}
		scores.Content[i] = openai.ChatToken{TokenLogProb: c.vocab.score(t.ID, t.LogProb), TopLogProbs: top}
	}
	return scores
}

// completionReply is the reply of /v1/completions.
type completionReply struct {
	frame    openai.Completion // without choices
	logProbs bool
	vocab    vocabulary
	offset   int // characters begun by the tokens so far
}

func (s *Server) newCompletionReply(logProbs bool) reply {
	return &completionReply{
		frame: openai.Completion{
			ID:      "cmpl-" + rand.Text(),
			Object:  "text_completion",
			Created: time.Now().Unix(),
			Model:   s.id,
			Choices: []openai.CompletionChoice{},
		},
		logProbs: logProbs,
		vocab:    vocabulary{s.model.tokenizer},
	}
}

func (c *completionReply) whole(p piece, finish string, u openai.Usage) any {
	frame := c.with(openai.CompletionChoice{Text: p.text, LogProbs: c.scores(p.tokens), FinishReason: &finish})
	frame.Usage = &u
	return frame
}

func (c *completionReply) first() any { return nil }

func (c *completionReply) delta(p piece) any {
	return c.with(openai.CompletionChoice{Text: p.text, LogProbs: c.scores(p.tokens)})
}

func (c *completionReply) last(finish string) any {
	return c.with(openai.CompletionChoice{FinishReason: &finish})
}

func (c *completionReply) usage(u openai.Usage) any {
	frame := c.frame
	frame.Usage = &u
	return frame
}

func (c *completionReply) with(choice openai.CompletionChoice) openai.Completion {
	frame := c.frame
	frame.Choices = []openai.CompletionChoice{choice}
	return frame
}

func (c *completionReply) scores(tokens []engine.Token) *openai.CompletionLogProbs {
	if !c.logProbs {
		return nil
	}
	n := len(tokens)
	scores := &openai.CompletionLogProbs{
		Tokens:        make([]string, n),
		TokenLogProbs: make([]float64, n),
		TopLogProbs:   make([]map[string]float64, n),
		TextOffset:    make([]int, n),
	}
	for i, t := range tokens {
		score := c.vocab.score(t.ID, t.LogProb)
		scores.Tokens[i] = score.Token
		scores.TokenLogProbs[i] = score.LogProb
		scores.TextOffset[i] = c.offset
		scores.TopLogProbs[i] = map[string]float64{score.Token: score.LogProb}
		for _, alt := range t.Top {
			score := c.vocab.score(alt.ID, alt.LogProb)
			scores.TopLogProbs[i][score.Token] = score.LogProb
		}
		for _, b := range c.vocab.Piece(t.ID) {
			if utf8.RuneStart(b) {
				c.offset++
			}
		}
	}
	return scores
}

// vocabulary names tokens to clients.
type vocabulary struct{ *tokenizer.Tokenizer }

// minLogProb takes the place of −Inf, which JSON does not have.
const minLogProb = -9999

// score returns a token by its text, or by its name if it is a control token.
func (v vocabulary) score(id int32, logProb float64) openai.TokenLogProb {
	text := v.Piece(id)
	if v.IsControl(id) {
		text = []byte(v.Text(id))
	}
	bytes := make([]int, len(text))
	for i, b := range text {
		bytes[i] = int(b)
	}
	return openai.TokenLogProb{
		Token:   strings.ToValidUTF8(string(text), string(utf8.RuneError)),
		LogProb: math.Max(logProb, minLogProb),
		Bytes:   bytes,
	}
}

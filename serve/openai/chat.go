package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// maxTopLogProbs is the most alternatives to a token that a request may ask for.
const maxTopLogProbs = 20

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Generation
	Messages            []Message `json:"messages"`
	MaxCompletionTokens *int      `json:"max_completion_tokens"` // the newer name of max_tokens, and stronger
	LogProbs            bool      `json:"logprobs"`
	TopLogProbs         *int      `json:"top_logprobs"`

	// Not supported.
	Tools     json.RawMessage `json:"tools"`
	Functions json.RawMessage `json:"functions"`
}

// Message is one message of a conversation.
type Message struct {
	Role    string          `json:"role"`    // system, developer, user, assistant or tool
	Content json.RawMessage `json:"content"` // see Text

	// These are handed to the chat template as they are; nil if absent.
	Name       json.RawMessage `json:"name"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID json.RawMessage `json:"tool_call_id"`
}

// Text returns the content: a string, or the texts of an array of parts of type "text", each on its own line. An
// assistant's message may have none, as it does beside tool calls. The error, an *[Error], calls the content param.
func (m *Message) Text(param string) (string, error) {
	var text string
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	switch content := bytes.TrimSpace(m.Content); {
	case len(content) == 0 || string(content) == "null":
		if m.Role != "assistant" {
			return "", Invalid(param, "missing, want a string or an array of parts")
		}
		return "", nil
	case json.Unmarshal(content, &text) == nil:
		return text, nil
	case json.Unmarshal(content, &parts) != nil:
		return "", Invalid(param, "want a string or an array of parts")
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		if p.Type != "text" {
			return "", Unsupported(param, "part %d has type %q, only \"text\" is supported", i, shorten(p.Type))
		}
		if p.Text == nil {
			return "", Invalid(param, "part %d has no text", i)
		}
		texts[i] = *p.Text
	}
	return strings.Join(texts, "\n"), nil
}

// Validate checks what does not depend on the model, but for the contents of the messages. The error is an *[Error].
func (r *ChatRequest) Validate() error {
	if n := r.MaxCompletionTokens; n != nil {
		if *n < 1 {
			return Invalid("max_completion_tokens", "got %d, want at least 1", *n)
		}
		r.MaxTokens = n
	}
	if err := r.validate(); err != nil {
		return err
	}
	if n := r.TopLogProbs; n != nil && *n != 0 {
		if *n < 0 || *n > maxTopLogProbs {
			return Invalid("top_logprobs", "got %d, want 0 to %d", *n, maxTopLogProbs)
		}
		if !r.LogProbs {
			return Invalid("top_logprobs", "needs \"logprobs\": true")
		}
	}
	if len(r.Messages) == 0 {
		return Invalid("messages", "missing or empty, want at least one message")
	}
	for i := range r.Messages {
		switch role := r.Messages[i].Role; role {
		case "system", "developer", "user", "assistant", "tool":
		default:
			return Invalid(fmt.Sprintf("messages[%d].role", i),
				"got %q, want system, developer, user, assistant or tool", shorten(role))
		}
	}
	return unsupported(field{"tools", r.Tools}, field{"functions", r.Functions})
}

// ChatCompletion is the answer to a chat request.
type ChatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"` // "chat.completion"
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []ChatChoice `json:"choices"`
	Usage   Usage        `json:"usage"`
}

// ChatChoice is one answer of a ChatCompletion.
type ChatChoice struct {
	Index        int           `json:"index"`
	Message      ChatMessage   `json:"message"`
	LogProbs     *ChatLogProbs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
}

// ChatMessage is the message of a ChatChoice.
type ChatMessage struct {
	Role    string  `json:"role"` // "assistant"
	Content string  `json:"content"`
	Refusal *string `json:"refusal"` // always null; the API's schema requires it
}

// ChatChunk is a frame of a streamed answer to a chat request.
type ChatChunk struct {
	ID      string            `json:"id"`
	Object  string            `json:"object"` // "chat.completion.chunk"
	Created int64             `json:"created"`
	Model   string            `json:"model"`
	Choices []ChatChunkChoice `json:"choices"` // not nil, but empty in the chunk with the usage
	Usage   *Usage            `json:"usage,omitempty"`
}

// ChatChunkChoice is the choice of a ChatChunk.
type ChatChunkChoice struct {
	Index        int           `json:"index"`
	Delta        ChatDelta     `json:"delta"`
	LogProbs     *ChatLogProbs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

// ChatDelta is what a chunk adds to the message: the role in the first chunk, text in those after it.
type ChatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// ChatLogProbs has the log-probabilities of the tokens of a choice.
type ChatLogProbs struct {
	Content []ChatToken `json:"content"`
	Refusal []ChatToken `json:"refusal"` // always null
}

// ChatToken is a token with the alternatives to it.
type ChatToken struct {
	TokenLogProb
	TopLogProbs []TokenLogProb `json:"top_logprobs"` // not nil
}

// TokenLogProb is a token with its log-probability.
type TokenLogProb struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"` // of the token's text, which may end inside a character
}

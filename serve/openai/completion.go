package openai

import (
	"bytes"
	"encoding/json"
)

// maxLogProbs is the most alternatives to a token that a completion may ask for.
const maxLogProbs = 20

// CompletionRequest is the body of POST /v1/completions.
type CompletionRequest struct {
	Generation
	Prompt   *Prompt `json:"prompt"`
	LogProbs *int    `json:"logprobs"` // alternatives to each token; nil for no log-probabilities
	Echo     bool    `json:"echo"`     // false
	BestOf   *int    `json:"best_of"`  // 1

	// Not supported.
	Suffix json.RawMessage `json:"suffix"`
}

// Validate checks what does not depend on the model. The error is an *[Error].
func (r *CompletionRequest) Validate() error {
	if err := r.validate(); err != nil {
		return err
	}
	if r.Prompt == nil {
		return Invalid("prompt", "missing")
	}
	if n := r.LogProbs; n != nil && (*n < 0 || *n > maxLogProbs) {
		return Invalid("logprobs", "got %d, want 0 to %d", *n, maxLogProbs)
	}
	if r.Echo {
		return Unsupported("echo", "not supported")
	}
	if n := r.BestOf; n != nil && *n != 1 {
		return Unsupported("best_of", "got %d, only 1 is supported", *n)
	}
	return unsupported(field{"suffix", r.Suffix})
}

// Prompt is the prompt of a completion, in JSON a string or an array of token ids, or an array that holds one of these.
type Prompt struct {
	Text string
	IDs  []int32 // not nil if the prompt is given by ids
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *Prompt) UnmarshalJSON(data []byte) error {
	if p.decode(data) {
		return nil
	}
	var many []json.RawMessage
	if json.Unmarshal(data, &many) == nil {
		if len(many) == 1 && p.decode(many[0]) {
			return nil
		}
		if len(many) > 1 && (many[0][0] == '"' || many[0][0] == '[') {
			return Unsupported("prompt", "got %d prompts, only one is supported", len(many))
		}
	}
	return Invalid("prompt", "want a string or an array of token ids")
}

// decode decodes a string or an array of ids.
func (p *Prompt) decode(data []byte) bool {
	*p = Prompt{}
	switch {
	case data[0] == '"':
		return json.Unmarshal(data, &p.Text) == nil
	case bytes.Contains(data, []byte("null")): // which would decode into 0
		return false
	}
	return json.Unmarshal(data, &p.IDs) == nil
}

// Completion is the answer to a completion request, and a frame of it if streamed.
type Completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"` // "text_completion"
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []CompletionChoice `json:"choices"` // not nil, but empty in the frame with the usage
	Usage   *Usage             `json:"usage,omitempty"`
}

// CompletionChoice is one answer of a Completion, or a piece of it.
type CompletionChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	LogProbs     *CompletionLogProbs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"` // null in all frames but the last
}

// CompletionLogProbs has the log-probabilities of the tokens of a choice, in arrays of equal length.
type CompletionLogProbs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogProbs []float64            `json:"token_logprobs"`
	TopLogProbs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in characters of the answer
}

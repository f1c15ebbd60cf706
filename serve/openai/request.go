package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// Limits on stop strings.
const (
	maxStops     = 16
	maxStopBytes = 1024
)

// Reasons for the end of an answer.
const (
	FinishStop   = "stop"   // the model's end token or a stop string
	FinishLength = "length" // the tokens asked for, or a full context
)

// Generation has the parameters that chat completions and text completions share. A nil pointer stands for the default.
// TopK, MinP and RepeatPenalty are not OpenAI's; other servers of local models have them under these names.
type Generation struct {
	Model         string         `json:"model"`
	MaxTokens     *int           `json:"max_tokens"`
	Stop          Stop           `json:"stop"`
	Stream        bool           `json:"stream"`
	StreamOptions *StreamOptions `json:"stream_options"`

	Temperature      *float64 `json:"temperature"`
	TopK             *int     `json:"top_k"`
	TopP             *float64 `json:"top_p"`
	MinP             *float64 `json:"min_p"`
	PresencePenalty  *float64 `json:"presence_penalty"`
	FrequencyPenalty *float64 `json:"frequency_penalty"`
	RepeatPenalty    *float64 `json:"repeat_penalty"`
	Seed             *Seed    `json:"seed"`

	N              *int            `json:"n"`               // 1
	ResponseFormat *ResponseFormat `json:"response_format"` // {"type": "text"}

	// Not supported: refused where they would change the answer.
	LogitBias  json.RawMessage `json:"logit_bias"`
	Grammar    json.RawMessage `json:"grammar"`
	JSONSchema json.RawMessage `json:"json_schema"`
}

// StreamOptions are the options of a streamed answer.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"` // a last chunk, without choices, has the usage
}

// ResponseFormat is the form the answer must have. Only "text" is supported.
type ResponseFormat struct {
	Type string `json:"type"`
}

// validate checks what does not depend on the model. The ranges of the sampling parameters are the sampler's to check.
func (g *Generation) validate() error {
	if g.MaxTokens != nil && *g.MaxTokens < 1 {
		return Invalid("max_tokens", "got %d, want at least 1", *g.MaxTokens)
	}
	if g.N != nil && *g.N != 1 {
		return Unsupported("n", "got %d, only 1 is supported", *g.N)
	}
	if f := g.ResponseFormat; f != nil && f.Type != "text" {
		return Unsupported("response_format", "type %q is not supported, only \"text\"", shorten(f.Type))
	}
	return unsupported(
		field{"logit_bias", g.LogitBias},
		field{"grammar", g.Grammar},
		field{"json_schema", g.JSONSchema},
	)
}

type field struct {
	name  string
	value json.RawMessage
}

// unsupported reports the first field that asks for something: one that is there and neither null nor empty.
func unsupported(fields ...field) error {
	for _, f := range fields {
		var compact bytes.Buffer
		if len(f.value) > 0 && json.Compact(&compact, f.value) != nil {
			return Invalid(f.name, "not valid JSON")
		}
		switch compact.String() {
		case "", "null", "false", `""`, "[]", "{}":
		default:
			return Unsupported(f.name, "not supported")
		}
	}
	return nil
}

// Stop are the strings that end an answer: a JSON string or an array of them.
type Stop []string

// UnmarshalJSON implements [json.Unmarshaler]. It refuses empty strings, which every text ends with.
func (s *Stop) UnmarshalJSON(data []byte) error {
	var one string
	switch {
	case string(data) == "null":
		return nil
	case json.Unmarshal(data, &one) == nil:
		*s = Stop{one}
	case json.Unmarshal(data, (*[]string)(s)) != nil:
		return Invalid("stop", "want a string or an array of strings")
	}
	if len(*s) > maxStops {
		return Invalid("stop", "got %d strings, want at most %d", len(*s), maxStops)
	}
	for i, stop := range *s {
		if len(stop) == 0 || len(stop) > maxStopBytes {
			return Invalid("stop", "string %d has %d bytes, want 1 to %d", i, len(stop), maxStopBytes)
		}
	}
	return nil
}

// Seed is the seed of a random generator: any integer of 64 bits, of which the low 32 count.
type Seed uint32

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Seed) UnmarshalJSON(data []byte) error {
	if n, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*s = Seed(uint64(n) & math.MaxUint32)
		return nil
	}
	n, err := strconv.ParseUint(string(data), 10, 64)
	if err != nil {
		return Invalid("seed", "got %s, want an integer of 64 bits", shorten(string(data)))
	}
	*s = Seed(n & math.MaxUint32)
	return nil
}

// Usage counts the tokens of a request.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

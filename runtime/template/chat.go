package template

import (
	"fmt"
	"time"
)

// Chat renders conversations with a model's template. It is immutable and safe
// for concurrent use.
type Chat struct {
	tmpl     *Template
	bos, eos string
}

// ForModel parses the chat template src of a model. The texts of its special
// tokens are the variables bos_token and eos_token ("" where it has none).
func ForModel(src string, bosToken, eosToken string) (*Chat, error) {
	t, err := Parse("chat_template", src)
	if err != nil {
		return nil, err
	}
	return &Chat{t, bosToken, eosToken}, nil
}

// Message is one message of a conversation. The template sees a dict of role,
// content and the Fields in their order; a field called content, such as null or
// a list of parts, takes the place of Content.
type Message struct {
	Role    string
	Content string
	Fields  Object
}

// Options are the other inputs of a chat template.
type Options struct {
	AddGenerationPrompt bool           // end with the start of the assistant's turn
	Tools               any            // what Template.Render takes, such as json.RawMessage; nil: none
	Extra               map[string]any // more variables; they take the place of those of the same name
	Now                 time.Time      // for strftime_now; zero: the current time
	Limits              Limits
}

// Render returns the text of a conversation. An error is an *Error or, where
// the template refuses the conversation, a *RaiseError.
func (c *Chat) Render(messages []Message, opt Options) (string, error) {
	list := make([]Object, len(messages))
	for i, m := range messages {
		list[i] = append(Object{{"role", m.Role}, {"content", m.Content}}, m.Fields...)
	}
	vars := map[string]any{
		"messages":              list,
		"tools":                 opt.Tools,
		"documents":             nil,
		"add_generation_prompt": opt.AddGenerationPrompt,
		"bos_token":             c.bos,
		"eos_token":             c.eos,
	}
	for name, v := range opt.Extra {
		vars[name] = v
	}
	now := opt.Now
	if now.IsZero() {
		now = time.Now()
	}
	out, err := c.tmpl.render(vars, opt.Limits, now)
	if err != nil {
		return "", fmt.Errorf("render chat template: %w", err)
	}
	return out, nil
}

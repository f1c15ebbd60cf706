package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestChat renders conversations: the constructs of published templates, some
// after reports of renderers that got them wrong.
func TestChat(t *testing.T) {
	var cases []struct {
		About        string
		Template     string
		Messages     json.RawMessage
		Tools        json.RawMessage
		NoGeneration bool `json:"no_generation"`
		Want         string
		Raises       string
	}
	readJSON(t, "chats.json", &cases)
	for _, c := range cases {
		t.Run(c.About, func(t *testing.T) {
			chat, err := ForModel(c.Template, "<bos>", "<eos>")
			if err != nil {
				t.Fatal(err)
			}
			opt := Options{AddGenerationPrompt: !c.NoGeneration, Now: now}
			if c.Tools != nil {
				opt.Tools = c.Tools
			}
			got, err := chat.Render(decodeMessages(t, c.Messages), opt)
			if c.Raises != "" {
				var raise *RaiseError
				if !errors.As(err, &raise) || raise.Message != c.Raises {
					t.Errorf("got error %v, want %q raised", err, c.Raises)
				}
			} else if err != nil || got != c.Want {
				t.Errorf("got error %v and\n%q, want\n%q", err, got, c.Want)
			}
		})
	}
}

func decodeMessages(t *testing.T, data []byte) []Message {
	t.Helper()
	v, err := DecodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	var messages []Message
	for _, item := range v.([]any) {
		var m Message
		for _, f := range item.(Object) {
			text, isText := f.Value.(string)
			switch {
			case f.Name == "role":
				m.Role = text
			case f.Name == "content" && isText:
				m.Content = text
			default:
				m.Fields = append(m.Fields, f)
			}
		}
		messages = append(messages, m)
	}
	return messages
}

func TestChatVariables(t *testing.T) {
	chat, err := ForModel("{{ bos_token }}{{ eos_token }}{{ tools }}{{ documents }}{{ x }}{{ add_generation_prompt }}{{ messages }}", "<s>", "")
	if err != nil {
		t.Fatal(err)
	}
	m := []Message{{Role: "tool", Fields: Object{{"name", "f"}, {"content", nil}}}}
	got, err := chat.Render(m, Options{Extra: map[string]any{"x": 1, "tools": "none"}})
	want := "<s>noneNone1False[{'role': 'tool', 'content': None, 'name': 'f'}]"
	if err != nil || got != want {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
	got, err = chat.Render(nil, Options{AddGenerationPrompt: true})
	want = "<s>NoneNoneTrue[]"
	if err != nil || got != want {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
	if _, err := chat.Render(m, Options{Limits: Limits{Output: 5}}); !errors.Is(err, ErrLimit) {
		t.Errorf("got error %v, want ErrLimit", err)
	}
}

func TestStrftimeNow(t *testing.T) {
	chat, err := ForModel("{{ strftime_now('%-d.%-m.%y %-I %p %j %u %w %U %W %V %G %C %e %k %l %f %z %Z %s%n%t%%') }}", "", "")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2023, 1, 1, 15, 4, 5, 6000, time.UTC)
	want := fmt.Sprintf("1.1.23 3 PM 001 7 0 01 00 52 2022 20  1 15  3 000006 +0000 UTC %d\n\t%%", at.Unix())
	if got, err := chat.Render(nil, Options{Now: at}); err != nil || got != want {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
	before := time.Now().Year()
	chat, err = ForModel("{{ strftime_now('%Y')|int }}", "", "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := chat.Render(nil, Options{})
	if after := time.Now().Year(); err != nil || got != fmt.Sprint(before) && got != fmt.Sprint(after) {
		t.Errorf("got %q, error %v, want the year %d", got, err, after)
	}
}

package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hi = `"messages":[{"role":"user","content":"hi"}]`

func decodeChat(body string) (ChatRequest, error) {
	var r ChatRequest
	err := Decode([]byte(body), &r)
	if err == nil {
		err = r.Validate()
	}
	for i := range r.Messages {
		if err == nil {
			_, err = r.Messages[i].Text(fmt.Sprintf("messages[%d].content", i))
		}
	}
	return r, err
}

func decodeCompletion(body string) (CompletionRequest, error) {
	var r CompletionRequest
	err := Decode([]byte(body), &r)
	if err == nil {
		err = r.Validate()
	}
	return r, err
}

// wantError checks status, parameter and code, and that the message has text in it.
func wantError(t *testing.T, err error, param, code, text string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want an *Error", err)
	}
	if e.Status != http.StatusBadRequest || e.Type != InvalidRequest || e.Param != param || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("got %#v, want param %q, code %q and a message with %q", e, param, code, text)
	}
	if len(e.Message) > 300 {
		t.Errorf("message of %d bytes", len(e.Message))
	}
}

func TestBadChatRequests(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, tt := range []struct{ name, body, param, code, text string }{
		{"empty", "", "", "", "no body"},
		{"spaces", " \n\t", "", "", "no body"},
		{"null", "null", "", "", "not a JSON object"},
		{"array", "[]", "", "", "not a JSON object"},
		{"string", `"a"`, "", "", "not a JSON object"},
		{"byte order mark", "\ufeff{" + hi + "}", "", "", "not a JSON object"},
		{"cut", "{", "", "", "not valid JSON"},
		{"cut in a list", `{"messages":[`, "", "", "not valid JSON"},
		{"cut in a string", `{"messages":[{"role":"us`, "", "", "not valid JSON"},
		{"cut in an escape", `{"a\`, "", "", "not valid JSON"},
		{"cut in a surrogate", `{"a":"\ud83d\u`, "", "", "half of a surrogate"},
		{"closed too often", `{}}`, "", "", "not valid JSON"},
		{"closed at once", `{]`, "", "", "not valid JSON"},
		{"trailing text", "{" + hi + "} trailing", "", "", "not valid JSON"},
		{"two objects", "{" + hi + "}{}", "", "", "not valid JSON"},
		{"not UTF-8", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\xff\xfe\"}]}", "", "", "not valid UTF-8"},
		{"UTF-16", "\xff\xfe{\x00", "", "", "not a JSON object"},
		{"high surrogate", `{"messages":[{"role":"user","content":"\ud800 x"}]}`, "", "", "surrogate"},
		{"low surrogate", `{"messages":[{"role":"user","content":"x \udc00"}]}`, "", "", "surrogate"},
		{"surrogates in wrong order", `{"a":"\udc00\ud800"}`, "", "", "surrogate"},
		{"surrogate in a key", `{"\ud800":1}`, "", "", "surrogate"},
		{"duplicate key", "{" + hi + `,"model":"a","model":"b"}`, "", "", `"model" occurs twice`},
		{"duplicate key, spelled otherwise", "{" + hi + `,"model":"a","m\u006fdel":"b"}`, "", "", `"model" occurs twice`},
		{"duplicate key inside", `{"messages":[{"role":"user","role":"user"}]}`, "", "", `"role" occurs twice`},
		{"deep", `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}", "", "", "deeper"},
		{"very deep", `{"a":` + strings.Repeat("[", 1<<20), "", "", "deeper"},
		{"many values", `{"a":[` + strings.Repeat("0,", 1<<20) + "0]}", "", "", "more than"},
		{"huge number", "{" + hi + `,"temperature":1e999}`, "temperature", "", "want a number"},
		{"huge integer", "{" + hi + `,"max_tokens":99999999999999999999}`, "max_tokens", "", "want an integer"},
		{"long number", "{" + hi + `,"max_tokens":` + strings.Repeat("9", 5000) + "}", "max_tokens", "", "want an integer"},
		{"fraction", "{" + hi + `,"top_k":1.5}`, "top_k", "", "got number 1.5, want an integer"},
		{"temperature of another type", "{" + hi + `,"temperature":"hot"}`, "temperature", "", "got string, want a number"},
		{"stream of another type", "{" + hi + `,"stream":1}`, "stream", "", "want true or false"},
		{"messages of another type", `{"messages":5}`, "messages", "", "got number, want an array"},
		{"message of another type", `{"messages":["hi"]}`, "messages", "", "got string, want an object"},
		{"role of another type", `{"messages":[{"role":1}]}`, "messages.role", "", "want a string"},
		{"no messages", `{}`, "messages", "", "at least one"},
		{"messages empty", `{"messages":[]}`, "messages", "", "at least one"},
		{"message null", `{"messages":[null]}`, "messages[0].role", "", "want system"},
		{"role", `{"messages":[{"role":"user","content":""},{"role":"` + long + `","content":"x"}]}`, "messages[1].role", "", "want system"},
		{"no content", `{"messages":[{"role":"user"}]}`, "messages[0].content", "", "missing"},
		{"null content", `{"messages":[{"role":"user","content":null}]}`, "messages[0].content", "", "missing"},
		{"content of another type", `{"messages":[{"role":"user","content":5}]}`, "messages[0].content", "", "want a string"},
		{"content an object", `{"messages":[{"role":"user","content":{}}]}`, "messages[0].content", "", "want a string"},
		{"part of another type", `{"messages":[{"role":"user","content":["hi"]}]}`, "messages[0].content", "", "want a string or an array"},
		{"image", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "messages[0].content", CodeUnsupported, `"image_url"`},
		{"part without text", `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages[0].content", "", "no text"},
		{"max_tokens 0", "{" + hi + `,"max_tokens":0}`, "max_tokens", "", "at least 1"},
		{"max_tokens -1", "{" + hi + `,"max_tokens":-1}`, "max_tokens", "", "at least 1"},
		{"max_completion_tokens 0", "{" + hi + `,"max_completion_tokens":0}`, "max_completion_tokens", "", "at least 1"},
		{"n", "{" + hi + `,"n":2}`, "n", CodeUnsupported, "only 1"},
		{"stop empty", "{" + hi + `,"stop":""}`, "stop", "", "0 bytes"},
		{"one stop empty", "{" + hi + `,"stop":["a",""]}`, "stop", "", "string 1 has 0 bytes"},
		{"a stop null", "{" + hi + `,"stop":["a",null]}`, "stop", "", "string 1 has 0 bytes"},
		{"stop long", "{" + hi + `,"stop":"` + long + `"}`, "stop", "", "2000 bytes"},
		{"many stops", "{" + hi + `,"stop":[` + strings.Repeat(`"a",`, 16) + `"a"]}`, "stop", "", "17 strings"},
		{"stop of another type", "{" + hi + `,"stop":5}`, "stop", "", "want a string or"},
		{"seed a fraction", "{" + hi + `,"seed":1.5}`, "seed", "", "want an integer"},
		{"seed a string", "{" + hi + `,"seed":"1"}`, "seed", "", "want an integer"},
		{"seed huge", "{" + hi + `,"seed":18446744073709551616}`, "seed", "", "want an integer"},
		{"json_object", "{" + hi + `,"response_format":{"type":"json_object"}}`, "response_format", CodeUnsupported, `"json_object"`},
		{"json_schema", "{" + hi + `,"response_format":{"type":"json_schema","json_schema":{}}}`, "response_format", CodeUnsupported, `"json_schema"`},
		{"response_format without type", "{" + hi + `,"response_format":{}}`, "response_format", CodeUnsupported, "only"},
		{"tools", "{" + hi + `,"tools":[{"type":"function","function":{"name":"f"}}]}`, "tools", CodeUnsupported, "not supported"},
		{"functions", "{" + hi + `,"functions":[{"name":"f"}]}`, "functions", CodeUnsupported, "not supported"},
		{"logit_bias", "{" + hi + `,"logit_bias":{"1":2}}`, "logit_bias", CodeUnsupported, "not supported"},
		{"grammar", "{" + hi + `,"grammar":"root ::= x"}`, "grammar", CodeUnsupported, "not supported"},
		{"logprobs a number", "{" + hi + `,"logprobs":2}`, "logprobs", "", "want true or false"},
		{"top_logprobs alone", "{" + hi + `,"top_logprobs":2}`, "top_logprobs", "", "needs"},
		{"top_logprobs 21", "{" + hi + `,"logprobs":true,"top_logprobs":21}`, "top_logprobs", "", "0 to 20"},
		{"top_logprobs -1", "{" + hi + `,"logprobs":true,"top_logprobs":-1}`, "top_logprobs", "", "0 to 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := decodeChat(tt.body)
			wantError(t, err, tt.param, tt.code, tt.text)
		})
	}
}

func TestGoodChatRequests(t *testing.T) {
	for _, body := range []string{
		"{" + hi + "}",
		" \n{" + hi + "}\r\n",
		"{" + hi + `,"max_tokens":null,"stop":null,"seed":null,"temperature":null,"stream":null,"n":null,"tools":null,"response_format":null,"logit_bias":null}`,
		"{" + hi + `,"tools":[ ],"functions":[],"logit_bias":{},"n":1,"response_format":{"type":"text"},"grammar":""}`,
		"{" + hi + `,"user":"u","metadata":{"a":"b"},"store":true,"tool_choice":"auto","unheard_of":[1,{"a":2}]}`,
		"{" + hi + `,"logprobs":false,"top_logprobs":0}`,
		"{" + hi + `,"stream_options":{"include_usage":true}}`,
		`{"messages":[{"role":"assistant","content":null},{"role":"assistant"},{"role":"developer","content":"x"},{"role":"tool","content":"y","tool_call_id":"1"}]}`,
		`{"messages":[{"role":"user","content":"\ud83d\ude00 \u0000 \\ud800 \" \\\\"}]}`,
		`{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":"x"}],` + hi + `}`,
	} {
		if _, err := decodeChat(body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestMessageText(t *testing.T) {
	for body, want := range map[string]string{
		`{"role":"user","content":"a\nb"}`:    "a\nb",
		`{"role":"user","content":""}`:        "",
		`{"role":"assistant","content":null}`: "",
		`{"role":"user","content":[]}`:        "",
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`: "a\nb",
	} {
		var m Message
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		if got, err := m.Text("content"); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", body, got, err, want)
		}
	}
}

func TestSeed(t *testing.T) {
	for text, want := range map[string]Seed{
		"0": 0, "-1": 1<<32 - 1, "4294967295": 1<<32 - 1, "4294967296": 0, "4294967301": 5, "-4294967296": 0,
		"9223372036854775807": 1<<32 - 1, "-9223372036854775808": 0, "18446744073709551615": 1<<32 - 1,
	} {
		r, err := decodeChat("{" + hi + `,"seed":` + text + "}")
		if err != nil || r.Seed == nil || *r.Seed != want {
			t.Errorf("%s: got %v, %v, want %d", text, r.Seed, err, want)
		}
	}
}

func TestMaxCompletionTokensIsStronger(t *testing.T) {
	r, err := decodeChat("{" + hi + `,"max_tokens":5,"max_completion_tokens":7}`)
	if err != nil || *r.MaxTokens != 7 {
		t.Errorf("got %d, %v, want 7", *r.MaxTokens, err)
	}
}

func TestPrompt(t *testing.T) {
	for body, want := range map[string]Prompt{
		`"text"`:           {Text: "text"},
		`""`:               {},
		`["text"]`:         {Text: "text"},
		`[ "null" ]`:       {Text: "null"},
		`[1,2,3]`:          {IDs: []int32{1, 2, 3}},
		`[[1, 2]]`:         {IDs: []int32{1, 2}},
		`[]`:               {IDs: []int32{}},
		`[-1, 2147483647]`: {IDs: []int32{-1, 2147483647}},
	} {
		r, err := decodeCompletion(`{"prompt":` + body + "}")
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if d := cmp.Diff(want, *r.Prompt); d != "" {
			t.Errorf("%s: %s", body, d)
		}
	}
}

func TestBadCompletionRequests(t *testing.T) {
	for _, tt := range []struct{ body, param, code, text string }{
		{`{}`, "prompt", "", "missing"},
		{`{"prompt":null}`, "prompt", "", "missing"},
		{`{"prompt":5}`, "prompt", "", "want a string"},
		{`{"prompt":{}}`, "prompt", "", "want a string"},
		{`{"prompt":[null]}`, "prompt", "", "want a string"},
		{`{"prompt":[1,null]}`, "prompt", "", "want a string"},
		{`{"prompt":[1.5]}`, "prompt", "", "want a string"},
		{`{"prompt":[2147483648]}`, "prompt", "", "want a string"},
		{`{"prompt":[1,"a"]}`, "prompt", "", "want a string"},
		{`{"prompt":[[[1]]]}`, "prompt", "", "want a string"},
		{`{"prompt":[true]}`, "prompt", "", "want a string"},
		{`{"prompt":["a","b"]}`, "prompt", CodeUnsupported, "2 prompts"},
		{`{"prompt":[[1],[2]]}`, "prompt", CodeUnsupported, "2 prompts"},
		{`{"prompt":"a","echo":true}`, "echo", CodeUnsupported, "not supported"},
		{`{"prompt":"a","best_of":2}`, "best_of", CodeUnsupported, "only 1"},
		{`{"prompt":"a","n":0}`, "n", CodeUnsupported, "only 1"},
		{`{"prompt":"a","suffix":"b"}`, "suffix", CodeUnsupported, "not supported"},
		{`{"prompt":"a","logprobs":21}`, "logprobs", "", "0 to 20"},
		{`{"prompt":"a","logprobs":-1}`, "logprobs", "", "0 to 20"},
		{`{"prompt":"a","logprobs":true}`, "logprobs", "", "want an integer"},
		{`{"prompt":"a","max_tokens":0}`, "max_tokens", "", "at least 1"},
	} {
		_, err := decodeCompletion(tt.body)
		t.Run(tt.body, func(t *testing.T) { wantError(t, err, tt.param, tt.code, tt.text) })
	}
}

func TestErrorJSON(t *testing.T) {
	for _, tt := range []struct {
		err  *Error
		want string
	}{
		{Invalid("", "bad"), `{"error":{"message":"bad","type":"invalid_request_error","param":null,"code":null}}`},
		{Unsupported("n", "bad"), `{"error":{"message":"n: bad","type":"invalid_request_error","param":"n","code":"unsupported_parameter"}}`},
	} {
		if got, err := json.Marshal(tt.err); err != nil || string(got) != tt.want {
			t.Errorf("got %s, %v, want %s", got, err, tt.want)
		}
	}
}

// FuzzDecode checks that no request panics and that every refusal is an Error with a message.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		"{" + hi + "}", `{"prompt":["a"],"stop":["b"],"seed":-1}`, `{"prompt":[[1]],"a":"\ud83d\ude00"}`, `{"a\`, `{"":{"":[]}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, decode := range []func(string) error{
			func(s string) error { _, err := decodeChat(s); return err },
			func(s string) error { _, err := decodeCompletion(s); return err },
		} {
			var e *Error
			if err := decode(string(body)); err != nil && (!errors.As(err, &e) || e.Message == "" || e.Status != http.StatusBadRequest) {
				t.Errorf("%q: got %#v", body, err)
			}
		}
	})
}

package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/sample"
	"github.com/swizzle-rt/swizzle/runtime/template"
	"github.com/swizzle-rt/swizzle/runtime/tokenizer"
	"github.com/swizzle-rt/swizzle/serve/openai"
)

type generateFunc = func(ctx context.Context, r engine.Request, emit func(engine.Token) error) (engine.Result, error)

// The vocabulary of the tests: é takes tokens 2 and 3.
const (
	tokenA int32 = iota
	tokenB
	tokenE1
	tokenE2
	tokenEnd
)

// newTestServer returns a server of a model with a context of 100 tokens whose chat template writes the contents of the
// messages, one token for each byte, and whose generations are generate's.
func newTestServer(t *testing.T, generate generateFunc) *Server {
	t.Helper()
	tok, err := tokenizer.New(tokenizer.Vocab{
		Model:  "gpt2",
		Tokens: []string{"a", "b", "Ã", "©", "<|end|>"},
		Types:  []int32{tokenizer.Normal, tokenizer.Normal, tokenizer.Normal, tokenizer.Normal, tokenizer.Control},
		BOS:    -1, EOS: tokenEnd, EOT: -1, EOM: -1, UNK: -1, PAD: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) []int32 {
		ids := make([]int32, len(s))
		for i := range s {
			ids[i] = int32(s[i]) % tokenEnd
		}
		return ids
	}
	return newServer(model{
		context:   100,
		tokenizer: tok,
		text:      text,
		prompt: func(messages []template.Message, opt template.Options) ([]int32, error) {
			var all strings.Builder
			for _, m := range messages {
				if m.Content == "raise" {
					return nil, errors.New("roles must alternate")
				}
				fmt.Fprint(&all, m.Role, m.Content)
			}
			if !opt.AddGenerationPrompt {
				t.Error("no generation prompt")
			}
			return text(all.String()), nil
		},
		generate: generate,
	}, Options{Model: "org/test", Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

// emits returns a generation of the given tokens that ends for the given reason.
func emits(finish string, tokens ...engine.Token) generateFunc {
	return func(_ context.Context, r engine.Request, emit func(engine.Token) error) (engine.Result, error) {
		result := engine.Result{Finish: finish, PromptTokens: len(r.Prompt)}
		for _, t := range tokens {
			if t.ID >= 0 {
				result.NewTokens++
			}
			if err := emit(t); err != nil {
				return result, err
			}
		}
		return result, nil
	}
}

func start(t *testing.T, s *Server) string {
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

type answer struct {
	status int
	header http.Header
	body   string
}

func do(t *testing.T, method, url, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(data)}
}

// wantError checks an answer that is an error.
func wantError(t *testing.T, a answer, status int, code any, text string) {
	t.Helper()
	var body struct {
		Error struct {
			Message, Type string
			Code          any
		}
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Fatalf("%v in %q", err, a.body)
	}
	e := body.Error
	if a.status != status || e.Type == "" || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("got status %d, %s, want %d, code %v and a message with %q", a.status, a.body, status, code, text)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("got Content-Type %q", got)
	}
}

// frames returns the data of the events of a stream.
func frames(t *testing.T, body string) []string {
	t.Helper()
	var out []string
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if strings.HasPrefix(event, ":") {
			continue
		}
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("event %q", event)
		}
		out = append(out, data)
	}
	return out
}

// same compares JSON with what is wanted, after replacing what differs from run to run.
func same(t *testing.T, got, want string) {
	t.Helper()
	var g, w map[string]any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v in %q", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v in %q", err, want)
	}
	if id, _ := g["id"].(string); !strings.Contains(id, "cmpl-") || len(id) < 20 {
		t.Errorf("id %q", id)
	}
	if created, _ := g["created"].(float64); math.Abs(created-float64(time.Now().Unix())) > 10 {
		t.Errorf("created %v", created)
	}
	delete(g, "id")
	delete(g, "created")
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

const (
	chatPath       = "/v1/chat/completions"
	completionPath = "/v1/completions"
)

var hello = emits(engine.FinishStop,
	engine.Token{ID: tokenA, Text: "Hé"}, engine.Token{ID: tokenB}, engine.Token{ID: tokenB, Text: "llo <b>"}, engine.Token{ID: -1, Text: "!"})

func TestWhole(t *testing.T) {
	url := start(t, newTestServer(t, hello))
	for _, path := range []string{chatPath, "/chat/completions"} {
		a := do(t, "POST", url+path, `{"model":"any","messages":[{"role":"user","content":"12345"}]}`)
		same(t, a.body, `{"object":"chat.completion","model":"org/test","choices":[{"index":0,"message":{"role":"assistant",
			"content":"Héllo <b>!","refusal":null},"logprobs":null,"finish_reason":"stop"}],
			"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`)
		if !strings.Contains(a.body, "<b>") || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("got %v", a)
		}
	}
	a := do(t, "POST", url+completionPath, `{"prompt":"12345"}`)
	same(t, a.body, `{"object":"text_completion","model":"org/test","choices":[{"index":0,"text":"Héllo <b>!","logprobs":null,
		"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}`)
}

func TestFinishReason(t *testing.T) {
	for finish, want := range map[string]string{
		engine.FinishStop: "stop", engine.FinishLength: "length", engine.FinishContext: "length",
	} {
		url := start(t, newTestServer(t, emits(finish, engine.Token{Text: "a"})))
		a := do(t, "POST", url+completionPath, `{"prompt":"a"}`)
		if !strings.Contains(a.body, `"finish_reason":"`+want+`"`) {
			t.Errorf("%s: %s", finish, a.body)
		}
	}
}

func TestChatStream(t *testing.T) {
	url := start(t, newTestServer(t, hello))
	for _, withUsage := range []bool{false, true} {
		a := do(t, "POST", url+chatPath, fmt.Sprintf(
			`{"messages":[{"role":"user","content":"12345"}],"stream":true,"stream_options":{"include_usage":%v}}`, withUsage))
		if a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" || a.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("got %d %v", a.status, a.header)
		}
		var want []string
		for _, choice := range []string{
			`"delta":{"role":"assistant","content":""},"finish_reason":null`,
			`"delta":{"content":"Hé"},"finish_reason":null`,
			`"delta":{"content":"llo <b>"},"finish_reason":null`,
			`"delta":{"content":"!"},"finish_reason":null`,
			`"delta":{},"finish_reason":"stop"`,
		} {
			want = append(want, `{"object":"chat.completion.chunk","model":"org/test","choices":[{"index":0,"logprobs":null,`+choice+`}]}`)
		}
		if withUsage {
			want = append(want, `{"object":"chat.completion.chunk","model":"org/test","choices":[],
				"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`)
		}
		checkStream(t, frames(t, a.body), want)
	}
}

func TestCompletionStream(t *testing.T) {
	url := start(t, newTestServer(t, hello))
	a := do(t, "POST", url+completionPath, `{"prompt":"12345","stream":true,"stream_options":{"include_usage":true}}`)
	var want []string
	for _, choice := range []string{
		`"text":"Hé","finish_reason":null`, `"text":"llo <b>","finish_reason":null`, `"text":"!","finish_reason":null`,
		`"text":"","finish_reason":"stop"`,
	} {
		want = append(want, `{"object":"text_completion","model":"org/test","choices":[{"index":0,"logprobs":null,`+choice+`}]}`)
	}
	want = append(want, `{"object":"text_completion","model":"org/test","choices":[],
		"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}`)
	checkStream(t, frames(t, a.body), want)
}

func checkStream(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want)+1 || got[len(got)-1] != "[DONE]" {
		t.Fatalf("got %d frames %q, want %d and [DONE]", len(got), got, len(want))
	}
	ids := map[string]bool{}
	for i := range want {
		same(t, got[i], want[i])
		var frame struct{ ID string }
		if err := json.Unmarshal([]byte(got[i]), &frame); err != nil {
			t.Fatal(err)
		}
		ids[frame.ID] = true
	}
	if len(ids) != 1 {
		t.Errorf("got ids %v, want one", ids)
	}
}

// scored are the tokens a, é in two parts, b, and a last b that is text of no piece.
func scored(finish string) generateFunc {
	return emits(finish,
		engine.Token{ID: tokenA, Text: "a", LogProb: -0.5, Top: []sample.LogProb{{ID: tokenA, LogProb: -0.5}, {ID: tokenEnd, LogProb: -1}}},
		engine.Token{ID: tokenE1, LogProb: -1.5, Top: []sample.LogProb{{ID: tokenA, LogProb: -0.25}, {ID: tokenB, LogProb: math.Inf(-1)}}},
		engine.Token{ID: tokenE2, Text: "é", LogProb: -2},
		engine.Token{ID: tokenB, Text: "b", LogProb: -3},
		engine.Token{ID: tokenB, LogProb: -4})
}

func TestChatLogProbs(t *testing.T) {
	const content = `[
		{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[{"token":"a","logprob":-0.5,"bytes":[97]},
			{"token":"<|end|>","logprob":-1,"bytes":[60,124,101,110,100,124,62]}]},
		{"token":"�","logprob":-1.5,"bytes":[195],"top_logprobs":[{"token":"a","logprob":-0.25,"bytes":[97]},
			{"token":"b","logprob":-9999,"bytes":[98]}]},
		{"token":"�","logprob":-2,"bytes":[169],"top_logprobs":[]},
		{"token":"b","logprob":-3,"bytes":[98],"top_logprobs":[]}]`
	url := start(t, newTestServer(t, scored(engine.FinishStop)))
	const request = `{"messages":[{"role":"user","content":"x"}],"logprobs":true,"top_logprobs":2`
	a := do(t, "POST", url+chatPath, request+"}")
	same(t, a.body, `{"object":"chat.completion","model":"org/test","choices":[{"index":0,"message":{"role":"assistant",
		"content":"aéb","refusal":null},"logprobs":{"content":`+content+`,"refusal":null},"finish_reason":"stop"}],
		"usage":{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}}`)

	// The frames of the stream have the same together.
	a = do(t, "POST", url+chatPath, request+`,"stream":true}`)
	var got, want []openai.ChatToken
	all := frames(t, a.body)
	for _, frame := range all[:len(all)-1] {
		var chunk openai.ChatChunk
		if err := json.Unmarshal([]byte(frame), &chunk); err != nil {
			t.Fatal(err)
		}
		if scores := chunk.Choices[0].LogProbs; scores != nil {
			got = append(got, scores.Content...)
		}
	}
	if err := json.Unmarshal([]byte(content), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestCompletionLogProbs(t *testing.T) {
	url := start(t, newTestServer(t, scored(engine.FinishLength)))
	a := do(t, "POST", url+completionPath, `{"prompt":"x","logprobs":2}`)
	same(t, a.body, `{"object":"text_completion","model":"org/test","choices":[{"index":0,"text":"aéb","logprobs":{
		"tokens":["a","�","�","b","b"],"token_logprobs":[-0.5,-1.5,-2,-3,-4],"text_offset":[0,1,2,2,3],
		"top_logprobs":[{"a":-0.5,"<|end|>":-1},{"�":-1.5,"a":-0.25,"b":-9999},{"�":-2},{"b":-3},{"b":-4}]},
		"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":5,"total_tokens":6}}`)

	a = do(t, "POST", url+completionPath, `{"prompt":"x","logprobs":2,"stream":true}`)
	var offsets []int
	all := frames(t, a.body)
	for _, frame := range all[:len(all)-1] {
		var chunk openai.Completion
		if err := json.Unmarshal([]byte(frame), &chunk); err != nil {
			t.Fatal(err)
		}
		if scores := chunk.Choices[0].LogProbs; scores != nil {
			offsets = append(offsets, scores.TextOffset...)
		}
	}
	if d := cmp.Diff([]int{0, 1, 2, 2, 3}, offsets); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestRequest checks what the engine is asked for.
func TestRequest(t *testing.T) {
	var got engine.Request
	url := start(t, newTestServer(t, func(_ context.Context, r engine.Request, _ func(engine.Token) error) (engine.Result, error) {
		got = r
		return engine.Result{}, nil
	}))
	base := engine.Request{Prompt: []int32{0, 1, 2}, Max: 16, Params: sample.Default()}
	for _, tt := range []struct {
		path, body string
		change     func(r *engine.Request)
	}{
		{completionPath, `"prompt":[0,1,2]`, func(*engine.Request) {}},
		{completionPath, `"prompt":"dab"`, func(r *engine.Request) { r.Prompt = []int32{0, 1, 2} }},
		{completionPath, `"prompt":[0,1,2],"max_tokens":7`, func(r *engine.Request) { r.Max = 7 }},
		{completionPath, `"prompt":[0,1,2],"max_tokens":9000000000000000000`, func(r *engine.Request) { r.Max = 100 }},
		{completionPath, `"prompt":[0,1,2],"seed":-2`, func(r *engine.Request) { r.Params.Seed = 1<<32 - 2 }},
		{completionPath, `"prompt":[0,1,2],"temperature":0,"top_k":0,"top_p":0.5,"min_p":0.25,"repeat_penalty":1.5,
			"presence_penalty":-2,"frequency_penalty":2`, func(r *engine.Request) {
			r.Params = sample.Params{TopP: 0.5, MinP: 0.25, RepeatPenalty: 1.5, PresencePenalty: -2, FrequencyPenalty: 2,
				RepeatLastN: sample.Default().RepeatLastN}
		}},
		{completionPath, `"prompt":[0,1,2],"stop":"x"`, func(r *engine.Request) { r.Stop = []string{"x"} }},
		{completionPath, `"prompt":[0,1,2],"stop":["x","yz"]`, func(r *engine.Request) { r.Stop = []string{"x", "yz"} }},
		{completionPath, `"prompt":[0,1,2],"logprobs":0`, func(r *engine.Request) { r.WantLogProbs = true }},
		{completionPath, `"prompt":[0,1,2],"logprobs":5`, func(r *engine.Request) { r.WantLogProbs, r.LogProbs = true, 5 }},
		{chatPath, `"messages":[{"role":"user","content":""}]`, func(r *engine.Request) {
			r.Prompt, r.Max = []int32{'u' % 4, 's' % 4, 'e' % 4, 'r' % 4}, -1
		}},
		{chatPath, `"messages":[{"role":"developer","content":[{"type":"text","text":"x"}]}],"max_completion_tokens":3,"logprobs":true`,
			func(r *engine.Request) {
				r.Prompt, r.Max, r.WantLogProbs = nil, 3, true
				for _, c := range "systemx" {
					r.Prompt = append(r.Prompt, c%4)
				}
			}},
	} {
		want := base
		tt.change(&want)
		seeded := strings.Contains(tt.body, `"seed"`)
		a := do(t, "POST", url+tt.path, "{"+tt.body+"}")
		if !seeded {
			got.Params.Seed = 0
		}
		if a.status != 200 {
			t.Errorf("%s: %s", tt.body, a.body)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -want +got:\n%s", tt.body, d)
		}
	}
}

func TestSeedIsRandom(t *testing.T) {
	var mu sync.Mutex
	seeds := map[uint32]bool{}
	url := start(t, newTestServer(t, func(_ context.Context, r engine.Request, _ func(engine.Token) error) (engine.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		seeds[r.Params.Seed] = true
		return engine.Result{}, nil
	}))
	for _, body := range []string{`{"prompt":"a"}`, `{"prompt":"a"}`, `{"prompt":"a","seed":null}`} {
		do(t, "POST", url+completionPath, body)
	}
	if len(seeds) < 2 {
		t.Errorf("got seeds %v, want several", seeds)
	}
}

func TestRefused(t *testing.T) {
	url := start(t, newTestServer(t, func(context.Context, engine.Request, func(engine.Token) error) (engine.Result, error) {
		t.Error("a refused request ran")
		return engine.Result{}, nil
	}))
	long := strings.Repeat("x", 101)
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               any
		text               string
	}{
		{"POST", chatPath, "{", 400, nil, "not valid JSON"},
		{"POST", chatPath, "", 400, nil, "no body"},
		{"POST", chatPath, `{"messages":[]}`, 400, nil, "messages"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":"raise"}]}`, 400, nil, "roles must alternate"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":"` + long + `"}]}`, 400, "context_length_exceeded", "105 tokens, which exceeds the available context size of 100"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, 400, "unsupported_parameter", "messages[0].content"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":"x"}],"temperature":-1}`, 400, nil, "temperature is -1"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":"x"}],"top_p":1.5,"stream":true}`, 400, nil, "top-p is 1.5"},
		{"POST", completionPath, `{"prompt":"` + long + `"}`, 400, "context_length_exceeded", "101 tokens"},
		{"POST", completionPath, `{"prompt":""}`, 400, nil, "empty"},
		{"POST", completionPath, `{"prompt":[]}`, 400, nil, "empty"},
		{"POST", completionPath, `{"prompt":[0,5]}`, 400, nil, "token 1 is 5, want 0 to 4"},
		{"POST", completionPath, `{"prompt":[-1]}`, 400, nil, "token 0 is -1"},
		{"POST", completionPath, `{"prompt":"` + strings.Repeat("x", maxBody) + `"}`, 413, nil, "larger than"},
		{"GET", "/v1/models/other", "", 404, "model_not_found", `no model "other"`},
		{"GET", "/v1/models/", "", 404, "model_not_found", ""},
		{"GET", "/", "", 404, "unknown_url", `"/"`},
		{"POST", "/v1/embeddings", "{}", 404, "unknown_url", `"/v1/embeddings"`},
		{"GET", "/v1/" + long, "", 404, "unknown_url", ""},
		{"GET", chatPath, "", 405, nil, "want POST"},
		{"DELETE", "/v1/models/org/test", "", 405, nil, "want GET"},
		{"POST", "/health", "", 405, nil, "want GET"},
		{"OPTIONS", "/health", "", 405, nil, "want GET"},
	} {
		a := do(t, tt.method, url+tt.path, tt.body)
		name := tt.method + " " + tt.path + " " + tt.body
		t.Run(name[:min(len(name), 60)], func(t *testing.T) {
			wantError(t, a, tt.status, tt.code, tt.text)
			if allow := a.header.Get("Allow"); (allow != "") != (tt.status == 405) {
				t.Errorf("got Allow %q", allow)
			}
		})
	}
}

func TestHealthAndModels(t *testing.T) {
	url := start(t, newTestServer(t, nil))
	for _, path := range []string{"/health", "/v1/health"} {
		if a := do(t, "GET", url+path, ""); a.status != 200 || a.body != "{\"status\":\"ok\"}\n" {
			t.Errorf("%s: got %v", path, a)
		}
	}
	if a := do(t, "HEAD", url+"/health", ""); a.status != 200 {
		t.Errorf("HEAD: got %v", a)
	}
	for _, path := range []string{"/v1/models", "/models"} {
		var list openai.ModelList
		if err := json.Unmarshal([]byte(do(t, "GET", url+path, "").body), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Data) != 1 || list.Object != "list" || list.Data[0].ID != "org/test" || list.Data[0].Object != "model" || list.Data[0].Created == 0 {
			t.Errorf("%s: got %+v", path, list)
		}
	}
	var m openai.Model
	if err := json.Unmarshal([]byte(do(t, "GET", url+"/v1/models/org/test", "").body), &m); err != nil || m.ID != "org/test" {
		t.Errorf("got %+v, %v", m, err)
	}
}

// TestFailures checks generations that fail, before a whole answer and within a stream.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		panics bool
		status int
		code   any
		text   string
	}{
		{"NaN", fmt.Errorf("token 3: %w", sample.ErrNaN), false, 500, nil, "token 3: logit is NaN"},
		{"context full", fmt.Errorf("5 tokens: %w", engine.ErrContextFull), false, 400, "context_length_exceeded", "5 tokens"},
		{"memory", fmt.Errorf("page: %w", engine.ErrMemory), false, 503, nil, "page"},
		{"panic", nil, true, 500, nil, "internal error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestServer(t, nil)
			failing := true
			s.model.generate = func(ctx context.Context, r engine.Request, emit func(engine.Token) error) (engine.Result, error) {
				if !failing {
					return hello(ctx, r, emit)
				}
				if err := emit(engine.Token{ID: 1, Text: "x"}); err != nil {
					return engine.Result{}, err
				}
				if tt.panics {
					panic("secret")
				}
				return engine.Result{}, tt.err
			}
			url := start(t, s)
			wantError(t, do(t, "POST", url+completionPath, `{"prompt":"a"}`), tt.status, tt.code, tt.text)

			a := do(t, "POST", url+completionPath, `{"prompt":"a","stream":true}`)
			all := frames(t, a.body)
			if len(all) != 2 || !strings.Contains(all[0], `"text":"x"`) {
				t.Fatalf("got frames %q, want one of text and one of the error", all)
			}
			wantError(t, answer{tt.status, http.Header{"Content-Type": {"application/json"}}, all[1]}, tt.status, tt.code, tt.text)

			failing = false
			if a := do(t, "POST", url+completionPath, `{"prompt":"a"}`); a.status != 200 {
				t.Errorf("afterwards: got %v", a)
			}
		})
	}
}

func TestPanicOutsideGeneration(t *testing.T) {
	s := newTestServer(t, nil)
	s.model.text = func(string) []int32 { panic("secret") }
	a := do(t, "POST", start(t, s)+completionPath, `{"prompt":"a"}`)
	wantError(t, a, 500, nil, "internal error")
}

func TestPing(t *testing.T) {
	s := newTestServer(t, nil)
	s.ping = time.Millisecond
	s.model.generate = func(ctx context.Context, r engine.Request, emit func(engine.Token) error) (engine.Result, error) {
		time.Sleep(20 * time.Millisecond) // the prompt
		return hello(ctx, r, emit)
	}
	a := do(t, "POST", start(t, s)+chatPath, `{"messages":[{"role":"user","content":"x"}],"stream":true}`)
	if n := strings.Count(a.body, "\n\n: ping\n\n"); n == 0 {
		t.Errorf("no ping in %q", a.body)
	}
	if got := frames(t, a.body); len(got) != 6 {
		t.Errorf("got %d frames %q", len(got), got)
	}
}

func TestOrigins(t *testing.T) {
	url := start(t, newTestServer(t, hello))
	for _, tt := range []struct {
		origin string
		allow  bool
	}{
		{"http://localhost", true},
		{"http://localhost:3000", true},
		{"https://127.0.0.1:5173", true},
		{"http://[::1]:80", true},
		{"http://chat.test", true}, // the server's own name
		{"http://evil.test", false},
		{"http://localhost.evil.test", false},
		{"http://chat.test.evil.test", false},
		{"null", false},
		{"file://", false},
		{"http://%zz", false},
	} {
		for _, method := range []string{"GET", "OPTIONS"} {
			header := []string{"Origin", tt.origin, "Host", "chat.test"}
			want := 200
			if method == "OPTIONS" {
				header = append(header, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
				want = 204
			}
			a := do(t, method, url+"/v1/models", "", header...)
			if !tt.allow {
				wantError(t, a, 403, nil, "may not use")
				if a.header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: allowed", tt.origin)
				}
				continue
			}
			if a.status != want || a.header.Get("Access-Control-Allow-Origin") != tt.origin || a.header.Get("Vary") != "Origin" {
				t.Errorf("%s %s: got %v", method, tt.origin, a)
			}
			if method == "OPTIONS" && a.header.Get("Access-Control-Allow-Headers") != "content-type" {
				t.Errorf("%s: got %v", tt.origin, a.header)
			}
		}
	}
}

func TestIsLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:80": true, "127.0.0.1": true, "127.0.0.1:8080": true, "127.1.2.3:1": true, "[::1]:80": true,
		"[::1]": true, "::1": true,
		"": false, "evil.test": false, "evil.test:80": false, "localhost.evil.test": false, "127.0.0.1.evil.test": false,
		"0.0.0.0": false, "10.0.0.1:80": false, "[::1": true, "localhost@evil.test": false, "127.0.0.1:80:80": false,
	} {
		if got := isLocal(host); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}

// running is a server that listens by itself.
type running struct {
	url  string
	stop context.CancelFunc
	done chan error
}

func listen(t *testing.T, s *Server) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{"http://" + l.Addr().String(), cancel, make(chan error, 1)}
	go func() { r.done <- s.serve(ctx, l) }()
	t.Cleanup(cancel)
	return r
}

// ended waits for the end of the server.
func (r *running) ended(t *testing.T) {
	t.Helper()
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("got %v, want an orderly end", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the server did not end")
	}
}

func TestHostHeader(t *testing.T) {
	r := listen(t, newTestServer(t, hello))
	wantError(t, do(t, "GET", r.url+"/health", "", "Host", "evil.test"), 403, nil, `"evil.test"`)
	for _, host := range []string{"localhost:1", "127.0.0.1"} {
		if a := do(t, "GET", r.url+"/health", "", "Host", host); a.status != 200 {
			t.Errorf("%s: got %v", host, a)
		}
	}
	r.stop()
	r.ended(t)
}

func TestListenAndServe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	if err := newTestServer(t, hello).ListenAndServe(t.Context(), addr); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("got %v for an address in use", err)
	}

	s := newTestServer(t, hello)
	var log bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.ListenAndServe(ctx, "127.0.0.1:0"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "url=http://127.0.0.1:") {
		t.Errorf("log: %s", &log)
	}
}

// block returns a generation that emits one token and waits for its context or for release, and the channels on which it
// says that it started and with what error it ended.
func block(release <-chan struct{}) (generate generateFunc, started chan struct{}, ended chan error) {
	started, ended = make(chan struct{}, 100), make(chan error, 100)
	return func(ctx context.Context, r engine.Request, emit func(engine.Token) error) (engine.Result, error) {
		started <- struct{}{}
		err := emit(engine.Token{ID: 1, Text: "x"})
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-release:
		}
		ended <- err
		return engine.Result{Finish: engine.FinishStop}, err
	}, started, ended
}

// receive waits for a value, within limits.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("nothing happened")
		panic("unreachable")
	}
}

// post sends a request in the background, until ctx ends.
func post(ctx context.Context, t *testing.T, url, body string) <-chan answer {
	out := make(chan answer, 1)
	r, err := http.NewRequestWithContext(ctx, "POST", url+completionPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		var a answer
		if resp, err := http.DefaultClient.Do(r); err == nil {
			data, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			a = answer{resp.StatusCode, resp.Header, string(data)}
		}
		out <- a
	}()
	return out
}

// waitFor polls for a condition that no channel announces.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("waited in vain for " + what)
}

func TestDisconnect(t *testing.T) {
	for _, body := range []string{`{"prompt":"a"}`, `{"prompt":"a","stream":true}`} {
		generate, started, ended := block(nil)
		s := newTestServer(t, generate)
		url := start(t, s)

		first, leaveFirst := context.WithCancel(t.Context())
		firstAnswer := post(first, t, url, body)
		receive(t, started)
		second, leaveSecond := context.WithCancel(t.Context())
		secondAnswer := post(second, t, url, body)
		third := post(t.Context(), t, url, body)
		waitFor(t, "two requests in the queue", func() bool { return len(s.queue.places) == 3 })

		leaveSecond() // while queued
		receive(t, secondAnswer)
		waitFor(t, "the queued request to leave", func() bool { return len(s.queue.places) == 2 })
		if len(started) != 0 || len(ended) != 0 {
			t.Error("another client's disconnect touched the request that runs")
		}
		leaveFirst() // while it runs
		receive(t, firstAnswer)
		if err := receive(t, ended); err == nil {
			t.Error("a disconnect did not cancel the request")
		}
		receive(t, started) // the third has its turn
		select {
		case a := <-third:
			t.Errorf("the third request ended: %v", a)
		default:
		}
	}
}

func TestQueue(t *testing.T) {
	release := make(chan struct{})
	generate, started, _ := block(release)
	s := newTestServer(t, generate)
	s.queue = newQueue(2)
	url := start(t, s)
	var answers []<-chan answer
	for i := range 3 {
		answers = append(answers, post(t.Context(), t, url, `{"prompt":"a"}`))
		waitFor(t, "a place", func() bool { return len(s.queue.places) == i+1 })
	}
	a := do(t, "POST", url+completionPath, `{"prompt":"a","stream":true}`)
	wantError(t, a, 503, "overloaded", "queue is full")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	receive(t, started)
	if len(started) != 0 {
		t.Error("two requests ran at a time")
	}
	close(release)
	for _, from := range answers {
		if a := receive(t, from); a.status != 200 {
			t.Errorf("got %v", a)
		}
	}
	waitFor(t, "the places", func() bool { return len(s.queue.places) == 0 && len(s.queue.engine) == 0 })
}

// TestShutdown checks that requests in flight finish, the queued ones too, and that no new ones are taken.
func TestShutdown(t *testing.T) {
	release := make(chan struct{})
	generate, started, _ := block(release)
	s := newTestServer(t, generate)
	r := listen(t, s)
	first := post(t.Context(), t, r.url, `{"prompt":"a"}`)
	receive(t, started)
	second := post(t.Context(), t, r.url, `{"prompt":"a","stream":true}`)
	waitFor(t, "the second request", func() bool { return len(s.queue.places) == 2 })
	r.stop()
	waitFor(t, "the listener to close", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(release)
	if a := receive(t, first); a.status != 200 {
		t.Errorf("got %v", a)
	}
	if a := receive(t, second); !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
		t.Errorf("got %v", a)
	}
	r.ended(t)
}

// TestShutdownCancels checks that requests which outlast the time to drain are cancelled and told so.
func TestShutdownCancels(t *testing.T) {
	generate, started, ended := block(nil)
	s := newTestServer(t, generate)
	s.drain = 30 * time.Millisecond
	r := listen(t, s)
	first := post(t.Context(), t, r.url, `{"prompt":"a","stream":true}`)
	receive(t, started)
	second := post(t.Context(), t, r.url, `{"prompt":"a"}`)
	waitFor(t, "the second request", func() bool { return len(s.queue.places) == 2 })
	r.stop()
	r.ended(t)
	if len(ended) != 1 {
		t.Error("the server ended before its request")
	}
	if a := receive(t, first); !strings.Contains(a.body, errShutdown.Error()) || strings.Contains(a.body, "[DONE]") {
		t.Errorf("got %v", a)
	}
	wantError(t, receive(t, second), 503, nil, errShutdown.Error())
}

// TestFirstFrameIsEarly checks that a stream begins before the prompt is evaluated, and that tokens come one by one.
func TestFirstFrameIsEarly(t *testing.T) {
	steps := make(chan string)
	url := start(t, newTestServer(t, func(ctx context.Context, _ engine.Request, emit func(engine.Token) error) (engine.Result, error) {
		for text := range steps {
			if err := emit(engine.Token{ID: 1, Text: text}); err != nil {
				return engine.Result{}, err
			}
		}
		return engine.Result{Finish: engine.FinishStop}, nil
	}))
	resp, err := http.Post(url+chatPath, "", strings.NewReader(`{"messages":[{"role":"user","content":"x"}],"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) || !lines.Scan() {
			t.Fatalf("got line %q, want %q", lines.Text(), want)
		}
	}
	next(`"role":"assistant"`)
	for _, text := range []string{"one", "two"} {
		steps <- text
		next(text)
	}
	close(steps)
	next(`"finish_reason":"stop"`)
	next("[DONE]")
}

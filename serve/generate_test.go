package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/sample"
	"github.com/swizzle-rt/swizzle/serve/openai"
)

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

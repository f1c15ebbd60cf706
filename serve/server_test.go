package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/template"
	"github.com/swizzle-rt/swizzle/runtime/tokenizer"
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

const (
	chatPath       = "/v1/chat/completions"
	completionPath = "/v1/completions"
)

var hello = emits(engine.FinishStop,
	engine.Token{ID: tokenA, Text: "Hé"}, engine.Token{ID: tokenB}, engine.Token{ID: tokenB, Text: "llo <b>"}, engine.Token{ID: -1, Text: "!"})

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

// TestTokenizeInTurn checks that one prompt is tokenized at a time, and that a client may leave while its prompt waits.
func TestTokenizeInTurn(t *testing.T) {
	s := newTestServer(t, hello)
	tokenizing, release := make(chan string, 10), make(chan struct{})
	s.model.text = func(text string) []int32 {
		tokenizing <- text
		<-release
		return []int32{1}
	}
	url := start(t, s)
	first := post(t.Context(), t, url, `{"prompt":"first"}`)
	receive(t, tokenizing)
	ctx, leave := context.WithCancel(t.Context())
	second := post(ctx, t, url, `{"prompt":"second","stream":true}`)
	waitFor(t, "a second request", func() bool { return len(s.queue.places) == 2 })
	third := post(t.Context(), t, url, `{"prompt":"third"}`)
	waitFor(t, "a third request", func() bool { return len(s.queue.places) == 3 })
	leave()
	receive(t, second)
	waitFor(t, "the second request to leave", func() bool { return len(s.queue.places) == 2 })
	if len(tokenizing) != 0 {
		t.Errorf("tokenizes %q at the same time", <-tokenizing)
	}
	close(release)
	if text := receive(t, tokenizing); text != "third" {
		t.Errorf("then tokenizes %q", text)
	}
	for _, from := range []<-chan answer{first, third} {
		if a := receive(t, from); a.status != 200 {
			t.Errorf("got %v", a)
		}
	}
}

// TestBodiesInTurn checks that a bounded number of bodies is read at a time.
func TestBodiesInTurn(t *testing.T) {
	s := newTestServer(t, hello)
	s.bodies = make(slots, 1)
	url := start(t, s)
	body, send := io.Pipe()
	first := make(chan error, 1)
	go func() {
		resp, err := http.Post(url+completionPath, "", body)
		if err == nil {
			err = resp.Body.Close()
		}
		first <- err
	}()
	waitFor(t, "the first request", func() bool { return len(s.bodies) == 1 })
	second := post(t.Context(), t, url, `{"prompt":"a"}`)
	select {
	case a := <-second:
		t.Errorf("the second body was read beside the first: %v", a)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := io.WriteString(send, `{"prompt":"a"}`); err != nil {
		t.Fatal(err)
	}
	send.Close()
	if err := receive(t, first); err != nil {
		t.Error(err)
	}
	if a := receive(t, second); a.status != 200 {
		t.Errorf("got %v", a)
	}
}

// failingListener fails when it is asked for a second connection after release.
type failingListener struct {
	net.Listener
	accepted int
	release  chan struct{}
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.accepted++; l.accepted == 1 {
		return l.Listener.Accept()
	}
	<-l.release
	return nil, errors.New("no more connections")
}

// TestListenerFails checks that the server ends with the listener's error, but not before its request.
func TestListenerFails(t *testing.T) {
	generate, started, ended := block(nil)
	s := newTestServer(t, generate)
	s.drain = 30 * time.Millisecond
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &failingListener{Listener: inner, release: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- s.serve(t.Context(), l) }()
	a := post(t.Context(), t, "http://"+inner.Addr().String(), `{"prompt":"a"}`)
	receive(t, started)
	close(l.release)
	if err := receive(t, done); err == nil || !strings.Contains(err.Error(), "no more connections") {
		t.Errorf("the server ended with %v", err)
	}
	if len(ended) != 1 {
		t.Error("the server ended before its request")
	}
	wantError(t, receive(t, a), 503, nil, errShutdown.Error())
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

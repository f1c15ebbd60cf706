// Package serve answers OpenAI's HTTP API from an engine.
//
// The routes are GET /health, GET /v1/models, GET /v1/models/{id}, POST /v1/chat/completions and POST /v1/completions; the
// answers are whole or streamed. A request's model name is not looked at: there is one model. Sampling parameters that a
// request leaves out are those of [sample.Default], so that a request gives the text that the command line gives for the
// same prompt, seed and parameters; a request without a seed gets a random one. What is not supported is refused with
// status 400 where it would change the answer, and ignored where it would not.
//
// One request uses the engine at a time and others wait. A client that goes away ends its request, whether it waits, is at
// its prompt or generates. What requests take of memory is bounded: a text that cannot fit into the context is refused
// before it is tokenized, one text is tokenized at a time, and a few bodies are read at a time.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/template"
	"github.com/swizzle-rt/swizzle/runtime/tokenizer"
	"github.com/swizzle-rt/swizzle/serve/openai"
)

const (
	maxWaiting    = 64       // requests in the queue
	maxBody       = 32 << 20 // bytes of a request
	maxReading    = 16       // requests whose bodies are read and decoded
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute
	idleTimeout   = 2 * time.Minute
	writeTimeout  = 30 * time.Second // of one write: a client that reads nothing must not hold the engine
	cancelTimeout = 2 * time.Second  // in which requests that a shutdown cancels may still say so
)

// errShutdown is the cause that ends the context of requests when a shutdown stops waiting for them.
var errShutdown = errors.New("the server is shutting down")

// Options of a [Server].
type Options struct {
	Model  string       // the id under which the model is listed
	Logger *slog.Logger // nil: no log
}

// Server serves one engine.
type Server struct {
	id      string
	created time.Time
	log     *slog.Logger
	model   model
	queue   *queue
	bodies  slots // one for each request whose body is read

	ping  time.Duration // between the heartbeats of a stream
	drain time.Duration // that requests have to finish after a shutdown begins

	inFlight sync.RWMutex // held for reading by each request
}

// model is what requests use of an engine. Its functions are the engine's own but in tests.
type model struct {
	context   int // tokens
	tokenizer *tokenizer.Tokenizer
	prompt    func([]template.Message, template.Options) ([]int32, error)
	text      func(string) []int32
	generate  func(ctx context.Context, r engine.Request, emit func(engine.Token) error) (engine.Result, error)
}

// New returns a server of e, which must stay open for as long as the server is used.
func New(e *engine.Engine, o Options) *Server {
	return newServer(model{
		context:   e.Info().Context,
		tokenizer: e.Tokenizer(),
		prompt:    e.Prompt,
		text:      e.Text,
		generate: func(ctx context.Context, r engine.Request, emit func(engine.Token) error) (engine.Result, error) {
			session, err := e.NewSession()
			if err != nil {
				return engine.Result{}, err
			}
			defer session.Close()
			return session.Generate(ctx, r, emit)
		},
	}, o)
}

func newServer(m model, o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{
		id:      o.Model,
		created: time.Now(),
		log:     o.Logger,
		model:   m,
		queue:   newQueue(maxWaiting),
		bodies:  make(slots, maxReading),
		ping:    15 * time.Second,
		drain:   5 * time.Second,
	}
}

// Handler returns the handler of all routes. Browsers may use it from pages of this machine and of the server itself.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		method  string
		paths   []string
		handler func(http.ResponseWriter, *http.Request) error
	}{
		{http.MethodGet, []string{"/health", "/v1/health"}, s.health},
		{http.MethodGet, []string{"/v1/models", "/models"}, s.models},
		{http.MethodGet, []string{"/v1/models/{id...}"}, s.modelByID},
		{http.MethodPost, []string{"/v1/chat/completions", "/chat/completions"}, s.chat},
		{http.MethodPost, []string{"/v1/completions"}, s.completion},
	} {
		for _, path := range route.paths {
			mux.Handle(path, s.route(route.method, route.handler))
		}
	}
	mux.HandleFunc("/", s.unknown)
	return s.guard(checkOrigin(mux))
}

// ListenAndServe serves on addr, as "127.0.0.1:8080", until ctx ends or listening fails. It logs the URL once it listens.
// On a loopback address it answers only requests whose Host header is an address or name of this machine itself, which
// keeps web pages of other names from reaching it (DNS rebinding).
//
// When ctx ends, requests have five seconds to finish before they are cancelled; then ListenAndServe returns nil. When
// listening fails, it is the same with an error. No request runs any more then, and the server cannot be used again.
func (s *Server) ListenAndServe(ctx context.Context, addr string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return s.serve(ctx, l)
}

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(errShutdown)
	handler := s.Handler()
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		handler = checkHost(handler)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	s.log.Info("listening", "url", "http://"+l.Addr().String())

	var failure error
	select {
	case err := <-failed:
		failure = fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.log.Info("shutting down")
	if !shutdown(requests, server, s.drain) {
		cancel(errShutdown)
		if !shutdown(context.WithoutCancel(ctx), server, cancelTimeout) {
			server.Close()
		}
	}
	s.inFlight.Lock() // for good: the engine may be closed after this
	return failure
}

// shutdown closes the listener and reports whether all requests ended within limit.
func shutdown(ctx context.Context, server *http.Server, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return server.Shutdown(ctx) == nil
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, openai.ModelList{Object: "list", Data: []openai.Model{s.listed()}})
	return nil
}

func (s *Server) modelByID(w http.ResponseWriter, r *http.Request) error {
	if id := r.PathValue("id"); id != s.id {
		return &openai.Error{
			Status:  http.StatusNotFound,
			Type:    openai.InvalidRequest,
			Code:    openai.CodeModelNotFound,
			Param:   "model",
			Message: fmt.Sprintf("there is no model %.80q, only %q", id, s.id),
		}
	}
	writeJSON(w, http.StatusOK, s.listed())
	return nil
}

func (s *Server) listed() openai.Model {
	return openai.Model{ID: s.id, Object: "model", Created: s.created.Unix(), OwnedBy: "swizzle"}
}

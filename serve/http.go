package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/serve/openai"
)

// errPanic stands for a panic, which the log has.
var errPanic = errors.New("internal error; the server's log says more")

// route returns the handler for one method of a path. An error of h becomes the answer.
func (s *Server) route(method string, h func(http.ResponseWriter, *http.Request) error) http.Handler {
	allow := method
	if method == http.MethodGet {
		allow = "GET, HEAD"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
			w.Header().Set("Allow", allow)
			writeError(w, &openai.Error{
				Status:  http.StatusMethodNotAllowed,
				Type:    openai.InvalidRequest,
				Message: fmt.Sprintf("method %.20q is not allowed on %.80q, want %s", r.Method, r.URL.Path, allow),
			})
			return
		}
		if err := h(w, r); err != nil {
			if e := s.explain(r.Context(), err); e != nil {
				writeError(w, e)
			}
		}
	})
}

func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	writeError(w, &openai.Error{
		Status:  http.StatusNotFound,
		Type:    openai.InvalidRequest,
		Code:    openai.CodeUnknownURL,
		Message: fmt.Sprintf("unknown URL %.80q", r.URL.Path),
	})
}

// guard answers status 500 where h panics before it has answered, and breaks the connection where it panics after.
func (s *Server) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.inFlight.RLock()
		defer s.inFlight.RUnlock()
		w := &response{ResponseWriter: rw}
		defer func() {
			switch p := recover(); {
			case p == nil:
			case p == http.ErrAbortHandler:
				panic(p)
			default:
				s.logPanic(p)
				if w.begun {
					panic(http.ErrAbortHandler)
				}
				writeError(w, s.explain(r.Context(), errPanic))
			}
		}()
		h.ServeHTTP(w, r)
	})
}

func (s *Server) logPanic(p any) {
	s.log.Error("panic", "value", p, "stack", string(debug.Stack()))
}

// explain returns what to tell the client of an error, nil if the client is gone.
func (s *Server) explain(ctx context.Context, err error) *openai.Error {
	var e *openai.Error
	switch cause := context.Cause(ctx); {
	case cause == errShutdown:
		return &openai.Error{Status: http.StatusServiceUnavailable, Type: openai.ServerError, Message: cause.Error()}
	case cause != nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, engine.ErrContextFull):
		e = openai.Invalid("", "%v", err)
		e.Code = openai.CodeContextLength
		return e
	case errors.Is(err, engine.ErrMemory):
		e = &openai.Error{Status: http.StatusServiceUnavailable, Type: openai.ServerError, Message: err.Error()}
	default:
		e = &openai.Error{Status: http.StatusInternalServerError, Type: openai.ServerError, Message: err.Error()}
	}
	s.log.Error("request failed", "error", err)
	return e
}

// response is a ResponseWriter that knows whether the answer has begun and bounds the time of each write.
type response struct {
	http.ResponseWriter
	begun bool
}

func (w *response) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(data []byte) (int, error) {
	w.begun = true
	// A writer without deadlines, as in tests, does without.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.ResponseWriter.Write(data)
}

// Unwrap is for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// readBody waits until it may read the body of a request, and decodes it into v. The whole body is read, since the server notices that a client is gone
// only then.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, v any) error {
	if err := s.bodies.take(r.Context()); err != nil {
		return err
	}
	defer s.bodies.give()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // as above
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		e := openai.Invalid("", "the body is larger than %d bytes", large.Limit)
		e.Status = http.StatusRequestEntityTooLarge
		return e
	case err != nil:
		return openai.Invalid("", "cannot read the body: %v", err)
	}
	return openai.Decode(data, v)
}

func writeError(w http.ResponseWriter, e *openai.Error) { writeJSON(w, e.Status, e) }

// writeJSON writes an answer. That it cannot be written is the client's trouble alone.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
}

// checkHost refuses requests that were sent to a name which is not this machine's own.
func checkHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			writeError(w, forbidden("the Host header is %.80q, want localhost or a loopback address", r.Host))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// checkOrigin lets the pages of this machine, and of the server itself, use h from a browser (CORS). It refuses other pages
// outright, since their browser would only hide the answers from them.
func checkOrigin(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" {
			h.ServeHTTP(w, r)
			return
		}
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !isLocal(u.Host) && u.Host != r.Host {
			writeError(w, forbidden("pages of the origin %.80q may not use this server", origin))
			return
		}
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", origin)
		header.Add("Vary", "Origin")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			header.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
			header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func forbidden(format string, args ...any) *openai.Error {
	e := openai.Invalid("", format, args...)
	e.Status = http.StatusForbidden
	return e
}

// isLocal reports whether a host, with a port or without, is this machine by its loopback name or address.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

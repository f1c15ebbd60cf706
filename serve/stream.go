package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/engine"
)

// stream runs a request and answers it by server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
// The answer begins before the engine is free, so an error comes as an event.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, g engine.Request, withUsage bool, as reply) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no") // a proxy that waits for more would defeat the purpose
	e := &events{w: w}
	defer e.beat(s.ping)()

	run := func() error {
		if err := e.send(as.first()); err != nil {
			return err
		}
		result, err := s.generate(r.Context(), g, func(p piece) error { return e.send(as.delta(p)) })
		if err != nil {
			return err
		}
		if err := e.send(as.last(finishReason(result))); err != nil {
			return err
		}
		if withUsage {
			return e.send(as.usage(usage(result)))
		}
		return nil
	}
	switch err := run(); {
	case err == nil:
		_ = e.write("data: [DONE]\n\n")
	case !errors.Is(err, errWrite):
		if failure := s.explain(r.Context(), err); failure != nil {
			_ = e.send(failure)
		}
	}
}

// errWrite reports an event that could not be written.
var errWrite = errors.New("cannot write to the client")

// events writes server-sent events, each at once.
type events struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

// send writes v, unless it is nil, as the data of an event.
func (e *events) send(v any) error {
	if v == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.write("data: " + string(data) + "\n\n")
}

func (e *events) write(frame string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.w.Write([]byte(frame)); err != nil {
		return errors.Join(errWrite, err)
	}
	if err := http.NewResponseController(e.w).Flush(); err != nil {
		return errors.Join(errWrite, err)
	}
	return nil
}

// beat writes a comment at every interval, which keeps proxies and clients from giving up during a long wait, until the
// function it returns is called.
func (e *events) beat(interval time.Duration) (stop func()) {
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if e.write(": ping\n\n") != nil {
					return
				}
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		running.Wait()
	}
}

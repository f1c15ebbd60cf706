package serve

import "context"

// slots bound how many requests do something at a time. Others wait, in the order of their arrival.
type slots chan struct{}

// take waits for a slot, which is given back by give.
func (s slots) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slots) give() { <-s }

// queue lets one request at a time use the tokenizer, one the engine, and a bounded number wait.
type queue struct {
	places    slots // one for each request in the queue
	tokenizer slots // one for the request whose prompt is rendered and tokenized
	engine    slots // one for the request that runs
}

func newQueue(waiting int) *queue {
	return &queue{places: make(slots, waiting+1), tokenizer: make(slots, 1), engine: make(slots, 1)}
}

// enter takes a place and reports whether there was one. A place is given back by leave.
func (q *queue) enter() bool {
	select {
	case q.places <- struct{}{}:
		return true
	default:
		return false
	}
}

func (q *queue) leave() { q.places.give() }

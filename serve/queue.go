package serve

import "context"

// queue lets one request at a time use the engine and a bounded number wait, in the order of their arrival.
type queue struct {
	places chan struct{} // one for each request that runs or waits
	engine chan struct{} // one for the request that runs
}

func newQueue(waiting int) *queue {
	return &queue{places: make(chan struct{}, waiting+1), engine: make(chan struct{}, 1)}
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

func (q *queue) leave() { <-q.places }

// turn waits for the engine, which is given back by done.
func (q *queue) turn(ctx context.Context) error {
	select {
	case q.engine <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *queue) done() { <-q.engine }

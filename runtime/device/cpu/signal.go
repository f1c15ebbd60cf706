package cpu

import (
	"sync/atomic"
	"time"
)

// A signal wakes one waiting thread. It is set or clear; take waits until it is set and clears it. The waiter spins before
// it parks, since a job often follows the last within microseconds, and waking a parked thread takes longer than that.
type signal struct {
	state atomic.Uint32
	wake  chan struct{} // holds one; receives when set finds the waiter parked
	_     [cacheLine - 16]byte
}

// States of a signal.
const (
	isClear  = iota
	isSet    // and nobody has taken it yet
	isParked // clear, and the waiter is parked or about to be
)

// spinTime is how long a waiter spins before it parks.
const spinTime = 40 * time.Microsecond

// set sets a clear signal.
func (s *signal) set() {
	if s.state.Swap(isSet) == isParked {
		// The waiter parks again only after it has received this, so there is always room.
		s.wake <- struct{}{}
	}
}

// retract clears the signal and reports whether it was set and not yet taken.
func (s *signal) retract() bool {
	return s.state.CompareAndSwap(isSet, isClear)
}

// take waits until the signal is set and clears it.
func (s *signal) take(spin bool) {
	for {
		if spin && s.spin() {
			return
		}
		if s.state.CompareAndSwap(isClear, isParked) {
			<-s.wake
		}
		// Woken, the waiter may find the signal retracted.
		if s.state.CompareAndSwap(isSet, isClear) {
			return
		}
	}
}

// spin tries to take the signal for spinTime.
func (s *signal) spin() bool {
	var deadline time.Time
	for i := 1; ; i++ {
		if s.state.Load() == isSet && s.state.CompareAndSwap(isSet, isClear) {
			return true
		}
		pause()
		if i%64 == 0 { // reading the clock takes longer than pausing
			now := time.Now()
			if deadline.IsZero() {
				deadline = now.Add(spinTime)
			} else if now.After(deadline) {
				return false
			}
		}
	}
}

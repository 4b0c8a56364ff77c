package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errStillReading means that an earlier call has not returned. The driver is stuck, and
// another call would only block another thread.
var errStillReading = errors.New("the driver has not answered yet")

// slot runs one call at a time in its own goroutine. A driver that does not answer then
// costs the caller only a deadline and the process only one thread.
type slot[T any] struct {
	taken chan struct{} // holds a token while a call runs
}

func newSlot[T any]() slot[T] { return slot[T]{taken: make(chan struct{}, 1)} }

type answer[T any] struct {
	value T
	err   error
}

// start runs call and returns a channel for its answer; nil if an earlier call still
// runs. The slot is free again before the answer is sent.
func (s slot[T]) start(call func() (T, error)) <-chan answer[T] {
	select {
	case s.taken <- struct{}{}:
	default:
		return nil
	}
	done := make(chan answer[T], 1)
	go func() {
		var a answer[T]
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("panic while reading the GPU: %v", p)
			}
			<-s.taken
			done <- a
		}()
		a.value, a.err = call()
	}()
	return done
}

// wait returns the answer of a call, or an error that wraps errStillReading if done is
// nil or ctx ends.
func wait[T any](ctx context.Context, done <-chan answer[T]) (T, error) {
	var none T
	if done == nil {
		return none, errStillReading
	}
	select {
	case a := <-done:
		return a.value, a.err
	default:
	}
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", errStillReading, ctx.Err())
	}
}

// seize takes the slot permanently, so that no further call runs. It reports false if the
// current call did not end before the timeout.
func (s slot[T]) seize(timeout <-chan time.Time) bool {
	select {
	case s.taken <- struct{}{}:
		return true
	default:
	}
	select {
	case s.taken <- struct{}{}:
		return true
	case <-timeout:
		return false
	}
}

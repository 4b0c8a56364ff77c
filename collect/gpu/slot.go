package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errStillReading says that an earlier call has not come back: the driver is
// stuck, and asking it again would only add a stuck thread.
var errStillReading = errors.New("the driver has not answered yet")

// slot runs one call at a time in a goroutine of its own, so that a driver that
// does not answer costs its caller a deadline and the process one thread.
type slot[T any] struct {
	taken chan struct{} // holds a token while a call is under way
}

func newSlot[T any]() slot[T] { return slot[T]{taken: make(chan struct{}, 1)} }

type answer[T any] struct {
	value T
	err   error
}

// start runs call and returns where its answer will be; nil where an earlier
// call is still under way. The slot is free again before the answer is there.
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

// wait returns the answer of a call, or an error once ctx ends.
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

// seize takes the slot for good, so that no call runs any more; false where the
// call under way did not end in time.
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

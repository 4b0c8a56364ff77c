package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// lateError means that a change took longer to become ready than the downtime allows.
type lateError struct{ within time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("it was not ready within %v; the rest of the allowed downtime is reserved for the revert", e.within.Round(time.Millisecond))
}

// bounded limits the time until the server is ready with a change; no limit if a.Within
// is 0.
func bounded(ctx context.Context, a loop.Apply) (context.Context, context.CancelFunc) {
	if a.Within <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, a.Within, &lateError{a.Within})
}

// late reports whether a change exceeded its time limit.
func late(why error) bool {
	var e *lateError
	return errors.As(why, &e)
}

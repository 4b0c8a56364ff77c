package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// lateError says that a change took longer to come up than the downtime allows.
type lateError struct{ within time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("it was not up within %v, and the rest of the downtime that is allowed is for the way back", e.within.Round(time.Millisecond))
}

// bounded gives a change the time that it may take until the server is up with it.
func bounded(ctx context.Context, a engine.Apply) (context.Context, context.CancelFunc) {
	if a.Within <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, a.Within, &lateError{a.Within})
}

// late says that a change was cut short by its bound.
func late(why error) bool {
	var e *lateError
	return errors.As(why, &e)
}

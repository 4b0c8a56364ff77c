package apply

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
)

// endless is a manager that does not finish, as a systemd whose job has no end.
type endless struct{ manager.Manager }

func (endless) Name() string { return "vllm.service" }

func (endless) Make(ctx context.Context, _ *manager.Change) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// A revert, which nothing cancels, does not wait without end for a manager.
func TestAManagerThatDoesNotFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		err := Readiness{Within: time.Minute}.made(context.WithoutCancel(t.Context()), endless{}, &manager.Change{Revert: true}, nil)
		if err == nil || err.Error() != "vllm.service did not finish within 23m0s" {
			t.Errorf("%v", err)
		}
	})
}

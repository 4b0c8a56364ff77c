package autopilot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// A change that does not end holds up neither another one that is canceled nor the end of the run, which leaves
// the journal open.
func TestAChangeThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		h := &handsNoted{takes: func() { <-over }}
		p, d := pilotOn(t, h, journal.State{Open: true, Stage: journal.StageTrial})
		go p.apply(context.Background(), loop.Apply{})
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the run was ended"))
		if r := p.apply(ctx, loop.Apply{}); !strings.HasSuffix(r.Err, "still under way: the run was ended") {
			t.Errorf("another change: %+v", r)
		}
		if _, err := p.startCanary(ctx, loop.StartCanary{}); err == nil {
			t.Error("a canary is started")
		}
		began := time.Now()
		err := p.Settle(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "it did not end within 1h16m0s; 'rooftop recover'") {
			t.Errorf("the end of the run: %v", err)
		}
		if waited := time.Since(began); waited != p.longest || len(d.notes()) != 1 {
			t.Errorf("waited for %v, then %q", waited, d.notes())
		}
		close(over)
	})
}

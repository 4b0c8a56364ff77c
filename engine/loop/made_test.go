package loop_test

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// farAway is an automatic run on a server with an unreadable launch, whose gain is below the difference
// between restarts.
func farAway(t *testing.T, alter ...func(*loop.Plan)) *rig {
	t.Helper()
	r := newRig(t, "--max-num-seqs 4", append([]func(*loop.Plan){auto}, alter...)...)
	r.server.remote, r.server.given, r.server.limit = true, 4, 200
	r.step(loop.Begin{})
	r.wait(5*time.Minute, "measuring", in(loop.PhaseMeasuring))
	r.run(5 * time.Second)
	return r
}

// TestOwnChangeThatIsRestartedIsNotAdopted has a server that appears to restart while a change is
// measured. Its launch is unreadable, but it still counts as the change, and is kept only if proven.
func TestOwnChangeThatIsRestartedIsNotAdopted(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens func(*rig)
	}{
		{"it was restarted", func(r *rig) { r.start(3 * time.Second) }},
		{"its counters were reset", func(r *rig) {
			r.server.started = 0 // no start time identifies the start
			r.run(2 * time.Second)
			r.server.reset()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := farAway(t)
			c.happens(r)
			r.ends(2 * time.Hour)
			r.atRest("--max-num-seqs 4")
			for _, e := range r.events {
				if e.Kind == loop.EventKept {
					t.Errorf("kept at %v: %s", e.T, e.Text)
				}
			}
			its := r.loop.Snapshot().Iterations
			if len(its) < 2 || its[1].Noticed != loop.Unreadable || len(its[1].Changes) != 1 || its[1].Changes[0].To != "32" {
				r.errorf("%d iterations, the second %+v", len(its), its[len(its)-1].Changes)
			}
		})
	}
}

// TestOwnChangeBehindSeveralServersIsTakenBack alternates the pages of two servers while a change is
// measured. The change by rooftop still counts as in place.
func TestOwnChangeBehindSeveralServersIsTakenBack(t *testing.T) {
	r := farAway(t, func(p *loop.Plan) { p.Limits.Restarts = 2 }) // one for the revert
	other := *r.server
	other.reset()
	other.started += 3600
	for range 8 {
		r.run(250 * time.Millisecond)
		other.page(r.now, r.random)
		*r.server, other = other, *r.server
	}
	if !r.said("several servers") {
		r.dump()
		t.Fatal("several servers are not noticed")
	}
	r.ends(time.Hour)
	r.atRest("--max-num-seqs 4")
}

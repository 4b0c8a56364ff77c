package engine_test

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// farAway is a run without keys on a server whose launch cannot be read, and whose
// change gains less than restarts hide.
func farAway(t *testing.T, alter ...func(*engine.LoopPlan)) *rig {
	t.Helper()
	r := newRig(t, "--max-num-seqs 4", append([]func(*engine.LoopPlan){auto}, alter...)...)
	r.server.remote, r.server.given, r.server.limit = true, 4, 200
	r.step(engine.Begin{})
	r.wait(5*time.Minute, "measuring", in(engine.PhaseMeasuring))
	r.run(5 * time.Second)
	return r
}

// TestOwnChangeThatIsRestartedIsNotAdopted has the server of a change that is being
// measured seem to be another one. Nobody can read what it runs with; it is the
// change all the same, and not kept unless it is proven.
func TestOwnChangeThatIsRestartedIsNotAdopted(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens func(*rig)
	}{
		{"it was restarted", func(r *rig) { r.start(3 * time.Second) }},
		{"its counters were reset", func(r *rig) {
			r.server.started = 0 // no start time tells that it is the same run
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
				if e.Kind == engine.EventKept {
					t.Errorf("kept at %v: %s", e.T, e.Text)
				}
			}
			its := r.loop.Snapshot().Iterations
			if len(its) < 2 || its[1].Noticed != engine.Unreadable || len(its[1].Changes) != 1 || its[1].Changes[0].To != "32" {
				r.dump()
				t.Errorf("%d iterations, the second %+v", len(its), its[len(its)-1].Changes)
			}
		})
	}
}

// TestOwnChangeBehindSeveralServersIsTakenBack has pages of two servers come in turn
// while a change is measured: what rooftop made is in place all the same.
func TestOwnChangeBehindSeveralServersIsTakenBack(t *testing.T) {
	r := farAway(t, func(p *engine.LoopPlan) { p.Limits.Restarts = 2 }) // one for the way back
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

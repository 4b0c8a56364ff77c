package loop_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// TestReplicasBehindOneAddress alternates the pages of two servers.
func TestReplicasBehindOneAddress(t *testing.T) {
	for _, c := range []struct {
		name   string
		starts bool // the pages have the start time of the server
		remote bool
		turns  int // consecutive polls answered by one server
	}{
		{"with start times, each poll another", true, true, 1},
		{"with start times, for a while each", true, true, 30},
		{"without start times, each poll another", false, true, 1},
		{"without start times, for a while each", false, true, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "--max-num-seqs 4")
			r.server.remote = c.remote
			if !c.starts {
				r.server.started = 0
			}
			r.step(loop.Begin{})
			r.run(10 * time.Minute)
			other := *r.server
			other.reset()
			if c.starts {
				other.started += 3600
			}
			for range 40 {
				for range c.turns {
					r.run(250 * time.Millisecond)
					other.page(r.now, r.random)
				}
				*r.server, other = other, *r.server
			}
			s := r.loop.Snapshot()
			if !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "several servers") }) {
				t.Errorf("notes %q", s.Notes)
			}
			if len(s.Iterations) > 1 || !r.said("several servers") || s.Phase == loop.PhaseWorse {
				r.errorf("%d iterations, phase %d", len(s.Iterations), s.Phase)
			}
			for _, it := range s.Iterations {
				if it.End == loop.IterationOpen || it.Delta != nil {
					t.Errorf("iteration %d: %q, judged %v", it.N, it.End, it.Delta != nil)
				}
			}
		})
	}
}

// TestARestartBehindAnEmptyPage has a server whose pages have no start time, and at first no metrics.
func TestARestartBehindAnEmptyPage(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.remote, r.server.started = true, 0
	r.step(loop.Begin{})
	r.run(time.Minute)
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.server.started, r.server.mute = 0, true
	r.run(10 * time.Second)
	r.server.mute = false
	if it := r.judged(1); it.Noticed != loop.Unreadable || it.End != loop.IterationKept {
		t.Errorf("%q, %q", it.Noticed, it.End)
	}
}

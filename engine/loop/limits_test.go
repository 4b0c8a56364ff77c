package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// slow is a server with the given start times, before and with more slots.
func (r *rig) slow(before, after time.Duration) {
	r.takes = func(args string) time.Duration {
		if strings.HasSuffix(args, "seqs 4") {
			return before
		}
		return after
	}
}

// TestTheDowntimeBoundsEachStart has changes that start slowly or never, with a limit on the downtime.
func TestTheDowntimeBoundsEachStart(t *testing.T) {
	const forever = 100 * time.Hour
	for _, c := range []struct {
		name          string
		before, after time.Duration // durations of starts before and with the change
		known         time.Duration // duration of a start, from earlier runs
		bound         time.Duration
		starts        int
		code          int
		reason        string
		kept          string
	}{
		{"a start that hangs", 30 * time.Second, forever, 0, 2 * time.Minute, 2, 3, "not up within 1m0s", "4"},
		{"a start that hangs, where starts are known", 30 * time.Second, forever, 30 * time.Second, 2 * time.Minute, 2, 3, "not up within 1m30s", "4"},
		{"a start that is slow, and fits", 30 * time.Second, 80 * time.Second, 30 * time.Second, 2 * time.Minute, 1, 0, "", "32"},
		{"it is known not to fit", 30 * time.Second, 30 * time.Second, 61 * time.Second, 2 * time.Minute, 0, 3, "restarts of this server took up to 1 min 1 s", "4"},
		{"no bound", 30 * time.Second, 80 * time.Second, 61 * time.Second, 0, 1, 0, "", "32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t, func(p *loop.Plan) { p.Limits.Downtime, p.Start = c.bound, c.known })
			r.slow(c.before, c.after)
			f := r.ends(time.Hour)
			r.atRest("--max-num-seqs " + c.kept)
			if r.starts != c.starts || f.ExitCode != c.code || !strings.Contains(plain(f.Reason), c.reason) {
				r.errorf("%d starts, exit %d: %s", r.starts, f.ExitCode, f.Reason)
			}
			const slack = 2 * time.Second // for the polls around each outage
			if c.bound > 0 && f.Downtime > c.bound+slack {
				t.Errorf("down for %v, allowed were %v", f.Downtime, c.bound)
			}
			if s := r.loop.Snapshot(); c.starts > 0 && s.Iterations[0].Downtime < c.before {
				t.Errorf("the change has a downtime of %v", s.Iterations[0].Downtime)
			}
		})
	}
}

// TestAFailedStartCountsForTheNext has a change that keeps the server from starting for a while. Another
// change is made only if twice its downtime remains.
func TestAFailedStartCountsForTheNext(t *testing.T) {
	for _, c := range []struct {
		bound   time.Duration
		changes int
	}{{5 * time.Minute, 1}, {20 * time.Minute, 2}} {
		r := newRig(t, "--max-num-seqs 4", auto, quiet, func(p *loop.Plan) { p.Limits.Downtime = c.bound })
		r.server.gpu = "A100-PCIE-40GB" // the model has other numbers to try
		r.slow(30*time.Second, 110*time.Second)
		r.refuses = func(args string) string {
			if strings.HasSuffix(args, "seqs 32") {
				return "CUDA out of memory"
			}
			return ""
		}
		r.step(loop.Begin{})
		r.ends(time.Hour)
		s := r.loop.Snapshot()
		if n := len(s.Iterations); n != c.changes || s.Iterations[0].Downtime < 110*time.Second {
			r.errorf("of %v: %d changes, want %d; the first was down for %v", c.bound, n, c.changes, s.Iterations[0].Downtime)
		}
	}
}

// TestAnEndInTheMiddleOfARestartCountsItsOutage quits while a change is applied.
func TestAnEndInTheMiddleOfARestartCountsItsOutage(t *testing.T) {
	r := autoRun(t)
	r.slow(30*time.Second, 30*time.Second)
	r.wait(2*time.Minute, "applying", in(loop.PhaseApplying))
	r.step(loop.Pressed{Command: loop.CommandQuit})
	if f := r.ends(5 * time.Minute); f.Downtime < time.Minute || f.Downtime > 65*time.Second {
		t.Errorf("down for %v, want two starts of 30 s", f.Downtime)
	}
}

// plain replaces no-break spaces.
func plain(text string) string { return strings.ReplaceAll(text, "\u00a0", " ") }

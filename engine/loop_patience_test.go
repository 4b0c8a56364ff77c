package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// waited are the events that say what is waited for.
func (r *rig) waited() []engine.Event {
	var out []engine.Event
	for _, e := range r.events {
		if e.Kind == engine.EventWaiting {
			out = append(out, e)
		}
	}
	return out
}

// TestNoLoadHasPatience starts a run on a server that nobody asks anything of.
func TestNoLoadHasPatience(t *testing.T) {
	r := autoRun(t)
	r.server.clients = 0
	r.run(110 * time.Second)
	if r.done != nil {
		r.dump()
		t.Fatalf("ended after %v: %s", r.now, r.done.Reason)
	}
	if w := r.waited(); len(w) != 1 || !strings.Contains(w[0].Text, "waiting for load") || w[0].Took < 100*time.Second {
		t.Errorf("said: %+v", w)
	}
	if f := r.ends(time.Minute); f.ExitCode != 4 || r.starts != 0 {
		t.Errorf("exit %d, %d starts: %s", f.ExitCode, r.starts, f.Reason)
	}
}

// TestLoadThatComesLate has the first request come after a minute and a half.
func TestLoadThatComesLate(t *testing.T) {
	r := autoRun(t)
	r.server.clients = 0
	r.run(90 * time.Second)
	r.server.clients = 32
	r.ends(30 * time.Minute)
	r.atRest("--max-num-seqs 32")
}

// small is a run whose change gains as little as matters, so that it is measured
// for as long as may be.
func small(t *testing.T) *rig {
	r := autoRun(t)
	r.lives = func(args string) {
		r.server.limit = 0
		if strings.HasSuffix(args, "seqs 32") {
			r.server.limit = 197.5
		}
	}
	r.wait(5*time.Minute, "measuring", in(engine.PhaseMeasuring))
	return r
}

// TestAPauseOfTheLoadEndsNoTrial has the clients pause, for less than patience lasts,
// late in a long measurement.
func TestAPauseOfTheLoadEndsNoTrial(t *testing.T) {
	r := small(t)
	r.run(170 * time.Second)
	if r.loop.Snapshot().Phase != engine.PhaseMeasuring {
		r.dump()
		t.Fatal("it is decided too early for this test")
	}
	r.server.clients = 0
	r.run(40 * time.Second)
	r.server.clients = 32
	r.ends(time.Hour)
	it := r.loop.Snapshot().Iterations[0]
	if it.Delta == nil {
		r.dump()
		t.Errorf("the change was not judged: %s", r.done.Reason)
	}
}

// TestALoadWithLongPausesIsMeasuredToAnEnd has pauses that do not count take three
// quarters of the time.
func TestALoadWithLongPausesIsMeasuredToAnEnd(t *testing.T) {
	r := small(t)
	began := r.now
	for r.now < began+20*time.Minute && r.loop.Snapshot().Phase == engine.PhaseMeasuring {
		r.server.clients = 0
		if (r.now-began)%(80*time.Second) < 24*time.Second {
			r.server.clients = 32
		}
		r.run(250 * time.Millisecond)
	}
	if took := r.now - began; took > 11*time.Minute || r.loop.Snapshot().Iterations[0].Delta == nil {
		r.dump()
		t.Errorf("after %v: %+v", took, r.loop.Snapshot().Progress)
	}
}

// TestABaselineThatIsNeverSureEnds has the load go where the baseline has to be
// measured for longer.
func TestABaselineThatIsNeverSureEnds(t *testing.T) {
	r := autoRun(t)
	r.server.gpu = "A100-PCIE-40GB"
	r.server.args = serve + " --max-num-seqs 26"
	r.kept = r.server.args
	r.wait(time.Minute, "waiting", in(engine.PhaseWaiting))
	w := r.waited()
	if len(w) != 1 || !strings.Contains(w[0].Text, "measuring the kept configuration on") || !strings.Contains(w[0].Text, "at most") {
		t.Fatalf("said: %+v", w)
	}
	r.server.clients = 0
	f := r.ends(15 * time.Minute)
	if f.ExitCode != 4 || r.starts != 0 || !strings.Contains(f.Reason, "the load did not last") {
		t.Errorf("exit %d, %d starts: %s", f.ExitCode, r.starts, f.Reason)
	}
}

// TestAKeptServerThatEndedIsNotWaitedFor has the kept server's process end, as is
// seen: nothing else starts it.
func TestAKeptServerThatEndedIsNotWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		after engine.Observed // what is read of the processes once it has ended
		least time.Duration
		most  time.Duration
	}{
		{"it is not among the processes", engine.Observed{Processes: []engine.Process{{PID: 7, State: "S"}}}, 10 * time.Second, 15 * time.Second},
		{"nothing can be read any more", engine.Observed{Err: "no such process"}, 10 * time.Second, 15 * time.Second},
		{"nobody reaped it", engine.Observed{Processes: []engine.Process{{PID: 101, State: "Z"}}}, 10 * time.Second, 15 * time.Second},
		{"it runs, and does not answer", engine.Observed{Processes: []engine.Process{{PID: 101, State: "S"}}}, 2 * time.Minute, 130 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t)
			kept := func(s *engine.Snapshot) bool {
				return len(s.Iterations) == 1 && s.Iterations[0].End == engine.IterationKept
			}
			r.wait(5*time.Minute, "kept", kept)
			if w := r.waited(); !strings.Contains(w[len(w)-1].Text, "watching what was kept") {
				t.Errorf("said: %+v", w)
			}
			r.step(engine.Observed{Processes: []engine.Process{{PID: r.server.pid, State: "S"}}})
			r.server.down = true
			began := r.now
			for r.apply == nil && r.now < began+5*time.Minute {
				r.step(c.after)
				r.run(250 * time.Millisecond)
			}
			if took := r.now - began; took < c.least || took > c.most {
				r.dump()
				t.Errorf("put back after %v, want %v to %v", took, c.least, c.most)
			}
			r.ends(time.Hour)
			r.atRest("--max-num-seqs 4")
		})
	}
}

// TestTheEndSaysWhyNothingIsLeft has the reason of a finished run say what was weighed.
func TestTheEndSaysWhyNothingIsLeft(t *testing.T) {
	r := autoRun(t)
	f := r.ends(time.Hour)
	if f.ExitCode != 0 || f.Reason == "" || f.Reason == "nothing is left to recommend" || f.Reason != r.loop.Snapshot().Quiet {
		t.Errorf("exit %d: %q, quiet %q", f.ExitCode, f.Reason, r.loop.Snapshot().Quiet)
	}
}

// TestWhatIsInPlaceIsSaid has a change gain nothing on a server that rooftop cannot
// restart, whose load then goes: the run ends with the change in place.
func TestWhatIsInPlaceIsSaid(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", quiet, func(p *engine.LoopPlan) { p.Auto = true })
	r.server.limit = 190
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.wait(5*time.Minute, "measuring", in(engine.PhaseMeasuring))
	r.server.clients = 0
	f := r.ends(20 * time.Minute)
	if !strings.Contains(f.Reason, "--max-num-seqs 4 → 32 is in place") {
		r.dump()
		t.Errorf("exit %d: %s", f.ExitCode, f.Reason)
	}
}

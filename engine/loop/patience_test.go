package loop_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// waited returns the events that announce a wait.
func (r *rig) waited() []loop.Event {
	var out []loop.Event
	for _, e := range r.events {
		if e.Kind == loop.EventWaiting {
			out = append(out, e)
		}
	}
	return out
}

// TestNoLoadHasPatience starts a run on an idle server.
func TestNoLoadHasPatience(t *testing.T) {
	r := autoRun(t)
	r.server.clients = 0
	r.run(110 * time.Second)
	if r.done != nil {
		r.fatalf("ended after %v: %s", r.now, r.done.Reason)
	}
	if w := r.waited(); len(w) != 1 || !strings.Contains(w[0].Text, "waiting for load") || w[0].Took < 100*time.Second {
		t.Errorf("said: %+v", w)
	}
	if w := r.waited()[0]; !strings.HasSuffix(w.Text, "; the run ends at "+figure.Clock(w.T+w.Took)+" unless that changes") {
		t.Errorf("at %v, with %v left, it said %q", w.T, w.Took, w.Text)
	}
	if f := r.ends(time.Minute); f.ExitCode != 4 || r.starts != 0 {
		t.Errorf("exit %d, %d starts: %s", f.ExitCode, r.starts, f.Reason)
	}
}

// TestLoadThatComesLate sends the first request after a minute and a half.
func TestLoadThatComesLate(t *testing.T) {
	r := autoRun(t)
	r.server.clients = 0
	r.run(90 * time.Second)
	r.server.clients = 32
	r.ends(30 * time.Minute)
	r.atRest("--max-num-seqs 32")
}

// small is a run with the least relevant gain, so that it is measured for as long as allowed.
func small(t *testing.T) *rig {
	r := autoRun(t)
	r.lives = func(args string) {
		r.server.limit = 0
		if strings.HasSuffix(args, "seqs 32") {
			r.server.limit = 197.5
		}
	}
	r.wait(5*time.Minute, "measuring", in(loop.PhaseMeasuring))
	return r
}

// TestAPauseOfTheLoadEndsNoTrial has the clients pause late in a long measurement, for less than the
// time limit.
func TestAPauseOfTheLoadEndsNoTrial(t *testing.T) {
	r := small(t)
	r.run(170 * time.Second)
	if r.loop.Snapshot().Phase != loop.PhaseMeasuring {
		r.dump()
		t.Fatal("it is decided too early for this test")
	}
	r.server.clients = 0
	r.run(40 * time.Second)
	r.server.clients = 32
	r.ends(time.Hour)
	it := r.loop.Snapshot().Iterations[0]
	if it.Delta == nil {
		r.errorf("the change was not judged: %s", r.done.Reason)
	}
}

// TestALoadWithLongPausesIsMeasuredToAnEnd has pauses that do not count for three quarters of the time.
func TestALoadWithLongPausesIsMeasuredToAnEnd(t *testing.T) {
	r := small(t)
	began := r.now
	for r.now < began+20*time.Minute && r.loop.Snapshot().Phase == loop.PhaseMeasuring {
		r.server.clients = 0
		if (r.now-began)%(80*time.Second) < 24*time.Second {
			r.server.clients = 32
		}
		r.run(250 * time.Millisecond)
	}
	if took := r.now - began; took > 11*time.Minute || r.loop.Snapshot().Iterations[0].Delta == nil {
		r.errorf("after %v: %+v", took, r.loop.Snapshot().Progress)
	}
}

// TestABaselineThatIsNeverSureEnds has a baseline that must be measured for longer, and says why and for how long;
// the load stops then.
func TestABaselineThatIsNeverSureEnds(t *testing.T) {
	for _, c := range []struct {
		args string
		near float64 // precision
		says string
		most time.Duration
	}{
		{"--max-num-seqs 30", 0.001, "until the predicted gain can be distinguished from noise", 266 * time.Second},
		{"--max-num-seqs 26", 0.05, "to outlast a burst of another workload", 26 * time.Second},
	} {
		t.Run(c.args, func(t *testing.T) {
			r := autoRun(t, func(p *loop.Plan) { p.Precision = c.near })
			r.server.gpu = "A100-PCIE-40GB"
			r.server.args = serve + " " + c.args
			r.kept = r.server.args
			r.wait(time.Minute, "waiting", in(loop.PhaseWaiting))
			w := r.waited()
			if len(w) != 1 || !strings.Contains(w[0].Text, "measuring the original configuration for longer, "+c.says) || w[0].Took.Round(time.Second) != c.most {
				t.Fatalf("said: %+v, want %q for %v", w, c.says, c.most)
			}
			r.server.clients = 0
			f := r.ends(15 * time.Minute)
			if f.ExitCode != 4 || r.starts != 0 || !strings.Contains(f.Reason, "the load ended") {
				t.Errorf("exit %d, %d starts: %s", f.ExitCode, r.starts, f.Reason)
			}
		})
	}
}

// TestNothingToDoOutlastsABurst has an automatic run find nothing in its first 20 s. It measures for 40 s before it ends,
// and finds what shows by then.
func TestNothingToDoOutlastsABurst(t *testing.T) {
	for _, c := range []struct {
		name    string
		clients float64 // from 20 s on
		starts  int
	}{
		{"nothing more shows", 16, 0},
		{"requests wait then", 200, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "--max-num-seqs 24", auto, quiet)
			r.server.clients = 16
			r.step(loop.Begin{})
			r.wait(time.Minute, "waiting", in(loop.PhaseWaiting))
			r.server.clients = c.clients
			f := r.ends(30 * time.Minute)
			if w := r.waited(); len(w) == 0 || !strings.Contains(w[0].Text, "for longer, to outlast a burst of another workload") || r.now < 40*time.Second {
				t.Errorf("ended after %v, said %+v", r.now, w)
			}
			if f.ExitCode != 0 || r.starts != c.starts {
				t.Errorf("exit %d, %d starts: %s", f.ExitCode, r.starts, f.Reason)
			}
		})
	}
}

// longBaseline is a run whose baseline must be measured for longer than it can be.
func longBaseline(t *testing.T) *rig {
	r := autoRun(t, func(p *loop.Plan) { p.Precision = 0.001 })
	r.server.gpu = "A100-PCIE-40GB"
	r.server.args = serve + " --max-num-seqs 30"
	r.kept = r.server.args
	r.wait(time.Minute, "waiting", in(loop.PhaseWaiting))
	return r
}

// TestABaselineThatIsNeverTheSameEnds has output that falls, and rises again, as soon as a baseline agrees with itself.
func TestABaselineThatIsNeverTheSameEnds(t *testing.T) {
	r := longBaseline(t)
	for began := r.now; r.done == nil && r.now < began+15*time.Minute; {
		r.server.limit = 100 - r.server.limit
		r.run(50 * time.Second)
	}
	if r.done == nil || r.done.ExitCode != 4 || !strings.Contains(r.done.Reason, "the load changes too much") {
		r.errorf("ended with %+v", r.done)
	}
}

// TestALoadThatVariesFromStretchToStretchIsABaseline has output in the last third of each 28 s only, so that stretches
// of 20 s differ from the first and from each other.
func TestALoadThatVariesFromStretchToStretchIsABaseline(t *testing.T) {
	r := ready(t, "--max-num-seqs 64")
	tokens := func() float64 { return r.loop.Snapshot().Baseline.Quantity("generation_tokens_per_s").Value.V }
	first := tokens()
	for began := r.now; r.now < began+8*time.Minute; {
		r.server.limit = 0
		if (r.now-began)%(28*time.Second) < 19*time.Second {
			r.server.limit = 20
		}
		r.run(time.Second)
	}
	if got, want := tokens(), (9*first+19*20)/28; math.Abs(got/want-1) > 0.2 {
		t.Errorf("baseline of %.0f tok/s, at first %.0f, want %.0f", got, first, want)
	}
	if d := r.loop.Snapshot().Baseline.Duration; d < 4*time.Minute {
		t.Errorf("baseline of %v after eight minutes: it began again", d)
	}
}

// TestAPauseOutlastsTheBaseline has the user pause the run for longer than the baseline may take.
func TestAPauseOutlastsTheBaseline(t *testing.T) {
	r := longBaseline(t)
	r.press(loop.CommandPause)
	r.run(15 * time.Minute)
	r.press(loop.CommandPause)
	if r.run(time.Minute); r.done != nil {
		t.Fatalf("a minute after it, exit %d: %s", r.done.ExitCode, r.done.Reason)
	}
	if f := r.ends(15 * time.Minute); strings.Contains(f.Reason, "the load ended") {
		t.Errorf("exit %d: %s", f.ExitCode, f.Reason)
	}
}

// TestAKeptServerThatEndedIsNotWaitedFor has the process of the kept server exit visibly, so that it will
// not return.
func TestAKeptServerThatEndedIsNotWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		after loop.Observed // reading of the processes after the exit
		least time.Duration
		most  time.Duration
	}{
		{"it is not among the processes", loop.Observed{Processes: []loop.Process{{PID: 7, State: "S"}}}, 10 * time.Second, 15 * time.Second},
		{"nothing can be read any longer", loop.Observed{Err: "no such process"}, 10 * time.Second, 15 * time.Second},
		{"it was not reaped", loop.Observed{Processes: []loop.Process{{PID: 101, State: "Z"}}}, 10 * time.Second, 15 * time.Second},
		{"it runs, and does not answer", loop.Observed{Processes: []loop.Process{{PID: 101, State: "S"}}}, 2 * time.Minute, 130 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t)
			kept := func(s *loop.Snapshot) bool {
				return len(s.Iterations) == 1 && s.Iterations[0].End == loop.IterationKept
			}
			r.wait(5*time.Minute, "kept", kept)
			if w := r.waited(); !strings.Contains(w[len(w)-1].Text, "watching the kept change") {
				t.Errorf("said: %+v", w)
			}
			r.step(loop.Observed{Processes: []loop.Process{{PID: r.server.pid, State: "S"}}})
			r.server.down = true
			began := r.now
			for r.apply == nil && r.now < began+5*time.Minute {
				r.step(c.after)
				r.run(250 * time.Millisecond)
			}
			if took := r.now - began; took < c.least || took > c.most {
				r.errorf("reverted after %v, want %v to %v", took, c.least, c.most)
			}
			r.ends(time.Hour)
			r.atRest("--max-num-seqs 4")
		})
	}
}

// TestWhatIsInPlaceIsSaid has a change without a gain on a server that rooftop cannot restart, and then no
// load: the run ends with the change in place.
func TestWhatIsInPlaceIsSaid(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", quiet, func(p *loop.Plan) { p.Auto = true })
	r.server.limit = 190
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.wait(5*time.Minute, "measuring", in(loop.PhaseMeasuring))
	r.server.clients = 0
	f := r.ends(20 * time.Minute)
	if !strings.Contains(f.Reason, "--max-num-seqs 4 → 32 is in place") {
		r.errorf("exit %d: %s", f.ExitCode, f.Reason)
	}
}

// TestATrialSaysBeforehandHowLongItTakes compares the expectation of a trial with its verdict, and has a change
// without a verdict applied again.
func TestATrialSaysBeforehandHowLongItTakes(t *testing.T) {
	r := begun(t, "--max-num-seqs 4", auto)
	r.wait(3*time.Minute, "verdict", func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	if !r.said("of measurement to distinguish the predicted +228") {
		r.errorf("how long a trial takes is not said before it")
	}
	r = newRig(t, "--max-num-seqs 4", auto)
	r.server.limit = 212
	r.step(loop.Begin{})
	r.wait(10*time.Minute, "second start", func(s *loop.Snapshot) bool { return len(s.Iterations) > 1 })
	if !r.said("applying --max-num-seqs 4 → 32 again, as its effect is unresolved and another start narrows the interval") {
		r.errorf("why it is tried again is not said")
	}
}

// TestACutWayIsNotTheServer cuts the way to a server with a change on trial, for half a minute and for good.
func TestACutWayIsNotTheServer(t *testing.T) {
	const cut = "the cluster's API server does not answer"
	r := autoRun(t)
	r.wait(2*time.Minute, "measuring", in(loop.PhaseMeasuring))
	r.server.down, r.cut = true, cut
	r.run(30 * time.Second)
	r.server.down, r.cut = false, ""
	r.run(2 * time.Second)
	if s := r.loop.Snapshot(); r.starts != 1 || s.Phase != loop.PhaseMeasuring || !r.said(cut+"; this says nothing about the server: waiting up to") {
		r.fatalf("%d starts, phase %d", r.starts, s.Phase)
	}
	if end := r.ends(time.Hour); end.ExitCode != 0 {
		t.Errorf("ended with %d: %s", end.ExitCode, end.Reason)
	}

	r = autoRun(t)
	r.wait(2*time.Minute, "measuring", in(loop.PhaseMeasuring))
	r.server.down, r.cut = true, cut
	r.run(3 * time.Minute)
	if !r.said("stopped answering under load: " + cut) {
		r.errorf("a way that stays cut is not said")
	}
}

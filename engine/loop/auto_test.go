package loop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// autoRun is an automatic run on a server with four slots for 32 clients.
func autoRun(t *testing.T, alter ...func(*loop.Plan)) *rig {
	t.Helper()
	return begun(t, "--max-num-seqs 4", append([]func(*loop.Plan){auto, quiet}, alter...)...)
}

// ends runs the loop to its end and checks the invariants.
func (r *rig) ends(within time.Duration) *loop.Finished {
	r.t.Helper()
	r.run(within)
	if r.done == nil {
		r.fatalf("not ended within %v; phase %d, %s", within, r.loop.Snapshot().Phase, r.loop.Snapshot().Progress.Text)
	}
	return r.done
}

// atRest checks that the kept configuration runs.
func (r *rig) atRest(args string) {
	r.t.Helper()
	if r.server.args != serve+" "+args || r.kept != r.server.args || r.server.down {
		r.errorf("%q runs (down %v), %q is kept, want %q", r.server.args, r.server.down, r.kept, args)
	}
}

// kinds returns the kinds of events other than windows and looks.
func (r *rig) kinds() []loop.EventKind {
	var out []loop.EventKind
	for _, e := range r.events {
		if e.Kind != loop.EventWindow && e.Kind != loop.EventTrial && e.Kind != loop.EventDiagnosis && e.Kind != loop.EventMeasured {
			out = append(out, e.Kind)
		}
	}
	return out
}

func TestAutoKeepsWhatIsBetter(t *testing.T) {
	r := autoRun(t)
	f := r.ends(30 * time.Minute)
	r.atRest("--max-num-seqs 32")
	it := r.last()
	if f.ExitCode != 0 || it.End != loop.IterationKept || it.Predicted == nil || it.Downtime < 2*time.Second || it.Downtime > 6*time.Second {
		r.errorf("exit %d, %q, down %v", f.ExitCode, it.End, it.Downtime)
	}
	if !f.GainKnown || f.GainWithin.Low < 3 || f.Gain.V < f.GainWithin.Low || f.Gain.V > f.GainWithin.High || f.Downtime != it.Downtime {
		t.Errorf("gain %v in %+v, down %v", f.Gain, f.GainWithin, f.Downtime)
	}
	if f.Score.Made != 1 {
		t.Errorf("score %+v", f.Score)
	}
	if f.Reason == "" || f.Reason == "nothing is left to recommend" || f.Reason != r.loop.Snapshot().Quiet {
		t.Errorf("it does not say what was considered: %q, quiet %q", f.Reason, r.loop.Snapshot().Quiet)
	}
	if r.now < it.Up+75*time.Second {
		t.Errorf("ended %v after the start: what crashes late would be lost", r.now-it.Up)
	}
}

// TestAutoContinuesAfterAChangeThatTouchedNothing checks that no restart is counted or measured after
// the applier refused before it touched the server.
func TestAutoContinuesAfterAChangeThatTouchedNothing(t *testing.T) {
	r := autoRun(t)
	r.refuses, r.spares = func(string) string { return "exit status 64" }, true
	f := r.ends(30 * time.Minute)
	r.atRest("--max-num-seqs 4")
	if f.Restarts != 0 || r.loop.Snapshot().Limits.UsedStarts != 0 || r.starts != 0 {
		r.errorf("%d restarts, %+v, the hands made %d", f.Restarts, r.loop.Snapshot().Limits, r.starts)
	}
	if len(r.loop.Snapshot().Noise) > 0 || r.last().End != loop.IterationBroken {
		t.Errorf("noise %v, %+v", r.loop.Snapshot().Noise, r.last())
	}
}

// TestTheApplyCarriesWhatIsWrittenDown compares an Apply with the events before it.
func TestTheApplyCarriesWhatIsWrittenDown(t *testing.T) {
	r := autoRun(t)
	r.wait(time.Minute, "applying", in(loop.PhaseApplying))
	a := r.apply
	if a == nil || a.Iteration != 1 || len(a.Predicted) == 0 || a.Answers || a.Revert {
		t.Errorf("%+v", a)
	}
	if it := r.last(); len(it.Predicted) == 0 {
		t.Error("the prediction is not with the iteration before the change")
	}
}

// TestARevertThatNeedsASecondStart ends an automatic run, and says what runs.
func TestARevertThatNeedsASecondStart(t *testing.T) {
	for _, quits := range []bool{false, true} {
		r := autoRun(t)
		r.retry = "the server did not start as before: it ran out of memory; it runs as before"
		r.lives = func(args string) {
			r.server.limit = 0
			if !strings.HasSuffix(args, "seqs 4") {
				r.server.limit = 90
			}
		}
		code, want := 1, "the original configuration runs again, but its revert went wrong at first: the server did not start as before"
		if quits {
			r.wait(3*time.Minute, "measuring", in(loop.PhaseMeasuring))
			r.step(loop.Pressed{Command: loop.CommandQuit})
			code, want = 4, "; the original configuration runs again"
		}
		f := r.ends(40 * time.Minute)
		r.atRest("--max-num-seqs 4")
		if f.ExitCode != code || !strings.Contains(f.Reason, want) || r.last().End != loop.IterationReverted {
			t.Errorf("exit %d: %s, want %d: %s; the change is %q", f.ExitCode, f.Reason, code, want, r.last().End)
		}
	}
}

// TestAFailingChange covers each way in which a change can fail.
func TestAFailingChange(t *testing.T) {
	const bad = "--max-num-seqs 32"
	for _, c := range []struct {
		name    string
		fail    func(r *rig)
		failure string
		end     loop.IterationEnd
		within  time.Duration // for the revert, since the start of the failed change
	}{
		{"it does not start", func(r *rig) {
			r.refuses = func(args string) string {
				if strings.HasSuffix(args, bad) {
					return "the server did not start: CUDA out of memory"
				}
				return ""
			}
		}, "out of memory", loop.IterationBroken, 10 * time.Second},
		{"it dies while it is measured", func(r *rig) {
			r.lives = func(args string) {
				if strings.HasSuffix(args, bad) {
					r.doomed, r.doom = r.now+15*time.Second, func() { r.server.down = true }
				}
			}
		}, "stopped answering", loop.IterationBroken, 40 * time.Second},
		{"it hangs under load", func(r *rig) {
			r.lives = func(args string) {
				r.server.frozen = false
				if strings.HasSuffix(args, bad) {
					r.doomed, r.doom = r.now+8*time.Second, func() { r.server.frozen = true }
				}
			}
		}, "the engine is hung", loop.IterationBroken, time.Minute},
		{"it hangs from the start", func(r *rig) {
			r.lives = func(args string) { r.server.frozen = strings.HasSuffix(args, bad) }
		}, "the engine is hung", loop.IterationBroken, time.Minute},
		{"its engine dies, and the page keeps answering", func(r *rig) {
			r.lives = func(args string) { r.server.dead = strings.HasSuffix(args, bad) }
		}, "the engine is dead: /health answers 503", loop.IterationBroken, time.Minute},
		{"it ends, and a supervisor starts it again", func(r *rig) {
			r.lives = func(args string) {
				if strings.HasSuffix(args, bad) {
					r.doomed, r.doom = r.now+15*time.Second, func() { r.start(3 * time.Second) }
				}
			}
		}, "started it again", loop.IterationBroken, 40 * time.Second},
		{"it dies a minute later, after it was kept", func(r *rig) {
			r.lives = func(args string) {
				if strings.HasSuffix(args, bad) {
					r.doomed, r.doom = r.now+time.Minute, func() { r.server.down = true }
				}
			}
		}, "after the change was kept", loop.IterationBroken, 4 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t)
			c.fail(r)
			began := time.Duration(0)
			for r.done == nil && r.now < time.Hour {
				r.run(250 * time.Millisecond)
				if began == 0 && r.starts > 0 {
					began = r.now
				}
				if began > 0 && r.starts > 1 && strings.HasSuffix(r.server.args, "seqs 4") {
					break
				}
			}
			if took := r.now - began; took > c.within {
				t.Errorf("reverted after %v, want %v", took, c.within)
			}
			f := r.ends(time.Hour)
			r.atRest("--max-num-seqs 4")
			it := r.loop.Snapshot().Iterations[0]
			if it.End != c.end || !strings.Contains(it.Failure, c.failure) {
				r.errorf("%q: %q", it.End, it.Failure)
			}
			for _, other := range r.loop.Snapshot().Iterations[1:] {
				if slices.Equal(other.Changes, it.Changes) {
					t.Errorf("what failed was tried again: %v", other.Changes)
				}
			}
			if f.ExitCode != 1 && f.ExitCode != 0 && f.ExitCode != 3 || f.Gain.OK {
				t.Errorf("%+v", f)
			}
			if used := r.loop.Snapshot().Limits.UsedStarts; used != r.starts {
				t.Errorf("%d restarts are counted, %d were made", used, r.starts)
			}
		})
	}
}

// TestTheLogSaysWhy checks that the revert reports why the server had exited.
func TestTheLogSaysWhy(t *testing.T) {
	r := autoRun(t)
	r.wait(2*time.Minute, "measuring", in(loop.PhaseMeasuring))
	r.server.down = true
	r.wait(time.Minute, "revert", func(s *loop.Snapshot) bool { return r.apply != nil && r.apply.Revert })
	r.apply, r.server.args = nil, r.kept
	r.start(0)
	r.step(loop.Applied{Ended: "torch.OutOfMemoryError"})
	if it := r.last(); !strings.Contains(it.Failure, "OutOfMemoryError") {
		t.Errorf("failure %q", it.Failure)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits loop.Limits
		starts int
		code   int
		reason string
	}{
		{"no restart for a revert", loop.Limits{Restarts: 1}, 0, 3, "no restart"},
		{"one change and its revert", loop.Limits{Restarts: 2}, 1, 0, ""},
		{"no start fits into the downtime", loop.Limits{Downtime: time.Millisecond}, 0, 3, "no downtime is left for a change and its revert: 0 s of 1ms was used, and no server starts within 5 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t, func(p *loop.Plan) { p.Limits = c.limits })
			f := r.ends(30 * time.Minute)
			if r.starts != c.starts || f.ExitCode != c.code || !strings.Contains(plain(f.Reason), c.reason) {
				r.errorf("%d starts, exit %d: %s", r.starts, f.ExitCode, f.Reason)
			}
			if c.starts == 0 && r.now > 25*time.Second {
				t.Errorf("it measured for %v what no limit allows", r.now)
			}
		})
	}
}

func TestCountdownAndHold(t *testing.T) {
	r := autoRun(t, func(p *loop.Plan) { p.Countdown = 10 * time.Second })
	r.wait(time.Minute, "pending", func(s *loop.Snapshot) bool { return s.Pending.Text != "" })
	s := r.loop.Snapshot()
	if s.Pending.At <= r.now || s.Pending.At > r.now+10*time.Second || !strings.Contains(s.Pending.Text, "4 → 32") {
		t.Fatalf("at %v pending %+v", r.now, s.Pending)
	}
	r.run(5 * time.Second)
	r.press(loop.CommandHold)
	r.run(5 * time.Minute)
	if s := r.loop.Snapshot(); !s.Held || r.starts > 0 || s.Phase != loop.PhaseWaiting {
		t.Fatalf("held %v, %d starts, phase %d", s.Held, r.starts, s.Phase)
	}
	r.press(loop.CommandHold)
	r.run(5 * time.Second)
	if r.apply != nil || r.starts > 0 {
		t.Fatal("no countdown after the hold")
	}
	r.run(10 * time.Second)
	if r.starts != 1 {
		t.Errorf("%d starts", r.starts)
	}
	if !slices.Contains(r.kinds(), loop.EventPending) {
		t.Errorf("it was not announced: %v", r.kinds())
	}
}

// TestABlipDuringTheCountdown has the server not answer for a second while the next change is counted down to, with
// one in place that brought nothing.
func TestABlipDuringTheCountdown(t *testing.T) {
	r := autoRun(t, func(p *loop.Plan) { p.Countdown = 10 * time.Second })
	r.server.limit = 100
	inPlace := func(s *loop.Snapshot) bool { return s.Pending.Text != "" && len(s.Iterations) > 0 }
	for r.done == nil && !inPlace(r.loop.Snapshot()) && r.now < 30*time.Minute {
		r.run(250 * time.Millisecond)
	}
	r.server.down = true
	r.run(time.Second)
	r.server.down = false
	r.ends(time.Hour)
	r.atRest("--max-num-seqs 4")
}

// TestHeldLeavesTheChangeInPlace checks that a paused run leaves a change in place, whatever becomes of the
// server, and that it says so; once it is resumed, it reverts the change.
func TestHeldLeavesTheChangeInPlace(t *testing.T) {
	for _, c := range []struct {
		name  string
		falls func(r *rig)
		shows func(*loop.Snapshot) bool // the run has noticed it
		then  string                    // what it says it will do, until it is paused
	}{
		{"it is worse", func(r *rig) { r.server.limit = 90 }, in(loop.PhaseMeasuring), ""},
		{"its engine hangs", func(r *rig) { r.server.frozen, r.server.clients = true, 64 }, ill(engine.Hung), "the change is reverted after 20 s"},
		{"its engine is dead", func(r *rig) { r.server.dead = true }, ill(engine.Dead), "the change is reverted after 20 s"},
		{"it stops answering", func(r *rig) { r.server.down = true }, in(loop.PhaseDown), ""},
		{"the load is gone", func(r *rig) { r.server.clients = 0 }, in(loop.PhaseMeasuring), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t)
			r.lives = func(string) { r.server.limit, r.server.frozen, r.server.dead = 0, false, false }
			r.wait(2*time.Minute, "measuring", in(loop.PhaseMeasuring))
			if c.then == "" {
				r.press(loop.CommandHold)
			}
			c.falls(r)
			r.wait(14*time.Second, "noticed", c.shows)
			if s := r.loop.Snapshot(); plain(s.UnlessRecovers) != c.then || c.then != "" && !r.said(s.UnlessRecovers) {
				r.errorf("says %q, want %q", s.UnlessRecovers, c.then)
			}
			if c.then != "" {
				r.press(loop.CommandHold)
			}
			r.run(5 * time.Minute)
			if s := r.loop.Snapshot(); r.starts != 1 || r.apply != nil || r.done != nil || s.UnlessRecovers != "" {
				r.fatalf("%d starts, applying %v, ended %+v, says %q", r.starts, r.apply, r.done, s.UnlessRecovers)
			}
			r.press(loop.CommandHold)
			r.wait(3*time.Minute, "the revert", func(*loop.Snapshot) bool { return r.starts == 2 })
			r.atRest("--max-num-seqs 4")
		})
	}
}

func TestDryRun(t *testing.T) {
	r := autoRun(t, func(p *loop.Plan) { p.DryRun = true })
	f := r.ends(10 * time.Minute)
	if r.starts > 0 || f.ExitCode != 3 || !strings.Contains(f.Reason, "--max-num-seqs 4 → 32") || r.loop.Snapshot().Advice == nil {
		t.Errorf("%d starts, exit %d: %s", r.starts, f.ExitCode, f.Reason)
	}
}

// TestQuittingRevertsWhatRooftopChanged quits a run with keys at each point of a change that rooftop makes. Changes
// by others stay: TestQuitCodes.
func TestQuittingRevertsWhatRooftopChanged(t *testing.T) {
	for _, when := range []loop.Phase{loop.PhaseApplying, loop.PhaseSettling, loop.PhaseMeasuring} {
		r := ready(t, "--max-num-seqs 4", withHands)
		r.press(loop.CommandApply)
		r.wait(time.Minute, "the change", in(when))
		if !r.loop.Snapshot().RevertsFirst {
			t.Errorf("phase %d: it is not said that quitting reverts first", when)
		}
		r.press(loop.CommandQuit)
		f := r.ends(time.Minute)
		r.atRest("--max-num-seqs 4")
		if f.ExitCode != 4 || !strings.Contains(f.Reason, "the original configuration runs again") || r.starts != 2 || r.last().End != loop.IterationReverted {
			t.Errorf("phase %d: exit %d after %d starts, %q: %s", when, f.ExitCode, r.starts, r.last().End, f.Reason)
		}
	}
}

// TestRevertEndsATrial reverts a change before its verdict, by hand: the kept configuration runs again, and an automatic
// run does not try the same once more.
func TestRevertEndsATrial(t *testing.T) {
	for _, alter := range []func(*loop.Plan){withHands, auto} {
		r := begun(t, "--max-num-seqs 4", alter, quiet)
		r.wait(3*time.Minute, "advice", func(s *loop.Snapshot) bool { return s.Advice != nil && s.Phase == loop.PhaseWaiting })
		r.press(loop.CommandApply)
		r.wait(3*time.Minute, "measuring", in(loop.PhaseMeasuring))
		r.press(loop.CommandRevert)
		r.wait(3*time.Minute, "waiting", in(loop.PhaseWaiting))
		first := r.loop.Snapshot().Iterations[0]
		if r.server.args != serve+" --max-num-seqs 4" || first.End != loop.IterationReverted || first.Delta != nil {
			t.Errorf("it runs %q, change 1 is %q", r.server.args, first.End)
		}
		for _, it := range r.loop.Snapshot().Iterations[1:] {
			t.Errorf("tried once more: %s", it.Text)
		}
	}
}

// TestQuittingAnAutomaticRun quits at each point of a change and checks that the kept configuration
// runs.
func TestQuittingAnAutomaticRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		when  loop.Phase
		after time.Duration
		code  int
		kept  string
	}{
		{"waiting", loop.PhaseBaseline, 10 * time.Second, 4, "4"},
		{"while the change is made", loop.PhaseApplying, 0, 4, "4"},
		{"settling", loop.PhaseSettling, 0, 4, "4"},
		{"measuring", loop.PhaseMeasuring, 5 * time.Second, 4, "4"},
		{"down with the change", loop.PhaseDown, 0, 4, "4"},
		{"kept", loop.PhaseWaiting, 0, 0, "32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t)
			if c.when == loop.PhaseDown {
				r.wait(3*time.Minute, "measuring", in(loop.PhaseMeasuring))
				r.server.down = true
			}
			r.wait(3*time.Minute, c.name, func(s *loop.Snapshot) bool {
				return s.Phase == c.when && (c.when != loop.PhaseWaiting || len(s.Iterations) > 0)
			})
			r.run(c.after)
			r.step(loop.Pressed{Command: loop.CommandQuit})
			f := r.ends(time.Minute)
			r.atRest("--max-num-seqs " + c.kept)
			if f.ExitCode != c.code {
				t.Errorf("exit %d: %s, want %d", f.ExitCode, f.Reason, c.code)
			}
		})
	}
	t.Run("before the change is attached to", func(t *testing.T) {
		r := autoRun(t)
		for r.starts == 0 && r.now < 3*time.Minute {
			r.run(250 * time.Millisecond)
		}
		r.attach = 10 * time.Second
		r.run(time.Second)
		r.step(loop.Pressed{Command: loop.CommandQuit})
		r.ends(time.Minute)
		r.atRest("--max-num-seqs 4")
	})
	t.Run("while a change that was kept is left out again", func(t *testing.T) {
		r := autoRun(t)
		r.lives = func(args string) {
			if strings.HasSuffix(args, "--max-num-seqs 32") {
				r.doomed, r.doom = r.now+time.Minute, func() { r.server.down = true }
			}
		}
		r.wait(10*time.Minute, "left out", func(s *loop.Snapshot) bool { return s.Phase == loop.PhaseApplying && r.starts > 0 })
		r.step(loop.Pressed{Command: loop.CommandQuit})
		r.ends(time.Minute)
		r.atRest("--max-num-seqs 4")
	})
	t.Run("twice", func(t *testing.T) {
		r := autoRun(t)
		r.wait(2*time.Minute, "measuring", in(loop.PhaseMeasuring))
		r.step(loop.Pressed{Command: loop.CommandQuit})
		r.step(loop.Pressed{Command: loop.CommandQuit})
		if f := r.ends(time.Minute); f.ExitCode != 4 {
			t.Errorf("exit %d: %s, want 4", f.ExitCode, f.Reason)
		}
		r.atRest("--max-num-seqs 4")
	})
}

// TestAutoWithoutApplierWaitsForTheUser makes each change by hand, as asked.
func TestAutoWithoutApplierWaitsForTheUser(t *testing.T) {
	r := begun(t, "--max-num-seqs 4", quiet, func(p *loop.Plan) { p.Auto = true })
	r.wait(time.Minute, "advice", func(s *loop.Snapshot) bool { return s.Firm && s.Advice != nil })
	r.run(5 * time.Minute)
	if s := r.loop.Snapshot(); s.Phase != loop.PhaseWaiting || r.done != nil {
		t.Fatalf("phase %d, %+v", s.Phase, r.done)
	}
	r.restart("--max-num-seqs 2", 5*time.Second)
	r.wait(3*time.Minute, "the revert is requested", in(loop.PhaseReverting))
	r.run(5 * time.Minute)
	r.restart("--max-num-seqs 4", 5*time.Second)
	r.wait(3*time.Minute, "back", in(loop.PhaseWaiting))
	r.restart("--max-num-seqs 32", 5*time.Second)
	f := r.ends(10 * time.Minute)
	if its := r.loop.Snapshot().Iterations; len(its) != 2 || its[0].End != loop.IterationReverted || its[1].End != loop.IterationKept || f.ExitCode != 0 {
		r.errorf("%d iterations, %+v", len(its), f)
	}
}

// TestASideIsBounded restarts a kept server repeatedly with the same settings, and then judges a change.
func TestASideIsBounded(t *testing.T) {
	r := ready(t, "--max-num-seqs 32", quiet)
	for i := range 6 {
		r.restart("--max-num-seqs 32", 5*time.Second)
		r.wait(10*time.Minute, fmt.Sprint("repeat ", i), func(s *loop.Snapshot) bool { return len(s.Noise) == i+1 })
		waiting(r)
	}
	r.restart("--max-num-seqs 32 --block-size 32", 5*time.Second)
	it := r.judged(7)
	if v := it.Delta.Verdict; v == nil || v.Direction != verdict.Plateau || v.Spread.Repeats < 206 {
		t.Errorf("%+v", v)
	}
}

package loop_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// firstChange is when an automatic run makes its first change: the baseline outlasts a burst, and two windows
// are left out of it.
const firstChange = verdict.LongestBurst + 5*time.Second

func ill(state engine.Illness) func(*loop.Snapshot) bool {
	return func(s *loop.Snapshot) bool { return s.Condition.State == state }
}

// events returns the events of a kind.
func (r *rig) eventsOf(kind loop.EventKind) (list []loop.Event) {
	for _, e := range r.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// offersNothing checks that no change is offered or possible, and that Quiet says why.
func (r *rig) offersNothing(why string) {
	r.t.Helper()
	s := r.loop.Snapshot()
	if s.Advice != nil || !strings.Contains(s.Quiet, why) || s.Can[loop.CommandApply].OK || !strings.Contains(s.Can[loop.CommandApply].Why, why) {
		r.t.Errorf("at %v: advice %+v, quiet %q, apply %+v; want none because of %q", r.now, s.Advice, s.Quiet, s.Can[loop.CommandApply], why)
	}
}

func TestAHungServerIsHungUntilItSteps(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", func(p *loop.Plan) { p.CanApply = true })
	before := r.loop.Snapshot()
	if before.Advice == nil || before.Condition.State != "" {
		t.Fatalf("advice %+v, condition %+v", before.Advice, before.Condition)
	}
	r.server.frozen = true
	froze := r.now
	r.wait(14*time.Second, "hung", ill(engine.Hung))
	for r.now < froze+2*time.Minute {
		r.run(2 * time.Second)
		s := r.loop.Snapshot()
		if s.Condition.State != engine.Hung {
			t.Fatalf("%v after it froze the condition is %q", r.now-froze, s.Condition)
		}
		r.offersNothing("the engine is hung")
		if out := s.Live.Quantity("generation_tokens_per_s").Value; out.Or(0) > 0 {
			t.Fatalf("%v after it froze the output is %v tok/s", r.now-froze, out.V)
		}
	}
	s := r.loop.Snapshot()
	if !strings.Contains(s.Condition.Reason, "with 4 running and 28 waiting") || s.Baseline != before.Baseline {
		t.Errorf("condition %q; the baseline changed: %v", s.Condition, s.Baseline != before.Baseline)
	}
	r.server.frozen = false
	r.wait(5*time.Second, "recovery", ill(""))
	if s := r.loop.Snapshot(); s.Advice == nil || s.Quiet != "" {
		t.Errorf("after the recovery: advice %+v, quiet %q", s.Advice, s.Quiet)
	}
	began, ended := r.eventsOf(loop.EventUnhealthy), r.eventsOf(loop.EventRecovered)
	if len(began) != 1 || len(ended) != 1 || ended[0].Took < 115*time.Second || ended[0].Took > 125*time.Second || !strings.Contains(ended[0].Text, "it was hung for 2") {
		r.errorf("began %+v, ended %+v", began, ended)
	}
	r.run(time.Minute)
	tokens := func(d *engine.Diagnosis) float64 { return d.Quantity("generation_tokens_per_s").Value.V }
	if b := r.loop.Snapshot().Baseline; tokens(b) < 0.95*tokens(before.Baseline) {
		t.Errorf("the baseline fell from %v to %v tok/s: the standstill was measured", tokens(before.Baseline), tokens(b))
	}
}

func TestNothingIsMeasuredWhileTheServerIsIll(t *testing.T) {
	r := begun(t, "--max-num-seqs 4")
	r.run(14 * time.Second)
	r.server.frozen = true
	r.run(30 * time.Second)
	if s := r.loop.Snapshot(); s.Baseline != nil || s.Phase != loop.PhaseBaseline {
		t.Fatalf("phase %v with baseline %v", s.Phase, s.Baseline)
	}
	r.server.frozen = false
	r.run(18 * time.Second)
	if s := r.loop.Snapshot(); s.Baseline != nil {
		t.Error("what was measured before the standstill was continued after it")
	}
	r.wait(10*time.Second, "baseline", in(loop.PhaseWaiting))
}

func TestAutoEndsWithAnIllServer(t *testing.T) {
	for _, c := range []struct {
		name  string
		doubt time.Duration // before, in which it may be idle with a stale gauge
		falls func(f *fake)
		says  string
	}{
		{"dead", 0, func(f *fake) { f.dead = true }, "the engine is dead: /health answers 503"},
		{"hung", 0, func(f *fake) { f.frozen = true }, "the engine is hung"},
		{"hung after a doubt", 100 * time.Second, func(f *fake) { f.clients = 32 }, "the engine is hung"},
		{"dead without requests", 0, func(f *fake) { f.dead, f.clients = true, 0 }, "the engine is dead"},
	} {
		for _, at := range []time.Duration{10 * time.Second, 30 * time.Second} { // in the baseline, and before the first change
			t.Run(c.name+" at "+at.String(), func(t *testing.T) {
				r := autoRun(t, func(p *loop.Plan) { p.Countdown = 30 * time.Second })
				r.run(at)
				if at += c.doubt; c.doubt > 0 {
					r.server.frozen, r.server.clients = true, 4
					r.run(c.doubt)
				}
				c.falls(r.server)
				f := r.ends(150 * time.Second)
				if f.ExitCode != 6 || !strings.Contains(f.Reason, c.says) || r.starts > 0 || r.apply != nil {
					r.errorf("exit %d: %s; %d restarts", f.ExitCode, f.Reason, r.starts)
				}
				if took := r.now - at; took < 2*time.Minute {
					t.Errorf("ended after %v: a server may recover", took)
				}
			})
		}
	}
}

func TestAPendingChangeOfAnIllServerIsDropped(t *testing.T) {
	r := autoRun(t, func(p *loop.Plan) { p.Countdown = 25 * time.Second })
	r.run(firstChange)
	if r.loop.Snapshot().Pending.Text == "" {
		t.Fatal("nothing is pending")
	}
	r.server.frozen = true
	r.run(60 * time.Second)
	if r.starts > 0 || r.apply != nil || r.loop.Snapshot().Pending.Text != "" {
		t.Errorf("%d restarts, applying %+v, pending %+v", r.starts, r.apply, r.loop.Snapshot().Pending)
	}
	r.server.frozen = false
	f := r.ends(30 * time.Minute)
	r.atRest("--max-num-seqs 32")
	if f.ExitCode != 0 {
		t.Errorf("exit %d: %s", f.ExitCode, f.Reason)
	}
}

func TestARestartEndsAnIllness(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.server.dead = true
	r.wait(6*time.Second, "dead", ill(engine.Dead))
	r.run(20 * time.Second)
	r.server.dead = false
	r.restart("--max-num-seqs 4", 10*time.Second)
	r.wait(5*time.Second, "down", in(loop.PhaseDown))
	if r.loop.Snapshot().Starting {
		t.Error("starting, although nothing says so yet")
	}
	r.step(loop.AttachFailed{Why: "the server is starting: process 101 does not listen yet", Starting: true})
	if s := r.loop.Snapshot(); !s.Starting || s.Phase != loop.PhaseDown {
		t.Errorf("phase %v, starting %v", s.Phase, s.Starting)
	}
	if c := r.loop.Snapshot().Condition; c.Ill() {
		t.Errorf("a restart in progress is %q", c)
	}
	r.wait(20*time.Second, "back", in(loop.PhaseSettling))
	if r.loop.Snapshot().Starting {
		t.Error("it answers, and is still starting")
	}
	if c := r.loop.Snapshot().Condition; c.Ill() {
		t.Errorf("the new server is %q", c)
	}
	kinds := []loop.EventKind{loop.EventUnhealthy, loop.EventServerDown, loop.EventServerUp, loop.EventRecovered}
	if got := r.kinds(); !slices.Equal(got[len(got)-5:len(got)-1], kinds) {
		t.Errorf("events %q, want %q before the settling", got, kinds)
	}
}

// TestAPauseWhileTheServerIsIll has the user pause an ill server for longer than it may be ill.
func TestAPauseWhileTheServerIsIll(t *testing.T) {
	r := autoRun(t)
	r.run(30 * time.Second)
	r.server.dead = true
	r.wait(time.Minute, "ill", func(s *loop.Snapshot) bool { return s.Condition.Ill() })
	r.press(loop.CommandPause)
	r.run(10 * time.Minute)
	r.press(loop.CommandPause)
	if r.run(time.Second); r.done != nil || !r.loop.Snapshot().Condition.Ill() {
		r.fatalf("after the pause: %+v, %+v", r.loop.Snapshot().Condition, r.done)
	}
	r.server.dead = false
	if f := r.ends(time.Hour); f.ExitCode != 0 {
		t.Errorf("exit %d: %s", f.ExitCode, f.Reason)
	}
}

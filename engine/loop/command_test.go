package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

func worse(t *testing.T, alter ...func(*loop.Plan)) *rig {
	r := ready(t, "--max-num-seqs 32", alter...)
	r.restart("--max-num-seqs 2", 10*time.Second)
	r.wait(2*time.Minute, "worse", in(loop.PhaseWorse))
	return r
}

func TestContinueTakesWhatIsWorseAsTheBaseline(t *testing.T) {
	r := worse(t)
	r.press(loop.CommandContinue)
	s := r.loop.Snapshot()
	if s.Phase != loop.PhaseWaiting || s.Ask != "" || s.Baseline != r.last().After || s.Baseline == nil {
		t.Errorf("phase %d, ask %q", s.Phase, s.Ask)
	}
	if s.Advice == nil || s.Advice.Flag != "--max-num-seqs" || !strings.Contains(s.Advice.Launch, "--max-num-seqs "+s.Advice.To) {
		t.Errorf("advice %+v, quiet %q", s.Advice, s.Quiet)
	}
	r.expect(loop.SomethingElse, loop.IterationContinued, "--max-num-seqs 32 → 2")
}

func TestWorseWaitsForAnAnswer(t *testing.T) {
	r := worse(t)
	r.run(10 * time.Minute)
	if s := r.loop.Snapshot(); s.Phase != loop.PhaseWorse || s.Ask == "" || s.Live == nil {
		t.Errorf("phase %d, ask %q", s.Phase, s.Ask)
	}
	r.restart("--max-num-seqs 2", 10*time.Second)
	r.wait(time.Minute, "still asked", in(loop.PhaseWorse))
	r.restart("--max-num-seqs 32", 10*time.Second)
	waiting(r)
	r.expect(loop.SomethingElse, loop.IterationReverted, "2")
}

func TestAnotherChangeWhileWorseWaits(t *testing.T) {
	r := worse(t)
	r.restart("--max-num-seqs 16", 10*time.Second)
	r.run(12 * time.Second)
	if its := r.loop.Snapshot().Iterations; len(its) != 2 || its[0].End != loop.IterationNoGain || its[1].Before != its[0].Before {
		t.Fatalf("%d iterations, the first %q", len(its), its[0].End)
	}
}

func TestRevertIsWaitedForAndChecked(t *testing.T) {
	r := worse(t)
	before := r.loop.Snapshot().Baseline
	r.press(loop.CommandRevert)
	if p := r.loop.Snapshot().Progress.Text; !strings.Contains(p, "--max-num-seqs 32") {
		t.Errorf("it does not say what to type: %q", p)
	}
	r.restart("--max-num-seqs 2 --port 8001", 10*time.Second)
	r.run(15 * time.Second)
	if s := r.loop.Snapshot(); s.Phase != loop.PhaseReverting || !r.said("still in place") {
		t.Errorf("phase %d: the settings are not those of before", s.Phase)
	}
	r.restart("--max-num-seqs 32", 10*time.Second)
	waiting(r)
	s := r.loop.Snapshot()
	if s.Baseline != before || len(s.Iterations) != 1 {
		t.Errorf("a revert leaves the baseline unchanged; %d iterations", len(s.Iterations))
	}
	r.expect(loop.SomethingElse, loop.IterationReverted, "")
}

func TestQuitCodes(t *testing.T) {
	for _, c := range []struct {
		name  string
		ready func(t *testing.T) *rig
		code  int
	}{
		{"no server", func(t *testing.T) *rig {
			r := newRig(t, "")
			r.server.down = true
			r.step(loop.Begin{})
			r.run(time.Second)
			return r
		}, 5},
		{"idle", func(t *testing.T) *rig {
			r := newRig(t, "")
			r.server.clients = 0
			r.step(loop.Begin{})
			r.run(time.Minute)
			return r
		}, 4},
		{"while the baseline is measured", func(t *testing.T) *rig {
			r := begun(t, "--max-num-seqs 4")
			r.run(9 * time.Second)
			return r
		}, 4},
		{"a flag is open", func(t *testing.T) *rig { return ready(t, "--max-num-seqs 4") }, 3},
		{"nothing is left", func(t *testing.T) *rig { return ready(t, "--max-num-seqs 64") }, 0},
		{"down", func(t *testing.T) *rig {
			r := ready(t, "--max-num-seqs 4")
			r.server.down = true
			r.run(time.Minute)
			return r
		}, 5},
		{"down in the baseline", func(t *testing.T) *rig {
			r := begun(t, "--max-num-seqs 4")
			r.run(10 * time.Second)
			r.server.down = true
			r.run(time.Minute)
			return r
		}, 5},
		{"down as a change did not come up", func(t *testing.T) *rig {
			r := ready(t, "--max-num-seqs 4", withHands)
			r.fails = "no memory"
			r.press(loop.CommandApply)
			r.run(30 * time.Second)
			return r
		}, 1},
		{"ill", func(t *testing.T) *rig {
			r := ready(t, "--max-num-seqs 4")
			r.server.dead = true
			r.wait(6*time.Second, "dead", ill(engine.Dead))
			return r
		}, 6},
		{"settling", func(t *testing.T) *rig {
			r := ready(t, "--max-num-seqs 4")
			r.restart("--max-num-seqs 32", 5*time.Second)
			r.run(8 * time.Second)
			return r
		}, 4},
		{"measuring", func(t *testing.T) *rig {
			r := ready(t, "--max-num-seqs 4")
			r.restart("--max-num-seqs 32", 5*time.Second)
			r.run(25 * time.Second)
			return r
		}, 4},
		{"worse", func(t *testing.T) *rig { return worse(t) }, 3},
		{"reverting", func(t *testing.T) *rig { r := worse(t); r.press(loop.CommandRevert); return r }, 3},
		{"paused", func(t *testing.T) *rig { r := ready(t, "--max-num-seqs 4"); r.press(loop.CommandPause); return r }, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.ready(t)
			r.press(loop.CommandQuit)
			if r.done == nil || r.done.ExitCode != c.code || r.done.Reason == "" {
				t.Errorf("finished %+v, want exit %d", r.done, c.code)
			}
			s := r.loop.Snapshot()
			if s.Phase != loop.PhaseDone || s.Finished == nil || s.Can[loop.CommandQuit].OK {
				t.Errorf("phase %d, finished %v", s.Phase, s.Finished)
			}
			if acts := r.loop.Step(r.now+time.Second, loop.Pressed{Command: loop.CommandQuit}); acts != nil {
				t.Errorf("%d actions after the end", len(acts))
			}
		})
	}
}

func TestSkip(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.press(loop.CommandSkip)
	s := r.loop.Snapshot()
	if s.Advice != nil && s.Advice.To == "32" || s.Advice == nil && !strings.Contains(s.Quiet, "skipped") {
		t.Errorf("advice %+v, quiet %q", s.Advice, s.Quiet)
	}
	r.run(2 * time.Minute)
	if s := r.loop.Snapshot(); s.Advice != nil && s.Advice.To == "32" {
		t.Error("what was skipped is back")
	}
	r.press(loop.CommandUnskip)
	if s := r.loop.Snapshot(); s.Advice == nil || s.Advice.To != "32" || s.Can[loop.CommandUnskip].OK {
		t.Errorf("after the skip was undone: phase %d, advice %+v, undo %+v, quiet %q; %+v", s.Phase, s.Advice, s.Can[loop.CommandUnskip], s.Quiet, s.Journal[len(s.Journal)-1])
	}
}

func TestPause(t *testing.T) {
	r := begun(t, "--max-num-seqs 4")
	r.run(10 * time.Second)
	r.press(loop.CommandPause)
	r.run(time.Minute)
	s := r.loop.Snapshot()
	if !s.Paused || s.Phase != loop.PhaseBaseline || s.Progress.Elapsed > 11*time.Second || s.Can[loop.CommandRemeasure].OK {
		t.Errorf("paused %v, phase %d, elapsed %s", s.Paused, s.Phase, s.Progress.Elapsed)
	}
	r.now += time.Hour
	r.press(loop.CommandPause)
	r.wait(25*time.Second, "baseline", in(loop.PhaseWaiting))
	for _, p := range r.loop.Snapshot().Points {
		if p.Tokens.OK && p.Tokens.V < 100 {
			t.Errorf("a window of %.1f tok/s: it reaches over the pause", p.Tokens.V)
		}
	}
}

func TestApplyRevertAndFold(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", withHands)
	r.press(loop.CommandApply)
	if r.apply == nil || len(r.apply.Changes) != 1 || r.apply.Changes[0] != (engine.Change{Flag: "--max-num-seqs", From: "4", To: "32"}) {
		t.Fatalf("apply %+v", r.apply)
	}
	waiting(r)
	r.expect(loop.AsRecommended, loop.IterationKept, "--max-num-seqs 4 → 32, applied by rooftop")
	r.restart("--max-num-seqs 2", 5*time.Second)
	r.wait(2*time.Minute, "worse", in(loop.PhaseWorse))
	r.press(loop.CommandRevert)
	if r.apply == nil || !r.apply.Revert || r.apply.Changes[0] != (engine.Change{Flag: "--max-num-seqs", From: "2", To: "32"}) {
		t.Fatalf("apply %+v", r.apply)
	}
	waiting(r)
	r.expect(loop.SomethingElse, loop.IterationReverted, "")
	// A change without a gain is left in place until the next change, which reverts it.
	r.restart("--max-num-seqs 32 --block-size 32", 5*time.Second)
	waiting(r)
	r.wait(2*time.Minute, "no gain", func(s *loop.Snapshot) bool {
		return len(s.Iterations) == 3 && s.Iterations[2].End == loop.IterationNoGain
	})
	s := r.loop.Snapshot()
	if strings.Contains(s.Kept, "block-size") || !strings.Contains(s.Launch, "block-size") || !s.Can[loop.CommandRevert].OK {
		t.Errorf("kept %q, runs %q, revert %+v", s.Kept, s.Launch, s.Can[loop.CommandRevert])
	}
	r.press(loop.CommandRevert)
	r.wait(2*time.Minute, "back", func(s *loop.Snapshot) bool { return s.Phase == loop.PhaseWaiting && s.Launch == s.Kept })
}

func TestAChangeThatDoesNotComeUp(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", withHands)
	r.fails = "the server refused: out of memory"
	r.press(loop.CommandApply)
	r.run(30 * time.Second)
	s := r.loop.Snapshot()
	if s.Phase != loop.PhaseDown || !s.Can[loop.CommandRevert].OK || !r.said("out of memory") {
		r.fatalf("phase %d, revert %+v", s.Phase, s.Can[loop.CommandRevert])
	}
	r.expect(loop.AsRecommended, loop.IterationBroken, "")
	r.fails = ""
	r.press(loop.CommandRevert)
	waiting(r)
	if s := r.loop.Snapshot(); s.Launch != s.Kept || s.Advice != nil && s.Advice.To == "32" {
		t.Errorf("runs %q, kept %q, advice %+v", s.Launch, s.Kept, s.Advice)
	}
}

func TestRemeasure(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	before := r.loop.Snapshot().Baseline
	r.press(loop.CommandRemeasure)
	if p := r.loop.Snapshot().Phase; p != loop.PhaseBaseline {
		t.Errorf("phase %d", p)
	}
	waiting(r)
	if r.loop.Snapshot().Baseline == before {
		t.Error("the baseline is the old one")
	}
	r = worse(t)
	r.press(loop.CommandRemeasure)
	if r.last().Delta != nil {
		t.Error("the verdict stands while it is measured again")
	}
	r.wait(time.Minute, "worse again", in(loop.PhaseWorse))
	if n := len(r.loop.Snapshot().Iterations); n != 1 {
		t.Errorf("%d iterations", n)
	}
}

// TestWhatGainedNothingIsNotRecommendedAgain uses slots that the model considers the limit, on a
// server that gains nothing from more of them.
func TestWhatGainedNothingIsNotRecommendedAgain(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4", withHands)
	r.server.limit = 150
	r.step(loop.Begin{})
	r.wait(time.Minute, "baseline", in(loop.PhaseWaiting))
	r.press(loop.CommandApply)
	r.run(12 * time.Minute)
	s := r.loop.Snapshot()
	if len(s.Iterations) != 1 {
		r.fatalf("%d iterations", len(s.Iterations))
	}
	if s.Advice != nil && s.Advice.To == "32" || s.Advice == nil && s.Quiet == "" {
		t.Errorf("advice %+v, quiet %q", s.Advice, s.Quiet)
	}
	r.expect(loop.AsRecommended, loop.IterationNoGain, "applied by rooftop")
}

// TestPointsNameWhatRuns checks the configuration of points after a revert.
func TestPointsNameWhatRuns(t *testing.T) {
	r := worse(t)
	n := r.last().N
	r.press(loop.CommandRevert)
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.wait(2*time.Minute, "back", in(loop.PhaseWaiting))
	r.run(10 * time.Second)
	points := r.loop.Snapshot().Points
	seen := map[int]bool{}
	for _, p := range points {
		seen[p.Iteration] = true
	}
	if last := points[len(points)-1].Iteration; last == n || !seen[n] {
		t.Errorf("the last window is of iteration %d, the reverted change is %d; seen %v", last, n, seen)
	}
}

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

func TestTheWalk(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.step(engine.Begin{})
	r.wait(15*time.Second, "the bottleneck shows", func(s *engine.Snapshot) bool {
		return s.Advice != nil && s.Advice.Finding == engine.SeatSaturation && !s.Firm
	})
	r.wait(time.Minute, "baseline", in(engine.PhaseWaiting))
	s := r.loop.Snapshot()
	if s.Advice == nil || s.Advice.Flag != "--max-num-seqs" || !s.Firm || s.Baseline == nil {
		r.dump()
		t.Fatalf("advice %+v, quiet %q", s.Advice, s.Quiet)
	}
	r.run(time.Minute)
	r.restart("--max-num-seqs "+s.Advice.To, 30*time.Second)
	r.wait(32*time.Second, "down and up", in(engine.PhaseSettling))
	r.wait(60*time.Second, "verdict", in(engine.PhaseWaiting))
	s = r.loop.Snapshot()
	it := s.Iterations[0]
	if it.End != engine.IterationKept || it.Noticed != engine.AsRecommended || it.Delta.Direction != engine.Better || it.Predicted == nil {
		t.Errorf("%+v", it)
	}
	r.run(30 * time.Second)
	r.restart("--max-num-seqs 2", 30*time.Second)
	r.wait(92*time.Second, "worse", in(engine.PhaseWorse))
	s = r.loop.Snapshot()
	if s.Ask == "" || s.Iterations[1].Noticed != engine.SomethingElse {
		t.Errorf("ask %q, %+v", s.Ask, s.Iterations[1])
	}
	r.step(engine.Pressed{Command: engine.CommandRevert})
	if p := r.loop.Snapshot().Phase; p != engine.PhaseReverting {
		t.Errorf("phase %d after revert", p)
	}
	r.restart("--max-num-seqs 32", 30*time.Second)
	r.wait(92*time.Second, "back", in(engine.PhaseWaiting))
	if it := r.loop.Snapshot().Iterations[1]; it.End != engine.IterationReverted {
		t.Errorf("end %q", it.End)
	}
}

func waiting(r *rig) { r.t.Helper(); r.wait(2*time.Minute, "waiting", in(engine.PhaseWaiting)) }

func worse(t *testing.T, alter ...func(*engine.LoopPlan)) *rig {
	r := ready(t, "--max-num-seqs 32", alter...)
	r.restart("--max-num-seqs 2", 10*time.Second)
	r.wait(2*time.Minute, "worse", in(engine.PhaseWorse))
	return r
}

func TestContinueTakesWhatIsWorseAsTheBaseline(t *testing.T) {
	r := worse(t)
	r.press(engine.CommandContinue)
	s := r.loop.Snapshot()
	if s.Phase != engine.PhaseWaiting || s.Ask != "" || s.Baseline != r.last().After || s.Baseline == nil {
		t.Errorf("phase %d, ask %q", s.Phase, s.Ask)
	}
	if s.Advice == nil || s.Advice.Flag != "--max-num-seqs" || !strings.Contains(s.Advice.Launch, "--max-num-seqs "+s.Advice.To) {
		t.Errorf("advice %+v, quiet %q", s.Advice, s.Quiet)
	}
	r.expect(engine.SomethingElse, engine.IterationContinued, "--max-num-seqs 32 → 2")
}

func TestWorseWaitsForAnAnswer(t *testing.T) {
	r := worse(t)
	r.run(10 * time.Minute)
	if s := r.loop.Snapshot(); s.Phase != engine.PhaseWorse || s.Ask == "" || s.Live == nil {
		t.Errorf("phase %d, ask %q", s.Phase, s.Ask)
	}
	r.restart("--max-num-seqs 2", 10*time.Second)
	r.wait(time.Minute, "still asked", in(engine.PhaseWorse))
	r.restart("--max-num-seqs 32", 10*time.Second)
	waiting(r)
	r.expect(engine.SomethingElse, engine.IterationReverted, "2")
}

func TestAnotherChangeWhileWorseWaits(t *testing.T) {
	r := worse(t)
	r.restart("--max-num-seqs 16", 10*time.Second)
	r.run(12 * time.Second)
	if its := r.loop.Snapshot().Iterations; len(its) != 2 || its[0].End != engine.IterationNoGain || its[1].Before != its[0].Before {
		t.Fatalf("%d iterations, the first %q", len(its), its[0].End)
	}
}

func TestRevertIsWaitedForAndChecked(t *testing.T) {
	r := worse(t)
	before := r.loop.Snapshot().Baseline
	r.press(engine.CommandRevert)
	if p := r.loop.Snapshot().Progress.Text; !strings.Contains(p, "--max-num-seqs 32") {
		t.Errorf("it does not say what to type: %q", p)
	}
	r.restart("--max-num-seqs 2 --port 8001", 10*time.Second)
	r.run(15 * time.Second)
	if s := r.loop.Snapshot(); s.Phase != engine.PhaseReverting || !r.said("still in place") {
		t.Errorf("phase %d: the settings are not those of before", s.Phase)
	}
	r.restart("--max-num-seqs 32", 10*time.Second)
	waiting(r)
	s := r.loop.Snapshot()
	if s.Baseline != before || len(s.Iterations) != 1 {
		t.Errorf("a revert leaves the baseline unchanged; %d iterations", len(s.Iterations))
	}
	r.expect(engine.SomethingElse, engine.IterationReverted, "")
}

func TestSameSettingsAreNoise(t *testing.T) {
	r := ready(t, "--max-num-seqs 32")
	r.restart("--max-num-seqs 32", 10*time.Second)
	r.wait(2*time.Minute, "noise", func(s *engine.Snapshot) bool { return len(s.Noise) == 1 })
	r.expect(engine.SameSettings, engine.IterationNoise, "noise")
	if s := r.loop.Snapshot(); s.Phase != engine.PhaseWaiting || s.Ask != "" || s.Noise[0] > 0.05 || s.Noise[0] < -0.05 {
		t.Errorf("phase %d, noise %v", s.Phase, s.Noise)
	}
}

func TestSomethingElseIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, from, to, want string
		noticed              engine.Noticed
	}{
		{"another value", "--max-num-seqs 4", "--max-num-seqs 8", "--max-num-seqs 4 → 8 (recommended was --max-num-seqs 4 → 32)", engine.SomethingElse},
		{"and another flag", "--max-num-seqs 4", "--max-num-seqs 32 --block-size 32", "--block-size unset → 32, --max-num-seqs 4 → 32", engine.SomethingElse},
		{"a flag that no fact is made of", "--max-num-seqs 4", "--max-num-seqs 4 --scheduling-policy priority", "--scheduling-policy unset → priority", engine.SomethingElse},
		{"the port does not matter", "--max-num-seqs 4", "--max-num-seqs 32 --port 8001", "as recommended", engine.AsRecommended},
		{"another spelling", "--max-num-seqs 4", "--max_num_seqs=32", "as recommended", engine.AsRecommended},
		{"a switch", "--max-num-seqs 4", "--max-num-seqs 4 --enforce-eager", "--enforce-eager on", engine.SomethingElse},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ready(t, c.from)
			r.restart(c.to, 5*time.Second)
			r.wait(time.Minute, "settling", in(engine.PhaseSettling))
			r.expect(c.noticed, engine.IterationOpen, c.want)
			if got := r.last().Predicted != nil; got != (c.noticed == engine.AsRecommended) {
				t.Errorf("predicted = %v", got)
			}
		})
	}
}

func TestABrokenTrial(t *testing.T) {
	for _, c := range []struct {
		name, args string
		after      time.Duration // of the return of the server
		first      engine.IterationEnd
		count      int
		noticed    engine.Noticed
	}{
		{"died while settling, the same again", "--max-num-seqs 32", 3 * time.Second, engine.IterationBroken, 2, engine.AsRecommended},
		{"died while measured, the same again", "--max-num-seqs 32", 20 * time.Second, engine.IterationBroken, 2, engine.AsRecommended},
		{"changed while measured", "--max-num-seqs 16", 20 * time.Second, engine.IterationBroken, 2, engine.SomethingElse},
		{"put back while measured", "--max-num-seqs 4", 20 * time.Second, engine.IterationReverted, 1, engine.AsRecommended},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ready(t, "--max-num-seqs 4")
			r.restart("--max-num-seqs 32", 10*time.Second)
			r.run(11*time.Second + c.after)
			r.restart(c.args, 10*time.Second)
			waiting(r)
			its := r.loop.Snapshot().Iterations
			if len(its) != c.count || its[0].End != c.first || its[len(its)-1].Noticed != c.noticed {
				r.dump()
				t.Fatalf("%d iterations: %q, %q", len(its), its[0].End, its[len(its)-1].Noticed)
			}
			if c.count == 2 && (its[1].Before != its[0].Before || its[1].End != engine.IterationKept) {
				t.Errorf("the second is %q, judged against the old baseline: %v", its[1].End, its[1].Before == its[0].Before)
			}
		})
	}
}

func TestADeadServer(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.server.down = true
	r.run(time.Hour)
	s := r.loop.Snapshot()
	if s.Phase != engine.PhaseDown || s.Advice == nil || s.Sources[0].State != engine.SourceFailing || s.Sources[0].Failures < 10_000 {
		t.Errorf("phase %d, %+v", s.Phase, s.Sources[0])
	}
	if len(s.Journal) > 20 {
		t.Errorf("%d entries of one death", len(s.Journal))
	}
	r.step(engine.Pressed{Command: engine.CommandQuit})
	if r.done == nil || r.done.ExitCode != 3 {
		t.Errorf("finished %+v", r.done)
	}
}

func TestNoServerYet(t *testing.T) {
	r := newRig(t, "")
	r.server.down = true
	r.step(engine.Begin{})
	r.run(time.Minute)
	s := r.loop.Snapshot()
	if s.Phase != engine.PhaseAttach || s.AttachWhy != "connection refused" || len(s.Journal) != 1 {
		t.Errorf("phase %d, %q, %d entries", s.Phase, s.AttachWhy, len(s.Journal))
	}
	r.server.down = false
	r.wait(3*time.Second, "attached", in(engine.PhaseBaseline))
	if s := r.loop.Snapshot(); s.AttachWhy != "" {
		t.Errorf("%q", s.AttachWhy)
	}
}

func TestAnIdleServerIsNotJudged(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.clients = 0
	r.step(engine.Begin{})
	r.run(10 * time.Minute)
	s := r.loop.Snapshot()
	if s.Phase != engine.PhaseBaseline || s.Baseline != nil || !strings.Contains(s.Progress.Text, "load") || s.Quiet == "" || s.Advice != nil {
		t.Errorf("phase %d, %q, quiet %q", s.Phase, s.Progress.Text, s.Quiet)
	}
	r.server.clients = 32
	r.wait(25*time.Second, "baseline", in(engine.PhaseWaiting))
	b := r.loop.Snapshot().Baseline
	if got := b.Quantity("running_mean").Value.V; got < 3.5 {
		t.Errorf("running %.1f: idle windows are part of the baseline", got)
	}
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
			r.step(engine.Begin{})
			r.run(time.Second)
			return r
		}, 4},
		{"idle", func(t *testing.T) *rig {
			r := newRig(t, "")
			r.server.clients = 0
			r.step(engine.Begin{})
			r.run(time.Minute)
			return r
		}, 4},
		{"while the baseline is measured", func(t *testing.T) *rig {
			r := newRig(t, "--max-num-seqs 4")
			r.step(engine.Begin{})
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
		}, 3},
		{"settling", func(t *testing.T) *rig {
			r := ready(t, "--max-num-seqs 4")
			r.restart("--max-num-seqs 32", 5*time.Second)
			r.run(8 * time.Second)
			return r
		}, 0},
		{"measuring", func(t *testing.T) *rig {
			r := ready(t, "--max-num-seqs 4")
			r.restart("--max-num-seqs 32", 5*time.Second)
			r.run(25 * time.Second)
			return r
		}, 0},
		{"worse", func(t *testing.T) *rig { return worse(t) }, 0},
		{"reverting", func(t *testing.T) *rig { r := worse(t); r.press(engine.CommandRevert); return r }, 0},
		{"applying", func(t *testing.T) *rig {
			r := ready(t, "--max-num-seqs 4", withHands)
			r.press(engine.CommandApply)
			return r
		}, 0},
		{"paused", func(t *testing.T) *rig { r := ready(t, "--max-num-seqs 4"); r.press(engine.CommandPause); return r }, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.ready(t)
			r.press(engine.CommandQuit)
			if r.done == nil || r.done.ExitCode != c.code || r.done.Reason == "" {
				t.Errorf("finished %+v, want exit %d", r.done, c.code)
			}
			s := r.loop.Snapshot()
			if s.Phase != engine.PhaseDone || s.Finished == nil || s.Can[engine.CommandQuit].OK {
				t.Errorf("phase %d, finished %v", s.Phase, s.Finished)
			}
			if acts := r.loop.Step(r.now+time.Second, engine.Pressed{Command: engine.CommandQuit}); acts != nil {
				t.Errorf("%d actions after the end", len(acts))
			}
		})
	}
}

func TestGapsAreNoDeath(t *testing.T) {
	for _, polls := range []int{1, 2, 5, 40} {
		r := ready(t, "--max-num-seqs 4")
		r.run(time.Second)
		for range polls {
			r.server.down = true
			r.run(250 * time.Millisecond)
		}
		r.server.down = false
		r.run(3 * time.Second)
		s := r.loop.Snapshot()
		if s.Phase != engine.PhaseWaiting || len(s.Iterations) != 0 {
			t.Errorf("%d polls lost: phase %d, %d iterations", polls, s.Phase, len(s.Iterations))
		}
		r.run(time.Minute)
		if s := r.loop.Snapshot(); s.Baseline.Outcome != engine.OutcomeRecommendation {
			t.Errorf("%d polls lost: %s, %s", polls, s.Baseline.Outcome, s.Baseline.Doubt)
		}
	}
}

func TestARestartBetweenTwoPollsIsSeen(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.restart("--max-num-seqs 32", 0)
	waiting(r)
	r.wait(2*time.Minute, "verdict", func(s *engine.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	r.expect(engine.AsRecommended, engine.IterationKept, "as recommended")
}

func TestALaunchThatCannotBeRead(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.remote = true
	r.step(engine.Begin{})
	r.run(time.Minute)
	r.server.blocks = "15000"
	r.restart("--max-num-seqs 32", 5*time.Second)
	waiting(r)
	r.wait(2*time.Minute, "verdict", func(s *engine.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	r.expect(engine.Unreadable, engine.IterationKept, "cannot be read here, so what changed is not known: the page tells num_gpu_blocks 20000 → 15000")
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(8 * time.Second)
	r.expect(engine.Unreadable, engine.IterationOpen, "the page tells the same as before")
	r.server.blocks = "9999"
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(8 * time.Second)
	r.expect(engine.Unreadable, engine.IterationOpen, "num_gpu_blocks 15000 → 9999")
}

func TestLoadThatDoesNotComeBackIsWaitedFor(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.server.clients = 0
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(10 * time.Minute)
	s := r.loop.Snapshot()
	if s.Phase != engine.PhaseSettling || !strings.Contains(s.Progress.Text, "load") {
		t.Errorf("phase %d, %q", s.Phase, s.Progress.Text)
	}
	r.server.clients = 32
	r.wait(50*time.Second, "verdict", in(engine.PhaseWaiting))
	r.expect(engine.AsRecommended, engine.IterationKept, "")
}

func TestLoadThatChangedIsPointedOut(t *testing.T) {
	r := ready(t, "--max-num-seqs 64")
	r.server.clients, r.server.output = 16, 300
	r.restart("--max-num-seqs 128", 5*time.Second)
	r.wait(2*time.Minute, "verdict", func(s *engine.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	load := strings.Join(r.last().Load, "; ")
	for _, want := range []string{"outputs 100 tok → 300 tok", "requests in 32 → 16"} {
		if !strings.Contains(strings.ReplaceAll(load, "\u00a0", " "), want) {
			t.Errorf("load %q lacks %q", load, want)
		}
	}
}

func TestDrainingBeforeADeathIsNotTheBefore(t *testing.T) {
	r := ready(t, "--max-num-seqs 32")
	r.run(18 * time.Second)
	before := r.loop.Snapshot().Baseline.Quantity("generation_tokens_per_s").Value.V
	for r.server.clients > 0 {
		r.server.clients -= 2
		r.run(250 * time.Millisecond)
	}
	r.server.clients = 32
	r.restart("--max-num-seqs 64", 5*time.Second)
	r.wait(time.Minute, "settling", in(engine.PhaseSettling))
	if got := r.last().Before.Quantity("generation_tokens_per_s").Value.V; got < 0.95*before {
		t.Errorf("before is %.0f tok/s, was %.0f", got, before)
	}
}

func TestABaselineCutShort(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.step(engine.Begin{})
	r.run(16 * time.Second)
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.wait(2*time.Minute, "verdict", func(s *engine.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	r.expect(engine.AsRecommended, engine.IterationKept, "")

	r = newRig(t, "--max-num-seqs 4")
	r.step(engine.Begin{})
	r.run(6 * time.Second)
	r.restart("--max-num-seqs 32", 5*time.Second)
	waiting(r)
	if s := r.loop.Snapshot(); len(s.Iterations) != 0 || !r.said("measured anew") {
		t.Errorf("%d iterations: too little was measured for a comparison", len(s.Iterations))
	}
}

func TestSkip(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.press(engine.CommandSkip)
	s := r.loop.Snapshot()
	if s.Advice != nil && s.Advice.To == "32" || s.Advice == nil && !strings.Contains(s.Quiet, "skipped") {
		t.Errorf("advice %+v, quiet %q", s.Advice, s.Quiet)
	}
	r.run(2 * time.Minute)
	if s := r.loop.Snapshot(); s.Advice != nil && s.Advice.To == "32" {
		t.Error("what was skipped is back")
	}
}

func TestPause(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.step(engine.Begin{})
	r.run(10 * time.Second)
	r.press(engine.CommandPause)
	r.run(time.Minute)
	s := r.loop.Snapshot()
	if !s.Paused || s.Phase != engine.PhaseBaseline || s.Progress.Elapsed > 11*time.Second || s.Can[engine.CommandRemeasure].OK {
		t.Errorf("paused %v, phase %d, elapsed %s", s.Paused, s.Phase, s.Progress.Elapsed)
	}
	r.now += time.Hour
	r.press(engine.CommandPause)
	r.wait(25*time.Second, "baseline", in(engine.PhaseWaiting))
	for _, p := range r.loop.Snapshot().Points {
		if p.Tokens.OK && p.Tokens.V < 100 {
			t.Errorf("a window of %.1f tok/s: it reaches over the pause", p.Tokens.V)
		}
	}
}

func TestApplyRevertAndFold(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", withHands)
	r.press(engine.CommandApply)
	if r.apply == nil || len(r.apply.Changes) != 1 || r.apply.Changes[0] != (engine.Change{Flag: "--max-num-seqs", From: "4", To: "32"}) {
		t.Fatalf("apply %+v", r.apply)
	}
	waiting(r)
	r.expect(engine.AsRecommended, engine.IterationKept, "--max-num-seqs 4 → 32, applied by rooftop")
	r.restart("--max-num-seqs 2", 5*time.Second)
	r.wait(2*time.Minute, "worse", in(engine.PhaseWorse))
	r.press(engine.CommandRevert)
	if r.apply == nil || !r.apply.Revert || r.apply.Changes[0] != (engine.Change{Flag: "--max-num-seqs", From: "2", To: "32"}) {
		t.Fatalf("apply %+v", r.apply)
	}
	waiting(r)
	r.expect(engine.SomethingElse, engine.IterationReverted, "")
	// What gains nothing is left until the next change, which takes it back.
	r.restart("--max-num-seqs 32 --block-size 32", 5*time.Second)
	waiting(r)
	r.wait(2*time.Minute, "no gain", func(s *engine.Snapshot) bool {
		return len(s.Iterations) == 3 && s.Iterations[2].End == engine.IterationNoGain
	})
	s := r.loop.Snapshot()
	if strings.Contains(s.Kept, "block-size") || !strings.Contains(s.Launch, "block-size") || !s.Can[engine.CommandRevert].OK {
		t.Errorf("kept %q, runs %q, revert %+v", s.Kept, s.Launch, s.Can[engine.CommandRevert])
	}
	r.press(engine.CommandRevert)
	r.wait(2*time.Minute, "back", func(s *engine.Snapshot) bool { return s.Phase == engine.PhaseWaiting && s.Launch == s.Kept })
}

func TestAChangeThatDoesNotComeUp(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", withHands)
	r.fails = "the server refused: out of memory"
	r.press(engine.CommandApply)
	r.run(30 * time.Second)
	s := r.loop.Snapshot()
	if s.Phase != engine.PhaseDown || !s.Can[engine.CommandRevert].OK || !r.said("out of memory") {
		r.dump()
		t.Fatalf("phase %d, revert %+v", s.Phase, s.Can[engine.CommandRevert])
	}
	r.expect(engine.AsRecommended, engine.IterationBroken, "")
	r.fails = ""
	r.press(engine.CommandRevert)
	waiting(r)
	if s := r.loop.Snapshot(); s.Launch != s.Kept || s.Advice != nil && s.Advice.To == "32" {
		t.Errorf("runs %q, kept %q, advice %+v", s.Launch, s.Kept, s.Advice)
	}
}

func TestAuto(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4", auto)
	r.step(engine.Begin{})
	r.run(20 * time.Minute)
	if r.done == nil || r.done.ExitCode != 0 || !r.done.Gain.OK || r.done.Gain.V < 1 || !strings.Contains(r.done.Command, "--max-num-seqs 32") {
		r.dump()
		t.Errorf("finished %+v", r.done)
	}

	r = newRig(t, "--max-num-seqs 4", auto)
	r.server.clients = 0
	r.step(engine.Begin{})
	r.run(20 * time.Minute)
	if r.done == nil || r.done.ExitCode != 4 {
		t.Errorf("without load: finished %+v", r.done)
	}

	r = newRig(t, "--max-num-seqs 4", auto)
	r.fails = "refused"
	r.step(engine.Begin{})
	r.run(20 * time.Minute)
	if r.done == nil || r.done.ExitCode != 1 {
		t.Errorf("a change that cannot be made: finished %+v", r.done)
	}
}

func TestRemeasure(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	before := r.loop.Snapshot().Baseline
	r.press(engine.CommandRemeasure)
	if p := r.loop.Snapshot().Phase; p != engine.PhaseBaseline {
		t.Errorf("phase %d", p)
	}
	waiting(r)
	if r.loop.Snapshot().Baseline == before {
		t.Error("the baseline is the old one")
	}
	r = worse(t)
	r.press(engine.CommandRemeasure)
	if r.last().Delta != nil {
		t.Error("the verdict stands while it is measured again")
	}
	r.wait(time.Minute, "worse again", in(engine.PhaseWorse))
	if n := len(r.loop.Snapshot().Iterations); n != 1 {
		t.Errorf("%d iterations", n)
	}
}

func TestSeveralAPIServersAreNoRestart(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	own := r.server.started
	for i := range 200 {
		r.server.started = own + float64(i%3)
		r.run(250 * time.Millisecond)
	}
	if s := r.loop.Snapshot(); len(s.Iterations) != 0 || s.Phase != engine.PhaseWaiting && s.Phase != engine.PhaseDown {
		r.dump()
		t.Errorf("%d iterations, phase %d", len(s.Iterations), s.Phase)
	}
}

func TestARestartWhileTheFactsAreRead(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.attach = 5 * time.Second
	r.restart("--max-num-seqs 8", 0)
	r.run(2 * time.Second)
	r.restart("--max-num-seqs 32", 0)
	r.wait(2*time.Minute, "verdict", func(s *engine.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	r.expect(engine.AsRecommended, engine.IterationKept, "4 → 32")
}

func TestCountersThatAreResetAreNoRestart(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.started = 0 // the page does not tell it
	r.step(engine.Begin{})
	r.run(time.Minute)
	r.server.reset()
	r.run(time.Minute)
	if s := r.loop.Snapshot(); len(s.Iterations) != 0 || s.Phase != engine.PhaseWaiting || !r.said("counters on the page fell") {
		r.dump()
		t.Errorf("%d iterations, phase %d", len(s.Iterations), s.Phase)
	}
}

func TestSourcesTellHowTheyAre(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	state := func(i int) engine.SourceState { return r.loop.Snapshot().Sources[i] }
	if s := state(0); s.State != engine.SourceFresh || s.Interval != 250*time.Millisecond || s.Took == 0 {
		t.Errorf("%+v", s)
	}
	if s := state(1); s.State != engine.SourceAbsent || s.Why != "no GPU" {
		t.Errorf("%+v", s)
	}
	r.step(engine.Observed{Processes: []engine.Process{{PID: 1}}})
	if s := state(2); s.State != engine.SourceFresh {
		t.Errorf("%+v", s)
	}
	r.now += 10 * time.Second
	r.step(engine.Ticked{})
	if a, b := state(0), state(2); a.State != engine.SourceLate || b.State != engine.SourceLate {
		t.Errorf("%+v, %+v", a, b)
	}
	r.step(engine.Observed{Err: "no permission"})
	if s := state(2); s.State != engine.SourceFailing || s.Failures != 1 || s.Why != "no permission" {
		t.Errorf("%+v", s)
	}
}

func TestAServerThatTellsNothing(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.mute = true
	r.step(engine.Begin{})
	r.run(2 * time.Minute)
	s := r.loop.Snapshot()
	if s.Phase != engine.PhaseBaseline || !strings.Contains(s.Progress.Text, "running gauge") || !strings.Contains(s.Quiet, "running gauge") {
		t.Errorf("phase %d, %q, quiet %q", s.Phase, s.Progress.Text, s.Quiet)
	}
	r.press(engine.CommandQuit)
	if r.done.ExitCode != 4 {
		t.Errorf("finished %+v", r.done)
	}
}

func TestABurstyLoadIsMeasured(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	bursts := func(d time.Duration, end func(*engine.Snapshot) bool) bool {
		for at := time.Duration(0); at < d; at += 250 * time.Millisecond {
			r.server.clients = 0
			if at%(10*time.Second) < 4*time.Second {
				r.server.clients = 8
			}
			r.run(250 * time.Millisecond)
			if end(r.loop.Snapshot()) {
				return true
			}
		}
		return false
	}
	r.step(engine.Begin{})
	if !bursts(2*time.Minute, in(engine.PhaseWaiting)) {
		t.Fatalf("no baseline: %q", r.loop.Snapshot().Progress.Text)
	}
	r.restart("--max-num-seqs 8", 5*time.Second)
	if !bursts(2*time.Minute, func(s *engine.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil }) {
		r.dump()
		t.Fatalf("no verdict: %q", r.loop.Snapshot().Progress.Text)
	}
}

// TestWhatGainedNothingIsNotRecommendedAgain has seats that the model knows to be
// the limit, on a server that gains nothing by more of them.
func TestWhatGainedNothingIsNotRecommendedAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		alter func(*engine.LoopPlan)
	}{{"by hand", withHands}, {"by itself", auto}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "--max-num-seqs 4", c.alter)
			r.server.limit = 150
			r.step(engine.Begin{})
			waiting := func(s *engine.Snapshot) bool {
				return s.Phase == engine.PhaseWaiting || s.Phase == engine.PhaseApplying || s.Phase == engine.PhaseDone
			}
			r.wait(time.Minute, "baseline", waiting)
			if !r.loop.Snapshot().Firm {
				t.Fatal("no baseline")
			}
			if r.loop.Snapshot().Phase == engine.PhaseWaiting {
				r.press(engine.CommandApply)
			}
			r.run(3 * time.Minute)
			s := r.loop.Snapshot()
			if len(s.Iterations) != 1 {
				r.dump()
				t.Fatalf("%d iterations", len(s.Iterations))
			}
			if s.Advice != nil && s.Advice.To == "32" || s.Advice == nil && s.Quiet == "" {
				t.Errorf("advice %+v, quiet %q", s.Advice, s.Quiet)
			}
			want := engine.IterationNoGain
			if c.name == "by itself" {
				want = engine.IterationReverted
			}
			r.expect(engine.AsRecommended, want, "applied by rooftop")
			if c.name == "by itself" && (r.done == nil || r.done.ExitCode != 0 || s.Launch != s.Kept) {
				t.Errorf("finished %+v, runs %q, kept %q", r.done, s.Launch, s.Kept)
			}
		})
	}
}

func TestAnotherReleaseIsNoNoise(t *testing.T) {
	r := ready(t, "--max-num-seqs 32")
	r.server.version = "0.12.0"
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(8 * time.Second)
	r.expect(engine.SomethingElse, engine.IterationOpen, "vLLM 0.11.0 → 0.12.0")
}

// TestThePredictionIsToldBeforeTheChange follows a run as a script does.
func TestThePredictionIsToldBeforeTheChange(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(20 * time.Second)
	waiting(r)
	var kinds []string
	for _, e := range r.events {
		if e.Kind != engine.EventWindow {
			kinds = append(kinds, string(e.Kind))
		}
		if e.Kind == engine.EventRecommendation && e.Iteration == 1 && (e.Advice == nil || len(e.Advice.Predicted) == 0) {
			t.Error("the recommendation predicts nothing")
		}
	}
	want := "attached measured diagnosis recommendation server-down server-up settling measured diagnosis verdict kept recommendation"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

package loop_test

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

func TestSameSettingsAreNoise(t *testing.T) {
	r := ready(t, "--max-num-seqs 32")
	r.run(3 * time.Minute)
	r.restart("--max-num-seqs 32", 10*time.Second)
	r.wait(6*time.Minute, "noise", func(s *loop.Snapshot) bool { return len(s.Noise) == 1 })
	r.expect(loop.SameSettings, loop.IterationNoise, "noise")
	if s := r.loop.Snapshot(); s.Phase != loop.PhaseWaiting || s.Ask != "" || s.Noise[0] > 0.05 || s.Noise[0] < -0.05 {
		t.Errorf("phase %d, noise %v", s.Phase, s.Noise)
	}
}

func TestSomethingElseIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, from, to, want string
		noticed              loop.Noticed
	}{
		{"another value", "--max-num-seqs 4", "--max-num-seqs 8", "--max-num-seqs 4 → 8 (recommended: --max-num-seqs 4 → 32)", loop.SomethingElse},
		{"and another flag", "--max-num-seqs 4", "--max-num-seqs 32 --block-size 32", "--block-size unset → 32, --max-num-seqs 4 → 32", loop.SomethingElse},
		{"a flag that no fact depends on", "--max-num-seqs 4", "--max-num-seqs 4 --scheduling-policy priority", "--scheduling-policy unset → priority", loop.SomethingElse},
		{"the port does not matter", "--max-num-seqs 4", "--max-num-seqs 32 --port 8001", "as recommended", loop.AsRecommended},
		{"another spelling", "--max-num-seqs 4", "--max_num_seqs=32", "as recommended", loop.AsRecommended},
		{"a switch", "--max-num-seqs 4", "--max-num-seqs 4 --enforce-eager", "--enforce-eager on", loop.SomethingElse},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ready(t, c.from)
			r.restart(c.to, 5*time.Second)
			r.wait(time.Minute, "settling", in(loop.PhaseSettling))
			r.expect(c.noticed, loop.IterationOpen, c.want)
			if got := r.last().Predicted != nil; got != (c.noticed == loop.AsRecommended) {
				t.Errorf("predicted = %v", got)
			}
		})
	}
}

func TestABrokenTrial(t *testing.T) {
	for _, c := range []struct {
		name, args string
		after      time.Duration // time after the server's return
		first      loop.IterationEnd
		count      int
		noticed    loop.Noticed
	}{
		{"died while settling, the same again", "--max-num-seqs 32", 3 * time.Second, loop.IterationBroken, 2, loop.AsRecommended},
		{"died while measured, the same again", "--max-num-seqs 32", 20 * time.Second, loop.IterationBroken, 2, loop.AsRecommended},
		{"changed while measured", "--max-num-seqs 16", 20 * time.Second, loop.IterationBroken, 2, loop.SomethingElse},
		{"reverted while measured", "--max-num-seqs 4", 20 * time.Second, loop.IterationReverted, 1, loop.AsRecommended},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ready(t, "--max-num-seqs 4")
			r.restart("--max-num-seqs 32", 10*time.Second)
			r.run(11*time.Second + c.after)
			r.restart(c.args, 10*time.Second)
			waiting(r)
			its := r.loop.Snapshot().Iterations
			if len(its) != c.count || its[0].End != c.first || its[len(its)-1].Noticed != c.noticed {
				r.fatalf("%d iterations: %q, %q", len(its), its[0].End, its[len(its)-1].Noticed)
			}
			if c.count == 2 && (its[1].Before != its[0].Before || its[1].End != loop.IterationKept) {
				t.Errorf("the second is %q, judged against the old baseline: %v", its[1].End, its[1].Before == its[0].Before)
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
		if s.Phase != loop.PhaseWaiting || len(s.Iterations) != 0 {
			t.Errorf("%d polls lost: phase %d, %d iterations", polls, s.Phase, len(s.Iterations))
		}
		r.run(time.Minute)
		if s := r.loop.Snapshot(); s.Baseline.Outcome != engine.OutcomeRecommendation {
			t.Errorf("%d polls lost: %s, %s", polls, s.Baseline.Outcome, s.Baseline.Doubt)
		}
	}
}

func TestALaunchThatCannotBeRead(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.remote = true
	r.step(loop.Begin{})
	r.run(time.Minute)
	r.server.blocks = "15000"
	r.restart("--max-num-seqs 32", 5*time.Second)
	waiting(r)
	r.wait(2*time.Minute, "verdict", func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	r.expect(loop.Unreadable, loop.IterationKept, "cannot be read here, so the change is unknown: the metrics page shows num_gpu_blocks 20000 → 15000")
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(8 * time.Second)
	r.expect(loop.Unreadable, loop.IterationOpen, "the metrics page shows no difference")
	r.server.blocks = "9999"
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(8 * time.Second)
	r.expect(loop.Unreadable, loop.IterationOpen, "num_gpu_blocks 15000 → 9999")
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
	r.wait(time.Minute, "settling", in(loop.PhaseSettling))
	if got := r.last().Before.Quantity("generation_tokens_per_s").Value.V; got < 0.95*before {
		t.Errorf("before is %.0f tok/s, was %.0f", got, before)
	}
}

func TestABaselineCutShort(t *testing.T) {
	r := begun(t, "--max-num-seqs 4")
	r.run(16 * time.Second)
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.wait(2*time.Minute, "verdict", func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	r.expect(loop.AsRecommended, loop.IterationKept, "")

	r = begun(t, "--max-num-seqs 4")
	r.run(6 * time.Second)
	r.restart("--max-num-seqs 32", 5*time.Second)
	waiting(r)
	if s := r.loop.Snapshot(); len(s.Iterations) != 0 || !r.said("measuring it again") {
		t.Errorf("%d iterations: too little was measured for a comparison", len(s.Iterations))
	}
}

func TestSeveralAPIServersAreNoRestart(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	own := r.server.started
	for i := range 200 {
		r.server.started = own + float64(i%3)
		r.run(250 * time.Millisecond)
	}
	if s := r.loop.Snapshot(); len(s.Iterations) != 0 || s.Phase != loop.PhaseWaiting && s.Phase != loop.PhaseDown {
		r.errorf("%d iterations, phase %d", len(s.Iterations), s.Phase)
	}
}

func TestARestartWhileTheFactsAreRead(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.attach = 5 * time.Second
	r.restart("--max-num-seqs 8", 0)
	r.run(2 * time.Second)
	r.restart("--max-num-seqs 32", 0)
	r.wait(2*time.Minute, "verdict", func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
	r.expect(loop.AsRecommended, loop.IterationKept, "4 → 32")
}

func TestCountersThatAreResetAreNoRestart(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4")
	r.server.started = 0 // the page lacks it
	r.step(loop.Begin{})
	r.run(time.Minute)
	r.server.reset()
	r.run(time.Minute)
	if s := r.loop.Snapshot(); len(s.Iterations) != 0 || s.Phase != loop.PhaseWaiting || !r.said("the counters fell") {
		r.errorf("%d iterations, phase %d", len(s.Iterations), s.Phase)
	}
}

func TestAnotherReleaseIsNotNoise(t *testing.T) {
	r := ready(t, "--max-num-seqs 32")
	r.server.version = "0.12.0"
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(8 * time.Second)
	r.expect(loop.SomethingElse, loop.IterationOpen, "vLLM 0.11.0 → 0.12.0")
}

// TestOutageAsAWindowDecides has the server stop answering just before the window that ends a dry
// run or applies a change. The outage must not put a loop that has decided into PhaseDown.
func TestOutageAsAWindowDecides(t *testing.T) {
	for _, dry := range []bool{true, false} {
		decide := func(down time.Duration) (at time.Duration) {
			r := begun(t, "--max-num-seqs 16", auto, func(p *loop.Plan) { p.DryRun = dry })
			for r.done == nil && r.apply == nil && r.now < 5*time.Minute {
				r.server.down = r.now >= down
				r.run(engine.PollInterval)
			}
			if p := r.loop.Snapshot().Phase; r.done != nil && p != loop.PhaseDone || r.apply != nil && p != loop.PhaseApplying {
				t.Errorf("dry run %v: finished %v, applies %v, in phase %d", dry, r.done != nil, r.apply != nil, p)
			}
			return r.now
		}
		at := decide(time.Hour)
		if got := decide(at - 2*engine.PollInterval); got != at {
			t.Errorf("dry run %v: decided at %v, not %v: the window before does not count", dry, got, at)
		}
	}
}

// TestOutlierOfAnEarlierStart slows the server for one stretch before a change, and again after its
// revert. The windows of the first are gone by then, so it must not confirm the second.
func TestOutlierOfAnEarlierStart(t *testing.T) {
	r := ready(t, "--max-num-seqs 64")
	r.run(3 * time.Minute)
	r.server.limit = 200
	r.run(30 * time.Second)
	r.server.limit = 0
	r.restart("--max-num-seqs 64 --block-size 32", 5*time.Second)
	r.wait(8*time.Minute, "no gain", func(s *loop.Snapshot) bool {
		return len(s.Iterations) == 1 && s.Iterations[0].End == loop.IterationNoGain
	})
	r.restart("--max-num-seqs 64", 5*time.Second)
	r.wait(time.Minute, "settling", in(loop.PhaseSettling))
	r.wait(time.Minute, "waiting", in(loop.PhaseWaiting))
	tokens := func() float64 {
		return r.loop.Snapshot().Baseline.Quantity("generation_tokens_per_s").Value.Or(0)
	}
	before := tokens()
	r.server.limit = 200
	r.run(30 * time.Second)
	if got := tokens(); got != before {
		t.Errorf("one stretch made the baseline %.0f tok/s, it was %.0f", got, before)
	}
}

// TestWhatWasMeasuredBeforeARestart checks that a measurement taken before a server went away is reported as of then,
// and that no report calls the server well while it is away.
func TestWhatWasMeasuredBeforeARestart(t *testing.T) {
	for _, c := range []struct {
		name, args  string
		recommended bool
	}{
		{"all was well", "--max-num-seqs 32", false},
		{"a change was recommended", "--max-num-seqs 4", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := begun(t, c.args)
			r.run(19 * time.Second)
			r.restart(c.args, 5*time.Second)
			r.wait(time.Minute, "settling", in(loop.PhaseSettling))
			if !r.said("before the server went away") {
				r.errorf("what was measured is not reported")
			}
			var diagnosed, advised bool
			for _, e := range r.events {
				diagnosed = diagnosed || e.Kind == loop.EventDiagnosis
				advised = advised || e.Kind == loop.EventRecommendation
			}
			if diagnosed != c.recommended || advised != c.recommended {
				t.Errorf("diagnosis reported: %v, advice: %v; want %v", diagnosed, advised, c.recommended)
			}
		})
	}
}

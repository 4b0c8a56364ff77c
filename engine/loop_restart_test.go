package engine_test

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

func TestSameSettingsAreNoise(t *testing.T) {
	r := ready(t, "--max-num-seqs 32")
	r.run(3 * time.Minute)
	r.restart("--max-num-seqs 32", 10*time.Second)
	r.wait(6*time.Minute, "noise", func(s *engine.Snapshot) bool { return len(s.Noise) == 1 })
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

func TestAnotherReleaseIsNoNoise(t *testing.T) {
	r := ready(t, "--max-num-seqs 32")
	r.server.version = "0.12.0"
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.run(8 * time.Second)
	r.expect(engine.SomethingElse, engine.IterationOpen, "vLLM 0.11.0 → 0.12.0")
}

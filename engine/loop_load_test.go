package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// offer makes the load that of clients that come whatever the server does, as many
// as ask for this many output tokens a second.
func (r *rig) offer(tokens float64) { r.server.clients = tokens * 0.02 / (1 - 0.0002*tokens) }

// judged waits until the latest iteration has a verdict.
func (r *rig) judged(n int) engine.Iteration {
	r.t.Helper()
	r.wait(12*time.Minute, "verdict", func(s *engine.Snapshot) bool {
		return len(s.Iterations) == n && s.Iterations[n-1].Delta != nil && s.Iterations[n-1].End != engine.IterationOpen || s.Phase == engine.PhaseWorse
	})
	return r.last()
}

// TestTheLoadIsNotTheServer has an open load that drifts over a restart with a
// flag that changes nothing.
func TestTheLoadIsNotTheServer(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after float64 // output tokens per second that are asked for
		seats         string
		want          engine.Direction
	}{
		{"a fifth less", 400, 310, "256", engine.NotComparable},
		{"a third more", 400, 540, "256", engine.NotComparable},
		{"half of almost nothing", 10, 5, "256", engine.NotComparable},
		{"the same", 400, 401, "256", engine.Plateau},
		{"a queue that went away with the load", 2000, 150, "8", engine.NotComparable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "--max-num-seqs "+c.seats, quiet, func(p *engine.LoopPlan) { p.Precision = 0.05 })
			r.offer(c.before)
			r.step(engine.Begin{})
			r.wait(time.Minute, "baseline", in(engine.PhaseWaiting))
			r.run(5 * time.Minute)
			r.offer(c.after)
			r.restart("--max-num-seqs "+c.seats+" --block-size 32", 5*time.Second)
			it := r.judged(1)
			if it.Delta.Direction != c.want || r.loop.Snapshot().Phase == engine.PhaseWorse {
				r.dump()
				t.Errorf("%s (%s), want %s", it.Delta.Direction, it.Delta.Reason, c.want)
			}
			if c.want == engine.NotComparable && len(it.Load) == 0 {
				t.Error("it is not said what differs")
			}
		})
	}
}

// TestWhatIsNotComparableIsMeasuredAgain has clients that come back late.
func TestWhatIsNotComparableIsMeasuredAgain(t *testing.T) {
	r := ready(t, "--max-num-seqs 64", quiet)
	r.run(5 * time.Minute)
	r.server.clients = 12
	r.restart("--max-num-seqs 128", 5*time.Second)
	r.run(time.Minute)
	r.server.clients = 32
	it := r.judged(1)
	if it.Delta.Direction != engine.Plateau || !r.said("measured on: the load of before") {
		r.dump()
		t.Errorf("%s: %s", it.Delta.Direction, it.Delta.Reason)
	}
}

func TestNoiseIsOfTheSameLoad(t *testing.T) {
	r := newRig(t, "--max-num-seqs 256")
	r.offer(400)
	r.step(engine.Begin{})
	r.wait(time.Minute, "baseline", in(engine.PhaseWaiting))
	r.offer(250)
	r.restart("--max-num-seqs 256", 5*time.Second)
	r.wait(12*time.Minute, "noise", func(s *engine.Snapshot) bool {
		return len(s.Iterations) == 1 && s.Iterations[0].End == engine.IterationNoise
	})
	if s := r.loop.Snapshot(); len(s.Noise) != 0 || s.Phase != engine.PhaseWaiting {
		t.Errorf("noise %v: that is the load", s.Noise)
	}
}

// TestALoadThatStopsIsNotMeasured has the load stop in the middle of a measurement.
func TestALoadThatStopsIsNotMeasured(t *testing.T) {
	for _, gap := range []time.Duration{6 * time.Second, 15 * time.Second, time.Minute} {
		t.Run(gap.String(), func(t *testing.T) {
			r := ready(t, "--max-num-seqs 4")
			r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
			r.wait(time.Minute, "measuring", in(engine.PhaseMeasuring))
			r.run(10 * time.Second)
			r.server.clients = 0
			r.run(gap)
			r.server.clients = 32
			it := r.judged(1)
			if !it.Delta.Throughput.OK || math.Abs(it.Delta.Throughput.V) > 0.1 {
				t.Errorf("%s: %s", it.Delta.Direction, it.Delta.Reason)
			}
		})
	}
}

// TestAFrozenServerIsNoBaseline has an engine that hangs while its API server
// answers.
func TestAFrozenServerIsNoBaseline(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.server.frozen = true
	r.run(5 * time.Minute)
	s := r.loop.Snapshot()
	if got := s.Baseline.Quantity("generation_tokens_per_s").Value; got.Or(0) < 100 {
		t.Errorf("the baseline does %v tok/s", got)
	}
	r.server.frozen = false
	r.restart("--max-num-seqs 32", 5*time.Second)
	if it := r.judged(1); it.End != engine.IterationKept {
		t.Errorf("%q: %s", it.End, it.Delta.Reason)
	}
}

// TestNoVerdictOfANoisyLoad has an open load that wavers by the second and drifts by
// a fifth in minutes, on a server with room, and flags that change nothing.
func TestNoVerdictOfANoisyLoad(t *testing.T) {
	for seed := range 6 {
		r := newRig(t, "--max-num-seqs 256")
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		wander := func(d time.Duration, end func(*engine.Snapshot) bool) {
			for until := r.now + d; r.now < until && !end(r.loop.Snapshot()); {
				drift := 1 + 0.2*math.Sin(2*math.Pi*(r.now.Minutes()/5+float64(seed)/12))
				r.offer(600 * drift * (1 + 0.15*random.NormFloat64()))
				r.run(time.Second)
			}
		}
		r.step(engine.Begin{})
		wander(2*time.Minute, in(engine.PhaseWaiting))
		for i := range 4 {
			wander(40*time.Second, func(*engine.Snapshot) bool { return false })
			r.restart(fmt.Sprintf("--max-num-seqs 256 --block-size %d", 8<<(i%2)), 20*time.Second)
			wander(25*time.Second, func(*engine.Snapshot) bool { return false })
			wander(12*time.Minute, func(s *engine.Snapshot) bool { return s.Phase == engine.PhaseWaiting || s.Phase == engine.PhaseWorse })
			it := r.last()
			if it.Delta == nil || it.Delta.Direction == engine.Better || it.Delta.Direction == engine.Worse {
				r.dump()
				t.Fatalf("seed %d, change %d: %+v", seed, i+1, it.Delta)
			}
		}
	}
}

// TestASlowPage has pages that come every few seconds only.
func TestASlowPage(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 3 * time.Second, 8 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			r := newRig(t, "--max-num-seqs 4")
			r.every = every
			r.step(engine.Begin{})
			r.wait(5*time.Minute, "baseline", in(engine.PhaseWaiting))
			if s := r.loop.Snapshot(); s.Advice == nil {
				t.Fatalf("no advice: %s", s.Quiet)
			}
			r.restart("--max-num-seqs 32", 30*time.Second)
			r.run(40 * time.Second)
			r.wait(12*time.Minute, "verdict", func(s *engine.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
			r.expect(engine.AsRecommended, engine.IterationKept, "")
		})
	}
}

// TestARestartWhilePaused is found when reading goes on.
func TestARestartWhilePaused(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.press(engine.CommandPause)
	r.restart("--max-num-seqs 32", 30*time.Second)
	r.now += 3 * time.Hour
	r.press(engine.CommandPause)
	it := r.judged(1)
	if it.Noticed != engine.AsRecommended || it.End != engine.IterationKept {
		t.Errorf("%q, %q", it.Noticed, it.End)
	}
}

// TestNoVerdictOfAServerThatHangs has the engine stop in the middle of a measurement.
func TestNoVerdictOfAServerThatHangs(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.wait(time.Minute, "measuring", in(engine.PhaseMeasuring))
	r.run(12 * time.Second)
	r.server.frozen = true
	r.run(2 * time.Minute)
	if s := r.loop.Snapshot(); s.Phase != engine.PhaseMeasuring || !strings.Contains(s.Progress.Text, "nothing moves") {
		t.Errorf("phase %d, %q: %+v", s.Phase, s.Progress.Text, r.last().Delta)
	}
	r.server.frozen = false
	if it := r.judged(1); it.End != engine.IterationKept {
		t.Errorf("%q: %s", it.End, it.Delta.Reason)
	}
}

// TestWhatIsMeasuredBeforeItIsSteadySaysSo has clients that come for minutes, to a
// server that is full.
func TestWhatIsMeasuredBeforeItIsSteadySaysSo(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.server.clients = 24
	r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
	for i := 0; r.loop.Snapshot().Phase != engine.PhaseMeasuring && i < 60; i++ {
		r.server.clients *= 1.06
		r.run(time.Second)
		if p := r.loop.Snapshot().Progress; p.Of > 0 && p.Elapsed > p.Of {
			t.Errorf("%s of %s", p.Elapsed, p.Of)
		}
	}
	it := r.judged(1)
	if !slices.ContainsFunc(it.Load, func(s string) bool { return strings.Contains(s, "before the load was steady") }) {
		t.Errorf("load %q", it.Load)
	}
}

// TestTheGainIsNotTheLoads has a change that is kept, and a load that grows after it.
func TestTheGainIsNotTheLoads(t *testing.T) {
	r := newRig(t, "--max-num-seqs 256")
	r.server.clients, r.server.limit = 32, 500
	r.step(engine.Begin{})
	r.wait(time.Minute, "baseline", in(engine.PhaseWaiting))
	r.server.limit = 0
	r.restart("--max-num-seqs 256 --block-size 32", 5*time.Second)
	it := r.judged(1)
	if it.End != engine.IterationKept {
		t.Fatalf("%q: %s", it.End, it.Delta.Reason)
	}
	r.server.clients, r.server.limit = 128, 2100
	r.run(3 * time.Minute)
	r.press(engine.CommandQuit)
	if got, want := r.done.Gain.V, it.Delta.Verdict.Effect.Mid; math.Abs(got-want) > 1e-9 {
		t.Errorf("gain %v, want %v, that of the change: what came after it is the load's", got, want)
	}
}

// TestVerdictsSpellMinus looks for a hyphen where a minus belongs.
func TestVerdictsSpellMinus(t *testing.T) {
	r := worse(t)
	it := r.last()
	for _, text := range []string{it.Delta.Reason, it.Delta.ClassicReason, r.loop.Snapshot().Ask} {
		if strings.Contains(text, " -") {
			t.Errorf("%q", text)
		}
	}
}

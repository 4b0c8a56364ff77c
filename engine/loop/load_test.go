package loop_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// offer sets an open load that requests this many output tokens per second.
func (r *rig) offer(tokens float64) { r.server.clients = tokens * 0.02 / (1 - 0.0002*tokens) }

// judged runs until the latest iteration has a verdict.
func (r *rig) judged(n int) loop.Iteration {
	r.t.Helper()
	r.wait(12*time.Minute, "verdict", func(s *loop.Snapshot) bool {
		return len(s.Iterations) == n && s.Iterations[n-1].Delta != nil && s.Iterations[n-1].End != loop.IterationOpen || s.Phase == loop.PhaseWorse
	})
	return r.last()
}

// TestTheLoadIsNotTheServer has an open load that drifts during a restart with a flag without effect.
func TestTheLoadIsNotTheServer(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after float64 // requested output tokens per second
		slots         string
		want          verdict.Direction
	}{
		{"a fifth less", 400, 310, "256", verdict.NotComparable},
		{"a third more", 400, 540, "256", verdict.NotComparable},
		{"half of almost nothing", 10, 5, "256", verdict.NotComparable},
		{"the same", 400, 401, "256", verdict.Plateau},
		{"a queue that went away with the load", 2000, 150, "8", verdict.NotComparable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "--max-num-seqs "+c.slots, quiet, func(p *loop.Plan) { p.Precision = 0.05 })
			r.offer(c.before)
			r.step(loop.Begin{})
			r.wait(time.Minute, "baseline", in(loop.PhaseWaiting))
			r.run(5 * time.Minute)
			r.offer(c.after)
			r.restart("--max-num-seqs "+c.slots+" --block-size 32", 5*time.Second)
			it := r.judged(1)
			if it.Delta.Direction != c.want || r.loop.Snapshot().Phase == loop.PhaseWorse {
				r.errorf("%s (%s), want %s", it.Delta.Direction, it.Delta.Reason, c.want)
			}
			if c.want == verdict.NotComparable && len(it.Load) == 0 {
				t.Error("it is not said what differs")
			}
		})
	}
}

// TestWhatIsNotComparableIsMeasuredAgain has clients that return late.
func TestWhatIsNotComparableIsMeasuredAgain(t *testing.T) {
	r := ready(t, "--max-num-seqs 64", quiet)
	r.run(5 * time.Minute)
	r.server.clients = 12
	r.restart("--max-num-seqs 128", 5*time.Second)
	r.run(time.Minute)
	r.server.clients = 32
	it := r.judged(1)
	if it.Delta.Direction != verdict.Plateau || !r.said("continuing, needs the same load as before") {
		r.errorf("%s: %s", it.Delta.Direction, it.Delta.Reason)
	}
}

func TestNoiseIsOfTheSameLoad(t *testing.T) {
	r := newRig(t, "--max-num-seqs 256")
	r.offer(400)
	r.step(loop.Begin{})
	r.wait(time.Minute, "baseline", in(loop.PhaseWaiting))
	r.offer(250)
	r.restart("--max-num-seqs 256", 5*time.Second)
	r.wait(12*time.Minute, "noise", func(s *loop.Snapshot) bool {
		return len(s.Iterations) == 1 && s.Iterations[0].End == loop.IterationNoise
	})
	if s := r.loop.Snapshot(); len(s.Noise) != 0 || s.Phase != loop.PhaseWaiting {
		t.Errorf("noise %v: that is the load", s.Noise)
	}
}

// TestALoadThatStopsIsNotMeasured stops the load during a measurement.
func TestALoadThatStopsIsNotMeasured(t *testing.T) {
	for _, gap := range []time.Duration{6 * time.Second, 15 * time.Second, time.Minute} {
		t.Run(gap.String(), func(t *testing.T) {
			r := ready(t, "--max-num-seqs 4")
			r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
			r.wait(time.Minute, "measuring", in(loop.PhaseMeasuring))
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

// TestAFrozenServerIsNotABaseline has an engine that hangs while its API server answers.
func TestAFrozenServerIsNotABaseline(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.server.frozen = true
	r.run(5 * time.Minute)
	s := r.loop.Snapshot()
	if got := s.Baseline.Quantity("generation_tokens_per_s").Value; got.Or(0) < 100 {
		t.Errorf("the baseline does %v tok/s", got)
	}
	r.server.frozen = false
	r.restart("--max-num-seqs 32", 5*time.Second)
	if it := r.judged(1); it.End != loop.IterationKept {
		t.Errorf("%q: %s", it.End, it.Delta.Reason)
	}
}

// TestASlowPage has pages that take several seconds.
func TestASlowPage(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 3 * time.Second, 8 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			r := newRig(t, "--max-num-seqs 4")
			r.every = every
			r.step(loop.Begin{})
			r.wait(5*time.Minute, "baseline", in(loop.PhaseWaiting))
			if s := r.loop.Snapshot(); s.Advice == nil {
				t.Fatalf("no advice: %s", s.Quiet)
			}
			r.restart("--max-num-seqs 32", 30*time.Second)
			r.run(40 * time.Second)
			r.wait(12*time.Minute, "verdict", func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 && s.Iterations[0].Delta != nil })
			r.expect(loop.AsRecommended, loop.IterationKept, "")
		})
	}
}

// TestARestartWhilePaused checks that a restart is noticed when reading resumes.
func TestARestartWhilePaused(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.press(loop.CommandPause)
	r.restart("--max-num-seqs 32", 30*time.Second)
	r.now += 3 * time.Hour
	r.press(loop.CommandPause)
	it := r.judged(1)
	if it.Noticed != loop.AsRecommended || it.End != loop.IterationKept {
		t.Errorf("%q, %q", it.Noticed, it.End)
	}
}

// TestNoVerdictOfAServerThatHangs has the engine hang during a measurement.
func TestNoVerdictOfAServerThatHangs(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.restart("--max-num-seqs 32", 5*time.Second)
	r.wait(time.Minute, "measuring", in(loop.PhaseMeasuring))
	r.run(12 * time.Second)
	r.server.frozen = true
	r.run(2 * time.Minute)
	if s := r.loop.Snapshot(); s.Phase != loop.PhaseMeasuring || !strings.Contains(s.Progress.Text, "no tokens are generated") {
		t.Errorf("phase %d, %q: %+v", s.Phase, s.Progress.Text, r.last().Delta)
	}
	r.server.frozen = false
	if it := r.judged(1); it.End != loop.IterationKept {
		t.Errorf("%q: %s", it.End, it.Delta.Reason)
	}
}

// TestWhatIsMeasuredBeforeItIsSteadySaysSo has clients that arrive over minutes at a full server.
func TestWhatIsMeasuredBeforeItIsSteadySaysSo(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.server.clients = 24
	r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
	for i := 0; r.loop.Snapshot().Phase != loop.PhaseMeasuring && i < 60; i++ {
		r.server.clients *= 1.06
		r.run(time.Second)
		if p := r.loop.Snapshot().Progress; p.Total > 0 && p.Elapsed > p.Total {
			t.Errorf("%s of %s", p.Elapsed, p.Total)
		}
	}
	it := r.judged(1)
	if !slices.ContainsFunc(it.Load, func(s string) bool { return strings.Contains(s, "before the load was steady") }) {
		t.Errorf("load %q", it.Load)
	}
}

// TestTheGainIsNotTheLoads has a kept change and a load that grows afterwards.
func TestTheGainIsNotTheLoads(t *testing.T) {
	r := newRig(t, "--max-num-seqs 256")
	r.server.clients, r.server.limit = 32, 500
	r.step(loop.Begin{})
	r.wait(time.Minute, "baseline", in(loop.PhaseWaiting))
	r.server.limit = 0
	r.restart("--max-num-seqs 256 --block-size 32", 5*time.Second)
	it := r.judged(1)
	if it.End != loop.IterationKept {
		t.Fatalf("%q: %s", it.End, it.Delta.Reason)
	}
	r.server.clients, r.server.limit = 128, 2100
	r.run(3 * time.Minute)
	r.press(loop.CommandQuit)
	if got, want := r.done.Gain.V, it.Delta.Verdict.Effect.Mid; math.Abs(got-want) > 1e-9 {
		t.Errorf("gain %v, want %v, that of the change: what came after it is the load's", got, want)
	}
}

package loop_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// TestStartsThatDifferMuchAreNoise reverts a change, after which the kept configuration does a sixth less under the
// same clients: more than a change of the load may be taken for, but it is one.
func TestStartsThatDifferMuchAreNoise(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.run(3 * time.Minute)
	r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
	r.wait(10*time.Minute, "verdict", func(s *loop.Snapshot) bool {
		return len(s.Iterations) == 1 && s.Iterations[0].End == loop.IterationNoGain
	})
	r.server.slower = 0.2
	r.restart("--max-num-seqs 4", 5*time.Second)
	r.wait(8*time.Minute, "noise", func(s *loop.Snapshot) bool { return len(s.Noise) == 1 })
	if noise := r.loop.Snapshot().Noise[0]; math.Abs(noise+1.0/6) > 0.02 {
		t.Errorf("noise %v", noise)
	}
}

// TestOneStartIsOneRepeat measures a start three times.
func TestOneStartIsOneRepeat(t *testing.T) {
	r := ready(t, "--max-num-seqs 4")
	r.run(3 * time.Minute)
	r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
	ended := func(n int, as loop.IterationEnd) func(*loop.Snapshot) bool {
		return func(s *loop.Snapshot) bool {
			return len(s.Iterations) == n && s.Iterations[n-1].End == as && s.Phase == loop.PhaseWaiting
		}
	}
	r.wait(10*time.Minute, "verdict", ended(1, loop.IterationNoGain))
	r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
	for range 3 {
		r.wait(10*time.Minute, "noise", ended(2, loop.IterationNoise))
		if n := len(r.loop.Snapshot().Noise); n != 1 {
			t.Fatalf("%d repeats of one", n)
		}
		r.press(loop.CommandRemeasure)
	}
}

// TestRefusedChangeGetsNoVerdict has a change without a gain in place when the applier refuses the next one: what is
// measured again is what is in place.
func TestRefusedChangeGetsNoVerdict(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", withHands)
	r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
	first := func(s *loop.Snapshot) *loop.Iteration { return &s.Iterations[0] }
	r.wait(10*time.Minute, "verdict", func(s *loop.Snapshot) bool {
		return len(s.Iterations) == 1 && s.Phase == loop.PhaseWaiting && first(s).Delta != nil
	})
	r.refuses, r.spares = func(string) string { return "exit status 64" }, true
	r.press(loop.CommandApply)
	r.wait(time.Minute, "refusal", in(loop.PhaseWaiting))
	if !r.said("exit status 64") {
		t.Error("the refusal is not reported")
	}
	r.press(loop.CommandRemeasure)
	r.wait(10*time.Minute, "verdict again", func(s *loop.Snapshot) bool { return s.Phase == loop.PhaseWaiting })
	s := r.loop.Snapshot()
	if d := first(s).Delta; len(s.Iterations) != 1 || d == nil || d.Direction == verdict.Better {
		t.Errorf("%d iterations, the change in place: %+v", len(s.Iterations), d)
	}
	r.press(loop.CommandContinue)
	if s = r.loop.Snapshot(); first(s).End != loop.IterationContinued {
		t.Errorf("continued with %q", first(s).End)
	}
	r.refuses = nil
	r.restart("--max-num-seqs 32 --block-size 32", 5*time.Second)
	r.wait(time.Minute, "another", func(s *loop.Snapshot) bool { return len(s.Iterations) == 2 })
	if n := r.last().N; n != 3 {
		t.Errorf("the next change is number %d: 2 was the refused one", n)
	}
}

// TestRefusedRevertLeavesTheChange has an applier that refuses a revert before it touches anything.
func TestRefusedRevertLeavesTheChange(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", withHands)
	r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
	r.wait(10*time.Minute, "verdict", func(s *loop.Snapshot) bool {
		return len(s.Iterations) == 1 && s.Phase == loop.PhaseWaiting && s.Iterations[0].Delta != nil
	})
	r.refuses, r.spares = func(string) string { return "exit status 64" }, true
	r.press(loop.CommandRevert)
	r.wait(time.Minute, "refusal", in(loop.PhaseWaiting))
	s := r.loop.Snapshot()
	if it := r.last(); len(s.Iterations) != 1 || it.End != loop.IterationNoGain || !s.Can[loop.CommandRevert].OK {
		t.Errorf("%d iterations, %q; revert again: %q", len(s.Iterations), it.End, s.Can[loop.CommandRevert].Why)
	}
}

// TestShortBurstsEndAMeasurement has a load that comes in bursts too short to measure: the change is left without a
// verdict, and an automatic run ends if it is so from the beginning.
func TestShortBurstsEndAMeasurement(t *testing.T) {
	burst := func(r *rig, length time.Duration) {
		r.server.clients = 32
		r.run(length)
		r.server.clients = 0
		r.run(40*time.Second - length)
	}
	r := ready(t, "--max-num-seqs 4")
	r.restart("--max-num-seqs 4 --block-size 32", 5*time.Second)
	r.wait(time.Minute, "measuring", in(loop.PhaseMeasuring))
	for range 60 {
		burst(r, 3*time.Second)
	}
	if d := r.last().Delta; d == nil || d.Direction != verdict.NotComparable || !strings.Contains(d.Reason, "bursts") {
		t.Errorf("verdict %+v", d)
	}
	r = begun(t, "--max-num-seqs 4", auto)
	for range 60 {
		burst(r, time.Second)
	}
	if r.done == nil || r.done.ExitCode != 4 {
		t.Errorf("the run: %+v", r.done)
	}
}

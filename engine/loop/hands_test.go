package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestAChangeWithoutGainIsRevertedByHand(t *testing.T) {
	r := ready(t, "--max-num-seqs 64")
	r.run(3 * time.Minute)
	r.restart("--max-num-seqs 64 --block-size 32", 5*time.Second)
	if it := r.judged(1); it.End != loop.IterationNoGain {
		t.Fatalf("%q", it.End)
	}
	r.restart("--max-num-seqs 64 --block-size 32", 5*time.Second)
	r.wait(8*time.Minute, "noise", func(s *loop.Snapshot) bool { return len(s.Noise) == 1 })
	r.restart("--max-num-seqs 64", 5*time.Second)
	r.run(10 * time.Second)
	waiting(r)
	s := r.loop.Snapshot()
	if len(s.Iterations) != 2 || s.Iterations[0].End != loop.IterationReverted || s.Iterations[1].End != loop.IterationNoise {
		t.Errorf("%d iterations, the first %q", len(s.Iterations), s.Iterations[0].End)
	}
	if s.Kept != s.Launch || s.Can[loop.CommandRevert].OK {
		t.Errorf("runs %q, kept %q", s.Launch, s.Kept)
	}
}

// TestWhatRooftopAppliedIsNotYours has the server die after a change by rooftop, and come up again.
func TestWhatRooftopAppliedIsNotYours(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", withHands)
	r.press(loop.CommandApply)
	r.wait(time.Minute, "measuring", in(loop.PhaseMeasuring))
	if n := len(r.loop.Snapshot().Iterations); n != 1 {
		t.Fatalf("%d iterations", n)
	}
	r.start(5 * time.Second)
	r.run(12 * time.Second)
	its := r.loop.Snapshot().Iterations
	if len(its) != 2 || its[0].End != loop.IterationBroken || strings.Contains(its[1].Text, "you changed") || !strings.Contains(its[1].Text, "4 → 32") || its[1].Predicted == nil {
		t.Errorf("%d iterations: %+v", len(its), its[len(its)-1].Text)
	}
}

func TestAutoEndsWhenTheServerDoesNotReturn(t *testing.T) {
	for _, c := range []struct {
		name  string
		falls func(r *rig)
		code  int
	}{
		{"from the change", func(r *rig) { r.wait(time.Minute, "applying", in(loop.PhaseApplying)); r.dies = true }, 1},
		{"in the baseline", func(r *rig) { r.run(10 * time.Second); r.server.down = true }, 5},
		{"before the change", func(r *rig) { r.run(30 * time.Second); r.server.down = true }, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := begun(t, "--max-num-seqs 4", auto)
			c.falls(r)
			if f := r.ends(20 * time.Minute); f.ExitCode != c.code || f.Reason != "the server does not answer" {
				r.errorf("exit %d: %s, want %d", f.ExitCode, f.Reason, c.code)
			}
		})
	}
}

// TestAChangeThatWasMadeOtherwise has an applier that starts the server with other settings than
// requested.
func TestAChangeThatWasMadeOtherwise(t *testing.T) {
	r := ready(t, "--max-num-seqs 4", withHands)
	r.makes = "--max-num-seqs 16"
	r.press(loop.CommandApply)
	if it := r.judged(1); it.Noticed != loop.SomethingElse || it.Predicted != nil || !strings.Contains(it.Text, "4 → 16") {
		t.Errorf("%q: %s", it.Noticed, it.Text)
	}
}

// TestTheRevertFails has both the change and its revert fail to start; then the user starts the server
// with the old settings, or the old server answers again.
func TestTheRevertFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		heals func(*rig)
	}{
		{"started as before", func(r *rig) { r.restart("--max-num-seqs 4", 5*time.Second) }},
		{"it was never gone", func(r *rig) { r.server.down = false }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ready(t, "--max-num-seqs 4", withHands)
			r.fails = "no memory"
			r.press(loop.CommandApply)
			r.run(30 * time.Second)
			r.press(loop.CommandRevert)
			r.run(30 * time.Second)
			c.heals(r)
			r.run(10 * time.Second)
			if can := r.loop.Snapshot().Can[loop.CommandContinue]; can.OK {
				r.press(loop.CommandContinue)
			}
			waiting(r)
			if s := r.loop.Snapshot(); len(s.Iterations) != 1 || s.Iterations[0].End == loop.IterationOpen || s.Baseline == nil {
				t.Errorf("%d iterations, the first %q", len(s.Iterations), s.Iterations[0].End)
			}
		})
	}
}

// A remedy that removes a flag from the launch is applied like one that sets it.
func TestAutoLeavesAFlagOut(t *testing.T) {
	leaveOut := engine.Rule{ID: engine.ConcurrencySaturation, Code: "R5", Title: "few slots", Impact: 4, Once: func(r *engine.Run, f *engine.Finding) {
		if r.Facts.MaxNumSeqs.Source != engine.FromCmdline {
			return
		}
		gain := engine.Prediction{Metric: "generation_tokens_per_s", Unit: "ratio", Low: stat.Some(1), Mid: stat.Some(2), High: stat.Some(4)}
		f.State, f.Significant, f.Confidence = engine.Fired, true, 0.9
		f.Fix = &engine.Fix{Kind: engine.KindFlag, Flag: "--max-num-seqs", From: "4", Command: "leave it out", Predicted: []engine.Prediction{gain}}
	}}
	r := autoRun(t, func(p *loop.Plan) { p.Rules = []engine.Rule{leaveOut} })
	f := r.ends(30 * time.Minute)
	it := r.last()
	if f.ExitCode != 0 || it.End != loop.IterationKept || r.server.args != serve || it.Text != "--max-num-seqs 4 left out, applied by rooftop" {
		r.errorf("exit %d (%s), %q, %q runs: %s", f.ExitCode, f.Reason, it.End, r.server.args, it.Text)
	}
}

// TestAFailedRevertIsNotARevert interrupts a trial, and what stood there before cannot be restored.
func TestAFailedRevertIsNotARevert(t *testing.T) {
	r := autoRun(t)
	for r.loop.Snapshot().Phase != loop.PhaseMeasuring && r.now < 10*time.Minute {
		r.run(250 * time.Millisecond)
	}
	r.fails = "the cluster does not allow it"
	r.press(loop.CommandQuit)
	f, s := r.ends(10*time.Minute), r.loop.Snapshot()
	if it := s.Iterations[0]; f.ExitCode != 1 || it.End != loop.IterationBroken || !strings.Contains(it.Failure, "it was not reverted: the cluster does not allow it") {
		r.errorf("exit code %d, %q: %q", f.ExitCode, it.End, it.Failure)
	}
	if _, headline := (tuning.Run{Snapshot: s}).Headline(); !strings.HasPrefix(headline, "Not reverted: the server was left with --max-num-seqs") {
		t.Error(headline)
	}
}

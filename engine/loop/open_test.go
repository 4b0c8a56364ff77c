package loop_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// TestTheExitCodeOfWhatWasTried checks the exit code by the result of the recommended change: without a
// verdict it remains open, with one nothing is left to do.
func TestTheExitCodeOfWhatWasTried(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  float64 // of the throughput, tok/s; 4 slots make 192
		near   float64 // precision, 0 if starts may differ by more than it
		want   verdict.Direction
		code   int
		reason string
	}{
		{"noise hides it", 200, 0, verdict.Inconclusive, 3, "--max-num-seqs 4 → 32 is recommended but could not be judged, so it is not kept: output"},
		{"no gain", 192, 0.08, verdict.Plateau, 0, ""},
		{"worse", 150, 0.03, verdict.Worse, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "--max-num-seqs 4", auto, func(p *loop.Plan) {
				if c.near > 0 {
					quiet(p)
					p.Precision = c.near
				}
			})
			r.lives = func(args string) {
				r.server.limit = 0
				if !strings.HasSuffix(args, "seqs 4") {
					r.server.limit = c.limit
				}
			}
			r.step(loop.Begin{})
			f := r.ends(2 * time.Hour)
			r.atRest("--max-num-seqs 4")
			if d := r.loop.Snapshot().Iterations[0].Delta; d == nil || d.Direction != c.want {
				r.fatalf("the change is %+v", d.Direction)
			}
			if f.ExitCode != c.code || !strings.Contains(f.Reason, c.reason) || f.Gain.OK {
				r.errorf("exit %d: %s, gain %v, want %d with %q", f.ExitCode, f.Reason, f.Gain, c.code, c.reason)
			}
			if c.want == verdict.Worse {
				s := r.loop.Snapshot()
				if n := s.Noise; s.Iterations[0].End != loop.IterationReverted || len(n) == 0 || n[0] > 0.05 || n[0] < -0.05 {
					t.Errorf("%q, noise %v: the revert is a repeat", s.Iterations[0].End, n)
				}
				if slices.Contains(r.kinds(), loop.EventPaused) {
					t.Error("an automatic run asked what to do with what is worse")
				}
			}
		})
	}
}

// TestWhatWasWorseIsNotRecommendedAgain checks that a change that the user reverted is not offered once more.
func TestWhatWasWorseIsNotRecommendedAgain(t *testing.T) {
	for how, revert := range map[string]func(r *rig){
		"by rooftop": func(r *rig) { r.press(loop.CommandRevert) },
		"by hand":    func(r *rig) { r.restart("--max-num-seqs 4", 5*time.Second) },
	} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t, "--max-num-seqs 4", withHands, quiet, func(p *loop.Plan) { p.Precision = 0.03 })
			r.lives = func(args string) {
				r.server.limit = 0
				if !strings.HasSuffix(args, "seqs 4") {
					r.server.limit = 150
				}
			}
			r.step(loop.Begin{})
			waiting(r)
			tried := r.loop.Snapshot().Advice.Launch
			r.press(loop.CommandApply)
			r.wait(5*time.Minute, "worse", in(loop.PhaseWorse))
			revert(r)
			waiting(r)
			r.expect(loop.AsRecommended, loop.IterationReverted, "")
			r.run(time.Minute)
			if a := r.loop.Snapshot().Advice; a != nil && a.Launch == tried {
				r.errorf("%s is recommended again", tried)
			}
		})
	}
}

// TestTheEndFollowsTheLatestDiagnosis has a kept change after which there is nothing to recommend. While the
// run watches the change before it ends, more clients arrive at the same throughput.
func TestTheEndFollowsTheLatestDiagnosis(t *testing.T) {
	for _, c := range []struct {
		name   string
		unused float64 // slots, until the clients arrive
		quiet  string
	}{
		{"healthy before", 0, "no bottleneck was found"},
		{"not evaluable before", 16, "nothing can be judged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := autoRun(t)
			r.lives = func(args string) {
				r.server.limit, r.server.unused = 0, 0
				if strings.HasSuffix(args, "seqs 32") {
					r.server.limit, r.server.unused = 600, c.unused
				}
			}
			r.step(loop.Begin{})
			r.wait(5*time.Minute, "kept", func(s *loop.Snapshot) bool {
				return s.Phase == loop.PhaseWaiting && len(s.Iterations) == 1 && s.Iterations[0].End == loop.IterationKept
			})
			if s := r.loop.Snapshot(); s.Advice != nil || !strings.Contains(s.Quiet, c.quiet) || !strings.Contains(s.Progress.Text, "watching the kept change") {
				r.fatalf("advice %+v, quiet %q, %q", s.Advice, s.Quiet, s.Progress.Text)
			}
			r.server.unused, r.server.clients = 0, 128
			f := r.ends(time.Hour)
			r.atRest("--max-num-seqs 128")
			if its := r.loop.Snapshot().Iterations; len(its) != 2 || its[1].End != loop.IterationKept || f.ExitCode != 0 {
				r.errorf("%d iterations, exit %d: %s", len(its), f.ExitCode, f.Reason)
			}
		})
	}
}

// TestABaselineIsLongerThanABurst has a change that gains much less than predicted, on a server whose starts
// may differ: a baseline that lies in a burst of a neighbour would leave it unresolved.
func TestABaselineIsLongerThanABurst(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4", auto)
	r.lives = func(args string) { r.server.limit = 280 }
	r.step(loop.Begin{})
	f := r.ends(time.Hour)
	it := r.loop.Snapshot().Iterations[0]
	if it.End != loop.IterationKept || f.ExitCode != 0 {
		r.errorf("%q, exit %d: %s", it.End, f.ExitCode, f.Reason)
	}
	if it.At < verdict.LongestBurst {
		t.Errorf("changed after %v", it.At)
	}
}

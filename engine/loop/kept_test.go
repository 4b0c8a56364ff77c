package loop_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// applies returns the changes that the loop applied.
func (r *rig) applies() []loop.Apply {
	var out []loop.Apply
	for _, a := range r.acts {
		if a, ok := a.(loop.Apply); ok {
			out = append(out, a)
		}
	}
	return out
}

// doubling recommends twice the present slots.
var doubling = engine.Rule{ID: engine.ConcurrencySaturation, Code: "R5", Title: "few slots", Impact: 4, Once: func(r *engine.Run, f *engine.Finding) {
	n := r.Facts.MaxNumSeqs.Value
	gain := engine.Prediction{Metric: "generation_tokens_per_s", Unit: "ratio", Low: stat.Some(0.5), Mid: stat.Some(1), High: stat.Some(2)}
	f.State, f.Significant, f.Confidence = engine.Fired, true, 0.9
	f.Fix = &engine.Fix{Kind: engine.KindFlag, Flag: "--max-num-seqs", From: strconv.Itoa(n), To: strconv.Itoa(2 * n), Command: "more slots", Predicted: []engine.Prediction{gain}}
}}

// TestWhatWasKeptIsKnownWhereTheLaunchIsNot has a remote server whose slots the user gave. Once a change
// is kept, the next changes start from it.
func TestWhatWasKeptIsKnownWhereTheLaunchIsNot(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4", auto, quiet, func(p *loop.Plan) { p.Rules = []engine.Rule{doubling} })
	r.server.remote, r.server.given, r.server.clients, r.server.limit = true, 4, 64, 370 // which 8 slots reach
	r.step(loop.Begin{})
	r.ends(4 * time.Hour)
	r.atRest("--max-num-seqs 8")
	var got []string
	for _, a := range r.applies() {
		got = append(got, a.Changes[0].String())
	}
	want := []string{"--max-num-seqs 4 → 8", "--max-num-seqs 8 → 16", "--max-num-seqs 16 → 8"}
	if !slices.Equal(got, want) {
		r.errorf("made %q, want %q", got, want)
	}
	if f := r.loop.Snapshot().Facts.MaxNumSeqs; f.Value != 8 || f.Source != engine.FromDerived {
		t.Errorf("the slots are %+v, want those that were kept", f)
	}
}

// TestADefaultThatIsAssumedIsLeftOutAgain has a change from an assumed default of an unreadable launch.
// Its revert removes the flag.
func TestADefaultThatIsAssumedIsLeftOutAgain(t *testing.T) {
	budget := engine.Rule{ID: engine.TokenBudget, Code: "beyond", Title: "small steps", Impact: 4, Once: func(r *engine.Run, f *engine.Finding) {
		gain := engine.Prediction{Metric: "generation_tokens_per_s", Unit: "ratio", Low: stat.Some(1), Mid: stat.Some(2), High: stat.Some(4)}
		f.State, f.Significant, f.Confidence = engine.Fired, true, 0.9
		f.Fix = &engine.Fix{Kind: engine.KindFlag, Flag: "--max-num-batched-tokens", From: "8192", To: "16384", Command: "more", Predicted: []engine.Prediction{gain}}
	}}
	for _, remote := range []bool{true, false} {
		r := newRig(t, "--max-num-seqs 64", auto, quiet, func(p *loop.Plan) { p.Rules = []engine.Rule{budget} })
		r.server.remote, r.server.gpu = remote, "NVIDIA H100 80GB HBM3"
		r.step(loop.Begin{})
		r.wait(20*time.Minute, "applying", in(loop.PhaseApplying))
		want := "8192"
		if remote {
			want = ""
		}
		if c := r.applies()[0].Changes[0]; c.From != want || c.To != "16384" {
			t.Errorf("remote %v: %s", remote, c)
		}
	}
}

// Settings of this run take precedence over those given by the user and over defaults; those on the
// page take precedence over all.
func TestResolveTakesWhatWasMade(t *testing.T) {
	made := []engine.Change{
		{Flag: "--max-num-seqs", From: "16", To: "64"}, {Flag: "--max-num-batched-tokens", To: "4096"}, {Flag: "--enforce-eager", From: "on"},
		{Flag: "--gpu-memory-utilization", From: "0.8", To: "0.9"}, {Flag: "--num-gpu-blocks-override", From: "64"}, {Flag: "--kv-cache-dtype", To: "fp8"},
	}
	in := facts.Inputs{Flags: facts.Given{MaxNumSeqs: 16, GPU: "NVIDIA H100 80GB HBM3"}, Server: facts.ServerAnswers{Version: "0.11.0"}, Made: made}
	f := facts.Resolve(in)
	if f.MaxNumSeqs.Value != 64 || f.MaxNumBatchedTokens.Value != 4096 || f.EnforceEager.Value || f.GPUMemoryUtilization.Value != 0.9 ||
		f.NumGPUBlocksOverride.Known || f.KVCacheDType.Value != "fp8" || len(f.Conflicts) != 0 {
		t.Errorf("%+v %+v %+v %+v %+v %+v, conflicts %q", f.MaxNumSeqs, f.MaxNumBatchedTokens, f.EnforceEager, f.GPUMemoryUtilization, f.NumGPUBlocksOverride, f.KVCacheDType, f.Conflicts)
	}
	in.Page = &engine.Page{Ranks: []engine.Rank{{Name: "0", Cache: engine.CacheConfig{GPUMemoryUtilization: "0.85"}}}}
	if f := facts.Resolve(in); f.GPUMemoryUtilization.Value != 0.85 {
		t.Errorf("%+v: want the value on the page", f.GPUMemoryUtilization)
	}
	in.Launch = map[string]facts.Setting{"max_num_seqs": {Value: "32", Source: engine.FromCmdline}}
	if f := facts.Resolve(in); f.MaxNumSeqs.Value != 16 {
		t.Errorf("%+v: want the user's value for a known launch", f.MaxNumSeqs)
	}
}

// TestKeptChangeThatExitsIsGivenUp has a supervisor that starts the server again each time it exits: soon after
// the change is kept, and time and again with the configuration of the beginning.
func TestKeptChangeThatExitsIsGivenUp(t *testing.T) {
	r := begun(t, "--max-num-seqs 4", auto, quiet)
	r.wait(20*time.Minute, "kept", func(s *loop.Snapshot) bool {
		return len(s.Iterations) > 0 && s.Iterations[0].End == loop.IterationKept
	})
	r.start(5 * time.Second)
	r.ends(2 * time.Hour)
	r.atRest("--max-num-seqs 4")
	if it := r.loop.Snapshot().Iterations[0]; it.End != loop.IterationBroken || !strings.Contains(it.Failure, "something other than rooftop started it again") {
		t.Errorf("the change ended %q: %s", it.End, it.Failure)
	}

	for _, c := range []struct {
		name   string
		remote bool
		first  time.Duration // until it exits first
	}{{"before the baseline", false, 10 * time.Second}, {"while a change is measured", false, time.Minute}, {"its launch is unreadable", true, time.Minute}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "--max-num-seqs 4", auto)
			r.server.remote, r.server.given = c.remote, 4
			r.step(loop.Begin{})
			r.run(c.first)
			for range 10 {
				r.start(5 * time.Second)
				r.run(20 * time.Second)
			}
			if r.done == nil || r.done.ExitCode == 0 {
				r.fatalf("the run: %+v", r.done)
			}
			r.atRest("--max-num-seqs 4")
		})
	}
}

// TestLostChangeIsTheKeptOne has a server that exits for good some time after it was restarted once with its kept change.
func TestLostChangeIsTheKeptOne(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4", auto, quiet, func(p *loop.Plan) { p.Rules, p.Stable = []engine.Rule{doubling}, time.Second })
	r.server.clients = 64
	r.step(loop.Begin{})
	r.wait(20*time.Minute, "kept", func(s *loop.Snapshot) bool {
		return len(s.Iterations) > 0 && s.Iterations[0].End == loop.IterationKept
	})
	r.press(loop.CommandHold)
	r.run(2 * time.Minute)
	r.start(5 * time.Second)
	r.wait(10*time.Minute, "noise", func(s *loop.Snapshot) bool {
		return len(s.Iterations) == 2 && s.Iterations[1].End == loop.IterationNoise
	})
	r.server.down = true
	r.run(10 * time.Second)
	r.press(loop.CommandHold)
	r.wait(5*time.Minute, "going back", in(loop.PhaseApplying))
	if first := r.loop.Snapshot().Iterations[0]; first.End != loop.IterationBroken {
		r.errorf("the change that was lost ended %q", first.End)
	}
}

// TestRevertThatTheServerDoesNotShow has an applier that starts something else than the kept configuration.
func TestRevertThatTheServerDoesNotShow(t *testing.T) {
	r := newRig(t, "--max-num-seqs 4", auto, quiet)
	r.server.limit = 150
	r.step(loop.Begin{})
	r.wait(20*time.Minute, "measuring", in(loop.PhaseMeasuring))
	r.makes = "--max-num-seqs 16"
	r.ends(2 * time.Hour)
	if r.done.ExitCode != 1 || !strings.Contains(r.done.Reason, "--max-num-seqs 4 → 16 is in place") {
		t.Errorf("the run: %+v", r.done)
	}
}

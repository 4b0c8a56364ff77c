package loop

import (
	"slices"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// TestHistory checks the trials read from iterations: without those that were cut short, and with the
// permanent changes since.
func TestHistory(t *testing.T) {
	d := &engine.Diagnosis{}
	judged := func(dir verdict.Direction) *effect.Delta {
		return &effect.Delta{Direction: dir, Throughput: stat.Some(0)}
	}
	list := []Iteration{
		{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "8", To: "64"}}, End: IterationNoGain, Delta: judged(verdict.Plateau), Before: d, After: d},
		{Changes: []engine.Change{{Flag: "--gpu-memory-utilization", From: "0.5", To: "0.9"}}, End: IterationKept, Delta: judged(verdict.Better), Before: d, After: d},
		{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "8", To: "8"}}, Noticed: SameSettings, End: IterationNoise, Delta: judged(verdict.Plateau)},
		{Changes: []engine.Change{{Flag: "--block-size", From: "16", To: "32"}}, End: IterationBroken, Failure: "refused"},
		{Changes: []engine.Change{{Flag: "--block-size", From: "16", To: "64"}}, End: IterationBroken},
	}
	trials := (&history{iterations: list}).pastTrials()
	if len(trials) != 3 || trials[0].Ending != search.Lost || trials[1].Ending != search.Gained || trials[2].Ending != search.Failed {
		t.Fatalf("%+v", trials)
	}
	if !slices.Equal(trials[0].Since, []string{"--gpu-memory-utilization"}) || len(trials[2].Since) > 0 {
		t.Errorf("changed for good since: %v, %v", trials[0].Since, trials[2].Since)
	}
}

// TestATriedSetOfChangesIsRemembered has a change of two flags that was measured without a verdict. The set
// is passed over while it runs, in any order, but neither flag alone.
func TestATriedSetOfChangesIsRemembered(t *testing.T) {
	slots := engine.Change{Flag: "--max-num-seqs", From: "4", To: "32"}
	pool := engine.Change{Flag: "--gpu-memory-utilization", From: "0.5", To: "0.92"}
	s := &shared{}
	s.iterations = []Iteration{{Changes: []engine.Change{pool, slots}, Delta: &effect.Delta{Direction: verdict.Inconclusive}}}
	a := &advisor{shared: s}
	a.rememberTried()
	for _, c := range []struct {
		first engine.Change
		also  []engine.Change
		want  bool
	}{{slots, []engine.Change{pool}, true}, {pool, []engine.Change{slots}, true}, {slots, nil, false}, {pool, nil, false}} {
		fix := engine.Fix{Kind: engine.KindFlag, Flag: c.first.Flag, From: c.first.From, To: c.first.To, Also: c.also}
		if got := a.passedOver(search.Key(engine.SearchStep, &fix), nil, false); got != c.want {
			t.Errorf("%v passed over: %v", fix.Changes(), got)
		}
	}
	a.forget()
	if len(a.tried) > 0 {
		t.Error("a change without a verdict is passed over although it no longer runs")
	}
}

// TestASearchStepNamesTheFindingsBehindIt has the search set flags for which rules gave other values.
func TestASearchStepNamesTheFindingsBehindIt(t *testing.T) {
	step := engine.Fix{Flag: "--num-gpu-blocks-override", Also: []engine.Change{{Flag: "--max-num-seqs"}}}
	pool := engine.Finding{Title: "KV cache pressure", State: engine.Fired, Significant: true, Fix: &engine.Fix{Flag: "--num-gpu-blocks-override"}}
	slots := engine.Finding{Title: "Concurrency saturation", State: engine.Fired, Significant: true, Fix: &engine.Fix{Flag: "--max-num-seqs"}}
	seen := engine.Finding{Title: "Token budget", State: engine.Fired, Fix: &engine.Fix{Flag: "--max-num-seqs"}}
	other := engine.Finding{Title: "Front end", State: engine.Fired, Significant: true, Fix: &engine.Fix{Flag: "--api-server-count"}}
	for _, c := range []struct {
		findings []engine.Finding
		want     string
	}{
		{[]engine.Finding{pool, slots, seen, other}, "Proposed by the search for KV cache pressure and Concurrency saturation."},
		{[]engine.Finding{seen, other}, "Proposed by the search; no rule found it."},
	} {
		if got := proposedBySearch(&engine.Diagnosis{Findings: c.findings}, &step); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

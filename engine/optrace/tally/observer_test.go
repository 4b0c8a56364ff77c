package tally

import (
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// decoded adds decode graphs to a tally, with 209 operators on two threads.
func decoded(t *Tally, count int, took func(i int) time.Duration) {
	for i := range count {
		t.Graph(&optrace.Graph{Call: -1, Phase: optrace.PhaseDecode, Nodes: 209, Begin: time.Second, End: time.Second + took(i), Threads: []optrace.Thread{{TID: 1}, {TID: 2}}})
	}
}

// before returns an estimate from three graphs that other programs delayed.
func before() optrace.Observer {
	return optrace.Expect(optrace.Expectation{Detail: optrace.LevelSched, Nodes: 209, GraphTime: 1010 * time.Millisecond, Sites: sites(true), Graphs: 3, From: optrace.ExpectedBefore})
}

// An estimate from three graphs of a second is replaced when the trace has 200 of 7.5 ms: the
// cost is that of the trace's own graphs.
func TestExpectedCostIsOfTheTraceItself(t *testing.T) {
	tally := New(&optrace.Tables{})
	decoded(tally, 200, func(i int) time.Duration {
		if i%3 == 0 {
			return 400 * time.Millisecond // others had the CPU
		}
		return 7540 * time.Microsecond
	})
	observer := before()
	observer.Limit, observer.Measured, observer.MeasuredLow, observer.Windows = 0.01, 0.03, 0.02, 7
	few := New(&optrace.Tables{})
	decoded(few, 19, func(int) time.Duration { return 7 * time.Millisecond })
	if o := few.Summary(Settings{Target: optrace.Target{Sites: sites(true)}, Observer: before(), Detail: optrace.LevelSched}).Observer; o.From != optrace.ExpectedBefore {
		t.Errorf("19 graphs: %+v", o)
	}
	if observer.Expected > 0.001 {
		t.Fatalf("%v was estimated before", observer.Expected)
	}
	s := tally.Summary(Settings{Target: optrace.Target{Sites: sites(true)}, Observer: observer, Detail: optrace.LevelSched})
	o := s.Observer
	p50 := s.Phases[0].Graph.P50
	if want := float64(o.Delay()) / float64(p50); math.Abs(o.Expected-want) > 1e-4 || o.Expected < 0.025 || o.Expected > 0.06 {
		t.Errorf("%v of the speed, and %v of %v is %v", o.Expected, o.Delay(), p50, want)
	}
	if mean := s.Phases[0].Graph.Mean; o.MeanGraph != mean || o.ShareOfMean().OK {
		t.Errorf("the mean graph takes %v, reported is %v, its share %v", mean, o.MeanGraph, o.ShareOfMean())
	}
	if o.From != optrace.ExpectedTrace || o.Graphs != 200 || o.Threads != 2 || o.HitsPerToken != 5+2*209 || o.Basis() != "the middle one of 200 decode graphs of the trace" {
		t.Errorf("%+v, by %s", o, o.Basis())
	}
	if o.Windows != 7 || o.Measured != 0.03 || !o.Over() {
		t.Errorf("what was measured is %+v", o)
	}
	o.Limit = 3.0 / 100
	if o.Windows = 0; o.OverLimit() != "more than --max-overhead 3" {
		t.Error("it is not reported as above the limit")
	}
	if share := o.ShareOfMean(); !share.OK || share.V > 0.003 {
		t.Errorf("the probes take %v of a mean graph that others hold up", share)
	}
	if o.MeanGraph = p50; o.ShareOfMean().OK {
		t.Error("a mean graph that equals the median one is distinguished from it")
	}
}

func TestBasis(t *testing.T) {
	for want, o := range map[string]optrace.Observer{
		"": {}, "the only decode graph before the trace": {Graphs: 1, From: optrace.ExpectedBefore},
		"the fastest of only 3 decode graphs before the trace":                                      {Graphs: 3, From: optrace.ExpectedBefore},
		"the middle one of 60 decode graphs before the trace":                                       {Graphs: 60, From: optrace.ExpectedBefore},
		"the fastest of only 19 graphs of other work before the trace, as no token was decoded yet": {Graphs: 19, From: optrace.ExpectedOther},
		"the middle one of 60 graphs before the trace, of unknown phase":                            {Graphs: 60, From: optrace.ExpectedUnknown},
		"the only graph before the trace, of other work, as no token was decoded yet":               {Graphs: 1, From: optrace.ExpectedOther},
	} {
		if got := o.Basis(); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}

package tally

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// decoded adds decode graphs at a level to a tally, with 209 operators on two threads.
func decoded(t *Tally, d optrace.Detail, count int, took func(i int) time.Duration) {
	for i := range count {
		t.Graph(&optrace.Graph{Call: -1, Phase: optrace.PhaseDecode, Detail: d, Nodes: 209, Begin: time.Second, End: time.Second + took(i), Threads: []optrace.Thread{{TID: 1}, {TID: 2}}})
	}
}

func steadily(took time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return took }
}

// before returns an estimate from three graphs that other programs delayed.
func before() optrace.Observer {
	return optrace.Expect(optrace.Expectation{Detail: optrace.LevelSched, Nodes: 209, GraphTime: 1010 * time.Millisecond, Sites: sites(true), Graphs: 3, From: optrace.ExpectedBefore})
}

// An estimate from three graphs of a second is replaced when the trace has 200 of 7.5 ms: the
// cost is that of the trace's own graphs.
func TestExpectedCostIsOfTheTraceItself(t *testing.T) {
	tally := New(&optrace.Tables{})
	decoded(tally, optrace.LevelSched, 200, func(i int) time.Duration {
		if i%3 == 0 {
			return 400 * time.Millisecond // others had the CPU
		}
		return 7540 * time.Microsecond
	})
	observer := before()
	observer.Limit, observer.Measured, observer.MeasuredLow, observer.Windows = 0.01, 0.03, 0.02, 7
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

// With fewer than 20 graphs the earlier estimate is kept.
func TestExpectedCostOfAFewGraphsStays(t *testing.T) {
	for name, of := range map[string]struct {
		graphs int
		detail optrace.Detail
		sites  []optrace.Site
	}{
		"19 graphs":         {19, optrace.LevelSched, sites(true)},
		"no level is known": {200, 0, sites(true)},
		"no site is known":  {200, optrace.LevelSched, nil},
	} {
		tally := New(&optrace.Tables{})
		decoded(tally, of.detail, of.graphs, steadily(7*time.Millisecond))
		o := tally.Summary(Settings{Target: optrace.Target{Sites: of.sites}, Observer: before(), Detail: optrace.LevelSched}).Observer
		if o.Reader = stat.None; o != before() {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// The correction by a measurement applies to the trace's own graphs too.
func TestExpectedCostKeepsItsCorrection(t *testing.T) {
	cost := func(times float64) optrace.Observer {
		tally := New(&optrace.Tables{})
		decoded(tally, optrace.LevelSched, 50, steadily(7*time.Millisecond))
		observer := before()
		observer.Times = times
		return tally.Summary(Settings{Target: optrace.Target{Sites: sites(true)}, Observer: observer}).Observer
	}
	if once, thrice := cost(0), cost(3); thrice.Times != 3 || thrice.Expected < 2.5*once.Expected {
		t.Errorf("three times %v is %v", once.Expected, thrice.Expected)
	}
}

// The level of a trace, and its cost, is that of most of its graphs, whatever is recorded at
// its end.
func TestTraceWhoseLevelWasChanged(t *testing.T) {
	tally := New(&optrace.Tables{})
	decoded(tally, optrace.LevelSched, 1200, steadily(8*time.Millisecond))
	idle := tally.Summary(Settings{Target: optrace.Target{Sites: sites(true)}, Detail: optrace.LevelBarriers})
	if c := idle.Coverage; c.Detail != optrace.LevelSched.String() || len(c.Levels) != 1 || len(idle.Gaps) != 1 /* calls */ {
		t.Errorf("changed while nothing was computed: %+v, %v", c, idle.Gaps)
	}
	decoded(tally, optrace.LevelBarriers, 30, steadily(9*time.Millisecond))
	s := tally.Summary(Settings{Target: optrace.Target{Sites: sites(true)}, Detail: optrace.LevelBarriers})
	want := []optrace.LevelRow{{Detail: "sched", Graphs: 1200, Decode: 1200, Time: 9600 * time.Millisecond}, {Detail: "barriers", Graphs: 30, Decode: 30, Time: 270 * time.Millisecond}}
	if c := s.Coverage; c.Detail != "sched" || len(c.Levels) != 2 || c.Levels[0] != want[0] || c.Levels[1] != want[1] {
		t.Errorf("%+v", c)
	}
	if s.Observer.HitsPerToken != idle.Observer.HitsPerToken || s.Observer.Graphs != 1200 {
		t.Errorf("the cost is that of %+v", s.Observer)
	}
	if last := s.Gaps[len(s.Gaps)-1].Why; !strings.Contains(strings.ReplaceAll(last, figure.NBSP, " "), "sched for 1,200 graphs (9.60 s), barriers for 30 graphs (270 ms)") {
		t.Errorf("it says %q", last)
	}
	if got := New(&optrace.Tables{}).Level(optrace.LevelGraph); got != optrace.LevelGraph {
		t.Errorf("without a graph the level is %v", got)
	}
}

// Nodes that were not seen are those of the graph's DAG; a fused norm and product count once.
func TestExpectationOfGraphsAlone(t *testing.T) {
	tables := &optrace.Tables{
		Operators: []optrace.Operator{{Op: "RMS_NORM"}, {Op: "MUL"}, {Op: "ADD"}, {Op: "VIEW"}},
		DAGs:      []optrace.DAG{{Nodes: []optrace.Node{{Addr: 1, Operator: 1}, {Addr: 2, Operator: 2, Sources: []uint64{1}}, {Addr: 3, Operator: 3}, {Addr: 4, Operator: 4}}}},
	}
	tally := New(tables)
	for range 20 {
		tally.Graph(&optrace.Graph{Call: -1, Phase: optrace.PhaseDecode, Detail: optrace.LevelGraph, DAG: 1, Nodes: 4, End: time.Millisecond})
	}
	if in, ok := tally.Expectation(sites(true), 0); !ok || in.Nodes != 2 || in.Threads != 0 || in.GraphTime >= time.Millisecond {
		t.Errorf("%+v, %v", in, ok)
	}
	if in, ok := tally.Expectation(sites(true)[:1], 0); !ok || in.Nodes != 3 {
		t.Errorf("nothing is fused: %+v, %v", in, ok)
	}
}

// The estimate works even if probes take more time than the graph.
func TestExpectationOfGraphsThatAreAllProbes(t *testing.T) {
	tally := New(&optrace.Tables{})
	decoded(tally, optrace.LevelAll, 20, steadily(10*time.Microsecond))
	o := tally.Summary(Settings{Target: optrace.Target{Sites: sites(false)}}).Observer
	if !(o.Expected > 0.9 && o.Expected < 1) || o.GraphTime <= 0 {
		t.Errorf("%+v", o)
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

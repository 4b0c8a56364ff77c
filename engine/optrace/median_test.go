package optrace_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
)

// TestMedianGraph checks that the graph with the median time is drawn, not the last one.
func TestMedianGraph(t *testing.T) {
	s := plain
	s.rounds = 12
	m := s.make()
	for i := range m.events { // the last graph takes much longer than all
		if from := m.graphs[len(m.graphs)-1].Begin; m.events[i].At > from {
			m.events[i].At += 50 * (m.events[i].At - from)
		}
	}
	got, _ := assembled(m.tables, m.events)
	var times []time.Duration
	for _, g := range got.graphs {
		if g.Phase == optrace.PhaseDecode {
			times = append(times, g.End-g.Begin)
		}
	}
	slices.Sort(times)
	r := &optrace.Recording{Tables: m.tables, Events: m.events, End: m.events[len(m.events)-1].At}
	g := tally.MedianGraph(r)
	if g.MedianOf != len(times) || g.MedianOf < 5 || g.Time != times[(len(times)-1)/2] || g.Phase != "decode" || len(g.Threads) != s.lanes {
		t.Errorf("%d graphs, %s in %s on %d lanes; want %d and %s", g.MedianOf, g.Phase, g.Time, len(g.Threads), len(times), times[(len(times)-1)/2])
	}
	if g := tally.MedianGraph(&optrace.Recording{Tables: m.tables}); g.MedianOf != 0 || g.Threads != nil {
		t.Errorf("a recording of nothing gives %+v", g)
	}
}

package optrace

import (
	"slices"
	"testing"
	"time"
)

// TestMedianGraph holds that the graph to draw is the one that took the median time, and
// not the last one.
func TestMedianGraph(t *testing.T) {
	s := plain
	s.rounds = 12
	m := s.make()
	for i := range m.events { // the last graph takes much longer than all
		if from := m.graphs[len(m.graphs)-1].Begin; m.events[i].At > from {
			m.events[i].At += 50 * (m.events[i].At - from)
		}
	}
	got, _ := assemble(m.tables, m.events)
	var times []time.Duration
	for _, g := range got.graphs {
		if g.Phase == PhaseDecode {
			times = append(times, g.End-g.Begin)
		}
	}
	slices.Sort(times)
	r := &Recording{Tables: m.tables, Events: m.events, End: m.events[len(m.events)-1].At}
	g := MedianGraph(r)
	if g.Of != len(times) || g.Of < 5 || g.Time != times[(len(times)-1)/2] || g.Phase != "decode" || len(g.Lanes) != s.lanes {
		t.Errorf("%d graphs, %s in %s on %d lanes; want %d and %s", g.Of, g.Phase, g.Time, len(g.Lanes), len(times), times[(len(times)-1)/2])
	}
	if g := MedianGraph(&Recording{Tables: m.tables}); g.Of != 0 || g.Lanes != nil {
		t.Errorf("a recording of nothing gives %+v", g)
	}
}

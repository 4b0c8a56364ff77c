package optrace_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// variants returns the scene with one property changed at a time.
func variants() map[string]scene {
	all := map[string]scene{}
	add := func(name string, change func(*scene)) {
		s := plain
		change(&s)
		all[name] = s
	}
	for _, n := range []int{1, 2, 3, 8} {
		add(fmt.Sprintf("%d lanes", n), func(s *scene) { s.lanes = n })
		add(fmt.Sprintf("%d lanes with barriers", n), func(s *scene) { s.lanes, s.barriers = n, true })
		add(fmt.Sprintf("%d lanes without a DAG", n), func(s *scene) { s.lanes, s.dag = n, false })
	}
	add("workers that stay", func(s *scene) { s.fresh = false })
	add("scheduling", func(s *scene) { s.sched = true })
	add("scheduling and barriers", func(s *scene) { s.sched, s.barriers = true, true })
	add("counters", func(s *scene) { s.counters = true })
	add("experts", func(s *scene) { s.experts = true })
	add("a batch that cannot be read", func(s *scene) { s.noTokens = true; s.ubatches = 1 })
	add("no ends of calls", func(s *scene) { s.noCallEnds = true })
	add("contexts side by side", func(s *scene) { s.contexts = 3 })
	add("contexts side by side, without DAGs", func(s *scene) { s.contexts, s.dag, s.lanes = 3, false, 4 })
	add("contexts side by side, workers that stay", func(s *scene) { s.contexts, s.fresh, s.barriers = 4, false, true })
	add("everything", func(s *scene) {
		s.contexts, s.lanes, s.barriers, s.sched, s.counters, s.experts = 2, 4, true, true, true, true
	})
	return all
}

func TestAssemblerFindsTheTruth(t *testing.T) {
	for name, s := range variants() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				s.seed = seed
				m := s.make()
				got, a := assembled(m.tables, m.events)
				if partial, lost := a.Dropped(); partial != 0 || lost != 0 {
					t.Errorf("seed %d: %d partial graphs and %d lost events, none were", seed, partial, lost)
				}
				compareGraphs(t, got, m)
				compareCalls(t, got, m)
			}
		})
	}
}

// compareGraphs compares graphs and their calls with the truth.
func compareGraphs(t *testing.T, got *kept, m *made) {
	t.Helper()
	if len(got.graphs) != len(m.graphs) {
		t.Fatalf("%d graphs, want %d", len(got.graphs), len(m.graphs))
	}
	of := map[int]*optrace.Call{}
	for _, c := range got.calls {
		of[c.Index] = c
	}
	for i, g := range got.graphs {
		c := of[g.Call]
		if c == nil || c.TID != g.TID || c.Begin > g.Begin || c.End < g.End {
			t.Errorf("graph %d belongs to call %d: %+v", i, g.Call, c)
		}
		sameGraph(t, g, &m.graphs[i])
	}
}

func sameGraph(t *testing.T, g, want *optrace.Graph) {
	t.Helper()
	w := *want
	w.Call = g.Call
	if reflect.DeepEqual(*g, w) {
		return
	}
	for l := range min(len(g.Threads), len(w.Threads)) {
		for i := range min(len(g.Threads[l].Spans), len(w.Threads[l].Spans)) {
			if a, b := g.Threads[l].Spans[i], w.Threads[l].Spans[i]; !reflect.DeepEqual(a, b) {
				t.Fatalf("graph %d, lane %d, span %d:\n got %+v\nwant %+v", g.Index, l, i, a, b)
			}
		}
		if a, b := g.Threads[l], w.Threads[l]; !reflect.DeepEqual(a, b) {
			t.Fatalf("graph %d, lane %d:\n got %+v\nwant %+v", g.Index, l, a, b)
		}
	}
	t.Fatalf("graph %d:\n got %+v\nwant %+v", g.Index, *g, w)
}

func compareCalls(t *testing.T, got *kept, m *made) {
	t.Helper()
	if len(got.calls) != len(m.calls) {
		t.Fatalf("%d calls, want %d", len(got.calls), len(m.calls))
	}
	at := map[time.Duration]optrace.Call{}
	for _, c := range m.calls {
		at[c.Begin] = c
	}
	for _, c := range got.calls {
		want := at[c.Begin]
		want.Index, want.Graphs = c.Index, c.Graphs
		if !reflect.DeepEqual(*c, want) {
			t.Errorf("call:\n got %+v\nwant %+v", *c, want)
		}
		if len(c.Graphs) == 0 {
			t.Errorf("call %d computed no graph", c.Index)
		}
		for _, i := range c.Graphs {
			if got.graphs[i].Call != c.Index {
				t.Errorf("call %d has graph %d, which is of call %d", c.Index, i, got.graphs[i].Call)
			}
		}
	}
}

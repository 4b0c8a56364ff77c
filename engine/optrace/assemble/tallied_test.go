package assemble_test

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
)

// TestTallyOfSyntheticEvents derives figures from events with barriers, scheduling and new
// workers for each graph.
func TestTallyOfSyntheticEvents(t *testing.T) {
	made := plain.make()
	graphs := time.Duration(0)
	for i := range made.graphs {
		graphs += made.graphs[i].End - made.graphs[i].Begin
	}
	end := made.events[len(made.events)-1].At
	s := tally.Analyze(&optrace.Recording{Tables: made.tables, Events: made.events, Begin: made.events[0].At, End: end, Detail: optrace.LevelTensor})
	if s.Coverage.Graphs != len(made.graphs) || s.Coverage.Calls != len(made.calls) || s.Coverage.Partial != 0 {
		t.Errorf("coverage: %+v", s.Coverage)
	}
	if len(s.Phases) != 2 || s.Phases[0].Phase != "prefill" || s.Phases[0].FirstToken.Count != 1 {
		t.Errorf("phases: %+v", s.Phases)
	}
	operators := time.Duration(0)
	for _, k := range s.Kinds {
		operators += k.Time
	}
	if operators > graphs || operators < graphs/2 {
		t.Errorf("operators took %v of %v", operators, graphs)
	}
}

// The coverage includes the waits of thread 0 after operators: with and without barriers, only
// the time before the first operator and the few instructions between a barrier and the next
// operator are missing.
func TestWaitsAreCovered(t *testing.T) {
	for _, name := range []string{"3 lanes", "3 lanes with barriers", "8 lanes with barriers", "scheduling and barriers"} {
		s := variants()[name]
		s.nodes, s.rounds = 60, 20
		m := s.make()
		sum := tally.Analyze(&optrace.Recording{Tables: m.tables, Events: m.events, Detail: optrace.LevelAll})
		if got := sum.Coverage.OpShare; !got.OK || got.V < 0.98 || got.V > 1 {
			t.Errorf("%s: operators cover %v of the graphs", name, got)
		}
	}
}

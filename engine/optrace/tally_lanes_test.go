package optrace

import "testing"

// What lane 0 waits for after an operator is covered by it: with barriers as without
// them, only what lies before the first operator and the few instructions between a
// barrier and the next are not.
func TestWaitsAreCovered(t *testing.T) {
	for _, name := range []string{"3 lanes", "3 lanes with barriers", "8 lanes with barriers", "scheduling and barriers"} {
		s := variants()[name]
		s.nodes, s.rounds = 60, 20
		m := s.make()
		sum := Analyze(&Recording{Tables: m.tables, Events: m.events, Detail: LevelAll})
		if got := sum.Coverage.OpShare; !got.OK || got.V < 0.98 || got.V > 1 {
			t.Errorf("%s: operators cover %v of the graphs", name, got)
		}
	}
}

// Graphs that were seen without their operators do not make lanes lose more time than
// there was.
func TestGraphsWithoutOperatorsAreNoPartOfRatios(t *testing.T) {
	tally := NewTally(&Tables{})
	tally.Graph(&Graph{Call: -1, End: 100, Lanes: []Lane{{TID: 1, Off: 90, Preempted: 80}}})
	tally.Graph(&Graph{Call: -1, Begin: 100, End: 200, Lanes: []Lane{{TID: 1, Off: 50, Preempted: 40, Busy: 50, Spans: []Span{{Begin: 100, End: 200}}}}})
	row := tally.Summary(Settings{Detail: LevelSched}).Threads[0]
	if row.Off.V != 0.5 || row.Preempted.V != 0.4 || row.Busy.V != 0.5 {
		t.Errorf("busy %v, off %v, preempted %v, want 0.5, 0.5 and 0.4", row.Busy, row.Off, row.Preempted)
	}
}

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

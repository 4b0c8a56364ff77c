package optrace_test

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
)

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

package comparison

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestCompareSaysWhatToDo checks that exactly the unresolved comparisons have a next step.
func TestCompareSaysWhatToDo(t *testing.T) {
	unclear := func(s *optrace.Summary) {
		disturbed(s)
		times(s, 1.15)
	}
	for name, c := range map[string]struct {
		make func(a, b *optrace.Summary)
		want string
	}{
		"the same":      {func(_, _ *optrace.Summary) {}, ""},
		"faster":        {func(_, b *optrace.Summary) { times(b, 0.5) }, ""},
		"someone's CPU": {func(a, b *optrace.Summary) { stolen(a); disturbed(a); unclear(b) }, "Measure both again without stress, which took the CPUs of compute threads."},
		"nobody named": {func(a, b *optrace.Summary) {
			stolen(b)
			b.Others = nil
			disturbed(a)
			unclear(b)
		}, "on a quiet machine"},
		"few calls": {func(_, b *optrace.Summary) {
			decodeOf(b).Call.Count, decodeOf(b).Graph.Count = 7, 7
		}, "one side has 7 of the 20 decode calls"},
		"scheduling not traced": {func(a, b *optrace.Summary) {
			disturbed(a)
			unclear(b)
			lanes(b, func(_ int, r *optrace.ThreadRow) { r.Off, r.Preempted = stat.None, stat.None })
		}, "--level sched"},
		"noise": {func(a, b *optrace.Summary) { disturbed(a); unclear(b) }, "Trace both for longer, one after the other"},
	} {
		a, b := stepped(), stepped()
		c.make(a, b)
		got := Compare(a, b)
		if (got.Next == "") != (c.want == "") || !strings.Contains(got.Next, c.want) {
			t.Errorf("%s: %q of %q, want %q", name, got.Next, got.Headline, c.want)
		}
	}
}

package optrace

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestCompareSaysWhatToDo holds that a comparison which cannot tell says what would let it,
// and one that can says nothing of the kind.
func TestCompareSaysWhatToDo(t *testing.T) {
	unclear := func(s *Summary) {
		disturbed(s)
		times(s, 1.15)
	}
	for name, c := range map[string]struct {
		make func(a, b *Summary)
		want string
	}{
		"the same":      {func(_, _ *Summary) {}, ""},
		"faster":        {func(_, b *Summary) { times(b, 0.5) }, ""},
		"someone's CPU": {func(a, b *Summary) { stolen(a); disturbed(a); unclear(b) }, "Measure both again without stress, which had the CPUs of the threads."},
		"nobody named": {func(a, b *Summary) {
			stolen(b)
			b.Others = nil
			disturbed(a)
			unclear(b)
		}, "on a quiet machine"},
		"few calls": {func(_, b *Summary) {
			decodeOf(b).Call.Count, decodeOf(b).Graph.Count = 7, 7
		}, "one side has 7 of the 20 calls of a decode"},
		"scheduling not traced": {func(a, b *Summary) {
			disturbed(a)
			unclear(b)
			lanes(b, func(_ int, r *ThreadRow) { r.Off, r.Preempted = stat.None, stat.None })
		}, "--level sched"},
		"noise": {func(a, b *Summary) { disturbed(a); unclear(b) }, "Trace both for longer, one after the other"},
	} {
		a, b := stepped(), stepped()
		c.make(a, b)
		got := Compare(a, b)
		if (got.Next == "") != (c.want == "") || !strings.Contains(got.Next, c.want) {
			t.Errorf("%s: %q of %q, want %q", name, got.Next, got.Headline, c.want)
		}
	}
}

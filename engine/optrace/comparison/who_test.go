package comparison

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestCompareSaysWhoAsTheReportDoes checks that "mostly" is more than half, and that a
// comparison names the same cause as the report of the trace.
func TestCompareSaysWhoAsTheReportDoes(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*optrace.Summary)
		want string
	}{
		{"most of it", crowdedOut, ", mostly by engine.test (PID 31)"},
		{"several", func(s *optrace.Summary) {
			stolen(s)
			s.Others = []optrace.OtherRow{{PID: 11, Name: "tui.test", Share: stat.Some(0.1)}, {PID: 12, Name: "link", Share: stat.Some(0.09)}, {PID: 13, Name: "vet", Share: stat.Some(0.08)}}
		}, ", the largest share by tui.test (PID 11), 10 %"},
		{"itself", func(s *optrace.Summary) { crowdedOut(s); s.Preempted.OwnCPUs = stat.Some(2) }, " by other threads of the target"},
		{"not known", func(s *optrace.Summary) { crowdedOut(s); s.HostLoad = nil }, "; the cause is unknown"},
		{"the reader", func(s *optrace.Summary) {
			s.Threads[2].Preempted, s.Others, s.Observer.Reader = stat.Some(0.06), nil, stat.Some(0.05)
		}, ", the largest share by rooftop itself, 5 %"},
	} {
		s := healthy()
		c.set(s)
		if got := spaced(byWhom(evidence.NewView(s))); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

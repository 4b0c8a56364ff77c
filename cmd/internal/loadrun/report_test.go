package loadrun

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/collect/loadgen"
)

// A load says that requests went out late, and a closed loop, which has no schedule, after what.
func TestLateRequests(t *testing.T) {
	for _, tc := range []struct {
		name string
		load loadgen.Load
		lag  time.Duration
		want string
	}{
		{"in time", loadgen.Load{Clients: 4}, 4 * time.Millisecond, ""},
		{"closed", loadgen.Load{Clients: 4}, 12 * time.Millisecond, "1 request in 100 went out 12.0 ms or more after its client was ready: this machine or its connections were busy.\n"},
		{"open", loadgen.Load{Arrival: loadgen.Poisson, Rate: 8}, 12 * time.Millisecond, "1 request in 100 went out 12.0 ms late or more: this machine or its connections did not keep the schedule.\n"},
	} {
		var s loadgen.Summary
		s.SendLag.Count, s.SendLag.P99 = 200, tc.lag
		var b strings.Builder
		if err := printLoad(&b, &s, &tc.load, "words"); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, tc.want) || tc.want == "" && strings.Contains(got, "went out") {
			t.Errorf("%s: want %q in\n%s", tc.name, tc.want, got)
		}
	}
}

package proberun

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
		{"closed", loadgen.Load{Clients: 4}, 12 * time.Millisecond, "1 % of the requests were sent at least 12.0 ms after their client was ready: this machine or its connections were busy.\n"},
		{"open", loadgen.Load{Arrival: loadgen.Poisson, Rate: 8}, 12 * time.Millisecond, "1 % of the requests were sent at least 12.0 ms late: this machine or its connections did not keep the schedule.\n"},
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

// A load spells its numbers as other reports do: three digits, thousands in groups.
func TestNumbersOfALoad(t *testing.T) {
	s := loadgen.Summary{Elapsed: 5 * time.Second}
	s.Sent, s.Requests, s.PromptTokens = 4, 1, 100
	s.OfferedPerSecond, s.RequestsPerSecond, s.OutputPerSecond = 0.8, 12.345, 5512.4
	s.TTFT.Count, s.TTFT.P99, s.TTFT.Mean = 1, 2222*time.Millisecond, 310*time.Microsecond
	var b strings.Builder
	if err := printLoad(&b, &s, &loadgen.Load{Clients: 2}, "words"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seed 0, 5.00 s;", "   0.800 req/s   4 requests\n", "    12.3 req/s   1 request, 5,510 output tok/s, 100 prompt tokens", " 310 µs", " 2.22 s"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, &b)
		}
	}
}

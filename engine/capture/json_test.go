package capture

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDistributionJSON(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Distribution
		want string
	}{
		{"nothing observed", Distribution{}, "null"},
		{"one", Distribution{1, 2, 3, 4, 5, time.Second}, `{"count":1,"mean_s":2e-9,"p50_s":3e-9,"p95_s":4e-9,"p99_s":5e-9,"max_s":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := json.Marshal(c.in)
			if err != nil || string(b) != c.want {
				t.Fatalf("%s, %v, want %s", b, err, c.want)
			}
		})
	}
}

func TestRound(t *testing.T) {
	c := &Capture{
		Begin: 1499, End: 2501,
		Requests: []Request{{Sent: 1499, Chunks: []Chunk{{At: 1500}}, End: 2501}},
		Tree:     Tree{Processes: []Process{{Joined: 999}}, Samples: []TreeSample{{At: 700, Processes: []ProcessSample{{CPU: 1999}}}}},
		Pages:    []PageSample{{At: 600}},
	}
	c.Round()
	for name, got := range map[string]struct{ is, want time.Duration }{
		"begin": {c.Begin, 1000}, "end": {c.End, 3000}, "sent": {c.Requests[0].Sent, 1000}, "chunk": {c.Requests[0].Chunks[0].At, 2000},
		"joined": {c.Tree.Processes[0].Joined, 1000}, "sample": {c.Tree.Samples[0].At, 1000}, "cpu": {c.Tree.Samples[0].Processes[0].CPU, 2000}, "page": {c.Pages[0].At, 1000},
	} {
		if got.is != got.want {
			t.Errorf("%s: %d, want %d", name, got.is, got.want)
		}
	}
}

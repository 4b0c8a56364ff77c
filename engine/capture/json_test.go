package capture

import (
	"testing"
	"time"
)

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

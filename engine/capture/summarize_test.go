package capture

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
)

// TestSummarizeOfLittle checks that a run without data has absent figures with reasons, and no
// panic.
func TestSummarizeOfLittle(t *testing.T) {
	for name, c := range map[string]*Capture{
		"a probe without a request": {Kind: Probe, Period: 50 * time.Millisecond, Ended: "interrupt"},
		"an observation of nothing": {Kind: Observation, Period: 50 * time.Millisecond, End: time.Second},
		"no time at all":            {},
	} {
		t.Run(name, func(t *testing.T) {
			s := Summarize(c, Machine{Cards: catalog.Default().GPUs()})
			if len(s.Derived) == 0 {
				t.Fatal("no derived quantity is named")
			}
			for _, q := range s.Derived {
				if q.Value.OK || q.Reason == "" {
					t.Errorf("%s = %v with the reason %q", q.Name, q.Value, q.Reason)
				}
			}
			if s.Sizing.Verdict != UnknownSize || s.Sizing.Reason == "" {
				t.Errorf("sizing %+v", s.Sizing)
			}
		})
	}
}

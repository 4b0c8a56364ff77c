package capture

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
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

// TestObservedTokens takes the tokens of an observation from the server's counter.
func TestObservedTokens(t *testing.T) {
	c := &Capture{Kind: Observation, Begin: time.Second, End: 11 * time.Second, Period: 50 * time.Millisecond}
	for i := range 45 {
		at := time.Second + time.Duration(i)*250*time.Millisecond - 100*time.Millisecond
		c.Pages = append(c.Pages, PageSample{At: at, GenerationTokens: stat.Some(1000 + 25*float64(i)), Running: stat.Some(4)})
	}
	s := Summarize(c, Machine{})
	for _, q := range s.Derived {
		if q.Name == DecodeRate && !within(q.Value, 100, 1e-9) {
			t.Errorf("%s = %v, want about 100", q.Name, q.Value)
		}
		if q.Name == DecodeBatch && !within(q.Value, 4, 1e-9) {
			t.Errorf("%s = %v, want 4", q.Name, q.Value)
		}
	}
	if s.Requests != nil {
		t.Error("an observation has no requestss")
	}
}

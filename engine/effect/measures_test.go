package effect

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

func TestTheGoalHasOneInterval(t *testing.T) {
	p := proved("", 1.09, 1.47, 1.92)
	p.Measures = []verdict.Measure{
		{Metric: verdict.MetricTokens, Known: true, Moved: true, Change: verdict.Interval{Low: 1.18, Mid: 1.47, High: 1.80}},
		{Metric: verdict.MetricTTFT, Known: true, Moved: true, Change: verdict.Interval{Low: -0.99, Mid: -0.98, High: -0.97}},
	}
	m, ok := p.MeasureOf("generation_tokens_per_s")
	if !ok || m.Change != p.Result.Effect {
		t.Errorf("output has %+v, want the verdict's %+v", m.Change, p.Result.Effect)
	}
	if got := p.OtherChanges("ttft_mean_s"); len(got) != 0 {
		t.Errorf("moved beside what is shown: %q, want nothing", got)
	}
	p.NamesEffect, p.Reason = true, "output +147 % (+109 to +192 %), and the queue is now empty, so the true gain may be higher"
	if head, rest := p.Headline(); words(head) != "output +147 % (+109 to +192 %), and the queue is now empty, so the true gain may be higher" || rest != "" {
		t.Errorf("says %q, %q", head, rest)
	}
}

func TestArrivalsThatFollowFromTheServerAreNoOtherTraffic(t *testing.T) {
	arrivals := verdict.Shift{Name: "arrivals", Before: stat.Some(5.3), After: stat.Some(22), Change: verdict.Interval{Mid: 3.13}, Moved: true}
	in := verdict.Shift{Name: "requests in", Before: stat.Some(24), After: stat.Some(24)}
	moved := in
	moved.Moved, moved.After, moved.Change.Mid = true, stat.Some(48), 1
	for _, c := range []struct {
		name    string
		traffic []verdict.Shift
		want    string
	}{
		{"as many are in", []verdict.Shift{in, arrivals}, ""},
		{"more are in", []verdict.Shift{moved, arrivals}, "requests in 24 → 48, +100 %; arrivals 5.3 → 22, +313 %"},
		{"not known how many are in", []verdict.Shift{arrivals}, "arrivals 5.3 → 22, +313 %"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := proved("", 0.1, 0.2, 0.3)
			p.Traffic = c.traffic
			if got := words(strings.Join(p.TrafficShifts(), "; ")); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

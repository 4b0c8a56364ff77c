package effect

import (
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// served returns a start of n slices of 2 s with this output a second, of which the first ones are warm-up: less
// output, more waiting, fewer hits and longer waits.
func served(n, warmUp int, rate float64) verdict.Incarnation {
	var out verdict.Incarnation
	for i := range n {
		r, waiting, hits, ttft := rate*(1+0.01*math.Sin(float64(7*i))), 2.0, 0.8, 0.1
		if i < warmUp {
			r, waiting, hits, ttft = rate/4, 20, 0.1, 3
		}
		bounds, counts := []float64{0.25, 5, math.Inf(1)}, []float64{10, 0, 0}
		if ttft > bounds[0] {
			counts = []float64{0, 10, 0}
		}
		out = append(out, verdict.Slice{
			Start: time.Duration(i) * 2 * time.Second, Length: 2 * time.Second,
			Tokens: stat.Some(2 * r), Finished: stat.Some(10), Running: stat.Some(8), Waiting: stat.Some(waiting), KV: stat.Some(waiting / 40),
			Hits: stat.Some(1000 * hits), Queries: stat.Some(1000),
			TTFT: stat.Delta{OK: true, Bounds: bounds, Counts: counts, Sum: 10 * ttft, Count: 10},
		})
	}
	return out
}

// TestAllRowsAreOfTheJudgedSlices judges a change with a warm-up. The diagnoses, which cover all that was
// measured, differ from the judged slices in every quantity.
func TestAllRowsAreOfTheJudgedSlices(t *testing.T) {
	side := func(start verdict.Incarnation) *verdict.Side {
		return &verdict.Side{Incarnations: []verdict.Incarnation{start}, CostPerHour: stat.Some(1.5)}
	}
	r := verdict.Judge(side(served(20, 0, 500)), side(served(30, 9, 1000)), verdict.Plan{Last: true})
	if r.Steady[1].Cut != 9 {
		t.Fatalf("%d slices were cut, want the 9 of the warm-up", r.Steady[1].Cut)
	}
	whole := func() *engine.Diagnosis {
		d := &engine.Diagnosis{}
		for _, name := range ComparedQuantities {
			if name != "preemptions_per_s" {
				d.Measured = append(d.Measured, engine.NamedQuantity{Name: name, Quantity: engine.Quantity{Value: stat.Some(77), AtLeast: true, Bucket: stat.Bucket{7, 8}}})
			}
		}
		return d
	}
	d := Compare(whole(), whole())
	d.Verdict = &r
	before, after := d.Judged(whole(), whole())
	if b, a := before.Quantity("prefix_hit_rate").Value, after.Quantity("prefix_hit_rate").Value; math.Abs(b.V-0.8) > 0.01 || math.Abs(a.V-0.8) > 0.01 {
		t.Errorf("the judged runs have hit rates %v → %v, want 0.8 on both sides", b, a)
	}
	got := map[string]MetricDelta{}
	for _, m := range d.MeasuredMetrics() {
		got[m.Name] = m
		if b, a := m.Before.Value, m.After.Value; b.V == 77 || a.V == 77 || m.Before.AtLeast {
			t.Errorf("%s covers the whole measurement: %+v", m.Name, m)
		} else if change := Relative(b, a); change.OK != m.Change.OK || math.Abs(change.V-m.Change.V) > 1e-9 {
			t.Errorf("%s: %v → %v beside %v", m.Name, b, a, m.Change)
		}
	}
	for name, want := range map[string]float64{
		"generation_tokens_per_s": 1000, "requests_per_s": 5, "running_mean": 8, "waiting_mean": 2, "kv_usage_peak": 0.05, "prefix_hit_rate": 0.8,
		"ttft_mean_s": 0.1, "usd_per_million_tokens": 1.5 / 3600 / 1000 * 1e6,
	} {
		if v := got[name].After.Value; !v.OK || math.Abs(v.V/want-1) > 0.01 {
			t.Errorf("%s after the change is %v, want %v", name, v, want)
		}
	}
	// The p99 of 210 requests has no interval, but a value of the same slices.
	if m := got["ttft_p99_s"]; !m.After.Value.OK || m.After.Value.V > 0.25 || m.After.Bucket != (stat.Bucket{0, 0.25}) {
		t.Errorf("TTFT p99 %+v", m)
	}
	for _, name := range []string{"power_w", "e2e_mean_s", "preemptions_per_s"} {
		if m := got[name]; m.Before.Value.OK || m.After.Value.OK || m.Change.OK {
			t.Errorf("%s was not judged and has %+v", name, m)
		}
	}
}

package verdict

import (
	"math"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// caching is a start whose prefix cache fills up to a hit rate, with a time constant in slices, and whose output
// follows the computed prompts.
func caching(seed uint64, tokens, full, memory float64) Incarnation {
	out := steadyLife(seed, tokens, 0.2, 16, 8)
	for i := range out {
		rate := full * (1 - math.Exp(-float64(i)/memory))
		s := &out[i]
		s.Queries, s.Hits = stat.Some(24_000), stat.Some(24_000*rate)
		s.Tokens = s.Tokens.Times((1 - 0.7*full) / (1 - 0.7*rate))
	}
	return out
}

// TestACacheThatFillsIsNotAnEffect restarts equal servers with a change that affects the pool, one of them with a cold
// cache.
func TestACacheThatFillsIsNotAnEffect(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after Incarnation
		want          Direction
		says          string
	}{
		{"cold after", caching(1, 1000, 0.8, 0.01), caching(2, 1000, 0.8, 60)[:30], NotComparable, "still filling after the change"},
		{"cold before", caching(1, 1000, 0.8, 60)[:30], caching(2, 1000, 0.8, 0.01), NotComparable, "still filling before the change"},
		{"cold, and far better all the same", caching(1, 1000, 0.8, 0.01), caching(2, 6000, 0.8, 60)[:30], Better, "output +"},
		{"caching that was off", steadyLife(1, 400, 0.2, 16, 8), caching(2, 1000, 0.8, 25)[25:], Better, "output +"},
		{"warm, and worse", caching(1, 1000, 0.8, 0.01), caching(2, 700, 0.8, 0.01), Worse, "output −30 %"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Judge(&Side{Incarnations: []Incarnation{c.before}}, &Side{Incarnations: []Incarnation{c.after}}, Plan{Last: true, Touch: Touch{Reuse: true, Batch: true}})
			if got.Direction != c.want || !says(&got, c.says) {
				t.Errorf("got %s: %s, want %s with %q", got.Direction, got.Reason, c.want, c.says)
			}
		})
	}
}

// TestAnObjectiveIsNotSettledByABurst has a neighbour slow the server down for all of the few seconds measured before
// or after the change.
func TestAnObjectiveIsNotSettledByABurst(t *testing.T) {
	late, soon := steadyLife(1, 1000, 1.5, 16, 8), steadyLife(2, 1000, 0.9, 16, 8)
	later := steadyLife(3, 1000, 3, 16, 8)
	for _, c := range []struct {
		name          string
		before, after Incarnation
		limit         float64
		want          Direction
	}{
		{"long enough, kept now", late, soon, 1.2, Better},
		{"before was short", late[:8], soon, 1.2, Inconclusive},
		{"long enough, no longer kept", soon, late, 1.2, Worse},
		{"after was short", soon, late[:8], 1.2, Inconclusive},
		{"broken throughout, and worse", late, later, 0.5, Worse},
		{"broken throughout, after was short", late, later[:8], 0.5, Inconclusive},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Plan{Last: true, Objectives: []Objective{{Name: "ttft", Metric: MetricTTFT, Limit: c.limit}}}
			got := Judge(&Side{Incarnations: []Incarnation{c.before}}, &Side{Incarnations: []Incarnation{c.after}}, p)
			if got.Direction != c.want {
				t.Errorf("got %s: %s, want %s", got.Direction, got.Reason, c.want)
			}
		})
	}
}

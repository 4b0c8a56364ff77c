package verdict

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// TestDetectableGainsAreFound plants the least gain that a whole trial can detect, which most trials must find, and
// half of it, which they must not.
func TestDetectableGainsAreFound(t *testing.T) {
	looks := Looks(20*time.Second, 300*time.Second)
	trials := 40
	if !longtest.Tests {
		trials = 16
	}
	for _, c := range []struct {
		name  string
		noise noise
		plan  Plan
	}{
		{"white", quiet10, Plan{}},
		{"drift 20 s", drifting(20 * time.Second), Plan{}},
		{"restarts of 3 %", noise{white: 0.03, restart: 0.03}, Plan{Spread: Spread{SD: 0.03}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := usual(saturated, c.noise)
			before.bare = true
			r, last := rand.New(rand.NewPCG(6, 6)), 0.0
			const baselines = 10
			for range baselines {
				least := Detectable(&Side{Incarnations: []Incarnation{before.run(r, 300*time.Second)}}, c.plan, looks)
				if len(least) != len(looks) {
					t.Fatalf("%v", least)
				}
				for i := range least[1:] {
					if least[i+1] > least[i]+1e-9 {
						t.Errorf("a longer measurement detects less: %.3f", least)
					}
				}
				last += least[len(least)-1] / baselines
			}
			found := func(gain float64) float64 {
				after := before
				after.speed = 1 + gain
				return many(trials, 7, func(r *rand.Rand) outcome { return trial(r, &before, &after, 300*time.Second, c.plan) }).share(Better)
			}
			if at, half := found(last), found(last/2); at < 0.6 || half > at-0.2 {
				t.Errorf("%+.1f %% is found in %.0f %% of trials, half of it in %.0f %%", 100*last, 100*at, 100*half)
			}
		})
	}
	if got := Detectable(&Side{}, Plan{}, looks); got != nil {
		t.Errorf("nothing measured: %v", got)
	}
}

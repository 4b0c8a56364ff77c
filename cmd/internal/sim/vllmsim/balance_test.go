package vllmsim

import (
	"slices"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

func TestScore(t *testing.T) {
	type loads struct {
		waiting, running, inFlight int
		usage                      float64
	}
	tests := []struct {
		name   string
		newer  bool
		fronts int
		load   loads
		want   float64
	}{
		{"one that waits weighs four that run", false, 1, loads{waiting: 3, running: 5}, 17},
		{"older servers do not look at the pool", false, 1, loads{waiting: 3, running: 5, usage: 1, inFlight: 90}, 17},
		{"all count the same", true, 1, loads{waiting: 3, running: 5, usage: 0.5}, 8},
		{"a queue before a full pool counts four times", true, 1, loads{waiting: 3, running: 5, usage: 1}, 8 + 9},
		{"what was sent counts at once", true, 4, loads{running: 5, inFlight: 3}, 12},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b balancer
			b.init(2, tt.fronts, tt.newer)
			f := &b.fronts[0]
			f.waiting[1], f.running[1], f.usage[1], f.inFlight[1] = tt.load.waiting, tt.load.running, tt.load.usage, tt.load.inFlight
			if got := b.score(f, 1); got != tt.want {
				t.Errorf("score = %v, want %v", got, tt.want)
			}
			if got := b.score(f, 0); got != 0 {
				t.Errorf("score of an idle rank = %v", got)
			}
		})
	}
}

// TestCountsArePublishedRarely checks that between two publications an API server uses the counts of its own
// requests.
func TestCountsArePublishedRarely(t *testing.T) {
	v := start(t, parsed(t, "--data-parallel-size", "2", "--api-server-count", "1", "--sim-dialect", "0.20"))
	now := v.Healthy()
	v.ranks[0].state = core.State{Running: 9}
	v.balancer.changed = true
	if got := v.choose(0, now); got != 1 {
		t.Fatalf("rank %d of one with 9 running and one idle", got)
	}
	v.ranks[1].state, v.balancer.changed = core.State{Running: 50}, true
	var chosen []int
	for range 3 {
		chosen = append(chosen, v.choose(0, now+publishInterval/2))
	}
	if want := []int{1, 1, 0}; !slices.Equal(chosen, want) {
		t.Errorf("ranks %v before the next publication, want %v", chosen, want)
	}
	if got := v.choose(0, now+publishInterval); got != 0 {
		t.Error("the new counts are not used when they are published")
	}
	if _, ok := v.Next(); ok {
		t.Error("a choice is an event")
	}
}

package ggml

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

func at(moments ...time.Duration) []optrace.Event {
	var all []optrace.Event
	for i, m := range moments {
		all = append(all, optrace.Event{At: m, N: int64(i)})
	}
	return all
}

func moments(events []optrace.Event) []time.Duration {
	var all []time.Duration
	for _, e := range events {
		all = append(all, e.At)
	}
	return all
}

func TestEventsAreHeldBack(t *testing.T) {
	var o order
	add := func(moments ...time.Duration) {
		for _, e := range at(moments...) {
			o.add(e)
		}
	}
	add(1, 5, 3, 9)
	if got := moments(o.takeUntil(4)); !slices.Equal(got, []time.Duration{1, 3}) {
		t.Errorf("%v", got)
	}
	if o.held() != 2 {
		t.Errorf("%d held", o.held())
	}
	add(7, 2)
	// 2 comes after 3 was handed out: it gets its time.
	if got := moments(o.takeUntil(8)); !slices.Equal(got, []time.Duration{3, 5, 7}) || o.late != 1 {
		t.Errorf("%v, %d late", got, o.late)
	}
	if got := moments(o.takeUntil(100)); !slices.Equal(got, []time.Duration{9}) || o.held() != 0 {
		t.Errorf("%v", got)
	}
	if got := o.takeUntil(100); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// Events are sorted by time whether they are nearly sorted or not; equal times keep their
// order.
func TestSortByTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []int64{0, 3, 100, 100_000} {
		events := make([]optrace.Event, 3000)
		for i := range events {
			events[i] = optrace.Event{At: time.Duration(int64(i) + r.Int64N(spread+1)), N: int64(i)}
		}
		want := slices.Clone(events)
		slices.SortStableFunc(want, func(a, b optrace.Event) int { return int(a.At - b.At) })
		sortByTime(events)
		if !slices.Equal(events, want) {
			t.Errorf("spread %d", spread)
		}
	}
}

// held returns the number of events that wait.
func (o *order) held() int { return len(o.events) - o.given }

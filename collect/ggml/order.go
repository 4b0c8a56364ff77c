package ggml

import (
	"cmp"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// holdBack is how long an event waits for older ones of other CPUs: a program takes the
// time, then room in the ring, and may be interrupted in between.
const holdBack = 2 * time.Millisecond

// maxShifts bounds the work of sorting what is nearly in order, per event; beyond it a
// general sort is faster.
const maxShifts = 8

// order puts events into the order of time. Its memory is that of the events of one
// drain and of the hold-back.
type order struct {
	events []optrace.Event
	given  int           // of events, handed out by the last take
	last   time.Duration // of the newest event that was handed out
	late   int64         // events that came after a newer one was handed out
}

// add takes an event.
func (o *order) add(e optrace.Event) { o.events = append(o.events, e) }

// take is the events up to a moment, in order, valid until the next add or take. An
// event that comes too late gets the time of the newest before it.
func (o *order) take(until time.Duration) []optrace.Event {
	o.events = o.events[:copy(o.events, o.events[o.given:])]
	o.given = 0
	sortByTime(o.events)
	for i := range o.events {
		e := &o.events[i]
		if e.At > until {
			break
		}
		if e.At < o.last {
			e.At = o.last
			o.late++
		}
		o.last = e.At
		o.given++
	}
	return o.events[:o.given]
}

// held is how many events wait.
func (o *order) held() int { return len(o.events) - o.given }

// sortByTime sorts events that are nearly in order, and leaves those of one moment in
// the order in which they came.
func sortByTime(events []optrace.Event) {
	budget := maxShifts * len(events)
	for i := 1; i < len(events); i++ {
		if events[i].At >= events[i-1].At {
			continue
		}
		e, j := events[i], i
		for ; j > 0 && events[j-1].At > e.At; j-- {
			events[j] = events[j-1]
		}
		events[j] = e
		if budget -= i - j; budget < 0 {
			slices.SortStableFunc(events, func(a, b optrace.Event) int { return cmp.Compare(a.At, b.At) })
			return
		}
	}
}

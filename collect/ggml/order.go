package ggml

import (
	"cmp"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// holdBack is how long an event waits for older ones of other CPUs: a program takes the time,
// then reserves room in the ring, and may be interrupted in between.
const holdBack = 2 * time.Millisecond

// maxShifts limits the work per event of sorting what is nearly in order; beyond it a general
// sort is faster.
const maxShifts = 8

// order sorts events by time. Its memory is that of the events of one drain and of the
// hold-back.
type order struct {
	events []optrace.Event
	given  int           // number of events that the last takeUntil returned
	last   time.Duration // time of the newest event that was returned
	late   int64         // events that came after a newer one was returned
}

// add adds an event.
func (o *order) add(e optrace.Event) { o.events = append(o.events, e) }

// takeUntil returns the events up to a moment, sorted, valid until the next add or takeUntil. An event
// that comes too late gets the time of the newest one before it.
func (o *order) takeUntil(until time.Duration) []optrace.Event {
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

// sortByTime sorts events that are nearly in order, and keeps the order of events with the same
// time.
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

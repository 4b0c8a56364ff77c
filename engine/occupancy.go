package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// occupancySpan is the number of windows that an occupancy reaches back over, at most.
	occupancySpan = 32
	// occupancyStays is how many mean stays the time must span: requests in progress at its ends
	// are counted by where they end, an error of one stay in the span at most.
	occupancyStays = 8
	// occupancyPreempted is the number of preemptions per finished request above which stays say
	// nothing about slots: a preempted request keeps its stay but not its slot.
	occupancyPreempted = 0.05
)

// occupancy derives the mean number of occupied slots from the requests that finished, by Little's law:
// finished requests per second x mean seconds from first scheduling to last token. The gauge of running
// requests is written as a step ends, after finished requests have left, and is seen for as long as the
// next step takes. If short answers end together and the next step computes their successors' prompts, a
// server shows empty slots for a large part of the time, although each is handed on at once.
type occupancy struct {
	marks [occupancySpan]stayMark // a ring
	n     int                     // marks so far
}

// stayMark is the state of the counters on the last page of a window.
type stayMark struct {
	at                        time.Duration
	seconds, count, preempted float64 // of the stays of finished requests
}

// add adds the page that closes a window and returns the mean occupied slots of all ranks up to it. It is
// absent if the page lacks the histograms, or too few requests finished in the span.
func (o *occupancy) add(p *Page, restarted bool) stat.Opt {
	m, ok := markOf(p)
	if !ok || restarted {
		o.n = 0
	}
	if !ok {
		return stat.None
	}
	got := stat.None
	for i := 1; i <= min(o.n, occupancySpan) && !got.OK; i++ {
		from := &o.marks[(o.n-i)%occupancySpan]
		seconds, count := m.seconds-from.seconds, m.count-from.count
		span := (m.at - from.at).Seconds()
		if count > 0 && span >= occupancyStays*seconds/count && m.preempted-from.preempted <= occupancyPreempted*count {
			got = stat.Some(seconds / span)
		}
	}
	o.marks[o.n%occupancySpan] = m
	o.n++
	return got
}

// markOf returns the state of a page; false if it lacks the time that requests spend in the engine.
func markOf(p *Page) (stayMark, bool) {
	m := stayMark{at: p.T, preempted: p.Counters[CounterPreemptions].Or(0)}
	inference, prefill, decode := &p.Hists[HistInference], &p.Hists[HistPrefill], &p.Hists[HistDecode]
	switch {
	case inference.OK:
		m.seconds, m.count = inference.Sum, inference.Count
	case prefill.OK && decode.OK && prefill.Count == decode.Count:
		m.seconds, m.count = prefill.Sum+decode.Sum, prefill.Count
	default:
		return m, false
	}
	return m, stat.IsFinite(m.seconds)
}

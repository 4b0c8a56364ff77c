package vllm

import (
	"fmt"
	"slices"
	"time"
)

// Polling cadence: every quarter of a second, but never so often that rendering
// the page takes more than a twentieth of the server's event loop.
const (
	DefaultInterval = 250 * time.Millisecond
	pacerFactor     = 20
	pacerMemory     = 9 // durations; a window of polls
	// pacerLeast is how many pages must have been timed before they are taken for
	// slow: the first one of a server, or of a connection, may be so by chance, and
	// an interval drawn from it could be longer than the run.
	pacerLeast = 3
)

// Pacer says how long to wait from one poll to the next, from how long the last
// pages took. It calls no clock. The zero value paces at DefaultInterval.
type Pacer struct {
	Base time.Duration // the interval while pages are fast; 0: DefaultInterval

	took [pacerMemory]time.Duration
	n    int // durations observed
}

// Observe takes in the duration of a scrape that succeeded. Failures say nothing
// about what a page costs and are left out.
func (p *Pacer) Observe(took time.Duration) {
	p.took[p.n%pacerMemory] = took
	p.n++
}

// Interval returns the time between the starts of two polls: the base interval,
// or 20 times the median of the last nine durations where that is more; of the
// first pages, the base interval alone.
func (p *Pacer) Interval() time.Duration {
	if p.n < pacerLeast {
		return p.base()
	}
	return max(p.base(), pacerFactor*p.Median())
}

// Median returns the median of the last nine durations, 0 before the first.
func (p *Pacer) Median() time.Duration {
	n := min(p.n, pacerMemory)
	if n == 0 {
		return 0
	}
	sorted := p.took
	slices.Sort(sorted[:n])
	return sorted[n/2]
}

// Slowed reports whether the page is so slow that polls are further apart than
// they should be, and says so in a sentence.
func (p *Pacer) Slowed() (why string, slowed bool) {
	interval := p.Interval()
	if interval <= p.base() {
		return "", false
	}
	return fmt.Sprintf("the metrics page takes %s: polled every %s instead of every %s so as not to disturb the server",
		p.Median().Round(100*time.Microsecond), interval.Round(time.Millisecond), p.base()), true
}

func (p *Pacer) base() time.Duration {
	if p.Base > 0 {
		return p.Base
	}
	return DefaultInterval
}

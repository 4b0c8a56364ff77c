package enginepage

import (
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Polling cadence.
const (
	// DefaultInterval is the interval between polls of a fast page.
	DefaultInterval = 250 * time.Millisecond
	// pacerFactor is the smallest ratio of interval to page duration: rendering the page
	// must not take more than a twentieth of the server's event loop.
	pacerFactor = 20
	// pacerGrowth is the largest ratio of an interval to the previous one.
	pacerGrowth = 2
	pacerMemory = 9 // number of recent durations that count
	// pacerMinPages is the number of pages that must be timed before they count as slow.
	// The first page of a server or of a connection may be slow by chance, and an interval
	// derived from it could be longer than the run.
	pacerMinPages = 3
)

// Pacer computes the time from one poll to the next from the duration of the last
// pages. It calls no clock. The zero value paces at DefaultInterval.
//
// The shortest of them says what a page costs: the others waited for the server's own work in its event loop
// first. Under 256 clients a vLLM on an H200 took 6 to 200 ms for one page.
type Pacer struct {
	Base time.Duration // the interval while pages are fast; 0 means DefaultInterval

	took     [pacerMemory]time.Duration
	n        int // number of durations observed
	interval time.Duration
}

// Observe records the duration of a successful scrape. Do not call it for failures, whose
// duration says nothing about the cost of a page.
func (p *Pacer) Observe(took time.Duration) {
	p.took[p.n%pacerMemory] = took
	p.n++
	if p.n >= pacerMinPages {
		p.interval = max(p.base(), min(pacerFactor*p.Shortest(), pacerGrowth*p.Interval()))
	}
}

// Interval returns the time between the starts of two polls: the larger of the base interval
// and 20 times the shortest of the last nine durations, but at most twice the previous
// interval. Before the third page it returns the base interval.
func (p *Pacer) Interval() time.Duration { return max(p.base(), p.interval) }

// Shortest returns the shortest of the last nine durations, 0 before the first.
func (p *Pacer) Shortest() time.Duration {
	n := min(p.n, pacerMemory)
	if n == 0 {
		return 0
	}
	return slices.Min(p.took[:n])
}

// Slowed reports whether the page is so slow that polls are further apart than the base
// interval, once they are as far apart as they will be; why is a sentence for the user.
func (p *Pacer) Slowed() (why string, slowed bool) {
	interval := p.Interval()
	if interval <= p.base() || interval < pacerFactor*p.Shortest() { // or it still grows
		return "", false
	}
	return fmt.Sprintf("the metrics page takes %s, so rooftop reads it every %s instead of every %s to avoid disturbing the server",
		figure.Duration(p.Shortest()), figure.Duration(interval), figure.Duration(p.base())), true
}

func (p *Pacer) base() time.Duration {
	if p.Base > 0 {
		return p.Base
	}
	return DefaultInterval
}

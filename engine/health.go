package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Health is one reading of whether the engine behind the metrics page lives: the answer of
// /health and, on the server's machine, the states of its processes.
type Health struct {
	T time.Duration `json:"t"` // since the start of the session
	// State is "" if nothing is known, such as for a server without /health.
	State HealthState `json:"state,omitempty"`
	// Why is what is wrong, as a clause: "/health answers 503". With
	// HealthOK it names a process that is stopped, if any; without a state, why it is unknown.
	Why string `json:"why,omitempty"`
}

// HealthState is the result of a health reading.
type HealthState string

// Health states.
const (
	HealthOK     HealthState = "ok"     // /health answers 200, and no process of the engine has ended
	HealthFailed HealthState = "failed" // /health answers a server error, or a process of the engine has ended
)

const (
	// failedReadings is the number of consecutive failed readings that count: one may come from
	// another server behind the same address.
	failedReadings = 2
	// endingWindows is the number of latest windows with ended requests over which failures are
	// counted.
	endingWindows = 15
)

// Endings are the requests that ended in the latest windows, and how many of them failed.
type Endings struct{ Ended, Failed float64 }

func (e Endings) plus(o Endings) Endings { return Endings{e.Ended + o.Ended, e.Failed + o.Failed} }

// vitals is what a windower remembers over windows about the life of the engine.
type vitals struct {
	previous *Page
	moved    time.Duration // when the engine's numbers last moved, or no request was in
	longest  time.Duration // between two moves
	broken   bool          // a scrape failed since the previous page
	ranks    []rankVitals

	failed      int           // consecutive failed health readings
	failedSince time.Duration // the first of them
	why         string        // of the latest reading

	answers, finishes []Endings // of the latest windows, oldest first
}

// rankVitals are the vitals of one data-parallel rank.
type rankVitals struct{ moved, longest time.Duration }

// addHealth adds a health reading, nil if none was taken.
func (v *vitals) addHealth(h *Health) {
	switch {
	case h == nil || h.State == "":
		return
	case h.State == HealthFailed:
		if v.failed == 0 {
			v.failedSince = h.T
		}
		v.failed++
	case h.State == HealthOK:
		v.failed = 0
	}
	v.why = h.Why
}

// addPage tracks how long requests have been in the server without any of the engine's numbers
// moving, and reports whether they moved. Idle and sleeping servers do not stall. The time of a
// failed scrape does not count.
func (v *vitals) addPage(p *Page) (moved bool) {
	before := v.previous
	v.previous = p
	if before == nil || Restarted(before, p) {
		*v = vitals{previous: p, moved: p.T, longest: v.longest}
		v.ranks = make([]rankVitals, len(p.Ranks))
		for i := range v.ranks {
			v.ranks[i].moved = p.T
		}
		return false
	}
	if v.broken {
		v.skip(p.T - before.T)
	}
	switch {
	case !hasRequests(&p.Gauges) || p.Gauges[GaugeAsleep].Or(0) > 0:
		v.moved = p.T
	case advanced(before, p):
		moved = true
		v.longest, v.moved = longerStep(v.longest, p.T-v.moved), p.T
		v.failed = 0 // an engine that steps is not dead, whatever /health answers
	}
	v.addRanks(before, p)
	v.broken = false
	return moved
}

// longerStep returns the longer of two steps. A standstill of more than LongestStep was none.
func longerStep(longest, standstill time.Duration) time.Duration {
	if standstill > LongestStep {
		return longest
	}
	return max(longest, standstill)
}

// skip leaves a time out of the standstills.
func (v *vitals) skip(gap time.Duration) {
	v.moved += gap
	for i := range v.ranks {
		v.ranks[i].moved += gap
	}
}

// addRanks does for each rank what addPage does for the server.
func (v *vitals) addRanks(before, p *Page) {
	if len(before.Ranks) != len(p.Ranks) || len(v.ranks) != len(p.Ranks) {
		v.ranks = make([]rankVitals, len(p.Ranks))
		for i := range v.ranks {
			v.ranks[i].moved = p.T
		}
		return
	}
	for i := range p.Ranks {
		r, a, b := &v.ranks[i], &before.Ranks[i], &p.Ranks[i]
		switch {
		case !b.Generation.OK || !hasRequests(&b.Gauges) || p.Gauges[GaugeAsleep].Or(0) > 0:
			r.moved = p.T
		case a.Generation != b.Generation || a.Prompt != b.Prompt || a.Steps != b.Steps || a.Gauges[GaugeKVUsage] != b.Gauges[GaugeKVUsage]:
			r.longest, r.moved = longerStep(r.longest, p.T-r.moved), p.T
		}
	}
}

// hasRequests reports whether requests are in the server or rank.
func hasRequests(g *[NumGauges]stat.Opt) bool { return g[GaugeRunning].Or(0)+g[GaugeWaiting].Or(0) > 0 }

// advanced reports whether anything that an engine step moves differs. The usage of the KV pool
// belongs to it: the first chunks of a long prompt generate no token.
func advanced(a, b *Page) bool {
	for _, c := range [...]Counter{CounterGenerationTokens, CounterPromptTokens, CounterPreemptions, CounterRequestSuccess, CounterSteps} {
		if a.Counters[c] != b.Counters[c] {
			return true
		}
	}
	return a.Hists[HistIterationTokens].Count != b.Hists[HistIterationTokens].Count || a.Gauges[GaugeKVUsage] != b.Gauges[GaugeKVUsage]
}

// close sets the vitals of a window that has a page.
func (v *vitals) close(win *Window, end time.Duration) {
	win.Stall, win.LongestStep = end-v.moved, v.longest
	win.HealthWhy = v.why
	if v.failed >= failedReadings {
		win.Dead = max(1, end-v.failedSince)
	}
	for i := range win.Ranks {
		if i < len(v.ranks) {
			win.Ranks[i].Stall, win.Ranks[i].LongestStep = end-v.ranks[i].moved, v.ranks[i].longest
		}
	}
	// Refusals by admission limits are intended, although they are 5xx answers.
	refused := win.Delta[CounterAdmissionRejections].Or(0)
	failed := max(0, win.Delta[CounterHTTP5xx].Or(0)-refused)
	win.Answers = recent(&v.answers, Endings{win.Delta[CounterHTTP2xx].Or(0) + failed, failed})
	win.Finishes = recent(&v.finishes, Endings{win.Delta[CounterRequestSuccess].Or(0), win.Delta[CounterRequestErrors].Or(0)})
}

// recent adds the requests that ended in a window to the latest ones, and returns the sum.
func recent(list *[]Endings, e Endings) (sum Endings) {
	if e.Ended > 0 {
		*list = append(*list, e)
		if n := len(*list); n > endingWindows {
			*list = append((*list)[:0], (*list)[n-endingWindows:]...)
		}
	}
	for _, e := range *list {
		sum = sum.plus(e)
	}
	return sum
}

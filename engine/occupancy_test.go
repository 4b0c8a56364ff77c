package engine

import (
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// synchronized returns a page of four slots whose requests begin and end together every 0.68 s, while the
// gauge shows none for the first 0.26 s of that, as on a real server whose prompts take a long step.
func synchronized(at time.Duration, preempted float64, parts bool) *Page {
	const stay, prefill = 0.68, 0.26
	rounds := math.Floor(at.Seconds() / stay)
	running := 4.0
	if at.Seconds()-rounds*stay < prefill {
		running = 0
	}
	p := pageAt(at, running, 19.5, 0.1, 64*rounds)
	p.Counters[CounterPreemptions] = stat.Some(preempted)
	finished := 4 * rounds
	if parts {
		p.Hists[HistPrefill] = stat.Histogram{Sum: prefill * finished, Count: finished, OK: true}
		p.Hists[HistDecode] = stat.Histogram{Sum: (stay - prefill) * finished, Count: finished, OK: true}
	} else {
		p.Hists[HistInference] = stat.Histogram{Sum: stay * finished, Count: finished, OK: true}
	}
	return p
}

func TestOccupiedSlotsOfShortRequests(t *testing.T) {
	for _, parts := range []bool{false, true} {
		windows := feed(ticks(121, poll, func(_ int, at time.Duration) *Page { return synchronized(at, 0, parts) })...)
		judged := 0
		for _, w := range windows {
			if w.Running.V > 3.2 {
				t.Errorf("the gauge shows %v of 4: it is not the case to be tested", w.Running.V)
			}
			if !w.Occupied.OK {
				continue
			}
			judged++
			if w.Occupied.V < 3.5 || w.Occupied.V > 4.5 {
				t.Errorf("at %v: %v slots occupied, want about 4", w.End(), w.Occupied.V)
			}
		}
		if windows[0].Occupied.OK || judged < len(windows)-4 {
			t.Errorf("%d of %d windows know the occupied slots, the first %v: want all once a few stays have passed", judged, len(windows), windows[0].Occupied)
		}
	}
}

func TestOccupiedSlotsAreUnknown(t *testing.T) {
	for name, page := range map[string]func(i int, at time.Duration) *Page{
		"without the histograms": func(_ int, at time.Duration) *Page {
			p := synchronized(at, 0, false)
			p.Hists[HistInference].OK = false
			return p
		},
		"with preempted requests, which keep their time but not their slot": func(i int, at time.Duration) *Page {
			return synchronized(at, float64(i), false)
		},
		"while nothing finishes": func(_ int, at time.Duration) *Page {
			p := synchronized(at, 0, false)
			p.Hists[HistInference] = stat.Histogram{Sum: 100, Count: 10, OK: true}
			return p
		},
		"while requests stay as long as the run": func(_ int, at time.Duration) *Page {
			p := synchronized(at, 0, false)
			p.Hists[HistInference] = stat.Histogram{Sum: 4 * at.Seconds(), Count: 4 * math.Floor(at.Seconds()/10), OK: true}
			return p
		},
	} {
		for _, w := range feed(ticks(121, poll, page)...) {
			if w.Occupied.OK {
				t.Errorf("%s: %v slots occupied at %v, want unknown", name, w.Occupied.V, w.End())
				break
			}
		}
	}
}

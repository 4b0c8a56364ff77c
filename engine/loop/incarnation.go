package loop

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// incarnation is the measurements of one start of the server.
type incarnation struct {
	windower     engine.Windower
	windows      []engine.Window // the latest windows, oldest first
	settingsRead bool            // the configuration that its pages report was recorded
	from         int             // index of the first window of the current phase
	waitingFor   string          // what the phase waits for, as of the latest window
	// begunAt is when the current measurement began, 0 if it has not.
	begunAt time.Duration
	live    *engine.Diagnosis // over its latest windows, nil before the first
	// condition is that of the latest window, conditionSince when it began, and illSince when it began to
	// be without doubt, if any.
	condition                engine.Condition
	conditionSince, illSince time.Duration
	host                     hostLoad // in the current phase
}

// hostLoad averages how busy the CPU cores were that the server may use.
type hostLoad struct{ wait, others stat.Average }

func (h *hostLoad) mean() verdict.Host {
	return verdict.Host{Wait: h.wait.Mean(), Others: h.others.Mean()}
}

// keepWindows is the number of windows to keep, however long they are.
const keepWindows = 12

// add appends a window and drops the windows that no measurement of this length needs.
func (l *incarnation) add(w engine.Window, length time.Duration) {
	l.windows = append(l.windows, w)
	reach := w.End() - length - 5*engine.WindowLength
	for len(l.windows) > keepWindows && l.windows[0].Start < reach {
		l.windows[0] = engine.Window{}
		l.windows = l.windows[1:]
	}
}

// openIndex returns the index of the open window.
func (l *incarnation) openIndex() int { return l.windower.Index }

// startPhase lets the current phase begin with the open window.
func (l *incarnation) startPhase() { l.from, l.waitingFor, l.begunAt = l.openIndex(), "", 0 }

// measure returns the windows of a complete measurement; ok is false while it is incomplete.
func (l *incarnation) measure(length time.Duration) (part []engine.Window, ok bool) {
	part, ok, l.waitingFor = latestStretch(l.windowsFrom(l.from), length)
	if l.begunAt = 0; len(part) > 0 {
		l.begunAt = part[0].Start
	}
	return part, ok
}

// windowsFrom returns the windows from an index on.
func (l *incarnation) windowsFrom(index int) []engine.Window {
	for i := range l.windows {
		if l.windows[i].Index >= index {
			return l.windows[i:]
		}
	}
	return nil
}

// discardWindows drops all windows, after a gap in the readings that later windows cannot
// bridge.
func (l *incarnation) discardWindows() {
	l.windower.Discard()
	l.windows = nil
	l.startPhase()
}

// latestWindows returns the last windows that span a length, and at least as many as a measurement
// needs if there are that many, because windows of slow pages are long.
func latestWindows(windows []engine.Window, length time.Duration) []engine.Window {
	if len(windows) == 0 {
		return nil
	}
	first := len(windows) - 1
	for first > 0 && (windowsEnd(windows)-windows[first].Start < length-engine.WindowSlack || len(windows)-first < measureWindows) {
		first--
	}
	return windows[first:]
}

// span returns the time from the start of the first window to the end of the last.
func span(windows []engine.Window) time.Duration {
	if len(windows) == 0 {
		return 0
	}
	return windowsEnd(windows) - windows[0].Start
}

// latestStretch returns the latest windows that form a measurement of this length under load. If
// there are none, ok is false, and why states what is missing other than time.
func latestStretch(windows []engine.Window, length time.Duration) (part []engine.Window, ok bool, why string) {
	under := firstLoaded(windows)
	if under < 0 {
		return nil, false, idleReason(windows)
	}
	part = latestWindows(windows[under:], length)
	why = missingToJudge(part)
	return part, why == "" && len(part) >= measureWindows && span(part) >= length-engine.WindowSlack, why
}

// firstLoaded returns the index of the first window with load, or -1.
func firstLoaded(windows []engine.Window) int {
	for i := range windows {
		if engine.Loaded(windows[i : i+1]) {
			return i
		}
	}
	return -1
}

// idleReason returns why nothing is measured while no window has load.
func idleReason(windows []engine.Window) string {
	if len(windows) == 0 {
		return ""
	}
	for i := range windows {
		if windows[i].Evaluable {
			return waitsForLoad
		}
	}
	return "nothing can be judged: " + windows[len(windows)-1].Why
}

// missingToJudge returns what the windows lack to be judged, or "".
func missingToJudge(windows []engine.Window) string {
	judged, under, why := 0, 0, ""
	for i := range windows {
		if w := &windows[i]; w.Evaluable {
			judged++
		} else {
			why = w.Why
		}
		if engine.Loaded(windows[i : i+1]) {
			under++
		}
	}
	n := len(windows)
	switch {
	case n == 0:
		return waitsForLoad
	case 2*judged < n:
		return "nothing can be judged: " + why
	case !engine.Loaded(windows[n-1:]) && 3*under < n:
		return waitsForLoad
	case n >= engine.LeastWindows && (judged < engine.LeastWindows || under < engine.LeastWindows):
		return "waiting for more load"
	}
	return ""
}

// windowsEnd returns the end of the last window.
func windowsEnd(windows []engine.Window) time.Duration { return windows[len(windows)-1].End() }

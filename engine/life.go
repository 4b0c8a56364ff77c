package engine

import "time"

// life is what was measured of one run of the server.
type life struct {
	windower Windower
	windows  []Window // the latest, oldest first
	heard    bool     // what its pages tell of the configuration was taken in
	from     int      // index of the first window that the present phase looks at
	waits    string   // what the phase waits for, as of the latest window
	// begun is when the measurement under way began, 0 not yet.
	begun time.Duration
}

// keepWindows is how many windows are kept however long they are.
const keepWindows = 12

// add takes in a window and lets go of those that no measurement of this length
// reaches back to.
func (l *life) add(w Window, length time.Duration) {
	l.windows = append(l.windows, w)
	reach := w.Start + w.Duration - length - 5*WindowLength
	for len(l.windows) > keepWindows && l.windows[0].Start < reach {
		l.windows[0] = Window{}
		l.windows = l.windows[1:]
	}
}

// next is the index of the window that is still open.
func (l *life) next() int { return l.windower.index }

// look makes the present phase begin with the window that is still open.
func (l *life) look() { l.from, l.waits, l.begun = l.next(), "", 0 }

// measure returns the windows of a finished measurement; ok is false while it is
// not finished.
func (l *life) measure(length time.Duration) (part []Window, ok bool) {
	part, ok, l.waits = stretch(l.since(l.from), length)
	if l.begun = 0; len(part) > 0 {
		l.begun = part[0].Start
	}
	return part, ok
}

// since returns the windows from an index on.
func (l *life) since(index int) []Window {
	for i := range l.windows {
		if l.windows[i].Index >= index {
			return l.windows[i:]
		}
	}
	return nil
}

// cut lets go of all windows: nothing was read for so long that what comes does
// not join on to them.
func (l *life) cut() {
	l.windower = Windower{index: l.windower.index + 1}
	l.windows = nil
	l.look()
}

// latest returns the windows at the end that span a length, and at least as many
// as a measurement needs where there are: windows of slow pages are long.
func latest(windows []Window, length time.Duration) []Window {
	if len(windows) == 0 {
		return nil
	}
	last := &windows[len(windows)-1]
	end := last.Start + last.Duration
	first := len(windows) - 1
	for first > 0 && (end-windows[first].Start < length-windowSlack || len(windows)-first < measureWindows) {
		first--
	}
	return windows[first:]
}

// span is the time from the beginning of the first window to the end of the last.
func span(windows []Window) time.Duration {
	if len(windows) == 0 {
		return 0
	}
	last := &windows[len(windows)-1]
	return last.Start + last.Duration - windows[0].Start
}

// stretch returns the latest windows that make up a measurement of this length
// under load. ok is false while they do not, and why says what they lack where it
// is not time alone.
func stretch(windows []Window, length time.Duration) (part []Window, ok bool, why string) {
	under := firstLoaded(windows)
	if under < 0 {
		return nil, false, idle(windows)
	}
	part = latest(windows[under:], length)
	why = lacks(part)
	return part, why == "" && len(part) >= measureWindows && span(part) >= length-windowSlack, why
}

// firstLoaded is the index of the first window with load, -1 without one.
func firstLoaded(windows []Window) int {
	for i := range windows {
		if loaded(windows[i : i+1]) {
			return i
		}
	}
	return -1
}

// idle says why nothing is measured while no window has load.
func idle(windows []Window) string {
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

// lacks says what windows lack to be judged, "" nothing.
func lacks(windows []Window) string {
	judged, under, why := 0, 0, ""
	for i := range windows {
		if w := &windows[i]; w.Evaluable {
			judged++
		} else {
			why = w.Why
		}
		if loaded(windows[i : i+1]) {
			under++
		}
	}
	n := len(windows)
	switch {
	case 2*judged < n:
		return "nothing can be judged: " + why
	case !loaded(windows[n-1:]) && 3*under < n:
		return waitsForLoad
	case n >= leastWindows && (judged < leastWindows || under < leastWindows):
		return "waiting for more load"
	}
	return ""
}

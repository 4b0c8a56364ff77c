package engine

import (
	"slices"
	"time"
)

// drop is a fall of the output tokens counted that was taken for a restart.
type drop struct{ by, before float64 }

const (
	// keepStarts is how many start times are remembered.
	keepStarts = 16
	// backWithin is how far two pages may be apart for a jump of the counters between
	// them to be another server's, and no work; backShare is the share of an earlier
	// fall that the jump has to make up for, and backLeast more output tokens than a
	// server generates in that time.
	backWithin = time.Second
	backShare  = 0.5
	backLeast  = 50_000
)

// tellsRun says that a page shows which run of the server it is of: one that has
// just begun to answer may not have any of its metrics yet.
func tellsRun(p *Page) bool {
	return p.StartTime.OK || p.Created.OK || p.Counters[CounterGenerationTokens].OK || p.Counters[CounterPromptTokens].OK
}

// compareRuns finds out whether a page is of another run than the one before.
func (l *Loop) compareRuns(before, page *Page) {
	w := &l.watch
	if w.returning(before, page) || w.jumpedBack(before, page) {
		l.severalAnswer()
		return
	}
	if !Restarted(before, page) || w.several && l.server.Identity == "" {
		return
	}
	if a, b := generated(before), generated(page); a-b >= backLeast && !(before.StartTime.OK && page.StartTime.OK) {
		w.drop = drop{by: a - b, before: a}
	}
	l.restarted(before, page)
}

// generated is how many output tokens a page counts.
func generated(p *Page) float64 { return p.Counters[CounterGenerationTokens].Or(0) }

// sameStart says that two pages are certainly of one run.
func sameStart(a, b *Page) bool {
	return a.StartTime.OK && b.StartTime.OK && !Restarted(a, b)
}

// fell says that a counter of tokens is lower than it was.
func fell(before, page *Page) bool {
	for _, c := range [...]Counter{CounterGenerationTokens, CounterPromptTokens} {
		if a, b := before.Counters[c], page.Counters[c]; a.OK && b.OK && b.V < a.V {
			return true
		}
	}
	return false
}

// noteStart remembers the start times seen.
func (w *watch) noteStart(p *Page) {
	if !p.StartTime.OK || slices.Contains(w.starts, p.StartTime.V) {
		return
	}
	if len(w.starts) == keepStarts {
		w.starts = slices.Delete(w.starts, 0, 1)
	}
	w.starts = append(w.starts, p.StartTime.V)
}

// returning says that a page is of a run that another one had followed: no server
// comes back to life, several answer behind this address.
func (w *watch) returning(before, page *Page) bool {
	return page.StartTime.OK && before.StartTime.OK && page.StartTime.V != before.StartTime.V && slices.Contains(w.starts, page.StartTime.V)
}

// jumpedBack says that counters which had fallen are at once where they were: no
// server makes up in a moment for the work of a life.
func (w *watch) jumpedBack(before, page *Page) bool {
	a, b := generated(before), generated(page)
	return w.drop.by > 0 && page.T-before.T <= backWithin && b >= w.drop.before && b-a >= backShare*w.drop.by
}

const severalServers = "several servers, or API servers, answer behind this address: give each one's own"

// severalAnswer notes that pages of several servers come in turn. A restart that
// the pages alone showed was none.
func (l *Loop) severalAnswer() {
	w := &l.watch
	w.drop = drop{}
	if w.several {
		return
	}
	w.several = true
	l.server.notes = append(l.server.notes, severalServers)
	l.write(LevelWarn, "", severalServers)
	phase := l.seen.Phase
	if l.server.Identity == "" && l.trial.open && (phase == PhaseSettling || phase == PhaseMeasuring) {
		l.end(IterationBroken)
		l.trial.off = len(l.trial.made) > 0
		l.toWaiting()
	}
}

// restarted notes that the page is of another run than the one before.
func (l *Loop) restarted(before, page *Page) {
	w := &l.watch
	if w.attaching && w.restarted {
		w.again = true
	}
	w.restarted = true
	w.moved = w.moved || before.StartTime.OK && page.StartTime.OK
	w.fell = w.fell || fell(before, page)
	if l.seen.Phase == PhaseApplying {
		return
	}
	if l.seen.Phase != PhaseDown {
		l.was, l.wasSince, l.downAt = l.seen.Phase, l.seen.Since, l.now
		l.mark(MarkDown, "restarted")
		l.tell(LevelWarn, Event{Kind: EventServerDown, Iteration: l.iteration(), Text: "the server was restarted between two readings"})
		l.enter(PhaseDown)
	}
	l.attach(0)
}

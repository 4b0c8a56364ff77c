package loop

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// counterFall is a decrease of the output token counter that was taken for a restart.
type counterFall struct{ by, before float64 }

const (
	// keepStarts is the number of start times to remember.
	keepStarts = 16
	// backWithin is the largest time between two pages for a jump of the counters between them
	// to mean another server rather than work. backShare is the share of the earlier decrease
	// that the jump must make up for, and backLeast is more output tokens than a server
	// generates in that time.
	backWithin = time.Second
	backShare  = 0.5
	backLeast  = 50_000
)

// identifiesRun reports whether a page identifies the start of the server. A server that has just
// begun to answer may not have any of the metrics yet.
func identifiesRun(p *engine.Page) bool {
	return p.StartTime.OK || p.Created.OK || p.Counters[engine.CounterGenerationTokens].OK || p.Counters[engine.CounterPromptTokens].OK
}

// compareRuns checks whether a page belongs to a different start than the page before.
func (c *connection) compareRuns(before, page *engine.Page) {
	w := &c.watch
	if w.showsEarlierStart(before, page) || w.jumpedBack(before, page) {
		c.noteSeveralServers()
		return
	}
	if !engine.Restarted(before, page) || w.severalServers && c.server.Identity == "" {
		return
	}
	if a, b := generated(before), generated(page); a-b >= backLeast && !(before.StartTime.OK && page.StartTime.OK) {
		w.fall = counterFall{by: a - b, before: a}
	}
	c.noteRestart(before, page)
}

// generated returns the output token counter of a page.
func generated(p *engine.Page) float64 { return p.Counters[engine.CounterGenerationTokens].Or(0) }

// sameStart reports whether two pages certainly belong to one start.
func sameStart(a, b *engine.Page) bool {
	return a.StartTime.OK && b.StartTime.OK && !engine.Restarted(a, b)
}

// counterFell reports whether a token counter decreased.
func counterFell(before, page *engine.Page) bool {
	for _, c := range [...]engine.Counter{engine.CounterGenerationTokens, engine.CounterPromptTokens} {
		if a, b := before.Counters[c], page.Counters[c]; a.OK && b.OK && b.V < a.V {
			return true
		}
	}
	return false
}

// noteStart records the start time of a page.
func (w *watch) noteStart(p *engine.Page) {
	if !p.StartTime.OK || slices.Contains(w.starts, p.StartTime.V) {
		return
	}
	if len(w.starts) == keepStarts {
		w.starts = slices.Delete(w.starts, 0, 1)
	}
	w.starts = append(w.starts, p.StartTime.V)
}

// showsEarlierStart reports whether a page belongs to an earlier start than the page before. No server
// does that, so several servers answer at this address.
func (w *watch) showsEarlierStart(before, page *engine.Page) bool {
	return page.StartTime.OK && before.StartTime.OK && page.StartTime.V != before.StartTime.V && slices.Contains(w.starts, page.StartTime.V)
}

// jumpedBack reports whether counters that had decreased are suddenly back at their old values:
// no server generates that many tokens in that time.
func (w *watch) jumpedBack(before, page *engine.Page) bool {
	a, b := generated(before), generated(page)
	return w.fall.by > 0 && page.T-before.T <= backWithin && b >= w.fall.before && b-a >= backShare*w.fall.by
}

const severalServers = "several servers, or API servers, answer at this address: pass the address of one"

// noteSeveralServers records that pages of several servers alternate, so that a restart inferred from
// pages alone was none.
func (c *connection) noteSeveralServers() {
	w := &c.watch
	w.fall = counterFall{}
	if w.severalServers {
		return
	}
	w.severalServers = true
	c.server.notes = append(c.server.notes, severalServers)
	c.writeEntry(LevelWarn, "", severalServers)
	phase := c.phase
	if c.server.Identity == "" && c.trials.open && (phase == PhaseSettling || phase == PhaseMeasuring) {
		c.trials.endIteration(IterationBroken)
		c.notKept = len(c.ownInPlace) > 0
		c.trials.toWaiting()
	}
}

// noteRestart records that the page belongs to a different start than the page before.
func (c *connection) noteRestart(before, page *engine.Page) {
	w := &c.watch
	if w.attaching && w.restarted {
		w.reattach = true
	}
	w.restarted = true
	w.startTimeMoved = w.startTimeMoved || before.StartTime.OK && page.StartTime.OK
	w.counterFell = w.counterFell || counterFell(before, page)
	if c.phase == PhaseApplying {
		return
	}
	if c.phase != PhaseDown {
		c.downFrom, c.downFromSince, c.downAt = c.phase, c.since, c.now
		c.addMark(MarkDown, "restarted")
		c.emit(LevelWarn, Event{Kind: EventServerDown, Iteration: c.iteration(), Text: "the server was restarted between two polls"})
		c.enterPhase(PhaseDown)
	}
	c.attach(0)
}

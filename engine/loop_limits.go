package engine

import (
	"fmt"
	"time"
)

// limits are the plan's with what is used up.
func (l *Loop) limits() Limits {
	m := l.plan.Limits
	m.UsedStarts, m.UsedOutages = l.pilot.used.UsedStarts, l.pilot.used.UsedOutages
	return m
}

// exhausted says which limit keeps another change from being made, "" none. A
// change is begun only if a restart for its way back is left, and the time for both.
func (l *Loop) exhausted() string {
	m, used := &l.plan.Limits, &l.pilot.used
	if m.Restarts > 0 && used.UsedStarts+2 > m.Restarts {
		return fmt.Sprintf("no restart is left for another change and its way back: %d of %d were made", used.UsedStarts, m.Restarts)
	}
	if m.Downtime <= 0 || l.startAllowed() >= l.restartReckoned() {
		return ""
	}
	takes := "no vLLM starts within " + SpellTime(leastStart)
	if known := l.restartKnown(); known > 0 {
		takes = "restarts of this server took up to " + SpellTime(known) + " until it ran again"
	}
	return fmt.Sprintf("no downtime is left for a change and its way back: %s of %v were used, and %s", SpellTime(used.UsedOutages), m.Downtime, takes)
}

// leastStart is a time in which no vLLM starts: importing it alone takes longer.
const leastStart = 5 * time.Second

// restartKnown is how long the server does not answer about a restart: the longest
// time of this run, starts that failed with their way back among them, or of earlier
// runs. 0 where nothing is known.
func (l *Loop) restartKnown() time.Duration { return max(l.plan.Start, l.pilot.longest) }

// restartReckoned is what a restart is taken to need at least.
func (l *Loop) restartReckoned() time.Duration {
	if known := l.restartKnown(); known > 0 {
		return known
	}
	return leastStart
}

// startAllowed is how long the server may be down until a change has come up, so that
// its way back still fits into the downtime: half of what is left where nothing is
// known of how long a start takes. It is negative where nothing is left, and 0 without
// a limit.
func (l *Loop) startAllowed() time.Duration {
	m := &l.plan.Limits
	if m.Downtime <= 0 {
		return 0
	}
	left := m.Downtime - l.pilot.used.UsedOutages
	if known := l.restartKnown(); known > 0 {
		return left - known
	}
	return left / 2
}

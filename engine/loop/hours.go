package loop

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// longestChange returns the longest expected duration of a change: its canary, its start, the longest
// measurement, and the revert.
func (b *budget) longestChange() time.Duration {
	longest := b.longestWithoutCanary()
	if b.plan.Canary {
		longest += b.assumedDowntime() + b.plan.Longest
	}
	return longest
}

func (b *budget) longestWithoutCanary() time.Duration {
	return 2*b.assumedDowntime() + SettleMost + b.plan.Longest
}

// changeFitsHours reports whether a complete change still fits into the hours.
func (b *budget) changeFitsHours() bool { return b.fitsHours(b.longestChange()) }

// rolloutFitsHours reports whether a change still does whose canary is over.
func (b *budget) rolloutFitsHours() bool { return b.fitsHours(b.longestWithoutCanary()) }

func (b *budget) fitsHours(longest time.Duration) bool {
	m := &b.plan.Limits
	return m.From == m.To || m.allowsRestart(b.timeOfDay()) && m.untilClose(b.timeOfDay()) >= longest
}

// hoursTooShort returns why no change ever fits into the hours, or "".
func (b *budget) hoursTooShort() string {
	m := &b.plan.Limits
	if m.From == m.To || m.untilClose(m.From) >= b.longestChange() {
		return ""
	}
	return fmt.Sprintf("the hours from %s to %s are too short for a change: its start, its measurement and a revert take up to %s", clock(m.From), clock(m.To), figure.Elapsed(b.longestChange()))
}

// awaitHours waits until a complete change fits into the hours. It first reverts an unproven
// change, which must not stay in place that long.
func (p *autopilot) awaitHours() {
	m := &p.plan.Limits
	if p.ownChangeInPlace() {
		p.trials.revertBecause("the remaining hours are too short for another change, and an unproven change does not stay until " + clock(m.From))
		return
	}
	wait := m.untilOpen(p.budget.timeOfDay())
	text := "waiting for " + clock(m.From) + ": restarts are allowed between " + clock(m.From) + " and " + clock(m.To)
	if m.allowsRestart(p.budget.timeOfDay()) {
		text += ", and the remaining time is too short for a change, its measurement and a revert"
	}
	p.waitFor(p.now+wait, wait, text+p.ending.inPlace())
}

// ownChangeInPlace reports whether a change by rooftop is in place that is not kept and that
// rooftop can revert. While the autopilot is paused, the decision is left to the person.
func (p *autopilot) ownChangeInPlace() bool {
	return p.plan.Auto && !p.held && p.server.CanApply && p.changeInPlace() && len(p.ownInPlace) > 0
}

// hoursEnded reports whether the hours ended while an unproven change by rooftop is in place.
func (p *autopilot) hoursEnded() bool {
	switch p.phase {
	case PhaseWaiting, PhaseSettling, PhaseMeasuring, PhaseWorse:
		return p.ownChangeInPlace() && !p.plan.Limits.allowsRestart(p.budget.timeOfDay())
	}
	return false
}

// revertAfterHours reverts the change in place when the hours end. It may be tried again.
func (p *autopilot) revertAfterHours() {
	if p.trials.open {
		p.trials.endIteration(IterationBroken)
	}
	p.trials.revertBecause("it is past " + clock(p.plan.Limits.To) + ", and an unproven change does not stay until " + clock(p.plan.Limits.From))
}

// timeOfDay returns the current time of day.
func (b *budget) timeOfDay() time.Duration {
	t := b.plan.Started.Add(b.now)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
}

const day = 24 * time.Hour

// allowsRestart reports whether the server may be restarted at a time of day.
func (m *Limits) allowsRestart(at time.Duration) bool {
	switch {
	case m.From == m.To:
		return true
	case m.From < m.To:
		return at >= m.From && at < m.To
	}
	return at >= m.From || at < m.To
}

// untilOpen returns the time from a time of day until restarts are allowed.
func (m *Limits) untilOpen(at time.Duration) time.Duration {
	return ((m.From-at)%day + day) % day
}

// untilClose returns the time from a time of day until restarts are no longer allowed.
func (m *Limits) untilClose(at time.Duration) time.Duration {
	return ((m.To-at)%day + day) % day
}

// clock formats a time of day.
func clock(at time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(at.Hours())%24, int(at.Minutes())%60)
}

package engine

import (
	"fmt"
	"time"
)

// changeTakes is how long a change may take at most, as far as is known: its start, the
// longest measurement, and the way back.
func (l *Loop) changeTakes() time.Duration {
	return 2*l.restartReckoned() + settleMost + l.plan.Longest
}

// hoursHold says that the hours still hold a whole change.
func (l *Loop) hoursHold() bool {
	m := &l.plan.Limits
	return m.From == m.To || m.open(l.wall()) && m.closes(l.wall()) >= l.changeTakes()
}

// tooShort says why the hours never hold a change, "" where they do.
func (l *Loop) tooShort() string {
	m := &l.plan.Limits
	if m.From == m.To || m.closes(m.From) >= l.changeTakes() {
		return ""
	}
	return fmt.Sprintf("from %s to %s there is no time for a change: its start, its measurement and its way back take up to %s", clock(m.From), clock(m.To), SpellTime(l.changeTakes()))
}

// awaitHours waits until the hours hold a whole change. What is not proven does not
// stay in place that long.
func (l *Loop) awaitHours() {
	m := &l.plan.Limits
	if l.ownInPlace() {
		l.goBackFor("what is left of the hours holds no other change, and what is not proven does not stay until " + clock(m.From))
		return
	}
	wait := m.opens(l.wall())
	text := "waiting for " + clock(m.From) + ": restarts are allowed between " + clock(m.From) + " and " + clock(m.To)
	if m.open(l.wall()) {
		text += ", and what is left of that holds no change with its measurement and its way back"
	}
	l.hesitate(l.now+wait, wait, text+l.inPlace())
}

// ownInPlace says that a change which rooftop made, and which is not kept, is in place,
// and that rooftop can take it back.
func (l *Loop) ownInPlace() bool {
	return l.plan.Auto && l.server.hands && l.off() && len(l.trial.made) > 0
}

// overtaken says that the hours ended while a change of rooftop's own, which is not
// proven, is in place. Whoever holds the autopilot decides alone.
func (l *Loop) overtaken() bool {
	switch l.seen.Phase {
	case PhaseWaiting, PhaseSettling, PhaseMeasuring, PhaseWorse:
		return !l.seen.Held && l.ownInPlace() && !l.plan.Limits.open(l.wall())
	}
	return false
}

// tooLate puts back what is in place when the hours end. It may be tried again.
func (l *Loop) tooLate() {
	if l.trial.open {
		l.end(IterationBroken)
	}
	l.goBackFor("it is past " + clock(l.plan.Limits.To) + ", and what is not proven does not stay until " + clock(l.plan.Limits.From))
}

// wall is the present time of day.
func (l *Loop) wall() time.Duration {
	t := l.plan.Started.Add(l.now)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
}

const day = 24 * time.Hour

// open says whether the server may be restarted at a time of day.
func (m *Limits) open(at time.Duration) bool {
	switch {
	case m.From == m.To:
		return true
	case m.From < m.To:
		return at >= m.From && at < m.To
	}
	return at >= m.From || at < m.To
}

// opens is how long it is until it may.
func (m *Limits) opens(at time.Duration) time.Duration {
	return ((m.From-at)%day + day) % day
}

// closes is how long it is until it may no more.
func (m *Limits) closes(at time.Duration) time.Duration {
	return ((m.To-at)%day + day) % day
}

// clock spells a time of day.
func clock(at time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(at.Hours())%24, int(at.Minutes())%60)
}

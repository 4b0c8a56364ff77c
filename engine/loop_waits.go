package engine

import "cmp"

// What each phase waits for, in words.

func (l *Loop) waitsForServer() string {
	return "looking for a server"
}

func (l *Loop) waitsForBaseline() string {
	return cmp.Or(l.life.waits, "measuring the baseline")
}

func (l *Loop) waitsForChange() string {
	r := l.seen.Advice
	switch {
	case l.seen.Held && l.pilot.deed != nil:
		return "held: " + l.seen.Pending.Text + " waits until autopilot may go on"
	case l.pilot.deed != nil:
		return "about to change the server: " + l.seen.Pending.Text
	case l.pilot.waits != "":
		return l.pilot.waits + " (" + SpellTime(l.pilot.until-l.now) + " at most)"
	case r == nil:
		return "watching"
	case r.Kind == KindFlag:
		return "waiting for a restart with the recommended change"
	}
	return "watching; the recommendation is not a flag of this server"
}

func (l *Loop) waitsForApply() string {
	if l.trial.revert {
		return "restarting the server with the settings of before"
	}
	return "restarting the server with the change"
}

func (l *Loop) waitsForReturn() string {
	if l.watch.restarted {
		return "restarted: reading how it was started"
	}
	return "waiting for the server to answer again"
}

func (l *Loop) waitsToSettle() string {
	return cmp.Or(l.life.waits, "waiting for the load to be steady")
}

func (l *Loop) waitsForMeasure() string {
	return cmp.Or(l.life.waits, "measuring")
}

func (l *Loop) waitsForAnswer() string { return "waiting for an answer: revert or continue" }

func (l *Loop) waitsForRevert() string {
	if l.kept.command == "" {
		return "restart the server as it was started before"
	}
	return "restart the server as before: " + l.kept.command
}

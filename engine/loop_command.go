package engine

import "fmt"

// command is one thing that a person can ask for.
type command struct {
	can func(*Loop) string // why not, "" where it does something now
	do  func(*Loop)
}

func commands() [NumCommands]command {
	return [NumCommands]command{
		CommandApply:     {(*Loop).cannotApply, (*Loop).applyAdvice},
		CommandRevert:    {(*Loop).cannotRevert, (*Loop).goBack},
		CommandContinue:  {(*Loop).cannotContinue, (*Loop).carryOn},
		CommandSkip:      {(*Loop).cannotSkip, (*Loop).skip},
		CommandRemeasure: {(*Loop).cannotRemeasure, (*Loop).remeasure},
		CommandPause:     {(*Loop).cannotPause, (*Loop).pause},
		CommandHold:      {(*Loop).cannotHold, (*Loop).hold},
		CommandQuit:      {func(*Loop) string { return "" }, (*Loop).quit},
	}
}

const (
	whyOver   = "The run is over."
	whyPaused = "Reading is paused: go on first."
	whyNoAim  = "No server is attached yet."
)

// available says which commands do something now.
func (l *Loop) available() [NumCommands]Availability {
	var out [NumCommands]Availability
	for c := range out {
		why := l.cannot(Command(c))
		out[c] = Availability{OK: why == "", Why: why}
	}
	return out
}

func (l *Loop) cannot(c Command) string {
	switch {
	case c >= NumCommands:
		return "There is no such command."
	case l.seen.Phase == PhaseDone:
		return whyOver
	case l.seen.Paused && c != CommandPause && c != CommandQuit:
		return whyPaused
	case !l.seen.Attached && c != CommandQuit:
		return whyNoAim
	}
	return l.commands[c].can(l)
}

func (l *Loop) pressed(c Command) {
	if why := l.cannot(c); why != "" {
		l.write(LevelWarn, "", why)
		return
	}
	l.commands[c].do(l)
}

// busy says why nothing can be changed in the present phase.
func (l *Loop) busy() string {
	switch l.seen.Phase {
	case PhaseAttach:
		return whyNoAim
	case PhaseBaseline:
		return "The baseline is still being measured."
	case PhaseApplying:
		return "A change is being made."
	case PhaseDown:
		return "The server does not answer."
	case PhaseSettling:
		return "The server is settling after its restart."
	case PhaseMeasuring:
		return "What the change brought is being measured."
	case PhaseWorse:
		return "First answer: revert or continue?"
	case PhaseReverting:
		return "The old settings are to be put back first."
	}
	return ""
}

func (l *Loop) cannotApply() string {
	if l.seen.Phase != PhaseWaiting {
		return l.busy()
	}
	r := l.seen.Advice
	switch {
	case r == nil:
		return "There is no recommendation."
	case !r.Changeable():
		return fmt.Sprintf("This is for the %s and no flag of the server: nothing can be applied here.", r.Kind)
	case !l.server.hands:
		if l.server.noHands != "" {
			return l.server.noHands
		}
		return "rooftop cannot restart this server: start it with the command shown."
	case l.plan.Auto && l.exhausted() != "":
		return "A limit is reached: " + l.exhausted() + "."
	}
	return ""
}

// applyAdvice has the server run with the recommended change made to the kept
// configuration: what gained nothing is taken back with it.
func (l *Loop) applyAdvice() {
	r := l.seen.Advice
	changes := r.changes()
	it := Iteration{At: l.now, Noticed: AsRecommended, Changes: changes, Command: r.Launch,
		Predicted: r.Predicted, Before: l.seen.Baseline, Text: listed(changes) + ", applied by rooftop"}
	l.trial = trial{open: true, before: l.seen.Baseline, side: l.base.side(), earlier: l.earlier(changes), ran: l.trial.ran, ranLife: l.trial.ranLife, off: l.trial.off, made: l.trial.made, advice: r}
	n := l.add(it)
	l.shown = n
	l.mark(MarkChange, it.Text)
	l.rounds++
	within := l.startAllowed()
	text := "applying " + listed(changes) + ": the server is restarted with it"
	if within > 0 {
		text += ", and has " + SpellTime(within) + " for that: the rest of the downtime is for the way back"
	}
	l.tell(LevelInfo, Event{Kind: EventApplying, Iteration: n, Advice: r, Change: changes[0], Command: r.Launch, Text: text})
	l.apply(Apply{Changes: changes, Iteration: n, Predicted: r.Predicted, Within: within})
}

func (l *Loop) cannotRevert() string {
	if l.server.hands && !l.restartLeft() {
		return "No restart is left."
	}
	switch l.seen.Phase {
	case PhaseWorse:
		return ""
	case PhaseWaiting:
		if l.off() {
			return ""
		}
		return "Nothing is to be reverted: what runs is what is kept."
	case PhaseDown:
		if l.trial.failed && l.server.hands {
			return ""
		}
		return l.busy()
	case PhaseReverting:
		return "It is being reverted: the restart with the old settings is waited for."
	}
	return l.busy()
}

// goBack puts the kept configuration back: by rooftop's own hands, or by asking
// for it.
func (l *Loop) goBack() { l.goBackFor("") }

// goBackFor puts it back and says why, "" where that was said.
func (l *Loop) goBackFor(why string) {
	changes := changesFrom(l.running, l.kept)
	if l.trial.failed || len(changes) == 0 {
		changes = l.lastChanges()
	}
	if !l.server.hands || len(changes) == 0 { // what is not known cannot be undone by a flag
		l.enter(PhaseReverting)
		l.write(LevelInfo, "", l.waitsForRevert())
		return
	}
	if !l.restartLeft() {
		l.finish(exitError, "no restart is left to put back what is kept: "+listed(inverses(changes))+" is in place")
		return
	}
	l.trial.open = false
	if why == "" && l.plan.Auto && !l.plan.Limits.open(l.wall()) {
		why = "a way back is made outside the hours too"
	}
	text := "putting back: " + listed(changes)
	if why != "" {
		text += " (" + why + ")"
	}
	l.tell(LevelInfo, Event{Kind: EventApplying, Iteration: l.iteration(), Change: firstOf(changes), Command: l.kept.command, Text: text})
	l.apply(Apply{Changes: changes, Revert: true, Iteration: l.iteration()})
}

func firstOf(changes []Change) Change {
	if len(changes) == 0 {
		return Change{}
	}
	return changes[0]
}

func (l *Loop) cannotContinue() string {
	switch l.seen.Phase {
	case PhaseWorse, PhaseReverting, PhaseWaiting:
	default:
		return l.busy()
	}
	switch {
	case !l.off() && l.seen.Phase == PhaseWaiting:
		return "What runs is the baseline already."
	case l.trial.ran == nil:
		return "What runs was not measured."
	}
	return ""
}

// carryOn takes what runs as the new baseline.
func (l *Loop) carryOn() {
	after := l.trial.ran
	if l.iterations[len(l.iterations)-1].Noticed == SameSettings {
		l.trial.open = false // its measurement of noise stands
	} else {
		l.end(IterationContinued)
	}
	l.accept(after, nil)
	l.tell(LevelInfo, Event{Kind: EventContinued, Iteration: l.iteration(), Change: l.latestChange(), Command: l.kept.command, Text: "continued: what runs is the new baseline"})
	l.toWaiting()
}

func (l *Loop) cannotSkip() string {
	switch {
	case l.seen.Phase != PhaseWaiting:
		return l.busy()
	case l.seen.Advice == nil:
		return "There is no recommendation to skip."
	}
	return ""
}

func (l *Loop) skip() {
	r := l.seen.Advice
	l.advice.skipped = append(l.advice.skipped, attempted(key(r.Finding, &r.Fix), l.seen.Baseline))
	l.write(LevelInfo, "", "skipped: "+r.Command)
	l.advise(l.choose(l.seen.Baseline))
}

func (l *Loop) cannotRemeasure() string {
	switch l.seen.Phase {
	case PhaseBaseline, PhaseWaiting, PhaseSettling, PhaseMeasuring, PhaseWorse:
		return ""
	}
	return l.busy()
}

// remeasure measures what runs anew: as the baseline, or as what a change
// brought.
func (l *Loop) remeasure() {
	l.write(LevelInfo, "", "measured anew")
	trial := l.trial.open || l.seen.Phase == PhaseWorse || l.seen.Phase == PhaseWaiting && l.off()
	if !trial {
		l.startBaseline()
		return
	}
	l.trial.open, l.trial.unsteady = true, ""
	l.change(func(it *Iteration) {
		it.End, it.Delta, it.After, it.Load = IterationOpen, nil, nil, nil
		if it.Settled == 0 {
			it.Settled = l.now
		}
	})
	l.seen.Advice = nil
	l.measureTrial()
}

func (l *Loop) cannotPause() string {
	switch {
	case l.seen.Paused:
		return ""
	case l.seen.Phase == PhaseApplying, l.seen.Phase == PhaseDown, l.seen.Phase == PhaseAttach:
		return l.busy()
	}
	return ""
}

// pause stops and resumes reading. What comes after a pause does not join on to
// what was measured before it.
func (l *Loop) pause() {
	l.seen.Paused = !l.seen.Paused
	text := "paused: the server is not read"
	if !l.seen.Paused {
		text = "reading again"
		pause := l.now - l.paused
		l.seen.Since += pause
		if l.trial.loaded > 0 {
			l.trial.loaded += pause
		}
		l.life.cut()
		l.renewal.from = l.life.next()
	}
	l.paused = l.now
	l.tell(LevelInfo, Event{Kind: EventPaused, Iteration: l.iteration(), Text: text})
}

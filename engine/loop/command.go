package loop

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
)

// command describes the availability of a command.
type command struct {
	phases []Phase       // phases in which it is available; nil is any
	cannot func() string // returns why it is unavailable, or ""; nil if it is always available
	do     func()
}

// controls handles commands. They coordinate all parts, so it holds the loop.
type controls struct {
	loop     *Loop
	commands [NumCommands]command
}

func (c *controls) table() [NumCommands]command {
	return [NumCommands]command{
		CommandApply:     {[]Phase{PhaseWaiting}, c.cannotApply, c.loop.trials.applyAdvice},
		CommandRevert:    {nil, c.cannotRevert, c.revert},
		CommandContinue:  {[]Phase{PhaseWaiting, PhaseWorse, PhaseReverting}, c.cannotContinue, c.continueWithChange},
		CommandSkip:      {[]Phase{PhaseWaiting}, c.cannotSkip, c.loop.advisor.skip},
		CommandUnskip:    {[]Phase{PhaseWaiting}, c.cannotUnskip, c.loop.advisor.unskip},
		CommandRemeasure: {[]Phase{PhaseBaseline, PhaseWaiting, PhaseSettling, PhaseMeasuring, PhaseWorse}, nil, c.remeasure},
		CommandPause:     {nil, c.cannotPause, c.pause},
		CommandHold:      {nil, c.loop.auto.cannotHold, c.loop.auto.toggleHold},
		CommandQuit:      {nil, nil, c.loop.ending.quit},
	}
}

const (
	whyOver        = "The run is over."
	whyPaused      = "Reading is paused: resume it first."
	whyNotAttached = "No server is attached yet."
)

// available returns the current availability of each command.
func (c *controls) available() [NumCommands]Availability {
	var out [NumCommands]Availability
	for i := range out {
		why := c.cannot(Command(i))
		out[i] = Availability{OK: why == "", Why: why}
	}
	return out
}

func (c *controls) cannot(wanted Command) string {
	l := c.loop
	switch {
	case wanted >= NumCommands:
		return "There is no such command."
	case l.phase == PhaseDone:
		return whyOver
	case l.paused && wanted != CommandPause && wanted != CommandQuit:
		return whyPaused
	case !l.server.found && wanted != CommandQuit:
		return whyNotAttached
	case (wanted == CommandApply || wanted == CommandSkip) && l.condition().Ill():
		return "Nothing is recommended while " + l.condition().String() + "."
	}
	cmd := &c.commands[wanted]
	switch {
	case cmd.phases != nil && !slices.Contains(cmd.phases, l.phase):
		return c.busy()
	case cmd.cannot == nil:
		return ""
	}
	return cmd.cannot()
}

func (c *controls) pressed(wanted Command) {
	if why := c.cannot(wanted); why != "" {
		c.loop.writeEntry(LevelWarn, "", why)
		return
	}
	c.commands[wanted].do()
}

// busy returns why nothing can be changed in the current phase, or "".
func (c *controls) busy() string {
	if live := c.loop.current.live; c.loop.phase == PhaseBaseline && live != nil && live.Outcome == engine.OutcomeNoLoad {
		return "There are no requests: the baseline waits for them."
	}
	return [NumPhases]string{
		PhaseAttach: whyNotAttached, PhaseBaseline: "The baseline is still being measured.",
		PhaseApplying: "A change is being made.", PhaseDown: "The server does not answer.",
		PhaseSettling: "The server is settling after its restart.", PhaseMeasuring: "The change is being measured.",
		PhaseWorse: "Answer first: revert or continue?", PhaseReverting: "Revert to the previous settings first.", PhaseCanary: "The change is being tried on a canary.",
	}[c.loop.phase]
}

func (c *controls) cannotApply() string {
	r := c.loop.advisor.advice
	switch {
	case r == nil:
		return "There is no recommendation."
	case c.loop.baseline.preliminary() != "":
		return WhyPreliminary(c.loop.baseline.preliminary())
	case !r.Changeable():
		return fmt.Sprintf("The fix is on the %s side; no server flag helps, so there is nothing to apply here.", r.Kind)
	case !c.loop.server.CanApply:
		if c.loop.server.CannotApply != "" {
			return c.loop.server.CannotApply
		}
		return "rooftop cannot restart this server: restart it with the command shown."
	case c.loop.plan.Auto && c.loop.budget.exhaustedLimit() != "":
		return "A limit is reached: " + c.loop.budget.exhaustedLimit() + "."
	}
	return ""
}

func (c *controls) cannotRevert() string {
	if c.loop.server.CanApply && !c.loop.budget.restartLeft() {
		return "No restart is left."
	}
	switch c.loop.phase {
	case PhaseWorse:
		return ""
	case PhaseCanary:
		if c.loop.canaries.over {
			return "The canary is being removed."
		}
		return ""
	case PhaseWaiting:
		if c.loop.changeInPlace() {
			return ""
		}
		return "There is nothing to revert: " + c.loop.keptName() + " is running."
	case PhaseSettling, PhaseMeasuring:
		if c.loop.trials.open && c.loop.ending.revertsFirst() {
			return ""
		}
		return c.busy()
	case PhaseDown:
		if c.loop.applying.failed && c.loop.server.CanApply {
			return ""
		}
		return c.busy()
	case PhaseReverting:
		return "The revert is under way: waiting for the restart with the previous settings."
	}
	return c.busy()
}

// revert removes a canary, or restores the kept configuration, also before the verdict.
func (c *controls) revert() {
	switch c.loop.phase {
	case PhaseCanary:
		c.loop.canaries.fail("the canary was ended by hand")
		return
	case PhaseSettling, PhaseMeasuring:
		c.loop.trials.endIteration(IterationReverted)
		c.loop.advisor.rememberTried()
	}
	c.loop.trials.revert()
}

func (c *controls) cannotContinue() string {
	switch {
	case !c.loop.changeInPlace() && c.loop.phase == PhaseWaiting:
		return "The running configuration is already the baseline."
	case c.loop.trials.lastMeasured == nil:
		return "The running configuration was not measured."
	}
	return ""
}

// continueWithChange makes the running configuration the new baseline.
func (c *controls) continueWithChange() {
	after := c.loop.trials.lastMeasured
	if c.loop.lastIteration().Noticed == SameSettings {
		c.loop.trials.open = false // its measurement of noise remains valid
	} else {
		c.loop.trials.endIteration(IterationContinued)
	}
	c.loop.trials.accept(after, nil)
	c.loop.emit(LevelInfo, Event{Kind: EventContinued, Iteration: c.loop.iteration(), Change: c.loop.latestChange(), Command: c.loop.kept.command, Text: "continued: the running configuration is the new baseline"})
	c.loop.trials.toWaiting()
}

func (c *controls) cannotSkip() string {
	if c.loop.advisor.advice == nil {
		return "There is no recommendation to skip."
	}
	return ""
}

func (c *controls) cannotUnskip() string {
	if len(c.loop.advisor.skipped) == 0 {
		return "Nothing was skipped."
	}
	return ""
}

// remeasure measures the running configuration again, as the baseline or as a change.
func (c *controls) remeasure() {
	c.loop.writeEntry(LevelInfo, "", "measuring again")
	trial := c.loop.trials.open || c.loop.phase == PhaseWorse || c.loop.phase == PhaseWaiting && c.loop.changeInPlace()
	if !trial {
		c.loop.baseline.startBaseline()
		return
	}
	if c.loop.lastIteration().Delta != nil || c.loop.phase == PhaseMeasuring && c.loop.measuring.nextLook > 0 {
		c.loop.trials.again++
	}
	c.loop.trials.open, c.loop.settling.unsteady = true, ""
	c.loop.alterLatest(func(it *Iteration) {
		it.End, it.Delta, it.After, it.Load = IterationOpen, nil, nil, nil
		if it.Settled == 0 {
			it.Settled = c.loop.now
		}
	})
	c.loop.advisor.judgement = judgement{}
	c.loop.measuring.measureTrial()
}

func (c *controls) cannotPause() string {
	switch c.loop.phase {
	case PhaseApplying, PhaseDown, PhaseAttach, PhaseCanary:
		if !c.loop.paused {
			return c.busy()
		}
	}
	return ""
}

// pause stops and resumes reading. Measurements after a pause do not continue those before.
func (c *controls) pause() {
	c.loop.paused = !c.loop.paused
	text := "paused: the server is not polled"
	if !c.loop.paused {
		text = "resumed: polling the server again"
		pause := c.loop.now - c.loop.pausedAt
		c.loop.since += pause
		if c.loop.auto.uncertainSince > 0 {
			c.loop.auto.uncertainSince += pause
		}
		if c.loop.auto.pendingAction != nil {
			c.loop.auto.pendingAction.At += pause
		}
		c.loop.auto.upSince += pause
		c.loop.current.conditionSince, c.loop.current.illSince = c.loop.now, c.loop.now // whether it is still ill shows now
		c.loop.conn.watch.answeredAt = c.loop.now                                       // it was not asked
		if c.loop.settling.loaded > 0 {
			c.loop.settling.loaded += pause
		}
		c.loop.current.discardWindows()
		c.loop.baseline.renewal.from = c.loop.current.openIndex()
	}
	c.loop.pausedAt = c.loop.now
	c.loop.emit(LevelInfo, Event{Kind: EventPaused, Iteration: c.loop.iteration(), Text: text})
}

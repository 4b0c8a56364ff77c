package loop

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// server holds what is known about the server. The connection updates it.
type server struct {
	Attached
	found    bool // at least once
	devices  []engine.GPU
	notes    []string // distinct notes of its pages
	allNotes []string // those, and the notes of the latest Attached
	facts    engine.Facts
	launch   string // running launch command, redacted, "" if unknown
}

// connection finds and reads the server, and notices restarts.
type connection struct {
	*shared
	baseline *baselines
	trials   *trials
	applying *applying
	advisor  *advisor
	budget   *budget
	auto     *autopilot
	phases   *[NumPhases]phaseBehaviour

	watch         watch
	attachWhy     string             // the last failure to attach, or ""
	starting      bool               // the server was starting at that time
	wayCut        bool               // what leads to the server did not answer at that time
	page          *engine.Page       // latest page, read while paused too
	gpu           *engine.GPUReading // latest reading, nil if none is readable
	processes     []Process
	problems      []string
	downFrom      Phase         // the phase in which the server went down
	downFromSince time.Duration // and the start of that phase
	downAt        time.Duration // time at which the server went down
	outage        time.Duration // duration of the last outage around a restart
}

const (
	attachAgain = time.Second     // between attempts to find a server
	downPolls   = 2               // polls without an answer after which the server counts as down
	longSilence = 4 * time.Second // a gap between samples of this length, and of lateAfter intervals, means that rooftop was suspended
)

// attach requests an Attach unless one is pending.
func (c *connection) attach(after time.Duration) {
	if c.watch.attaching {
		return
	}
	c.watch.attaching = true
	c.addAction(Attach{After: after})
}

// reattach requests an Attach even if one is pending, because its reply will describe the
// previous server.
func (c *connection) reattach() {
	c.watch.reattach = c.watch.reattach || c.watch.attaching
	c.attach(0)
}

// awaitReturn looks for a server that is down, to continue with a phase once it answers.
func (c *connection) awaitReturn(to Phase) {
	c.downFrom, c.downFromSince = to, c.now
	c.enterPhase(PhaseDown)
	c.attach(0)
}

func (c *connection) attachFailed(in AttachFailed) {
	why := in.Why
	c.watch.attaching = false
	if c.attachWhy != why && c.phase == PhaseAttach {
		c.writeEntry(LevelWarn, "", why)
	}
	if in.WayCut && !c.wayCut && c.phase == PhaseDown {
		c.emit(LevelWarn, Event{Kind: EventWaiting, Iteration: c.iteration(), Took: autoDown, Text: why + "; this says nothing about the server: waiting up to " + figure.Elapsed(autoDown)})
	}
	c.attachWhy, c.starting, c.wayCut = why, in.Starting, in.WayCut
	if c.phase == PhaseApplying && c.applying.made {
		// The server was started but is gone: the change may have to be reverted.
		c.applying.failed = true
		c.downFrom, c.downFromSince = PhaseApplying, c.since
		c.reportDown(why)
	}
	if c.phase == PhaseAttach || c.phase == PhaseDown {
		c.attach(attachAgain)
	}
}

// attached stores the facts of the server and determines whether it is the same start, a
// restart with the same settings, or a restart with others.
func (c *connection) attached(in Attached) {
	c.watch.attaching = false
	c.attachWhy, c.starting, c.wayCut = "", false, false
	if c.watch.reattach {
		// The server restarted again while the facts were read: they may belong to either start.
		c.watch.reattach = false
		c.attach(0)
		return
	}
	another := c.server.found && c.isAnotherRun(&in)
	was := c.phase
	switch {
	case was == PhaseDown:
		was = c.downFrom
	case another && was != PhaseApplying:
		c.downAt = c.now
	}
	if another {
		c.baseline.salvageBaseline(was) // judged with the facts of its own start
	}
	c.takeFacts(in)
	next := configured(&c.server.Inputs, &c.server.facts)
	if next.settings == nil {
		next.ownChanges = c.running.ownChanges
	}
	switch {
	case !c.server.found:
		c.firstAttached(next)
	case was == PhaseApplying:
		if c.applying.made {
			c.resumeRestarted(was, next)
		}
	case another:
		c.resumeRestarted(was, next)
	case c.phase == PhaseDown && c.watch.failures == 0:
		c.resume()
	}
	c.watch.restarted, c.watch.startTimeMoved, c.watch.counterFell = false, false, false
}

// takeFacts stores facts that were read.
func (c *connection) takeFacts(in Attached) {
	c.server.Attached = in
	c.server.devices = in.Inputs.Devices
	c.server.Missing, c.server.GPUWhy = slices.Clip(in.Missing), in.GPUWhy
	c.server.notes = nil
	if c.watch.severalServers {
		c.server.notes = []string{severalServers}
	}
	c.resolve()
	c.watch.noteSources(&in)
	c.watch.processSeen, c.watch.processEnded = false, false
}

// resolve resolves the facts from the present inputs.
func (c *connection) resolve() {
	in := c.server.Inputs
	in.Page, in.Devices, in.Made = c.watch.page, c.server.devices, c.running.ownChanges
	s := &c.server
	s.facts = facts.Resolve(in)
	s.Target.Engine, s.Target.EngineVersion, s.Target.Model = s.facts.Engine.Value, s.facts.EngineVersion.Value, s.facts.Model.Value
	s.launch = in.LaunchText
	s.allNotes = slices.Concat(s.Notes, s.notes)
}

// isAnotherRun reports whether the server that answers is a different start than before. If
// its process is the same, differing start times belong to several API servers as long as the
// counters grow, and falling counters were reset.
func (c *connection) isAnotherRun(in *Attached) bool {
	a, b := c.server.Identity, in.Identity
	switch {
	case a != "" && b != "" && a != b:
		return true
	case !c.watch.restarted, c.watch.severalServers && a == b:
		return false
	case a == "" || a != b, c.watch.startTimeMoved && c.watch.counterFell:
		return true
	case len(changesFrom(c.running, configuration{settings: in.Inputs.Launch, command: in.Inputs.LaunchText, ownChanges: c.running.ownChanges})) > 0:
		return true
	case c.watch.counterFell:
		c.writeEntry(LevelWarn, "", "the counters fell although the server process is the same: they were reset, or several servers answer at this address")
		c.current.discardWindows()
	}
	return false
}

func (c *connection) firstAttached(next configuration) {
	c.server.found = true
	c.running, c.kept = next, next
	c.current = incarnation{}
	name := c.server.Target.Model
	text := "attached to " + c.server.Target.URL
	if name != "" {
		text += ", " + name
	}
	c.emit(LevelInfo, Event{Kind: EventAttached, Text: text, Target: c.server.Target, Command: next.command})
	c.baseline.startBaseline()
}

// resume continues after a gap with the same start of the server.
func (c *connection) resume() {
	gap := c.now - c.downAt
	c.watch.unanswered = 0 // no change caused the gap
	text := "the server answers again after " + figure.Elapsed(gap)
	if identifiesRun(c.watch.page) && !c.watch.severalServers {
		text += ": not restarted"
	}
	c.emit(LevelInfo, Event{Kind: EventServerUp, Iteration: c.iteration(), Took: gap, Command: c.running.command, Text: text})
	c.addMark(MarkUp, "answers again")
	c.enterPhase(c.downFrom)
	c.since = c.downFromSince
	switch {
	case c.downFrom == PhaseWorse:
		c.asked = c.trials.question()
	case c.downFrom == PhaseWaiting && c.advisor.of == nil && c.baseline.diagnosis != nil: // a canary ended meanwhile
		c.trials.toWaiting()
	case c.downFrom == PhaseReverting && !c.changeInPlace():
		// The change was never made, so there is nothing to revert.
		c.trials.toWaiting()
	}
	if gap >= longSilence {
		c.current.discardWindows()
	}
	c.auto.proceed() // what was about to be done was canceled
}

// resumeRestarted continues with a restarted server, once its facts were read.
func (c *connection) resumeRestarted(was Phase, next configuration) {
	took := c.now - c.downAt
	c.emit(LevelInfo, Event{Kind: EventServerUp, Iteration: c.iteration(), Took: took, Command: next.command,
		Text: "the server answers again after " + figure.Elapsed(took) + ", with a new process"})
	c.addMark(MarkUp, "restarted")
	if !c.watch.restarted {
		c.watch.identified = nil // do not take its first page for another restart
	}
	c.reportRecovery("the server was restarted")
	c.current = incarnation{}
	t := classifyRestart(c.kept, c.running, next, c.advisor.recommendedChanges())
	c.auto.upSince = c.now
	c.outage = c.watch.outage(c.now)
	c.budget.countRestart(c.outage, was == PhaseApplying)
	if was != PhaseApplying && c.trials.exitsAgain(next, t) {
		return
	}
	c.phases[was].onRestart(next, t)
}

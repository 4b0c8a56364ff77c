package loop

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// canaries try a change on one more copy of the server, beside the others and under the same traffic, before
// it is made to the server itself.
type canaries struct {
	*shared
	conn      *connection
	baseline  *baselines
	measuring *measuring
	trials    *trials
	advisor   *advisor
	auto      *autopilot
	ending    *ending

	canary
}

// canary is the copy in progress.
type canary struct {
	exists  bool           // it was asked for, and is not known to be gone
	request Apply          // of the same change to the server itself
	servers []canaryServer // the canary first; nil until it takes requests
	begun   time.Duration  // when it began to take them
	grid    time.Duration  // the first reading; windows begin at multiples of their length after it
	over    bool           // its end was asked for
	better  bool           // the verdict on it
	failure string         // why there is no verdict on it, or ""
	failed  bool           // the canary itself failed with the change
	// restarted is set once the attached server was restarted meanwhile; next and kind describe the restart.
	restarted bool
	next      configuration
	kind      restartKind
}

// canaryServer has the windows of the canary, or of a server beside it. Those of all begin at the same times.
type canaryServer struct {
	windower engine.Windower
	open     bool // the windower has a window that began when it should
	page     *engine.Page
	windows  []engine.Window
}

// canarySkew is the most by which the windows of servers that are compared begin at different times.
const canarySkew = engine.WindowLength / 4

// add adds a sample to the windows, which begin at multiples of their length after the grid. It returns the
// window that the sample closed, or nil. A window that closes late is followed by a gap.
func (s *canaryServer) add(sample *engine.Sample, grid time.Duration) *engine.Window {
	s.page = cmp.Or(sample.Page, s.page)
	inTime := (sample.T-grid)%engine.WindowLength <= canarySkew
	if !s.open && !inTime {
		return nil
	}
	s.open = true
	w := s.windower.Add(sample)
	if w == nil {
		return nil
	}
	s.windows = append(s.windows, w.Clone())
	if !inTime {
		s.windower.Discard()
		s.open = false
	}
	return w
}

// canaryIdle is how long a canary may get no requests: a Service sends it some at once.
const canaryIdle = time.Minute

// try asks for a canary. request is made if it is better.
func (c *canaries) try(request Apply) {
	c.canary = canary{exists: true, request: request}
	c.measuring.scheduleLooks()
	c.alterLatest(func(it *Iteration) { it.Text = engine.JoinChanges(it.Changes) + ", tried on a canary" })
	c.enterPhase(PhaseCanary)
	c.tell(LevelInfo, "trying "+engine.JoinChanges(request.Changes)+" on a canary: one more copy of the server, beside the others")
	c.addAction(StartCanary{Changes: request.Changes, Iteration: request.Iteration, Predicted: request.Predicted})
}

// started handles a canary that takes requests.
func (c *canaries) started(in CanaryStarted) {
	if !c.exists || c.servers != nil || in.Others < 1 {
		return
	}
	c.servers, c.begun = make([]canaryServer, 1+in.Others), c.now
	if c.phase == PhaseCanary {
		c.enterPhase(PhaseCanary) // its time begins now
	}
	c.addMark(MarkMeasure, "canary")
	c.tell(LevelInfo, fmt.Sprintf("the canary %s takes requests: measuring it beside %s", in.Name, c.others()))
}

// tell emits an event about the canary.
func (c *canaries) tell(level Level, text string) {
	it := c.lastIteration()
	c.emit(level, Event{Kind: EventCanary, Iteration: it.N, Change: firstOf(it.Changes), Command: it.Command, Text: text})
}

// others names the servers beside the canary by their number.
func (c *canaries) others() string { return figure.Counted(len(c.servers)-1, "other") }

// sampled adds a reading of the canary, or of a server beside it.
func (c *canaries) sampled(in CanarySampled) {
	if in.Server < 0 || in.Server >= len(c.servers) || in.Sample == nil || c.over {
		return
	}
	if c.grid == 0 {
		c.grid = in.Sample.T
	}
	w := c.servers[in.Server].add(in.Sample, c.grid)
	if w == nil {
		return
	}
	which := "the canary"
	if in.Server > 0 {
		which = "a server beside the canary"
	}
	switch ill := engine.ConditionOf(w, &c.server.facts); {
	case ill.Ill(), in.Server == 0 && ill.State != "": // a change on trial gets no benefit of the doubt
		c.failed = in.Server == 0
		c.fail(which + " cannot be compared: " + ill.String())
	case in.Server == 0:
		c.look()
	}
}

// fail ends the canary without a verdict.
func (c *canaries) fail(why string) {
	if !c.over {
		c.failure = why
		c.end()
	}
}

// end asks for the end of the canary.
func (c *canaries) end() {
	c.over = true
	c.addAction(EndCanary{})
}

// sides returns what was measured at the same time of the servers beside the canary, and of the canary.
func (c *canaries) sides() (others, own verdict.Side) {
	windows := c.servers[0].windows
	from := firstLoaded(windows)
	if from < 0 {
		return others, own
	}
	begun := windows[from].Start - engine.WindowLength/2
	own.Incarnations = []verdict.Incarnation{effect.Slices(windows[from:])}
	for i := range c.servers[1:] {
		windows := c.servers[1+i].windows
		from := slices.IndexFunc(windows, func(w engine.Window) bool { return w.Start >= begun })
		if from < 0 {
			continue
		}
		if start := effect.Slices(windows[from:]); len(start) > 0 {
			others.Incarnations = append(others.Incarnations, start)
		}
	}
	return others, own
}

// look judges the canary if a look is due.
func (c *canaries) look() {
	m, it := c.measuring, c.lastIteration()
	others, own := c.sides()
	others.CostPerHour, own.CostPerHour = engine.FactOpt(c.server.facts.CostPerHour), engine.FactOpt(c.facts().CostPerHour)
	m.measured = 0
	if len(own.Incarnations) > 0 {
		m.measured = effect.Length(own.Incarnations[0])
	}
	waited := c.now - c.begun
	switch {
	case m.measured == 0 && waited >= canaryIdle:
		c.fail("no requests reached the canary within " + figure.Elapsed(waited) + ": clients that keep their connections stay with the servers that they have")
		return
	case waited >= overdue*c.plan.Longest && m.looksDue() == 0:
		c.fail("too few requests reached the canary to judge it within " + figure.Elapsed(waited))
		return
	}
	due := m.looksDue()
	if due <= m.nextLook {
		return
	}
	plan := c.baseline.judging(effect.TouchedBy(it.Changes, true), verdict.Plan{Look: due - 1, Looks: len(m.looks), Last: due == len(m.looks), Paired: true})
	// Starts of one server say little about how those of several machines differ.
	plan.Spread = verdict.Widen(verdict.SiblingDifferences(others.Incarnations))
	r := verdict.Judge(&others, &own, plan)
	if r.Direction == verdict.Plateau && r.Cause == verdict.ByNoise && plan.Goal != verdict.Latency && r.Limited[1] == verdict.ByDemand {
		r.Direction, r.Settled, r.Need = verdict.Inconclusive, false, "more requests to the canary"
		r.Reason += "; it answered every request that it was sent, so the output could not be higher"
	}
	settled := plan.Last || r.Settled && r.Direction != verdict.NotComparable
	m.noteLook(&r, due-1, settled)
	if settled {
		c.judge(&r)
	}
}

// judge ends the measurement of a canary with a verdict. If the canary is better, the verdict is only
// noted: that on the change follows when it is made to all.
func (c *canaries) judge(r *verdict.Result) {
	c.better = r.Direction == verdict.Better
	beside := "as a canary beside " + c.others() + ": " + r.Reason
	c.alterLatest(func(it *Iteration) { it.Beside = beside })
	if !c.better {
		after := c.diagnoseAs(c.facts(), c.servers[0].windows)
		delta := effect.Compare(c.trials.before, after)
		delta.Direction, delta.Reason, delta.Verdict = r.Direction, beside, r
		c.alterLatest(func(it *Iteration) { it.After, it.Delta = after, &delta })
		c.addMark(MarkVerdict, string(delta.Direction))
		c.emit(verdictLevel(delta.Direction), Event{Kind: EventVerdict, Iteration: c.iteration(), Delta: &delta, Verdict: r, Advice: c.measuring.predicted(c.lastIteration()), Text: verdictText(&delta)})
	}
	c.end()
}

// facts returns the facts of the canary: those of the server, with the change.
func (c *canaries) facts() engine.Facts {
	in, changes := c.server.Inputs, c.lastIteration().Changes
	in.Page, in.Devices, in.Made = c.servers[0].page, c.server.devices, addOwnChanges(c.running.ownChanges, changes)
	if parsed, err := launch.ParseCommand(CommandWithChanges(in.LaunchText, changes...), nil, nil); err == nil {
		in.Launch = facts.FromLaunch(parsed)
	}
	return facts.Resolve(in)
}

// ended handles the end of the canary. The change is made to all if it was better.
func (c *canaries) ended(in CanaryEnded) {
	if !c.exists {
		return
	}
	judged, wait := c.over && c.failure == "", c.mustWait()
	why := cmp.Or(c.failure, in.Err)
	c.exists, c.over, c.failed = false, true, c.failed || in.Failed
	switch {
	case in.Left:
		c.emit(LevelBad, Event{Kind: EventError, Iteration: c.iteration(), Text: in.Err})
		c.trials.endIteration(IterationBroken)
		c.ending.finish(exitError, "the canary could not be removed: "+in.Err)
	case !judged && c.failed:
		c.emit(LevelBad, Event{Kind: EventError, Iteration: c.iteration(), Text: why})
		c.alterLatest(func(it *Iteration) { it.Failure = why })
		c.trials.endIteration(IterationBroken)
		c.auto.failure = cmp.Or(c.auto.failure, why)
		c.advisor.rememberTried()
		c.resume()
	case !judged: // it says nothing about the change
		c.emit(LevelWarn, Event{Kind: EventError, Iteration: c.iteration(), Text: why})
		c.alterLatest(func(it *Iteration) { it.Delta = &effect.Delta{Direction: verdict.Inconclusive, Reason: why} })
		c.trials.endIteration(IterationReverted)
		c.resume()
	case c.better && wait != "":
		c.tell(LevelWarn, "the canary was better and is removed, but the change is not made to all: "+wait)
		c.trials.endIteration(IterationReverted)
		c.resume()
	case c.better:
		c.tell(LevelGood, "the canary is removed and the change is made to all: it was better "+c.lastIteration().Beside)
		c.trials.restart(c.request)
	default:
		c.tell(LevelInfo, "the canary is removed, and nothing else was changed")
		c.trials.endIteration(IterationReverted)
		if d := c.lastIteration().Delta; d != nil && (d.Direction == verdict.Worse || d.Direction == verdict.Plateau) {
			c.advisor.rememberTried()
		}
		c.resume()
	}
}

// mustWait returns why a change must not be made to all now, or "".
func (c *canaries) mustWait() string {
	switch {
	case c.phase != PhaseCanary:
		return doesNotAnswer
	case c.restarted:
		return "the server was restarted meanwhile"
	case c.auto.held:
		return "the autopilot is paused"
	}
	return ""
}

// resume continues after a canary whose change is not made to all. A server that does not answer now is waited
// for first.
func (c *canaries) resume() {
	c.trials.open = false
	switch {
	case c.restarted:
		c.trials.returnedInWaiting(c.next, c.kind)
	case c.phase == PhaseCanary:
		c.trials.toWaiting()
	case c.phase == PhaseDown:
		c.conn.downFrom, c.advisor.judgement = PhaseWaiting, judgement{}
	}
}

// returned notes a restart of the attached server, and ends the canary, which is compared with
// others of its start.
func (c *canaries) returned(next configuration, kind restartKind) {
	c.restarted, c.next, c.kind = true, next, kind
	c.enterPhase(PhaseCanary)
	c.fail("the attached server was restarted while the canary was measured")
}

// waits returns what the phase waits for.
func (c *canaries) waits() string {
	switch {
	case c.over:
		return "removing the canary"
	case c.servers == nil:
		return "starting a canary beside the other servers"
	case c.measuring.measured == 0:
		return "waiting for requests to the canary"
	}
	return "measuring the canary beside " + c.others()
}

// length returns the time of the next look, 0 while nothing is measured.
func (c *canaries) length() time.Duration {
	if c.servers == nil || c.over {
		return 0
	}
	return c.measuring.lookLength()
}

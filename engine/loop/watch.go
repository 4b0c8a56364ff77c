package loop

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// watch tracks the readings of the server's sources.
type watch struct {
	sources    [numSources]source
	page       *engine.Page   // latest page
	identified *engine.Page   // latest page that identifies the start of the server
	failures   int            // consecutive failed pages
	last       *engine.Sample // latest sample
	starts     []float64      // start times seen on pages, oldest first

	answeredAt time.Duration // time of the latest page
	unanswered time.Duration // time without a page around the current restart

	attaching      bool        // an Attach has no reply yet
	reattach       bool        // the server restarted while its facts were read
	restarted      bool        // the page shows a restart whose facts are not read yet
	startTimeMoved bool        // the restart shows in its start time
	counterFell    bool        // the restart shows in a decreased token counter
	severalServers bool        // starts alternate: several servers behind one address
	fall           counterFall // decrease at the last restart that only counters show

	processSeen, processEnded bool // the answering process was seen running, and then exited
}

func (w *watch) states(now time.Duration) []SourceState {
	out := make([]SourceState, numSources)
	for i := range w.sources {
		out[i] = w.sources[i].stateAt(now)
	}
	return out
}

// noteGap adds the time without an answer before a page, if pages failed before it or it belongs
// to a different start.
func (w *watch) noteGap(p *engine.Page) {
	if w.page != nil && (w.failures >= downPolls || w.identified != nil && identifiesRun(p) && engine.Restarted(w.identified, p)) {
		w.unanswered += p.T - w.answeredAt
	}
	w.answeredAt = p.T
}

// outage returns how long the server did not answer around a completed restart.
func (w *watch) outage(now time.Duration) time.Duration {
	gap := w.unanswered
	if w.failures > 0 {
		gap += now - w.answeredAt
	}
	w.unanswered = 0
	return max(0, gap)
}

// noteSources records which sources a server has.
func (w *watch) noteSources(in *Attached) {
	gpu, processes := &w.sources[sourceGPU], &w.sources[sourceProcesses]
	switch {
	case in.GPUWhy != "":
		gpu.markAbsent(in.GPUWhy)
	case !gpu.begun:
		gpu.markAbsent("not read yet")
	}
	switch {
	case !in.Inputs.Local:
		processes.markAbsent("the server's processes cannot be read from here")
	case !processes.begun && in.Target.Simulated:
		processes.markAbsent("a simulated server has none of its own")
	case !processes.begun:
		processes.markAbsent("not read yet")
	}
}

// sampled handles one tick of collection.
func (c *connection) sampled(s *engine.Sample) {
	if s == nil {
		return
	}
	usual := c.watch.sources[sourcePage].Interval
	c.watchSources(s)
	if c.paused || !c.server.found {
		c.watch.last = s
		return
	}
	if last := c.watch.last; last != nil && s.T-last.T >= max(longSilence, lateAfter*usual) {
		c.current.discardWindows()
	}
	c.watch.last = s
	if s.Page == nil {
		c.unanswered(s)
		return
	}
	c.answered(s)
}

func (c *connection) watchSources(s *engine.Sample) {
	page, gpu := &c.watch.sources[sourcePage], &c.watch.sources[sourceGPU]
	page.Missed += s.Missed
	switch {
	case s.Page != nil:
		page.succeeded(s.T, s.Page.T, s.Page.Took)
		c.page = s.Page
	case s.PageErr != "":
		page.failed(s.T, s.PageErr)
	}
	switch {
	case s.GPU != nil && len(s.GPU.Devices) > 0:
		if s.GPU.T != gpu.Last || !gpu.begun {
			gpu.succeeded(s.GPU.T, s.GPU.T, s.GPU.Took)
		}
		c.gpu, c.server.devices = s.GPU, s.GPU.Devices
	case s.GPUErr != "":
		gpu.failed(s.T, s.GPUErr)
	}
}

// observed handles a reading of the server's processes.
func (c *connection) observed(in Observed) {
	source := &c.watch.sources[sourceProcesses]
	c.watch.noteProcess(c.server.Inputs.PID, in.Processes)
	if in.Err != "" {
		source.failed(c.now, in.Err)
		return
	}
	source.succeeded(c.now, c.now, 0)
	source.Interval = processInterval
	for _, p := range in.Problems {
		if !slices.Contains(c.problems, p) {
			c.writeEntry(LevelBad, EventError, p)
		}
	}
	c.current.host.wait.Add(longestRunWait(in.Processes), 1)
	c.current.host.others.Add(in.OthersCPU, 1)
	c.processes, c.problems = slices.Clone(in.Processes), slices.Clone(in.Problems)
}

// noteProcess records whether the answering process is among those read. If it was and no longer
// is, it has exited; that counts only while no page comes.
func (w *watch) noteProcess(pid int, list []Process) {
	if pid <= 0 {
		return
	}
	runs := slices.ContainsFunc(list, func(p Process) bool { return p.PID == pid && p.State != "Z" && p.State != "X" })
	w.processSeen = w.processSeen || runs
	w.processEnded = w.processSeen && !runs
}

// unanswered handles a missing page. One or two, followed by a page of the same start, are a gap
// in the windows and no outage.
func (c *connection) unanswered(s *engine.Sample) {
	c.watch.failures++
	if !c.phases[c.phase].readsServer {
		return
	}
	c.feed(s)
	if c.watch.failures >= downPolls && c.phases[c.phase].readsServer { // the window may have ended the phase
		c.serverDown(s.PageErr)
	}
}

// serverDown records that the server no longer answers, and looks for it.
func (c *connection) serverDown(why string) {
	c.downFrom, c.downFromSince, c.downAt, c.starting, c.wayCut = c.phase, c.since, c.now, false, false
	c.reportDown(why)
	c.attach(attachAgain)
}

// reportDown reports that the server does not answer.
func (c *connection) reportDown(why string) {
	c.enterPhase(PhaseDown)
	text := doesNotAnswer
	if why != "" {
		text += ": " + why
	}
	c.addMark(MarkDown, "down")
	c.emit(LevelWarn, Event{Kind: EventServerDown, Iteration: c.iteration(), Text: text})
}

// answered handles a page. A page of the same start is added to the windows; a page of another
// start waits until the facts are read.
func (c *connection) answered(s *engine.Sample) {
	before := c.watch.identified
	c.watch.noteGap(s.Page)
	c.watch.page, c.watch.failures = s.Page, 0
	if identifiesRun(s.Page) {
		c.watch.identified = s.Page
	}
	if before != nil {
		c.compareRuns(before, s.Page)
	}
	c.watch.noteStart(s.Page)
	for _, n := range s.Page.Notes {
		if !slices.Contains(c.server.notes, n) && len(c.server.notes) < keepNotes {
			c.server.notes = append(c.server.notes, n)
		}
	}
	switch {
	case c.watch.restarted, c.phase == PhaseApplying:
	case c.phase == PhaseDown:
		if !c.watch.attaching || before != nil && sameStart(before, s.Page) {
			c.resume()
			c.feed(s)
		}
	default:
		c.feed(s)
	}
}

// feed builds windows from samples and passes each to the current phase.
func (c *connection) feed(s *engine.Sample) {
	w := c.current.windower.Add(s)
	if w == nil {
		return
	}
	window := w.Clone()
	c.current.add(window, c.plan.Longest)
	c.points.add(point(&window, c.runningIteration))
	c.resolve()
	c.readReportedSettings()
	if windows := c.current.recentWindows(c.plan.Measure); len(windows) >= engine.LeastWindows {
		c.current.live = c.diagnose(windows)
	}
	c.emit(LevelInfo, Event{Kind: EventWindow, Iteration: c.iteration(), Window: &window})
	c.examine(&window)
	switch phase := &c.phases[c.phase]; {
	case phase.onWindow == nil, c.current.condition.Ill():
	case phase.collectsWindows && hangs(&window):
		c.current.waitingFor = nothingMoves
	default:
		phase.onWindow()
	}
}

// readReportedSettings stores the configuration that the first pages of a start report, because
// attaching precedes the first page.
func (c *connection) readReportedSettings() {
	if c.current.settingsRead {
		return
	}
	c.current.settingsRead = true
	c.running.reported, c.running.version = reportedSettings(&c.server.facts), c.server.facts.EngineVersion.Value
	if !c.changeInPlace() && !c.trials.open {
		c.kept.reported, c.kept.version = c.running.reported, c.running.version
	}
}

func (c *connection) waitsForReturn() string {
	if c.watch.restarted {
		return "restarted: reading its launch command"
	}
	return "waiting for the server to answer again"
}

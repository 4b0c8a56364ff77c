package engine

import (
	"slices"
	"time"
)

// watch follows what the server's sources answer.
type watch struct {
	sources  [numSources]source
	page     *Page     // the latest
	known    *Page     // the latest that tells which run it is of
	failures int       // pages that failed in a row
	last     *Sample   // the latest
	starts   []float64 // start times that were seen on pages, oldest first

	heard time.Duration // when the latest page came
	gap   time.Duration // in which none came, about the restart under way

	attaching bool // an Attach is to be answered
	again     bool // the server was restarted while its facts were read
	restarted bool // the page shows a restart, its facts are not read yet
	moved     bool // and it is its start time that shows it
	fell      bool // and a token counter fell with it
	several   bool // runs come and go: several servers behind one address
	drop      drop // of the counters at the last restart that they alone show

	ran, ended bool // the process that answers was seen to run, and then to run no more
}

func (w *watch) states(now time.Duration) []SourceState {
	out := make([]SourceState, numSources)
	for i := range w.sources {
		out[i] = w.sources[i].at(now)
	}
	return out
}

// listen takes notice of a page: where some failed before it, or it is of another
// run, the server did not answer in between.
func (w *watch) listen(p *Page) {
	if w.page != nil && (w.failures >= downPolls || w.known != nil && tellsRun(p) && Restarted(w.known, p)) {
		w.gap += p.T - w.heard
	}
	w.heard = p.T
}

// outage is how long the server did not answer about a restart that is over.
func (w *watch) outage(now time.Duration) time.Duration {
	gap := w.gap
	if w.failures > 0 {
		gap += now - w.heard
	}
	w.gap = 0
	return max(0, gap)
}

// found says which sources a server has.
func (w *watch) found(in *Attached) {
	gpu, processes := &w.sources[sourceGPU], &w.sources[sourceProcesses]
	switch {
	case in.GPUWhy != "":
		gpu.absent(in.GPUWhy)
	case !gpu.begun:
		gpu.absent("not read yet")
	}
	switch {
	case !in.Inputs.Local:
		processes.absent("the server's processes cannot be read from here")
	case !processes.begun && in.Target.Simulated:
		processes.absent("a simulated server has none of its own")
	case !processes.begun:
		processes.absent("not read yet")
	}
}

// sampled takes in one tick of collection.
func (l *Loop) sampled(s *Sample) {
	if s == nil {
		return
	}
	usual := l.watch.sources[sourcePage].Interval
	l.watchSources(s)
	if l.seen.Paused || !l.seen.Attached {
		l.watch.last = s
		return
	}
	if last := l.watch.last; last != nil && s.T-last.T >= max(longSilence, lateAfter*usual) {
		l.life.cut()
	}
	l.watch.last = s
	if s.Page == nil {
		l.unanswered(s)
		return
	}
	l.answered(s)
}

func (l *Loop) watchSources(s *Sample) {
	page, gpu := &l.watch.sources[sourcePage], &l.watch.sources[sourceGPU]
	page.Missed += s.Missed
	switch {
	case s.Page != nil:
		page.good(s.T, s.Page.T, s.Page.Took)
		l.seen.Page = s.Page
	case s.PageErr != "":
		page.bad(s.T, s.PageErr)
	}
	switch {
	case s.GPU != nil && len(s.GPU.Devices) > 0:
		if s.GPU.T != gpu.Last || !gpu.begun {
			gpu.good(s.GPU.T, s.GPU.T, s.GPU.Took)
		}
		l.seen.GPU, l.server.devices = s.GPU, s.GPU.Devices
	case s.GPUErr != "":
		gpu.bad(s.T, s.GPUErr)
	}
}

// observed takes in what the server's processes do.
func (l *Loop) observed(in Observed) {
	source := &l.watch.sources[sourceProcesses]
	l.watch.alive(l.server.Inputs.PID, in.Processes)
	if in.Err != "" {
		source.bad(l.now, in.Err)
		return
	}
	source.good(l.now, l.now, 0)
	source.Interval = processInterval
	for _, p := range in.Problems {
		if !slices.Contains(l.seen.Problems, p) {
			l.write(LevelBad, EventError, p)
		}
	}
	l.starved.add(in.Processes)
	l.seen.Processes, l.seen.Problems = slices.Clone(in.Processes), slices.Clone(in.Problems)
}

// alive takes notice of whether the process that answers is among those that were
// read. Where it was once, and is no more, or nothing can be read any more, it has
// ended; that counts while no page comes.
func (w *watch) alive(pid int, list []Process) {
	if pid <= 0 {
		return
	}
	runs := slices.ContainsFunc(list, func(p Process) bool { return p.PID == pid && p.State != "Z" && p.State != "X" })
	w.ran = w.ran || runs
	w.ended = w.ran && !runs
}

// unanswered notes a page that did not come. One or two that are followed by a
// page of the same run are a gap in the windows, no death.
func (l *Loop) unanswered(s *Sample) {
	l.watch.failures++
	if !l.phases[l.seen.Phase].alive {
		return
	}
	l.feed(s)
	if l.watch.failures >= downPolls {
		l.down(s.PageErr)
	}
}

// down notes that the server no longer answers, and looks for it.
func (l *Loop) down(why string) {
	l.was, l.wasSince, l.downAt = l.seen.Phase, l.seen.Since, l.now
	l.gone(why)
	l.attach(attachAgain)
}

// gone says that the server does not answer.
func (l *Loop) gone(why string) {
	l.enter(PhaseDown)
	text := "the server does not answer"
	if why != "" {
		text += ": " + why
	}
	l.mark(MarkDown, "down")
	l.tell(LevelWarn, Event{Kind: EventServerDown, Iteration: l.iteration(), Text: text})
}

// answered takes in a page: of the same run it makes windows, of another one it
// waits until its facts are read.
func (l *Loop) answered(s *Sample) {
	before := l.watch.known
	l.watch.listen(s.Page)
	l.watch.page, l.watch.failures = s.Page, 0
	if tellsRun(s.Page) {
		l.watch.known = s.Page
	}
	if before != nil {
		l.compareRuns(before, s.Page)
	}
	l.watch.noteStart(s.Page)
	for _, n := range s.Page.Notes {
		if !slices.Contains(l.server.notes, n) && len(l.server.notes) < keepNotes {
			l.server.notes = append(l.server.notes, n)
		}
	}
	switch {
	case l.watch.restarted, l.seen.Phase == PhaseApplying:
	case l.seen.Phase == PhaseDown:
		if !l.watch.attaching || before != nil && sameStart(before, s.Page) {
			l.resume()
			l.feed(s)
		}
	default:
		l.feed(s)
	}
}

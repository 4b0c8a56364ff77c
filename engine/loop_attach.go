package engine

import (
	"slices"
	"time"
)

// server is what is known of the server beside what its samples say.
type server struct {
	Attached
	hands   bool
	noHands string
	devices []GPU
	notes   []string // of its pages, each once
}

const (
	attachAgain = time.Second     // between two attempts to find a server
	downPolls   = 2               // polls without an answer after which it is down
	longSilence = 4 * time.Second // between two samples, and lateAfter times the usual: rooftop itself was not there
)

// attach asks to find the server, once at a time.
func (l *Loop) attach(after time.Duration) {
	if l.watch.attaching {
		return
	}
	l.watch.attaching = true
	l.do(Attach{After: after})
}

func (l *Loop) attachFailed(why string) {
	l.watch.attaching = false
	if l.seen.AttachWhy != why && l.seen.Phase == PhaseAttach {
		l.write(LevelWarn, "", why)
	}
	l.seen.AttachWhy = why
	if l.seen.Phase == PhaseApplying && l.trial.applied {
		// It was started, and is gone: the change may have to be put back.
		l.trial.failed = true
		l.was, l.wasSince = PhaseApplying, l.seen.Since
		l.gone(why)
	}
	if l.seen.Phase == PhaseAttach || l.seen.Phase == PhaseDown {
		l.attach(attachAgain)
	}
}

// attached takes in what was learned of the server and finds out whether it is
// the run of before, another one with the same settings, or a changed one.
func (l *Loop) attached(in Attached) {
	l.watch.attaching = false
	l.seen.AttachWhy = ""
	if l.watch.again {
		// It was restarted once more while the facts were read: of which run they
		// are is not known.
		l.watch.again = false
		l.attach(0)
		return
	}
	another := l.seen.Attached && l.another(&in)
	was := l.seen.Phase
	switch {
	case was == PhaseDown:
		was = l.was
	case another && was != PhaseApplying:
		l.downAt = l.now
	}
	if another {
		l.rescue(was) // judged by the facts of the run that it is of
	}
	l.learn(in)
	next := configured(&l.server.Inputs, &l.seen.Facts)
	if next.settings == nil {
		next.made = l.running.made
	}
	switch {
	case !l.seen.Attached:
		l.firstAttached(next)
	case was == PhaseApplying:
		if l.trial.applied {
			l.back(was, next)
		}
	case another:
		l.back(was, next)
	case l.seen.Phase == PhaseDown && l.watch.failures == 0:
		l.resume()
	}
	l.watch.restarted, l.watch.moved, l.watch.fell = false, false, false
}

// learn takes in facts that were read.
func (l *Loop) learn(in Attached) {
	l.server.Attached = in
	l.server.hands, l.server.noHands = in.Hands, in.NoHands
	l.server.devices = in.Inputs.Devices
	l.seen.Missing, l.seen.GPUWhy = slices.Clip(in.Missing), in.GPUWhy
	l.server.notes = nil
	if l.watch.several {
		l.server.notes = []string{severalServers}
	}
	l.resolve()
	l.watch.found(&in)
	l.watch.ran, l.watch.ended = false, false
}

// resolve settles the facts from what is known by now.
func (l *Loop) resolve() {
	in := l.server.Inputs
	in.Page, in.Devices, in.Made = l.watch.page, l.server.devices, l.running.made
	s := &l.seen
	s.Facts = Resolve(in)
	s.Target = l.server.Target
	s.Target.Engine, s.Target.EngineVersion, s.Target.Model = s.Facts.Engine.Value, s.Facts.EngineVersion.Value, s.Facts.Model.Value
	s.Launch = in.LaunchText
	s.Notes = slices.Concat(l.server.Notes, l.server.notes)
}

// another says whether the server that answers is another run than the one
// before. Where its process is the same one, start times that differ are those of
// several API servers as long as the counters go on, and counters that fell were
// reset.
func (l *Loop) another(in *Attached) bool {
	a, b := l.server.Identity, in.Identity
	switch {
	case a != "" && b != "" && a != b:
		return true
	case !l.watch.restarted, l.watch.several && a == b:
		return false
	case a == "" || a != b, l.watch.moved && l.watch.fell:
		return true
	case len(changesFrom(l.running, configuration{settings: in.Inputs.Launch, command: in.Inputs.LaunchText, made: l.running.made})) > 0:
		return true
	case l.watch.fell:
		l.write(LevelWarn, "", "the counters on the page fell although the server's process is the same: they were reset, or several servers answer behind this address")
		l.life.cut()
	}
	return false
}

func (l *Loop) firstAttached(c configuration) {
	l.seen.Attached = true
	l.running, l.kept = c, c
	l.life = life{}
	name := l.seen.Target.Model
	text := "attached to " + l.seen.Target.URL
	if name != "" {
		text += ", " + name
	}
	l.tell(LevelInfo, Event{Kind: EventAttached, Text: text, Target: l.seen.Target, Command: c.command})
	l.startBaseline()
}

// resume goes on after a gap: the server that answers is the one of before.
func (l *Loop) resume() {
	gap := l.now - l.downAt
	l.watch.gap = 0 // nobody changed anything
	text := "the server answers again after " + seconds(gap)
	if tellsRun(l.watch.page) && !l.watch.several {
		text += ": it was not restarted"
	}
	l.tell(LevelInfo, Event{Kind: EventServerUp, Iteration: l.iteration(), Took: gap, Command: l.running.command, Text: text})
	l.mark(MarkUp, "answers again")
	l.enter(l.was)
	l.seen.Since = l.wasSince
	switch {
	case l.was == PhaseWorse:
		l.seen.Ask = l.question()
	case l.was == PhaseReverting && !l.off():
		// A change that was never made needs no way back.
		l.toWaiting()
	}
	if gap >= longSilence {
		l.life.cut()
	}
}

// back goes on with a server that runs anew, with its facts read.
func (l *Loop) back(was Phase, next configuration) {
	took := l.now - l.downAt
	l.tell(LevelInfo, Event{Kind: EventServerUp, Iteration: l.iteration(), Took: took, Command: next.command,
		Text: "the server answers again after " + seconds(took) + ", restarted"})
	l.mark(MarkUp, "restarted")
	if !l.watch.restarted {
		l.watch.known = nil // its first page is still to come, and is no further restart
	}
	l.life, l.starved = life{}, busyShare{}
	l.seen.Live = nil
	t := noticed(l.kept, l.running, next, l.wanted())
	l.restarts++
	l.pilot.up = l.now
	l.outage = l.watch.outage(l.now)
	l.pilot.used.UsedOutages += l.outage
	if was == PhaseApplying {
		l.pilot.longest = max(l.pilot.longest, l.outage)
	}
	l.phases[was].returned(l, next, t)
}

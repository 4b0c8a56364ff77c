package loop

import (
	"cmp"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// phaseBehaviour is how a phase handles events. A nil function does nothing.
type phaseBehaviour struct {
	// onWindow is called for each closed window.
	onWindow func()
	// onRestart is called after the server restarted and its facts were read, on the phase in
	// which the server went down.
	onRestart func(configuration, restartKind)
	// text is what the phase waits for, unless its windows show something else; waits returns
	// it if it varies.
	text  string
	waits func() string
	// length returns how long the phase lasts, 0 if unknown.
	length func() time.Duration
	// collectsWindows marks phases that collect windows for a measurement.
	collectsWindows bool
	// readsServer marks phases that read the server and notice when it does not answer.
	readsServer bool
}

// behaviours returns the behaviour of each phase.
func (l *Loop) behaviours() [NumPhases]phaseBehaviour {
	return [NumPhases]phaseBehaviour{
		PhaseAttach:    {text: "looking for a server"},
		PhaseBaseline:  {onWindow: l.baseline.baselineWindow, onRestart: l.baseline.returnedInBaseline, text: "measuring the baseline", length: l.baseline.measureLength, collectsWindows: true, readsServer: true},
		PhaseWaiting:   {onWindow: l.baseline.waitingWindow, onRestart: l.trials.returnedInWaiting, waits: l.auto.waitsForChange, readsServer: true},
		PhaseApplying:  {onRestart: l.trials.returnedFromApply, waits: l.applying.waitsForApply},
		PhaseDown:      {waits: l.conn.waitsForReturn},
		PhaseSettling:  {onWindow: l.settling.settlingWindow, onRestart: l.trials.returnedInTrial, text: "waiting for the load to be steady", length: l.settling.settleLength, readsServer: true},
		PhaseMeasuring: {onWindow: l.measuring.measuringWindow, onRestart: l.trials.returnedInTrial, text: "measuring", length: l.measuring.lookLength, collectsWindows: true, readsServer: true},
		PhaseWorse:     {onRestart: l.trials.returnedInWorse, text: "waiting for your answer: revert or continue", readsServer: true},
		PhaseReverting: {onRestart: l.trials.returnedInReverting, waits: l.trials.waitsForRevert, readsServer: true},
		PhaseCanary:    {onRestart: l.canaries.returned, waits: l.canaries.waits, length: l.canaries.length, readsServer: true},
	}
}

// progress returns the progress of the current phase. It stops while reading is paused.
func (l *Loop) progress() Progress {
	b := &l.phases[l.phase]
	now := l.now
	if l.paused {
		now = l.pausedAt
	}
	p := Progress{Elapsed: max(0, now-l.since)}
	if b.length != nil {
		p.Total = b.length()
	}
	if b.collectsWindows {
		if l.current.begunAt > 0 {
			p.Elapsed = max(0, now-l.current.begunAt)
		}
		if l.current.waitingFor != "" {
			p.Total = 0 // it ends when there is something to measure
		}
		switch {
		case p.Total > 0 && p.Elapsed > p.Total+2*engine.WindowLength:
			p.Total = 0 // pages, and so windows, come slowly
		case p.Total > 0:
			p.Elapsed = min(p.Elapsed, p.Total)
		}
	}
	p.Text = cmp.Or(l.current.waitingFor, b.text)
	if b.waits != nil {
		p.Text = b.waits()
	}
	return p
}

// stage is the current phase. All parts change it by enterPhase; the connection continues the
// phase in which the server went down.
type stage struct {
	clock    *recorder
	entered  func(Phase) // called when a phase starts
	phase    Phase
	since    time.Duration // start of the phase, without the pauses in it
	asked    string        // the pending question, "" if none
	paused   bool
	pausedAt time.Duration // start of the pause, or its end
}

// enterPhase starts a phase.
func (s *stage) enterPhase(p Phase) {
	s.phase, s.since, s.asked = p, s.clock.now, ""
	s.entered(p)
}

// phaseEntered drops what the phase before waited for.
func (l *Loop) phaseEntered(p Phase) {
	if p != PhaseWaiting {
		l.auto.cancelPending()
	}
	l.current.waitingFor = ""
	l.auto.announced, l.auto.uncertainSince = "", 0
}

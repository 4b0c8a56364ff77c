package engine

import (
	"slices"
	"time"
)

// behaviour is what a phase does about what happens; nil does nothing.
type behaviour struct {
	// window is called for each window that closed.
	window func(*Loop)
	// returned is called when the server runs anew, after its facts were read; it
	// is that of the phase in which the server went down.
	returned func(*Loop, configuration, turn)
	// waits says in words what the phase waits for.
	waits func(*Loop) string
	// of is how long the phase lasts, 0 where that is not known.
	of func(*Loop) time.Duration
	// measures says that windows are gathered for a measurement.
	measures bool
	// alive says that the server is read: its silence is noticed.
	alive bool
}

// behaviours is the table of the phases.
func behaviours() [NumPhases]behaviour {
	return [NumPhases]behaviour{
		PhaseAttach:    {waits: (*Loop).waitsForServer},
		PhaseBaseline:  {window: (*Loop).baselineWindow, returned: (*Loop).returnedInBaseline, waits: (*Loop).waitsForBaseline, of: (*Loop).measureLength, measures: true, alive: true},
		PhaseWaiting:   {window: (*Loop).waitingWindow, returned: (*Loop).returnedInWaiting, waits: (*Loop).waitsForChange, alive: true},
		PhaseApplying:  {returned: (*Loop).returnedFromApply, waits: (*Loop).waitsForApply},
		PhaseDown:      {waits: (*Loop).waitsForReturn},
		PhaseSettling:  {window: (*Loop).settlingWindow, returned: (*Loop).returnedInTrial, waits: (*Loop).waitsToSettle, of: (*Loop).settleLength, alive: true},
		PhaseMeasuring: {window: (*Loop).measuringWindow, returned: (*Loop).returnedInTrial, waits: (*Loop).waitsForMeasure, of: (*Loop).lookLength, measures: true, alive: true},
		PhaseWorse:     {returned: (*Loop).returnedInWorse, waits: (*Loop).waitsForAnswer, alive: true},
		PhaseReverting: {returned: (*Loop).returnedInReverting, waits: (*Loop).waitsForRevert, alive: true},
		PhaseDone:      {waits: func(*Loop) string { return "" }},
	}
}

// settleLength is when the settling ends at the latest: not known while there is no
// load, or too little of it to compare.
func (l *Loop) settleLength() time.Duration {
	if l.trial.loaded == 0 || l.now-l.trial.loaded > settleMost {
		return 0
	}
	return l.trial.loaded - l.seen.Since + settleMost
}

func (l *Loop) measureLength() time.Duration { return l.plan.Measure }

// lookLength is when the measurement of a change is looked at next.
func (l *Loop) lookLength() time.Duration {
	if t := &l.trial; t.look < len(t.looks) {
		return t.looks[t.look]
	}
	return 0
}

// underway is the measurement of a change that goes on, nil where none does.
func (l *Loop) underway() *Trial {
	n := len(l.iterations)
	if l.seen.Phase != PhaseMeasuring || !l.trial.open || n == 0 {
		return nil
	}
	t := &l.trial
	return &Trial{
		Iteration: l.iterations[n-1].N, Looks: t.looks, Measured: t.measured,
		Results: slices.Clip(t.results), Predicted: l.iterations[n-1].Predicted,
	}
}

// progress is how far the present phase is. It stands still while reading is
// paused.
func (l *Loop) progress() Progress {
	b := &l.phases[l.seen.Phase]
	now := l.now
	if l.seen.Paused {
		now = l.paused
	}
	p := Progress{Elapsed: max(0, now-l.seen.Since)}
	if b.of != nil {
		p.Of = b.of(l)
	}
	if b.measures {
		if l.life.begun > 0 {
			p.Elapsed = max(0, now-l.life.begun)
		}
		if l.life.waits != "" {
			p.Of = 0 // it ends when there is something to measure
		}
		switch {
		case p.Of > 0 && p.Elapsed > p.Of+2*WindowLength:
			p.Of = 0 // pages come slowly, and so do windows
		case p.Of > 0:
			p.Elapsed = min(p.Elapsed, p.Of)
		}
	}
	p.Text = b.waits(l)
	return p
}

package engine

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// comparableTries is how often the load after a change is measured in all while it
// is not that of before: clients may take a minute to come back, and a load that
// drifts may drift back.
const comparableTries = 3

// judge compares what was measured after a change with what was before it.
func (l *Loop) judge(windows []Window) {
	after := l.diagnose(windows)
	before := l.trial.before
	n := l.iteration()
	delta := Compare(before, after)
	if why := swayed(before, after, delta.Throughput); why != "" {
		delta.Direction, delta.Reason = NotComparable, outputChange(&delta)+", but "+why
		if l.trial.tries++; l.trial.tries < comparableTries {
			l.write(LevelWarn, "", "not comparable: "+delta.Reason+"; measured once more")
			l.measureTrial()
			return
		}
	}
	l.measured(after)
	load := traffic(before, after)
	if l.trial.unsteady != "" {
		load = append(load, "measured before the load was steady: "+l.trial.unsteady)
	}
	l.change(func(it *Iteration) { it.After, it.Delta, it.Load = after, &delta, load })
	l.trial.open = false
	l.trial.ran = after
	it := &l.iterations[len(l.iterations)-1]
	if it.Noticed == SameSettings {
		l.noiseMeasured(&delta, after, windows)
		return
	}
	l.mark(MarkVerdict, string(delta.Direction))
	l.tell(verdictLevel(delta.Direction), Event{Kind: EventVerdict, Iteration: n, Delta: &delta, Advice: l.predicted(it), Text: verdictText(&delta)})
	for _, text := range load {
		l.write(LevelWarn, "", "the load differs: "+text)
	}
	switch delta.Direction {
	case Better:
		l.keep(after, windows)
	case Worse:
		l.worse()
	default:
		l.noGain(after, windows)
	}
}

// predicted is what stood against a change, for those who follow the events.
func (l *Loop) predicted(it *Iteration) *Recommendation {
	if it.Predicted == nil {
		return nil
	}
	return &Recommendation{Fix: Fix{Kind: KindFlag, Predicted: it.Predicted}}
}

func verdictLevel(d Direction) Level {
	switch d {
	case Better:
		return LevelGood
	case Worse:
		return LevelBad
	}
	return LevelInfo
}

// outputChange spells the change of the throughput.
func outputChange(d *Delta) string { return "output " + signed("%+.0f %%", d.Throughput.V) }

func verdictText(d *Delta) string {
	names := map[Direction]string{Better: "better", Worse: "worse", Plateau: "no gain", Inconclusive: "inconclusive", NotComparable: "not comparable"}
	return names[d.Direction] + ": " + d.Reason
}

// noiseMeasured ends an iteration of the same settings.
func (l *Loop) noiseMeasured(d *Delta, after *Diagnosis, windows []Window) {
	text := "the same settings, measured again"
	switch {
	case d.Direction == NotComparable:
		text += ", says nothing of noise: " + d.Reason
	case d.Throughput.OK:
		l.noise.add(d.Throughput.V)
		text += ": output " + figure.Change(d.Throughput.V) + " % is noise"
	}
	l.write(LevelInfo, "", text)
	l.end(IterationNoise)
	if !l.trial.off {
		l.setBaseline(after, end(windows))
	}
	l.toWaiting()
}

func (l *Loop) keep(after *Diagnosis, windows []Window) {
	l.end(IterationKept)
	l.accept(after, windows)
	l.tell(LevelGood, Event{Kind: EventKept, Iteration: l.iteration(), Change: l.latestChange(), Command: l.kept.command, Text: "kept: it is the new baseline"})
	l.toWaiting()
}

// accept makes what runs the kept configuration, measured by a diagnosis.
func (l *Loop) accept(after *Diagnosis, windows []Window) {
	until := l.now
	if len(windows) > 0 {
		until = end(windows)
	}
	l.setBaseline(after, until)
	l.trial.off = false
	l.advice.forget()
}

func (l *Loop) latestChange() Change {
	if n := len(l.iterations); n > 0 && len(l.iterations[n-1].Changes) > 0 {
		return l.iterations[n-1].Changes[0]
	}
	return Change{}
}

// noGain leaves what gained nothing running until the next change, which takes it
// back. Where nobody knows what changed there is no way back: it is the same
// server as far as can be told.
func (l *Loop) noGain(after *Diagnosis, windows []Window) {
	l.end(IterationNoGain)
	l.remember()
	it := &l.iterations[len(l.iterations)-1]
	switch {
	case it.Noticed == Unreadable:
		l.setBaseline(after, end(windows))
		l.trial.off = false
	case it.Delta.Direction == Plateau:
		l.write(LevelInfo, "", "not kept: the next change takes it back")
	default:
		l.write(LevelInfo, "", "not judged: measure it again once the load is as before; the next change takes it back")
	}
	if l.plan.Auto {
		l.goBack()
		return
	}
	l.toWaiting()
}

// remember notes the change of the latest iteration as tried without a gain, or
// without a verdict. Of several at once nobody knows which it was.
func (l *Loop) remember() {
	it := &l.iterations[len(l.iterations)-1]
	if changes := material(it.Changes); len(changes) == 1 {
		a := attempted(changes[0].Flag+"="+changes[0].To, it.Before)
		a.unjudged = it.Delta != nil && (it.Delta.Direction == NotComparable || it.Delta.Direction == Inconclusive)
		l.advice.tried = append(l.advice.tried, a)
	}
}

// worse stops until somebody says what to do.
func (l *Loop) worse() {
	l.remember()
	if l.plan.Auto {
		l.goBack()
		return
	}
	l.ask()
}

func (l *Loop) ask() {
	l.enter(PhaseWorse)
	l.seen.Ask = l.question()
	l.do(Tell{Event{T: l.now, Kind: EventPaused, Iteration: l.iteration(), Text: l.seen.Ask}})
}

// question is what is asked when a change made it worse.
func (l *Loop) question() string {
	n := len(l.iterations)
	if n == 0 || l.iterations[n-1].Delta == nil {
		return "It is worse than before. Revert, or continue with this as the new baseline?"
	}
	return fmt.Sprintf("Worse: %s. Revert, or continue with this as the new baseline?", l.iterations[n-1].Delta.Reason)
}

package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// measureTrial begins the measurement of a change. When it is looked at is fixed
// before.
func (l *Loop) measureTrial() {
	l.enter(PhaseMeasuring)
	l.life.look()
	l.starved = busyShare{}
	l.trial.looks, l.trial.look = verdict.Looks(l.plan.Measure, l.plan.Longest), 0
	l.trial.results, l.trial.measured = nil, 0
	l.mark(MarkMeasure, fmt.Sprintf("change %d", l.iteration()))
}

func (l *Loop) measuringWindow() {
	part, ok := l.life.measure(l.plan.Measure)
	windows := l.measuredWindows()
	l.trial.measured = lengthOf(slicesOf(windows))
	switch {
	case len(part) > 0 && hangs(&part[len(part)-1]):
		l.life.waits = nothingMoves
	case ok:
		if n := l.due(); n > l.trial.look {
			l.lookAt(windows, part, n-1)
		}
	}
}

// overdue is how many times its longest a measurement may take: a load with long
// pauses, which do not count, would never fill it.
const overdue = 2

const nothingMoves = "requests are in, and nothing moves"

// measuredWindows are those of the measurement under way, from the first with load.
func (l *Loop) measuredWindows() []Window {
	windows := l.life.since(l.life.from)
	if from := firstLoaded(windows); from >= 0 {
		return windows[from:]
	}
	return nil
}

// due is how many of the looks have come: all of them where it took too long.
func (l *Loop) due() int {
	n := 0
	if l.now-l.seen.Since >= overdue*l.plan.Longest && l.trial.measured >= l.plan.Measure-windowSlack {
		return len(l.trial.looks)
	}
	for n < len(l.trial.looks) && l.trial.measured >= l.trial.looks[n]-windowSlack {
		n++
	}
	return n
}

// hangs says that requests were in at the end of a window for longer than any step
// took, and nothing moved: a change is not judged by what the server did before.
func hangs(w *Window) bool {
	return w.Evaluable && w.Stall > max(WindowLength, w.LongestStep)
}

// lookAt judges what was measured so far. Part is the latest stretch of it.
func (l *Loop) lookAt(windows, part []Window, look int) {
	t := &l.trial
	last := look == len(t.looks)-1
	it := &l.iterations[len(l.iterations)-1]
	plan := l.judging(touches(it.Changes, it.Noticed != Unreadable), verdict.Plan{Look: look, Looks: len(t.looks), Last: last})
	noise := it.Noticed == SameSettings
	if noise { // nothing is decided by it, so that looking again does no harm
		plan.Look, plan.Looks, plan.Last = 0, 1, true
	}
	before, after := t.side, l.sideOf(windows)
	after.Lives = append(slices.Clip(t.earlier), after.Lives...)
	before.CostPerHour, after.CostPerHour = costOf(t.before), l.costNow()
	r := verdict.Judge(&before, &after, plan)
	t.look = look + 1
	t.results = append(slices.Clip(t.results), r)
	settled := r.Settled
	switch {
	case last:
		settled = true
	case noise && r.Known && r.Direction != NotComparable:
		// What is asked is what the restart changed, not whether it matters.
		settled = r.Measured <= noiseEnough*l.precision() || l.own(&after) <= l.precision()
	case r.Direction == NotComparable:
		settled = false // the load may come back
		l.backAgain(part, plan)
	}
	next := time.Duration(0)
	if !settled {
		next = max(0, t.looks[look+1]-t.measured)
	}
	l.tell(LevelInfo, Event{Kind: EventTrial, Iteration: it.N, Took: t.measured, Look: look + 1, Looks: len(t.looks), Next: next, Advice: l.predicted(it), Verdict: &r,
		Text: lookText(t.measured, &r, settled)})
	if settled {
		l.judge(windows, after.Lives[len(after.Lives)-1], &r)
	}
}

// backAgain begins the measurement with its latest stretch where the load of that
// one is comparable, and of all of it is not: clients took their time.
func (l *Loop) backAgain(part []Window, plan verdict.Plan) {
	lately := l.sideOf(part)
	lately.Lives = append(slices.Clip(l.trial.earlier), lately.Lives...)
	if r := verdict.Judge(&l.trial.side, &lately, plan); r.Direction != NotComparable && r.Known {
		l.life.from = part[0].Index
	}
}

// sideOf is a side of one run: of the windows of the measurement under way.
func (l *Loop) sideOf(windows []Window) verdict.Side {
	return verdict.Side{Lives: []verdict.Life{slicesOf(windows)}, Busy: l.starved.share()}
}

// costOf is the price of the server that a diagnosis is of, in dollars an hour.
func costOf(d *Diagnosis) stat.Opt {
	if d == nil || !d.Facts.CostPerHour.Known {
		return stat.None
	}
	return stat.Some(d.Facts.CostPerHour.Value)
}

func (l *Loop) costNow() stat.Opt {
	if !l.seen.Facts.CostPerHour.Known {
		return stat.None
	}
	return stat.Some(l.seen.Facts.CostPerHour.Value)
}

// lookText is what a look shows, in a line.
func lookText(measured time.Duration, r *verdict.Result, settled bool) string {
	text := "after " + seconds(measured) + ": "
	if !r.Known {
		text += r.Reason
	} else {
		text += lookInterval(r.Effect)
	}
	switch {
	case settled:
	case r.Need != "":
		text += "; measured on: " + r.Need
	default:
		text += "; measured on"
	}
	return text
}

// lookInterval spells an interval to a tenth; one as wide as what it is about says no
// more than that.
func lookInterval(e verdict.Interval) string {
	tenth := func(ratio float64) string { return figure.Minus(fmt.Sprintf("%+.1f", 100*ratio)) }
	if e.High-e.Low > mostTold {
		return tenth(e.Mid) + " %, hardly known yet"
	}
	return fmt.Sprintf("%s %% (%s to %s %%)", tenth(e.Mid), tenth(e.Low), tenth(e.High))
}

// mostTold is the width of an interval, as a ratio, up to which it is told.
const mostTold = 10.0

// judge ends the measurement of a change with the verdict on it.
func (l *Loop) judge(windows []Window, life verdict.Life, r *verdict.Result) {
	after := l.diagnose(windows)
	before := l.trial.before
	n := l.iteration()
	delta := Compare(before, after)
	delta.Direction, delta.Reason, delta.Verdict = r.Direction, r.Reason, r
	l.measured(after)
	load := traffic(before, after)
	if l.trial.unsteady != "" {
		load = append(load, "measured before the load was steady: "+l.trial.unsteady)
	}
	l.change(func(it *Iteration) { it.After, it.Delta, it.Load = after, &delta, load })
	l.trial.open = false
	l.trial.ran, l.trial.ranLife = after, life
	it := &l.iterations[len(l.iterations)-1]
	if it.Noticed == SameSettings {
		l.noiseMeasured(&delta, after, windows)
		return
	}
	l.mark(MarkVerdict, string(delta.Direction))
	l.tell(verdictLevel(delta.Direction), Event{Kind: EventVerdict, Iteration: n, Delta: &delta, Verdict: r, Canary: it.Canary, Advice: l.predicted(it), Text: verdictText(&delta)})
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

func verdictText(d *Delta) string {
	names := map[Direction]string{Better: "better", Worse: "worse", Plateau: "no gain", Inconclusive: "inconclusive", NotComparable: "not comparable"}
	return names[d.Direction] + ": " + d.Reason
}

// noiseMeasured ends an iteration of the same settings.
func (l *Loop) noiseMeasured(d *Delta, after *Diagnosis, windows []Window) {
	life := l.trial.ranLife
	before := l.trial.side.Lives
	difference := stat.None
	if n := len(before); n > 0 {
		difference = l.apart(before[n-1], life)
	}
	l.differed(d.Verdict, difference)
	l.end(IterationNoise)
	if !l.trial.off {
		b := base{lives: before[max(0, len(before)-sideLives+1):], live: extended(nil, life, l.plan.Longest), busy: l.starved.share()}
		if d.Direction == NotComparable {
			b.lives = nil
		}
		l.setBaseline(after, windows)
		l.base = b
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
	l.succeed()
	l.setBaseline(after, windows)
	l.setBase(l.trial.ranLife)
	l.base.lives = l.trial.earlier
	l.trial.off, l.trial.made, l.unsure = false, nil, nil
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
// server as far as can be told. A change of rooftop's own is known to its hands.
func (l *Loop) noGain(after *Diagnosis, windows []Window) {
	l.end(IterationNoGain)
	l.remember()
	it := &l.iterations[len(l.iterations)-1]
	l.doubted(it)
	switch {
	case it.Noticed == Unreadable && len(l.trial.made) == 0:
		l.setBaseline(after, windows)
		l.setBase(l.trial.ranLife)
		l.trial.off = false
		l.adopted()
	case it.Delta.Direction == Plateau:
		l.write(LevelInfo, "", "not kept: the next change takes it back")
	case it.Delta.Direction == Inconclusive:
		l.write(LevelInfo, "", "not kept: noise hides whether it gained anything; the next change takes it back")
	default:
		l.write(LevelInfo, "", "not judged: measure it again once the load is as before; the next change takes it back")
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

// worse stops until somebody says what to do; an automatic run puts back what was.
func (l *Loop) worse() {
	l.remember()
	if l.plan.Auto && !l.seen.Held {
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

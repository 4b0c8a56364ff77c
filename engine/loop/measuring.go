package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// measuring measures a change until there is a verdict.
type measuring struct {
	*shared
	baseline *baselines
	settling *settling
	trials   *trials

	looks    []time.Duration // times of the looks, since the start of the measurement
	nextLook int             // number of the next look
	results  []verdict.Result
	measured time.Duration // measured so far
}

// measureTrial starts the measurement of a change. The times of its looks are fixed in advance.
func (m *measuring) measureTrial() {
	m.enterPhase(PhaseMeasuring)
	m.current.startPhase()
	m.current.host = hostLoad{}
	m.scheduleLooks()
	m.addMark(MarkMeasure, fmt.Sprintf("change %d", m.iteration()))
}

// scheduleLooks fixes the times of the looks at a measurement that begins.
func (m *measuring) scheduleLooks() {
	m.looks, m.nextLook = verdict.Looks(m.plan.Measure, m.plan.Longest), 0
	m.results, m.measured = nil, 0
}

func (m *measuring) measuringWindow() {
	part, ok := m.current.measure(m.plan.Measure)
	windows := m.measuredWindows()
	m.measured = effect.Length(effect.Slices(windows))
	n := m.looksDue()
	if !ok && n == len(m.looks) && m.isOverdue() {
		ok, part = true, nil
	}
	if ok && n > m.nextLook {
		m.lookAt(windows, part, n-1)
	}
}

// overdue is the longest duration of a measurement, as a multiple of Plan.Longest: a load with
// long pauses, which do not count, would never complete it.
const overdue = 2

const nothingMoves = "requests are running or queued, but no tokens are generated"

// measuredWindows returns the windows of the current measurement, from the first with load.
func (m *measuring) measuredWindows() []engine.Window {
	windows := m.current.windowsFrom(m.current.from)
	if from := firstLoaded(windows); from >= 0 {
		return windows[from:]
	}
	return nil
}

// isOverdue reports whether the measurement takes longer than load with pauses explains.
func (m *measuring) isOverdue() bool { return m.now-m.since >= overdue*m.plan.Longest }

// looksDue returns the number of looks that are due: all of them if the measurement is overdue.
func (m *measuring) looksDue() int {
	n := 0
	if m.isOverdue() && m.measured >= m.plan.Measure-engine.WindowSlack {
		return len(m.looks)
	}
	for n < len(m.looks) && m.measured >= m.looks[n]-engine.WindowSlack {
		n++
	}
	return n
}

// hangs reports whether, at the end of a window, requests made no progress for longer than any
// step took. A change is not judged by what the server did before.
func hangs(w *engine.Window) bool {
	return w.Evaluable && w.Stall > max(engine.WindowLength, w.LongestStep)
}

// lookAt judges the measurement so far. part is its latest stretch, none in a pause of the load that ends the measurement.
func (m *measuring) lookAt(windows, part []engine.Window, look int) {
	last := look == len(m.looks)-1
	it := m.lastIteration()
	plan := m.baseline.judging(effect.TouchedBy(it.Changes, it.Noticed != Unreadable), verdict.Plan{Look: look, Looks: len(m.looks), Last: last, Again: m.trials.again})
	noise := it.Noticed == SameSettings
	if noise { // it decides nothing, so that repeated looks do no harm
		plan.Look, plan.Looks, plan.Last = 0, 1, true
	}
	before, after := m.trials.side, m.sideOf(windows)
	after.Incarnations = append(slices.Clip(m.trials.earlierStarts), after.Incarnations...)
	if m.trials.before != nil {
		before.CostPerHour = engine.FactOpt(m.trials.before.Facts.CostPerHour)
	}
	after.CostPerHour = engine.FactOpt(m.server.facts.CostPerHour)
	r := verdict.Judge(&before, &after, plan)
	settled := r.Settled
	if len(part) == 0 && m.nextLook == 0 {
		r.Direction, r.Cause, r.NamesEffect = verdict.NotComparable, verdict.ByTraffic, false
		r.Reason, r.Need = "the load comes in bursts that are too short to measure", "longer bursts"
	}
	switch {
	case last:
		settled = true
	case noise && r.Known && r.Direction != verdict.NotComparable:
		// The question is what the restart changed, not whether it matters.
		settled = m.baseline.compareStarts(&before, &after).Measured <= sufficientSpread*m.baseline.precision() || m.baseline.selfUncertainty(&after) <= m.baseline.precision()
	case r.Direction == verdict.NotComparable:
		settled = false // comparable load may return
		m.restartWhenComparable(part, plan)
	}
	m.noteLook(&r, look, settled)
	if settled {
		m.judge(windows, after.Incarnations[len(after.Incarnations)-1], &r)
	}
}

// noteLook keeps the result of a look and reports it.
func (m *measuring) noteLook(r *verdict.Result, look int, settled bool) {
	m.nextLook = look + 1
	m.results = append(slices.Clip(m.results), *r)
	next := time.Duration(0)
	if !settled {
		next = max(0, m.looks[look+1]-m.measured)
	}
	it := m.lastIteration()
	m.emit(LevelInfo, Event{Kind: EventTrial, Iteration: it.N, Took: m.measured, Look: look + 1, Looks: len(m.looks), Next: next, Advice: m.predicted(it), Verdict: r,
		Text: lookText(m.measured, r, settled)})
}

// restartWhenComparable restarts the measurement at its latest stretch if the load is comparable
// in that stretch but not in the whole: clients were slow to return.
func (m *measuring) restartWhenComparable(part []engine.Window, plan verdict.Plan) {
	lately := m.sideOf(part)
	lately.Incarnations = append(slices.Clip(m.trials.earlierStarts), lately.Incarnations...)
	if r := verdict.Judge(&m.trials.side, &lately, plan); r.Direction != verdict.NotComparable && r.Known {
		m.current.from = part[0].Index
	}
}

// sideOf returns windows of the current measurement as one side of a comparison.
func (m *measuring) sideOf(windows []engine.Window) verdict.Side {
	return verdict.Side{Incarnations: []verdict.Incarnation{effect.Slices(windows)}, Host: m.current.host.mean()}
}

// lookText returns the result of a look as one line.
func lookText(measured time.Duration, r *verdict.Result, settled bool) string {
	text := "after " + figure.Elapsed(measured) + ": "
	if !r.Known {
		text += r.Reason
	} else {
		text += lookInterval(r.Effect)
	}
	switch {
	case settled:
	case r.Need != "":
		text += "; continuing, needs " + r.Need
	default:
		text += "; continuing"
	}
	return text
}

// lookInterval formats an interval in tenths of a percent, or only states that it is wide.
func lookInterval(e verdict.Interval) string {
	tenth := func(ratio float64) string { return figure.Minus(fmt.Sprintf("%+.1f", 100*ratio)) }
	if e.High-e.Low > widestShown {
		return tenth(e.Mid) + " %, not resolved yet"
	}
	return fmt.Sprintf("%s %% (%s to %s %%)", tenth(e.Mid), tenth(e.Low), tenth(e.High))
}

// widestShown is the largest width of an interval, as a ratio, that is shown.
const widestShown = 10.0

// judge ends the measurement of a change with a verdict.
func (m *measuring) judge(windows []engine.Window, start verdict.Incarnation, r *verdict.Result) {
	after := m.diagnose(windows)
	before := m.trials.before
	n := m.iteration()
	delta := effect.Compare(before, after)
	delta.Direction, delta.Reason, delta.Verdict = r.Direction, r.Reason, r
	if it := m.lastIteration(); it.Beside != "" {
		delta.Reason += "; before, " + it.Beside
	}
	m.baseline.announceMeasurement(after, "")
	load := traffic(delta.Judged(before, after))
	if m.settling.unsteady != "" {
		load = append(load, "measured before the load was steady: "+m.settling.unsteady)
	}
	m.alterLatest(func(it *Iteration) { it.After, it.Delta, it.Load = after, &delta, load })
	m.trials.noteMeasurement(after, start)
	it := m.lastIteration()
	if it.Noticed == SameSettings {
		m.noiseMeasured(&delta, after, windows)
		return
	}
	m.addMark(MarkVerdict, string(delta.Direction))
	m.emit(verdictLevel(delta.Direction), Event{Kind: EventVerdict, Iteration: n, Delta: &delta, Verdict: r, AnswerCheck: it.AnswerCheck, Advice: m.predicted(it), Text: verdictText(&delta)})
	for _, text := range load {
		m.writeEntry(LevelWarn, "", "the load differs: "+text)
	}
	switch {
	case delta.Direction == verdict.Worse:
		m.trials.onWorse()
	case delta.Direction == verdict.Better, delta.Direction != verdict.Plateau && it.Beside != "" && it.Noticed == AsRecommended:
		// A change that was better as a canary is kept although noise or the load hides it now.
		m.trials.keep(after, windows)
	default:
		m.trials.noGain(after, windows)
	}
}

// predicted returns the prediction of a change, for events.
func (m *measuring) predicted(it *Iteration) *engine.Recommendation {
	if it.Predicted == nil {
		return nil
	}
	return &engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag, Predicted: it.Predicted}}
}

func verdictLevel(d verdict.Direction) Level {
	switch d {
	case verdict.Better:
		return LevelGood
	case verdict.Worse:
		return LevelBad
	}
	return LevelInfo
}

func verdictText(d *effect.Delta) string {
	names := map[verdict.Direction]string{verdict.Better: "better", verdict.Worse: "worse", verdict.Plateau: "no gain", verdict.Inconclusive: "unresolved", verdict.NotComparable: "not comparable"}
	return names[d.Direction] + ": " + d.Reason
}

// noiseMeasured ends an iteration with unchanged settings.
func (m *measuring) noiseMeasured(d *effect.Delta, after *engine.Diagnosis, windows []engine.Window) {
	start := m.trials.lastSlices
	before := m.trials.side.Incarnations
	difference := stat.None
	if n := len(before); n > 0 {
		difference = m.baseline.logDifference(before[n-1], start)
	}
	if !m.trials.spreadNoted { // one start is one repeat, however often it is measured
		m.trials.spreadNoted = m.baseline.noteSpread(d.Verdict, difference)
	}
	m.trials.endIteration(IterationNoise)
	if !m.notKept {
		earlier := before[max(0, len(before)-effect.MostStarts+1):]
		if d.Direction == verdict.NotComparable {
			earlier = nil
		}
		m.baseline.setBaseline(after, windows)
		m.baseline.setBase(start, earlier)
	}
	m.trials.toWaiting()
}

// lookLength returns the time of the next look at a change.
func (m *measuring) lookLength() time.Duration {
	if m.nextLook < len(m.looks) {
		return m.looks[m.nextLook]
	}
	return 0
}

// underway returns the current measurement of a change, or nil.
func (m *measuring) underway() *Trial {
	it := m.lastIteration()
	if m.phase != PhaseMeasuring && m.phase != PhaseCanary || !m.trials.open || it == nil || len(m.looks) == 0 {
		return nil
	}
	return &Trial{Iteration: it.N, Looks: m.looks, Measured: m.measured, Results: slices.Clip(m.results), Predicted: it.Predicted}
}

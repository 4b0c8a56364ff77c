package loop

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// baselines measures the kept configuration, and judges by it.
type baselines struct {
	*shared
	trials  *trials
	advisor *advisor
	auto    *autopilot

	// diagnosis is that of the baseline, nil while it is measured first; firm is set once it is
	// complete.
	diagnosis    *engine.Diagnosis
	firm         bool
	filling      bool // the KV pool was still filling over the baseline
	measured     baselineData
	renewal      renewal
	inconclusive []inconclusive
	noise        bounded[float64] // differences in log throughput between starts
	ratios       bounded[float64] // the same as ratios
}

// baselineData are the measurements of the kept configuration, against which changes are
// judged. Its slices are replaced and never modified, because trials keep them.
type baselineData struct {
	earlier []verdict.Incarnation // earlier starts, oldest first, fewer than mostStarts
	latest  verdict.Incarnation   // the running start, or the last one
	// spreadUnknown marks latest as a further start of the configuration of earlier, whose
	// difference because of the restart is still to be measured.
	spreadUnknown bool
	host          verdict.Host
}

// side returns all starts as one side of a comparison.
func (b *baselineData) side() verdict.Side {
	s := verdict.Side{Host: b.host, Incarnations: slices.Clip(b.earlier)}
	if len(b.latest) > 0 {
		s.Incarnations = append(s.Incarnations, b.latest)
	}
	return s
}

// startBefore returns the last of the earlier starts as a side of a comparison.
func (b *baselineData) startBefore() verdict.Side {
	return verdict.Side{Incarnations: b.earlier[len(b.earlier)-1:]}
}

// beginNextStart begins another start of the same configuration.
func (b *baselineData) beginNextStart() {
	if len(b.latest) == 0 {
		return
	}
	starts := slices.Concat(b.earlier, []verdict.Incarnation{b.latest})
	*b = baselineData{earlier: starts[max(0, len(starts)-effect.MostStarts+1):], spreadUnknown: true}
}

// setBase replaces the measurements of the kept configuration by one start, and earlier ones.
func (b *baselines) setBase(start verdict.Incarnation, earlier []verdict.Incarnation) {
	b.measured = baselineData{earlier: earlier, latest: effect.Append(nil, start, b.plan.Longest), host: b.current.host.mean()}
}

// renewal tracks the renewal of the baseline while the loop waits for a change.
type renewal struct {
	from  int           // index of the first window of the current stretch
	since int           // index of the first window of the current baseline
	until time.Duration // end of the baseline
	// outlier is a stretch far from the baseline that the next stretch must confirm, with its
	// slices and its first window.
	outlier       *engine.Diagnosis
	outlierSlices verdict.Incarnation
	outlierSince  int
}

// startRenewal begins the renewal with the open window.
func (b *baselines) startRenewal() {
	r := &b.renewal
	r.from = b.current.openIndex()
	r.outlier, r.outlierSlices = nil, nil // of an earlier start, or of the load before a change
	if len(b.measured.latest) == 0 {
		r.since = r.from
	}
}

// restore makes an earlier baseline the current one.
func (b *baselines) restore(diagnosis *engine.Diagnosis, measured baselineData) {
	b.diagnosis, b.measured = diagnosis, measured
}

// excludedTail is the number of latest windows that are excluded from the baseline while the loop
// waits for a change: a server that is being stopped drains its requests.
const excludedTail = 2

// renew adds the last completed stretch to the baseline. A stretch that is far from all of the
// baseline's waits for the next. If that agrees with it, the load or the state of the
// server is a different one, and the baseline begins there, unless a restart explains it. If
// the next differs from both, the load varies from one stretch to the next, and what waited
// belongs to the baseline.
func (b *baselines) renew() {
	r := &b.renewal
	windows := b.current.windowsFrom(r.from)
	if len(windows) <= excludedTail {
		return
	}
	windows = windows[:len(windows)-excludedTail]
	part, ok, _ := latestStretch(windows, b.plan.Measure)
	if !ok {
		return
	}
	r.from = part[len(part)-1].Index + 1
	if slices.ContainsFunc(part, func(w engine.Window) bool { return hangs(&w) }) {
		return // a stalled server shows nothing
	}
	d, more := b.diagnose(part), effect.Slices(part)
	data, isFar := &b.measured, b.isFar(d, more)
	add, until := slices.Concat(r.outlierSlices, more), windowsEnd(part)
	if isFar && (r.outlier == nil || differsMuch(r.outlier, d)) {
		add, until = r.outlierSlices, part[0].Start
		r.outlier, r.outlierSlices, r.outlierSince = d, more, part[0].Index
		if add == nil {
			return
		}
	} else {
		if isFar {
			r.since = r.outlierSince
			if !b.differsByRestart(add) {
				data.earlier, data.latest, data.spreadUnknown = nil, nil, false
				b.inconclusive = nil
			}
		}
		r.outlier, r.outlierSlices = nil, nil
	}
	r.until = until
	data.latest = effect.Append(data.latest, add, b.plan.Longest)
	data.host = b.current.host.mean()
	renewed := b.renewedWindows(until)
	b.diagnosis, b.filling = b.diagnose(renewed), poolFilling(renewed)
	b.auto.unasked = 0
	b.measureSpread()
	b.advisor.reconsider(d)
	b.auto.proceed()
}

// renewedWindows returns the windows of the baseline that are still kept, up to a time.
func (b *baselines) renewedWindows(until time.Duration) []engine.Window {
	windows := b.current.windowsFrom(b.renewal.since)
	n := len(windows)
	for n > 1 && windowsEnd(windows[:n]) > until {
		n--
	}
	return latestWindows(windows[:n], b.plan.Longest)
}

// isFar reports whether the throughput of a stretch differs from that of each stretch of the
// baseline as much as between different loads.
func (b *baselines) isFar(d *engine.Diagnosis, stretch verdict.Incarnation) bool {
	rates, now := effect.Rates(b.measured.latest, b.plan.Measure), effect.Rates(stretch, b.plan.Measure)
	if len(rates) == 0 || len(now) == 0 {
		return differsMuch(b.diagnosis, d)
	}
	return now[0] > (1+effect.ThroughputShift)*slices.Max(rates) || now[0] < (1-effect.ThroughputShift)*slices.Min(rates)
}

// differsMuch reports whether the throughput of two measurements differs as much as between
// different loads.
func differsMuch(a, b *engine.Diagnosis) bool {
	change := effect.Relative(a.Quantity("generation_tokens_per_s").Value, b.Quantity("generation_tokens_per_s").Value)
	return !change.OK || change.V > effect.ThroughputShift || change.V < -effect.ThroughputShift
}

// maxSpreadUncertainty is the largest uncertainty, as a multiple of the precision, for measuring the
// difference between restarts. Beyond it the scatter of the load would be mistaken for it.
const maxSpreadUncertainty = 2.5

// sufficientSpread is the uncertainty, as a multiple of the precision, at which that measurement ends.
const sufficientSpread = 1.5

// differsByRestart reports whether a further start of the kept configuration was different from its beginning under
// the load of the start before, so that the restart made the difference, however large.
func (b *baselines) differsByRestart(start verdict.Incarnation) bool {
	if !b.measured.spreadUnknown || len(b.measured.latest) > 0 {
		return false
	}
	before, after := b.measured.startBefore(), verdict.Side{Incarnations: []verdict.Incarnation{start}}
	r := b.compareStarts(&before, &after)
	return r.Known && r.Direction != verdict.NotComparable
}

// measureSpread determines the random difference caused by a restart, once enough of a further
// start of the kept configuration was measured.
func (b *baselines) measureSpread() {
	data := &b.measured
	if !data.spreadUnknown {
		return
	}
	before := data.startBefore()
	after := verdict.Side{Incarnations: []verdict.Incarnation{data.latest}}
	full := effect.Length(data.latest) >= b.plan.Longest-b.plan.Measure
	r := b.compareStarts(&before, &after)
	if !full && (!r.Known || r.Direction == verdict.NotComparable || r.Measured > sufficientSpread*b.precision()) {
		return
	}
	data.spreadUnknown = false
	b.noteSpread(&r, b.logDifference(before.Incarnations[0], data.latest))
}

// logDifference returns the difference in the logarithm of throughput between two starts
// without their warm-up, as a verdict computes it.
func (b *baselines) logDifference(before, after verdict.Incarnation) stat.Opt {
	r := verdict.Judge(&verdict.Side{Incarnations: []verdict.Incarnation{before}}, &verdict.Side{Incarnations: []verdict.Incarnation{after}},
		verdict.Plan{Looks: 1, Last: true})
	if !r.Known {
		return stat.None
	}
	return stat.Some(math.Log1p(r.Effect.Mid))
}

// noteSpread records the difference between two starts of one configuration, and reports whether it is known.
func (b *baselines) noteSpread(r *verdict.Result, difference stat.Opt) bool {
	text := "the same settings, measured again"
	switch {
	case r.Direction == verdict.NotComparable:
		text += ": restart noise is unknown, " + r.Reason
	case !difference.OK:
		text += ": restart noise is unknown, its throughput is unknown"
	case r.Known && r.Measured > maxSpreadUncertainty*b.precision():
		text += ": the load varies too much to measure restart noise"
	default:
		ratio := math.Expm1(difference.V)
		b.noise.add(difference.V)
		b.ratios.add(ratio)
		b.emit(LevelInfo, Event{Kind: EventSpread, Iteration: b.iteration(), Log: difference, Text: text + ": output " + figure.ChangeSign(ratio) + " is restart noise"})
		return true
	}
	b.writeEntry(LevelInfo, "", text)
	return false
}

// precision returns the relative difference that matters.
func (b *baselines) precision() float64 {
	if b.plan.Precision > 0 {
		return b.plan.Precision
	}
	return DefaultPrecision
}

// DefaultPrecision is the default of engine/verdict.
const DefaultPrecision = 0.03

// compareStarts compares two sides by what was measured alone, without the spread of restarts.
func (b *baselines) compareStarts(before, after *verdict.Side) verdict.Result {
	p := b.judging(verdict.Touch{}, verdict.Plan{Looks: 1, Last: true})
	p.Spread = verdict.Spread{}
	return verdict.Judge(before, after, p)
}

// detectable returns the least gain, as a ratio, that each look of a trial of the kept configuration's
// change would distinguish from noise in four of five cases; nil if unknown.
func (b *baselines) detectable(looks []time.Duration) []float64 {
	side := b.measured.side()
	return verdict.Detectable(&side, b.judging(verdict.Touch{}, verdict.Plan{}), looks)
}

// outlook returns how long a trial of a change takes to distinguish its predicted gain from noise, or that it
// does not, as a sentence; "" without a prediction of a gain that matters, or if the baseline is too
// short to tell.
func (b *baselines) outlook(r *engine.Recommendation) string {
	p := engine.PredictionOf(r.Predicted, b.plan.Goal.Quantity())
	looks := verdict.Looks(b.plan.Measure, b.plan.Longest)
	least := b.detectable(looks)
	if !p.Mid.OK || p.Mid.V <= -1 || math.Abs(p.Mid.V) < b.precision() || len(least) == 0 || r.Kind != engine.KindFlag {
		return ""
	}
	gain := math.Abs(math.Log1p(p.Mid.V))
	for i, at := range looks {
		if gain >= math.Log1p(least[i]) {
			return "expected: about " + figure.Elapsed(at) + " of measurement to distinguish the predicted " + figure.ChangeSign(p.Mid.V) + " from noise"
		}
	}
	last := least[len(least)-1]
	if last > mostTold {
		return ""
	}
	return "expected: the predicted " + figure.ChangeSign(p.Mid.V) + " stays unresolved within " + figure.Elapsed(b.plan.Longest) +
		" of measurement; with one start, changes of " + figure.PercentSign(last) + " and more can be distinguished from noise"
}

// mostTold is the largest change, as a ratio, that is named as the least one distinguished from noise: above,
// the noise of a short baseline says little about that of a whole one.
const mostTold = 1.0

// judging completes a verdict plan with the settings of this run.
func (b *baselines) judging(touch verdict.Touch, p verdict.Plan) verdict.Plan {
	p.Goal, p.Objectives, p.Precision, p.Touch = b.plan.Goal, b.plan.Objectives, b.precision(), touch
	p.Spread = verdict.Widen(slices.Concat(b.plan.Repeats, b.noise.view()))
	return p
}

// lacking returns why the kept configuration must be measured for longer to resolve the predicted gain or,
// if r is nil, to be left as it is, as the end of a sentence, and for how long at most under load; "" if it
// was measured well enough. An uncertainty of a sixth of the gain is the best that a verdict reaches, and half
// the precision suffices for any.
func (b *baselines) lacking(r *engine.Recommendation) (why string, most time.Duration) {
	side, short, left := b.measured.side(), verdict.LongestBurst-engine.WindowSlack, b.measuringLeft()
	for _, start := range side.Incarnations {
		short -= effect.Length(start)
	}
	switch {
	case left == 0:
		return "", 0
	case b.filling:
		return "because the KV pool is still filling", b.inStretches(left)
	case r != nil && b.selfUncertainty(&side) > max(b.precision()/2, gainToTell(r.Predicted, b.plan.Goal)/6):
		return "until the predicted gain can be distinguished from noise", b.inStretches(left)
	case short > 0:
		return "to outlast a burst of another workload", b.inStretches(min(left, short))
	}
	return "", 0
}

// inStretches returns how long a measurement of d takes: it is continued by whole stretches, and the latest windows are
// left out.
func (b *baselines) inStretches(d time.Duration) time.Duration {
	return (d+b.plan.Measure-1)/b.plan.Measure*b.plan.Measure + (excludedTail+1)*engine.WindowLength
}

// measuringLeft returns how much longer the kept configuration is measured under load, at most.
func (b *baselines) measuringLeft() time.Duration {
	return max(0, b.plan.Longest-b.plan.Measure-effect.Length(b.measured.latest))
}

// selfUncertainty returns half the width of the interval of one side by itself, as a ratio; 0
// if unknown.
func (b *baselines) selfUncertainty(s *verdict.Side) float64 {
	r := b.compareStarts(s, s)
	if !r.Known {
		return 0
	}
	return r.Measured / math.Sqrt2 // the side was compared with itself, as if with another
}

// unknownGain is the gain assumed for a change without a prediction. It is large, because a
// small gain cannot be distinguished from restarts.
const unknownGain = 0.3

// gainToTell returns the size of the predicted change of a goal: its middle, or the middle of its
// known part; unknownGain without a prediction.
func gainToTell(list []engine.Prediction, goal verdict.Goal) float64 {
	p := engine.PredictionOf(list, goal.Quantity())
	switch {
	case p.Mid.OK:
		return math.Abs(p.Mid.V)
	case p.Low.OK && p.High.OK:
		return math.Abs(p.Low.V+p.High.V) / 2
	case p.High.OK:
		return math.Abs(p.High.V) / 4
	}
	return unknownGain
}

// longestRunWait returns the largest share of time that a process waited for a CPU.
func longestRunWait(list []Process) stat.Opt {
	most := stat.None
	for i := range list {
		most = most.Max(list[i].RunWait)
	}
	return most
}

// inconclusive is a change that was measured without a verdict. A further start of it adds to
// its measurements.
type inconclusive struct {
	changes []engine.Change
	starts  []verdict.Incarnation
}

// mostInconclusive bounds the number of remembered inconclusive changes.
const mostInconclusive = 4

// earlierStarts returns the starts of a change that was measured without a verdict.
func (b *baselines) earlierStarts(changes []engine.Change) []verdict.Incarnation {
	for i := range b.inconclusive {
		if u := &b.inconclusive[i]; len(changes) > 0 && engine.SameChanges(u.changes, material(changes)) {
			return u.starts
		}
	}
	return nil
}

// keepInconclusive keeps the latest start of a change whose effect is below the noise.
func (b *baselines) keepInconclusive(it *Iteration) {
	if it.Delta.Direction != verdict.Inconclusive || it.Noticed == Unreadable || !it.Delta.Verdict.Known {
		return
	}
	changes := material(it.Changes)
	starts := slices.Concat(b.trials.earlierStarts, []verdict.Incarnation{b.trials.lastSlices})
	b.inconclusive = slices.DeleteFunc(b.inconclusive, func(u inconclusive) bool { return engine.SameChanges(u.changes, changes) })
	b.inconclusive = append(b.inconclusive, inconclusive{changes, starts[max(0, len(starts)-effect.MostStarts+1):]})
	b.inconclusive = b.inconclusive[max(0, len(b.inconclusive)-mostInconclusive):]
}

// returnedInBaseline continues after a restart before the baseline was complete, with the
// measurements so far if they suffice.
func (b *baselines) returnedInBaseline(next configuration, kind restartKind) {
	if b.diagnosis != nil {
		b.firm = true
		b.trials.returnedInWaiting(next, kind)
		return
	}
	text := "restarted before the baseline was measured: measuring it again"
	if len(kind.changes) > 0 {
		text += "; changed " + engine.JoinChanges(kind.changes)
	}
	b.writeEntry(LevelInfo, EventServerUp, text)
	b.running, b.kept = next, next
	if len(kind.changes) > 0 || kind.Noticed == Unreadable {
		b.trials.announceAdopted()
	}
	b.startBaseline()
}

func (b *baselines) measureLength() time.Duration { return b.plan.Measure }

// startBaseline starts the measurement of the running configuration.
func (b *baselines) startBaseline() {
	b.enterPhase(PhaseBaseline)
	b.firm = false
	b.advisor.judgement = judgement{}
	b.current.host = hostLoad{}
	b.current.startPhase()
	b.addMark(MarkMeasure, "baseline")
}

func (b *baselines) baselineWindow() {
	if live := b.current.live; live != nil {
		b.advisor.advisePreliminarily(live, loadRising(latestWindows(b.current.windows, b.plan.Measure)))
	}
	if part, ok := b.current.measure(b.plan.Measure); ok {
		b.baselineDone(part)
	}
}

// baselineDone makes the windows the baseline, and announces the recommendation.
func (b *baselines) baselineDone(windows []engine.Window) {
	d := b.diagnose(windows)
	b.announceMeasurement(d, "")
	b.setBaseline(d, windows)
	b.setBase(effect.Slices(windows), nil)
	b.trials.toWaiting()
}

// announceMeasurement reports a measurement. when is "", or why it is not current, as in " before the server went
// away"; then its diagnosis is not reported if it is that all was well.
func (b *baselines) announceMeasurement(d *engine.Diagnosis, when string) {
	n := b.iteration()
	b.auto.unasked = 0
	b.emit(LevelInfo, Event{Kind: EventMeasured, Iteration: n, Took: d.Duration, Diagnosis: d,
		Text: fmt.Sprintf("measured for %s%s: %s", figure.Elapsed(d.Duration), when, diagnosisHeadline(d))})
	if when == "" || !allWell(d) {
		b.emit(LevelInfo, Event{Kind: EventDiagnosis, Iteration: n, Diagnosis: d})
	}
}

func allWell(d *engine.Diagnosis) bool {
	return d.Outcome == engine.OutcomeHealthy && d.Overload == ""
}

// diagnosisHeadline returns a diagnosis in one line.
func diagnosisHeadline(d *engine.Diagnosis) string {
	text := figure.Show(d.Quantity("generation_tokens_per_s").Value, "tok/s") + " out"
	if d.Outcome == engine.OutcomeNotEvaluable {
		return text + ", not evaluable"
	}
	if len(d.Findings) > 0 && d.Findings[0].State == engine.Fired && d.Findings[0].Significant {
		text += ", " + d.Findings[0].Title
	}
	return text
}

// loadRising reports whether the load is still building up: a quarter more requests are in the server
// than in the previous window. A recommendation would soon be outdated.
func loadRising(windows []engine.Window) bool {
	if len(windows) < 2 {
		return false
	}
	before, last := &windows[len(windows)-2], &windows[len(windows)-1]
	then, now := before.Running.Plus(before.Waiting), last.Running.Plus(last.Waiting)
	return then.OK && now.OK && now.V > 1.25*then.V+1
}

// setBaseline makes the measurement of windows the reference for the next change.
func (b *baselines) setBaseline(d *engine.Diagnosis, windows []engine.Window) {
	b.diagnosis = d
	b.firm, b.filling = true, poolFilling(windows)
	if b.kept = b.running; b.changeInPlace() {
		b.keptIteration = b.runningIteration
	}
	b.renewal = renewal{from: b.current.openIndex(), since: b.current.openIndex(), until: b.now}
	if len(windows) > 0 {
		b.renewal.since, b.renewal.until = windows[0].Index, windowsEnd(windows)
	}
}

// fillingLeast is the rise of the pool's usage over a baseline, 0..1, that counts as filling.
const fillingLeast = 0.05

// poolFilling reports whether the usage of the KV pool rose over windows beyond its scatter: the requests
// have not reached their final lengths yet, and what limits the server may still change.
func poolFilling(windows []engine.Window) bool {
	var usage []float64
	for i := range windows {
		if w := &windows[i]; w.Evaluable && w.KV.OK {
			usage = append(usage, w.KV.V)
		}
	}
	if len(usage) <= SettleLeast {
		return false
	}
	_, slope := stat.Line(usage)
	return slope > 0 && !hasNoTrend(usage, fillingLeast)
}

// preliminary returns why the recommendation is not final yet, as the end of a sentence; "" if it is.
// A baseline that was measured for as long as any is complete.
func (b *baselines) preliminary() string {
	switch {
	case b.advisor.advice == nil:
	case !b.firm:
		return "until the baseline is complete"
	case b.filling && !b.changeInPlace() && b.measuringLeft() > 0:
		return "while the KV pool is still filling"
	}
	return ""
}

// WhyPreliminary returns why a recommendation that is preliminary cannot be applied or copied. why is that
// of a snapshot.
func WhyPreliminary(why string) string {
	return "The recommendation is preliminary " + why + ": it cannot be applied or copied yet."
}

// salvageBaseline is called when the server is gone but its windows are still available. It takes a baseline
// that was incomplete, or that includes the last windows, from the windows before.
func (b *baselines) salvageBaseline(was Phase) {
	if len(b.current.windows) <= excludedTail || b.current.condition.Ill() {
		return
	}
	until := windowsEnd(b.current.windows) - excludedTail*engine.WindowLength
	late := was == PhaseWaiting && !b.changeInPlace() && b.renewal.until > until
	if was != PhaseBaseline && !late {
		return
	}
	windows, length := b.current.windows, b.plan.Measure
	if late {
		windows, length = b.current.windowsFrom(b.renewal.since), b.plan.Longest
	}
	for len(windows) > 0 && windowsEnd(windows) > until {
		windows = windows[:len(windows)-1]
	}
	part, _, why := latestStretch(windows, length)
	if why != "" || len(part) < engine.LeastWindows || span(part) < measureLeast-engine.WindowSlack {
		return
	}
	d := b.diagnose(part)
	if was == PhaseBaseline {
		b.announceMeasurement(d, " before the server went away")
		b.measured = baselineData{}
	}
	b.setBaseline(d, part)
	b.measured.latest = effect.Slices(part)
	if was != PhaseBaseline {
		return
	}
	if j := b.advisor.judge(d); j.advice != nil || !allWell(d) {
		b.advisor.advise(j)
	} else {
		b.advisor.judgement = j // not announced: it is not current
	}
}

// waitingWindow renews the baseline while its configuration runs.
func (b *baselines) waitingWindow() {
	if !b.changeInPlace() {
		b.renew()
	}
}

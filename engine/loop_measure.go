package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// feed makes windows of samples, and lets the present phase look at each.
func (l *Loop) feed(s *Sample) {
	w := l.life.windower.Add(s)
	if w == nil {
		return
	}
	window := w.Clone()
	l.life.add(window, l.plan.Longest)
	l.points.add(point(&window, l.shown))
	l.resolve()
	l.hear()
	if windows := latest(l.life.windows, l.plan.Measure); len(windows) >= leastWindows {
		l.seen.Live = l.diagnose(windows)
	}
	l.tell(LevelInfo, Event{Kind: EventWindow, Iteration: l.iteration(), Window: &window})
	if look := l.phases[l.seen.Phase].window; look != nil {
		look(l)
	}
}

// hear takes in what the first pages of a run tell of its configuration: it is
// attached to before there is a page.
func (l *Loop) hear() {
	if l.life.heard {
		return
	}
	l.life.heard = true
	l.running.told, l.running.version = tells(&l.seen.Facts), l.seen.Facts.EngineVersion.Value
	if !l.off() && !l.trial.open {
		l.kept.told, l.kept.version = l.running.told, l.running.version
	}
}

// diagnose judges windows of the present run.
func (l *Loop) diagnose(windows []Window) *Diagnosis {
	begun := windows[0].Start
	l.scratch = append(l.scratch[:0], windows...)
	for i := range l.scratch {
		l.scratch[i].Start -= begun
	}
	d := Diagnose(Request{
		Started: l.plan.Started.Add(begun), Duration: span(windows), Version: l.plan.Version,
		Target: l.seen.Target, Facts: l.seen.Facts, Windows: l.scratch, Rules: l.plan.Rules,
		Missing: l.seen.Missing, Notes: slices.Clip(l.seen.Notes), GPUWhy: l.seen.GPUWhy,
	})
	return &d
}

// startBaseline begins to measure what runs.
func (l *Loop) startBaseline() {
	l.enter(PhaseBaseline)
	l.seen.Firm = false
	l.starved = busyShare{}
	l.life.look()
	l.mark(MarkMeasure, "baseline")
}

func (l *Loop) baselineWindow() {
	if live := l.seen.Live; live != nil {
		l.seen.Advice, l.seen.Quiet = nil, ""
		if !rising(latest(l.life.windows, l.plan.Measure)) {
			l.seen.Advice = l.choose(live)
		}
		if live.Outcome == OutcomeNoLoad || live.Outcome == OutcomeNotEvaluable {
			l.seen.Quiet = quiet(live)
		}
	}
	if part, ok := l.life.measure(l.plan.Measure); ok {
		l.baselineDone(part)
	}
}

// rising says that the load only begins: by a quarter more requests are in than in
// the window before. What is recommended then is another thing a moment later.
func rising(windows []Window) bool {
	if len(windows) < 2 {
		return false
	}
	before, last := &windows[len(windows)-2], &windows[len(windows)-1]
	then, now := before.Running.Plus(before.Waiting), last.Running.Plus(last.Waiting)
	return then.OK && now.OK && now.V > 1.25*then.V+1
}

// baselineDone takes windows as the baseline, and names the change to make.
func (l *Loop) baselineDone(windows []Window) {
	d := l.diagnose(windows)
	l.measured(d)
	l.setBaseline(d, windows)
	l.setBase(slicesOf(windows))
	l.toWaiting()
}

// measured tells of a finished measurement.
func (l *Loop) measured(d *Diagnosis) {
	n := l.iteration()
	l.tell(LevelInfo, Event{Kind: EventMeasured, Iteration: n, Took: d.Duration, Diagnosis: d,
		Text: fmt.Sprintf("measured for %s: %s", seconds(d.Duration), headline(d))})
	l.tell(LevelInfo, Event{Kind: EventDiagnosis, Iteration: n, Diagnosis: d})
}

// headline is a diagnosis in one line.
func headline(d *Diagnosis) string {
	text := figure.Show(d.Quantity("generation_tokens_per_s").Value, "tok/s") + " out"
	if len(d.Findings) > 0 && d.Findings[0].State == Fired && d.Findings[0].Significant {
		text += ", " + d.Findings[0].Title
	}
	return text
}

// setBaseline makes a measurement of windows what the next change is judged
// against.
func (l *Loop) setBaseline(d *Diagnosis, windows []Window) {
	l.seen.Baseline = d
	l.seen.Firm = true
	l.kept, l.returns = l.running, l.shown
	l.renewal = renewal{from: l.life.next(), since: l.life.next(), until: l.now}
	if len(windows) > 0 {
		l.renewal.since, l.renewal.until = windows[0].Index, end(windows)
	}
}

// end is when the last window ended.
func end(windows []Window) time.Duration {
	last := &windows[len(windows)-1]
	return last.Start + last.Duration
}

// rescue is called when the server that ran is gone, with its windows still at
// hand: a baseline that was not complete, or that reaches into the last windows,
// is taken from those before.
func (l *Loop) rescue(was Phase) {
	if len(l.life.windows) <= heldBack {
		return
	}
	limit := l.life.windows[len(l.life.windows)-1]
	until := limit.Start + limit.Duration - heldBack*WindowLength
	late := was == PhaseWaiting && !l.off() && l.renewal.until > until
	if was != PhaseBaseline && !late {
		return
	}
	windows, length := l.life.windows, l.plan.Measure
	if late {
		windows, length = l.life.since(l.renewal.since), l.plan.Longest
	}
	for len(windows) > 0 && end(windows) > until {
		windows = windows[:len(windows)-1]
	}
	part, _, why := stretch(windows, length)
	if why != "" || len(part) < leastWindows || span(part) < measureLeast-windowSlack {
		return
	}
	d := l.diagnose(part)
	if was == PhaseBaseline {
		l.measured(d)
		l.base = base{}
	}
	l.setBaseline(d, part)
	l.base.live = slicesOf(part)
	if was == PhaseBaseline {
		l.advise(l.choose(d))
	}
}

// off says that another configuration runs than the one that is kept.
func (l *Loop) off() bool { return l.trial.off }

func seconds(d time.Duration) string {
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// waitingWindow renews the baseline while the configuration that it was measured
// with runs.
func (l *Loop) waitingWindow() {
	if !l.off() {
		l.renew()
	}
}

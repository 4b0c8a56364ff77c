package tuning

import (
	"cmp"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// DeltaRow is a quantity before and after a change.
type DeltaRow struct {
	Name                string // stable name
	Label               string // display name
	Before, After, Unit string
	Change              stat.Opt
	ChangeText          string    // "" if it is unknown, or relative to almost nothing
	Tone                page.Tone // of the change, Body if it is unresolved
	Interval            string    // 95 %, "" if unknown
	Predicted           string    // the full prediction, "" if none
	PredictedRange      string    // only its range
	Outcome             Outcome
}

// DeltaRows returns the quantities of a delta, with the prediction of each.
func DeltaRows(d *effect.Delta, predictions []engine.Prediction) []DeltaRow {
	var list []DeltaRow
	metrics := d.MeasuredMetrics()
	for _, name := range effect.ComparedQuantities {
		m, ok := metric(metrics, name)
		if !ok || !m.Before.Value.Finite().OK && !m.After.Value.Finite().OK || m.Before.Value == stat.Some(0) && m.After.Value == stat.Some(0) {
			continue
		}
		r := DeltaRow{Name: name, Label: metricName(name), Change: m.Change.Finite(), Interval: interval(d, name)}
		if r.Interval != unresolved && r.Change.OK {
			r.Tone = ChangeTone(name, r.Change.V)
		}
		r.Before, r.After, r.Unit = FormatPair(m.Before, m.After)
		if r.Change.OK && !strings.HasPrefix(r.Before, "<") {
			r.ChangeText = page.ChangeOrMultiple(r.Change.V)
		}
		for _, p := range predictions {
			if p.Metric == name {
				change, between := Predicted(p)
				r.Predicted, r.PredictedRange = strings.TrimSpace(change+" "+between), strings.Trim(between, "()")
				r.Outcome = outcome(p.Covers(m.Change))
			}
		}
		list = append(list, r)
	}
	return list
}

// unresolved replaces an interval that is too wide to show a change.
const unresolved = "unresolved"

// interval returns the 95 % interval of a quantity, or that it is unresolved; "" if there is no basis.
func interval(d *effect.Delta, name string) string {
	p, ok := effect.VerdictOf(d)
	if !ok {
		return ""
	}
	m, ok := p.MeasureOf(name)
	switch {
	case !ok:
		return ""
	case !m.Moved:
		return unresolved
	}
	return page.ChangeRange(m.Change.Low, m.Change.High)
}

// Reason returns the verdict in one line, and the remainder of its reason, or "".
func Reason(d *effect.Delta) (head, rest string) {
	if v, ok := effect.VerdictOf(d); ok {
		return v.Headline()
	}
	return figure.Minus(d.Reason), ""
}

// Profile returns the direction by the PROFILE formula of efficiency, with its reason.
func Profile(d *effect.Delta) string {
	return "PROFILE efficiency: " + string(d.Classic) + ", " + figure.Minus(d.ClassicReason)
}

// ProfileRemark explains why that direction and the verdict may differ.
const ProfileRemark = "Per-request efficiency falls as the batch grows; throughput rises."

// GoalPrediction returns the prediction of the goal and its outcome; "" without a prediction.
func GoalPrediction(d *effect.Delta, predictions []engine.Prediction) (text string, result Outcome) {
	if v, ok := effect.VerdictOf(d); ok {
		q, predicted := effect.PredictionOf(predictions, v.Result.Goal)
		if !predicted {
			return "", Unresolved
		}
		within, known := v.Outcome(predictions)
		return "predicted " + figure.ChangeRange(q.Low.V, q.High.V), outcome(within, known)
	}
	for _, p := range predictions {
		if p.Metric != Output || !relative(p) {
			continue
		}
		switch {
		case p.Low.OK && p.High.OK:
			text = "predicted " + figure.ChangeRange(p.Low.V, p.High.V)
		case p.Low.OK:
			text = "predicted at least " + Change(p.Low)
		case p.High.OK:
			text = "predicted at most " + Change(p.High)
		case p.Mid.OK:
			return "predicted " + Change(p.Mid), Unresolved
		default:
			continue
		}
		if d != nil {
			result = outcome(p.Covers(d.Throughput))
		}
		return text, result
	}
	return "", Unresolved
}

// withOutcome appends an outcome to a text.
func withOutcome(text string, result Outcome) string {
	if text == "" || result == Unresolved {
		return text
	}
	return text + ": " + result.String()
}

// RemarkKind is the subject of a remark on a verdict.
type RemarkKind uint8

// Kinds of remarks.
const (
	AboutObjective RemarkKind = iota // an objective that is met
	AboutBrokenObjective
	AboutTraffic
	AboutWarmUp // what was measured and does not count
	AboutLimit
	AboutCause
	AboutOthers // further quantities that changed
	AboutWidth
)

// Remark is a sentence on the basis of a verdict. A remark with a label is a warning.
type Remark struct {
	Kind  RemarkKind
	Label string
	Text  string
}

// String returns the remark as a sentence.
func (r Remark) String() string {
	if r.Label == "" {
		return r.Text
	}
	return Sentence(r.Label + ": " + r.Text)
}

// Remarks returns the basis of a verdict; nil if it has no interval.
func Remarks(d *effect.Delta) []Remark {
	v, ok := effect.VerdictOf(d)
	if !ok {
		return nil
	}
	var list []Remark
	add := func(kind RemarkKind, label, text string) {
		if label == "" {
			text = Sentence(text)
		}
		if text != "" {
			list = append(list, Remark{kind, label, text})
		}
	}
	for _, a := range v.ObjectiveLines() {
		if a.State == "kept" {
			add(AboutObjective, "", "objective "+a.Text)
		} else {
			add(AboutBrokenObjective, "objective", a.Text)
		}
	}
	add(AboutTraffic, "other traffic", strings.Join(v.TrafficShifts(), "; "))
	add(AboutWarmUp, "", warmUp(v.Steady))
	add(AboutLimit, "", v.Limited())
	if cause := v.Cause(); cause != "" && v.Direction != verdict.Better {
		add(AboutCause, "", "most likely cause: "+cause)
	}
	if moved := v.OtherChanges(effect.ComparedQuantities...); len(moved) > 0 {
		add(AboutOthers, "", "also changed: "+strings.Join(moved, ", "))
	}
	if width := v.Width(); width != "" {
		add(AboutWidth, "", JoinClauses("interval "+width, v.Spread()))
	}
	return list
}

// warmUp returns how much of each side was left out as warm-up, "" if nothing was.
func warmUp(sides [2]verdict.Steadiness) string {
	var parts []string
	for i, when := range [...]string{"before", "after"} {
		if cut := sides[i].Cut; cut > 0 {
			parts = append(parts, figure.Elapsed(time.Duration(cut)*engine.WindowLength)+" "+when+" the change")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "left out as warm-up: " + strings.Join(parts, ", ")
}

// noInterval is the remark on a verdict without an interval.
const noInterval = "One run before and one after: the difference between repeats of one configuration is not included."

// Goal returns the goal of a verdict, throughput by default.
func Goal(d *effect.Delta) verdict.Goal {
	if d != nil && d.Verdict != nil {
		return cmp.Or(d.Verdict.Goal, verdict.Throughput)
	}
	return verdict.Throughput
}

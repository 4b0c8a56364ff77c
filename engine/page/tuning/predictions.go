package tuning

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Expectation is the predicted effect of a change on one metric.
type Expectation struct {
	Metric string    // display name
	FromTo string    // present and predicted value, "" if unknown
	Change string    // the middle of the prediction, "" if only bounds are known
	Range  string    // the range, in brackets after a middle
	Mark   string    // "(est)" if the present value is an estimate
	Tone   page.Tone // of the change
}

// Expectations returns the predicted effects of a change relative to the measurements of d, which may be nil. An
// objective on a quantile without a prediction of its own is unknown: that of the mean does not replace it.
func Expectations(list []engine.Prediction, d *engine.Diagnosis, objectives ...verdict.Objective) []Expectation {
	var out []Expectation
	for _, p := range list {
		now := Quantity(d, p.Metric)
		if d != nil && p.Metric == "usd_per_million_tokens" && !now.Value.OK {
			continue // no money without a price
		}
		then := p.Mid.Finite()
		if relative(p) {
			then = stat.None
			if now.Value.OK && p.Mid.Finite().OK && !tooWide(p) {
				then = stat.Some(now.Value.V * (1 + p.Mid.V))
			}
		}
		e := Expectation{Metric: metricName(p.Metric), FromTo: FromTo(now, then), Mark: estimateMark(now.Source)}
		if relative(p) && p.Mid.Finite().OK {
			e.Tone = ChangeTone(p.Metric, p.Mid.V)
		}
		if e.Change, e.Range = Predicted(p); e.Change != "" || e.Range != "" {
			out = append(out, e)
		}
	}
	for _, o := range objectives {
		metric := o.Metric.Quantity(o.Quantile)
		if o.Quantile > 0 && !slices.ContainsFunc(list, func(p engine.Prediction) bool { return p.Metric == metric }) {
			out = append(out, Expectation{Metric: effect.MeasureName(o.Metric, o.Quantile), FromTo: FromTo(Quantity(d, metric), stat.None), Range: unknown})
		}
	}
	return out
}

// Objectives returns the objectives of a run with the measured value of each, "" without objectives.
func Objectives(list []verdict.Objective, d *engine.Diagnosis) string {
	var parts []string
	for _, o := range list {
		now := "not measured"
		if q := Quantity(d, o.Metric.Quantity(o.Quantile)); q.Value.OK {
			now = "measured " + figure.ValueBeside(q.Value.V, q.Bucket.Width(), o.Limit, "s")
		}
		parts = append(parts, cmp.Or(o.Name, effect.MeasureName(o.Metric, o.Quantile))+" ≤ "+figure.Show(stat.Some(o.Limit), "s")+": "+now)
	}
	return strings.Join(parts, "; ")
}

// unknown is the prediction of what no model predicts.
const unknown = "unknown until tried"

// estimateMark returns "(est)" for an estimate, or "".
func estimateMark(o engine.Origin) string {
	if o == engine.Estimate {
		return "(est)"
	}
	return ""
}

func relative(p engine.Prediction) bool { return p.Unit == "ratio" || p.Unit == "" }

// tooWide reports whether a prediction of a rate is so wide that only its lower end says something.
func tooWide(p engine.Prediction) bool {
	low, high := p.Low.Finite(), p.High.Finite()
	return relative(p) && MoreIsBetter(p.Metric) && low.OK && high.OK && low.V > 0 && verdict.Interval{Low: low.V, High: high.V}.Wide()
}

// Predicted splits a prediction into its middle and its range. Without a middle only bounds are known: the
// best gain, or the worst loss.
func Predicted(p engine.Prediction) (change, between string) {
	one := Change
	two := func(a, b stat.Opt) string { return figure.Change(a.V) + " to " + figure.ChangeSign(b.V) }
	if !relative(p) {
		one = func(o stat.Opt) string { return figure.Show(o, p.Unit) }
		two = func(a, b stat.Opt) string { return figure.Show(a, p.Unit) + " to " + figure.Show(b, p.Unit) }
	}
	low, mid, high := p.Low.Finite(), p.Mid.Finite(), p.High.Finite()
	switch {
	case tooWide(p):
		return "", "unknown, at least " + one(low)
	case mid.OK && low.OK && high.OK:
		return one(mid), "(" + two(low, high) + ")"
	case mid.OK && high.OK:
		return one(mid), "(at most " + one(high) + ")"
	case mid.OK && low.OK:
		return one(mid), "(at least " + one(low) + ")"
	case mid.OK:
		return one(mid), ""
	case low.OK && high.OK && low.V*high.V > 0:
		return "", two(low, high)
	}
	best, worst := low, high
	if MoreIsBetter(p.Metric) {
		best, worst = high, low
		if low.V > 0 {
			return "", "unknown, at least " + one(low)
		}
	}
	parts := []string{unknown}
	if best.OK && best.V != 0 {
		parts = append(parts, "at best "+one(best))
	}
	if worst.OK && worst.V != 0 {
		parts = append(parts, "at worst "+one(worst))
	}
	return "", strings.Join(parts, ", ")
}

// Outcome is whether a measurement lies within its prediction.
type Outcome uint8

// Outcomes of a prediction.
const (
	Unresolved Outcome = iota
	WithinRange
	OutsideRange
)

// String returns the outcome in words, or "" if it is unknown.
func (o Outcome) String() string {
	return [...]string{Unresolved: "", WithinRange: "within the predicted range", OutsideRange: "outside the predicted range"}[o]
}

// Word returns the outcome in one or two words, for a column.
func (o Outcome) Word() string {
	return [...]string{Unresolved: "", WithinRange: "within", OutsideRange: "outside"}[o]
}

// Tone returns the tone of the outcome.
func (o Outcome) Tone() page.Tone {
	return [...]page.Tone{Unresolved: page.Muted, WithinRange: page.OK, OutsideRange: page.Warn}[o]
}

func outcome(within, known bool) Outcome {
	switch {
	case !known:
		return Unresolved
	case within:
		return WithinRange
	}
	return OutsideRange
}

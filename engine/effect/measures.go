package effect

import (
	"cmp"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// MeasureName returns the display name of a measure: "TTFT p99".
func MeasureName(m verdict.Metric, quantile float64) string {
	name := cmp.Or(measureNames[m], string(m))
	switch m {
	case verdict.MetricTTFT, verdict.MetricITL, verdict.MetricTPOT, verdict.MetricE2E:
		return name + " " + verdict.QuantileName(quantile)
	}
	return name
}

var measureNames = map[verdict.Metric]string{
	verdict.MetricTokens: "output", verdict.MetricRequests: "requests", verdict.MetricTTFT: "TTFT", verdict.MetricITL: "ITL",
	verdict.MetricTPOT: "TPOT", verdict.MetricE2E: "end to end", verdict.MetricStep: "step time", verdict.MetricPreempts: "preemptions",
	verdict.MetricPower: "power", verdict.MetricPerWatt: "tok/W",
}

// OtherChanges returns the measures that differ beyond noise, except the goal's and the given
// quantities, which are shown elsewhere.
func (p Verdict) OtherChanges(shown ...string) []string {
	var list []string
	for _, m := range p.Measures {
		q := m.Metric.Quantity(m.Quantile)
		if m.Moved && m.Known && q != p.goalQuantity() && !slices.Contains(shown, q) {
			list = append(list, MeasureName(m.Metric, m.Quantile)+" "+m.Change.String())
		}
	}
	return list
}

// MeasureOf returns the measure of a quantity of docs/interfaces.md section 3; ok is false if it
// was not compared. The measure of the goal has the interval of the verdict, so that the two
// cannot differ.
func (p Verdict) MeasureOf(quantity string) (m verdict.Measure, ok bool) {
	for _, m := range p.Measures {
		if m.Metric.Quantity(m.Quantile) != quantity {
			continue
		}
		if c, known := p.Change(); known && quantity == p.goalQuantity() {
			m.Change, m.Known, m.Moved = c, true, c.Low > 0 || c.High < 0
		}
		return m, m.Known && m.Change.Finite()
	}
	return verdict.Measure{}, false
}

// goalQuantity returns the quantity of the goal, or "" if no measure has it.
func (p Verdict) goalQuantity() string {
	if p.Result.Goal == verdict.Cost {
		return ""
	}
	return search.GoalMetric(p.Result.Goal)
}

// judged replaces the values of a quantity by those that were judged, if there are any: the
// interval belongs to them, while the diagnoses cover different periods.
func (p Verdict) judged(d MetricDelta) MetricDelta {
	m, ok := p.MeasureOf(d.Name)
	if !ok {
		return d
	}
	d.Change = stat.Some(m.Change.Mid)
	if m.Before.OK && m.After.OK {
		d.Before.Value, d.After.Value = m.Before, m.After
	}
	return d
}

// MeasuredMetrics returns the quantities before and after the change, as they were judged.
func (d *Delta) MeasuredMetrics() []MetricDelta {
	p, ok := VerdictOf(d)
	if !ok {
		return d.Metrics
	}
	list := slices.Clone(d.Metrics)
	for i := range list {
		list[i] = p.judged(list[i])
	}
	return list
}

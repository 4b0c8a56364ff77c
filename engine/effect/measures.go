package effect

import (
	"cmp"
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
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

// MeasureOf returns the measure of a quantity of docs/interfaces.md section 3; ok is false if its change
// is unknown. The measure of the goal has the interval of the verdict, so that the two cannot differ.
func (p Verdict) MeasureOf(quantity string) (m verdict.Measure, ok bool) {
	m, ok = p.listed(quantity)
	if c, known := p.Change(); ok && m.Known && known && quantity == p.goalQuantity() {
		m.Change, m.Moved = c, c.Low > 0 || c.High < 0
	}
	return m, ok && m.Known && m.Change.Finite()
}

// listed returns the measure of a quantity; ok is false if it was not read.
func (p Verdict) listed(quantity string) (m verdict.Measure, ok bool) {
	for _, m := range p.Measures {
		if m.Metric.Quantity(m.Quantile) == quantity {
			return m, true
		}
	}
	return verdict.Measure{}, false
}

// goalQuantity returns the quantity of the goal, or "" if no measure has it.
func (p Verdict) goalQuantity() string {
	if p.Goal == verdict.Cost {
		return ""
	}
	return p.Goal.Quantity()
}

// judged replaces the values of a quantity by those of the judged slices, because the diagnoses cover other
// periods, such as the warm-up. A value that was not read there is absent, and one that a diagnosis withholds stays so.
func (p Verdict) judged(d MetricDelta) MetricDelta {
	listed, _ := p.listed(d.Name)
	for i, q := range [...]*engine.Quantity{&d.Before, &d.After} {
		if !q.Value.OK {
			continue
		}
		q.Value, q.Bucket, q.AtLeast = [...]stat.Opt{listed.Before, listed.After}[i], listed.Buckets[i], listed.Overflows[i]
		if !q.Value.OK {
			q.Reason = "not known from the judged part of the run"
		}
	}
	d.Change = Relative(d.Before.Value, d.After.Value)
	if m, ok := p.MeasureOf(d.Name); ok {
		d.Change = stat.Some(m.Change.Mid)
	}
	return d
}

// MeasuredMetrics returns the quantities before and after the change: those of the judged slices if there is
// a verdict, so that all cover the same period.
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

// Judged returns the two runs of the change with the values that were judged, to compare more of them.
func (d *Delta) Judged(before, after *engine.Diagnosis) (b, a *engine.Diagnosis) {
	b, a = new(*before), new(*after)
	b.Measured, a.Measured = slices.Clone(b.Measured), slices.Clone(a.Measured)
	for _, m := range d.MeasuredMetrics() {
		for i, list := range [...][]engine.NamedQuantity{b.Measured, a.Measured} {
			if at := slices.IndexFunc(list, func(q engine.NamedQuantity) bool { return q.Name == m.Name }); at >= 0 {
				list[at].Quantity = [...]engine.Quantity{m.Before, m.After}[i]
			}
		}
	}
	return b, a
}

package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// MeasureName names a measure as people know it: "TTFT p99".
func MeasureName(m verdict.Metric, quantile float64) string {
	name, timed := "", false
	switch m {
	case verdict.MetricTokens:
		name = "output"
	case verdict.MetricRequests:
		name = "requests"
	case verdict.MetricTTFT, verdict.MetricITL, verdict.MetricTPOT:
		name, timed = strings.ToUpper(string(m)), true
	case verdict.MetricE2E:
		name, timed = "end to end", true
	case verdict.MetricStep:
		name = "step time"
	case verdict.MetricPreempts:
		name = "preemptions"
	case verdict.MetricPower:
		name = "power"
	case verdict.MetricPerWatt:
		name = "tok/W"
	}
	switch name = cmp.Or(name, string(m)); {
	case timed && quantile == 0:
		return name + " mean"
	case quantile > 0:
		return fmt.Sprintf("%s p%g", name, math.Round(quantile*1000)/10)
	}
	return name
}

// Moved lists the measures that differ beyond noise, the goal's own left out, and the
// quantities that are shown elsewhere.
func (p Proof) Moved(shown ...string) []string {
	var list []string
	for _, m := range p.Measures {
		q := quantityOf(m)
		if m.Moved && m.Known && q != p.goalQuantity() && !slices.Contains(shown, q) {
			list = append(list, MeasureName(m.Metric, m.Quantile)+" "+SpellInterval(m.Change))
		}
	}
	return list
}

// MeasureOf is the measure behind a quantity of interfaces.md section 3; ok is
// false where it was not compared. What the goal is read from has the interval of the
// verdict: of one quantity there are not two.
func (p Proof) MeasureOf(quantity string) (m verdict.Measure, ok bool) {
	for _, m := range p.Measures {
		if quantityOf(m) != quantity {
			continue
		}
		if c, known := p.Change(); known && quantity == p.goalQuantity() {
			m.Change, m.Known, m.Moved = c, true, c.Low > 0 || c.High < 0
		}
		return m, m.Known && finite(m.Change)
	}
	return verdict.Measure{}, false
}

// goalQuantity is what the goal is read from, "" where no measure is it.
func (p Proof) goalQuantity() string {
	switch p.Result.Goal {
	case verdict.Latency:
		return "e2e_mean_s"
	case verdict.Cost:
		return ""
	}
	return "generation_tokens_per_s"
}

// judged is a quantity before and after as it was judged, where it was: the
// interval is about these figures. The diagnoses count another stretch of time.
func (p Proof) judged(d MetricDelta) MetricDelta {
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

// MeasuredMetrics are the quantities of a change before and after, as they were judged.
func (d *Delta) MeasuredMetrics() []MetricDelta {
	p, ok := ProofOf(d)
	if !ok {
		return d.Metrics
	}
	list := slices.Clone(d.Metrics)
	for i := range list {
		list[i] = p.judged(list[i])
	}
	return list
}

// quantityOf is the name of the quantity that a measure is of.
func quantityOf(m verdict.Measure) string {
	switch m.Metric {
	case verdict.MetricTTFT, verdict.MetricITL, verdict.MetricTPOT, verdict.MetricE2E:
		if m.Quantile == 0 {
			return string(m.Metric) + "_mean_s"
		}
		return fmt.Sprintf("%s_p%g_s", m.Metric, math.Round(m.Quantile*1000)/10)
	case verdict.MetricStep:
		return "step_time_s"
	}
	return string(m.Metric)
}

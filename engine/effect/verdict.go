package effect

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Verdict describes a verdict in words, for screen and reports. Its texts are phrases without a
// full stop, and "" if there is nothing to state. Result must not be nil.
type Verdict struct{ *verdict.Result }

// VerdictOf returns the verdict of a change; ok is false if there is none.
func VerdictOf(d *Delta) (p Verdict, ok bool) {
	if d == nil || d.Verdict == nil {
		return Verdict{}, false
	}
	return Verdict{d.Verdict}, true
}

// Change returns the change of the goal's measure with its interval; ok is false if it is
// unknown.
func (p Verdict) Change() (c verdict.Interval, ok bool) {
	e := p.Result.Effect
	if !p.Known || !e.Finite() {
		return verdict.Interval{}, false
	}
	if p.Goal != verdict.Latency {
		return e, true
	}
	return e.Inverse(), e.Low > -1
}

// Effect returns the change of the goal with its interval: "output +31 % (+29 to +33 %)".
func (p Verdict) Effect() string {
	c, ok := p.Change()
	if !ok {
		return p.Goal.Noun() + " " + figure.Absent
	}
	text := p.Goal.Noun() + " " + c.String()
	if p.LowerBound {
		text += " or more"
	}
	return text
}

// Headline returns the verdict in one line, and the part of its reason that does not fit.
func (p Verdict) Headline() (head, rest string) {
	if _, known := p.Change(); !known || p.NamesEffect {
		return p.Reason, ""
	}
	return p.Effect(), p.Reason
}

// widestPercent is the half width, as a logarithm, above which percent would differ much between the two ends.
const widestPercent = 0.5

// halfWidth formats the distance from the middle of an interval to its ends, which is a logarithm of a ratio.
func halfWidth(log float64) string {
	if log = math.Abs(log); log > widestPercent {
		return "a factor of" + figure.NBSP + figure.Significant(math.Exp(log)) + " each way"
	}
	return "±" + figure.Percent(log) + figure.NBSP + "%"
}

// Width returns the width of the interval and its causes: scatter that more measuring reduces, and
// differences between starts that only more starts reduce.
func (p Verdict) Width() string {
	if !p.Known || math.IsNaN(p.Measured+p.Restart) {
		return ""
	}
	whole := halfWidth(math.Hypot(p.Measured, p.Restart))
	switch {
	case p.Restart <= 0:
		return whole + " from measurement noise"
	case p.RestartsDominate():
		return fmt.Sprintf("%s: %s from restart noise, which longer measurement does not narrow, %s from measurement noise", whole, halfWidth(p.Restart), halfWidth(p.Measured))
	}
	return fmt.Sprintf("%s: %s from measurement noise, %s from restart noise", whole, halfWidth(p.Measured), halfWidth(p.Restart))
}

// RestartsDominate reports whether most of the interval's width is due to restarts.
func (p Verdict) RestartsDominate() bool { return p.Known && p.Restart > p.Measured }

// Spread returns how much starts of one configuration differ, and the basis of that figure.
func (p Verdict) Spread() string {
	s := p.Result.Spread
	if s.SD <= 0 || math.IsNaN(s.SD) {
		return s.From
	}
	text := "restart spread " + figure.Percent(s.SD) + figure.NBSP + "%"
	if s.From != "" {
		text += " (" + s.From + ")"
	}
	return text
}

// Cause returns the most likely cause of the difference, or of the missing verdict.
func (p Verdict) Cause() string {
	return map[verdict.Cause]string{
		verdict.ByFlag: "the change itself", verdict.ByTraffic: "different traffic", verdict.ByNoise: "noise", verdict.ByHost: "other activity on the host",
	}[p.Result.Cause]
}

// Limited returns what limited the throughput, if not capacity on both sides. The throughput of a
// server that serves all demand says nothing about capacity.
func (p Verdict) Limited() string {
	word := func(l verdict.Limit) string {
		return cmp.Or(map[verdict.Limit]string{verdict.ByCapacity: "server capacity", verdict.ByDemand: "the load"}[l], "an unknown limit")
	}
	before, after := p.Result.Limited[0], p.Result.Limited[1]
	switch {
	case p.LowerBound: // the verdict mentions that no queue is left
		return ""
	case before == verdict.ByCapacity && after == verdict.ByCapacity, before == after && before != verdict.ByDemand:
		return ""
	case before == after:
		return "before and after, output was limited by " + word(before)
	}
	return "output was limited by " + word(before) + " before, by " + word(after) + " after"
}

// TrafficShifts returns the properties of the traffic that differ beyond noise. Clients that wait
// for answers send more to a faster server, so different arrivals with the same number of
// requests in the server follow from the server and are left out.
func (p Verdict) TrafficShifts() []string {
	asMany := slices.ContainsFunc(p.Traffic, func(s verdict.Shift) bool {
		return s.Name == "requests in" && s.Before.OK && s.After.OK && !s.Moved
	})
	var list []string
	for _, s := range p.Traffic {
		if s.Moved && !(s.Name == "arrivals" && asMany) {
			list = append(list, SpellShift(s))
		}
	}
	return list
}

// SpellShift formats a property of the traffic before and after.
func SpellShift(s verdict.Shift) string {
	unit := ""
	if s.Name == "prefix hits" {
		unit = "ratio"
	}
	text := s.Name + " " + figure.Show(s.Before, unit) + " → " + figure.Show(s.After, unit)
	if s.Before.OK && s.After.OK && unit == "" && s.Change.Finite() {
		text += ", " + figure.ChangeSign(s.Change.Mid)
	}
	return text
}

// ObjectiveLine is the result for an objective, in words.
type ObjectiveLine struct {
	Text  string // "ttft_p99 312 ms, limit 500 ms: kept"
	State string // "kept", "broken", "not sure" or "not known"
}

// ObjectiveLines returns the result of each objective.
func (p Verdict) ObjectiveLines() []ObjectiveLine {
	var list []ObjectiveLine
	for _, h := range p.Objectives {
		a := ObjectiveLine{State: "not sure"}
		switch {
		case h.Broken:
			a.State = "broken"
		case h.Met:
			a.State = "kept"
		case !h.After.OK && !h.Low.OK && !h.High.OK:
			a.State = "not known"
		}
		a.Text = cmp.Or(h.Name, MeasureName(h.Metric, h.Quantile)) + " " + objectiveValue(h, a.State) + ", limit " + figure.Show(stat.Some(h.Limit), "s") + ": " + a.State
		switch {
		case a.State != "not sure":
		case h.Low.OK && h.High.OK:
			a.Text += " (" + figure.Show(h.Low, "s") + " to " + figure.Show(h.High, "s") + ")"
		case h.Low.OK:
			a.Text += " (" + figure.Show(h.Low, "s") + " or more)"
		}
		if a.State == "broken" && h.WasBroken {
			a.Text += ", as before"
		}
		list = append(list, a)
	}
	return list
}

// objectiveValue returns the value of an objective after a change or, with too few requests for a value,
// the decisive end of its interval.
func objectiveValue(h verdict.ObjectiveResult, state string) string {
	switch {
	case h.After.OK:
		return figure.ValueBeside(h.After.V, h.Width, h.Limit, "s")
	case state == "kept" && h.High.OK:
		return "at most " + figure.Show(h.High, "s")
	case state == "broken" && h.Low.OK:
		return "at least " + figure.Show(h.Low, "s")
	}
	return figure.Absent
}

// Outcome returns whether the outcome lies within the predicted range of the goal. known is false without a
// prediction or an outcome, if the outcome is too wide to test it, and if the traffic explains the difference.
func (p Verdict) Outcome(list []engine.Prediction) (within, known bool) {
	q, predicted := PredictionOf(list, p.Goal)
	c, measured := p.Change()
	if !predicted || !measured || c.Wide() || p.Direction == verdict.NotComparable {
		return false, false
	}
	return c.Mid >= q.Low.V && c.Mid <= q.High.V, true
}

// PredictionOf returns the prediction of the goal's measure if it has both ends; ok is false
// otherwise. A prediction of cost is inverted to output per dollar.
func PredictionOf(list []engine.Prediction, g verdict.Goal) (p engine.Prediction, ok bool) {
	p = engine.PredictionOf(list, g.Quantity())
	if g == verdict.Cost {
		p = p.With(p.Range().Inverse())
	}
	return p, p.IsRatio() && p.Low.OK && p.High.OK
}

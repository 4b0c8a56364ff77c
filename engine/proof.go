package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Proof tells a verdict in words, the same on the screen and in reports. All are
// phrases without a stop; "" says that there is nothing to tell. Result is never
// nil.
type Proof struct{ *verdict.Result }

// ProofOf is the verdict of a change; ok is false where there is none.
func ProofOf(d *Delta) (p Proof, ok bool) {
	if d == nil || d.Verdict == nil {
		return Proof{}, false
	}
	return Proof{d.Verdict}, true
}

// Goal names what the effect is read from. Of the time of a request less is better,
// of the others more.
func (p Proof) Goal() string {
	switch p.Result.Goal {
	case verdict.Latency:
		return "the time of a request"
	case verdict.Cost:
		return "output per dollar"
	}
	return "output"
}

// Change is the change of what the goal is read from, with its interval; ok is false
// where it is not known.
func (p Proof) Change() (c verdict.Interval, ok bool) {
	e := p.Result.Effect
	if !p.Known || !finite(e) {
		return verdict.Interval{}, false
	}
	if p.Result.Goal != verdict.Latency {
		return e, true
	}
	c = verdict.Interval{Low: 1/(1+e.High) - 1, Mid: 1/(1+e.Mid) - 1, High: 1/(1+e.Low) - 1}
	return c, e.Low > -1
}

// Effect is the change of the goal with its interval: "output +31 % (+29 to +33 %)".
func (p Proof) Effect() string {
	c, ok := p.Change()
	if !ok {
		return p.Goal() + " " + figure.Absent
	}
	text := p.Goal() + " " + SpellInterval(c)
	if p.LowerBound {
		text += " or more"
	}
	return text
}

// Says is the verdict in a line, and the rest of its reason where the line does not
// hold it.
func (p Proof) Says() (head, rest string) {
	reason := figure.Minus(p.Reason)
	if _, ok := p.Change(); !ok || strings.Contains(reason, "% (") {
		return reason, ""
	}
	return p.Effect(), reason
}

// finite says that all of an interval are numbers.
func finite(i verdict.Interval) bool {
	for _, v := range [...]float64{i.Low, i.Mid, i.High} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// SpellInterval spells a relative change with its interval: "+31 % (+29 to +33 %)".
func SpellInterval(i verdict.Interval) string {
	if !finite(i) {
		return figure.Absent
	}
	return percent(i.Mid) + " (" + SpellRange(i.Low, i.High) + ")"
}

// SpellRange spells two relative changes: "+29 to +33 %".
func SpellRange(low, high float64) string {
	if figure.Change(low) == figure.Change(high) {
		return percent(low)
	}
	return figure.Change(low) + " to " + percent(high)
}

func percent(ratio float64) string { return figure.Change(ratio) + figure.NBSP + "%" }

// halfWidth spells how far an interval reaches to either side.
func halfWidth(ratio float64) string {
	return "±" + figure.Percent(math.Abs(ratio)) + figure.NBSP + "%"
}

// Width says how wide the interval is, and of what: what measuring on narrows, and
// what only further starts do.
func (p Proof) Width() string {
	if !p.Known || math.IsNaN(p.Measured+p.Restart) {
		return ""
	}
	whole := halfWidth(math.Hypot(p.Measured, p.Restart))
	switch {
	case p.Restart <= 0:
		return whole + " from what was measured"
	case p.RestartsDominate():
		return fmt.Sprintf("%s, most of it (%s) because starts of one configuration differ: measuring on does not narrow it", whole, halfWidth(p.Restart))
	}
	return fmt.Sprintf("%s: %s from what was measured, %s because starts of one configuration differ", whole, halfWidth(p.Measured), halfWidth(p.Restart))
}

// RestartsDominate says that the width of the interval is mostly that of starts.
func (p Proof) RestartsDominate() bool { return p.Known && p.Restart > p.Measured }

// Spread says how much starts of one configuration differ, and how that is known.
func (p Proof) Spread() string {
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

// Cause says what the difference, or the lack of a verdict, most likely comes from.
func (p Proof) Cause() string {
	switch p.Result.Cause {
	case verdict.ByFlag:
		return "the change itself"
	case verdict.ByTraffic:
		return "the traffic, which is another"
	case verdict.ByNoise:
		return "noise"
	case verdict.ByHost:
		return "something else on the host"
	}
	return ""
}

// Limited says what bounded the throughput where that is not capacity on both
// sides: of a server that does all that is asked, throughput says nothing.
func (p Proof) Limited() string {
	word := func(l verdict.Limit) string {
		switch l {
		case verdict.ByCapacity:
			return "what the server can do"
		case verdict.ByDemand:
			return "what was asked of it"
		}
		return "what, is not known"
	}
	before, after := p.Result.Limited[0], p.Result.Limited[1]
	switch {
	case before == verdict.ByCapacity && after == verdict.ByCapacity, before == after && before != verdict.ByDemand:
		return ""
	case before == after:
		return "before and after, output was limited by " + word(before)
	}
	return "output was limited by " + word(before) + " before, by " + word(after) + " after"
}

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

// Moved lists the measures that differ beyond noise, the goal's own left out.
func (p Proof) Moved() []string {
	var list []string
	for _, m := range p.Measures {
		if m.Moved && m.Known && !(p.Goal() == "output" && m.Metric == verdict.MetricTokens) {
			list = append(list, MeasureName(m.Metric, m.Quantile)+" "+SpellInterval(m.Change))
		}
	}
	return list
}

// MeasureOf is the measure behind a quantity of interfaces.md section 3; ok is
// false where it was not compared.
func (p Proof) MeasureOf(quantity string) (m verdict.Measure, ok bool) {
	for _, m := range p.Measures {
		if quantityOf(m) == quantity {
			return m, m.Known && finite(m.Change)
		}
	}
	return verdict.Measure{}, false
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

// Shifts lists what of the traffic differs beyond noise.
func (p Proof) Shifts() []string {
	var list []string
	for _, s := range p.Traffic {
		if s.Moved {
			list = append(list, SpellShift(s))
		}
	}
	return list
}

// SpellShift spells a property of the traffic before and after.
func SpellShift(s verdict.Shift) string {
	unit := ""
	if s.Name == "prefix hits" {
		unit = "ratio"
	}
	text := s.Name + " " + figure.Show(s.Before, unit) + " → " + figure.Show(s.After, unit)
	if s.Before.OK && s.After.OK && unit == "" && finite(s.Change) {
		text += ", " + percent(s.Change.Mid)
	}
	return text
}

// Aim is what became of an objective, in words.
type Aim struct {
	Text  string // "ttft_p99 312 ms, limit 500 ms: kept"
	State string // "kept", "broken", "not sure" or "not known"
}

// Aims lists the objectives with what became of them.
func (p Proof) Aims() []Aim {
	var list []Aim
	for _, h := range p.Objectives {
		a := Aim{State: "not sure"}
		switch {
		case !h.After.OK:
			a.State = "not known"
		case h.Broken:
			a.State = "broken"
		case h.OK:
			a.State = "kept"
		}
		a.Text = cmp.Or(h.Name, MeasureName(h.Metric, h.Quantile)) + " " + figure.Show(h.After, "s") + ", limit " + figure.Show(stat.Some(h.Limit), "s") + ": " + a.State
		if a.State == "not sure" && h.Low.OK && h.High.OK {
			a.Text += " (" + figure.Show(h.Low, "s") + " to " + figure.Show(h.High, "s") + ")"
		}
		if a.State == "broken" && !h.Was && h.Before.OK {
			a.Text += ", as before"
		}
		list = append(list, a)
	}
	return list
}

// Outcome says whether the goal's prediction held: what was predicted, what was
// measured. Known is false where one of the two is not, and where the traffic
// explains the difference.
func (p Proof) Outcome(list []Prediction) (low, high float64, held, known bool) {
	q, foretold := PredictionOf(list, p.Result.Goal)
	c, measured := p.Change()
	if !foretold || !measured || p.Direction == verdict.NotComparable {
		return 0, 0, false, false
	}
	low, high = q.Low.V, q.High.V
	return low, high, c.Mid >= low && c.Mid <= high, true
}

// PredictionOf is the prediction of what a goal is read from, with both of its ends;
// ok is false where there is none. That of cost is turned around: output per dollar.
func PredictionOf(list []Prediction, g verdict.Goal) (p Prediction, ok bool) {
	metric := "generation_tokens_per_s"
	switch g {
	case verdict.Latency:
		metric = "e2e_mean_s"
	case verdict.Cost:
		metric = "usd_per_million_tokens"
	}
	for _, p := range list {
		if p.Metric != metric || p.Unit != "ratio" && p.Unit != "" || !p.Low.OK || !p.High.OK {
			continue
		}
		if g == verdict.Cost {
			p.Low, p.Mid, p.High = inverted(p.High), inverted(p.Mid), inverted(p.Low)
		}
		return p, p.Low.OK && p.High.OK
	}
	return Prediction{}, false
}

// inverted is the relative change of 1/x where that of x is given.
func inverted(o stat.Opt) stat.Opt {
	if !o.OK || o.V <= -1 {
		return stat.None
	}
	return stat.Some(1/(1+o.V) - 1)
}

// Told says what the answers to fixed prompts show; changed says that some differ.
func (c *Canary) Told() (text string, changed bool) {
	switch {
	case c == nil:
		return "", false
	case c.Why != "" || c.Prompts <= 0:
		return "answers not compared: " + cmp.Or(c.Why, "none was given"), false
	}
	text = fmt.Sprintf("%d of %d answers are the same", c.Same, c.Prompts)
	if c.Drift.OK {
		text += fmt.Sprintf(", log probabilities drift by %.3g", c.Drift.V)
	}
	return text, c.Same < c.Prompts
}

// Told is the score in words, "" where no prediction's outcome was measured.
func (s Score) Told() string {
	if s.Made <= 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d predictions held", s.Within, s.Made)
	if s.Error.OK && !math.IsNaN(s.Error.V) {
		text += ", median error " + figure.Percent(s.Error.V) + " points"
	}
	return text
}

// Told says how much of the limits is used up: "2 of 5 restarts, 40 s of 10 min down".
func (m Limits) Told() string {
	restarts := fmt.Sprintf("%d", m.UsedStarts)
	if m.Restarts > 0 {
		restarts += fmt.Sprintf(" of %d", m.Restarts)
	}
	word := " restarts"
	if restarts == "1" {
		word = " restart"
	}
	down := SpellTime(m.UsedOutages)
	if m.Downtime > 0 {
		down += " of " + SpellTime(m.Downtime)
	}
	text := restarts + word + ", " + down + " down"
	if m.From != m.To {
		text += ", only from " + ofDay(m.From) + " to " + ofDay(m.To)
	}
	return text
}

func ofDay(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d/time.Hour)%24, int(d/time.Minute)%60)
}

// SpellTime spells a length of time in whole units: 12 s, 4 min 12 s, 2 h 5 min.
func SpellTime(d time.Duration) string {
	s := int(max(d, 0).Round(time.Second) / time.Second)
	part := func(n int, unit string) string { return fmt.Sprintf("%d%s%s", n, figure.NBSP, unit) }
	switch {
	case s < 60:
		return part(s, "s")
	case s < 3600 && s%60 == 0:
		return part(s/60, "min")
	case s < 3600:
		return part(s/60, "min") + figure.NBSP + part(s%60, "s")
	case s%3600 < 60:
		return part(s/3600, "h")
	}
	return part(s/3600, "h") + figure.NBSP + part(s/60%60, "min")
}

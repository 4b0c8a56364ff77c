package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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
// hold it. The interval is spelled as everywhere, also where the reason has one.
func (p Proof) Says() (head, rest string) {
	reason := figure.Minus(p.Reason)
	c, ok := p.Change()
	if !ok {
		return reason, ""
	}
	if own, tail, found := strings.Cut(reason, ")"); found && strings.HasPrefix(own, p.Goal()+" ") && strings.Contains(own, "% (") {
		return p.Goal() + " " + SpellInterval(c) + tail, ""
	}
	if strings.Contains(reason, "% (") {
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
		return fmt.Sprintf("%s: %s because starts of one configuration differ, which measuring on does not narrow, %s from what was measured", whole, halfWidth(p.Restart), halfWidth(p.Measured))
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
	case p.LowerBound: // the verdict says that no queue is left
		return ""
	case before == verdict.ByCapacity && after == verdict.ByCapacity, before == after && before != verdict.ByDemand:
		return ""
	case before == after:
		return "before and after, output was limited by " + word(before)
	}
	return "output was limited by " + word(before) + " before, by " + word(after) + " after"
}

// Shifts lists what of the traffic differs beyond noise. Clients that wait for their
// answers ask more often of a faster server: arrivals that differ while as many
// requests are in follow from the server, and are no other traffic.
func (p Proof) Shifts() []string {
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
		case h.Broken:
			a.State = "broken"
		case h.OK:
			a.State = "kept"
		case !h.After.OK && !h.Low.OK && !h.High.OK:
			a.State = "not known"
		}
		a.Text = cmp.Or(h.Name, MeasureName(h.Metric, h.Quantile)) + " " + heldAt(h, a.State) + ", limit " + figure.Show(stat.Some(h.Limit), "s") + ": " + a.State
		if a.State == "not sure" && h.Low.OK && h.High.OK {
			a.Text += " (" + figure.Show(h.Low, "s") + " to " + figure.Show(h.High, "s") + ")"
		}
		if a.State == "broken" && h.WasBroken {
			a.Text += ", as before"
		}
		list = append(list, a)
	}
	return list
}

// heldAt is the value of an objective after a change, or, of too few requests for
// one, the end of its interval that tells.
func heldAt(h verdict.Held, state string) string {
	switch {
	case h.After.OK:
		return figure.Show(h.After, "s")
	case state == "kept" && h.High.OK:
		return "at most " + figure.Show(h.High, "s")
	case state == "broken" && h.Low.OK:
		return "at least " + figure.Show(h.Low, "s")
	}
	return figure.Absent
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

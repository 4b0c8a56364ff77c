// Package past compares measurements of the past, and tells what happened in one.
package past

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/loop/measured"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Measurement is a measurement of the past with what its diagnosis rests on.
type Measurement struct {
	Name string // its file, or its range of time
	engine.Diagnosis
	Inputs  facts.Inputs
	Windows []engine.Window
	// FirstStart and LastStart are when the server's process had started, in Unix time, on the first page and
	// on the last; absent if the pages do not say so.
	FirstStart, LastStart stat.Opt
}

// ReadAt notes when the server of a page had started.
func (m *Measurement) ReadAt(p *engine.Page) {
	m.LastStart = p.StartTime
	if !m.FirstStart.OK {
		m.FirstStart = m.LastStart
	}
}

// incarnations returns the slices of each start of the server.
func (m *Measurement) incarnations() []verdict.Incarnation {
	var out []verdict.Incarnation
	from := 0
	for i := 1; i <= len(m.Windows); i++ {
		if i == len(m.Windows) || m.Windows[i].Restarted || m.Windows[i].AfterRestart {
			if start := measured.Slices(m.Windows[from:i]); len(start) > 0 {
				out = append(out, start)
			}
			from = i
		}
	}
	return out
}

// Changes returns the settings of a later measurement that differ; known is false if a launch is not known, so
// that only what the servers report could be compared.
func (m *Measurement) Changes(later *Measurement) (changes []engine.Change, known bool) {
	return loop.SettingsChanged(&m.Inputs, &m.Facts, &later.Inputs, &later.Facts)
}

// OneStart reports whether the server did not start between two measurements, nor within them.
func (m *Measurement) OneStart(later *Measurement) bool {
	one := m.Target.URL == later.Target.URL && m.Target.Model == later.Target.Model
	return one && m.FirstStart.OK && m.FirstStart == m.LastStart && m.FirstStart == later.FirstStart && later.FirstStart == later.LastStart
}

// SameSettings reports whether two measurements are certainly of one configuration of one server.
func (m *Measurement) SameSettings(later *Measurement) bool {
	changes, known := m.Changes(later)
	return known && len(changes) == 0
}

// Compare compares two measurements of the past, as the loop compares those of a change. The plan has the
// goal and the objectives.
func Compare(before, after *Measurement, plan verdict.Plan) *effect.Delta {
	plan.Looks = 1
	return CompareAll([]*Measurement{before}, []*Measurement{after}, plan)
}

// CompareAll compares all measurements of one configuration, oldest first, with all of another. The plan has the
// goal, the objectives and the looks. Neither side may be empty.
func CompareAll(before, after []*Measurement, plan verdict.Plan) *effect.Delta {
	was, is := before[len(before)-1], after[len(after)-1]
	plan.Last = true
	plan.Touch = measured.TouchedBy(was.Changes(is))
	plan.Spread = verdict.Widen(nil)
	if !slices.ContainsFunc(slices.Concat(before, after), func(m *Measurement) bool { return !before[0].OneStart(m) }) {
		plan.Spread = verdict.Spread{From: "no restart lies between the two"}
	}
	r := verdict.Judge(sideOf(before), sideOf(after), plan)
	for _, m := range slices.Concat(before, after) {
		if c := m.Diagnosis.Condition; c.Ill() {
			r.Direction, r.Settled, r.Reason = verdict.Inconclusive, false, "in one of the measurements the server was ill: "+c.String()
			r.Cause, r.Need = "", "a server that is well"
		}
	}
	d := effect.Compare(&was.Diagnosis, &is.Diagnosis)
	d.Direction, d.Reason, d.Verdict = r.Direction, r.Reason, &r
	return &d
}

// sideOf returns measurements of one configuration as a side of a comparison. What may be of one start is taken for
// one: to take it for several would claim to know how starts differ.
func sideOf(list []*Measurement) *verdict.Side {
	side := &verdict.Side{CostPerHour: engine.FactOpt(list[len(list)-1].Facts.CostPerHour)}
	for i, m := range list {
		starts := m.incarnations()
		for _, start := range starts {
			for n := range start { // on one clock
				start[n].Start += m.Started.Sub(list[0].Started)
			}
		}
		if last := len(side.Incarnations) - 1; i > 0 && last >= 0 && len(starts) > 0 && (!m.FirstStart.OK || m.FirstStart == list[i-1].LastStart) {
			side.Incarnations[last] = append(side.Incarnations[last], starts[0]...)
			starts = starts[1:]
		}
		side.Incarnations = append(side.Incarnations, starts...)
	}
	return side
}

// Part is a part of a measurement. Its windows and times are of the whole.
type Part struct {
	From, To time.Duration
	Measurement
}

// Kind is the kind of something that happened.
type Kind string

// Kinds of what happened in a measurement of the past.
const (
	Restart  Kind = "restart"  // the server started
	Setting  Kind = "setting"  // the release, or a setting that the server reports
	State    Kind = "state"    // the server became ill, or recovered
	Finding  Kind = "finding"  // a finding began or ended
	Load     Kind = "load"     // the requests differ
	Measured Kind = "measured" // output or a latency differs
)

// Occurrence is something that happened in a measurement of the past.
type Occurrence struct {
	From, To time.Duration // it happened between these times
	Kind     Kind
	Text     string
	Ill      bool // the server is ill from then on
}

// notable is the least relative change of load, output or latency that is told, if it is beyond noise as well.
const notable = 0.25

// Occurrences returns what changed from part to part, in the order of time.
func Occurrences(parts []Part) []Occurrence {
	var out []Occurrence
	levels := map[string]int{}
	for i := range parts {
		p := &parts[i]
		for j := range p.Windows {
			if w := &p.Windows[j]; w.Restarted || w.AfterRestart {
				out = append(out, Occurrence{From: w.Start, To: w.End(), Kind: Restart, Text: "the server started again"})
			}
		}
		if i > 0 {
			out = append(out, p.since(&parts[i-1])...)
			out = append(out, shifts(parts[:i+1], levels)...)
		} else if p.Condition.State != "" {
			out = append(out, Occurrence{p.From, p.To, State, p.Condition.String(), p.Condition.Ill()})
		}
	}
	return out
}

// since returns what differs from the part before, but for amounts.
func (p *Part) since(before *Part) []Occurrence {
	var out []Occurrence
	add := func(kind Kind, text string) {
		out = append(out, Occurrence{p.From, p.To, kind, text, kind == State && p.Condition.Ill()})
	}
	changes, _ := before.Changes(&p.Measurement)
	for _, c := range changes {
		add(Setting, c.String())
	}
	switch was, is := before.Condition.State, p.Condition.State; {
	case is != "" && is != was:
		add(State, p.Condition.String())
	case is == "" && was != "":
		add(State, "the server is "+was.Word()+" no more")
	}
	if before.Condition.Ill() || p.Condition.Ill() {
		return out // means of a server that is ill are no figures of its work
	}
	switch was, is := before.Outcome == engine.OutcomeNoLoad, p.Outcome == engine.OutcomeNoLoad; {
	case is && !was:
		add(Load, "no load any more")
	case was && !is:
		add(Load, "load begins")
	}
	began := func(from, to *Part, text string) {
		for j := range to.Findings {
			f := &to.Findings[j]
			if was := from.Finding(f.ID); fired(f) && (was == nil || !fired(was)) {
				add(Finding, string(f.ID)+text)
			}
		}
	}
	began(before, p, " begins")
	began(p, before, " ends")
	return out
}

// shifts returns the amounts of the last part that differ from their level, which is the part where each last
// changed: a part with the change in its middle scatters too much to tell it, and the next one tells it. Each
// comparison is that of a verdict, so that what noise explains is left out.
func shifts(parts []Part, levels map[string]int) []Occurrence {
	last := len(parts) - 1
	p := &parts[last]
	if p.Condition.Ill() {
		return nil
	}
	var out []Occurrence
	results := map[int]*verdict.Result{}
	since := func(name string) *verdict.Result {
		level := levels[name]
		if results[level] == nil {
			results[level] = Compare(&parts[level].Measurement, &p.Measurement, verdict.Plan{Goal: verdict.Latency}).Verdict
		}
		return results[level]
	}
	add := func(name string, kind Kind, text string) {
		out = append(out, Occurrence{From: parts[last-1].From, To: p.To, Kind: kind, Text: text})
		levels[name] = last
	}
	for _, name := range [...]string{"prompt tokens", "output tokens", "requests in", "arrivals", "prefix hits"} {
		for _, s := range since(name).Traffic {
			if s.Name == name && s.Moved && math.Abs(s.Change.Mid) >= notable {
				add(name, Load, effect.SpellShift(s))
			}
		}
	}
	for _, metric := range [...]verdict.Metric{verdict.MetricTokens, verdict.MetricTTFT, verdict.MetricE2E, verdict.MetricStep} {
		for _, m := range since(string(metric)).Measures {
			if m.Metric == metric && m.Quantile == 0 && m.Moved && math.Abs(m.Change.Mid) >= notable {
				add(string(metric), Measured, fmt.Sprintf("%s %s → %s, %s", effect.MeasureName(metric, 0), figure.Show(m.Before, unitOf(metric)), figure.Show(m.After, unitOf(metric)), figure.ChangeSign(m.Change.Mid)))
			}
		}
	}
	return out
}

func fired(f *engine.Finding) bool { return f.State == engine.Fired && f.Significant }

// unitOf returns the unit of a metric, as figure.Show takes it.
func unitOf(m verdict.Metric) string {
	if m == verdict.MetricTokens {
		return "tok/s"
	}
	return "s"
}

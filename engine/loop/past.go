package loop

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Measurement is a measurement of the past with the basis of its diagnosis.
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
			if start := effect.Slices(m.Windows[from:i]); len(start) > 0 {
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
	return SettingsChanged(&m.Inputs, &m.Facts, &later.Inputs, &later.Facts)
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

// ComparePast compares two measurements of the past, as the loop compares those of a change. The plan has the
// goal and the objectives.
func ComparePast(before, after *Measurement, plan verdict.Plan) *effect.Delta {
	plan.Looks = 1
	return ComparePasts([]*Measurement{before}, []*Measurement{after}, plan)
}

// ComparePasts compares all measurements of one configuration, oldest first, with all of another. The plan has the
// goal, the objectives and the looks. Neither side may be empty.
func ComparePasts(before, after []*Measurement, plan verdict.Plan) *effect.Delta {
	was, is := before[len(before)-1], after[len(after)-1]
	plan.Last = true
	plan.Touch = effect.TouchedBy(was.Changes(is))
	plan.Spread = verdict.Widen(nil)
	if !slices.ContainsFunc(slices.Concat(before, after), func(m *Measurement) bool { return !before[0].OneStart(m) }) {
		plan.Spread = verdict.Spread{From: "no restart lies between the two"}
	}
	r := verdict.Judge(pastSide(before), pastSide(after), plan)
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

// pastSide returns measurements of one configuration as a side of a comparison. Measurements that may be of one start are
// taken for one: several would claim to know how starts differ.
func pastSide(list []*Measurement) *verdict.Side {
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

package tui

import (
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// timeMeasure is one quantity of the points as charts draw it.
type timeMeasure struct {
	name string // with its unit where figures have none
	unit string // of interfaces.md section 3; "" where the name says it
	fold chart.Fold
	full bool // the scale is 0 to 100 %
	most int  // lines of a chart beyond which it shows no more
	get  func(*engine.Point) stat.Opt
}

// Measures of time charts, most important first.
func timeMeasures() []timeMeasure {
	return []timeMeasure{
		{name: "tok/s", fold: chart.Mean, most: 9, get: func(p *engine.Point) stat.Opt { return p.Tokens }},
		{name: "TTFT p99", unit: "s", fold: chart.Max, most: 7, get: func(p *engine.Point) stat.Opt { return p.TTFT }},
		{name: "running", fold: chart.Mean, most: 5, get: func(p *engine.Point) stat.Opt { return p.Running }},
		{name: "waiting", fold: chart.Max, most: 5, get: func(p *engine.Point) stat.Opt { return p.Waiting }},
		{name: "KV peak", unit: "ratio", fold: chart.Max, full: true, most: 3, get: func(p *engine.Point) stat.Opt { return p.KV }},
		{name: "ITL p99", unit: "s", fold: chart.Max, most: 5, get: func(p *engine.Point) stat.Opt { return p.ITL }},
		{name: "power", unit: "W", fold: chart.Mean, most: 4, get: func(p *engine.Point) stat.Opt { return p.Power }},
	}
}

// measuredOver are the measures of which a run has any value; of one without
// any, all that there is to measure.
func measuredOver(s *engine.Snapshot) []timeMeasure {
	list := slices.DeleteFunc(timeMeasures(), func(m timeMeasure) bool {
		return !slices.ContainsFunc(s.Points, func(p engine.Point) bool { return number(m.get(&p)) })
	})
	if len(list) == 0 {
		return timeMeasures()
	}
	return list
}

// show spells a value of the measure.
func (m *timeMeasure) show(v stat.Opt) string {
	if v.OK && m.unit == "" {
		return figure.Count(v.V)
	}
	return figure.Show(v, m.unit)
}

// top spells the upper end of a scale, which is a round number.
func (m *timeMeasure) top(v float64) string {
	number, unit := figure.Amount(v, m.unit)
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(number + " " + unit)
}

// windowSamples are the points of a run as stretches of time, without values yet.
// A window reaches back to the one before it, unless something is missing between
// them.
func windowSamples(points []engine.Point) []chart.Sample {
	out := make([]chart.Sample, len(points))
	length := windowOf(points)
	for i := range points {
		p := &points[i]
		from := p.T - length
		if i > 0 && p.T-points[i-1].T < length*7/4 {
			from = points[i-1].T
		}
		out[i] = chart.Sample{From: from, To: p.T}
	}
	return out
}

// windowOf is the usual length of a window among the latest of points.
func windowOf(points []engine.Point) time.Duration {
	var gaps []time.Duration
	for i := max(1, len(points)-64); i < len(points); i++ {
		if d := points[i].T - points[i-1].T; d > 0 {
			gaps = append(gaps, d)
		}
	}
	if len(gaps) == 0 {
		return engine.WindowLength
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// recent are the latest n windows of a quantity, one a value, the newest last:
// what a sparkline of n columns shows. Time in which nothing was measured is a gap.
func recent(s *engine.Snapshot, n int, get func(*engine.Point) stat.Opt) []stat.Opt {
	if len(s.Points) == 0 {
		return nil
	}
	points := s.Points[max(0, len(s.Points)-n-1):]
	step := windowOf(points)
	span := chart.Latest(endOf(s), step, n)
	samples := windowSamples(points)
	for i := range points {
		samples[i].V = get(&points[i])
	}
	return chart.Buckets(span, chart.Last, samples)
}

// endOf is how far charts reach: to the last window, or to now where windows have
// stopped coming, so that an outage is seen while it lasts.
func endOf(s *engine.Snapshot) time.Duration {
	if len(s.Points) == 0 {
		return s.Now
	}
	last := s.Points[len(s.Points)-1].T
	if s.Now-last > 2*windowOf(s.Points) {
		return s.Now
	}
	return last
}

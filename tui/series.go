package tui

import (
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// timeMeasure is a quantity that is charted over time.
type timeMeasure struct {
	name   string // with its unit if the figures have none
	unit   string // of the quantity; "" if the name has it
	fold   lines.Fold
	full   bool // the scale is 0 to 100 %
	most   int  // maximum lines of its chart
	get    func(*loop.Point) stat.Opt
	bucket func(*loop.Point) stat.Bucket // of a quantile, else nil
	// limit is what the values should stay below, such as an objective; nil if there is none.
	limit     func(*loop.Snapshot) stat.Opt
	limitName string
}

// limitInView is the multiple of the highest value up to which a limit extends the scale: a limit
// far above the values would flatten them.
const limitInView = 4

// limitOf returns the limit of a measure, absent if there is none.
func (m *timeMeasure) limitOf(s *loop.Snapshot) stat.Opt {
	if m.limit == nil {
		return stat.None
	}
	return m.limit(s).Finite()
}

// objective returns the limit of an objective of the run on the 99th percentile of a histogram.
func objective(metric verdict.Metric) func(*loop.Snapshot) stat.Opt {
	return func(s *loop.Snapshot) stat.Opt {
		for _, o := range s.Objectives {
			if o.Metric == metric && o.Quantile == 0.99 {
				return stat.Some(o.Limit)
			}
		}
		return stat.None
	}
}

// timeMeasures returns the quantities of time charts, the most important first.
func timeMeasures() []timeMeasure {
	return []timeMeasure{
		{name: "tok/s", fold: lines.Mean, most: 9, get: func(p *loop.Point) stat.Opt { return p.Tokens }},
		{name: "TTFT p99", unit: "s", fold: lines.Max, most: 7, get: func(p *loop.Point) stat.Opt { return p.TTFT }, bucket: ttftBucket, limit: objective(verdict.MetricTTFT), limitName: "limit"},
		{name: "running", fold: lines.Mean, most: 5, get: func(p *loop.Point) stat.Opt { return p.Running }},
		{name: "waiting", fold: lines.Max, most: 5, get: func(p *loop.Point) stat.Opt { return p.Waiting }},
		{name: "KV peak", unit: "ratio", fold: lines.Max, full: true, most: 3, get: func(p *loop.Point) stat.Opt { return p.KV }},
		{name: "ITL p99", unit: "s", fold: lines.Max, most: 5, get: func(p *loop.Point) stat.Opt { return p.ITL }, bucket: itlBucket, limit: objective(verdict.MetricITL), limitName: "limit"},
		{name: "power", unit: "W", fold: lines.Mean, most: 4, get: func(p *loop.Point) stat.Opt { return p.Power }},
	}
}

func ttftBucket(p *loop.Point) stat.Bucket { return p.TTFTBucket }
func itlBucket(p *loop.Point) stat.Bucket  { return p.ITLBucket }

// gpuMeasures returns the quantities of the GPUs' charts, with the limits that the GPUs state.
func gpuMeasures() []timeMeasure {
	return []timeMeasure{
		{name: "clock", unit: "MHz", fold: lines.Min, most: 7, get: func(p *loop.Point) stat.Opt { return p.Clock }, limit: lowest(engine.GPUSMClockMaxMHz), limitName: "max"},
		{name: "temp", unit: "C", fold: lines.Max, most: 7, get: func(p *loop.Point) stat.Opt { return p.Temperature }, limit: lowest(engine.GPUTemperatureLimitC), limitName: "limit"},
		{name: "power", unit: "W", fold: lines.Mean, most: 7, get: func(p *loop.Point) stat.Opt { return p.Power }, limit: powerLimit, limitName: "limit"},
		{name: "busy", unit: "ratio", fold: lines.Mean, most: 7, full: true, get: func(p *loop.Point) stat.Opt { return p.GPU }},
	}
}

// lowest returns the lowest value of a field over all GPUs.
func lowest(field engine.GPUField) func(*loop.Snapshot) stat.Opt {
	return func(s *loop.Snapshot) (least stat.Opt) {
		for i := 0; s.GPU != nil && i < len(s.GPU.Devices); i++ {
			if v := s.GPU.Devices[i].Fields[field]; v.OK && (!least.OK || v.V < least.V) {
				least = v
			}
		}
		return least
	}
}

// powerLimit returns the sum of the power limits of all GPUs, absent unless each is known.
func powerLimit(s *loop.Snapshot) stat.Opt {
	if s.GPU == nil {
		return stat.None
	}
	sum := stat.Some(0)
	for i := range s.GPU.Devices {
		sum = sum.Plus(s.GPU.Devices[i].Fields[engine.GPUPowerLimitW])
	}
	return sum
}

// measuredOver returns the quantities that a run has values of.
func measuredOver(s *loop.Snapshot, list []timeMeasure) []timeMeasure {
	return slices.DeleteFunc(list, func(m timeMeasure) bool {
		for i := range s.Points {
			if m.get(&s.Points[i]).Finite().OK {
				return false
			}
		}
		return true
	})
}

// measuresOf returns the quantities of the charts of a run, all of them before any has a value.
func measuresOf(s *loop.Snapshot) []timeMeasure {
	if list := measuredOver(s, timeMeasures()); len(list) > 0 {
		return list
	}
	return timeMeasures()
}

// show formats a value of the measure, which may be one of the given points.
func (m *timeMeasure) show(v stat.Opt, points []loop.Point) string {
	if v.OK && m.unit == "" {
		return figure.Count(v.V)
	}
	var bucket stat.Bucket
	for i := 0; m.bucket != nil && i < len(points); i++ {
		if m.get(&points[i]) == v {
			bucket = m.bucket(&points[i])
			break
		}
	}
	return figure.ShowWithin(v, bucket.Width(), m.unit)
}

// top formats the upper end of a scale, which is a round number.
func (m *timeMeasure) top(v float64) string {
	number, unit := figure.Amount(v, m.unit)
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(number + " " + unit)
}

// windowSamples returns the time ranges of windows, without values. A window extends back to the
// previous one, unless there is a gap between them.
func windowSamples(points []loop.Point) []lines.Sample {
	out := make([]lines.Sample, len(points))
	length := windowOf(points)
	for i := range points {
		p := &points[i]
		from := p.T - length
		if i > 0 && p.T-points[i-1].T < length*7/4 {
			from = points[i-1].T
		}
		out[i] = lines.Sample{From: from, To: p.T}
	}
	return out
}

// windowOf returns the typical duration of the latest windows.
func windowOf(points []loop.Point) time.Duration {
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

// recent returns the latest n windows of a quantity, the newest last, for a sparkline of n columns.
// Times without measurements are gaps.
func recent(s *loop.Snapshot, n int, get func(*loop.Point) stat.Opt) []stat.Opt {
	if len(s.Points) == 0 {
		return nil
	}
	points := s.Points[max(0, len(s.Points)-n-1):]
	step := windowOf(points)
	span := lines.Latest(endOf(s), step, n)
	samples := windowSamples(points)
	for i := range points {
		samples[i].V = get(&points[i])
	}
	return lines.Buckets(span, lines.Last, samples)
}

// endOf returns the end of the time axis: the last window or, if windows have stopped arriving, the
// present, so that an outage is visible while it lasts.
func endOf(s *loop.Snapshot) time.Duration {
	last := s.Points[len(s.Points)-1].T
	if s.Now-last > 2*windowOf(s.Points) {
		return s.Now
	}
	return last
}

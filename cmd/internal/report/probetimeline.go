package report

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// lane is one quantity along the time axis.
type lane struct {
	name, unit string // the unit says how a column is made of its samples
	scale      string // unit of the scale's top, as figure spells it
	hi         float64
	rows       int
	values     []stat.Opt
	marks      bool // a column shows only that something was there
	tone       tone
}

// timeline draws the run: tokens, GPUs and processes over one time axis.
func (r *probePage) timeline() {
	if r.c.End <= r.c.Begin || r.c.Span() <= 0 {
		return
	}
	axis := axisOf{from: r.c.Begin, to: r.c.End, columns: r.width - laneGutter - 1}
	lanes := r.lanes(axis)
	if len(lanes) == 0 {
		r.heading("Timeline", "")
		r.line(indent, r.gap("no token, GPU or process was sampled"))
		return
	}
	zero := "the send"
	switch {
	case r.c.Kind != capture.Probe:
		zero = "the window began"
	case len(r.c.Requests) > 1:
		zero = "the first send"
	}
	r.heading("Timeline", "seconds since "+zero+"; a column is "+shownTime(axis.step()))
	r.marks(axis)
	for i := range lanes {
		r.lane(&lanes[i])
	}
	r.axis(axis)
}

// laneGutter are the cells left of a lane, the axis included.
const laneGutter = 20

// axisOf divides the run into columns of equal length.
type axisOf struct {
	from, to time.Duration
	columns  int
}

func (a axisOf) step() time.Duration { return (a.to - a.from) / time.Duration(a.columns) }

// column is where a moment lies, in columns from the left end.
func (a axisOf) column(t time.Duration) float64 {
	return (float64(t) - float64(a.from)) / (float64(a.to) - float64(a.from)) * float64(a.columns)
}

// cover calls f for each column that a stretch covers, with the part of it, 0..1.
func (a axisOf) cover(from, to time.Duration, f func(i int, part float64)) {
	lo, hi := max(a.column(from), 0), min(a.column(to), float64(a.columns))
	if !(lo < hi) {
		return
	}
	for i := int(lo); float64(i) < hi; i++ {
		f(i, min(hi, float64(i+1))-max(lo, float64(i)))
	}
}

// cell is the column of a moment, which may lie outside.
func (a axisOf) cell(t time.Duration) int {
	f := math.Floor(a.column(t))
	return int(min(max(f, -1), float64(a.columns)))
}

// stretchValue is a value over a stretch of time.
type stretchValue struct {
	from, to time.Duration
	v        float64
}

// mean gives each column the mean of the stretches that cover it, weighed by how
// much of it they cover.
func (a axisOf) mean(list []stretchValue) []stat.Opt {
	sum, weight := make([]float64, a.columns), make([]float64, a.columns)
	for _, s := range list {
		if math.IsNaN(s.v) || math.IsInf(s.v, 0) {
			continue
		}
		a.cover(s.from, s.to, func(i int, part float64) {
			sum[i] += part * s.v
			weight[i] += part
		})
	}
	out := make([]stat.Opt, a.columns)
	for i := range out {
		if weight[i] > 1e-9 {
			out[i] = finite(stat.Some(sum[i] / weight[i]))
		}
	}
	return out
}

// lanes are what the run has to show.
func (r *probePage) lanes(a axisOf) []lane {
	var out []lane
	add := func(l lane) {
		if most, any := highest(l.values); any {
			if l.hi == 0 {
				l.hi = laneTop(most)
			}
			out = append(out, l)
		}
	}
	add(r.tokenLane(a))
	if len(r.c.Requests) > 1 {
		add(lane{name: "in flight", unit: "requests, mean", rows: 2, values: r.inFlight(a), tone: muted})
	}
	add(r.gpuLane(a))
	add(lane{name: "CPU", unit: "cores, mean", rows: 3, values: a.mean(r.cores()), tone: warn})
	return out
}

// laneTop is the end of a lane's scale: the next value that a person reads at once. A
// lane is low, so the steps are closer than those of an axis.
func laneTop(most float64) float64 {
	if !(most > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, f := range [...]float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if v := f * power; v >= most*(1-1e-9) {
			return v
		}
	}
	return most
}

func highest(values []stat.Opt) (most float64, any bool) {
	for _, v := range values {
		if v.OK {
			most, any = max(most, v.V), true
		}
	}
	return most, any
}

// tokenLane is the rate of output tokens, or a mark for each chunk where no request
// has two. An observation has the rate of the server's counter.
func (r *probePage) tokenLane(a axisOf) lane {
	if len(r.c.Requests) == 0 {
		rates, unit := r.pageRates()
		return lane{name: "tokens", unit: unit, rows: 3, values: a.mean(rates), tone: accent}
	}
	marks, tokens := make([]stat.Opt, a.columns), make([]float64, a.columns)
	rated := false
	for i := range r.c.Requests {
		q := &r.c.Requests[i]
		for j := range q.Chunks {
			if at := a.cell(q.Chunks[j].At); at >= 0 && at < a.columns {
				marks[at] = stat.Some(1)
			}
		}
		rated = a.spreadTokens(q, tokens) || rated
	}
	if !rated {
		return lane{name: "chunks", unit: "as marks", rows: 1, values: marks, marks: true, tone: accent}
	}
	values := make([]stat.Opt, a.columns)
	for i, n := range tokens {
		values[i] = finite(stat.Some(n / a.step().Seconds()))
	}
	return lane{name: "tokens", unit: "tok/s, mean", rows: 3, values: values, tone: accent}
}

// spreadTokens adds the tokens of a request to columns: those of a chunk over the time
// since the one before, so that a stall is seen as one. The first has none before it
// and is marked above. It says whether there was any.
func (a axisOf) spreadTokens(q *capture.Request, tokens []float64) bool {
	weight := 1.0
	if n := finite(q.OutputTokens); n.OK && len(q.Chunks) > 0 {
		weight = n.V / float64(len(q.Chunks))
	}
	for j := 1; j < len(q.Chunks); j++ {
		from, to := q.Chunks[j-1].At, q.Chunks[j].At
		length := a.column(to) - a.column(from)
		if !(length > 1e-6) { // both in one message
			if at := a.cell(to); at >= 0 && at < a.columns {
				tokens[at] += weight
			}
			continue
		}
		a.cover(from, to, func(i int, part float64) { tokens[i] += weight * part / length })
	}
	return len(q.Chunks) > 1
}

// pageRates are the rates between looks at the server's page, as far as its counter
// tells them, and what they are.
func (r *probePage) pageRates() (rates []stretchValue, unit string) {
	list, estimate := r.c.CounterRates()
	for _, rate := range list {
		rates = append(rates, stretchValue{rate.From, rate.To, rate.PerSecond})
	}
	if estimate {
		return rates, "tok/s (est)"
	}
	return rates, "tok/s, mean"
}

func (r *probePage) inFlight(a axisOf) []stat.Opt {
	share := make([]float64, a.columns)
	for i := range r.c.Requests {
		q := &r.c.Requests[i]
		a.cover(q.Sent, q.End, func(j int, part float64) { share[j] += part })
	}
	out := make([]stat.Opt, a.columns)
	for i, v := range share {
		out[i] = stat.Some(v)
	}
	return out
}

// gpuLane is the utilisation of the GPUs, or their power where that is not read.
func (r *probePage) gpuLane(a axisOf) lane {
	if list := r.gauge(engine.GPUUtil, true); len(list) > 0 {
		return lane{name: "GPU", unit: "busy, mean", scale: "ratio", hi: 1, rows: 3, values: a.mean(list), tone: ok}
	}
	return lane{name: "GPU", unit: "power, mean", scale: "W", rows: 3, values: a.mean(r.gauge(engine.GPUPowerW, false)), tone: ok}
}

// gauge is a field of all devices over time: a reading holds for the time since the
// one before, or for a period where that is long ago.
func (r *probePage) gauge(f engine.GPUField, mean bool) []stretchValue {
	var out []stretchValue
	period := max(r.c.Period, time.Millisecond)
	before := time.Duration(math.MinInt64)
	for i := range r.c.GPUs.Readings {
		g := &r.c.GPUs.Readings[i]
		sum, n := 0.0, 0.0
		for j := range g.Devices {
			if v := finite(g.Devices[j].Fields[f]); v.OK {
				sum, n = sum+v.V, n+1
			}
		}
		from := max(before, g.T-3*period)
		before = g.T
		if n == 0 || from >= g.T {
			continue
		}
		if mean {
			sum /= n
		}
		out = append(out, stretchValue{from, g.T, sum})
	}
	return out
}

// cores is the CPU of the tree between its looks.
func (r *probePage) cores() []stretchValue {
	var out []stretchValue
	for _, l := range r.c.Tree.Load() {
		out = append(out, stretchValue{l.From, l.To, l.Cores})
	}
	return out
}

package probe

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// timeline returns the timeline of the run: tokens, GPUs and processes.
func (r *report) timeline() page.Section {
	if r.c.End <= r.c.Begin || r.c.Span() <= 0 { // the span may overflow
		return page.Section{}
	}
	zero := "the send"
	switch {
	case r.c.Kind != capture.Probe:
		zero = "the start of the window"
	case len(r.c.Requests) > 1:
		zero = "the first send"
	}
	s := page.Section{ID: "timeline", Title: "Timeline", Note: "seconds since " + zero}
	series := &page.Series{ID: "timeline", Noun: "step", Rows: r.lanes()}
	if len(series.Rows) == 0 {
		s.Note = ""
		s.Add(page.Paragraph(r.absentText("no token, GPU or process was sampled")))
		return s
	}
	step := r.c.Span() / timeColumns
	series.Ends = make([]string, timeColumns)
	for i := 0; i < timeColumns; i += 10 {
		series.Ends[i] = strconv.FormatFloat((time.Duration(i) * step).Seconds(), 'g', 3, 64)
	}
	s.Add(series, page.Paragraph(page.Toned(page.Muted, figure.Joined(", ", append(r.moments(), "a step is "+figure.Duration(step))...))))
	return s
}

// timeColumns is the number of steps that a timeline divides the run into.
const timeColumns = 60

// moments names the first token and the end of the requests.
func (r *report) moments() []string {
	var list []string
	first := time.Duration(math.MaxInt64)
	for i := range r.c.Requests {
		if k := r.c.Requests[i].Chunks; len(k) > 0 {
			first = min(first, k[0].At)
		}
	}
	if first < math.MaxInt64 {
		list = append(list, "first token "+figure.Duration(first-r.c.Begin))
	}
	if len(r.c.Requests) > 0 {
		list = append(list, "end "+figure.Duration(r.c.Span()))
	}
	return list
}

// stretch is a value over a period of time.
type stretch struct {
	from, to time.Duration
	v        float64
}

// axis divides the run into columns of equal duration.
type axis struct {
	from, to time.Duration
	columns  int
}

// column returns the position of a moment, in columns from the left end.
func (a axis) column(t time.Duration) float64 {
	return (float64(t) - float64(a.from)) / (float64(a.to) - float64(a.from)) * float64(a.columns)
}

// cover calls add for each column that a period covers, with the covered part of it, 0..1.
func (a axis) cover(from, to time.Duration, add func(i int, part float64)) {
	lo, hi := max(a.column(from), 0), min(a.column(to), float64(a.columns))
	if !(lo < hi) {
		return
	}
	for i := int(lo); float64(i) < hi; i++ {
		add(i, min(hi, float64(i+1))-max(lo, float64(i)))
	}
}

// mean returns for each column the mean of the stretches that cover it, weighted by the part that they
// cover.
func (a axis) mean(list []stretch) []stat.Opt {
	sum, weight := make([]float64, a.columns), make([]float64, a.columns)
	for _, s := range list {
		if stat.IsFinite(s.v) {
			a.cover(s.from, s.to, func(i int, part float64) {
				sum[i] += part * s.v
				weight[i] += part
			})
		}
	}
	out := make([]stat.Opt, a.columns)
	for i := range out {
		if weight[i] > 1e-9 {
			out[i] = stat.Finite(sum[i] / weight[i])
		}
	}
	return out
}

// lanes returns a row for each of the available data.
func (r *report) lanes() []page.SeriesRow {
	var rows []page.SeriesRow
	// unit is the unit of the scale; top is its fixed end, or 0.
	add := func(label, note, unit string, top float64, values func(a axis) []stat.Opt) {
		list, largest := values(axis{r.c.Begin, r.c.End, timeColumns}), stat.None
		for _, v := range list {
			largest = largest.Max(v)
		}
		if !largest.OK {
			return
		}
		top = cmp.Or(top, laneTop(largest.V))
		for i := range list {
			list[i] = list[i].Times(1 / top)
		}
		rows = append(rows, page.SeriesRow{Label: label, Values: list, Note: note + ", up to " + figure.Show(stat.Some(top), unit)})
	}
	r.tokenLane(add)
	if len(r.c.Requests) > 1 {
		add("in flight", "requests, mean", "", 0, r.inFlight)
	}
	if util := r.gauge(engine.GPUUtil, true); len(util) > 0 {
		add("GPU", "busy, mean", "ratio", 1, func(a axis) []stat.Opt { return a.mean(util) })
	} else {
		power := r.gauge(engine.GPUPowerW, false)
		add("GPU", "power, mean", "W", 0, func(a axis) []stat.Opt { return a.mean(power) })
	}
	var cores []stretch
	for _, l := range r.c.Tree.Load() {
		cores = append(cores, stretch{l.From, l.To, l.Cores})
	}
	add("CPU", "cores, mean", "", 0, func(a axis) []stat.Opt { return a.mean(cores) })
	return rows
}

// laneTop returns the next round value. Lanes are low, so its steps are finer than those of an axis.
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

// tokenLane adds the rate of output tokens, or a mark for each chunk if no request has two. For an
// observation it adds the rate of the server's counter.
func (r *report) tokenLane(add func(label, note, unit string, whole float64, values func(axis) []stat.Opt)) {
	if len(r.c.Requests) == 0 {
		rates, estimate := r.c.CounterRates()
		note := "tok/s, mean"
		if estimate {
			note = "tok/s (est)"
		}
		var list []stretch
		for _, rate := range rates {
			list = append(list, stretch{rate.From, rate.To, rate.PerSecond})
		}
		add("tokens", note, "", 0, func(a axis) []stat.Opt { return a.mean(list) })
		return
	}
	for i := range r.c.Requests {
		if len(r.c.Requests[i].Chunks) > 1 {
			add("tokens", "tok/s, mean", "", 0, r.tokenRates)
			return
		}
	}
	add("chunks", "as marks", "", 1, func(a axis) []stat.Opt {
		marks := make([]stat.Opt, a.columns)
		for i := range r.c.Requests {
			for _, k := range r.c.Requests[i].Chunks {
				if at := int(math.Floor(a.column(k.At))); at >= 0 && at < a.columns {
					marks[at] = stat.Some(1)
				}
			}
		}
		return marks
	})
}

// tokenRates spreads the tokens of each chunk over the time since the previous chunk, so that a stall is
// visible. The first chunk has no previous one and is marked above.
func (r *report) tokenRates(a axis) []stat.Opt {
	tokens := make([]float64, a.columns)
	for i := range r.c.Requests {
		q := &r.c.Requests[i]
		weight := 1.0
		if n := q.OutputTokens.Finite(); n.OK && len(q.Chunks) > 0 {
			weight = n.V / float64(len(q.Chunks))
		}
		for j := 1; j < len(q.Chunks); j++ {
			from, to := q.Chunks[j-1].At, q.Chunks[j].At
			if length := a.column(to) - a.column(from); length > 1e-6 {
				a.cover(from, to, func(i int, part float64) { tokens[i] += weight * part / length })
			} else if at := int(math.Floor(a.column(to))); at >= 0 && at < a.columns { // both chunks came in one message
				tokens[at] += weight
			}
		}
	}
	step := (a.to - a.from) / time.Duration(a.columns)
	out := make([]stat.Opt, a.columns)
	for i, n := range tokens {
		out[i] = stat.Finite(n / step.Seconds())
	}
	return out
}

func (r *report) inFlight(a axis) []stat.Opt {
	count := make([]float64, a.columns)
	for i := range r.c.Requests {
		q := &r.c.Requests[i]
		a.cover(q.Sent, q.End, func(j int, part float64) { count[j] += part })
	}
	out := make([]stat.Opt, a.columns)
	for i, v := range count {
		out[i] = stat.Some(v)
	}
	return out
}

// gauge returns a field of all devices over time. A reading holds for the time since the previous one,
// or for three periods if that is longer ago.
func (r *report) gauge(f engine.GPUField, mean bool) []stretch {
	var out []stretch
	period := max(r.c.Period, time.Millisecond)
	before := time.Duration(math.MinInt64)
	for i := range r.c.GPUs.Readings {
		g := &r.c.GPUs.Readings[i]
		sum, n := 0.0, 0.0
		for j := range g.Devices {
			if v := g.Devices[j].Fields[f].Finite(); v.OK {
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
		out = append(out, stretch{from, g.T, sum})
	}
	return out
}

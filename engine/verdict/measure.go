package verdict

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// movedError is the error rate for calling a measure changed.
const movedError = 0.01

// meter is a measure to compare.
type meter struct {
	metric   Metric
	quantile float64
	ratio    ratio                    // for means and rates
	hist     func(*Slice) *stat.Delta // for quantiles
	at       [2]int                   // columns of before and after
	exact    [2]quantile              // for quantiles
	standin  bool                     // stands in for another measure, and is not listed
}

var meters = [...]meter{
	{metric: MetricTokens, ratio: perSecond(tokens)},
	{metric: MetricRequests, ratio: perSecond(finished)},
	{metric: MetricTTFT, ratio: observationMean(ttft)},
	{metric: MetricITL, ratio: observationMean(itl)},
	{metric: MetricTPOT, ratio: observationMean(tpot)},
	{metric: MetricE2E, ratio: observationMean(e2e)},
	{metric: MetricTTFT, quantile: 0.5, hist: ttft},
	{metric: MetricTTFT, quantile: 0.99, hist: ttft},
	{metric: MetricITL, quantile: 0.5, hist: itl},
	{metric: MetricITL, quantile: 0.99, hist: itl},
	{metric: MetricTPOT, quantile: 0.5, hist: tpot},
	{metric: MetricTPOT, quantile: 0.99, hist: tpot},
	{metric: MetricE2E, quantile: 0.5, hist: e2e},
	{metric: MetricE2E, quantile: 0.99, hist: e2e},
	{metric: MetricStep, ratio: timeMean(func(s *Slice) stat.Opt { return s.StepTime })},
	{metric: MetricPreempts, ratio: perSecond(func(s *Slice) stat.Opt { return s.Preempts })},
	{metric: MetricPower, ratio: timeMean(func(s *Slice) stat.Opt { return s.Power })},
	{metric: MetricPerWatt, ratio: func(s *Slice) (float64, float64, bool) {
		return s.Tokens.V, s.Power.V * s.Length.Seconds(), s.Tokens.OK && s.Power.OK
	}},
}

func ttft(s *Slice) *stat.Delta { return &s.TTFT }
func itl(s *Slice) *stat.Delta  { return &s.ITL }
func tpot(s *Slice) *stat.Delta { return &s.TPOT }
func e2e(s *Slice) *stat.Delta  { return &s.E2E }

// hists are the histograms that an objective can refer to.
var hists = map[Metric]func(*Slice) *stat.Delta{MetricTTFT: ttft, MetricITL: itl, MetricTPOT: tpot, MetricE2E: e2e}

func newComparison(before, after *Side, p Plan) *comparison {
	c := &comparison{p: p}
	if c.p.Goal == "" {
		c.p.Goal = Throughput
	}
	if !(c.p.Precision > 0) || !plausible(c.p.Precision) {
		c.p.Precision = 0.03
	}
	c.precision = math.Log1p(c.p.Precision)
	c.error = c.p.level(0, 1)
	for i, s := range [...]*Side{before, after} {
		c.side[i] = prepare(s)
	}
	if p.Paired {
		c.match()
	}
	for _, s := range c.side {
		s.cutWarmUp()
	}
	if p.Paired { // the warm-up of one server is compared with nothing
		c.match()
	}
	scatter := c.scatter()
	for _, s := range c.side {
		s.weigh(c.p.Spread.sd(), scatter)
	}
	c.restart = stat.StudentQuantile(1-p.rate()/2, c.p.Spread.dof()) * math.Sqrt(c.restarts())
	c.r = Result{
		Direction: Inconclusive, Cause: ByNoise, Goal: c.p.Goal, Spread: c.p.Spread, Restart: c.restart,
		Limited: [2]Limit{LimitUnknown, LimitUnknown},
	}
	for i, s := range c.side {
		for j := range s.starts {
			merge(&c.r.Steady[i], &s.starts[j].steady)
		}
	}
	return c
}

// merge adds the steadiness of another start.
func merge(to, s *Steadiness) {
	to.Cut += s.Cut
	to.Used += s.Used
	if math.Abs(s.Drift) > math.Abs(to.Drift) {
		to.Drift = s.Drift
	}
}

// scatter returns a first estimate of the relative variance of one second's throughput, from the
// slices. It is used only for the weights of starts.
func (c *comparison) scatter() float64 {
	sum, n := 0.0, 0.0
	for _, s := range c.side {
		for i := range s.starts {
			l := &s.starts[i]
			pace := detrended(l.pace())
			if m := average(l.pace()); m > 0 && len(pace) > 3 {
				k := float64(len(pace))
				sum += variance(pace) / (m * m) * inflation(pace) * l.time
				n += k
			}
		}
	}
	if n == 0 {
		return 1
	}
	return max(sum/n, 1e-9)
}

// measure adds all columns, estimates their errors and compares the measures.
func (c *comparison) measure() {
	c.meters = slices.Clone(meters[:])
	for _, o := range c.p.Objectives {
		if pick := hists[o.Metric]; pick != nil && o.Quantile > 0 && o.Quantile < 1 && c.meter(o.Metric, o.Quantile) == nil {
			c.meters = append(c.meters, meter{metric: o.Metric, quantile: o.Quantile, hist: pick})
		}
	}
	for i := range c.meters {
		c.columns(&c.meters[i])
	}
	c.standins()
	c.tails = make([][2]tail, len(c.p.Objectives))
	for side, s := range c.side {
		for i := range c.p.Objectives {
			o := &c.p.Objectives[i]
			if m := c.meter(o.Metric, o.Quantile); m != nil && m.hist != nil && !s.columns[m.at[side]].value.OK {
				c.tails[i][side] = s.shares(&m.exact[side], m.hist, o.Limit)
			}
		}
		s.loads()
		s.estimate()
	}
	for i := range c.meters {
		if m := &c.meters[i]; !m.standin {
			c.compare(m)
		}
	}
	c.describe()
}

// columns adds the columns of a measure on both sides.
func (c *comparison) columns(m *meter) {
	for side, s := range c.side {
		if m.hist != nil {
			m.at[side], m.exact[side] = s.quantile(m.hist, m.quantile)
		} else {
			m.at[side] = s.ratio(m.ratio)
		}
	}
}

// standins adds the quantiles that stand in for an unknown p99 of the time to first token. They
// are not listed.
func (c *comparison) standins() {
	m := c.meter(MetricTTFT, 0.99)
	if c.p.Goal != Throughput || len(c.p.Objectives) > 0 || c.side[0].columns[m.at[0]].value.OK && c.side[1].columns[m.at[1]].value.OK {
		return
	}
	for _, q := range [...]float64{0.95, 0.9} {
		one := meter{metric: MetricTTFT, quantile: q, hist: ttft, standin: true}
		c.columns(&one)
		c.meters = append(c.meters, one)
	}
}

// meter returns the meter of a metric's quantile, or of its mean if q is 0; nil if there is none.
func (c *comparison) meter(metric Metric, q float64) *meter {
	for i := range c.meters {
		if m := &c.meters[i]; m.metric == metric && m.quantile == q {
			return m
		}
	}
	return nil
}

// estimatesOf returns the estimates of a measure on both sides.
func (c *comparison) estimatesOf(m *meter) (b, a *estimate) {
	return &c.side[0].estimates[m.at[0]], &c.side[1].estimates[m.at[1]]
}

// compare adds a measure to the result if it was read on at least one side.
func (c *comparison) compare(m *meter) { c.list(c.compared(m)) }

// list adds a measure to the result if it has a value on at least one side.
func (c *comparison) list(m Measure) {
	if m.Before.OK || m.After.OK {
		c.r.Measures = append(c.r.Measures, m)
	}
}

// describe adds the untested measures of the judged slices.
func (c *comparison) describe() {
	for _, d := range [...]struct {
		metric Metric
		value  func(*sample) stat.Opt
	}{
		{MetricRunning, func(s *sample) stat.Opt { return s.columns[s.load.running].value }},
		{MetricWaiting, func(s *sample) stat.Opt { return s.columns[s.load.waiting].value }},
		{MetricKVPeak, (*sample).kvPeak},
		{MetricHits, func(s *sample) stat.Opt {
			return s.columns[s.load.hits].value.Map(func(v float64) float64 { return min(1, v) })
		}},
		{MetricCost, (*sample).costOfTokens},
	} {
		c.list(Measure{Metric: d.metric, Before: d.value(c.side[0]), After: d.value(c.side[1])})
	}
}

// kvPeak returns the fullest state of the KV pool, a ratio.
func (s *sample) kvPeak() (peak stat.Opt) {
	for i := range s.starts {
		for j := range s.starts[i].slices {
			peak = peak.Max(s.starts[i].slices[j].KV)
		}
	}
	return peak
}

// costOfTokens returns the dollars per million output tokens, absent without a price.
func (s *sample) costOfTokens() stat.Opt {
	made, seconds, _ := s.sum(perSecond(tokens))
	if !s.cost.OK || made <= 0 {
		return stat.None
	}
	return clean(stat.Some(s.cost.V / 3600 * seconds / made * 1e6))
}

// compared returns the comparison of a measure.
func (c *comparison) compared(m *meter) Measure {
	b, a := c.estimatesOf(m)
	out := Measure{Metric: m.metric, Quantile: m.quantile, Before: b.value, After: a.value, Count: min(b.count, a.count)}
	if m.hist != nil {
		for i := range m.exact {
			out.Buckets[i], out.Overflows[i] = m.exact[i].all.Bucket(m.quantile), m.exact[i].all.Overflows(m.quantile)
		}
		out.Known = c.changeOfQuantile(m, &out)
		out.Before, out.After = m.exact[0].value(), m.exact[1].value()
		out.Count = min(observed(&m.exact[0].all), observed(&m.exact[1].all))
	} else if b.value.OK && a.value.OK && b.value.V > 0 && a.value.V > 0 {
		e := c.difference(m.at)
		half := math.Hypot(e.se*stat.StudentQuantile(1-movedError/2, e.dof), c.restart)
		out.Change, out.Known = interval(e.mid-half, e.mid, e.mid+half), true
	}
	out.Moved = out.Known && (out.Change.Low > 0 || out.Change.High < 0)
	return out
}

// difference returns the difference of two columns, as logarithms.
func (c *comparison) difference(columns [2]int) effect {
	e := difference(&c.side[0].estimates[columns[0]], &c.side[1].estimates[columns[1]])
	if !c.p.Paired {
		return e
	}
	sum := 0.0
	e.dof = 0
	for _, series := range append(c.contrasts(columns), c.apart(columns)) {
		v, dof := seriesVariance(series, 1)
		sum += v * dof
		e.dof += dof
	}
	e.se = math.Sqrt(sum / e.dof)
	return e
}

// difference returns the difference of two logarithms of sides that do not depend on each other.
func difference(b, a *estimate) effect {
	e := effect{mid: math.Log(a.value.V / b.value.V), se: math.Sqrt(b.variance + a.variance), dof: 1, known: true}
	if worth := b.variance*b.variance/b.dof + a.variance*a.variance/a.dof; worth > 0 {
		e.dof = (b.variance + a.variance) * (b.variance + a.variance) / worth
	}
	return e
}

// interval converts an interval of logarithms to relative changes.
func interval(low, mid, high float64) Interval {
	return Interval{math.Expm1(low), math.Expm1(mid), math.Expm1(high)}
}

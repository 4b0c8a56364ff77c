package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// movedError is the error rate of a measure that is said to have moved.
const movedError = 0.01

// meter is a measure that both sides are compared by.
type meter struct {
	metric   Metric
	quantile float64
	ratio    ratio                    // of means and rates
	hist     func(*Slice) *stat.Delta // of quantiles
	at       [2]int                   // column of before and after
	exact    [2]quantile              // of quantiles
	standin  bool                     // for another, and not listed
}

var meters = [...]meter{
	{metric: MetricTokens, ratio: over(tokens)},
	{metric: MetricRequests, ratio: over(finished)},
	{metric: MetricTTFT, ratio: each(ttft)},
	{metric: MetricITL, ratio: each(itl)},
	{metric: MetricTPOT, ratio: each(tpot)},
	{metric: MetricE2E, ratio: each(e2e)},
	{metric: MetricTTFT, quantile: 0.5, hist: ttft},
	{metric: MetricTTFT, quantile: 0.99, hist: ttft},
	{metric: MetricITL, quantile: 0.5, hist: itl},
	{metric: MetricITL, quantile: 0.99, hist: itl},
	{metric: MetricTPOT, quantile: 0.5, hist: tpot},
	{metric: MetricTPOT, quantile: 0.99, hist: tpot},
	{metric: MetricE2E, quantile: 0.5, hist: e2e},
	{metric: MetricE2E, quantile: 0.99, hist: e2e},
	{metric: MetricStep, ratio: mean(func(s *Slice) stat.Opt { return s.StepTime })},
	{metric: MetricPreempts, ratio: over(func(s *Slice) stat.Opt { return s.Preempts })},
	{metric: MetricPower, ratio: mean(func(s *Slice) stat.Opt { return s.Power })},
	{metric: MetricPerWatt, ratio: func(s *Slice) (float64, float64, bool) {
		return s.Tokens.V, s.Power.V * s.Length.Seconds(), s.Tokens.OK && s.Power.OK
	}},
}

func ttft(s *Slice) *stat.Delta { return &s.TTFT }
func itl(s *Slice) *stat.Delta  { return &s.ITL }
func tpot(s *Slice) *stat.Delta { return &s.TPOT }
func e2e(s *Slice) *stat.Delta  { return &s.E2E }

// hists are the histograms that an objective can name.
var hists = map[Metric]func(*Slice) *stat.Delta{MetricTTFT: ttft, MetricITL: itl, MetricTPOT: tpot, MetricE2E: e2e}

func newComparison(before, after *Side, p Plan, draws int) *comparison {
	c := &comparison{p: p}
	if c.p.Goal == "" {
		c.p.Goal = Throughput
	}
	if !(c.p.Precision > 0) || !sane(c.p.Precision) {
		c.p.Precision = 0.03
	}
	c.precision = math.Log1p(c.p.Precision)
	c.error = spend(&c.p)
	for i, s := range [...]*Side{before, after} {
		c.side[i] = prepare(s, draws, p.Seed)
	}
	sd := c.p.Spread.SD
	if !(sd > 0) || !sane(sd) {
		sd = 0
	}
	scatter := c.scatter()
	for _, s := range c.side {
		s.weigh(sd, scatter)
	}
	c.restart = c.p.Spread.half() * math.Sqrt(c.side[0].spread+c.side[1].spread)
	c.r = Result{
		Direction: Inconclusive, Cause: ByNoise, Goal: c.p.Goal, Spread: c.p.Spread, Restart: c.restart,
		Limited: [2]Limit{LimitUnknown, LimitUnknown},
	}
	for i, s := range c.side {
		for j := range s.lives {
			merge(&c.r.Steady[i], &s.lives[j].steady)
		}
	}
	return c
}

// merge adds the course of one more life.
func merge(to, s *Steadiness) {
	to.Cut += s.Cut
	to.Used += s.Used
	to.Period, to.Block = max(to.Period, s.Period), max(to.Block, s.Block)
	if math.Abs(s.Drift) > math.Abs(to.Drift) {
		to.Drift = s.Drift
	}
}

// scatter is a first estimate of what the scatter of slices leaves of a second's
// throughput, relative and squared: for the weights of lives only.
func (c *comparison) scatter() float64 {
	sum, n := 0.0, 0.0
	for _, s := range c.side {
		for i := range s.lives {
			l := &s.lives[i]
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

// measure lays out all columns, resamples them and compares the measures.
func (c *comparison) measure() {
	list := append([]meter(nil), meters[:]...)
	for _, o := range c.p.Objectives {
		if pick := hists[o.Metric]; pick != nil && o.Quantile > 0 && o.Quantile < 1 && !has(list, o.Metric, o.Quantile) {
			list = append(list, meter{metric: o.Metric, quantile: o.Quantile, hist: pick})
		}
	}
	for i := range list {
		c.columns(&list[i])
	}
	c.meters = list
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
		s.resample()
	}
	for i := range c.meters {
		if m := &c.meters[i]; !m.standin {
			c.compare(m)
		}
	}
}

// columns adds a measure on both sides.
func (c *comparison) columns(m *meter) {
	for side, s := range c.side {
		if m.hist != nil {
			m.at[side], m.exact[side] = s.quantile(m.hist, m.quantile)
		} else {
			m.at[side] = s.ratio(m.ratio)
		}
	}
}

// standins adds the quantiles that stand for a p99 of the time to first token that
// is not known; they are not listed.
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

// meter is that of a metric's quantile, or of its mean where that is 0; nil where
// there is none.
func (c *comparison) meter(metric Metric, q float64) *meter {
	for i := range c.meters {
		if m := &c.meters[i]; m.metric == metric && m.quantile == q {
			return m
		}
	}
	return nil
}

func has(list []meter, metric Metric, q float64) bool {
	for i := range list {
		if list[i].metric == metric && list[i].quantile == q {
			return true
		}
	}
	return false
}

// estimates returns those of a measure on both sides.
func (c *comparison) both(m *meter) (b, a *estimate) {
	return &c.side[0].estimates[m.at[0]], &c.side[1].estimates[m.at[1]]
}

// compare lists a measure that was read on one side at least.
func (c *comparison) compare(m *meter) {
	if b, a := c.both(m); b.value.OK || a.value.OK {
		c.r.Measures = append(c.r.Measures, c.compared(m))
	}
}

// compared is a measure on both sides.
func (c *comparison) compared(m *meter) Measure {
	b, a := c.both(m)
	out := Measure{Metric: m.metric, Quantile: m.quantile, Before: b.value, After: a.value, Count: min(b.count, a.count)}
	if m.hist != nil {
		out.Resolution = m.exact[1].resolution
		out.Known = c.changeOfQuantile(m, &out)
	} else if b.value.OK && a.value.OK && b.value.V > 0 && a.value.V > 0 {
		e := difference(b, a)
		half := math.Hypot(e.se*stat.StudentQuantile(1-movedError/2, e.dof), c.restart)
		out.Change, out.Known = interval(e.mid-half, e.mid, e.mid+half), true
	}
	out.Moved = out.Known && (out.Change.Low > 0 || out.Change.High < 0)
	return out
}

// difference is that of two logarithms.
func difference(b, a *estimate) effect {
	e := effect{mid: math.Log(a.value.V / b.value.V), se: math.Sqrt(b.variance + a.variance), dof: 1, known: true}
	if worth := b.variance*b.variance/b.dof + a.variance*a.variance/a.dof; worth > 0 {
		e.dof = (b.variance + a.variance) * (b.variance + a.variance) / worth
	}
	return e
}

// interval is one of logarithms as relative changes.
func interval(low, mid, high float64) Interval {
	return Interval{math.Expm1(low), math.Expm1(mid), math.Expm1(high)}
}

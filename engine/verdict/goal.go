package verdict

import (
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// effect sets the difference in the goal, with its interval.
func (c *comparison) effect() {
	columns, sign, ok := c.goal()
	if !ok {
		return
	}
	c.sign = sign
	c.errors(columns)
	b, a := c.side[0].estimates[columns[0]].value.V, c.side[1].estimates[columns[1]].value.V
	e := &c.effects
	e.mid = sign * math.Log(a/b)
	if c.p.Goal == Cost && c.side[0].cost.OK {
		e.mid -= math.Log(c.side[1].cost.V / c.side[0].cost.V)
	}
	e.known = true
	limit := c.limit(c.scattered, c.restarts())
	e.measured, e.restart = limit*math.Sqrt(c.scattered[0]+c.scattered[1]), limit*math.Sqrt(c.restarts())
	c.r.Known = true
	c.r.Measured, c.r.Restart = e.measured, e.restart
}

// limit returns the number of standard errors of half the interval of this look, for the variances that
// the sides and restarts add. The degrees of freedom are those of their sum by Satterthwaite's formula.
func (c *comparison) limit(sides [2]float64, restart float64) float64 {
	whole, dof := sides[0]+sides[1]+restart, math.Inf(1)
	if uncertain := c.uncertain + restart*restart/c.p.Spread.dof(); uncertain > 0 {
		dof = whole * whole / uncertain
	}
	return stat.StudentQuantile(1-c.p.level(sides[0]+restart, sides[1])/2, dof)
}

// restarts returns the variance of a difference of logarithms because of restarts.
func (c *comparison) restarts() float64 {
	sd := c.p.Spread.sd()
	return sd * sd * (c.side[0].spread + c.side[1].spread)
}

// halfWidth returns half the interval's width. Scatter and restarts are independent.
func (e *effect) halfWidth() float64 { return math.Hypot(e.measured, e.restart) }

// goal returns the column of the goal on each side, and its sign: 1 if larger is better. If
// there is no histogram of the time of a request, the inter-token time replaces it.
func (c *comparison) goal() (columns [2]int, sign float64, ok bool) {
	usable := func(m *meter) bool {
		b, a := c.estimatesOf(m)
		return b.value.OK && a.value.OK && b.value.V > 0 && a.value.V > 0
	}
	switch c.p.Goal {
	case Latency:
		for _, metric := range [...]Metric{MetricE2E, MetricITL} {
			if m := c.meter(metric, 0); usable(m) {
				return m.at, -1, true
			}
		}
	case Cost:
		before, after := c.side[0].cost, c.side[1].cost
		if before.OK != after.OK || before.OK && (before.V <= 0 || after.V <= 0) {
			return columns, 1, false
		}
		fallthrough
	default:
		if m := c.meter(MetricTokens, 0); usable(m) {
			return m.at, 1, true
		}
	}
	return columns, 1, false
}

// errors sets the variance that each side adds to the difference in the goal, and how uncertain their
// sum is: its square over its degrees of freedom. A start's variance is at least that of all
// starts together, scaled to its time, and that of pieces of its length in longer starts
// ([subsampledVariance]): a short one shows too little of its dependence, and may fall between two
// bursts that a longer one shows. The variance that no start of its length can show
// ([unseenVariance]) is added; it is assumed, not estimated. Sides measured at the same time have one
// series of differences, which counts to the side after the change: all of its variance falls with time.
// It is at least that of differences between starts of one side.
func (c *comparison) errors(columns [2]int) {
	if c.p.Paired {
		o := newCourse(1, c.apart(columns), 1, c.side[1].lasted)
		o.starts = c.side[0].spread + c.side[1].spread
		c.courses = append(c.courses, o)
		for _, v := range c.contrasts(columns) {
			c.others = append(c.others, newCourse(1, v, 1, o.time))
		}
	} else {
		for i, s := range c.side {
			for j := range s.starts {
				c.courses = append(c.courses, newCourse(i, s.columns[columns[i]].influence[j], s.starts[j].weight, s.starts[j].time))
			}
		}
	}
	total, pooled, dof, shown := 0.0, 0.0, 0.0, 0.0
	for _, o := range slices.Concat(c.courses, c.others) {
		pooled += o.dof * o.own * o.time
		dof += o.dof
	}
	for _, o := range c.courses {
		total += o.time
	}
	for _, o := range c.courses {
		v := max(o.own, pooled/dof/o.time)
		for _, other := range c.courses {
			v = max(v, subsampledVariance(other.pace, len(o.pace)))
		}
		v *= o.weight * o.weight
		shown += v
		c.scattered[o.side] += v + o.starts*unseenVariance(o.time, total, o.scatter())
	}
	c.rate, c.uncertain = pooled/dof, shown*shown/dof
}

// course is the goal over the slices of a start, or the difference in it over the moments at which both
// sides were measured.
type course struct {
	side         int       // 0 before, 1 after
	pace         []float64 // of each slice, relative to the mean
	own, dof     float64   // variance of its mean
	weight, time float64
	starts       float64 // sum of the squared weights of its starts
}

func newCourse(side int, influence []float64, weight, time float64) *course {
	o := &course{side: side, weight: weight, time: time, starts: weight * weight}
	for _, v := range influence {
		o.pace = append(o.pace, v/weight*float64(len(influence)))
	}
	o.own, o.dof = seriesVariance(influence, weight)
	o.own /= weight * weight
	return o
}

const (
	// unseenSD and unseenMemory describe a slow disturbance that is assumed unless disproved:
	// a few per cent for half a minute, as caused by the clock of a hot GPU or a neighbour.
	unseenSD     = 0.03
	unseenMemory = 45.0 // seconds
	// A server whose throughput hardly scatters is not assumed to drift by 3 %, but by
	// unseenLeast plus unseenTimes the scatter of ten seconds.
	unseenLeast, unseenTimes = 0.005, 2.0
	// unseenWorth is the measured time, as a multiple of unseenMemory, that disproves half of
	// the disturbance.
	unseenWorth = 4.0
)

// unseenVariance returns the variance that a slow disturbance adds to the mean of a trial but that its
// slices cannot show: that of a mean over an autoregression in continuous time (Priestley,
// Spectral Analysis and Time Series, section 5.3), reduced by what all measurements would have
// shown of it. time and total are in seconds; scatter is that of ten seconds.
func unseenVariance(time, total, scatter float64) float64 {
	sd := min(unseenSD, unseenLeast+unseenTimes*scatter)
	x := time / unseenMemory
	if x <= 0 {
		return sd * sd
	}
	share := 2 * (x - 1 + math.Exp(-x)) / (x * x)
	return sd * sd * share * unseenWorth / (unseenWorth + total/unseenMemory)
}

// scatter returns the standard deviation of ten seconds of a start, assuming independent
// slices.
func (o *course) scatter() float64 {
	return math.Sqrt(variance(o.pace) * o.time / float64(len(o.pace)) / 10)
}

// subsampledVariance returns the variance of means over length of many values.
// Subsampling (Politis, Romano & Wolf, Subsampling, 1999) shows what a start shorter than an
// oscillation, or than the time between two bursts, cannot show of itself. It is 0 unless there are at
// least half as many values again.
func subsampledVariance(values []float64, length int) float64 {
	n := len(values)
	if length < 1 || 2*n < 3*length {
		return 0
	}
	m, sum := average(values), 0.0
	for i := 0; i < length; i++ {
		sum += values[i] - m
	}
	squares := sum * sum
	for i := length; i < n; i++ {
		sum += values[i] - values[i-length]
		squares += sum * sum
	}
	k := float64(length)
	return squares / float64(n-length+1) / (k * k) / (1 - k/float64(n))
}

// parts is the number of pieces of a start that must each show the share shown of an effect:
// a neighbour's burst at the beginning of a short trial is not an effect, however large it is.
const (
	parts = 3
	shown = 0.25
)

const (
	// LongestBurst is the time within which a side may lie completely in a neighbour's burst, so that
	// a shorter one may leave the largest gain unresolved.
	LongestBurst = 40 * time.Second
	// burstLoss is the largest loss by such a burst, as a logarithm: half.
	burstLoss = math.Ln2
)

// slower returns the side with the lower throughput.
func (c *comparison) slower(e *effect) (side int) {
	if e.mid > 0 {
		return 0
	}
	return 1
}

// burst returns how much of an effect a burst over the whole slower side may explain, as a
// logarithm: the longer the measurement, the less.
func (c *comparison) burst(e *effect) float64 {
	if c.hosts.quiet {
		return 0
	}
	most := burstLoss
	if e != &c.effects || c.p.Goal == Latency {
		most *= busyPower // waiting times lengthen as well
	}
	return most * max(0, 1-c.side[c.slower(e)].lasted/LongestBurst.Seconds())
}

// shorterThanBurst reports whether the slower side was measured so briefly that a burst would explain the
// effect.
func (c *comparison) shorterThanBurst(e *effect) bool {
	return c.burst(e) > 0 && e.halfWidth() > math.Abs(e.mid)-c.burst(e)
}

// isLasting reports whether every piece of every start shows a part of an effect. It is true for
// effects other than the goal's, whose course is not tracked.
func (c *comparison) isLasting(e *effect) bool {
	if e != &c.effects {
		return true
	}
	for _, o := range c.courses {
		n := len(o.pace)
		if n < 2*parts {
			continue
		}
		for i := range parts {
			off := c.sign * average(o.pace[i*n/parts:(i+1)*n/parts])
			if o.side == 0 {
				off = -off
			}
			if (e.mid+o.weight*off)/e.mid < shown {
				return false
			}
		}
	}
	return true
}

package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// effect fills in the difference on the goal, with its interval.
func (c *comparison) effect() {
	columns, sign, ok := c.goal()
	if !ok {
		return
	}
	c.sign = sign
	variance, dof := c.errors(columns)
	b, a := c.side[0].estimates[columns[0]].value.V, c.side[1].estimates[columns[1]].value.V
	e := &c.effects
	e.mid = sign * math.Log(a/b)
	if c.p.Goal == Cost && c.side[0].cost.OK {
		e.mid -= math.Log(c.side[1].cost.V / c.side[0].cost.V)
	}
	e.se, e.dof, e.known = math.Sqrt(variance), dof, true
	e.measured = e.se * stat.StudentQuantile(1-c.error/2, dof)
	e.restart = c.restart
	c.r.Known = true
	c.r.Measured = e.measured
}

// half is half the interval's width: scatter and restarts are independent.
func (e *effect) half() float64 { return math.Hypot(e.measured, e.restart) }

// goal returns the column of each side that the goal is read from, and whether
// more of it is better. Of the time of a request there may be no histogram: then
// the time between two tokens stands for it.
func (c *comparison) goal() (columns [2]int, sign float64, ok bool) {
	usable := func(m *meter) bool {
		b, a := c.both(m)
		return b.value.OK && a.value.OK && b.value.V > 0 && a.value.V > 0
	}
	find := func(metric Metric) *meter {
		for i := range c.meters {
			if m := &c.meters[i]; m.metric == metric && m.hist == nil {
				return m
			}
		}
		return nil
	}
	switch c.p.Goal {
	case Latency:
		for _, metric := range [...]Metric{MetricE2E, MetricITL} {
			if m := find(metric); usable(m) {
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
		if m := find(MetricTokens); usable(m) {
			return m.at, 1, true
		}
	}
	return columns, 1, false
}

// errors returns the variance of the difference on the goal and its degrees of
// freedom. Few slices show too little of how they depend on each other, and a
// short trial may fall between two bursts that a longer one shows. A life's
// variance is therefore the largest of the bootstrap's, of that of
// autoregressions ([slow]), and of what longer lives show in pieces of its length
// ([window]). To it is added what a life of its length cannot show ([unseen]), and,
// where it still drifts, the variance of a mean that lies anywhere on its course.
func (c *comparison) errors(columns [2]int) (variance, dof float64) {
	var lives []*course
	total := 0.0
	for i, s := range c.side {
		for j := range s.lives {
			l := &s.lives[j]
			o := &course{side: i, weight: l.weight, time: l.time, dof: s.dofs[j], drift: l.steady.Drift}
			scale := 1 / l.weight
			for _, v := range s.columns[columns[i]].influence[j] {
				o.pace = append(o.pace, v*scale*float64(len(l.slices))) // relative to the mean
			}
			o.own = s.parts[j][columns[i]] * scale * scale
			if v, d := slow(o.pace, l.steady.Period); v > o.own {
				o.own, o.dof = v, d
			}
			total += l.time
			lives = append(lives, o)
		}
	}
	c.courses = lives
	squares := 0.0
	for _, o := range lives {
		v, d := o.own, o.dof
		for _, other := range lives {
			if w, worth := window(other.pace, len(o.pace)); w > v {
				v, d = w, worth
			}
		}
		v = o.weight * o.weight * (v + o.drift*o.drift/12 + unseen(o.time, total, o.scatter()))
		variance += v
		squares += v * v / d
	}
	if squares <= 0 {
		return variance, 1
	}
	return variance, max(leastDoF, variance*variance/squares)
}

// leastDoF are the degrees of freedom that the largest of several estimates of a
// variance is worth at least, however few each of them has: the largest is seldom
// too small. With two or three, as a short trial on an unsteady host has, an early
// look's interval would be ten times as wide as the scatter, and a server that does
// four times as much would not be called better. As few equal servers are told apart
// with it as without: 83 and 79 of 9,600 pairs (ARCHITECTURE.md, "Proof").
const leastDoF = 6

// course is a life on the goal.
type course struct {
	side                int       // 0 before, 1 after
	pace                []float64 // of each slice, relative to the mean, 0 the mean
	own, dof            float64   // variance of its mean
	weight, time, drift float64
}

const (
	// unseenSD and unseenMemory are a slow disturbance that is reckoned with as long
	// as nothing speaks against it: a few per cent that last for half a minute, as
	// the clock of a hot GPU or a neighbour leaves.
	unseenSD     = 0.03
	unseenMemory = 45.0 // seconds
	// A server whose pace hardly scatters is not reckoned to wander by three per
	// cent: at most this and so many times the scatter of ten seconds.
	unseenLeast, unseenTimes = 0.005, 2.0
	// unseenWorth is how many times its memory have to be measured for half of it to
	// be disproved.
	unseenWorth = 4.0
	// leastBatches is how few batches an autoregression is read from.
	leastBatches = 8
)

// unseen is the variance that a slow disturbance adds to the mean of a trial and
// that its slices cannot show: of a mean over an autoregression in continuous time
// (Priestley, Spectral Analysis and Time Series, section 5.3), less what all that
// was measured, in seconds, would have shown of it. Scatter is that of ten seconds.
func unseen(time, total, scatter float64) float64 {
	sd := min(unseenSD, unseenLeast+unseenTimes*scatter)
	x := time / unseenMemory
	if x <= 0 {
		return sd * sd
	}
	share := 2 * (x - 1 + math.Exp(-x)) / (x * x)
	return sd * sd * share * unseenWorth / (unseenWorth + total/unseenMemory)
}

// scatter is the standard deviation of ten seconds of a life, were its slices
// independent.
func (o *course) scatter() float64 {
	return math.Sqrt(variance(o.pace) * o.time / float64(len(o.pace)) / 10)
}

// slow is the variance of the mean of values that depend on each other as an
// autoregression of the first order does, at the scale at which that is largest:
// of the values, and of batches of two, four, … of them, since a slow course below
// fast scatter shows only where the scatter is averaged out. Of an oscillation
// whole periods are batched. The factor of an autoregression is corrected for few
// values ([inflation]).
func slow(values []float64, period int) (v, dof float64) {
	for size := max(1, period); len(values)/size >= leastBatches || size == 1; size *= 2 {
		batches := make([]float64, len(values)/size)
		for i := range batches {
			batches[i] = average(values[i*size : (i+1)*size])
		}
		f := inflation(batches)
		n := float64(len(batches))
		if w := variance(batches) * f / n; w > v {
			v, dof = w, max(3, n/f-1)
		}
	}
	return v, dof
}

// window is the variance of means over as many values as a shorter life has, and
// what it is worth: subsampling (Politis, Romano & Wolf, Subsampling, 1999) says
// what a life that is shorter than an oscillation, or than the time between two
// bursts, cannot say of itself. 0 where there are not half as many again.
func window(values []float64, length int) (v, dof float64) {
	n := len(values)
	if length < 1 || 2*n < 3*length {
		return 0, 1
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
	v = squares / float64(n-length+1) / (k * k) / (1 - k/float64(n))
	return v, max(2, float64(n)/k)
}

// parts is how many pieces of a life must each show an effect, and shown which
// share of it: a burst of a neighbour at the beginning of a short trial is no
// effect, however deep it is.
const (
	parts = 3
	shown = 0.25
)

const (
	// brief is the time below which a side may lie in a burst of a neighbour, and
	// burstLoss what such a burst takes at most, as a logarithm: half.
	brief     = 40.0 // seconds
	burstLoss = math.Ln2
)

// slower is the side that did less.
func (c *comparison) slower(e *effect) (side int) {
	if e.mid > 0 {
		return 0
	}
	return 1
}

// burst is how much of an effect a burst of a neighbour may be that lasted all
// through the slower side, as a logarithm: the longer that was measured, the less
// of it.
func (c *comparison) burst(e *effect) float64 {
	if c.hosts.quiet {
		return 0
	}
	most := burstLoss
	if e != &c.effects || c.p.Goal == Latency {
		most *= busyPower // what waits waits longer too
	}
	return most * max(0, 1-c.side[c.slower(e)].time/brief)
}

// short says whether the slower side was measured for so short that a burst would
// explain the effect.
func (c *comparison) short(e *effect) bool {
	return c.burst(e) > 0 && e.half() > math.Abs(e.mid)-c.burst(e)
}

// lasting says whether every piece of every life shows a part of an effect. Of others
// than the goal's there is no course to tell.
func (c *comparison) lasting(e *effect) bool {
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

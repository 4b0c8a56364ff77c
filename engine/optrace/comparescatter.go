package optrace

import (
	"fmt"
	"math"
)

const (
	// restless is the share of the time of graphs without a CPU from which on operators and
	// layers of a trace have no verdict: which of them was hit is chance then, and caches
	// are cold after each time.
	restless = 0.25
	// wideP95 and wideMean are what p95 and mean of graphs may be of their median where it
	// was not traced who had the CPUs.
	wideP95, wideMean = 1.5, 1.25
	// ofBucket is the standard deviation of a quantile in the widest bucket of durations.
	ofBucket = 1.0 / fineness / 3.46
	// ofMedian is the standard error of a median over that of a mean, of normal noise.
	ofMedian = 1.2533
)

// body is the standard error of a distribution's mean by the times up to its 95th
// percentile, in seconds.
func (d *Distribution) body() float64 {
	return max(0, (d.P95-d.P50).Seconds()) / normalP95 / math.Sqrt(float64(d.Count))
}

// tail is the standard error of a distribution's mean by the times above its 95th
// percentile, in seconds: what a few bursts add is as uncertain as their number. It is an
// upper bound, of what the quantiles allow.
func (d *Distribution) tail() float64 {
	if d.Count <= 0 {
		return 0
	}
	n := float64(d.Count)
	high, last := max(0, (d.P99-d.P50).Seconds()), max(0, (d.Max-d.P50).Seconds())
	sum := 0.04 * n * high * high
	if last > 0 {
		// No more times are as long as the longest than the mean has room for.
		room := n * (max(0, (d.Mean-d.P50).Seconds()) + max(0, (d.P95-d.P50).Seconds()))
		sum += max(1, min(room/last, 0.01*n)) * last * last
	}
	return math.Sqrt(sum) / n
}

// scatter is the relative standard error of a distribution's mean; NaN of too few. floor
// is an absolute error of each value that does not average out, in seconds.
func (d *Distribution) scatter(floor float64) float64 {
	mean := d.Mean.Seconds()
	if d.Count < fewestGraphs || mean <= 0 {
		return math.NaN()
	}
	return math.Hypot(math.Hypot(d.body(), d.tail()), floor) / mean
}

// scatterOfMedian is the relative standard error of a distribution's median, which the
// slowest do not move; NaN of too few.
func (d *Distribution) scatterOfMedian(floor float64) float64 {
	middle := d.P50.Seconds()
	if d.Count < fewestGraphs || middle <= 0 {
		return math.NaN()
	}
	return math.Hypot(ofBucket, math.Hypot(ofMedian*d.body(), floor)/middle)
}

// untold says why a phase has no verdict, "" where it may have one: it was not traced who
// had the CPUs, and the graphs look as if others did.
func (c *comparing) untold(a, b *PhaseRow) string {
	for i, side := range []struct {
		v *view
		p *PhaseRow
	}{{c.a, a}, {c.b, b}} {
		g := &side.p.Graph
		if side.v.preempted().ok || g.P50 <= 0 {
			continue
		}
		p95, mean := g.P95.Seconds()/g.P50.Seconds(), g.Mean.Seconds()/g.P50.Seconds()
		if p95 >= wideP95 || mean >= wideMean {
			return fmt.Sprintf("in the %s trace graphs scatter (p95 ×%s of the median, mean ×%s), and whether others had the CPUs then was not traced (--level sched)", sideNames[i], spellThree(p95), spellThree(mean))
		}
	}
	return ""
}

var sideNames = [...]string{"first", "second"}

// withheld says why operators and layers of a phase have no verdict, "" where they may
// have one.
func (c *comparing) withheld(a, b *PhaseRow) string {
	for i, v := range []*view{c.a, c.b} {
		if p := v.preempted(); p.ok && p.max >= restless {
			return fmt.Sprintf("in the %s trace a thread was without its CPU for %s of the time, and which operators that hit is chance", sideNames[i], spellPercent(p.max))
		}
	}
	return c.untold(a, b)
}

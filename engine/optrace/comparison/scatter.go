package comparison

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// manyPreemptions is the share of the time of graphs without a CPU from which operators and layers
	// get no verdict: chance decides then which of them was hit, and caches are cold after each
	// interruption.
	manyPreemptions = 0.25
	// wideP95 and wideMean are the ratios of the p95 and mean of graphs to their median from
	// which a trace without scheduling gets no verdict.
	wideP95, wideMean = 1.5, 1.25
	// bucketError is the relative standard deviation of a quantile in the widest bucket of
	// durations.
	bucketError = 1.0 / stat.BucketsPerOctave / 3.46
	// medianError is the standard error of a median over that of a mean, for normal noise.
	medianError = 1.2533
)

// bodyError returns the standard error of a distribution's mean from the times up to its 95th
// percentile, in seconds.
func bodyError(d *stat.Distribution) float64 {
	return max(0, (d.P95-d.P50).Seconds()) / normalP95 / math.Sqrt(float64(d.Count))
}

// tailError returns an upper bound of the standard error of a distribution's mean from the
// times above its 95th percentile, in seconds, by its quantiles: what a few bursts add is as
// uncertain as their number.
func tailError(d *stat.Distribution) float64 {
	if d.Count <= 0 {
		return 0
	}
	n := float64(d.Count)
	high, last := max(0, (d.P99-d.P50).Seconds()), max(0, (d.Max-d.P50).Seconds())
	sum := 0.04 * n * high * high
	if last > 0 {
		// The mean limits how many times can be as long as the longest.
		room := n * (max(0, (d.Mean-d.P50).Seconds()) + max(0, (d.P95-d.P50).Seconds()))
		sum += max(1, min(room/last, 0.01*n)) * last * last
	}
	return math.Sqrt(sum) / n
}

// relativeError returns the relative standard error of a distribution's mean, NaN with too few
// values. floor is an absolute error of each value that does not average out, in seconds.
func relativeError(d *stat.Distribution, floor float64) float64 {
	mean := d.Mean.Seconds()
	if d.Count < optrace.FewestGraphs || mean <= 0 {
		return math.NaN()
	}
	return math.Hypot(math.Hypot(bodyError(d), tailError(d)), floor) / mean
}

// relativeErrorOfMedian returns the relative standard error of a distribution's median, which
// the slowest values do not move; NaN with too few values.
func relativeErrorOfMedian(d *stat.Distribution, floor float64) float64 {
	middle := d.P50.Seconds()
	if d.Count < optrace.FewestGraphs || middle <= 0 {
		return math.NaN()
	}
	return math.Hypot(bucketError, math.Hypot(medianError*bodyError(d), floor)/middle)
}

// whyNoVerdict returns why a phase has no verdict, "" if it may have one: scheduling was not
// traced, and the graphs scatter as if other programs had the CPUs.
func (c *comparing) whyNoVerdict(a, b *optrace.PhaseRow) string {
	for i, side := range []struct {
		v *evidence.View
		p *optrace.PhaseRow
	}{{c.a, a}, {c.b, b}} {
		g := &side.p.Graph
		if side.v.PreemptedSpread().OK || g.P50 <= 0 {
			continue
		}
		p95, mean := g.P95.Seconds()/g.P50.Seconds(), g.Mean.Seconds()/g.P50.Seconds()
		if p95 >= wideP95 || mean >= wideMean {
			return fmt.Sprintf("graphs of the %s trace scatter (p95 ×%s and mean ×%s of the median), and it was not traced whether other programs had the CPUs (--level sched)", sideNames[i], figure.Significant(p95), figure.Significant(mean))
		}
	}
	return ""
}

var sideNames = [...]string{"first", "second"}

// whyNoOperatorVerdict returns why operators and layers of a phase have no verdict, "" if they may have
// one.
func (c *comparing) whyNoOperatorVerdict(a, b *optrace.PhaseRow) string {
	for i, v := range []*evidence.View{c.a, c.b} {
		if p := v.PreemptedSpread(); p.OK && p.Max >= manyPreemptions {
			return fmt.Sprintf("in the %s trace a thread was preempted for %s of the time, and chance decides which operators that affects", sideNames[i], figure.PercentSign(p.Max))
		}
	}
	return c.whyNoVerdict(a, b)
}

package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// minBeyond is the least number of observations beyond a quantile for a meaningful value: their
// number scatters by its root, a third of ten. A p99 needs a thousand requests; whether it
// meets a limit may need fewer (see share.go).
const minBeyond = 10

// quantile is a quantile of all observations of a side.
type quantile struct {
	all    stat.Delta
	q      float64
	column int
	bucket stat.Bucket // of a value with enough observations
}

// quantile adds a quantile and returns its column and the histogram behind it. Its error is that
// of the share of observations below it, which is a mean; the interval of
// the quantile ends where that of the share ends (Woodruff, J. Am. Stat. Assoc. 47, 1952).
func (s *sample) quantile(pick func(*Slice) *stat.Delta, q float64) (int, quantile) {
	out := quantile{all: s.pooled(pick), q: q, column: len(s.columns)}
	c := column{}
	total := observed(&out.all)
	if v := out.all.Quantile(q); v.OK && total*min(q, 1-q) >= minBeyond {
		c.value, c.count = v, total
		out.bucket = out.all.Bucket(q)
		c.influence = s.influence(func(_ *start, v *Slice) float64 {
			d := pick(v)
			if !d.OK {
				return 0
			}
			return (countUpTo(d, c.value.V) - q*observed(d)) / total
		})
	}
	s.columns = append(s.columns, c)
	return out.column, out
}

// value returns the quantile of however many observations there are.
func (q *quantile) value() stat.Opt { return clean(q.all.Quantile(q.q)) }

// pooled returns the sum of the histograms of all slices.
func (s *sample) pooled(pick func(*Slice) *stat.Delta) (all stat.Delta) {
	for i := range s.starts {
		for j := range s.starts[i].slices {
			all.Merge(pick(&s.starts[i].slices[j]))
		}
	}
	return all
}

// countUpTo returns the number of observations up to x, counting those of its bucket in proportion.
func countUpTo(d *stat.Delta, x float64) float64 {
	seen, lower := 0.0, 0.0
	for i, n := range d.Counts {
		upper := d.Bounds[i]
		if x < upper {
			if !math.IsInf(upper, 1) && upper > lower {
				seen += n * max(0, x-lower) / (upper - lower)
			}
			return seen
		}
		seen += n
		lower = upper
	}
	return seen
}

// bounds returns the range of the quantile if the share below it is off by up to off, widened to
// whole buckets, because a value within a bucket is unknown. high is +Inf if it may lie beyond
// the last bound.
func (q *quantile) bounds(off float64) (low, high float64) {
	edge := func(p float64) (lower, upper float64) {
		p = min(max(p, 0), 1)
		total, seen := observed(&q.all), 0.0
		for i, n := range q.all.Counts {
			upper = q.all.Bounds[i]
			if n > 0 && seen+n >= p*total {
				return lower, upper
			}
			seen += n
			lower = upper
		}
		return lower, math.Inf(1)
	}
	low, _ = edge(q.q - off)
	_, high = edge(q.q + off)
	return low, high
}

// changeOfQuantile sets the change of a quantile with a resolution of whole buckets. It returns
// false if the quantile is unknown on either side.
func (c *comparison) changeOfQuantile(m *meter, out *Measure) bool {
	b, a := c.estimatesOf(m)
	if !b.value.OK || !a.value.OK || b.value.V <= 0 || a.value.V <= 0 {
		return false
	}
	dof := difference(b, a).dof
	t := stat.StudentQuantile(1-movedError/2, dof)
	// The error of both shares together, divided in proportion. A load common to both sides does not cancel
	// here, which only widens the change: shares of different densities have no one series of differences.
	bl, bh := m.exact[0].bounds(t * math.Sqrt(b.variance))
	al, ah := m.exact[1].bounds(t * math.Sqrt(a.variance))
	if math.IsInf(bh, 1) && math.IsInf(ah, 1) || bh <= 0 || ah <= 0 {
		return false
	}
	mid := math.Log(a.value.V / b.value.V)
	low, high := math.Inf(-1), math.Inf(1)
	if al > 0 && !math.IsInf(bh, 1) {
		low = math.Log(al / bh)
	}
	if bl > 0 && !math.IsInf(ah, 1) {
		high = math.Log(ah / bl)
	}
	low, high = mid-math.Hypot(mid-low, c.restart), mid+math.Hypot(high-mid, c.restart)
	out.Change = interval(low, mid, high)
	return true
}

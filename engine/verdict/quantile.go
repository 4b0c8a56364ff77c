package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// beyond is how many observations must lie beyond a quantile for its value to say
// anything: the count of what lies beyond scatters by its root, a third of ten. A
// p99 needs a thousand requests; whether it keeps a limit may take fewer (share).
const beyond = 10

// quantile is one of a side's observations, all its histograms added.
type quantile struct {
	all        stat.Delta
	q          float64
	column     int
	resolution stat.Opt
}

// quantile adds a quantile and returns its column and the histogram behind it. Its
// error is that of the share of observations below it, which is a mean and can be
// resampled; an interval of the quantile is where that share's interval ends
// (Woodruff, J. Am. Stat. Assoc. 47, 1952).
func (s *sample) quantile(pick func(*Slice) *stat.Delta, q float64) (int, quantile) {
	out := quantile{q: q, column: len(s.columns)}
	for i := range s.lives {
		l := &s.lives[i]
		for j := range l.slices {
			out.all.Merge(pick(&l.slices[j]))
		}
	}
	c := column{}
	total := observed(&out.all)
	if v := out.all.Quantile(q); v.OK && total*min(q, 1-q) >= beyond {
		c.value, c.count = v, total
		out.resolution = out.all.Resolution(q)
		c.influence = s.influence(func(_ *life, v *Slice) float64 {
			d := pick(v)
			if !d.OK {
				return 0
			}
			return (below(d, c.value.V) - q*observed(d)) / total
		})
	}
	s.columns = append(s.columns, c)
	return out.column, out
}

// below counts the observations up to x, those of its bucket in proportion.
func below(d *stat.Delta, x float64) float64 {
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

// reach returns where the quantile lies when the share below it is off by as much
// either way, rounded outwards to whole buckets: what no reading inside one can
// tell. High is +Inf where it may lie beyond the last bound.
func (q *quantile) reach(off float64) (low, high float64) {
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

// changeOfQuantile fills in the change of a quantile, whole buckets being its
// resolution; false where it is not known on both sides.
func (c *comparison) changeOfQuantile(m *meter, out *Measure) bool {
	b, a := c.both(m)
	if !b.value.OK || !a.value.OK || b.value.V <= 0 || a.value.V <= 0 {
		return false
	}
	dof := difference(b, a).dof
	t := stat.StudentQuantile(1-movedError/2, dof)
	// Errors of both shares together, divided among them as they are.
	bl, bh := m.exact[0].reach(t * math.Sqrt(b.variance))
	al, ah := m.exact[1].reach(t * math.Sqrt(a.variance))
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

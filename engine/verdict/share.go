package verdict

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// With too few requests for a quantile, the share of requests beyond a limit decides whether it is
// met: none of a few hundred means less than one in a hundred (the rule of three), and a few dozen
// that mostly lie beyond it mean far more. The interval is that of Clopper & Pearson (Biometrika
// 26, 1934), with the effective number of dependent requests as trials: their number divided by the
// design effect of the slices, reduced for the few degrees of freedom behind it (Korn & Graubard, Surv.
// Methodol. 24, 1998). Each end has the whole error rate: of an objective that is met, or missed,
// only one of the claims can be false.
//
// The few requests beyond a limit that is met hardly show their dependence, and none show nothing.
// So an objective must be met twice: by the requests beyond the limit, with their design effect,
// and by those beyond a time below it, with the design effect of the nearest informative bound.
// More requests would lie there, because a tail with a finite variance decreases at least with the
// square of time.

const (
	tailPower = 2.0
	// tailShare is the largest share of observations that counts as the tail.
	tailShare = 0.2
)

// tail has the columns of the shares beyond a limit.
type tail struct {
	near []int // beyond the adjacent bounds
	all  []int // also beyond the nearest informative bound
}

// shares adds the columns of shares that show the dependence of the observations beyond a limit.
func (s *sample) shares(q *quantile, pick func(*Slice) *stat.Delta, limit float64) (t tail) {
	total := observed(&q.all)
	near, nearest := q.boundsAround(limit)
	for i, at := range append(near, nearest...) {
		bound := q.all.Bounds[at]
		share := countBeyond(&q.all, bound) / total
		c := column{value: stat.Some(share), count: total}
		c.influence = s.influence(func(_ *start, v *Slice) float64 {
			d := pick(v)
			return (countBeyond(d, bound) - share*observed(d)) / total
		})
		t.all = append(t.all, len(s.columns))
		s.columns = append(s.columns, c)
		if i < len(near) {
			t.near = t.all
		}
	}
	return t
}

// boundsAround returns the bounds adjacent to a limit, and the nearest to them with enough observations on
// both sides to show their dependence, or with the most. Bounds with all or no observations beyond
// are uninformative and left out.
func (q *quantile) boundsAround(limit float64) (near, nearest []int) {
	last := len(q.all.Bounds) - 1
	if last < 0 {
		return nil, nil
	}
	above, exact := slices.BinarySearch(q.all.Bounds, limit)
	above = min(above, last)
	below := above
	if !exact {
		below = max(0, above-1)
	}
	total, best, most, apart := observed(&q.all), -1, 0.0, 0
	for i, bound := range q.all.Bounds {
		n := countBeyond(&q.all, bound)
		n = min(n, total-n)
		if n > 0 && (i == below || i == above) {
			near = append(near, i)
		}
		off := max(below-i, i-above, 0)
		if n = min(n, minBeyond); n > most || n == most && off < apart {
			best, most, apart = i, n, off
		}
	}
	if best >= 0 && !slices.Contains(near, best) {
		nearest = append(nearest, best)
	}
	return near, nearest
}

// effectiveShare returns the weight of an observation of a side relative to an independent one, estimated from
// columns of shares; 1 without an informative column.
func (s *sample) effectiveShare(columns []int, rate float64) float64 {
	effect, dof := 1.0, 0.0
	for _, at := range columns {
		e := &s.estimates[at]
		effect = max(effect, e.variance*e.count/(e.value.V*(1-e.value.V)))
	}
	if effect == 1 {
		return 1
	}
	for i := range s.starts {
		dof += float64(max(1, frequencies(len(s.starts[i].slices))))
	}
	if s.moments > 0 {
		dof = float64(max(1, frequencies(s.moments)))
	}
	t := stat.StudentQuantile(1-rate, math.Inf(1)) / stat.StudentQuantile(1-rate, dof)
	return min(1, t*t/effect)
}

// boundsFromFew returns the range of the quantile, widened to whole buckets like bounds. near is the weight of
// each observation beyond the limit, worth that of any.
func (q *quantile) boundsFromFew(near, worth, rate float64) (low, high float64) {
	total, p := observed(&q.all), 1-q.q
	for _, bound := range q.all.Bounds {
		n := countBeyond(&q.all, bound)
		if stat.AtLeast(worth*n, worth*total, p) <= rate {
			low = bound
		}
		if stat.AtMost(near*n, near*total, p) <= rate && q.tailBelow(bound, worth, rate) {
			return low, bound
		}
	}
	return low, math.Inf(1)
}

// tailBelow reports whether so few observations lie beyond a bound, or beyond one below it, that the
// quantile is not larger.
func (q *quantile) tailBelow(bound, worth, rate float64) bool {
	for _, u := range q.all.Bounds {
		least := (1 - q.q) * math.Pow(bound/u, tailPower)
		if u > bound || u < bound && !(u > 0 && least <= tailShare) {
			continue
		}
		if stat.AtMost(worth*countBeyond(&q.all, u), worth*observed(&q.all), least) <= rate {
			return true
		}
	}
	return false
}

// observed returns the number of observations of a histogram.
func observed(d *stat.Delta) float64 {
	n := 0.0
	for _, k := range d.Counts {
		n += k
	}
	return n
}

// countBeyond returns the number of observations in buckets that extend beyond a bound.
func countBeyond(d *stat.Delta, bound float64) float64 {
	n := 0.0
	for i, k := range d.Counts {
		if d.Bounds[i] > bound {
			n += k
		}
	}
	return n
}

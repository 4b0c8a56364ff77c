package verdict

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Where too few requests were seen for a quantile, whether it keeps a limit is told
// by the share of them beyond the limit: none of a few hundred leaves less than one
// in a hundred (the rule of three), and a few dozen that mostly lie beyond it leave
// far more. The interval is that of Clopper & Pearson (Biometrika 26, 1934) with as
// many trials as requests are worth that depend on each other: their number over the
// design effect that the slices show, and less for the few blocks that this is known
// from (Korn & Graubard, Surv. Methodol. 24, 1998). Each end has the whole error
// rate: of an objective that is kept, or missed, only one of the claims can be false.
//
// How they depend on each other hardly shows in the few beyond a limit that is kept,
// and in none not at all. So what is kept has to be so twice: by those beyond the
// limit, with the design effect that they show, and by those beyond a time below it,
// with that of the nearest bound that tells. There more would lie, since a tail thins
// out with at least the square of time, as that of anything with a variance does.

const (
	tailPower = 2.0
	// tailShare is where the tail begins: the largest share that it is taken to hold.
	tailShare = 0.2
)

// tail is where the columns of shares beyond a limit are.
type tail struct {
	near []int // beyond the bounds next to it
	all  []int // and beyond the nearest that tells more
}

// shares adds the shares of observations that tell how those beyond a limit depend
// on each other.
func (s *sample) shares(q *quantile, pick func(*Slice) *stat.Delta, limit float64) (t tail) {
	total := observed(&q.all)
	near, nearest := q.around(limit)
	for i, at := range append(near, nearest...) {
		bound := q.all.Bounds[at]
		share := past(&q.all, bound) / total
		c := column{value: stat.Some(share), count: total}
		c.influence = s.influence(func(_ *life, v *Slice) float64 {
			d := pick(v)
			return (past(d, bound) - share*observed(d)) / total
		})
		t.all = append(t.all, len(s.columns))
		s.columns = append(s.columns, c)
		if i < len(near) {
			t.near = t.all
		}
	}
	return t
}

// around returns the bounds next to a limit, and the nearest to them with enough
// observations on both sides to tell how they depend on each other, or with most.
// Bounds that all or none lie beyond tell nothing and are left out.
func (q *quantile) around(limit float64) (near, nearest []int) {
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
		n := past(&q.all, bound)
		n = min(n, total-n)
		if n > 0 && (i == below || i == above) {
			near = append(near, i)
		}
		off := max(below-i, i-above, 0)
		if n = min(n, beyond); n > most || n == most && off < apart {
			best, most, apart = i, n, off
		}
	}
	if best >= 0 && !slices.Contains(near, best) {
		nearest = append(nearest, best)
	}
	return near, nearest
}

// worth is how much of an independent observation each of a side's is, told by
// columns of shares; 1 where none tells.
func (s *sample) worth(columns []int, rate float64) float64 {
	effect, blocks := 1.0, 0.0
	for _, at := range columns {
		e := &s.estimates[at]
		effect = max(effect, s.spreadOf(at)*e.count/(e.value.V*(1-e.value.V)))
	}
	if effect == 1 {
		return 1
	}
	for _, dof := range s.dofs {
		blocks += dof
	}
	t := stat.StudentQuantile(1-rate, math.Inf(1)) / stat.StudentQuantile(1-rate, blocks)
	return min(1, t*t/effect)
}

// spreadOf is the variance of a share, as of the goal: the larger of the bootstrap's
// and of that of autoregressions.
func (s *sample) spreadOf(column int) float64 {
	sum := 0.0
	for i := range s.lives {
		influence := s.columns[column].influence[i]
		pace := make([]float64, len(influence))
		for j, v := range influence {
			pace[j] = v * float64(len(pace))
		}
		v, _ := slow(pace, s.lives[i].steady.Period)
		sum += max(v, s.parts[i][column])
	}
	return sum
}

// few returns where the quantile lies, rounded outwards to whole buckets as by reach,
// when each observation beyond the limit is worth so much (near), and each of all.
func (q *quantile) few(near, worth, rate float64) (low, high float64) {
	total, p := observed(&q.all), 1-q.q
	for _, bound := range q.all.Bounds {
		n := past(&q.all, bound)
		if stat.AtLeast(worth*n, worth*total, p) <= rate {
			low = bound
		}
		if stat.AtMost(near*n, near*total, p) <= rate && q.thin(bound, worth, rate) {
			return low, bound
		}
	}
	return low, math.Inf(1)
}

// thin says whether so few lie beyond a bound, or beyond one below it, that the
// quantile is no larger.
func (q *quantile) thin(bound, worth, rate float64) bool {
	for _, u := range q.all.Bounds {
		least := (1 - q.q) * math.Pow(bound/u, tailPower)
		if u > bound || u < bound && !(u > 0 && least <= tailShare) {
			continue
		}
		if stat.AtMost(worth*past(&q.all, u), worth*observed(&q.all), least) <= rate {
			return true
		}
	}
	return false
}

// observed counts all observations of a histogram.
func observed(d *stat.Delta) float64 {
	n := 0.0
	for _, k := range d.Counts {
		n += k
	}
	return n
}

// past counts those in buckets that reach beyond a bound.
func past(d *stat.Delta, bound float64) float64 {
	n := 0.0
	for i, k := range d.Counts {
		if d.Bounds[i] > bound {
			n += k
		}
	}
	return n
}

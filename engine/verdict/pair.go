package verdict

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Sides measured at the same time share the effects of the common load: a burst or a drift of the
// traffic lies in the same slices of both and cancels in their difference. The variance of a difference is
// then the long-run variance of the series of differences, one for each moment, and not the sum of the
// variances of both sides. Noise of only one server is in that series as well, and noise that no
// series shows (restarts, a slow disturbance of one machine) is added for each start as usual. Siblings
// that differ from one another say more about that variance than the one series does.

// match keeps the slices of the moments at which both sides were measured, and numbers these moments.
// A moment lasts for half a slice, because slices of different servers begin at different times.
func (c *comparison) match() {
	type place struct {
		side, start, moment int
		slice               *Slice
	}
	var all []place
	for i, s := range c.side {
		for j := range s.starts {
			l := &s.starts[j]
			for k := range l.slices {
				all = append(all, place{i, j, 0, &l.slices[k]})
			}
			l.slices, l.moments = nil, nil
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.slice.Start, b.slice.Start) })
	var measured [][2]bool // of each moment, the sides
	var first time.Duration
	for i := range all {
		p := &all[i]
		if i == 0 || p.slice.Start-first > p.slice.Length/2 {
			first, measured = p.slice.Start, append(measured, [2]bool{})
		}
		p.moment = len(measured) - 1
		measured[p.moment][p.side] = true
	}
	number, n := make([]int, len(measured)), 0
	for i, sides := range measured {
		if number[i] = n; sides[0] && sides[1] {
			n++
		}
	}
	length, count := 0.0, 0
	for _, p := range all {
		if measured[p.moment] == [2]bool{true, true} {
			l := &c.side[p.side].starts[p.start]
			l.slices, l.moments = append(l.slices, *p.slice), append(l.moments, number[p.moment])
			length += p.slice.Length.Seconds()
			count++
		}
	}
	for _, s := range c.side {
		s.starts = slices.DeleteFunc(s.starts, func(l start) bool { return len(l.slices) == 0 })
		s.setJudged()
		s.moments, s.lasted = n, length/float64(max(1, count))*float64(n)
	}
	c.setOthers(n)
}

// starts returns the starts of both sides.
func (c *comparison) starts() []*start {
	var out []*start
	for _, s := range c.side {
		for i := range s.starts {
			out = append(out, &s.starts[i])
		}
	}
	return out
}

// setOthers sets what the other starts did at each of n moments.
func (c *comparison) setOthers(n int) {
	sum, count := make([]float64, n), make([]float64, n)
	starts := c.starts()
	for _, l := range starts {
		l.others = relative(l.rates())
		for i, moment := range l.moments {
			sum[moment] += l.others[i]
			count[moment]++
		}
	}
	for _, l := range starts {
		for i, moment := range l.moments {
			l.others[i] = (sum[moment] - l.others[i]) / (count[moment] - 1)
		}
	}
}

// relative returns values as multiples of their mean, or as they are if that is not positive.
func relative(values []float64) []float64 {
	out, mean := slices.Clone(values), average(values)
	if mean > 0 {
		for i := range out {
			out[i] /= mean
		}
	}
	return out
}

// atMoments returns what each moment contributes to a column of a side whose starts were measured at the
// same time.
func (s *sample) atMoments(column int) []float64 {
	out := make([]float64, s.moments)
	for j, influence := range s.columns[column].influence {
		for k, v := range influence {
			out[s.starts[j].moments[k]] += v
		}
	}
	return out
}

// apart returns what each moment contributes to the difference of two columns, before and after.
func (c *comparison) apart(columns [2]int) []float64 {
	before, after := c.side[0].atMoments(columns[0]), c.side[1].atMoments(columns[1])
	for i := range after {
		after[i] -= before[i]
	}
	return after
}

// contrasts returns series of differences between starts of the same side, each from the mean of those before
// it, with the variance that the difference of the sides has if all servers scatter as much.
func (c *comparison) contrasts(columns [2]int) (out [][]float64) {
	for i, s := range c.side {
		mean, weight, spread := make([]float64, s.moments), 0.0, 0.0
		for j, influence := range s.columns[columns[i]].influence {
			l, series := &s.starts[j], slices.Clone(mean)
			for k, v := range influence {
				series[l.moments[k]] -= v / l.weight
			}
			scale := math.Sqrt((c.side[0].spread + c.side[1].spread) / (1 + spread))
			share := l.weight / (weight + l.weight)
			for k := range series {
				mean[k] -= share * series[k]
				series[k] *= scale
			}
			if j > 0 {
				out = append(out, series)
			}
			weight, spread = weight+l.weight, (1-share)*(1-share)*spread+share*share
		}
	}
	return out
}

// SiblingDifferences returns differences of log throughput for [Widen] between starts of one configuration
// that were measured at the same time. For n starts there are n-1, independent of one another: each start
// differs from the mean of those before it, by as much as two starts differ.
func SiblingDifferences(starts []Incarnation) []float64 {
	var out []float64
	for i := 1; i < len(starts); i++ {
		c := newComparison(&Side{Incarnations: starts[:i]}, &Side{Incarnations: starts[i : i+1]}, Plan{Paired: true})
		b, a := c.side[0], c.side[1]
		was, is := b.columns[b.ratio(perSecond(tokens))].value, a.columns[a.ratio(perSecond(tokens))].value
		if was.V > 0 && is.V > 0 {
			out = append(out, math.Log(is.V/was.V)*math.Sqrt(2/(a.spread+b.spread)))
		}
	}
	return out
}

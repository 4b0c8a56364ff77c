package capture

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// point is one reading of one field.
type point struct {
	at time.Duration
	v  float64
}

// series has readings in ascending order, one for each time: a source that updates its values less
// often than it is read repeats a time.
type series []point

// newSeries takes ownership of the points.
func newSeries(points []point) series {
	byTime := func(a, b point) int { return cmp.Compare(a.at, b.at) }
	s := series(points)
	if !slices.IsSortedFunc(s, byTime) {
		slices.SortStableFunc(s, byTime)
	}
	return slices.CompactFunc(s, func(a, b point) bool { return a.at == b.at })
}

// pace returns the median distance between neighbouring readings, at least floor. It uses at most a
// thousand distances, spread over the series.
func (s series) pace(floor time.Duration) time.Duration {
	if len(s) < 2 {
		return floor
	}
	stride := 1 + len(s)/1024
	gaps := make([]time.Duration, 0, len(s)/stride+1)
	for i := 0; i < len(s)-1; i += stride {
		gaps = append(gaps, s[i+1].at-s[i].at)
	}
	slices.Sort(gaps)
	return max(floor, gaps[len(gaps)/2])
}

// from returns the index of the first reading at or after a time.
func (s series) from(at time.Duration) int {
	i, _ := slices.BinarySearchFunc(s, at, func(p point, at time.Duration) int { return cmp.Compare(p.at, at) })
	return i
}

// within returns the readings from lo to hi, and the nearest one outside on each
// side if it is at most reach away: the samples forced around a run describe a run
// that is shorter than the pace.
func (s series) within(lo, hi, reach time.Duration) series {
	first, last := s.from(lo), s.from(hi+1)
	if first > 0 && lo-s[first-1].at <= reach && (first == len(s) || s[first].at > lo) {
		first--
	}
	if last < len(s) && s[last].at-hi <= reach && (last == 0 || s[last-1].at < hi) {
		last++
	}
	return s[first:max(first, last)]
}

// integral integrates v from lo to hi by the trapezoid rule and returns how much of that
// time readings cover. It leaves out gaps of more than three paces, and what lies more
// than one pace before the first or after the last reading.
func (s series) integral(lo, hi, pace time.Duration) (sum float64, covered time.Duration) {
	if len(s) == 0 || hi <= lo {
		return 0, 0
	}
	add := func(a, b point) {
		from, to := max(a.at, lo), min(b.at, hi)
		if from >= to {
			return
		}
		sum += (lineAt(a, b, from) + lineAt(a, b, to)) / 2 * (to - from).Seconds()
		covered += to - from
	}
	first, last := s[0], s[len(s)-1]
	add(point{first.at - pace, first.v}, first)
	for i := range len(s) - 1 {
		if s[i+1].at-s[i].at <= maxPaces*pace {
			add(s[i], s[i+1])
		}
	}
	add(last, point{last.at + pace, last.v})
	return sum, covered
}

// maxPaces is the longest distance between two readings that is bridged, in paces: one
// or two missed ticks.
const maxPaces = 3

// lineAt returns the value at a time on the straight line through two readings.
func lineAt(a, b point, at time.Duration) float64 {
	share := float64(at-a.at) / float64(b.at-a.at)
	return a.v + share*(b.v-a.v)
}

// mean returns the unweighted mean of the readings.
func (s series) mean() stat.Opt {
	sum := 0.0
	for _, p := range s {
		sum += p.v
	}
	return stat.Some(sum).Div(stat.Some(float64(len(s))))
}

// peak returns the largest reading, -Inf without readings.
func (s series) peak() float64 {
	most := math.Inf(-1)
	for _, p := range s {
		most = max(most, p.v)
	}
	return most
}

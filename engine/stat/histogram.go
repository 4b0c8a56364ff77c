package stat

import (
	"math"
	"slices"
)

// Histogram is a Prometheus histogram: cumulative counts at ascending upper
// bounds. The zero value is absent.
type Histogram struct {
	Bounds     []float64 // upper bounds, ascending; the last is +Inf where the page had it
	Cumulative []float64 // observations <= the bound of the same index
	Sum        float64   // sum of all observations, in the metric's unit
	Count      float64   // number of observations
	OK         bool      // whether the page had it at all
}

// Delta is what a histogram gained between two readings: counts by bucket,
// not cumulative. Its slices are reused from one Set to the next.
type Delta struct {
	Bounds []float64
	Counts []float64
	Sum    float64
	Count  float64
	OK     bool
}

// Reset empties d and keeps its memory.
func (d *Delta) Reset() {
	d.Bounds, d.Counts = d.Bounds[:0], d.Counts[:0]
	d.Sum, d.Count, d.OK = 0, 0, false
}

// Set makes d the difference last - first. It is absent (OK false) where either
// side is absent, where a count fell (a reset), or where the buckets changed
// between the two (their differences would be meaningless). It allocates only
// when d has to grow.
func (d *Delta) Set(first, last *Histogram) {
	d.Reset()
	if !first.OK || !last.OK || last.Count < first.Count || !slices.Equal(first.Bounds, last.Bounds) {
		return
	}
	previous := 0.0
	for i, bound := range last.Bounds {
		cumulative := last.Cumulative[i] - first.Cumulative[i]
		n := cumulative - previous
		if n < 0 || math.IsNaN(n) {
			d.Reset()
			return
		}
		d.Bounds = append(d.Bounds, bound)
		d.Counts = append(d.Counts, n)
		previous = cumulative
	}
	d.Sum, d.Count, d.OK = last.Sum-first.Sum, last.Count-first.Count, true
}

// Mean returns Sum/Count, absent where nothing was observed.
func (d *Delta) Mean() Opt {
	if !d.OK || d.Count <= 0 || math.IsNaN(d.Sum) || math.IsInf(d.Sum, 0) {
		return None
	}
	return Some(d.Sum / d.Count)
}

// LengthBiasedMean returns the largest value that sum(x*x)/sum(x) can have with
// these counts and this sum: where x are durations, the mean length of the one
// that a random moment falls into, which is longer than their mean (inspection
// paradox). Absent where nothing was observed, there are no buckets, or one
// observation lies above the last finite bound.
func (d *Delta) LengthBiasedMean() Opt {
	if !d.Mean().OK || d.Sum <= 0 || len(d.Counts) == 0 {
		return None
	}
	// Every observation at its bucket's lower end, then what is left of the sum
	// put where it adds most squares: into the highest buckets.
	squares, spare, lower := 0.0, d.Sum, 0.0
	for i, n := range d.Counts {
		if n > 0 && math.IsInf(d.Bounds[i], 1) {
			return None
		}
		squares += n * lower * lower
		spare -= n * lower
		lower = d.Bounds[i]
	}
	for i := len(d.Counts) - 1; i >= 0 && spare > 0; i-- {
		upper, lower := d.Bounds[i], 0.0
		if i > 0 {
			lower = d.Bounds[i-1]
		}
		if n := d.Counts[i]; n > 0 {
			put := min(spare, n*(upper-lower))
			squares += put * (upper + lower)
			spare -= put
		}
	}
	return Some(squares / d.Sum)
}

// Merge adds another delta: counts are summed at matching bounds. Where the
// bounds differ, the union is kept and a bucket's count stays at its own bound,
// which shifts no observation below its true bucket. It allocates then.
func (d *Delta) Merge(o *Delta) {
	if !o.OK {
		return
	}
	if !d.OK {
		d.Bounds = append(d.Bounds[:0], o.Bounds...)
		d.Counts = append(d.Counts[:0], o.Counts...)
		d.Sum, d.Count, d.OK = o.Sum, o.Count, true
		return
	}
	if slices.Equal(d.Bounds, o.Bounds) {
		for i, n := range o.Counts {
			d.Counts[i] += n
		}
	} else {
		for i, bound := range o.Bounds {
			at, found := slices.BinarySearch(d.Bounds, bound)
			if !found {
				d.Bounds = slices.Insert(d.Bounds, at, bound)
				d.Counts = slices.Insert(d.Counts, at, 0)
			}
			d.Counts[at] += o.Counts[i]
		}
	}
	d.Sum += o.Sum
	d.Count += o.Count
}

// Quantile returns the q-quantile (0..1) by linear interpolation inside its
// bucket, as Prometheus' histogram_quantile does: the first bucket starts at 0,
// and a quantile in the +Inf bucket is the highest finite bound, a lower limit.
// It is absent where nothing was observed.
func (d *Delta) Quantile(q float64) Opt {
	if !d.OK || len(d.Counts) == 0 || q < 0 || q > 1 {
		return None
	}
	total := 0.0
	for _, n := range d.Counts {
		total += n
	}
	if total <= 0 {
		return None
	}
	rank, seen, lower := q*total, 0.0, 0.0
	for i, n := range d.Counts {
		upper := d.Bounds[i]
		if n > 0 && seen+n >= rank {
			if math.IsInf(upper, 1) {
				if i == 0 {
					return None
				}
				return Some(d.Bounds[i-1])
			}
			return Some(lower + (upper-lower)*(rank-seen)/n)
		}
		seen += n
		lower = upper
	}
	return None
}

// Overflows says whether the q-quantile lies above the last finite bound: its
// Quantile is then a lower limit.
func (d *Delta) Overflows(q float64) bool {
	r := d.Resolution(q)
	return r.OK && math.IsInf(r.V, 1)
}

// Resolution returns the width of the bucket that holds the q-quantile: how
// far the true quantile may lie from Quantile. +Inf in the overflow bucket,
// absent where the quantile is.
func (d *Delta) Resolution(q float64) Opt {
	if !d.OK {
		return None
	}
	total := 0.0
	for _, n := range d.Counts {
		total += n
	}
	if total <= 0 {
		return None
	}
	rank, seen, lower := q*total, 0.0, 0.0
	for i, n := range d.Counts {
		if n > 0 && seen+n >= rank {
			return Some(d.Bounds[i] - lower)
		}
		seen += n
		lower = d.Bounds[i]
	}
	return None
}

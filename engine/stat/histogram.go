package stat

import (
	"math"
	"slices"
)

// Histogram is a Prometheus histogram: cumulative counts at ascending upper bounds. The zero value is
// absent.
type Histogram struct {
	Bounds     []float64 // upper bounds, ascending; the last is +Inf if the page has it
	Cumulative []float64 // observations <= the bound of the same index
	Sum        float64   // sum of all observations, in the metric's unit
	Count      float64   // number of observations
	OK         bool      // the page has the histogram
}

// Delta is the difference between two readings of a histogram: counts by bucket, not cumulative. Set
// reuses its slices.
type Delta struct {
	Bounds []float64
	Counts []float64
	Sum    float64
	Count  float64
	OK     bool
}

// Reset empties d but keeps its memory.
func (d *Delta) Reset() {
	d.Bounds, d.Counts = d.Bounds[:0], d.Counts[:0]
	d.Sum, d.Count, d.OK = 0, 0, false
}

// Set sets d to last - first. It is absent (OK false) if either side is absent, a count decreased (a
// reset), or the buckets differ. It allocates only when d has to grow.
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

// Mean returns Sum/Count, absent if nothing was observed.
func (d *Delta) Mean() Opt {
	if !d.OK || d.Count <= 0 {
		return None
	}
	return Finite(d.Sum / d.Count)
}

// LengthBiasedMean returns the largest possible value of sum(x*x)/sum(x) for these counts and this sum.
// If x are durations, this is the mean length of the one that a random moment falls into, which is
// longer than their mean (inspection paradox). It is absent if nothing was observed, there are no
// buckets, or an observation lies above the last finite bound.
func (d *Delta) LengthBiasedMean() Opt {
	if !d.Mean().OK || d.Sum <= 0 || len(d.Counts) == 0 {
		return None
	}
	// Place every observation at its bucket's lower bound, then distribute what is left of the sum
	// where it adds most squares: in the highest buckets.
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

// Merge adds another delta by summing the counts at equal bounds. If the bounds differ, it keeps their
// union, and counts stay at their own bound, so that no observation moves below its true bucket; it
// allocates then.
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

// Quantile returns the q-quantile (0..1) by linear interpolation within its bucket, like Prometheus'
// histogram_quantile: the first bucket starts at 0, and a quantile in the +Inf bucket is the highest
// finite bound, a lower limit. It is absent if nothing was observed.
func (d *Delta) Quantile(q float64) Opt {
	i, rank, ok := d.locate(q)
	switch {
	case !ok || i == 0 && math.IsInf(d.Bounds[i], 1):
		return None
	case math.IsInf(d.Bounds[i], 1):
		return Some(d.lower(i))
	}
	return Some(d.lower(i) + (d.Bounds[i]-d.lower(i))*rank/d.Counts[i])
}

// Overflows reports whether the q-quantile lies above the last finite bound, so that Quantile is a
// lower limit.
func (d *Delta) Overflows(q float64) bool {
	i, _, ok := d.locate(q)
	return ok && math.IsInf(d.Bounds[i], 1)
}

// Bucket returns the bounds of the bucket of the q-quantile, between which the true quantile lies. It is zero
// if the quantile is absent or in the overflow bucket.
func (d *Delta) Bucket(q float64) Bucket {
	i, _, ok := d.locate(q)
	if !ok || math.IsInf(d.Bounds[i], 1) {
		return Bucket{}
	}
	return Bucket{d.lower(i), d.Bounds[i]}
}

// Bucket is the lower and the upper bound of a bucket; the zero value is not a bucket.
type Bucket [2]float64

// Width returns the width of a bucket: how far a quantile read from it may be off. It is 0 without a bucket.
func (b Bucket) Width() float64 { return b[1] - b[0] }

// lower returns the lower bound of a bucket.
func (d *Delta) lower(bucket int) float64 {
	if bucket == 0 {
		return 0
	}
	return d.Bounds[bucket-1]
}

// locate returns the bucket of the q-quantile, and its rank among the observations there; ok is false
// if nothing was observed, or q is outside 0..1.
func (d *Delta) locate(q float64) (bucket int, rank float64, ok bool) {
	if !d.OK || q < 0 || q > 1 {
		return 0, 0, false
	}
	total := 0.0
	for _, n := range d.Counts {
		total += n
	}
	rank = q * total
	seen := 0.0
	for i, n := range d.Counts {
		if n > 0 && seen+n >= rank {
			return i, rank - seen, true
		}
		seen += n
	}
	return 0, 0, false
}

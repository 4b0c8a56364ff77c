package enginepage

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// bucket is one cumulative count of one series.
type bucket struct {
	le    float64
	count float64
	n     int // series summed into it
}

// histogram collects the series of one family, to sum them over engines and over labels
// that rooftop does not know.
type histogram struct {
	wire       string
	buckets    []bucket
	sum, count sum
	odd        string // what is wrong with it, "" if nothing is
}

func (h *histogram) reset() {
	*h = histogram{buckets: h.buckets[:0]}
}

func (h *histogram) add(role *role, s collect.Sample) {
	h.wire = role.wire
	switch role.part {
	case partSum:
		h.sum.add(s.Value)
	case partCount:
		h.count.add(s.Value)
	case partBucket:
		le, err := strconv.ParseFloat(s.Label("le"), 64)
		if err != nil || math.IsNaN(le) {
			h.odd = "a bucket has no bound, so quantiles are absent"
			return
		}
		if h.buckets == nil {
			h.buckets = make([]bucket, 0, 24) // enough for most families
		}
		h.buckets = append(h.buckets, bucket{le: le, count: s.Value, n: 1})
	}
}

// finish returns the histogram summed over its series, and counts with its cumulative
// counts appended. It reuses bounds if they are equal to those of the last page. Without
// a count it returns no histogram; with invalid buckets it returns only count and sum,
// which give means but no quantiles.
func (h *histogram) finish(bounds *[]float64, counts []float64) (stat.Histogram, []float64) {
	merged := h.merge()
	count := h.count.opt()
	if n := len(merged); n > 0 && math.IsInf(merged[n-1].le, 1) {
		if h.count.n == 0 && !h.count.bad {
			count = stat.Some(merged[n-1].count)
		}
	} else if n > 0 && count.OK {
		merged = append(merged, bucket{le: math.Inf(1), count: count.V, n: merged[0].n})
	}
	if !count.OK {
		if h.wire != "" && h.odd == "" {
			h.odd = "it has no count, so it is ignored"
		}
		return stat.Histogram{}, counts
	}
	if h.odd == "" {
		h.odd = check(merged, h.count.n)
	}
	out := stat.Histogram{Sum: h.sum.opt().Or(math.NaN()), Count: count.V, OK: true}
	if h.odd != "" || len(merged) == 0 {
		return out, counts
	}
	start, same := len(counts), len(*bounds) == len(merged)
	for i, m := range merged {
		counts = append(counts, m.count)
		same = same && (*bounds)[i] == m.le
	}
	if !same {
		*bounds = make([]float64, len(merged))
		for i, m := range merged {
			(*bounds)[i] = m.le
		}
	}
	out.Bounds = *bounds
	out.Cumulative = counts[start:len(counts):len(counts)]
	return out, counts
}

// merge sums buckets with equal bounds and returns them by ascending bound.
func (h *histogram) merge() []bucket {
	byBound := func(a, b bucket) int { return cmp.Compare(a.le, b.le) }
	if !slices.IsSortedFunc(h.buckets, byBound) {
		slices.SortStableFunc(h.buckets, byBound)
	}
	merged := h.buckets[:0]
	for _, b := range h.buckets {
		if n := len(merged); n > 0 && merged[n-1].le == b.le {
			merged[n-1].count += b.count
			merged[n-1].n++
			continue
		}
		merged = append(merged, b)
	}
	h.buckets = merged
	return merged
}

// check returns why buckets are invalid, "" if they are valid: every series must have each
// bound, and counts must not fall from one bound to the next.
func check(buckets []bucket, series int) string {
	previous := 0.0
	for _, b := range buckets {
		if b.n != buckets[0].n || (series > 0 && b.n != series) {
			return "its series have different buckets, so quantiles are absent"
		}
		if !(b.count >= previous) || math.IsInf(b.count, 0) {
			return "its cumulative counts decrease, so quantiles are absent"
		}
		previous = b.count
	}
	return ""
}

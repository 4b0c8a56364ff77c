package stat

import (
	"math"
	"slices"
	"time"
)

// IsFinite reports whether v is neither NaN nor infinite.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Finite returns v, absent if it is NaN or infinite.
func Finite(v float64) Opt {
	if !IsFinite(v) {
		return None
	}
	return Some(v)
}

// Finite returns o, absent if its value is NaN or infinite.
func (o Opt) Finite() Opt {
	if !o.OK {
		return None
	}
	return Finite(o.V)
}

// Ratio returns part/whole, absent unless whole is above zero.
func Ratio[N int | int64 | uint64 | float64 | time.Duration](part, whole N) Opt {
	if whole <= 0 {
		return None
	}
	return Finite(float64(part) / float64(whole))
}

// PerSecond returns amount per second over a duration, absent unless that is above zero.
func PerSecond(amount float64, over time.Duration) Opt {
	if over <= 0 {
		return None
	}
	return Finite(amount / over.Seconds())
}

// Mean returns the mean of values, absent without values.
func Mean(values []float64) Opt {
	if len(values) == 0 {
		return None
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return Finite(sum / float64(len(values)))
}

// Median returns the median of values: the mean of the middle two for an even number, absent without
// values. It does not modify values.
func Median(values []float64) Opt {
	n := len(values)
	if n == 0 {
		return None
	}
	s := slices.Clone(values)
	slices.Sort(s)
	return Finite((s[(n-1)/2] + s[n/2]) / 2)
}

// NearestRank returns the smallest of sorted values that is at least as large as a share q (0..1) of
// them. It is absent without values.
func NearestRank(sorted []float64, q float64) Opt {
	n := len(sorted)
	if n == 0 {
		return None
	}
	return Some(sorted[min(max(int(math.Ceil(q*float64(n)))-1, 0), n-1)])
}

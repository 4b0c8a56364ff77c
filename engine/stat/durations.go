package stat

import (
	"cmp"
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"time"
)

// Distribution describes durations. Quantiles are nearest rank. A Count of 0 means that nothing was
// observed, and is null in JSON; times are nanoseconds there.
type Distribution struct {
	Count int           `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// MarshalJSON encodes the distribution, or null if nothing was observed.
func (d Distribution) MarshalJSON() ([]byte, error) {
	if d.Count <= 0 {
		return []byte("null"), nil
	}
	type plain Distribution
	return json.Marshal(plain(d))
}

// TotalSeconds returns the sum of all times, in seconds.
func (d *Distribution) TotalSeconds() float64 { return d.Mean.Seconds() * float64(d.Count) }

// BucketsPerOctave is the number of buckets of [Durations] between a number of
// nanoseconds and its double.
const BucketsPerOctave = 1 << coarse

// Logarithms of the buckets per octave at both resolutions.
const coarse, fine = 5, 11

// Durations counts durations in buckets of 1/32 octave. Count, Sum, mean and maximum are exact, other
// quantiles within 1/64. It takes 4 bytes for each bucket between the smallest and the largest
// duration, at most 8 KiB.
type Durations struct {
	Count    int
	Sum      time.Duration // saturates at the longest Duration
	min, max time.Duration
	bits     uint8 // the resolution; 0 is coarse
	first    int   // the bucket of counts[0]
	counts   []uint32
}

// NewFineDurations returns Durations with quantiles within 1/4096. It takes 8 KiB for each octave
// between the smallest and the largest duration.
func NewFineDurations() Durations { return Durations{bits: fine} }

func (s *Durations) resolution() uint8 { return cmp.Or(s.bits, coarse) }

// bucketOf returns the bucket of a duration, which must not be negative.
func bucketOf(d time.Duration, resolution uint8) int {
	shift := max(bits.Len64(uint64(d))-int(resolution)-1, 0)
	return shift<<resolution + int(d>>shift)
}

// bucketMiddle returns the time in the middle of a bucket.
func bucketMiddle(bucket int, resolution uint8) time.Duration {
	shift := max(bucket>>resolution-1, 0)
	return time.Duration(bucket-shift<<resolution)<<shift + 1<<shift/2
}

// Add counts a duration. A negative one counts as zero.
func (s *Durations) Add(d time.Duration) {
	d = max(d, 0)
	s.count(bucketOf(d, s.resolution()), 1)
	if s.Count == 0 {
		s.min = d
	}
	s.Count++
	s.Sum, s.min, s.max = AddSaturating(s.Sum, d), min(s.min, d), max(s.max, d)
}

// count adds n times to a bucket.
func (s *Durations) count(bucket int, n uint32) {
	switch {
	case len(s.counts) == 0:
		s.first = bucket
		s.counts = append(s.counts, 0)
	case bucket < s.first:
		s.counts = slices.Insert(s.counts, 0, make([]uint32, s.first-bucket)...)
		s.first = bucket
	case bucket >= s.first+len(s.counts):
		s.counts = append(s.counts, make([]uint32, bucket-s.first-len(s.counts)+1)...)
	}
	at := &s.counts[bucket-s.first]
	*at += min(n, math.MaxUint32-*at)
}

// Merge adds the durations of o, which must have the same resolution.
func (s *Durations) Merge(o *Durations) {
	if o.Count == 0 {
		return
	}
	for i, n := range o.counts {
		s.count(o.first+i, n)
	}
	if s.Count == 0 {
		s.min = o.min
	}
	s.Count += o.Count
	s.Sum, s.min, s.max = AddSaturating(s.Sum, o.Sum), min(s.min, o.min), max(s.max, o.max)
}

// Quantile returns the nearest rank, to the width of a bucket; 0 without durations.
func (s *Durations) Quantile(q float64) time.Duration {
	rank := int(math.Ceil(q * float64(s.Count)))
	if rank >= s.Count {
		return s.max
	}
	for i, n := range s.counts {
		if rank -= int(n); rank <= 0 {
			return min(max(bucketMiddle(s.first+i, s.resolution()), s.min), s.max)
		}
	}
	return s.max
}

// Mean returns the mean, 0 without durations.
func (s *Durations) Mean() time.Duration { return s.Sum / time.Duration(max(s.Count, 1)) }

// Distribution returns the distribution of the added durations.
func (s *Durations) Distribution() Distribution {
	if s.Count == 0 {
		return Distribution{}
	}
	return Distribution{
		Count: s.Count, Mean: s.Mean(),
		P50: s.Quantile(0.50), P95: s.Quantile(0.95), P99: s.Quantile(0.99), Max: s.max,
	}
}

// AddSaturating returns a+b, at most the largest int64. A negative b counts as 0.
func AddSaturating[T ~int64](a, b T) T {
	if s := a + max(b, 0); s >= a {
		return s
	}
	return math.MaxInt64
}

// Elapsed returns the time between two moments, 0 if to is not after from, and at most the longest
// Duration.
func Elapsed(from, to time.Duration) time.Duration {
	d := to - from
	switch {
	case to <= from:
		return 0
	case d < 0:
		return math.MaxInt64
	}
	return d
}

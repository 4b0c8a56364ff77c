package optrace

import (
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"time"
)

// MarshalJSON writes null where nothing was observed.
func (d Distribution) MarshalJSON() ([]byte, error) {
	if d.Count <= 0 {
		return []byte("null"), nil
	}
	type plain Distribution
	return json.Marshal(plain(d))
}

// fineness is how many buckets of durations there are between a number of nanoseconds
// and its double.
const fineness = 32

// durations collects times and forgets them: it counts by buckets a 32nd of an octave
// wide. Count, mean and the largest are exact, other quantiles within 1/64 of themselves. It
// takes 4 bytes for each bucket between the smallest and the largest time, 8 KiB at
// most.
type durations struct {
	count    int
	sum      time.Duration
	min, max time.Duration
	first    int // the bucket of counts[0]
	counts   []uint32
}

// bucketOf is the bucket of a time that is not negative.
func bucketOf(d time.Duration) int {
	shift := max(bits.Len64(uint64(d))-bits.Len(2*fineness-1), 0)
	return shift*fineness + int(d>>shift)
}

// bucketMiddle is the time in the middle of a bucket.
func bucketMiddle(bucket int) time.Duration {
	if bucket < 2*fineness {
		return time.Duration(bucket)
	}
	shift := bucket/fineness - 1
	return time.Duration(bucket-shift*fineness)<<shift + 1<<shift/2
}

// add counts a time; one below zero counts as zero.
func (s *durations) add(d time.Duration) {
	d = max(d, 0)
	bucket := bucketOf(d)
	switch {
	case s.count == 0:
		s.min, s.first = d, bucket
		s.counts = append(s.counts[:0], 0)
	case bucket < s.first:
		s.counts = slices.Insert(s.counts, 0, make([]uint32, s.first-bucket)...)
		s.first = bucket
	case bucket >= s.first+len(s.counts):
		s.counts = append(s.counts, make([]uint32, bucket-s.first-len(s.counts)+1)...)
	}
	if n := &s.counts[bucket-s.first]; *n < math.MaxUint32 {
		*n++
	}
	s.count++
	s.sum, s.min, s.max = plus(s.sum, d), min(s.min, d), max(s.max, d)
}

// quantile is the nearest rank, to the width of a bucket.
func (s *durations) quantile(q float64) time.Duration {
	rank := int(math.Ceil(q * float64(s.count)))
	if rank >= s.count {
		return s.max
	}
	for i, n := range s.counts {
		if rank -= int(n); rank <= 0 {
			return min(max(bucketMiddle(s.first+i), s.min), s.max)
		}
	}
	return s.max
}

// mean is 0 of no times.
func (s *durations) mean() time.Duration { return s.sum / time.Duration(max(s.count, 1)) }

// distribution describes the times.
func (s *durations) distribution() Distribution {
	if s.count == 0 {
		return Distribution{}
	}
	return Distribution{
		Count: s.count, Mean: s.mean(),
		P50: s.quantile(0.50), P95: s.quantile(0.95), P99: s.quantile(0.99), Max: s.max,
	}
}

// plus adds times that are not negative, to the longest that there is.
func plus(a, b time.Duration) time.Duration {
	if s := a + max(b, 0); s >= a {
		return s
	}
	return math.MaxInt64
}

// span is the time from a moment to a later one, 0 where it is not later.
func span(from, to time.Duration) time.Duration {
	d := to - from
	switch {
	case to <= from:
		return 0
	case d < 0: // further apart than a Duration can say
		return math.MaxInt64
	}
	return d
}

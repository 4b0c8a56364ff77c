package probe

import (
	"encoding/json"
	"math"
	"math/bits"
	"time"
)

const (
	// subBits sets the resolution of a recorder: 1<<subBits buckets for each
	// doubling, so half a bucket is at most 1/4096 of the value it stands for.
	subBits = 11
	subs    = 1 << subBits
)

// recorder keeps a distribution of durations in bounded memory: log-linear
// buckets, exact up to 4 µs and within 0.025 % beyond, so that an hour of load
// costs no more than a minute. Buckets are held for each doubling that occurs,
// 16 KiB each. The zero recorder is empty.
type recorder struct {
	pages  [64 - subBits]*[subs]uint64
	count  uint64
	sum    float64 // nanoseconds; a float, since ten thousand streams overflow an int64 in a month
	lowest time.Duration
	most   time.Duration
}

func (r *recorder) add(d time.Duration) {
	d = max(d, 0)
	at := bucketOf(d)
	page := &r.pages[at/subs]
	if *page == nil {
		*page = new([subs]uint64)
	}
	(*page)[at%subs]++
	if r.count == 0 || d < r.lowest {
		r.lowest = d
	}
	r.most = max(r.most, d)
	r.count++
	r.sum += float64(d)
}

// merge adds what another recorder holds.
func (r *recorder) merge(o *recorder) {
	if o.count == 0 {
		return
	}
	for i, page := range o.pages {
		if page == nil {
			continue
		}
		if r.pages[i] == nil {
			r.pages[i] = new([subs]uint64)
		}
		for j, n := range page {
			r.pages[i][j] += n
		}
	}
	if r.count == 0 || o.lowest < r.lowest {
		r.lowest = o.lowest
	}
	r.most = max(r.most, o.most)
	r.count += o.count
	r.sum += o.sum
}

// bucketOf maps 0..2*subs-1 to itself, and each doubling beyond to subs buckets.
func bucketOf(d time.Duration) int {
	shift := max(0, bits.Len64(uint64(d))-subBits-1)
	return shift*subs + int(uint64(d)>>shift)
}

// middleOf is the value that stands for a bucket.
func middleOf(bucket int) time.Duration {
	shift := max(0, bucket/subs-1)
	low := uint64(bucket-shift*subs) << shift
	return time.Duration(low + (uint64(1)<<shift)/2)
}

// quantile returns the nearest-rank quantile: the smallest value that at least
// a share q of all values does not exceed.
func (r *recorder) quantile(q float64) time.Duration {
	rank := max(1, uint64(math.Ceil(q*float64(r.count))))
	seen := uint64(0)
	for i, page := range r.pages {
		if page == nil {
			continue
		}
		for j, n := range page {
			seen += n
			if seen >= rank {
				return min(max(middleOf(i*subs+j), r.lowest), r.most)
			}
		}
	}
	return r.most
}

func (r *recorder) latency() Latency {
	if r.count == 0 {
		return Latency{}
	}
	return Latency{
		Count: int(r.count),
		Mean:  time.Duration(r.sum / float64(r.count)),
		P50:   r.quantile(0.50),
		P95:   r.quantile(0.95),
		P99:   r.quantile(0.99),
		Max:   r.most,
	}
}

// Latency describes a distribution. Quantiles are nearest rank: the smallest
// observed value that at least that share of all values does not exceed, exact
// to 0.025 %. Mean and maximum are exact. With a Count of 0 nothing is known.
type Latency struct {
	Count int
	Mean  time.Duration
	P50   time.Duration
	P95   time.Duration
	P99   time.Duration
	Max   time.Duration
}

// MarshalJSON writes seconds, and null where nothing was observed.
func (l Latency) MarshalJSON() ([]byte, error) {
	if l.Count == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(struct {
		Count int     `json:"count"`
		Mean  float64 `json:"mean_s"`
		P50   float64 `json:"p50_s"`
		P95   float64 `json:"p95_s"`
		P99   float64 `json:"p99_s"`
		Max   float64 `json:"max_s"`
	}{l.Count, l.Mean.Seconds(), l.P50.Seconds(), l.P95.Seconds(), l.P99.Seconds(), l.Max.Seconds()})
}

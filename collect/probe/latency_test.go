package probe

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecorderNearestRank(t *testing.T) {
	var r recorder
	for _, ms := range []int{15, 20, 35, 40, 50} {
		r.add(time.Duration(ms) * time.Nanosecond)
	}
	// The textbook example of the nearest-rank method.
	for _, tc := range []struct {
		q    float64
		want time.Duration
	}{{0.05, 15}, {0.30, 20}, {0.40, 20}, {0.50, 35}, {1, 50}, {0, 15}} {
		if got := r.quantile(tc.q); got != tc.want {
			t.Errorf("quantile %v: got %d, want %d", tc.q, got, tc.want)
		}
	}
}

func TestRecorderResolution(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var r recorder
	var all []time.Duration
	var sum float64
	for range 20000 {
		d := time.Duration(math.Exp(rng.Float64() * 30)) // 1 ns to 3 h
		r.add(d)
		all = append(all, d)
		sum += float64(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.001, 0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 0.9999, 1} {
		want := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
		got := r.quantile(q)
		if off := math.Abs(float64(got-want)) / float64(want); off > 1.0/4096 {
			t.Errorf("quantile %v: got %v, want %v, off by %.5f", q, got, want, off)
		}
	}
	l := r.latency()
	if l.Count != len(all) || l.Max != all[len(all)-1] || math.Abs(float64(l.Mean)-sum/float64(len(all))) > 1 {
		t.Errorf("got %+v", l)
	}
}

// Phases are recorded apart and added up: the sum is what one recorder would
// have held.
func TestRecorderMerges(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var whole, sum recorder
	for range 10 {
		var part recorder
		for range rng.IntN(100) {
			d := time.Duration(math.Exp(rng.Float64() * 30))
			whole.add(d)
			part.add(d)
		}
		sum.merge(&part)
	}
	got, want := sum.latency(), whole.latency()
	got.Mean, want.Mean = got.Mean.Round(time.Microsecond), want.Mean.Round(time.Microsecond) // sums in another order
	if got != want || sum.quantile(0) != whole.quantile(0) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRecorderMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var r recorder
	for range 1 << 20 {
		r.add(time.Duration((0.001 + rng.Float64()) * float64(time.Second))) // 1 ms to 1 s
	}
	pages := 0
	for _, page := range r.pages {
		if page != nil {
			pages++
		}
	}
	if pages > 11 {
		t.Errorf("a million latencies of ten doublings hold %d pages", pages)
	}
}

func TestBucketsAreInOrderAndBounded(t *testing.T) {
	previous := -1
	for d := time.Duration(1); d > 0; d *= 2 {
		for _, at := range []time.Duration{d - 1, d, d + d/3, d + (d - 1)} {
			bucket := bucketOf(at)
			if bucket < previous {
				t.Errorf("%d ns: bucket %d follows %d", at, bucket, previous)
			}
			previous = bucket
			middle := middleOf(bucket)
			if off := math.Abs(float64(middle - at)); off > float64(at)/4096 {
				t.Errorf("%d ns: its bucket stands for %d", at, middle)
			}
		}
	}
	if most := bucketOf(math.MaxInt64); most > 1<<17 {
		t.Errorf("a recorder may grow to %d buckets", most)
	}
}

func TestRecorderTakesNegativeAsZero(t *testing.T) {
	var r recorder
	r.add(-time.Second)
	if l := r.latency(); l.Max != 0 || l.P50 != 0 || l.Count != 1 {
		t.Errorf("got %+v", l)
	}
}

func TestLatencyJSON(t *testing.T) {
	got, err := json.Marshal([]Latency{{}, {Count: 1, Mean: time.Second, P50: time.Millisecond, P95: 2, P99: 3, Max: 4}})
	if err != nil {
		t.Fatal(err)
	}
	want := `[null,{"count":1,"mean_s":1,"p50_s":0.001,"p95_s":2e-9,"p99_s":3e-9,"max_s":4e-9}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

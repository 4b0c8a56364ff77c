package optrace

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestDurations holds quantiles against the nearest rank of all times.
func TestDurations(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var s durations
		var all []time.Duration
		for range 1 + rnd.IntN(2000) {
			d := time.Duration(math.Exp(rnd.Float64() * 25))
			s.add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		sum := time.Duration(0)
		for _, d := range all {
			sum += d
		}
		got := s.distribution()
		if got.Count != len(all) || got.Mean != sum/time.Duration(len(all)) || got.Max != all[len(all)-1] {
			t.Errorf("seed %d: %+v", seed, got)
		}
		for q, d := range map[float64]time.Duration{0.5: got.P50, 0.95: got.P95, 0.99: got.P99} {
			want := all[int(math.Ceil(q*float64(len(all))))-1]
			if math.Abs(float64(d-want)) > float64(want)/64+0.5 {
				t.Errorf("seed %d, %v: %v, want %v", seed, q, d, want)
			}
		}
	}
}

func TestDurationsAtTheEdges(t *testing.T) {
	var s durations
	if got := s.distribution(); got != (Distribution{}) {
		t.Errorf("nothing: %+v", got)
	}
	s.add(math.MaxInt64)
	s.add(-5)
	s.add(7)
	if got := s.distribution(); got.P50 != 7 || got.Max != math.MaxInt64 || got.P99 != math.MaxInt64 || got.Count != 3 {
		t.Errorf("got %+v", got)
	}
	if len(s.counts) > 8<<10/4 {
		t.Errorf("%d buckets", len(s.counts))
	}
}

// TestBuckets holds that each time lies within a 64th of the middle of its bucket.
func TestBuckets(t *testing.T) {
	for shift := range 62 {
		for _, d := range []time.Duration{1 << shift, 1<<shift + 1, 2<<shift - 1, 3 << shift / 2} {
			m := bucketMiddle(bucketOf(d))
			if math.Abs(float64(m-d)) > float64(d)/64 || bucketOf(m) != bucketOf(d) {
				t.Errorf("%d is in bucket %d of the middle %d", d, bucketOf(d), m)
			}
		}
	}
}

func TestDistributionJSON(t *testing.T) {
	for _, d := range []Distribution{{}, {3, 1, 2, 3, 4, 5}} {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if d.Count == 0 && string(b) != "null" {
			t.Errorf("nothing observed is %s", b)
		}
		var back Distribution
		if err := json.Unmarshal(b, &back); err != nil || back != d {
			t.Errorf("%s came back as %+v, %v", b, back, err)
		}
	}
}

package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestDurations compares quantiles with the nearest rank of all durations, added to one Durations and to several that are
// merged.
func TestDurations(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		coarse, fine, merged := Durations{}, NewFineDurations(), NewFineDurations()
		part := NewFineDurations()
		var all []time.Duration
		for range 1 + rnd.IntN(2000) {
			d := time.Duration(math.Exp(rnd.Float64() * 30)) // 1 ns to 3 h
			coarse.Add(d)
			fine.Add(d)
			if part.Add(d); rnd.IntN(100) == 0 {
				merged.Merge(&part)
				part = NewFineDurations()
			}
			all = append(all, d)
		}
		merged.Merge(&part)
		slices.Sort(all)
		sum := time.Duration(0)
		for _, d := range all {
			sum += d
		}
		for _, tc := range []struct {
			name   string
			s      *Durations
			within float64
		}{{"coarse", &coarse, 64}, {"fine", &fine, 4096}, {"merged", &merged, 4096}} {
			got := tc.s.Distribution()
			if got.Count != len(all) || got.Mean != sum/time.Duration(len(all)) || got.Max != all[len(all)-1] {
				t.Errorf("seed %d, %s: %+v", seed, tc.name, got)
			}
			for _, q := range []float64{0, 0.001, 0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 0.9999, 1} {
				want := all[max(int(math.Ceil(q*float64(len(all))))-1, 0)]
				if d := tc.s.Quantile(q); math.Abs(float64(d-want)) > float64(want)/tc.within+0.5 {
					t.Errorf("seed %d, %s, %v: %v, want %v", seed, tc.name, q, d, want)
				}
			}
		}
		if fine.Distribution() != merged.Distribution() {
			t.Errorf("seed %d: merged is %+v, want %+v", seed, merged.Distribution(), fine.Distribution())
		}
	}
}

func TestDurationsAtTheEdges(t *testing.T) {
	var s Durations
	if got := s.Distribution(); got != (Distribution{}) {
		t.Errorf("nothing: %+v", got)
	}
	s.Add(math.MaxInt64)
	s.Add(-5)
	s.Add(7)
	if got := s.Distribution(); got.P50 != 7 || got.Max != math.MaxInt64 || got.P99 != math.MaxInt64 || got.Count != 3 {
		t.Errorf("got %+v", got)
	}
	if len(s.counts) > 8<<10/4 {
		t.Errorf("%d buckets", len(s.counts))
	}
}

// TestBuckets checks that buckets are ordered and bounded, and that each duration is near the middle of its bucket.
func TestBuckets(t *testing.T) {
	for _, tc := range []struct {
		resolution uint8
		within     float64
		most       int
	}{{coarse, 64, 2 << 10}, {fine, 4096, 1 << 17}} {
		previous := -1
		for shift := range 62 {
			for _, d := range []time.Duration{1<<shift - 1, 1 << shift, 1<<shift + 1<<shift/3, 3 << shift / 2, 2<<shift - 1} {
				bucket := bucketOf(d, tc.resolution)
				m := bucketMiddle(bucket, tc.resolution)
				if math.Abs(float64(m-d)) > float64(d)/tc.within || bucketOf(m, tc.resolution) != bucket || bucket < previous {
					t.Errorf("%d is in bucket %d of the middle %d, after %d", d, bucket, m, previous)
				}
				previous = bucket
			}
		}
		if most := bucketOf(math.MaxInt64, tc.resolution); most > tc.most {
			t.Errorf("%d buckets", most)
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

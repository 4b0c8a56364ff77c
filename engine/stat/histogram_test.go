package stat

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

func hist(count float64, cumulative ...float64) *Histogram {
	return &Histogram{Bounds: []float64{0.1, 0.5, 1, math.Inf(1)}, Cumulative: cumulative, Count: count, Sum: count / 2, OK: true}
}

func delta(t *testing.T, a, b *Histogram) Delta {
	t.Helper()
	var d Delta
	d.Set(a, b)
	return d
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Delta
		q    float64
		want Opt
	}{
		{"inside a bucket, linear", delta(t, hist(0, 0, 0, 0, 0), hist(100, 0, 100, 100, 100)), 0.99, Some(0.1 + 0.4*0.99)},
		{"first bucket starts at zero", delta(t, hist(0, 0, 0, 0, 0), hist(10, 10, 10, 10, 10)), 0.5, Some(0.05)},
		{"overflow is the last finite bound", delta(t, hist(0, 0, 0, 0, 0), hist(10, 0, 0, 0, 10)), 0.99, Some(1)},
		{"nothing observed", delta(t, hist(10, 1, 2, 3, 10), hist(10, 1, 2, 3, 10)), 0.99, None},
		{"only what the window gained counts", delta(t, hist(1000, 1000, 1000, 1000, 1000), hist(1010, 1000, 1000, 1010, 1010)), 0.5, Some(0.75)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.d.Quantile(c.q)
			if got.OK != c.want.OK || math.Abs(got.V-c.want.V) > 1e-12 {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestDeltaIsAbsentWhereItWouldMislead(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b *Histogram
	}{
		{"a count fell", hist(10, 1, 2, 3, 10), hist(5, 1, 2, 3, 5)},
		{"a bucket fell", hist(10, 5, 5, 5, 10), hist(11, 1, 5, 5, 11)},
		{"absent before", &Histogram{}, hist(5, 1, 2, 3, 5)},
		{"buckets changed", &Histogram{Bounds: []float64{1, math.Inf(1)}, Cumulative: []float64{1, 1}, Count: 1, OK: true}, hist(5, 1, 2, 3, 5)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := delta(t, c.a, c.b); d.OK {
				t.Errorf("got %+v, want absent", d)
			}
		})
	}
}

func TestMergeSumsCountsAndNeverAveragesQuantiles(t *testing.T) {
	// A window of 99 fast requests and one of a single slow one: their p99s
	// average to 0.55, the true one of all 100 is in the fast bucket.
	fast := delta(t, hist(0, 0, 0, 0, 0), hist(99, 99, 99, 99, 99))
	slow := delta(t, hist(0, 0, 0, 0, 0), hist(1, 0, 0, 1, 1))
	fast.Merge(&slow)
	got := fast.Quantile(0.99)
	if !got.OK || got.V > 0.1 {
		t.Errorf("merged p99 = %v, want at most 0.1", got)
	}
	other := Delta{Bounds: []float64{0.2, math.Inf(1)}, Counts: []float64{5, 0}, Count: 5, OK: true}
	fast.Merge(&other)
	if fast.Count != 105 || len(fast.Bounds) != 5 {
		t.Errorf("merge over other bounds gave %+v", fast)
	}
}

// TestLengthBiasedMean compares the bound with the true value of lengths, of which the histogram keeps counts and a sum.
func TestLengthBiasedMean(t *testing.T) {
	for _, c := range []struct {
		name    string
		lengths []float64
		want    Opt
	}{
		// The sum allows only one solution: each at the bound of its bucket.
		{"equal lengths at a bound", []float64{0.5, 0.5, 0.5}, Some(0.5)},
		// 98 short ones and two long ones. The long ones fill their bucket to its bound; the remaining 4.9 of the sum are squared
		// at 0.1 at most.
		{"a shelf", append(slices.Repeat([]float64{0.05}, 98), 1, 1), Some((2 + 4.9*0.1) / 6.9)},
		{"nothing observed", nil, None},
		{"beyond the last bound", []float64{0.2, 7}, None},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Delta{Bounds: []float64{0.1, 0.5, 1, math.Inf(1)}, Counts: make([]float64, 4), OK: true}
			squares := 0.0
			for _, x := range c.lengths {
				i := 0
				for x > d.Bounds[i] {
					i++
				}
				d.Counts[i]++
				d.Sum += x
				d.Count++
				squares += x * x
			}
			got := d.LengthBiasedMean()
			if got.OK != c.want.OK || math.Abs(got.V-c.want.V) > 1e-9 {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got.OK && got.V < squares/d.Sum-1e-9 {
				t.Errorf("got %v, below the true %v", got.V, squares/d.Sum)
			}
		})
	}
}

func TestOptJSON(t *testing.T) {
	b, err := json.Marshal([]Opt{None, Some(0)})
	if err != nil || string(b) != "[null,0]" {
		t.Fatalf("got %s, %v: absent is null, zero is 0", b, err)
	}
	var back []Opt
	if err := json.Unmarshal(b, &back); err != nil || back[0] != None || back[1] != Some(0) {
		t.Errorf("read back %v, %v", back, err)
	}
}

package chart_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// lasting returns consecutive samples with the given lengths in milliseconds.
func lasting(from int, list ...[2]float64) []chart.Sample {
	var out []chart.Sample
	at := time.Duration(from) * time.Millisecond
	for _, x := range list {
		to := at + time.Duration(x[0])*time.Millisecond
		out = append(out, chart.Sample{From: at, To: to, V: stat.Some(x[1])})
		at = to
	}
	return out
}

func TestBuckets(t *testing.T) {
	two := chart.Span{N: 4, Step: 2 * time.Second}
	four := chart.Span{N: 2, Step: 4 * time.Second}
	down := lasting(0, [2]float64{2000, 1}, [2]float64{2000, 2})
	down = append(down, lasting(6000, [2]float64{2000, 3})...)
	for _, c := range []struct {
		name    string
		span    chart.Span
		fold    chart.Fold
		samples []chart.Sample
		want    []stat.Opt
	}{
		{"one sample a bucket", two, chart.Mean, lasting(0, [2]float64{2000, 1}, [2]float64{2000, 2}, [2]float64{2000, 3}, [2]float64{2000, 4}), some(1, 2, 3, 4)},
		{"nothing measured is a gap", two, chart.Mean, down, some(1, 2, gap, 3)},
		{"samples a little longer leave no false gap", two, chart.Max, lasting(980, [2]float64{2020, 1}, [2]float64{2020, 2}, [2]float64{2020, 3}), some(1, 2, 2, 3)},
		{"the highest", four, chart.Max, lasting(0, [2]float64{2000, 5}, [2]float64{2000, 1}, [2]float64{2000, 2}, [2]float64{2000, 3}), some(5, 3)},
		{"the mean", four, chart.Mean, lasting(0, [2]float64{2000, 5}, [2]float64{2000, 1}, [2]float64{2000, 2}, [2]float64{2000, 3}), some(3, 2.5)},
		{"the last", four, chart.Last, lasting(0, [2]float64{2000, 5}, [2]float64{2000, 1}, [2]float64{2000, 2}, [2]float64{2000, 3}), some(1, 3)},
		{"a sample as long as two buckets", two, chart.Last, lasting(0, [2]float64{4000, 7}), some(7, 7, gap, gap)},
		{"outside of the span", chart.Span{First: 10, N: 2, Step: 2 * time.Second}, chart.Last, lasting(0, [2]float64{2000, 5}), some(gap, gap)},
		{"nothing", two, chart.Mean, nil, some(gap, gap, gap, gap)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, chart.Buckets(c.span, c.fold, c.samples)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNewSpan(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to time.Duration
		columns  int
		want     chart.Span
	}{
		{"a short run fills the width too", 0, 20 * time.Second, 60, chart.Span{N: 50, Step: 400 * time.Millisecond}},
		{"full", 0, 2 * time.Minute, 60, chart.Span{N: 60, Step: 2 * time.Second}},
		{"one more column and they get longer", 0, 122 * time.Second, 60, chart.Span{N: 41, Step: 3 * time.Second}},
		{"an hour", 0, time.Hour, 60, chart.Span{N: 60, Step: time.Minute}},
		{"what was let go at the beginning", time.Hour, 2 * time.Hour, 60, chart.Span{First: 60, N: 60, Step: time.Minute}},
		{"aligned to the buckets, not to what is shown", 3 * time.Second, 9 * time.Second, 4, chart.Span{First: 2, N: 4, Step: 1500 * time.Millisecond}},
		{"a year", 0, 365 * 24 * time.Hour, 60, chart.Span{N: 53, Step: 7 * 24 * time.Hour}},
		{"no room", 0, time.Hour, 0, chart.Span{Step: time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := chart.NewSpan(c.from, c.to, c.columns); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestEvery(t *testing.T) {
	for _, c := range []struct{ step, want time.Duration }{
		{2 * time.Second, 30 * time.Second}, {4 * time.Second, time.Minute}, {8 * time.Second, 2 * time.Minute}, {time.Minute, 10 * time.Minute}, {30 * 24 * time.Hour, 301 * 24 * time.Hour},
	} {
		if got := chart.TickStep(chart.Span{Step: c.step, N: 60}, 10); got != c.want {
			t.Errorf("every column %v: ticks every %v, want %v", c.step, got, c.want)
		}
	}
}

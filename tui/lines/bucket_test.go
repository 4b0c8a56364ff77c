package lines_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// lasting returns consecutive samples with the given lengths in milliseconds.
func lasting(from int, list ...[2]float64) []lines.Sample {
	var out []lines.Sample
	at := time.Duration(from) * time.Millisecond
	for _, x := range list {
		to := at + time.Duration(x[0])*time.Millisecond
		out = append(out, lines.Sample{From: at, To: to, V: stat.Some(x[1])})
		at = to
	}
	return out
}

func TestBuckets(t *testing.T) {
	two := lines.Span{N: 4, Step: 2 * time.Second}
	four := lines.Span{N: 2, Step: 4 * time.Second}
	down := lasting(0, [2]float64{2000, 1}, [2]float64{2000, 2})
	down = append(down, lasting(6000, [2]float64{2000, 3})...)
	for _, c := range []struct {
		name    string
		span    lines.Span
		fold    lines.Fold
		samples []lines.Sample
		want    []stat.Opt
	}{
		{"one sample a bucket", two, lines.Mean, lasting(0, [2]float64{2000, 1}, [2]float64{2000, 2}, [2]float64{2000, 3}, [2]float64{2000, 4}), some(1, 2, 3, 4)},
		{"nothing measured is a gap", two, lines.Mean, down, some(1, 2, gap, 3)},
		{"samples a little longer leave no false gap", two, lines.Max, lasting(980, [2]float64{2020, 1}, [2]float64{2020, 2}, [2]float64{2020, 3}), some(1, 2, 2, 3)},
		{"the highest", four, lines.Max, lasting(0, [2]float64{2000, 5}, [2]float64{2000, 1}, [2]float64{2000, 2}, [2]float64{2000, 3}), some(5, 3)},
		{"the mean", four, lines.Mean, lasting(0, [2]float64{2000, 5}, [2]float64{2000, 1}, [2]float64{2000, 2}, [2]float64{2000, 3}), some(3, 2.5)},
		{"the last", four, lines.Last, lasting(0, [2]float64{2000, 5}, [2]float64{2000, 1}, [2]float64{2000, 2}, [2]float64{2000, 3}), some(1, 3)},
		{"a sample as long as two buckets", two, lines.Last, lasting(0, [2]float64{4000, 7}), some(7, 7, gap, gap)},
		{"outside of the span", lines.Span{First: 10, N: 2, Step: 2 * time.Second}, lines.Last, lasting(0, [2]float64{2000, 5}), some(gap, gap)},
		{"nothing", two, lines.Mean, nil, some(gap, gap, gap, gap)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines.Buckets(c.span, c.fold, c.samples)); diff != "" {
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
		want     lines.Span
	}{
		{"a short run fills the width too", 0, 20 * time.Second, 60, lines.Span{N: 50, Step: 400 * time.Millisecond}},
		{"full", 0, 2 * time.Minute, 60, lines.Span{N: 60, Step: 2 * time.Second}},
		{"one more column and they get longer", 0, 122 * time.Second, 60, lines.Span{N: 41, Step: 3 * time.Second}},
		{"an hour", 0, time.Hour, 60, lines.Span{N: 60, Step: time.Minute}},
		{"what was let go at the beginning", time.Hour, 2 * time.Hour, 60, lines.Span{First: 60, N: 60, Step: time.Minute}},
		{"aligned to the buckets, not to what is shown", 3 * time.Second, 9 * time.Second, 4, lines.Span{First: 2, N: 4, Step: 1500 * time.Millisecond}},
		{"a year", 0, 365 * 24 * time.Hour, 60, lines.Span{N: 53, Step: 7 * 24 * time.Hour}},
		{"no room", 0, time.Hour, 0, lines.Span{Step: time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lines.NewSpan(c.from, c.to, c.columns); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

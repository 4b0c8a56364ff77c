package lines

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Fold is how several values are combined in one column. The title of a chart names it.
type Fold uint8

// Folds: Max for latencies and queues, Mean for rates and shares, Last for gauges, Min for what
// must not fall.
const (
	Max Fold = iota
	Mean
	Last
	Min
)

// String returns the fold as a word for a title.
func (f Fold) String() string { return [...]string{"max", "mean", "last", "min"}[f] }

// Sample is the value of a time range.
type Sample struct {
	From, To time.Duration
	V        stat.Opt
}

// Span is a row of N buckets of equal duration. Bucket i begins at (First+i)·Step. Buckets are
// aligned to time 0, not to the visible range, so that a chart moves by whole columns and finished
// columns do not change while it moves.
type Span struct {
	First int
	N     int
	Step  time.Duration
}

// steps are the possible durations of buckets in seconds: close enough to each other that a chart
// is at least half full, far enough apart that it changes them rarely.
var steps = [...]float64{0.1, 0.2, 0.25, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 14400, 21600, 43200, 86400}

// NewSpan returns the buckets that show from..to in at most that many columns: the shortest that
// fit. A sample longer than a bucket fills several. It is empty if there is no room.
func NewSpan(from, to time.Duration, columns int) Span {
	if columns <= 0 || to < from {
		return Span{Step: time.Second}
	}
	at := func(step time.Duration) Span {
		first, last := bucket(from, step), bucket(to, step)
		if last > first && to == time.Duration(last)*step {
			last-- // a range that ends with a bucket does not begin the next one
		}
		return Span{First: first, N: last - first + 1, Step: step}
	}
	for _, s := range steps {
		if span := at(time.Duration(s * float64(time.Second))); span.N <= columns {
			return span
		}
	}
	day := 24 * time.Hour
	return at(day * (1 + (to-from)/day/time.Duration(max(1, columns-1))))
}

// Latest returns n buckets, the last of which contains the time just before to.
func Latest(to, step time.Duration, n int) Span {
	step = max(step, time.Millisecond)
	last := bucket(to-1, step)
	return Span{First: last - max(0, n) + 1, N: max(0, n), Step: step}
}

// At returns the column of a time, which may be outside the span.
func (s Span) At(t time.Duration) int { return bucket(t, s.Step) - s.First }

// Start returns the start time of column i.
func (s Span) Start(i int) time.Duration { return time.Duration(s.First+i) * s.Step }

func bucket(t, step time.Duration) int {
	return int(math.Floor(float64(t) / float64(max(1, step))))
}

// Buckets combines samples, oldest first, into the columns of a span. A sample counts in the bucket
// of its middle and in every bucket that it covers by at least half, so that samples slightly
// longer than the buckets leave no false gap.
func Buckets(s Span, f Fold, samples []Sample) []stat.Opt {
	out := make([]stat.Opt, s.N)
	count := make([]float64, s.N)
	for _, x := range samples {
		if !x.V.Finite().OK {
			continue
		}
		middle := s.At(x.From + (x.To-x.From)/2)
		first, last := max(0, s.At(x.From)), min(s.N-1, s.At(x.To))
		for i := first; i <= last; i++ {
			covered := min(x.To, s.Start(i+1)) - max(x.From, s.Start(i))
			if i == middle || 2*covered >= s.Step {
				out[i] = f.add(out[i], x.V.V, count[i])
				count[i]++
			}
		}
	}
	return out
}

// add combines v with o, the result of n values.
func (f Fold) add(o stat.Opt, v, n float64) stat.Opt {
	switch {
	case !o.OK || f == Last || f == Max && v > o.V || f == Min && v < o.V:
		return stat.Some(v)
	case f == Mean:
		return stat.Some(o.V + (v-o.V)/(n+1))
	}
	return o
}

// tickSteps are the distances between ticks of a time axis, in seconds.
var tickSteps = [...]int{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400}

// TickStep returns the distance between ticks on a time axis: a round number of seconds, minutes or
// hours that is at least apart columns wide.
func TickStep(s Span, apart int) time.Duration {
	for _, e := range tickSteps {
		if every := time.Duration(e) * time.Second; every >= time.Duration(apart)*s.Step {
			return every
		}
	}
	day := 24 * time.Hour
	return day * (1 + time.Duration(apart)*s.Step/day)
}

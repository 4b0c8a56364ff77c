package chart

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Fold says how several values become one column. A chart's title names it.
type Fold uint8

// Folds: the highest for latencies and queues, the mean for rates and shares, the
// last for gauges.
const (
	Max Fold = iota
	Mean
	Last
)

// String returns the word for a title.
func (f Fold) String() string { return [...]string{"max", "mean", "last"}[f] }

// Sample is a value over a stretch of time.
type Sample struct {
	From, To time.Duration
	V        stat.Opt
}

// Span is a row of N buckets of time of one length: bucket i holds the times from
// (First+i)·Step on. Buckets are counted from time 0, not from what is shown, so
// that a chart moves by whole columns and what it shows does not change on the way.
type Span struct {
	First int
	N     int
	Step  time.Duration
}

// steps are the lengths of buckets in seconds: close enough to each other that a
// chart is at least half full, far enough apart that it changes them rarely.
var steps = [...]int{1, 2, 4, 6, 8, 10, 12, 15, 20, 30, 40, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 14400, 21600, 43200, 86400}

// NewSpan returns the buckets that show from..to in at most columns: the shortest
// that are not shorter than a sample and fit. It begins with from's bucket and
// ends with to's, and is empty where there is no room.
func NewSpan(from, to, sample time.Duration, columns int) Span {
	if columns <= 0 || to < from {
		return Span{Step: time.Second}
	}
	at := func(step time.Duration) Span {
		first, last := bucket(from, step), bucket(to, step)
		if last > first && to == time.Duration(last)*step {
			last-- // what ends with a bucket does not begin the next
		}
		return Span{First: first, N: last - first + 1, Step: step}
	}
	for _, s := range steps {
		step := time.Duration(s) * time.Second
		if 5*step < 4*sample { // a little longer than announced is still of this length
			continue
		}
		if span := at(step); span.N <= columns {
			return span
		}
	}
	day := 24 * time.Hour
	return at(day * (1 + (to-from)/day/time.Duration(max(1, columns-1))))
}

// Latest returns the n buckets of one step that end with the one before or at to.
func Latest(to, step time.Duration, n int) Span {
	step = max(step, time.Millisecond)
	last := bucket(to-1, step)
	return Span{First: last - max(0, n) + 1, N: max(0, n), Step: step}
}

// At returns the column of a time, which may lie outside of the span.
func (s Span) At(t time.Duration) int { return bucket(t, s.Step) - s.First }

// Start returns when column i begins.
func (s Span) Start(i int) time.Duration { return time.Duration(s.First+i) * s.Step }

func bucket(t, step time.Duration) int {
	return int(math.Floor(float64(t) / float64(max(1, step))))
}

// Buckets folds samples, oldest first, into the columns of a span. A sample counts
// in the bucket of its middle, and in every bucket of which it covers half: samples
// a little longer than the buckets leave no false gap.
func Buckets(s Span, f Fold, samples []Sample) []stat.Opt {
	out := make([]stat.Opt, s.N)
	count := make([]float64, s.N)
	for _, x := range samples {
		if !present(x.V) {
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

// add folds v into what n values made.
func (f Fold) add(o stat.Opt, v, n float64) stat.Opt {
	switch {
	case !o.OK || f == Last || f == Max && v > o.V:
		return stat.Some(v)
	case f == Mean:
		return stat.Some(o.V + (v-o.V)/(n+1))
	}
	return o
}

// rounds are the distances of ticks that people count time in, in seconds.
var rounds = [...]int{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400}

// Every returns the distance of ticks on an axis of time, a round number of
// seconds, minutes or hours, such that they stand at least apart columns apart.
func Every(s Span, apart int) time.Duration {
	for _, e := range rounds {
		if every := time.Duration(e) * time.Second; every >= time.Duration(apart)*s.Step {
			return every
		}
	}
	day := 24 * time.Hour
	return day * (1 + time.Duration(apart)*s.Step/day)
}

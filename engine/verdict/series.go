package verdict

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxPlausible is the largest plausible count, length or duration: a larger one is a fault of its
// counter.
const maxPlausible = 1e12

// plausible reports whether a value is plausible.
func plausible(v float64) bool { return v >= 0 && v <= maxPlausible }

// clean returns an optional value, absent if it is implausible.
func clean(o stat.Opt) stat.Opt {
	if !o.OK || !plausible(o.V) {
		return stat.None
	}
	return o
}

// start is the measurements after one start of the server, prepared for judging.
type start struct {
	slices []Slice
	// moments numbers the slices if both sides were measured at the same time; others is then the
	// throughput of all other starts at each moment, relative to their means.
	moments []int
	others  []float64

	steady Steadiness
	time   float64 // seconds
	// weight is the share of the start in its side; factor scales its sums accordingly.
	weight, factor float64
}

// sample is a side prepared for judging.
type sample struct {
	starts []start
	time   float64 // judged seconds, of all starts together
	lasted float64 // seconds from the first judged slice to the last, without gaps
	cost   stat.Opt
	host   Host
	limit  Limit
	load   load
	spread float64 // sum of the squared weights, by which the variance of restarts is multiplied

	moments int // number of moments if both sides were measured at the same time

	columns   []column
	estimates []estimate // of the columns
}

// column is the contribution of each slice to one measure of a side: the logarithm of a ratio of
// two sums, or a share of observations.
type column struct {
	value     stat.Opt    // of the side
	count     float64     // observations
	influence [][]float64 // by start and slice: contribution to the estimate
}

// estimate is the value of a column with its error.
type estimate struct {
	value    stat.Opt
	count    float64
	variance float64 // of the logarithm, or of the share
	dof      float64
}

// prepare converts a side to a sample: slices with a duration and plausible numbers, in order.
func prepare(s *Side) *sample {
	out := &sample{}
	if s == nil {
		return out
	}
	out.cost, out.host = clean(s.CostPerHour), Host{Wait: clean(s.Host.Wait), Others: clean(s.Host.Others)}
	for _, l := range s.Incarnations {
		var slices []Slice
		for i := range l {
			if v := &l[i]; v.Length > 0 && v.Length < 100*time.Hour {
				slices = append(slices, scrub(v))
			}
		}
		if len(slices) == 0 {
			continue
		}
		out.starts = append(out.starts, start{slices: slices})
	}
	return out
}

// cutWarmUp cuts off the warm-up of each start.
func (s *sample) cutWarmUp() {
	for i := range s.starts {
		s.starts[i].cutWarmUp()
	}
	s.setJudged()
}

// setJudged sets how much of a side is judged.
func (s *sample) setJudged() {
	s.time = 0
	for i := range s.starts {
		l := &s.starts[i]
		l.time, l.steady.Used = 0, len(l.slices)
		for j := range l.slices {
			l.time += l.slices[j].Length.Seconds()
		}
		s.time += l.time
	}
	s.lasted = s.time
}

// scrub returns a slice without implausible numbers.
func scrub(s *Slice) Slice {
	c := *s
	for _, v := range [...]*stat.Opt{&c.Tokens, &c.Prompt, &c.Computed, &c.Finished, &c.Hits, &c.Queries, &c.Running, &c.Waiting, &c.StepTime, &c.KV, &c.Preempts, &c.Power} {
		*v = clean(*v)
	}
	for _, d := range [...]*stat.Delta{&c.TTFT, &c.ITL, &c.TPOT, &c.E2E, &c.PromptLen, &c.OutputLen} {
		if !plausibleDelta(d) {
			*d = stat.Delta{}
		}
	}
	return c
}

// plausibleDelta reports whether the delta of a histogram is plausible.
func plausibleDelta(d *stat.Delta) bool {
	if !d.OK || !plausible(d.Sum) || !plausible(d.Count) || len(d.Bounds) != len(d.Counts) {
		return false
	}
	for i, n := range d.Counts {
		if !plausible(n) || math.IsNaN(d.Bounds[i]) || i > 0 && d.Bounds[i] <= d.Bounds[i-1] {
			return false
		}
	}
	return true
}

// weigh sets the weight of each start. The mean with the least variance weights each by the
// inverse of its own (Cochran, J. R. Stat. Soc. Suppl. 4, 1937): the variance of restarts, which
// measuring does not reduce, plus that of the slices, which decreases with time. scatter is the
// relative variance of one second.
func (s *sample) weigh(restart, scatter float64) {
	sum := 0.0
	for i := range s.starts {
		l := &s.starts[i]
		l.weight = l.time
		if restart > 0 {
			l.weight = 1 / (restart*restart + scatter/l.time)
		}
		sum += l.weight
	}
	s.spread = 0
	for i := range s.starts {
		l := &s.starts[i]
		l.weight /= sum
		l.factor = l.weight * s.time / l.time
		s.spread += l.weight * l.weight
	}
}

// ratio returns what a slice adds to the two sums of a measure; ok is false if it was not read.
type ratio func(*Slice) (over, under float64, ok bool)

// sum returns the two sums of a ratio over all starts, and the number of observations.
func (s *sample) sum(f ratio) (over, under, count float64) {
	for i := range s.starts {
		l := &s.starts[i]
		for j := range l.slices {
			if o, u, ok := f(&l.slices[j]); ok {
				over += l.factor * o
				under += l.factor * u
				count += u
			}
		}
	}
	return over, under, count
}

// ratio adds a measure that is a ratio of sums, and returns its column.
func (s *sample) ratio(f ratio) int {
	over, under, count := s.sum(f)
	c := column{count: count}
	if under > 0 && plausible(over/under) {
		c.value = stat.Some(over / under)
	}
	if c.value.OK && over > 0 {
		c.influence = s.influence(func(l *start, v *Slice) float64 {
			o, u, ok := f(v)
			if !ok {
				return 0
			}
			return l.factor * (o/over - u/under)
		})
	}
	s.columns = append(s.columns, c)
	return len(s.columns) - 1
}

func (s *sample) influence(f func(*start, *Slice) float64) [][]float64 {
	out := make([][]float64, len(s.starts))
	for i := range s.starts {
		l := &s.starts[i]
		out[i] = make([]float64, len(l.slices))
		for j := range l.slices {
			out[i][j] = f(l, &l.slices[j])
		}
	}
	return out
}

// perSecond returns the ratio for a count per second.
func perSecond(pick func(*Slice) stat.Opt) ratio {
	return func(s *Slice) (float64, float64, bool) {
		v := pick(s)
		return v.V, s.Length.Seconds(), v.OK
	}
}

// timeMean returns the ratio for a mean over time.
func timeMean(pick func(*Slice) stat.Opt) ratio {
	return func(s *Slice) (float64, float64, bool) {
		v, t := pick(s), s.Length.Seconds()
		return v.V * t, t, v.OK
	}
}

// observationMean returns the ratio for a mean over observations.
func observationMean(pick func(*Slice) *stat.Delta) ratio {
	return func(s *Slice) (float64, float64, bool) {
		d := pick(s)
		return d.Sum, d.Count, d.OK
	}
}

// perCount returns the ratio for one count per another.
func perCount(a, b func(*Slice) stat.Opt) ratio {
	return func(s *Slice) (float64, float64, bool) {
		x, y := a(s), b(s)
		return x.V, y.V, x.OK && y.OK
	}
}

func tokens(s *Slice) stat.Opt   { return s.Tokens }
func finished(s *Slice) stat.Opt { return s.Finished }
func requestsInServer(s *Slice) stat.Opt {
	if !s.Running.OK || !s.Waiting.OK {
		return s.Running
	}
	return stat.Some(s.Running.V + s.Waiting.V)
}

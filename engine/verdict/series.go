package verdict

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// most is the largest count, length or duration that is taken for a measurement:
// what lies beyond is a fault of whoever counted.
const most = 1e12

// sane says whether a value can be a measurement.
func sane(v float64) bool { return v >= 0 && v <= most }

// clean returns an optional value, absent where it cannot be a measurement.
func clean(o stat.Opt) stat.Opt {
	if !o.OK || !sane(o.V) {
		return stat.None
	}
	return o
}

// life is one run of the server, as it is judged.
type life struct {
	slices []Slice
	steady Steadiness
	time   float64 // seconds
	// weight is the share that the life has in its side; factor is what its sums are
	// multiplied by so that it has it.
	weight, factor float64
}

// sample is a side as it is judged.
type sample struct {
	lives  []life
	time   float64 // seconds judged
	cost   stat.Opt
	busy   stat.Opt
	limit  Limit
	load   load
	spread float64 // sum of the squares of the weights: what restarts are divided by

	draws int
	seed  uint64
	// columns are the measures that are resampled together; estimates are theirs
	// once they are.
	columns   []column
	estimates []estimate
	parts     [][]float64 // variance by life and column
	dofs      []float64   // by life
}

// column is what one measure of a side takes from each slice: the logarithm of a
// ratio of two sums, or a share of observations.
type column struct {
	value     stat.Opt    // of the side
	count     float64     // observations
	influence [][]float64 // by life and slice: what it adds to the estimate
}

// estimate is a column with its error.
type estimate struct {
	value    stat.Opt
	count    float64
	variance float64 // of the logarithm, or of the share
	dof      float64
}

// prepare takes over what can be judged of a side: slices with a length and sane
// numbers, in their order, without their warm-up.
func prepare(s *Side, draws int, seed uint64) *sample {
	out := &sample{draws: draws, seed: seed}
	if s == nil {
		return out
	}
	out.cost, out.busy = clean(s.CostPerHour), clean(s.Busy)
	for _, l := range s.Lives {
		var slices []Slice
		for i := range l {
			if v := &l[i]; v.Length > 0 && v.Length < 100*time.Hour {
				slices = append(slices, scrub(v))
			}
		}
		if len(slices) == 0 {
			continue
		}
		one := life{slices: slices}
		one.settle()
		for i := range one.slices {
			one.time += one.slices[i].Length.Seconds()
		}
		out.time += one.time
		out.lives = append(out.lives, one)
	}
	return out
}

// scrub returns a slice without the numbers that no measurement gives.
func scrub(s *Slice) Slice {
	c := *s
	for _, v := range [...]*stat.Opt{&c.Tokens, &c.Prompt, &c.Computed, &c.Finished, &c.Hits, &c.Queries, &c.Running, &c.Waiting, &c.StepTime, &c.KV, &c.Preempts, &c.Power} {
		*v = clean(*v)
	}
	for _, d := range [...]*stat.Delta{&c.TTFT, &c.ITL, &c.TPOT, &c.E2E, &c.PromptLen, &c.OutputLen} {
		if !whole(d) {
			*d = stat.Delta{}
		}
	}
	return c
}

// whole says whether a histogram's difference can be one.
func whole(d *stat.Delta) bool {
	if !d.OK || !sane(d.Sum) || !sane(d.Count) || len(d.Bounds) != len(d.Counts) {
		return false
	}
	for i, n := range d.Counts {
		if !sane(n) || math.IsNaN(d.Bounds[i]) || i > 0 && d.Bounds[i] <= d.Bounds[i-1] {
			return false
		}
	}
	return true
}

// weigh gives each life its share. The mean of lives with the least variance gives
// each the inverse of its own (Cochran, J. R. Stat. Soc. Suppl. 4, 1937): what a
// restart adds, which no measuring narrows, and what the slices' scatter adds,
// which falls with time. Scatter is relative, of one second.
func (s *sample) weigh(restart, scatter float64) {
	sum := 0.0
	for i := range s.lives {
		l := &s.lives[i]
		l.weight = l.time
		if restart > 0 {
			l.weight = 1 / (restart*restart + scatter/l.time)
		}
		sum += l.weight
	}
	s.spread = 0
	for i := range s.lives {
		l := &s.lives[i]
		l.weight /= sum
		l.factor = l.weight * s.time / l.time
		s.spread += l.weight * l.weight
	}
}

// ratio is what a slice adds to the two sums of a measure; false where it was not
// read.
type ratio func(*Slice) (over, under float64, ok bool)

// sum returns the two sums of a ratio over all lives, and what it was taken from.
func (s *sample) sum(f ratio) (over, under, count float64) {
	for i := range s.lives {
		l := &s.lives[i]
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

// ratio adds a measure that is a ratio of sums and returns its place.
func (s *sample) ratio(f ratio) int {
	over, under, count := s.sum(f)
	c := column{count: count}
	if under > 0 && sane(over/under) {
		c.value = stat.Some(over / under)
	}
	if c.value.OK && over > 0 {
		c.influence = s.influence(func(l *life, v *Slice) float64 {
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

func (s *sample) influence(f func(*life, *Slice) float64) [][]float64 {
	out := make([][]float64, len(s.lives))
	for i := range s.lives {
		l := &s.lives[i]
		out[i] = make([]float64, len(l.slices))
		for j := range l.slices {
			out[i][j] = f(l, &l.slices[j])
		}
	}
	return out
}

// over is a count per second.
func over(pick func(*Slice) stat.Opt) ratio {
	return func(s *Slice) (float64, float64, bool) {
		v := pick(s)
		return v.V, s.Length.Seconds(), v.OK
	}
}

// mean is a mean over time.
func mean(pick func(*Slice) stat.Opt) ratio {
	return func(s *Slice) (float64, float64, bool) {
		v, t := pick(s), s.Length.Seconds()
		return v.V * t, t, v.OK
	}
}

// each is a mean over observations.
func each(pick func(*Slice) *stat.Delta) ratio {
	return func(s *Slice) (float64, float64, bool) {
		d := pick(s)
		return d.Sum, d.Count, d.OK
	}
}

// per is one count per another.
func per(a, b func(*Slice) stat.Opt) ratio {
	return func(s *Slice) (float64, float64, bool) {
		x, y := a(s), b(s)
		return x.V, y.V, x.OK && y.OK
	}
}

func tokens(s *Slice) stat.Opt   { return s.Tokens }
func finished(s *Slice) stat.Opt { return s.Finished }
func inside(s *Slice) stat.Opt {
	if !s.Running.OK || !s.Waiting.OK {
		return s.Running
	}
	return stat.Some(s.Running.V + s.Waiting.V)
}

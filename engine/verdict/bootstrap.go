package verdict

import (
	"math"
	"math/rand/v2"
)

// resample fills in the estimates of all columns, with variances from one
// stationary bootstrap of all together (Politis & Romano, J. Am. Stat. Assoc. 89,
// 1994): blocks of slices of geometric length, begun anywhere, the end joined to
// the beginning. Each life is resampled by itself, since a restart ends every
// dependence. Sums over blocks are differences of running sums, so that a resample
// costs its blocks and not its slices.
func (s *sample) resample() {
	s.estimates = make([]estimate, len(s.columns))
	for i := range s.columns {
		s.estimates[i] = estimate{value: s.columns[i].value, count: s.columns[i].count}
	}
	worth := make([]float64, len(s.columns)) // of Satterthwaite's formula: sum of variance²/dof
	for i := range s.lives {
		variances, dof := s.vary(i)
		s.parts, s.dofs = append(s.parts, variances), append(s.dofs, dof)
		for j, v := range variances {
			s.estimates[j].variance += v
			worth[j] += v * v / dof
		}
	}
	for j := range s.estimates {
		e := &s.estimates[j]
		e.dof = 1
		if worth[j] > 0 {
			e.dof = e.variance * e.variance / worth[j]
		}
	}
}

// vary returns the variance that a life gives each column, and the degrees of
// freedom that each is worth.
//
// A stationary bootstrap's variance has itself a variance of 2·block/n of its
// square (Patton, Politis & White 2009): n/block degrees of freedom, less the one
// that the mean takes. Recentring on the mean of few blocks loses one block's share
// of the variance, which is put back.
func (s *sample) vary(at int) (variances []float64, dof float64) {
	l := &s.lives[at]
	n := len(l.slices)
	variances = make([]float64, len(s.columns))
	length := float64(max(1, l.steady.Block))
	dof = max(1, float64(n)/length-1)
	if n < 2 {
		for j := range variances { // one slice says nothing of its scatter
			if len(s.columns[j].influence) > 0 {
				variances[j] = l.weight * l.weight
			}
		}
		return variances, dof
	}
	// Only columns that vary are carried along.
	var live []int
	for j := range s.columns {
		if len(s.columns[j].influence) > 0 {
			live = append(live, j)
		}
	}
	k := len(live)
	sums := make([]float64, (2*n+1)*k)
	for i := range 2 * n {
		for j, column := range live {
			sums[(i+1)*k+j] = sums[i*k+j] + s.columns[column].influence[at][i%n]
		}
	}
	whole := sums[n*k : n*k+k]
	total, squares := make([]float64, k), make([]float64, k)
	source := rand.New(rand.NewPCG(s.seed, uint64(n)))
	scale := 0.0
	if length > 1 {
		scale = -1 / math.Log1p(-1/length) // an exponential of this mean, rounded up, is geometric
	}
	for range s.draws {
		clear(total)
		for left := n; left > 0; {
			take := min(left, 1+int(source.ExpFloat64()*scale))
			from := source.IntN(n)
			begin := sums[from*k:][:len(total)]
			end := sums[(from+take)*k:][:len(total)]
			for j := range total {
				total[j] += end[j] - begin[j]
			}
			left -= take
		}
		for j, t := range total {
			d := t - whole[j]
			squares[j] += d * d
		}
	}
	lost := float64(n) / (float64(n) - min(length, float64(n)/2))
	for j, column := range live {
		variances[column] = squares[j] * lost / float64(max(s.draws, 1))
	}
	return variances, dof
}

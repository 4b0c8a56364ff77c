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
	n, m := len(l.slices), len(s.columns)
	variances = make([]float64, m)
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
	sums := make([]float64, (2*n+1)*m)
	for i := range 2 * n {
		for j := range m {
			v := 0.0
			if f := s.columns[j].influence; len(f) > 0 {
				v = f[at][i%n]
			}
			sums[(i+1)*m+j] = sums[i*m+j] + v
		}
	}
	total := make([]float64, m)
	source := rand.New(rand.NewPCG(s.seed, uint64(n)))
	scale := 0.0
	if length > 1 {
		scale = 1 / math.Log1p(-1/length)
	}
	for range s.draws {
		clear(total)
		for left := n; left > 0; {
			take := 1
			if scale != 0 {
				take = min(left, 1+int(math.Log(1-source.Float64())*scale))
			}
			from := source.IntN(n)
			begin, end := sums[from*m:from*m+m], sums[(from+take)*m:(from+take)*m+m]
			for j := range total {
				total[j] += end[j] - begin[j]
			}
			left -= take
		}
		for j, t := range total {
			d := t - sums[n*m+j]
			variances[j] += d * d
		}
	}
	lost := float64(n) / (float64(n) - min(length, float64(n)/2))
	for j := range variances {
		variances[j] *= lost / float64(max(s.draws, 1))
	}
	return variances, dof
}

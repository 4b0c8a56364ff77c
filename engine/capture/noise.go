package capture

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// groups returns the means of each size neighbouring values; the last group includes the remainder.
// Requests in flight at the same time share the server's steps and stalls, so they are one
// observation of its noise, not many (batch means; Law and Carson, Operations Research 27, 1979).
func groups(list []float64, size int) []float64 {
	n := len(list) / size
	out := make([]float64, 0, n)
	for i := range n {
		end := (i + 1) * size
		if i == n-1 {
			end = len(list)
		}
		out = append(out, stat.Mean(list[i*size:end]).V)
	}
	return out
}

// logRatio returns the 95 % interval of log(mean y / mean x), relative to its value: Welch's
// interval with Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946). The variance of
// the logarithm of a mean is the variance of the mean divided by its square. Both means must be
// positive. ok is false if all values are equal.
func logRatio(x, y []float64) (low, high float64, ok bool) {
	nx, ny := independent(x), independent(y)
	vx, vy := relativeVariance(x)/nx, relativeVariance(y)/ny
	if !(vx+vy > leastVariance) {
		return 0, 0, false
	}
	dof := (vx + vy) * (vx + vy) / (vx*vx/max(1, nx-1) + vy*vy/max(1, ny-1))
	reach := stat.StudentQuantile(0.975, dof) * math.Sqrt(vx+vy)
	return -reach, reach, !math.IsNaN(reach)
}

// leastVariance is a relative standard deviation of 1e-9, squared: the rounding error of equal
// values.
const leastVariance = 1e-18

// relativeVariance returns the variance of values divided by the square of their mean.
func relativeVariance(list []float64) float64 {
	m := stat.Mean(list).V
	sum := 0.0
	for _, v := range list {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(list)-1) / (m * m)
}

// leastNeighbours leaves the correlation of neighbours with an uncertainty of about a third.
const leastNeighbours = 8

// independent returns the effective number of independent observations of correlated values: n
// (1-r)/(1+r) for a first-order process with correlation r of neighbours (Bayley and Hammersley,
// Supplement to the JRSS 8, 1946). The estimate of r is biased by -(1+3r)/n (Marriott and Pope,
// Biometrika 41, 1954), which is corrected. A negative correlation does not increase the number.
// With fewer than leastNeighbours values none is estimated.
func independent(list []float64) float64 {
	n, m := float64(len(list)), stat.Mean(list).V
	var own, next float64
	for i, v := range list {
		own += (v - m) * (v - m)
		if i > 0 {
			next += (v - m) * (list[i-1] - m)
		}
	}
	if !(own > 0) || len(list) < leastNeighbours {
		return n
	}
	r := next / own
	r = min(max(0, r+(1+3*r)/n), 1-2/n)
	return n * (1 - r) / (1 + r)
}

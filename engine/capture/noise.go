package capture

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// groups are the means of each size neighbouring values, the last group with what is
// left over. Requests that are under way together share the server's steps, and with
// them its stalls: they are one observation of its noise, not many (batch means; Law
// and Carson, Operations Research 27, 1979).
func groups(list []float64, size int) []float64 {
	n := len(list) / size
	out := make([]float64, 0, n)
	for i := range n {
		end := (i + 1) * size
		if i == n-1 {
			end = len(list)
		}
		out = append(out, meanOf(list[i*size:end]).V)
	}
	return out
}

// logRatio is how far the 95 % interval of log(mean y / mean x) reaches below and
// above its value: Welch's, with Satterthwaite's degrees of freedom (Biometrics
// Bulletin 2, 1946), the variance of a mean's logarithm being that of the mean over
// its square. Both means are positive. ok is false where nothing scatters.
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

// leastVariance is a relative scatter of 1e-9 squared: what rounding leaves of values
// that are all the same.
const leastVariance = 1e-18

// relativeVariance is the variance of values over the square of their mean.
func relativeVariance(list []float64) float64 {
	m := meanOf(list).V
	sum := 0.0
	for _, v := range list {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(list)-1) / (m * m)
}

// leastNeighbours leaves the correlation of neighbours an uncertainty of about a third.
const leastNeighbours = 8

// independent is as how many observations values count that resemble their
// neighbours: n (1-r)/(1+r) of a first-order process with that correlation of
// neighbours (Bayley and Hammersley, Supplement to the JRSS 8,
// 1946). The estimate of r is too low by (1+3r)/n (Marriott and Pope, Biometrika 41,
// 1954), which is put back. Neighbours that differ more than others count as no more,
// and of fewer than leastNeighbours values none can be told to resemble each other.
func independent(list []float64) float64 {
	n, m := float64(len(list)), meanOf(list).V
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

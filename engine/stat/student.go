package stat

import "math"

// StudentQuantile returns the p-quantile (0..1) of Student's t with dof degrees of freedom, which need
// not be an integer (Satterthwaite, Biometrics Bulletin 2, 1946). For +Inf it is the normal quantile.
// It is NaN for p outside 0..1 and for dof that is not positive.
func StudentQuantile(p, dof float64) float64 {
	switch {
	case !(p >= 0 && p <= 1) || !(dof > 0):
		return math.NaN()
	case p == 0:
		return math.Inf(-1)
	case p == 1:
		return math.Inf(1)
	case p < 0.5:
		return -StudentQuantile(1-p, dof)
	case p == 0.5:
		return 0
	}
	if dof > 1e6 {
		return math.Sqrt2 * math.Erfinv(2*p-1)
	}
	// Bisection of the tail in log t: it is monotone, and 80 halvings of
	// 1e-6..1e60 are beyond the precision of a float.
	scale := logScale(dof/2, 0.5)
	tail, low, high := 1-p, math.Log(1e-6), math.Log(1e60)
	for range 80 {
		middle := (low + high) / 2
		if middle == low || middle == high {
			break // neighbouring floats
		}
		if studentTail(math.Exp(middle), dof, scale) > tail {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp((low + high) / 2)
}

// studentTail returns the probability that Student's t exceeds t > 0: half the incomplete beta function
// at dof/(dof+t²) (Abramowitz & Stegun 26.7.1). scale is logScale(dof/2, 0.5).
func studentTail(t, dof, scale float64) float64 {
	return scaledBeta(dof/2, 0.5, dof/(dof+t*t), scale) / 2
}

// incompleteBeta returns the regularised incomplete beta function, by its continued fraction (Abramowitz
// & Stegun 26.5.8, evaluated by the method of Lentz 1976).
func incompleteBeta(a, b, x float64) float64 { return scaledBeta(a, b, x, logScale(a, b)) }

// logScale returns the logarithm of what scales the incomplete beta function to 1 at x = 1.
func logScale(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return lab - la - lb
}

func scaledBeta(a, b, x, scale float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	front := math.Exp(scale + a*math.Log(x) + b*math.Log1p(-x))
	if x > (a+1)/(a+b+2) {
		return 1 - front/b*betaFraction(b, a, 1-x)
	}
	return front / a * betaFraction(a, b, x)
}

func betaFraction(a, b, x float64) float64 {
	const tiny, enough, most = 1e-300, 1e-14, 500
	guard := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/guard(1-(a+b)*x/(a+1))
	h := d
	for i := 1; i <= most; i++ {
		m := float64(i)
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / guard(1+even*d)
		c = guard(1 + even/c)
		h *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / guard(1+odd*d)
		c = guard(1 + odd/c)
		step := d * c
		h *= step
		if math.Abs(step-1) < enough {
			break
		}
	}
	return h
}

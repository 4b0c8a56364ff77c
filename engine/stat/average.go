package stat

// Average accumulates a weighted mean. The zero value is empty.
type Average struct {
	Sum    float64 // of value times weight
	Weight float64 // of the values added
}

// Add adds a value with its weight. An absent value is ignored.
func (a *Average) Add(v Opt, weight float64) {
	if v.OK {
		a.Sum += v.V * weight
		a.Weight += weight
	}
}

// Mean returns the weighted mean, absent unless the total weight is above zero.
func (a *Average) Mean() Opt {
	if a.Weight <= 0 {
		return None
	}
	return Some(a.Sum / a.Weight)
}

// Line returns the mean of values and the slope of the least-squares line through them, per index.
func Line(values []float64) (mean, slope float64) {
	mean = Mean(values).Or(0)
	half := float64(len(values)-1) / 2
	sxy, sxx := 0.0, 0.0
	for i, v := range values {
		x := float64(i) - half
		sxy += x * (v - mean)
		sxx += x * x
	}
	if sxx == 0 {
		return mean, 0
	}
	return mean, sxy / sxx
}

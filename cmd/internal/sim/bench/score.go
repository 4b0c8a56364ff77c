package bench

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// ScoredPrediction is one recommendation with its predictions and the measured effects.
type ScoredPrediction struct {
	Scenario string
	Seed     uint64
	Step     int // 1 for the first change of a server, 2 for the one recommended after it, …
	Finding  string
	Advice   string // the flag or the kind of change
	Change   string // as it was made
	// HeldOut is set if the server is in the half that nothing is fitted on.
	HeldOut bool
	Scores  []Scored
	// Unscored is why the effect was not measured: the change cannot be tried, or the server does
	// not start with it. "" if it was measured.
	Unscored string
}

// Scored is a predicted change of one metric and the measured one, as ratios minus one; NaN for an
// end that is not predicted.
type Scored struct {
	Metric         string
	Low, Mid, High float64
	Measured       float64
}

// Error returns the ratio of the predicted level (the middle) to the measured one, minus one; NaN
// without a middle.
func (s *Scored) Error() float64 { return (1+s.Mid)/(1+s.Measured) - 1 }

// Whole reports whether the prediction has both ends and a middle.
func (s *Scored) Whole() bool { return !math.IsNaN(s.Low + s.Mid + s.High) }

// Covered reports whether the measured change is within the predicted ends.
func (s *Scored) Covered() bool { return !(s.Measured < s.Low) && !(s.Measured > s.High) }

// Score returns the score of a metric, nil if it was not predicted or not measured.
func (f *ScoredPrediction) Score(metric string) *Scored {
	for i := range f.Scores {
		if f.Scores[i].Metric == metric {
			return &f.Scores[i]
		}
	}
	return nil
}

// Scoreboard summarizes the predictions of one metric.
type Scoreboard struct {
	N      int // predictions with a middle and both ends
	Bounds int // predictions without a middle or with one end only
	// Error is the median absolute error of the middles, Bias the median error with its sign:
	// above 0 the predictions were too high. NaN without predictions.
	Error, Bias float64
	// Coverage is the share of whole predictions whose interval covers the measured change; Below
	// and Above are the shares measured below and above the interval.
	Coverage, Below, Above float64
	// BoundsCovered is the share of the predictions counted in Bounds that cover the measured
	// change.
	BoundsCovered float64
	Width         float64 // median of (1 + high)/(1 + low) - 1
}

// Score summarizes the predictions of a metric for which count returns true; nil means all.
func Score(list []ScoredPrediction, metric string, count func(*ScoredPrediction) bool) Scoreboard {
	var b Scoreboard
	var errs, signed, widths []float64
	covered, below, above, boundsHeld := 0, 0, 0, 0
	for i := range list {
		s := list[i].Score(metric)
		if s == nil || count != nil && !count(&list[i]) {
			continue
		}
		if !s.Whole() {
			b.Bounds++
			if s.Covered() {
				boundsHeld++
			}
			continue
		}
		b.N++
		errs, signed = append(errs, math.Abs(s.Error())), append(signed, s.Error())
		widths = append(widths, (1+s.High)/max(1e-9, 1+s.Low)-1)
		switch {
		case s.Covered():
			covered++
		case s.Measured < s.Low:
			below++
		default:
			above++
		}
	}
	part := func(n, of int) float64 { return stat.Ratio(n, of).Or(math.NaN()) }
	b.Error, b.Bias, b.Width = sortedMiddle(errs), sortedMiddle(signed), sortedMiddle(widths)
	b.Coverage, b.Below, b.Above = part(covered, b.N), part(below, b.N), part(above, b.N)
	b.BoundsCovered = part(boundsHeld, b.Bounds)
	return b
}

func sortedMiddle(v []float64) float64 {
	slices.Sort(v)
	return stat.NearestRank(v, 0.5).Or(math.NaN())
}

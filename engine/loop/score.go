package loop

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// score compares the predictions of the goal with their outcomes. It leaves out changes without
// a verdict, differences explained by the traffic, and predictions without both ends.
func score(list []Iteration) Score {
	var s Score
	var errors []float64
	for i := range list {
		goal, measured, ok := list[i].outcome()
		if !ok {
			continue
		}
		b := search.Gain(goal, list[i].Predicted)
		low, mid, high := search.Ratio(b.Low), search.Ratio(b.Mid), search.Ratio(b.High)
		if !low.OK || !high.OK {
			continue
		}
		s.Made++
		if measured >= low.V && measured <= high.V {
			s.Within++
		}
		if mid.OK {
			errors = append(errors, math.Abs((1+measured)/max(search.LeastFactor, 1+mid.V)-1))
		}
	}
	s.Error = stat.Median(errors)
	return s
}

// outcome returns the measured change of the goal as a ratio. ok is false if it was not measured, is too
// wide to test a prediction, or is not attributable to the change.
func (it *Iteration) outcome() (goal verdict.Goal, effect float64, ok bool) {
	d := it.Delta
	if d == nil || d.Direction == verdict.NotComparable || it.Noticed == SameSettings {
		return verdict.Throughput, 0, false
	}
	if v := d.Verdict; v != nil && v.Known {
		goal = v.Goal
		if goal == "" {
			goal = verdict.Throughput
		}
		return goal, v.Effect.Mid, !v.Effect.Wide()
	}
	return verdict.Throughput, d.Throughput.V, d.Throughput.OK
}

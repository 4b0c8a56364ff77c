package engine

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// score holds what was predicted of the goal against what was measured. Changes that
// were not judged, or whose difference the traffic explains, say nothing of it;
// neither does a prediction without both ends.
func score(list []Iteration) Score {
	var s Score
	var errors []float64
	for i := range list {
		goal, measured, ok := list[i].outcome()
		if !ok {
			continue
		}
		b := benefit(goal, list[i].Predicted)
		low, mid, high := ratioOf(b.low), ratioOf(b.mid), ratioOf(b.high)
		if !low.OK || !high.OK {
			continue
		}
		s.Made++
		if measured >= low.V && measured <= high.V {
			s.Within++
		}
		if mid.OK {
			errors = append(errors, math.Abs((1+measured)/max(leastFactor, 1+mid.V)-1))
		}
	}
	if len(errors) > 0 {
		s.Error = stat.Some(middle(errors))
	}
	return s
}

// outcome is what a change was measured to bring of the goal, as a ratio; ok is
// false where it was not measured, or says nothing of the change.
func (it *Iteration) outcome() (goal verdict.Goal, effect float64, ok bool) {
	d := it.Delta
	if d == nil || d.Direction == NotComparable || it.Noticed == SameSettings {
		return verdict.Throughput, 0, false
	}
	if v := d.Verdict; v != nil && v.Known {
		goal = v.Goal
		if goal == "" {
			goal = verdict.Throughput
		}
		return goal, v.Effect.Mid, true
	}
	return verdict.Throughput, d.Throughput.V, d.Throughput.OK
}

// middle is the median of at least one value; it sorts them.
func middle(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

package loop

import (
	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

func (p *Plan) goal() search.Goal { return search.NewGoal(p.Goal, p.Objectives, p.Precision) }

// pastTrials returns the trials of a run's iterations, oldest first, without changes whose
// measurement was cut short and restarts without a change.
func (h *history) pastTrials() []search.Trial {
	var out []search.Trial
	for i := range h.iterations {
		it := &h.iterations[i]
		changes := material(it.Changes)
		if it.Noticed == SameSettings || len(changes) == 0 {
			continue
		}
		t := search.Trial{Changes: changes, Predicted: it.Predicted, Before: it.Before, After: it.After}
		t.Effect, t.Noise = it.effect()
		switch {
		case it.End == IterationKept || it.End == IterationContinued:
			t.Ending = search.Gained
			for j := range out {
				for _, c := range changes {
					out[j].Since = append(out[j].Since, c.Flag)
				}
			}
		case it.End == IterationBroken && it.Failure != "":
			t.Ending = search.Failed
		case it.End == IterationOpen || it.End == IterationBroken || it.Delta == nil:
			continue
		case it.Delta.Direction == verdict.Inconclusive || it.Delta.Direction == verdict.NotComparable:
			t.Ending = search.Unjudged
		default:
			t.Ending = search.Lost
		}
		out = append(out, t)
	}
	return out
}

// effect returns the logarithm of the measured change of the goal, with its standard
// deviation. It does not require a verdict: an estimate is better than nothing.
func (it *Iteration) effect() (effect stat.Opt, noise float64) {
	if it.Delta == nil {
		return stat.None, 0
	}
	if v := it.Delta.Verdict; v != nil && v.Known {
		width := search.LogOf(v.Effect.High) - search.LogOf(v.Effect.Low)
		return stat.Some(search.LogOf(v.Effect.Mid)), max(0, width) / (2 * z95)
	}
	return search.Log(it.Delta.Throughput, 1), 0
}

// z95 is the half width of a 95 % interval in standard deviations.
const z95 = 1.96

// pastPredictions returns the predictions of earlier runs and of this one with their outcomes,
// oldest first. It leaves out a miss because the pool overflowed unexpectedly or because all
// demand is served: such a miss is no error of scale and says nothing about the next.
func (a *advisor) pastPredictions() []search.Record {
	var out []search.Record
	for _, f := range a.plan.PastPredictions {
		halfWidth := (search.LogOf(f.High) - search.LogOf(f.Low)) / 2
		out = append(out, search.Record{Flag: f.Flag, Predicted: search.LogOf(f.Mid), HalfWidth: halfWidth, Measured: search.LogOf(f.Measured)})
	}
	for i := range a.iterations {
		it := &a.iterations[i]
		goal, measured, ok := it.outcome()
		b := search.Gain(goal, it.Predicted)
		if !ok || !b.Mid.OK || len(it.Changes) == 0 || it.overflowed() || it.limitedByDemand(measured) {
			continue
		}
		r := search.Record{Flag: it.Changes[0].Flag, Predicted: b.Mid.V, Measured: search.LogOf(measured)}
		if b.Low.OK && b.High.OK {
			r.HalfWidth = (b.High.V - b.Low.V) / 2
		}
		out = append(out, r)
	}
	return out
}

// limitedByDemand reports whether less was gained than predicted because all demand is served: the load
// limited the gain, not the server.
func (it *Iteration) limitedByDemand(measured float64) bool {
	v := it.Delta.Verdict
	p := search.PredictionOf(it.Predicted, search.MetricTokens)
	return v != nil && v.LowerBound && p.Mid.OK && measured < p.Mid.V
}

// overflowed reports whether requests were preempted after a change but not before it.
func (it *Iteration) overflowed() bool {
	if it.Before == nil || it.After == nil {
		return false
	}
	return !search.Preempts(it.Before) && search.Preempts(it.After)
}

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

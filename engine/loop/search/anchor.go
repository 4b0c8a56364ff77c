package search

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// anchor is a measured configuration from which the model, calibrated there, predicts: the kept one,
// and each that lost, because its measurement shows what it lacked.
type anchor struct {
	d       *engine.Diagnosis
	base    *engine.Diagnosis // of the kept configuration
	changes []engine.Change   // relative to the kept configuration
	offset  float64           // logarithm of the effect of changes on the goal
}

// anchors returns the kept configuration and, newest first, the trials under this load that were
// not kept but provide information.
func (s *Search) anchors() []anchor {
	out := []anchor{{d: s.Baseline, base: s.Baseline}}
	for _, t := range slices.Backward(s.Trials) {
		near := OtherLoad
		if t.Ending == Unjudged {
			near = againLoad
		}
		if t.Ending != Lost && t.Ending != Unjudged || t.After == nil || !t.Effect.OK || t.dependencyChanged() || !t.sameLoad(s.Baseline, near) {
			continue
		}
		out = append(out, anchor{d: t.After, base: s.Baseline, changes: t.Changes, offset: t.Effect.V})
		if len(out) > mostAnchors {
			break
		}
	}
	return out
}

// mostAnchors bounds the number of lost trials used as anchors.
const mostAnchors = 4

// with adds changes to those of the anchor, with one value for each flag, and drops those that
// restore a kept value.
func (a *anchor) with(changes ...engine.Change) []engine.Change {
	return slices.DeleteFunc(engine.MergeChanges(a.changes, changes), func(c engine.Change) bool { return c.From != "" && engine.SameValue(c.From, c.To) })
}

// relative converts predictions relative to the anchor to ones relative to the kept configuration.
func (a *anchor) relative(goal verdict.Goal, predicted []engine.Prediction) []engine.Prediction {
	if len(a.changes) == 0 {
		return predicted
	}
	out := make([]engine.Prediction, len(predicted))
	for i, p := range predicted {
		ratio := a.d.Quantity(p.Metric).Value.Div(a.base.Quantity(p.Metric).Value)
		if p.Metric == engine.QuantityThroughput && goal != verdict.Latency {
			ratio = stat.Some(math.Exp(a.offset))
		}
		out[i] = p.With(p.Range().Map(func(end stat.Opt) stat.Opt {
			if !ratio.OK {
				return stat.None
			}
			return end.Map(func(v float64) float64 { return (1+v)*ratio.V - 1 })
		}))
	}
	return out
}

// predictions returns the known parts of a gain as predictions.
func predictions(g roofline.Gain) []engine.Prediction {
	return engine.Predict(engine.PredictedRange{Metric: engine.QuantityThroughput, Range: g.Throughput},
		engine.PredictedRange{Metric: engine.QuantityTTFT, Range: g.TTFT}, engine.PredictedRange{Metric: engine.QuantityITL, Range: g.ITL})
}

package rules

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// gainBands maps a predicted gain to an impact, largest first.
var gainBands = [...]struct{ gain, impact float64 }{
	{0.50, 5}, {0.20, 4}, {0.10, 3}, {0.03, 2},
}

// gainFloor is the minimum gain of a change: below it a fix is listed with that reason and
// not recommended.
const gainFloor = 0.03

// impactOf returns the impact, 1 to 5, of a predicted relative gain.
func impactOf(gain float64) float64 {
	for _, b := range gainBands {
		if gain >= b.gain-1e-9 {
			return b.impact
		}
	}
	return 1
}

// latencyRules has the rules whose fixes are for a latency, with its metric: they shorten it where output
// cannot rise.
var latencyRules = map[engine.FindingID]string{
	engine.FrontEnd: engine.QuantityTTFT, engine.TokenBudget: engine.QuantityTTFT, engine.PowerLimit: engine.QuantityITL,
}

// setImpact sets the impact of a finding from the predicted gain of its fix. Without a
// prediction it keeps the rule's default, but at most the impact of the gain's upper bound. For a
// recommended fix of latencyRules the larger gain counts: in throughput or in that latency.
func setImpact(f *engine.Finding) {
	if f.Fix == nil {
		return
	}
	mid, high := predictedGain(f.Fix)
	switch {
	case mid.OK:
		f.Impact = impactOf(mid.V)
	case high.OK:
		f.Impact = min(f.Impact, impactOf(high.V))
	}
	if f.Fix.Withheld != "" {
		return
	}
	if p := engine.PredictionOf(f.Fix.Predicted, latencyRules[f.ID]); p.Mid.OK {
		f.Impact = max(f.Impact, impactOf(-p.Mid.V))
	}
}

// predictedGain returns the middle and upper end of the gain of a fix as positive ratios: in
// throughput if predicted, else in time to first token.
func predictedGain(fix *engine.Fix) (mid, high stat.Opt) {
	if p := engine.PredictionOf(fix.Predicted, engine.QuantityThroughput); p.Mid.OK || p.High.OK {
		return p.Mid, p.High
	}
	first := engine.PredictionOf(fix.Predicted, engine.QuantityTTFT)
	return first.Mid.Times(-1), first.Low.Times(-1)
}

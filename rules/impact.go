package rules

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// gainBands maps a predicted gain to an impact (decisions.md 10), largest first.
var gainBands = [...]struct{ gain, impact float64 }{
	{0.50, 5}, {0.20, 4}, {0.10, 3}, {0.03, 2},
}

// gainFloor is the gain below which a change is not worth a restart: the lowest
// band that counts for more than nothing. A fix below it is listed with that
// reason and not recommended.
const gainFloor = 0.03

// impactOf is the impact 1..5 of a predicted relative gain.
func impactOf(gain float64) float64 {
	for _, b := range gainBands {
		if gain >= b.gain-1e-9 {
			return b.impact
		}
	}
	return 1
}

// setLatencyImpact is setImpact for remedies that serve the time to the first
// token: the larger of both gains counts.
func setLatencyImpact(f *engine.Finding, fallback float64) {
	setImpact(f, fallback)
	if f.Fix == nil {
		return
	}
	for _, p := range f.Fix.Predicted {
		if p.Metric == metricTTFT && p.Mid.OK {
			f.Impact = max(f.Impact, impactOf(-p.Mid.V))
		}
	}
}

// setImpact gives a finding its impact: that of the predicted gain where the
// fix has one, else the rule's default. Where only an upper bound is known the
// default stands, but not above what the bound is worth.
func setImpact(f *engine.Finding, fallback float64) {
	f.Impact = fallback
	if f.Fix == nil {
		return
	}
	mid, high := predictedGain(f.Fix)
	switch {
	case mid.OK:
		f.Impact = impactOf(mid.V)
	case high.OK:
		f.Impact = min(fallback, impactOf(high.V))
	}
}

// predictedGain returns the gain a fix is expected to bring, middle and upper
// end, as a positive ratio: in throughput where that is predicted, else in time
// to first token.
func predictedGain(fix *engine.Fix) (mid, high stat.Opt) {
	for _, p := range fix.Predicted {
		if p.Metric == metricThroughput && (p.Mid.OK || p.High.OK) {
			return p.Mid, p.High
		}
	}
	for _, p := range fix.Predicted {
		if p.Metric == metricTTFT && (p.Mid.OK || p.Low.OK) {
			return p.Mid.Times(-1), p.Low.Times(-1)
		}
	}
	return stat.None, stat.None
}

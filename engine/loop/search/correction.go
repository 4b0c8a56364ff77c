package search

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Record is a prediction of the goal and its outcome, as logarithms for which larger is better.
type Record struct {
	Flag      string
	Predicted float64 // the middle that was shown, including the correction at that time
	HalfWidth float64 // half the width that was shown
	Measured  float64
}

// correction is the correction of the next prediction, learned from earlier ones on a server.
type correction struct {
	factor float64 // for the logarithm of a predicted gain
	widen  float64 // for the width of its interval
	own    int     // number of predictions behind it of the same flag
	made   int     // number of predictions behind it
}

const (
	// measurementNoise is the standard deviation of the measured logarithm of a gain (scatter of
	// restarts on both sides), and factorSpread that of the factor before any outcome. Their
	// ratio determines how far one outcome moves the next prediction: a gain of 5 % says next to
	// nothing about the factor, one of 100 % nearly everything.
	measurementNoise = 0.06
	factorSpread     = 0.35
	// otherFlags is the weight of a prediction of another flag, for which the model's errors
	// partly differ.
	otherFlags = 0.25
	// factorLeast and factorMost bound the correction.
	factorLeast, factorMost = 0.3, 2.0
	// widthPrior is the weight of the model's own width, in predictions. widthLeast and
	// widthMost bound the correction of the width.
	widthPrior            = 4.0
	widthLeast, widthMost = 0.7, 3.0
	// z80 is the half width of an 80 % interval in standard deviations.
	z80 = 1.2816
	// leastWidth is the smallest half width assumed for a prediction.
	leastWidth = 0.02
)

// correctionFor returns the correction of the next prediction of a flag from earlier predictions and
// outcomes, oldest first. Shown predictions were already corrected; this is undone with the
// factor at that time, which follows from the same records.
func correctionFor(records []Record, flag string) correction {
	raw := make([]float64, len(records))
	for i, r := range records {
		raw[i] = r.Predicted / regress(records[:i], raw[:i], r.Flag).factor
	}
	return regress(records, raw, flag)
}

// regress fits measured = factor x raw through the origin, shrunk towards 1.
func regress(records []Record, raw []float64, flag string) correction {
	c := correction{factor: 1, widen: 1}
	prior := measurementNoise * measurementNoise / (factorSpread * factorSpread)
	sum, square := prior, prior
	weight := func(r *Record) float64 {
		if r.Flag == flag {
			return 1
		}
		return otherFlags
	}
	c.made = len(records)
	for i, r := range records {
		w := weight(&r)
		if r.Flag == flag {
			c.own++
		}
		sum += w * raw[i] * r.Measured
		square += w * raw[i] * raw[i]
	}
	c.factor = min(factorMost, max(factorLeast, sum/square))
	squares, weights := widthPrior, widthPrior
	for i, r := range records {
		w := weight(&r)
		off := math.Abs(r.Measured - c.factor*raw[i])
		// The scatter of a measurement is no error of the model.
		off = max(0, off-measurementNoise/2)
		z := z80 * off / max(leastWidth, r.HalfWidth)
		squares += w * min(z*z, widthMost*widthMost*z80*z80)
		weights += w
	}
	c.widen = min(widthMost, max(widthLeast, math.Sqrt(squares/weights)))
	return c
}

// text returns the correction as a sentence, or "" if it is negligible.
func (c correction) text(flag string) string {
	of := "earlier predictions here"
	if c.own > 0 {
		of = "earlier predictions of " + flag + " here"
	}
	switch off := 1/c.factor - 1; {
	case off >= leastShownCorrection:
		return of + " were " + figure.PercentSign(off) + " too high: corrected"
	case off <= -leastShownCorrection:
		return of + " were " + figure.PercentSign(-off) + " too low: corrected"
	case c.widen >= leastShownWidening:
		return of + " fell outside their range: the range is wider"
	}
	return ""
}

// leastShownCorrection and leastShownWidening are the smallest corrections worth mentioning.
const (
	leastShownCorrection = 0.05
	leastShownWidening   = 1.3
)

// apply corrects the prediction of a goal. Predictions of other latencies are left unchanged.
func (c correction) apply(goal verdict.Goal, predicted []engine.Prediction) []engine.Prediction {
	out := make([]engine.Prediction, len(predicted))
	for i, p := range predicted {
		isGoal := goal == verdict.Latency && p.Metric == MetricE2E ||
			goal != verdict.Latency && (p.Metric == MetricTokens || p.Metric == predictCost)
		if out[i] = p; isGoal && p.IsRatio() {
			out[i] = p.With(c.ends(p.Range()))
		}
	}
	return out
}

// ends corrects a range in its logarithm. Without a middle only bounds are known, and the range is
// returned unchanged.
func (c correction) ends(r roofline.Range) roofline.Range {
	if !r.Mid.OK {
		return r
	}
	at := Log(r.Mid, 1).V
	end := func(l float64) float64 { return c.factor*at + c.widen*c.factor*(l-at) }
	return r.Map(func(e stat.Opt) stat.Opt { return Ratio(Log(e, 1).Map(end)) })
}

// Preempts reports whether the pool preempts running requests more than occasionally.
func Preempts(d *engine.Diagnosis) bool {
	rate, done := d.Quantity("preemptions_per_s").Value, d.Quantity("requests_per_s").Value
	return rate.Or(0) > 0 && rate.V > preemptShare*done.Or(0)
}

// preemptShare is the number of preemptions per finished request above which they cost throughput.
const preemptShare = 0.05

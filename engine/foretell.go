package engine

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// foretold is a prediction of the goal with what came true, as logarithms where more
// is better.
type foretold struct {
	flag     string
	shown    float64 // the middle that was shown, corrected by what was known then
	half     float64 // half the width that was shown
	measured float64
}

// correction is what earlier predictions on a server teach of the next one.
type correction struct {
	factor float64 // of the logarithm of a predicted gain
	widen  float64 // of the width of its interval
	own    int     // predictions of the same flag among those it is made from
	made   int     // predictions it is made from
}

const (
	// foretoldNoise is the standard deviation of a measured logarithm of a gain (a
	// restart's scatter on both sides) and factorSpread that of the factor before
	// anything is known: together they say how far one miss moves the next
	// prediction. A gain of 5 % tells next to nothing of the factor, one of 100 %
	// nearly all.
	foretoldNoise = 0.06
	factorSpread  = 0.35
	// otherFlags is what a prediction of another flag counts for: the model errs
	// differently in what it does not share.
	otherFlags = 0.25
	// factorLeast and factorMost bound the correction.
	factorLeast, factorMost = 0.3, 2.0
	// widthPrior is how many predictions the width that the model gives is worth, and
	// widthLeast and widthMost bound what is made of it.
	widthPrior            = 4.0
	widthLeast, widthMost = 0.7, 3.0
	// eighty is the number of standard deviations that half of an 80 % interval has.
	eighty = 1.2816
	// leastWidth is the half width that a prediction is taken to have at least.
	leastWidth = 0.02
)

// foretell turns what was shown and measured, oldest first, into what corrects the
// next prediction of a flag. What was shown then was corrected already: it is taken
// back with the factor that stood at that time, which the same records give.
func foretell(records []foretold, flag string) correction {
	raw := make([]float64, len(records))
	for i, r := range records {
		raw[i] = r.shown / regress(records[:i], raw[:i], r.flag).factor
	}
	return regress(records, raw, flag)
}

// regress fits measured = factor x raw through the origin, shrunk towards one.
func regress(records []foretold, raw []float64, flag string) correction {
	c := correction{factor: 1, widen: 1}
	prior := foretoldNoise * foretoldNoise / (factorSpread * factorSpread)
	sum, square := prior, prior
	for i, r := range records {
		w := otherFlags
		if r.flag == flag {
			w = 1
			c.own++
		}
		c.made++
		sum += w * raw[i] * r.measured
		square += w * raw[i] * raw[i]
	}
	c.factor = min(factorMost, max(factorLeast, sum/square))
	squares, weights := widthPrior, widthPrior
	for i, r := range records {
		w := otherFlags
		if r.flag == flag {
			w = 1
		}
		off := math.Abs(r.measured - c.factor*raw[i])
		// What a measurement scatters by itself is no miss of the model.
		off = max(0, off-foretoldNoise/2)
		z := eighty * off / max(leastWidth, r.half)
		squares += w * min(z*z, widthMost*widthMost*eighty*eighty)
		weights += w
	}
	c.widen = min(widthMost, max(widthLeast, math.Sqrt(squares/weights)))
	return c
}

// told is the correction in a sentence, "" where it changes next to nothing.
func (c correction) told(flag string) string {
	of := "earlier predictions here"
	if c.own > 0 {
		of = "earlier predictions of " + flag + " here"
	}
	switch off := 1/c.factor - 1; {
	case off >= toldCorrection:
		return fmt.Sprintf("%s were %.0f %% too high: corrected", of, off*100)
	case off <= -toldCorrection:
		return fmt.Sprintf("%s were %.0f %% too low: corrected", of, -off*100)
	case c.widen >= toldWider:
		return of + " missed by more than their range: it is wider"
	}
	return ""
}

// toldCorrection and toldWider are the least corrections that are mentioned.
const (
	toldCorrection = 0.05
	toldWider      = 1.3
)

// apply corrects what is predicted of a goal. Predictions of latencies beside it are
// left as the model has them.
func (c correction) apply(goal verdict.Goal, predicted []Prediction) []Prediction {
	out := make([]Prediction, len(predicted))
	for i, p := range predicted {
		out[i] = p
		if p.Unit != "ratio" && p.Unit != "" {
			continue
		}
		switch {
		case goal == verdict.Latency && p.Metric == predictE2E,
			goal != verdict.Latency && (p.Metric == predictTokens || p.Metric == predictCost):
			out[i].Low, out[i].Mid, out[i].High = c.ends(p)
		}
	}
	return out
}

// ends corrects a range on the scale of its logarithm. Without a middle only bounds
// are known, and nothing is corrected.
func (c correction) ends(p Prediction) (low, mid, high stat.Opt) {
	if !p.Mid.OK {
		return p.Low, p.Mid, p.High
	}
	at := logOf(p.Mid, 1).V
	end := func(e stat.Opt) stat.Opt {
		if !e.OK {
			return e
		}
		return ratioOf(stat.Some(c.factor*at + c.widen*c.factor*(logOf(e, 1).V-at)))
	}
	return end(p.Low), ratioOf(stat.Some(c.factor * at)), end(p.High)
}

// foretold lists the predictions of earlier runs and of this one with what came
// true, oldest first. Where the pool overflowed after a change as nobody predicted,
// or all that is asked for is served, the miss is no error of scale and says nothing
// of the next.
func (l *Loop) foretold() []foretold {
	var out []foretold
	for _, f := range l.plan.Foretold {
		out = append(out, foretold{
			flag:     f.Flag,
			shown:    math.Log(max(leastFactor, 1+f.Mid)),
			half:     (math.Log(max(leastFactor, 1+f.High)) - math.Log(max(leastFactor, 1+f.Low))) / 2,
			measured: math.Log(max(leastFactor, 1+f.Measured)),
		})
	}
	for i := range l.iterations {
		it := &l.iterations[i]
		goal, measured, ok := it.outcome()
		b := benefit(goal, it.Predicted)
		if !ok || !b.mid.OK || len(it.Changes) == 0 || it.overflowed() || it.met(measured) {
			continue
		}
		r := foretold{flag: it.Changes[0].Flag, shown: b.mid.V, measured: math.Log(max(leastFactor, 1+measured))}
		if b.low.OK && b.high.OK {
			r.half = (b.high.V - b.low.V) / 2
		}
		out = append(out, r)
	}
	return out
}

// met says that no more was gained than predicted because nothing was left to ask for:
// the gain was cut off by the load, and not by the server.
func (it *Iteration) met(measured float64) bool {
	v := it.Delta.Verdict
	p := predictionOf(it.Predicted, predictTokens)
	return v != nil && v.LowerBound && p.Mid.OK && measured < p.Mid.V
}

// overflowed says that requests were preempted after a change and not before it.
func (it *Iteration) overflowed() bool {
	if it.Before == nil || it.After == nil {
		return false
	}
	return !it.Before.preempts() && it.After.preempts()
}

// preempts says that the pool takes blocks from running requests, more than now and
// then.
func (d *Diagnosis) preempts() bool {
	rate, done := d.Quantity("preemptions_per_s").Value, d.Quantity("requests_per_s").Value
	return rate.Or(0) > 0 && rate.V > preemptShare*done.Or(0)
}

// preemptShare is the preemptions for each finished request from which they cost.
const preemptShare = 0.05

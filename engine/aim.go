package engine

import (
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Metrics that a prediction can be about, beside those of the rules.
const (
	predictTokens = "generation_tokens_per_s"
	predictTTFT   = "ttft_mean_s"
	predictITL    = "itl_mean_s"
	predictE2E    = "e2e_mean_s"
	predictCost   = "usd_per_million_tokens"
)

// aim is what changes are to improve, and what must hold beside it.
type aim struct {
	goal       verdict.Goal
	objectives []verdict.Objective
	worth      float64 // least gain of the goal that a restart is worth, as a logarithm
}

// leastWorth is the gain below which no restart is asked for, whatever precision
// could show.
const leastWorth = 0.03

func (p *LoopPlan) aim() aim {
	a := aim{goal: p.Goal, objectives: p.Objectives, worth: math.Log1p(max(leastWorth, p.Precision))}
	if a.goal == "" {
		a.goal = verdict.Throughput
	}
	return a
}

// span3 is a range on the logarithmic scale of the goal, where more is better; each
// end may be unknown.
type span3 struct{ low, mid, high stat.Opt }

// spread is the standard deviation that an 80 % interval tells of, 0 without one.
func (b span3) spread() float64 {
	if !b.low.OK || !b.high.OK {
		return 0
	}
	return max(0, b.high.V-b.low.V) / 2 / eighty
}

// benefit is what predictions say of a goal.
func benefit(goal verdict.Goal, predicted []Prediction) span3 {
	metric, sign := predictTokens, 1.0
	if goal == verdict.Latency {
		metric, sign = predictE2E, -1
	}
	for _, p := range predicted {
		if p.Metric != metric || p.Unit != "ratio" && p.Unit != "" {
			continue
		}
		b := span3{logOf(p.Low, sign), logOf(p.Mid, sign), logOf(p.High, sign)}
		if sign < 0 {
			b.low, b.high = b.high, b.low
		}
		return b
	}
	return span3{}
}

// leastFactor bounds a predicted loss, so that its logarithm is a number.
const leastFactor = 1e-3

func logOf(ratio stat.Opt, sign float64) stat.Opt {
	if !ratio.OK {
		return stat.None
	}
	return stat.Some(sign * math.Log(max(leastFactor, 1+ratio.V)))
}

// ratioOf is the way back from logOf.
func ratioOf(l stat.Opt) stat.Opt {
	if !l.OK {
		return stat.None
	}
	return stat.Some(math.Expm1(l.V))
}

// predictionOf finds the prediction of a metric; a zero one without.
func predictionOf(predicted []Prediction, metric string) Prediction {
	for _, p := range predicted {
		if p.Metric == metric {
			return p
		}
	}
	return Prediction{Metric: metric, Unit: "ratio"}
}

// endToEnd predicts the mean time of a request from those of its two parts: the
// first token, and the tokens after it. Absent where either is not known.
func endToEnd(d *Diagnosis, predicted []Prediction) Prediction {
	out := Prediction{Metric: predictE2E, Unit: "ratio"}
	first, rest := d.Quantity(predictTTFT).Value, d.decodeTime()
	ttft, itl := predictionOf(predicted, predictTTFT), predictionOf(predicted, predictITL)
	if !first.OK || !rest.OK || first.V+rest.V <= 0 {
		return out
	}
	joint := func(a, b stat.Opt) stat.Opt {
		if !a.OK || !b.OK {
			return stat.None
		}
		return stat.Some((first.V*a.V + rest.V*b.V) / (first.V + rest.V))
	}
	out.Low, out.Mid, out.High = joint(ttft.Low, itl.Low), joint(ttft.Mid, itl.Mid), joint(ttft.High, itl.High)
	return out
}

// decodeTime is the mean time from a request's first token to its last, in seconds.
func (d *Diagnosis) decodeTime() stat.Opt {
	itl, output := d.Quantity(predictITL).Value, d.Quantity("output_tokens_mean").Value
	if !itl.OK || !output.OK {
		return stat.None
	}
	return itl.Times(max(0, output.V-1))
}

// foresee completes predictions with the goal's own where that follows from them.
func (a *aim) foresee(d *Diagnosis, predicted []Prediction) []Prediction {
	if a.goal != verdict.Latency || predictionOf(predicted, predictE2E).Mid.OK {
		return predicted
	}
	if e := endToEnd(d, predicted); e.Mid.OK {
		return append(predicted[:len(predicted):len(predicted)], e)
	}
	return predicted
}

// breach is by how much objectives are missed, summed as logarithms of the latency
// over its limit, and how many: now, or with predictions of the change.
func (a *aim) breach(d *Diagnosis, predicted []Prediction) (by float64, missed int) {
	for _, o := range a.objectives {
		now, _ := d.latency(o)
		if !now.OK || o.Limit <= 0 {
			continue
		}
		then := now.V
		if change := logOf(foreseen(o, predicted, d), 1); change.OK {
			then *= math.Exp(change.V + breachMargin*math.Abs(change.V))
		}
		if then > o.Limit {
			by += math.Log(then / o.Limit)
			missed++
		}
	}
	return by, missed
}

// missed says which objectives are missed now, "" where none is or none can be told.
func (a *aim) missed(d *Diagnosis) string {
	var list []string
	for _, o := range a.objectives {
		now, of := d.latency(o)
		if !now.OK || o.Limit <= 0 || now.V <= o.Limit {
			continue
		}
		text := o.Name + " " + figure.Show(now, "s")
		if of != o.Name {
			text = o.Name + ", of which " + of + " " + figure.Show(now, "s") + " is known"
		}
		list = append(list, text+" against a limit of "+figure.Show(stat.Some(o.Limit), "s"))
	}
	if len(list) == 0 {
		return ""
	}
	return "missed now: " + strings.Join(list, "; ")
}

// breachMargin is by how much of a predicted change of a latency it is taken to turn
// out worse: large changes are foreseen less well than small ones.
const breachMargin = 0.1

// foreseen is the relative change of the latency of an objective; absent where
// nothing is predicted of it. A prediction of its own quantile beats one of the mean.
func foreseen(o verdict.Objective, predicted []Prediction, d *Diagnosis) stat.Opt {
	metric := map[verdict.Metric]string{
		verdict.MetricTTFT: "ttft", verdict.MetricITL: "itl", verdict.MetricTPOT: "itl", verdict.MetricE2E: "e2e",
	}[o.Metric]
	if tail(o) {
		if p := predictionOf(predicted, metric+"_p99_s"); p.Mid.OK {
			return p.Mid
		}
	}
	if metric == "e2e" {
		if p := predictionOf(predicted, predictE2E); p.Mid.OK {
			return p.Mid
		}
		return endToEnd(d, predicted).Mid
	}
	return predictionOf(predicted, metric+"_mean_s").Mid
}

// tailQuantile is the quantile from which the 99th percentile stands for it; below
// it the mean does.
const tailQuantile = 0.8

func tail(o verdict.Objective) bool { return o.Quantile >= tailQuantile }

// latency is the measured latency that an objective limits, in seconds, and what it
// is: where its quantile is not among the quantities, the nearest that is.
func (d *Diagnosis) latency(o verdict.Objective) (value stat.Opt, of string) {
	name := string(o.Metric)
	if tail(o) {
		if v := d.Quantity(name + "_p99_s").Value; v.OK {
			return v, name + "_p99"
		}
	}
	return d.Quantity(name + "_mean_s").Value, name + "_mean"
}

// What a missed objective weighs against the goal: a factor of latency above its
// limit like its square of the goal, and meeting all of them like a factor of e.
const (
	breachWeight = 2.0
	metBonus     = 1.0
)

// value weighs a change: the logarithm of what it gains of the goal, with what it
// does to the objectives. ok is false where it breaks one that holds, or misses them
// by more.
func (a *aim) value(d *Diagnosis, predicted []Prediction, gain float64) (value float64, ok bool) {
	before, missed := a.breach(d, nil)
	after, then := a.breach(d, predicted)
	value = gain + breachWeight*(before-after)
	if missed > 0 && then == 0 {
		value += metBonus
	}
	return value, after <= before+breachSlack && then <= missed
}

// breachSlack is the difference of a breach below which it is none.
const breachSlack = 0.01

// deserves says whether a value is worth a restart. Missed objectives that get
// nearer are, whatever the goal gains.
func (a *aim) deserves(value float64) bool { return value >= a.worth-1e-9 }

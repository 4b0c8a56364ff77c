package search

import (
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Goal is what changes should improve, and the objectives that they must meet.
type Goal struct {
	Metric     verdict.Goal
	Objectives []verdict.Objective
	MinGain    float64 // least gain of the goal that justifies a restart, as a logarithm
}

// NewGoal returns a goal with objectives; "" is throughput.
func NewGoal(goal verdict.Goal, objectives []verdict.Objective, precision float64) Goal {
	if goal == "" {
		goal = verdict.Throughput
	}
	return Goal{Metric: goal, Objectives: objectives, MinGain: math.Log1p(max(MinGain, precision))}
}

// MinGain is the least gain that justifies a restart, even if the precision could show a smaller
// one.
const MinGain = 0.03

// spread returns the standard deviation that an 80 % interval of logarithms implies, 0 if it lacks
// an end.
func spread(b roofline.Range) float64 {
	if !b.Low.OK || !b.High.OK {
		return 0
	}
	return max(0, b.High.V-b.Low.V) / 2 / z80
}

// Gain returns the predictions of a goal as logarithms for which larger is better.
func Gain(goal verdict.Goal, predicted []engine.Prediction) roofline.Range {
	metric, sign := engine.QuantityThroughput, 1.0
	if goal == verdict.Latency {
		metric, sign = engine.QuantityE2E, -1
	}
	b := engine.PredictionOf(predicted, metric).Range().Map(func(end stat.Opt) stat.Opt { return Log(end, sign) })
	if sign < 0 {
		b.Low, b.High = b.High, b.Low
	}
	return b
}

// LeastFactor bounds a predicted loss, so that its logarithm is finite.
const LeastFactor = 1e-3

// Log returns the logarithm of a relative change, times sign; see [Ratio].
func Log(ratio stat.Opt, sign float64) stat.Opt {
	return ratio.Map(func(r float64) float64 { return sign * LogOf(r) })
}

// LogOf returns the logarithm of a relative change, bounded by LeastFactor.
func LogOf(ratio float64) float64 { return math.Log(max(LeastFactor, 1+ratio)) }

// Ratio returns the relative change of a logarithm.
func Ratio(l stat.Opt) stat.Opt { return l.Map(math.Expm1) }

// endToEnd predicts the mean time of a request from its two parts, the time to first token and the
// decode time. It is absent if either is unknown.
func endToEnd(d *engine.Diagnosis, predicted []engine.Prediction) engine.Prediction {
	out := engine.Prediction{Metric: engine.QuantityE2E, Unit: "ratio"}
	first, rest := d.Quantity(engine.QuantityTTFT).Value, decodeTime(d)
	ttft, itl := engine.PredictionOf(predicted, engine.QuantityTTFT), engine.PredictionOf(predicted, engine.QuantityITL)
	if !first.OK || !rest.OK || first.V+rest.V <= 0 {
		return out
	}
	joint := func(a, b stat.Opt) stat.Opt {
		if !a.OK || !b.OK {
			return stat.None
		}
		return stat.Some((first.V*a.V + rest.V*b.V) / (first.V + rest.V))
	}
	return out.With(roofline.Range{Low: joint(ttft.Low, itl.Low), Mid: joint(ttft.Mid, itl.Mid), High: joint(ttft.High, itl.High)})
}

// decodeTime returns the mean time from a request's first token to its last, in seconds.
func decodeTime(d *engine.Diagnosis) stat.Opt {
	itl, output := d.Quantity(engine.QuantityITL).Value, d.Quantity("output_tokens_mean").Value
	if !output.OK {
		return stat.None
	}
	return itl.Times(max(0, output.V-1))
}

// complete adds the goal's own prediction if it follows from the others. The cost of a token is the inverse
// of throughput: a change that needs more hardware is not proposed for a goal of cost.
func (a *Goal) complete(d *engine.Diagnosis, predicted []engine.Prediction) []engine.Prediction {
	own := engine.PredictionOf(predicted, a.Metric.Quantity())
	switch {
	case own.Range().Known():
		return predicted
	case a.Metric == verdict.Latency:
		if own = endToEnd(d, predicted); !own.Mid.OK {
			return predicted
		}
	case a.Metric == verdict.Cost:
		own = own.With(engine.PredictionOf(predicted, engine.QuantityThroughput).Range().Inverse())
	}
	if !own.Range().Known() {
		return predicted
	}
	return append(predicted[:len(predicted):len(predicted)], own)
}

// breach returns how far objectives are missed, as the sum of the logarithms of latency over limit,
// and how many: now, or with the predictions of a change.
func (a *Goal) breach(d *engine.Diagnosis, predicted []engine.Prediction) (by float64, missed int) {
	for _, o := range a.Objectives {
		q, _ := latency(d, o)
		now := q.Value
		if !now.OK || o.Limit <= 0 {
			continue
		}
		then := now.V
		if change := Log(predictedLatency(o, predicted, d), 1); change.OK {
			then *= math.Exp(change.V + breachMargin*math.Abs(change.V))
		}
		if then > o.Limit {
			by += math.Log(then / o.Limit)
			missed++
		}
	}
	return by, missed
}

// Missed returns the objectives that are missed now, or "".
func (a *Goal) Missed(d *engine.Diagnosis) string {
	var list []string
	for _, o := range a.Objectives {
		q, of := latency(d, o)
		now := q.Value
		if !now.OK || o.Limit <= 0 || now.V <= o.Limit {
			continue
		}
		shown := figure.ValueBeside(now.V, q.Bucket.Width(), o.Limit, "s")
		text := o.Name + " " + shown
		if of != o.Name {
			text = o.Name + ", of which " + of + " " + shown + " is known"
		}
		list = append(list, text+" against a limit of "+figure.Show(stat.Some(o.Limit), "s"))
	}
	if len(list) == 0 {
		return ""
	}
	return "missed now: " + strings.Join(list, "; ")
}

// breachMargin is the pessimism about a predicted change of a latency, as a share of it: large
// changes are predicted less well than small ones.
const breachMargin = 0.1

// predictedLatency returns the predicted relative change of the latency of an objective, absent
// without a prediction. A prediction of its own quantile takes precedence over one of the mean.
func predictedLatency(o verdict.Objective, predicted []engine.Prediction, d *engine.Diagnosis) stat.Opt {
	metric := o.Metric
	if metric == verdict.MetricTPOT {
		metric = verdict.MetricITL
	}
	if tail(o) {
		if p := engine.PredictionOf(predicted, metric.Quantity(tailMeasured)); p.Mid.OK {
			return p.Mid
		}
	}
	if metric == verdict.MetricE2E {
		if p := engine.PredictionOf(predicted, engine.QuantityE2E); p.Mid.OK {
			return p.Mid
		}
		return endToEnd(d, predicted).Mid
	}
	return engine.PredictionOf(predicted, metric.Quantity(0)).Mid
}

// tailQuantile is the quantile from which tailMeasured represents an objective; below it the mean does.
const (
	tailQuantile = 0.8
	tailMeasured = 0.99
)

func tail(o verdict.Objective) bool { return o.Quantile >= tailQuantile }

// latency returns the measured latency of an objective, in seconds, and its name. If its quantile
// is not measured, the nearest measured one is used.
func latency(d *engine.Diagnosis, o verdict.Objective) (q engine.Quantity, of string) {
	at := 0.0
	if tail(o) && d.Quantity(o.Metric.Quantity(tailMeasured)).Value.OK {
		at = tailMeasured
	}
	return d.Quantity(o.Metric.Quantity(at)), string(o.Metric) + "_" + verdict.QuantileName(at)
}

// Weights of a missed objective against the goal: a latency above its limit by some factor weighs
// as much as the square of that factor in the goal, and meeting all objectives as much as a
// factor of e.
const (
	breachWeight = 2.0
	metBonus     = 1.0
)

// value returns the value of a change: the logarithm of its gain, combined with its effect on the
// objectives. ok is false if it breaks an objective that is met, or misses more.
func (a *Goal) value(d *engine.Diagnosis, predicted []engine.Prediction, gain float64) (value float64, ok bool) {
	before, missed := a.breach(d, nil)
	after, then := a.breach(d, predicted)
	value = gain + breachWeight*(before-after)
	if missed > 0 && then == 0 {
		value += metBonus
	}
	return value, after <= before+breachTolerance && then <= missed
}

// breachTolerance is the difference of a breach that is ignored.
const breachTolerance = 0.01

// worthRestart reports whether a value justifies a restart. An improvement of missed objectives
// does, whatever the gain.
func (a *Goal) worthRestart(value float64) bool { return value >= a.MinGain-1e-9 }

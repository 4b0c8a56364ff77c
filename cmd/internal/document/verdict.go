package document

import (
	"cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// level is the confidence level of intervals.
const level = 0.95

// interval is a ratio with its interval.
type interval struct {
	Low   stat.Opt `json:"low"`
	Mid   stat.Opt `json:"mid"`
	High  stat.Opt `json:"high"`
	Level float64  `json:"level,omitempty"`
}

// newInterval returns nil if all values are absent.
func newInterval(mid, low, high stat.Opt) *interval {
	if !mid.Finite().OK && !low.Finite().OK && !high.Finite().OK {
		return nil
	}
	return &interval{Low: low, Mid: mid, High: high}
}

func knownInterval(i verdict.Interval, known bool) *interval {
	if !known {
		return nil
	}
	return newInterval(stat.Some(i.Mid), stat.Some(i.Low), stat.Some(i.High))
}

// statistical is a verdict with its basis.
type statistical struct {
	Direction     verdict.Direction         `json:"direction"`
	Reason        string                    `json:"reason"`
	Goal          verdict.Goal              `json:"goal"`
	Level         float64                   `json:"level"`
	Effect        *interval                 `json:"effect"`
	LowerBound    bool                      `json:"lower_bound"`
	Measured      stat.Opt                  `json:"measured_half_width"`
	Restart       stat.Opt                  `json:"restart_half_width"`
	RestartSpread verdict.Spread            `json:"restart_spread"`
	Bias          stat.Opt                  `json:"bias"`
	Settled       bool                      `json:"settled"`
	Need          string                    `json:"need" absent:""`
	Cause         verdict.Cause             `json:"cause" absent:""`
	LimitedBy     sides[limit]              `json:"limited_by"`
	Steady        sides[verdict.Steadiness] `json:"steady"`
	Measures      []measure                 `json:"measures"`
	Traffic       []shift                   `json:"traffic"`
	Objectives    []objective               `json:"objectives"`
}

// sides is a value for both sides of a verdict.
type sides[T any] struct {
	Before T `json:"before" absent:""`
	After  T `json:"after" absent:""`
}

type limit = verdict.Limit

type measure struct {
	Metric       verdict.Metric `json:"metric"`
	Quantile     float64        `json:"quantile" absent:"0"`
	Before       stat.Opt       `json:"before"`
	After        stat.Opt       `json:"after"`
	Change       *interval      `json:"change"`
	Moved        bool           `json:"moved"`
	Bounds       stat.Bucket    `json:"bounds,omitzero"` // ends of the bucket of After
	Observations float64        `json:"observations"`
}

type shift struct {
	Name   string    `json:"name"`
	Before stat.Opt  `json:"before"`
	After  stat.Opt  `json:"after"`
	Change *interval `json:"change"`
	Moved  bool      `json:"moved"`
}

type objective struct {
	Name       string         `json:"name"`
	Metric     verdict.Metric `json:"metric"`
	Quantile   float64        `json:"quantile" absent:"0"`
	Limit      float64        `json:"limit_s"`
	Before     stat.Opt       `json:"before_s"`
	After      stat.Opt       `json:"after_s"`
	Low        stat.Opt       `json:"low_s"`
	High       stat.Opt       `json:"high_s"`
	State      string         `json:"state"`
	KeptBefore bool           `json:"kept_before"`
}

// newStatistical returns nil without a verdict.
func newStatistical(r *verdict.Result) *statistical {
	if r == nil {
		return nil
	}
	ratio := func(v float64) stat.Opt { return stat.Opt{V: v, OK: r.Known} }
	out := &statistical{
		Direction: r.Direction, Reason: r.Reason, Goal: cmp.Or(r.Goal, verdict.Throughput), Level: level, Effect: knownInterval(r.Effect, r.Known), LowerBound: r.LowerBound,
		Measured: ratio(r.Measured), Restart: ratio(r.Restart), RestartSpread: r.Spread, Bias: ratio(r.Bias), Settled: r.Settled, Need: r.Need, Cause: r.Cause,
		LimitedBy: sides[limit]{r.Limited[0], r.Limited[1]}, Steady: sides[verdict.Steadiness]{r.Steady[0], r.Steady[1]},
	}
	for i := range r.Measures {
		m := &r.Measures[i]
		out.Measures = append(out.Measures, measure{m.Metric, m.Quantile, m.Before, m.After, knownInterval(m.Change, m.Known), m.Moved, m.Buckets[1], m.Count})
	}
	for i := range r.Traffic {
		s := &r.Traffic[i]
		out.Traffic = append(out.Traffic, shift{s.Name, s.Before, s.After, knownInterval(s.Change, s.Before.OK && s.After.OK), s.Moved})
	}
	states := effect.Verdict{Result: r}.ObjectiveLines()
	for i := range r.Objectives {
		h := &r.Objectives[i]
		out.Objectives = append(out.Objectives, objective{h.Name, h.Metric, h.Quantile, h.Limit, h.Before, h.After, h.Low, h.High, states[i].State, h.WasMet})
	}
	return out
}

// predictedMetric is the prediction and the measurement of a metric.
type predictedMetric struct {
	Metric   string   `json:"metric"`
	Unit     *string  `json:"unit,omitempty"`
	Low      stat.Opt `json:"low"`
	Mid      stat.Opt `json:"mid"`
	High     stat.Opt `json:"high"`
	Measured stat.Opt `json:"measured"`
	Held     *bool    `json:"held"`
}

// optionalBool returns a pointer to within, nil if it is not known.
func optionalBool(within, known bool) *bool {
	if !known {
		return nil
	}
	return &within
}

// goalPrediction returns the prediction of the goal, or nil.
func goalPrediction(d *effect.Delta, list []engine.Prediction) *predictedMetric {
	q, ok := effect.PredictionOf(list, tuning.Goal(d))
	if !ok {
		return nil
	}
	out := &predictedMetric{Metric: q.Metric, Low: q.Low, Mid: q.Mid, High: q.High}
	if p, judged := effect.VerdictOf(d); judged {
		if c, ok := p.Change(); ok {
			out.Measured = stat.Some(c.Mid)
		}
		within, resolved := p.Outcome(list)
		out.Held = optionalBool(within, resolved)
	}
	return out
}

// judgement is the direction of a change, from one measurement before and one after, with the interval that
// repeats of one configuration seldom exceed.
type judgement struct {
	Direction         verdict.Direction `json:"direction"`
	Reason            string            `json:"reason"`
	Classic           classicVerdict    `json:"classic"`
	Statistical       *statistical      `json:"statistical"`
	StatisticalReason string            `json:"statistical_reason" absent:""`
	Prediction        *predictedMetric  `json:"prediction"`
	Predictions       []predictedMetric `json:"predictions"`
	Metrics           []metricDelta     `json:"metrics"`
}

type classicVerdict struct {
	Direction  verdict.Direction `json:"direction"`
	Reason     string            `json:"reason"`
	Throughput stat.Opt          `json:"throughput_delta_pct"`
	Efficiency stat.Opt          `json:"efficiency_delta_pp"`
	TTFTP99    stat.Opt          `json:"ttft_p99_delta_pct"`
}

type metricDelta struct {
	Metric string   `json:"metric"`
	Unit   string   `json:"unit"`
	Before stat.Opt `json:"before"`
	After  stat.Opt `json:"after"`
	Change stat.Opt `json:"change"`
}

func newJudgement(d *effect.Delta, predictions []engine.Prediction) *judgement {
	if d == nil {
		d = &effect.Delta{Direction: verdict.Inconclusive, Reason: "nothing to compare", Classic: verdict.Plateau, ClassicReason: "nothing to compare"}
	}
	out := &judgement{
		Direction: d.Direction, Reason: d.Reason, Statistical: newStatistical(d.Verdict), Prediction: goalPrediction(d, predictions),
		Classic: classicVerdict{d.Classic, d.ClassicReason, d.Throughput.Times(100), d.Efficiency.Times(100), d.TTFTP99.Times(100)},
	}
	if d.Verdict == nil {
		out.StatisticalReason = "one run before and one after cannot distinguish a change from noise"
	}
	metrics := d.MeasuredMetrics()
	for _, p := range predictions {
		for _, m := range metrics {
			if m.Name == p.Metric {
				within := optionalBool(p.Covers(m.Change))
				out.Predictions = append(out.Predictions, predictedMetric{p.Metric, &p.Unit, p.Low, p.Mid, p.High, m.Change, within})
				break
			}
		}
	}
	for _, m := range metrics {
		out.Metrics = append(out.Metrics, metricDelta{m.Name, m.Before.Unit, m.Before.Value, m.After.Value, m.Change})
	}
	return out
}

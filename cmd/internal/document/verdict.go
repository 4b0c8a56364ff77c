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

// statistical returns a verdict with its basis, nil without a verdict.
func statistical(r *verdict.Result) any {
	if r == nil {
		return nil
	}
	ratio := func(v float64) stat.Opt { return stat.Opt{V: v, OK: r.Known} }
	return Object{
		{"direction", r.Direction},
		{"reason", r.Reason},
		{"goal", cmp.Or(r.Goal, verdict.Throughput)},
		{"level", level},
		{"effect", knownInterval(r.Effect, r.Known)},
		{"lower_bound", r.LowerBound},
		{"measured_half_width", ratio(r.Measured)},
		{"restart_half_width", ratio(r.Restart)},
		{"restart_spread", r.Spread},
		{"bias", ratio(r.Bias)},
		{"settled", r.Settled},
		{"need", orNull(r.Need)},
		{"cause", orNull(r.Cause)},
		{"limited_by", Object{{"before", orNull(r.Limited[0])}, {"after", orNull(r.Limited[1])}}},
		{"steady", Object{{"before", r.Steady[0]}, {"after", r.Steady[1]}}},
		{"measures", each(r.Measures, measure)},
		{"traffic", each(r.Traffic, shift)},
		{"objectives", objectives(r)},
	}
}

func measure(m *verdict.Measure) Object {
	o := Object{
		{"metric", m.Metric},
		{"quantile", orNull(m.Quantile)},
		{"before", m.Before},
		{"after", m.After},
		{"change", knownInterval(m.Change, m.Known)},
		{"moved", m.Moved},
	}
	if bounds := m.Buckets[1]; bounds != (stat.Bucket{}) { // ends of the bucket of after
		o = append(o, Member{"bounds", bounds})
	}
	return append(o, Member{"observations", m.Count})
}

func shift(s *verdict.Shift) Object {
	change := knownInterval(s.Change, s.Before.OK && s.After.OK)
	return Object{{"name", s.Name}, {"before", s.Before}, {"after", s.After}, {"change", change}, {"moved", s.Moved}}
}

func objectives(r *verdict.Result) []Object {
	var out []Object
	states := effect.Verdict{Result: r}.ObjectiveLines()
	for i := range r.Objectives {
		h := &r.Objectives[i]
		out = append(out, Object{
			{"name", h.Name},
			{"metric", h.Metric},
			{"quantile", orNull(h.Quantile)},
			{"limit_s", h.Limit},
			{"before_s", h.Before},
			{"after_s", h.After},
			{"low_s", h.Low},
			{"high_s", h.High},
			{"state", states[i].State},
			{"kept_before", h.WasMet},
		})
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

// judgement returns the direction of a change, from one measurement before and one after, with the interval that
// repeats of one configuration seldom exceed.
func judgement(d *effect.Delta, predictions []engine.Prediction) Object {
	if d == nil {
		d = &effect.Delta{Direction: verdict.Inconclusive, Reason: "nothing to compare", Classic: verdict.Plateau, ClassicReason: "nothing to compare"}
	}
	var noVerdict any
	if d.Verdict == nil {
		noVerdict = "one run before and one after cannot distinguish a change from noise"
	}
	measured := d.MeasuredMetrics()
	var predicted []predictedMetric
	for _, p := range predictions {
		for _, m := range measured {
			if m.Name == p.Metric {
				within := optionalBool(p.Covers(m.Change))
				predicted = append(predicted, predictedMetric{p.Metric, &p.Unit, p.Low, p.Mid, p.High, m.Change, within})
				break
			}
		}
	}
	var metrics []Object
	for _, m := range measured {
		metrics = append(metrics, Object{{"metric", m.Name}, {"unit", m.Before.Unit}, {"before", m.Before.Value}, {"after", m.After.Value}, {"change", m.Change}})
	}
	return Object{
		{"direction", d.Direction},
		{"reason", d.Reason},
		{"classic", Object{
			{"direction", d.Classic},
			{"reason", d.ClassicReason},
			{"throughput_delta_pct", d.Throughput.Times(100)},
			{"efficiency_delta_pp", d.Efficiency.Times(100)},
			{"ttft_p99_delta_pct", d.TTFTP99.Times(100)},
		}},
		{"statistical", statistical(d.Verdict)},
		{"statistical_reason", noVerdict},
		{"prediction", goalPrediction(d, predictions)},
		{"predictions", predicted},
		{"metrics", metrics},
	}
}

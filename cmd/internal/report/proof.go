package report

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// level is the share of cases in which an interval holds what it is about.
const level = 0.95

// statisticalObject is a verdict with what it rests on, null where none was made.
func statisticalObject(r *verdict.Result) any {
	if r == nil {
		return nil
	}
	o := object{
		{"direction", r.Direction},
		{"reason", r.Reason},
		{"goal", goalName(r.Goal)},
		{"level", level},
		{"effect", effectObject(r.Effect, r.Known)},
		{"lower_bound", r.LowerBound},
		{"measured_half_width", ratioOf(r.Measured, r.Known)},
		{"restart_half_width", ratioOf(r.Restart, r.Known)},
		{"restart_spread", object{{"sd", ratioOf(r.Spread.SD, true)}, {"repeats", r.Spread.Repeats}, {"from", known(r.Spread.From)}}},
		{"bias", ratioOf(r.Bias, r.Known)},
		{"settled", r.Settled},
		{"need", known(r.Need)},
		{"cause", known(string(r.Cause))},
		{"limited_by", object{{"before", known(string(r.Limited[0]))}, {"after", known(string(r.Limited[1]))}}},
		{"steady", object{{"before", steadyObject(&r.Steady[0])}, {"after", steadyObject(&r.Steady[1])}}},
	}
	measures, traffic := []any{}, []any{}
	for i := range r.Measures {
		m := &r.Measures[i]
		measures = append(measures, object{
			{"metric", m.Metric}, {"quantile", quantileOf(m.Quantile)}, {"before", number(m.Before)}, {"after", number(m.After)}, {"change", effectObject(m.Change, m.Known)},
			{"moved", m.Moved}, {"resolution", number(m.Resolution)}, {"observations", number(stat.Some(m.Count))},
		})
	}
	for i := range r.Traffic {
		s := &r.Traffic[i]
		traffic = append(traffic, object{
			{"name", s.Name}, {"before", number(s.Before)}, {"after", number(s.After)}, {"change", effectObject(s.Change, s.Before.OK && s.After.OK)}, {"moved", s.Moved},
		})
	}
	return append(o, member{"measures", measures}, member{"traffic", traffic}, member{"objectives", objectivesArray(r)})
}

func goalName(g verdict.Goal) verdict.Goal {
	if g == "" {
		return verdict.Throughput
	}
	return g
}

func steadyObject(s *verdict.Steadiness) object {
	return object{{"slices_cut", s.Cut}, {"slices_used", s.Used}, {"drift", ratioOf(s.Drift, true)}, {"period", s.Period}, {"block", s.Block}}
}

func objectivesArray(r *verdict.Result) []any {
	out := []any{}
	aims := engine.Proof{Result: r}.Aims()
	for i := range r.Objectives {
		h := &r.Objectives[i]
		out = append(out, object{
			{"name", h.Name}, {"metric", h.Metric}, {"quantile", quantileOf(h.Quantile)}, {"limit_s", number(stat.Some(h.Limit))}, {"before_s", number(h.Before)},
			{"after_s", number(h.After)}, {"low_s", number(h.Low)}, {"high_s", number(h.High)}, {"state", aims[i].State}, {"kept_before", h.Was},
		})
	}
	return out
}

// quantileOf is a quantile, null for a mean or a rate.
func quantileOf(q float64) any {
	if q == 0 {
		return nil
	}
	return number(stat.Some(q))
}

func ratioOf(v float64, known bool) any {
	if !known {
		return nil
	}
	return number(stat.Some(v))
}

// effectObject is an interval, null where it is not known.
func effectObject(i verdict.Interval, known bool) any {
	if !known {
		return nil
	}
	return intervalObject(stat.Some(i.Mid), stat.Some(i.Low), stat.Some(i.High))
}

// goalPrediction is what was predicted of the goal with what was measured, null where
// nothing was.
func goalPrediction(d *engine.Delta, list []engine.Prediction) any {
	p, judged := engine.ProofOf(d)
	goal, measured := verdict.Throughput, stat.None
	if judged {
		goal = p.Result.Goal
		if c, ok := p.Change(); ok {
			measured = stat.Some(c.Mid)
		}
	}
	q, ok := engine.PredictionOf(list, goal)
	if !ok {
		return nil
	}
	o := object{{"metric", q.Metric}, {"low", number(q.Low)}, {"mid", number(q.Mid)}, {"high", number(q.High)}, {"measured", number(measured)}}
	if !judged {
		return append(o, member{"held", nil})
	}
	_, _, held, known := p.Outcome(list)
	return append(o, member{"held", optional(held, known)})
}

// trialPayload is a look at a measurement under way.
func trialPayload(v *engine.Event) object {
	direction := any(nil)
	settled, need := false, any(nil)
	if v.Verdict != nil {
		direction, settled, need = v.Verdict.Direction, v.Verdict.Settled, known(v.Verdict.Need)
	}
	return object{
		{"look", counted(v.Look)}, {"looks", counted(v.Looks)}, {"measured_s", took(v)}, {"next_s", since(v.Next)}, {"direction", direction}, {"settled", settled}, {"need", need}, {"statistical", statisticalObject(v.Verdict)},
		{"prediction", goalPrediction(&engine.Delta{Verdict: v.Verdict}, predictedBy(v.Advice))},
	}
}

// counted is a number of things counted from 1, null where it is not known.
func counted(n int) any {
	if n <= 0 {
		return nil
	}
	return n
}

// canaryObject is what the answers to fixed prompts show, null where none were asked.
func canaryObject(c *engine.Canary) any {
	if c == nil {
		return nil
	}
	return object{{"prompts", c.Prompts}, {"same", c.Same}, {"drift", number(c.Drift)}, {"reason", known(c.Why)}}
}

func scoreObject(s engine.Score) object {
	return object{{"made", s.Made}, {"within", s.Within}, {"median_error", number(s.Error)}}
}

// limitsObject is how far an automatic run may go; null is no limit.
func limitsObject(m *engine.Limits) object {
	most := func(set bool, v any) any {
		if !set {
			return nil
		}
		return v
	}
	hours := any(nil)
	if m.From != m.To {
		hours = object{{"from_s", m.From.Seconds()}, {"to_s", m.To.Seconds()}}
	}
	return object{
		{"restarts", most(m.Restarts > 0, m.Restarts)}, {"downtime_s", most(m.Downtime > 0, m.Downtime.Seconds())}, {"hours", hours}, {"flags", most(m.Allow != nil, m.Allow)},
		{"restarts_used", m.UsedStarts}, {"downtime_used_s", m.UsedOutages.Seconds()},
	}
}

// trialObject is the measurement under way, null where none is.
func trialObject(t *engine.Trial) any {
	if t == nil {
		return nil
	}
	looks, results := []any{}, []any{}
	for _, at := range t.Looks {
		looks = append(looks, at.Seconds())
	}
	for i := range t.Results {
		results = append(results, statisticalObject(&t.Results[i]))
	}
	return object{{"iteration", t.Iteration}, {"looks_s", looks}, {"measured_s", t.Measured.Seconds()}, {"results", results}, {"predicted", clean(t.Predicted)}}
}

// pendingObject is what is about to be done, null where nothing is.
func pendingObject(p engine.Pending) any {
	if p.Text == "" {
		return nil
	}
	return object{{"text", p.Text}, {"at_s", p.At.Seconds()}}
}

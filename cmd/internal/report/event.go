package report

import (
	"cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// eventPayload is what an event says beyond its kind and time: all keys that the
// schema asks of the kind, also of an event that lacks what they are about.
func eventPayload(v *engine.Event) object {
	o := object{{"iteration", v.Iteration}}
	switch v.Kind {
	case engine.EventAttached:
		return append(o, member{"target", clean(v.Target)}, member{"command", v.Command})
	case engine.EventWindow:
		return append(o, windowPayload(v.Window)...)
	case engine.EventSettling:
		return append(o, member{"duration_s", took(v)}, member{"opened", openedObject(v.Opened)})
	case engine.EventTrial:
		return append(o, trialPayload(v)...)
	case engine.EventPending:
		return append(o, member{"in_s", v.Took.Seconds()}, member{"recommendation", clean(v.Advice)})
	case engine.EventWaiting:
		return append(o, member{"reason", cmp.Or(v.Text, "waiting")}, member{"most_s", v.Took.Seconds()})
	case engine.EventSpread:
		return append(o, member{"log_difference", number(v.Log)})
	case engine.EventMeasured:
		return append(o, measuredPayload(v)...)
	case engine.EventDiagnosis:
		return append(o, member{"diagnosis", diagnosisOf(v.Diagnosis)})
	case engine.EventRecommendation:
		o = append(o, member{"recommendation", clean(v.Advice)})
		if v.Steps != nil { // a dry run
			o = append(o, member{"steps", v.Steps}, member{"steps_back", v.StepsBack})
		}
		return o
	case engine.EventApplying:
		return append(o, member{"flag", v.Change.Flag}, member{"from", v.Change.From}, member{"to", v.Change.To}, member{"command", v.Command}, member{"predicted", clean(predictedBy(v.Advice))})
	case engine.EventKept, engine.EventReverted, engine.EventContinued:
		return append(o, member{"flag", v.Change.Flag}, member{"from", v.Change.From}, member{"to", v.Change.To}, member{"command", v.Command})
	case engine.EventServerDown:
		return append(o, member{"reason", cmp.Or(v.Text, "the server does not answer")})
	case engine.EventServerUp:
		return append(o, member{"command", v.Command}, member{"took_s", v.Took.Seconds()})
	case engine.EventVerdict:
		return append(append(o, verdictPayload(v.Delta, predictedBy(v.Advice))...), member{"canary", canaryObject(v.Canary)})
	case engine.EventPaused:
		return append(o, member{"reason", cmp.Or(v.Text, "paused")})
	case engine.EventError:
		return append(o, member{"message", cmp.Or(v.Text, "not known")})
	case engine.EventFinished:
		return append(o, finishedPayload(v.Finished)...)
	}
	return o
}

// took is how long something lasted, null where that is not known before its end.
func took(v *engine.Event) any {
	if v.Took <= 0 {
		return nil
	}
	return v.Took.Seconds()
}

// openedObject is the change that is to be judged, null where none is.
func openedObject(it *engine.Iteration) any {
	if it == nil {
		return nil
	}
	return object{{"noticed", known(string(it.Noticed))}, {"changes", changesArray(it.Changes)}, {"text", it.Text}}
}

// predictedBy lists what a recommendation expected, nothing where there was none.
func predictedBy(r *engine.Recommendation) []engine.Prediction {
	if r == nil {
		return nil
	}
	return r.Predicted
}

func diagnosisOf(d *engine.Diagnosis) any {
	if d == nil {
		return nil
	}
	return Document(d)
}

func measuredPayload(v *engine.Event) object {
	d := v.Diagnosis
	if d == nil {
		return object{{"duration_s", took(v)}, {"windows", nil}, {"measured", nil}}
	}
	return object{{"duration_s", d.Duration.Seconds()}, {"windows", clean(d.Windows)}, {"measured", measuredObject(d)}}
}

func windowPayload(w *engine.Window) object {
	if w == nil {
		w = &engine.Window{Why: "not read"}
	}
	return object{
		{"start_s", w.Start.Seconds()},
		{"duration_s", w.Seconds()},
		{"evaluable", w.Evaluable},
		{"active", w.Active},
		{"generation_tokens_per_s", number(w.Rate[engine.CounterGenerationTokens])},
		{"running", number(w.Running)},
		{"waiting", number(w.Waiting)},
		{"kv_usage", number(w.KV)},
		{"preemptions", number(w.Delta[engine.CounterPreemptions])},
		{"ttft_mean_s", number(w.Mean(engine.HistTTFT))},
		{"itl_mean_s", number(w.Mean(engine.HistITL))},
	}
}

// verdictPayload tells where a change led: by one measurement before and one after,
// and with the interval that repeats of one configuration would seldom leave. Without
// one that is null with its reason.
func verdictPayload(d *engine.Delta, predictions []engine.Prediction) object {
	if d == nil {
		d = &engine.Delta{Direction: engine.Inconclusive, Reason: "nothing to compare", Classic: engine.Plateau, ClassicReason: "nothing to compare"}
	}
	var result *verdict.Result
	why := any("one run before and one after: nothing here tells a change from noise")
	if d.Verdict != nil {
		result, why = d.Verdict, nil
	}
	held := []any{}
	judged := d.MeasuredMetrics()
	for _, p := range predictions {
		m, ok := metric(judged, p.Metric)
		if !ok {
			continue
		}
		o := object{{"metric", p.Metric}, {"unit", p.Unit}, {"low", number(p.Low)}, {"mid", number(p.Mid)}, {"high", number(p.High)}, {"measured", number(m.Change)}}
		yes, known := p.Held(m.Change)
		held = append(held, append(o, member{"held", optional(yes, known)}))
	}
	rows := []any{}
	for _, m := range judged {
		rows = append(rows, object{{"metric", m.Name}, {"unit", m.Before.Unit}, {"before", number(m.Before.Value)}, {"after", number(m.After.Value)}, {"change", number(m.Change)}})
	}
	return object{
		{"direction", d.Direction},
		{"reason", d.Reason},
		{"classic", object{{"direction", d.Classic}, {"reason", d.ClassicReason}, {"throughput_delta_pct", percentOf(d.Throughput)}, {"efficiency_delta_pp", percentOf(d.Efficiency)}, {"ttft_p99_delta_pct", percentOf(d.TTFTP99)}}},
		{"statistical", statisticalObject(result)},
		{"statistical_reason", why},
		{"prediction", goalPrediction(d, predictions)},
		{"predictions", held},
		{"metrics", rows},
	}
}

func finishedPayload(f *engine.Finished) object {
	if f == nil {
		f = &engine.Finished{}
	}
	remains := []any{}
	for _, id := range f.Remains {
		remains = append(remains, id)
	}
	return object{
		{"exit_code", f.ExitCode},
		{"reason", f.Reason},
		{"command", f.Command},
		{"gain", number(f.Gain)},
		{"gain_interval", gainInterval(f)},
		{"restarts", f.Restarts},
		{"downtime_s", f.Downtime.Seconds()},
		{"score", scoreObject(f.Score)},
		{"limits", limitsObject(&f.Limits)},
		{"remains", remains},
	}
}

// gainInterval is the interval about the gain, null where it is not known.
func gainInterval(f *engine.Finished) any {
	o, ok := effectObject(f.GainWithin, f.GainKnown).(object)
	if !ok {
		return nil
	}
	return append(o, member{"level", level})
}

func optional(value, known bool) any {
	if !known {
		return nil
	}
	return value
}

func percentOf(ratio stat.Opt) any { return number(ratio.Times(100)) }

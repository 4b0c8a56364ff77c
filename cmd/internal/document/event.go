package document

import (
	"cmp"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// EventSchema is the schema of the lines that Events writes.
const EventSchema = "rooftop.event/v1"

// Events writes a run as it happens, one rooftop.event/v1 object per line. Its methods are not safe for
// concurrent use. It stops writing at the first error and keeps it.
type Events struct {
	// Simulated marks all events as those of a simulated server. If it is false, events are
	// marked once a simulated server is found.
	Simulated bool

	w   io.Writer
	seq int
	err error
}

// NewEvents returns an Events that writes to w.
func NewEvents(w io.Writer) *Events { return &Events{w: w} }

// Err returns the first write error.
func (e *Events) Err() error { return e.err }

// Event writes an event as one line.
func (e *Events) Event(v loop.Event) {
	if e.err != nil {
		return
	}
	e.Simulated = e.Simulated || v.Target.Simulated
	e.seq++
	o := Object{
		{"schema", EventSchema}, {"seq", e.seq}, {"t", v.T.Round(time.Millisecond).Seconds()}, {"type", v.Kind}, {"simulated", e.Simulated}, {"iteration", v.Iteration},
	}
	o = append(o, payload(&v)...)
	switch v.Kind {
	case loop.EventServerDown, loop.EventPaused, loop.EventError: // their Text is a reason or a message
	default:
		if v.Text != "" {
			o = append(o, Member{"text", v.Text})
		}
	}
	e.err = WriteLine(e.w, o)
}

// payload returns the keys of an event other than kind and time. It has all keys that the schema requires
// for the kind, even if the event lacks their values.
func payload(v *loop.Event) Object {
	change := Object{{"flag", v.Change.Flag}, {"from", v.Change.From}, {"to", v.Change.To}, {"command", v.Command}}
	switch v.Kind {
	case loop.EventAttached:
		return Object{{"target", v.Target}, {"command", v.Command}}
	case loop.EventWindow:
		return window(cmp.Or(v.Window, &engine.Window{Why: "not read"}))
	case loop.EventSettling:
		return Object{{"duration_s", orNull(max(v.Took, 0))}, {"opened", opened(v.Opened)}}
	case loop.EventTrial:
		return trialPayload(v)
	case loop.EventPending:
		return Object{{"in_s", v.Took}, {"recommendation", v.Advice}}
	case loop.EventWaiting:
		return Object{{"reason", cmp.Or(v.Text, "waiting")}, {"most_s", v.Took}}
	case loop.EventSpread:
		return Object{{"log_difference", v.Log}}
	case loop.EventMeasured:
		if d := v.Diagnosis; d != nil {
			return Object{{"duration_s", d.Duration}, {"windows", d.Windows}, {"measured", measured(d)}}
		}
		return Object{{"duration_s", orNull(max(v.Took, 0))}, {"windows", nil}, {"measured", nil}}
	case loop.EventDiagnosis:
		return Object{{"diagnosis", diagnosis(v.Diagnosis)}}
	case loop.EventRecommendation:
		if v.Steps != nil { // a dry run
			return Object{{"recommendation", v.Advice}, {"steps", v.Steps}, {"steps_back", v.StepsBack}}
		}
		if v.Preliminary != "" {
			return Object{{"recommendation", v.Advice}, {"preliminary", v.Preliminary}}
		}
		return Object{{"recommendation", v.Advice}}
	case loop.EventApplying:
		return append(change, Member{"predicted", predicted(v.Advice)})
	case loop.EventCanary, loop.EventKept, loop.EventReverted, loop.EventContinued:
		return change
	case loop.EventServerDown:
		return Object{{"reason", cmp.Or(v.Text, "the server does not answer")}}
	case loop.EventServerUp:
		return Object{{"command", v.Command}, {"took_s", v.Took}}
	case loop.EventUnhealthy:
		return Object{{"condition", condition(v.Condition, "")}}
	case loop.EventRecovered:
		return Object{{"condition", condition(v.Condition, "")}, {"took_s", v.Took}}
	case loop.EventVerdict:
		return append(judgement(v.Delta, predicted(v.Advice)), Member{"answers", answers(v.AnswerCheck)})
	case loop.EventPaused:
		return Object{{"reason", cmp.Or(v.Text, "paused")}}
	case loop.EventError:
		return Object{{"message", cmp.Or(v.Text, "not known")}}
	case loop.EventFinished:
		return finished(cmp.Or(v.Finished, &loop.Finished{}))
	}
	return nil
}

// predicted returns the predictions of a recommendation, none for nil.
func predicted(r *engine.Recommendation) []engine.Prediction {
	if r == nil {
		return nil
	}
	return r.Predicted
}

// opened returns a change that is about to be judged, nil for none.
func opened(it *loop.Iteration) any {
	if it == nil {
		return nil
	}
	return Object{{"noticed", orNull(it.Noticed)}, {"changes", it.Changes}, {"text", it.Text}}
}

// window returns one measured window.
func window(w *engine.Window) Object {
	return Object{
		{"start_s", w.Start},
		{"duration_s", w.Seconds()},
		{"evaluable", w.Evaluable},
		{"active", w.Active},
		{"generation_tokens_per_s", w.Rate[engine.CounterGenerationTokens]},
		{"running", w.Running},
		{"waiting", w.Waiting},
		{"kv_usage", w.KV},
		{"preemptions", w.Delta[engine.CounterPreemptions]},
		{"ttft_mean_s", w.Mean(engine.HistTTFT)},
		{"itl_mean_s", w.Mean(engine.HistITL)},
	}
}

// trialPayload returns the interim verdict of a trial.
func trialPayload(v *loop.Event) Object {
	result := cmp.Or(v.Verdict, &verdict.Result{})
	return Object{
		{"look", orNull(v.Look)},
		{"looks", orNull(v.Looks)},
		{"measured_s", orNull(max(v.Took, 0))},
		{"next_s", orNull(max(v.Next, 0))},
		{"direction", orNull(result.Direction)},
		{"settled", result.Settled},
		{"need", orNull(result.Need)},
		{"statistical", statistical(v.Verdict)},
		{"prediction", goalPrediction(&effect.Delta{Verdict: v.Verdict}, predicted(v.Advice))},
	}
}

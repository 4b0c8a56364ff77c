package document

import (
	"cmp"
	"encoding/json"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
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
		return members(newWindow(v.Window))
	case loop.EventSettling:
		return Object{{"duration_s", eventDuration(v)}, {"opened", newOpened(v.Opened)}}
	case loop.EventTrial:
		return trialPayload(v)
	case loop.EventPending:
		return Object{{"in_s", v.Took.Seconds()}, {"recommendation", v.Advice}}
	case loop.EventWaiting:
		return Object{{"reason", cmp.Or(v.Text, "waiting")}, {"most_s", v.Took.Seconds()}}
	case loop.EventSpread:
		return Object{{"log_difference", v.Log}}
	case loop.EventMeasured:
		if d := v.Diagnosis; d != nil {
			return Object{{"duration_s", d.Duration.Seconds()}, {"windows", d.Windows}, {"measured", measured(d)}}
		}
		return Object{{"duration_s", eventDuration(v)}, {"windows", nil}, {"measured", nil}}
	case loop.EventDiagnosis:
		return Object{{"diagnosis", Diagnosis(v.Diagnosis)}}
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
		return Object{{"command", v.Command}, {"took_s", v.Took.Seconds()}}
	case loop.EventUnhealthy:
		return Object{{"condition", newCondition(v.Condition)}}
	case loop.EventRecovered:
		return Object{{"condition", newCondition(v.Condition)}, {"took_s", v.Took.Seconds()}}
	case loop.EventVerdict:
		return append(members(newJudgement(v.Delta, predicted(v.Advice))), Member{"answers", (*answerCheck)(v.AnswerCheck)})
	case loop.EventPaused:
		return Object{{"reason", cmp.Or(v.Text, "paused")}}
	case loop.EventError:
		return Object{{"message", cmp.Or(v.Text, "not known")}}
	case loop.EventFinished:
		return members(newFinished(cmp.Or(v.Finished, &loop.Finished{})))
	}
	return nil
}

// members returns the members of a struct, to be combined with others.
func members(v any) Object {
	list, _ := membersOf(v) // writing the members returns the error
	o := make(Object, len(list))
	for i, m := range list {
		o[i] = Member{m.name, json.RawMessage(m.raw)}
	}
	return o
}

// eventDuration returns a duration in seconds, absent until it is known.
func eventDuration(v *loop.Event) stat.Opt { return stat.Opt{V: v.Took.Seconds(), OK: v.Took > 0} }

// predicted returns the predictions of a recommendation, none for nil.
func predicted(r *engine.Recommendation) []engine.Prediction {
	if r == nil {
		return nil
	}
	return r.Predicted
}

// opened is a change that is about to be judged.
type opened struct {
	Noticed loop.Noticed    `json:"noticed" absent:""`
	Changes []engine.Change `json:"changes"`
	Text    string          `json:"text"`
}

func newOpened(it *loop.Iteration) *opened {
	if it == nil {
		return nil
	}
	return &opened{it.Noticed, it.Changes, it.Text}
}

// window is one measured window.
type window struct {
	Start       time.Duration `json:"start_s"`
	Duration    float64       `json:"duration_s"`
	Evaluable   bool          `json:"evaluable"`
	Active      bool          `json:"active"`
	Output      stat.Opt      `json:"generation_tokens_per_s"`
	Running     stat.Opt      `json:"running"`
	Waiting     stat.Opt      `json:"waiting"`
	KV          stat.Opt      `json:"kv_usage"`
	Preemptions stat.Opt      `json:"preemptions"`
	TTFT        stat.Opt      `json:"ttft_mean_s"`
	ITL         stat.Opt      `json:"itl_mean_s"`
}

func newWindow(w *engine.Window) window {
	if w == nil {
		w = &engine.Window{Why: "not read"}
	}
	return window{
		Start: w.Start, Duration: w.Seconds(), Evaluable: w.Evaluable, Active: w.Active, Output: w.Rate[engine.CounterGenerationTokens], Running: w.Running,
		Waiting: w.Waiting, KV: w.KV, Preemptions: w.Delta[engine.CounterPreemptions], TTFT: w.Mean(engine.HistTTFT), ITL: w.Mean(engine.HistITL),
	}
}

// trialPayload returns the interim verdict of a trial.
func trialPayload(v *loop.Event) Object {
	counted := func(n int) stat.Opt { return stat.Opt{V: float64(n), OK: n > 0} }
	var result verdict.Result
	if v.Verdict != nil {
		result = *v.Verdict
	}
	return Object{
		{"look", counted(v.Look)}, {"looks", counted(v.Looks)}, {"measured_s", eventDuration(v)}, {"next_s", stat.Opt{V: v.Next.Seconds(), OK: v.Next > 0}},
		{"direction", textOrNull(string(result.Direction))}, {"settled", result.Settled}, {"need", textOrNull(result.Need)},
		{"statistical", newStatistical(v.Verdict)}, {"prediction", goalPrediction(&effect.Delta{Verdict: v.Verdict}, predicted(v.Advice))},
	}
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

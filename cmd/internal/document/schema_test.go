package document_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// checkSchema validates the document of each state.
func checkSchema[T any](t *testing.T, name string, write func(io.Writer, T) error, states map[string]func() T) {
	t.Helper()
	s := schema(t, name)
	for state, v := range states {
		if err := s.Validate(decoded(t, []byte(written(t, write, v())))); err != nil {
			t.Errorf("%s, %s: %v", name, state, err)
		}
	}
}

// someDoctor is a result of the doctor command.
func someDoctor() tuning.Doctor {
	return tuning.Doctor{
		Purposes: []tuning.Purpose{{ID: "trace", Commands: "trace a GGML runtime", Can: true, Found: "all is there", Next: "rooftop trace"}},
		Checks:   []tuning.Check{{For: "server", Name: "NVML", State: tuning.CheckBad, Found: "fails", Effect: "no GPU reading", Next: "reboot"}},
	}
}

// TestDocumentsMatchSchemas validates states that the corpus does not have.
func TestDocumentsMatchSchemas(t *testing.T) {
	all := runs()
	all["empty"] = func() *loop.Snapshot { return &loop.Snapshot{} }
	checkSchema(t, "run.v1.schema.json", document.WriteRun, all)
	checkSchema(t, "diagnosis.v1.schema.json", document.WriteDiagnosis, map[string]func() *engine.Diagnosis{
		"adapters": states()["adapters"], "empty": func() *engine.Diagnosis { return &engine.Diagnosis{Outcome: engine.OutcomeNotEvaluable} },
	})
	checkSchema(t, probePages.schema, document.WriteProbe, probes())
	checkSchema(t, probePages.schema, document.WriteProbe, map[string]func() *capture.Record{
		"empty": func() *capture.Record { return &capture.Record{Capture: &capture.Capture{Kind: capture.Observation}} },
	})
	checkSchema(t, tracePages.schema, writeTrace, traces())
	checkSchema(t, tracePages.schema, writeTrace, map[string]func() *optrace.Summary{"none": func() *optrace.Summary { return nil }})
	checkSchema(t, "fleet.v1.schema.json", document.WriteFleet, map[string]func() []fleet.Server{"none": func() []fleet.Server { return nil }, "every state": everyState})
	checkSchema(t, "doctor.v1.schema.json", document.WriteDoctor, map[string]func() tuning.Doctor{"none": func() tuning.Doctor { return tuning.Doctor{} }, "some": someDoctor})
}

// TestSchemasReject checks that schemas detect errors in documents.
func TestSchemasReject(t *testing.T) {
	corpus := corpusDocuments(t)
	for name, c := range map[string]struct {
		doc    string
		faults [][2]string
	}{
		"ceiling": {corpus["ceiling.v1.schema.json"][0], [][2]string{
			{`"gpu": {`, `"device": {`}, {`"source": "flag"`, `"source": "guess"`}, {`"decode_ideal_tokens_per_s": `, `"decode_ideal_tokens_per_s": -`},
		}},
		"event": {corpus["event.v1.schema.json"][0], [][2]string{
			{`"seq":1`, `"seq":0`}, {`"simulated":true,`, ``}, {`"type":"`, `"type":"un`},
		}},
		"diagnosis": {string(diagnosed(t, kvBound())), [][2]string{
			{"rooftop.diagnosis/v1", "rooftop.diagnosis/v2"}, {`"max_num_seqs": {`, `"max_seqs": {`}, {`"ttft_p99_s": {`, `"ttft_p95_s": {`},
			{`"outcome": "recommendation"`, `"outcome": "healthy"`}, {`"reason": "only the V0`, `"cause": "only the V0`}, {`"value": 0.98458`, `"value": 98.458`},
			{`"started": "2026-01-05T09:02:02.003Z"`, `"started": "2026-01-05 09:02"`},
		}},
		"run": {written(t, document.WriteRun, tuned()), [][2]string{
			{`"phase": "done"`, `"phase": "lost"`}, {`"end": "kept"`, `"end": "won"`}, {`"before": {`, `"earlier": {`}, {`"left_reason": null`, `"left_reason": ""`},
			{`"restarts": 3`, `"restarts": "3"`}, {`"rooftop.diagnosis/v1"`, `"rooftop.event/v1"`}, {`"t_s":[2`, `"t_s":["2"`},
		}},
		"probe": {string(probeJSON(t, manyOnGPU())), [][2]string{
			{`"kind": "probe"`, `"kind": "walk"`}, {`"itl": {`, `"gaps": {`}, {`"reason": "no reading includes it"`, `"reason": ""`},
			{`"kind":"text"`, `"kind":"song"`}, {`"present":[[0,91]]`, `"present":[[0]]`},
		}},
		"trace": {string(tracePages.json(t, denseTrace())), [][2]string{
			{`"phase": "decode"`, `"phase": "encore"`}, {`"coverage": {`, `"extra": 1, "coverage": {`}, {`"left_out": 0,`, ``}, {`"dropped": 0`, `"dropped": -1`},
			{`"cost_per_hit_ns": 900`, `"cost_per_hit_ns": 900.5`},
		}},
		"doctor": {written(t, document.WriteDoctor, someDoctor()), [][2]string{
			{`"state": "bad"`, `"state": "red"`}, {`"for": "server"`, `"for": "nobody"`}, {`"can": true`, `"can": "yes"`},
		}},
	} {
		s := schema(t, name+".v1.schema.json")
		for _, f := range c.faults {
			if wrong := strings.Replace(c.doc, f[0], f[1], 1); wrong == c.doc {
				t.Errorf("%s: the document has no %s", name, f[0])
			} else if s.Validate(decoded(t, []byte(wrong))) == nil {
				t.Errorf("%s: the schema accepts %s", name, f[1])
			}
		}
	}
}

// barest returns an event of each kind, of which only the kind is known.
func barest() []loop.Event {
	var events []loop.Event
	for _, kind := range []loop.EventKind{
		loop.EventAttached, loop.EventWindow, loop.EventSettling, loop.EventMeasured, loop.EventServerDown, loop.EventServerUp, loop.EventVerdict, loop.EventPaused,
		loop.EventError, loop.EventFinished, loop.EventKept, loop.EventReverted, loop.EventUnhealthy, loop.EventRecovered, loop.EventTrial, loop.EventPending, loop.EventSpread,
	} {
		events = append(events, loop.Event{Kind: kind})
	}
	return events
}

func TestEventsMatchSchema(t *testing.T) {
	var b bytes.Buffer
	e, s := document.NewEvents(&b), schema(t, "event.v1.schema.json")
	for _, v := range append(barest(), loop.Event{Kind: loop.EventUnhealthy, Condition: engine.Condition{State: engine.Dead, Reason: "/health answers 503"}}) {
		b.Reset()
		e.Event(v)
		if err := s.Validate(decoded(t, b.Bytes())); err != nil {
			t.Errorf("%s: %v\n%s", v.Kind, err, b.String())
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestWriteErrorsAreReturned(t *testing.T) {
	for name, f := range map[string]autopilot.Follower{"events": document.NewEvents(brokenPipe{}), "lines": autopilot.NewNarrator(brokenPipe{}, render.Options{})} {
		for _, e := range barest() {
			f.Event(e)
		}
		if err := f.Err(); err == nil || err.Error() != "broken pipe" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if document.WriteDiagnosis(brokenPipe{}, slots()) == nil || WritePlain(brokenPipe{}, slots(), render.Options{}) == nil {
		t.Error("a failed write is not reported")
	}
}

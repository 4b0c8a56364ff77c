package document_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/past"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// A server in each state is compared with itself, and is each part of a timeline.
func TestMeasurementsMatchTheirSchemas(t *testing.T) {
	var parts []past.Part
	for i, name := range slices.Sorted(maps.Keys(states())) {
		m := past.Measurement{Name: name, Diagnosis: *states()[name]()}
		parts = append(parts, past.Part{From: time.Duration(i) * time.Minute, To: time.Duration(i+1) * time.Minute, Measurement: m})
	}
	parts[1].Condition = engine.Condition{State: engine.Hung, Reason: "no tokens for a minute"}
	comparison, timeline := schema(t, "compare.v1.schema.json"), schema(t, "timeline.v1.schema.json")
	for i := range parts {
		m := &parts[i].Measurement
		c := &tuning.PastComparison{Before: m, After: m, Delta: past.Compare(m, m, verdict.Plan{})}
		var b bytes.Buffer
		if err := document.WriteCompare(&b, c); err != nil {
			t.Fatal(err)
		}
		if err := comparison.Validate(decoded(t, b.Bytes())); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	var b bytes.Buffer
	if err := document.WriteTimeline(&b, &tuning.PastTimeline{Whole: &parts[0].Measurement, Parts: parts, Occurrences: past.Occurrences(parts)}); err != nil {
		t.Fatal(err)
	}
	if err := timeline.Validate(decoded(t, b.Bytes())); err != nil {
		t.Error(err)
	}
	if !bytes.Contains(b.Bytes(), []byte(`"ill": true`)) {
		t.Error("no part is told as ill")
	}
}

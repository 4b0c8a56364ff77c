package document

import (
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// CompareSchema is the schema of the document of a comparison of two measurements.
const CompareSchema = "rooftop.compare/v1"

// pastMeasurement is a measurement of the past in a document.
type pastMeasurement struct {
	Name           string                 `json:"name"`
	Started        time.Time              `json:"started"`
	Duration       time.Duration          `json:"duration_s"`
	Target         engine.Target          `json:"target"`
	Windows        engine.WindowCounts    `json:"windows"`
	Outcome        engine.Outcome         `json:"outcome"`
	Condition      *condition             `json:"condition"`
	Recommendation *engine.Recommendation `json:"recommendation"`
}

func newPastMeasurement(m *loop.Measurement) pastMeasurement {
	d := &m.Diagnosis
	return pastMeasurement{m.Name, d.Started, d.Duration, d.Target, d.Windows, d.Outcome, conditionOf(d), d.Recommendation}
}

// compared is a comparison of two measurements in a document.
type compared struct {
	Schema        string          `json:"schema"`
	Rooftop       program         `json:"rooftop"`
	Before        pastMeasurement `json:"before"`
	After         pastMeasurement `json:"after"`
	OneStart      bool            `json:"one_start"`
	Changes       []engine.Change `json:"changes"`
	LaunchesKnown bool            `json:"launches_known"`
	Verdict       *judgement      `json:"verdict"`
	// In a verdict alone: all measurements that were taken in, and whether it keeps a change.
	BeforeNames []string `json:"before_measurements,omitempty"`
	AfterNames  []string `json:"after_measurements,omitempty"`
	Kept        any      `json:"kept,omitempty"`
}

func newCompared(schema string, c *tuning.PastComparison) *compared {
	return &compared{
		Schema: schema, Rooftop: program{c.After.Version}, Before: newPastMeasurement(c.Before), After: newPastMeasurement(c.After),
		OneStart: c.Before.OneStart(c.After), Changes: c.Changes, LaunchesKnown: c.LaunchesKnown, Verdict: newJudgement(c.Delta, c.Predicted),
	}
}

// WriteCompare writes a comparison of two measurements as one rooftop.compare/v1 document.
func WriteCompare(w io.Writer, c *tuning.PastComparison) error {
	return Write(w, newCompared(CompareSchema, c))
}

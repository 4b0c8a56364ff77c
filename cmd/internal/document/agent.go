package document

import (
	"io"

	"github.com/rooftop-dev/rooftop/engine/loop"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// Schemas of the documents that only the tools of an agent return.
const (
	ServersSchema     = "rooftop.servers/v1"
	MeasurementSchema = "rooftop.measurement/v1"
	VerdictSchema     = "rooftop.verdict/v1"
	PredictionSchema  = "rooftop.prediction/v1"
	AppliedSchema     = "rooftop.applied/v1"
)

// WriteServers writes servers as one rooftop.servers/v1 document.
func WriteServers(w io.Writer, list []tuning.ListedServer) error {
	return Write(w, &struct {
		Schema  string                `json:"schema"`
		Servers []tuning.ListedServer `json:"servers"`
	}{ServersSchema, list})
}

// WriteMeasurement writes a measurement as one rooftop.measurement/v1 document.
func WriteMeasurement(w io.Writer, m *loop.Measurement) error {
	return Write(w, &struct {
		Schema      string          `json:"schema"`
		Measurement pastMeasurement `json:"measurement"`
		Launch      string          `json:"launch" absent:""`
		Measured    Object          `json:"measured"`
		Notes       []string        `json:"notes"`
	}{MeasurementSchema, newPastMeasurement(m), m.Inputs.LaunchText, measured(&m.Diagnosis), m.Notes})
}

// WriteVerdict writes a verdict on all measurements of two configurations as one rooftop.verdict/v1 document.
func WriteVerdict(w io.Writer, c *tuning.PastComparison) error {
	doc := newCompared(VerdictSchema, c)
	doc.BeforeNames, doc.AfterNames, doc.Kept = c.BeforeNames, c.AfterNames, c.Kept
	return Write(w, doc)
}

// WritePrediction writes the predicted effect of a change as one rooftop.prediction/v1 document. r is nil if nothing
// predicts it, for the reason why.
func WritePrediction(w io.Writer, measurement string, change engine.Change, r *engine.Recommendation, why string) error {
	return Write(w, &struct {
		Schema      string                 `json:"schema"`
		Measurement string                 `json:"measurement"`
		Change      engine.Change          `json:"change"`
		Prediction  *engine.Recommendation `json:"prediction"`
		Reason      string                 `json:"reason" absent:""`
	}{PredictionSchema, measurement, change, r, why})
}

// WriteApplied writes a change that was made, or its revert, as one rooftop.applied/v1 document.
func WriteApplied(w io.Writer, a *tuning.AppliedChange) error {
	return Write(w, &struct {
		Schema string `json:"schema"`
		*tuning.AppliedChange
	}{AppliedSchema, a})
}

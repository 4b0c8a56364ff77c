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
	return Write(w, Object{{"schema", ServersSchema}, {"servers", list}})
}

// WriteMeasurement writes a measurement as one rooftop.measurement/v1 document.
func WriteMeasurement(w io.Writer, m *loop.Measurement) error {
	return Write(w, Object{
		{"schema", MeasurementSchema},
		{"measurement", pastMeasurement(m)},
		{"launch", orNull(m.Inputs.LaunchText)},
		{"measured", measured(&m.Diagnosis)},
		{"notes", m.Notes},
	})
}

// WriteVerdict writes a verdict on all measurements of two configurations as one rooftop.verdict/v1 document.
func WriteVerdict(w io.Writer, c *tuning.PastComparison) error {
	return Write(w, append(comparison(VerdictSchema, c),
		Member{"before_measurements", c.BeforeNames}, Member{"after_measurements", c.AfterNames}, Member{"kept", c.Kept}))
}

// WritePrediction writes the predicted effect of a change as one rooftop.prediction/v1 document. r is nil if nothing
// predicts it, for the reason why.
func WritePrediction(w io.Writer, measurement string, change engine.Change, r *engine.Recommendation, why string) error {
	return Write(w, Object{{"schema", PredictionSchema}, {"measurement", measurement}, {"change", change}, {"prediction", r}, {"reason", orNull(why)}})
}

// WriteApplied writes a change that was made, or its revert, as one rooftop.applied/v1 document.
func WriteApplied(w io.Writer, a *tuning.AppliedChange) error {
	return Write(w, &struct {
		Schema string `json:"schema"`
		*tuning.AppliedChange
	}{AppliedSchema, a})
}

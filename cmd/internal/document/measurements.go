package document

import (
	"io"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// CompareSchema is the schema of the document of a comparison of two measurements.
const CompareSchema = "rooftop.compare/v1"

// pastMeasurement returns a measurement of the past.
func pastMeasurement(m *loop.Measurement) Object {
	d := &m.Diagnosis
	return Object{
		{"name", m.Name},
		{"started", d.Started},
		{"duration_s", d.Duration},
		{"target", d.Target},
		{"windows", d.Windows},
		{"outcome", d.Outcome},
		{"condition", conditionOf(d)},
		{"recommendation", d.Recommendation},
	}
}

// comparison returns a comparison of two measurements.
func comparison(schema string, c *tuning.PastComparison) Object {
	return Object{
		{"schema", schema},
		{"rooftop", program{c.After.Version}},
		{"before", pastMeasurement(c.Before)},
		{"after", pastMeasurement(c.After)},
		{"one_start", c.Before.OneStart(c.After)},
		{"changes", c.Changes},
		{"launches_known", c.LaunchesKnown},
		{"verdict", judgement(c.Delta, c.Predicted)},
	}
}

// WriteCompare writes a comparison of two measurements as one rooftop.compare/v1 document.
func WriteCompare(w io.Writer, c *tuning.PastComparison) error {
	return Write(w, comparison(CompareSchema, c))
}

package document

import (
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/page/probe"
)

// ProbeCompareSchema is the schema of the document of a comparison of two captures.
const ProbeCompareSchema = "rooftop.probe-compare/v1"

// comparedRecord is one side of a comparison.
type comparedRecord struct {
	File    string                `json:"file"`
	Kind    capture.Kind          `json:"kind"`
	Started time.Time             `json:"started"`
	Length  time.Duration         `json:"duration_s"`
	Target  engine.Target         `json:"target"`
	Request *capture.RequestSetup `json:"request"`
}

// WriteProbeCompare writes c as one rooftop.probe-compare/v1 object, indented.
func WriteProbeCompare(w io.Writer, c *probe.Comparison) error {
	side := func(file string, r *capture.Record) comparedRecord {
		return comparedRecord{file, r.Capture.Kind, r.Capture.Wall, r.Capture.Span(), r.Setup.Target, r.Setup.Request}
	}
	figures := Object{}
	for i := range c.Changes {
		figures = append(figures, Member{c.Changes[i].Name, c.Changes[i]})
	}
	return Write(w, &struct {
		Schema     string               `json:"schema"`
		Rooftop    version              `json:"rooftop"`
		A          comparedRecord       `json:"a"`
		B          comparedRecord       `json:"b"`
		Comparable bool                 `json:"comparable"`
		Refused    []string             `json:"refused"`
		Differs    []compare.Difference `json:"differs"`
		Figures    Object               `json:"figures"`
		Notes      []string             `json:"notes"`
	}{
		ProbeCompareSchema, version{c.Version}, side(c.NameA, c.A), side(c.NameB, c.B), len(c.Refused) == 0, c.Refused, c.Differs, figures, c.Notes,
	})
}

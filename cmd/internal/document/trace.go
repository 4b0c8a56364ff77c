package document

import (
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
)

// TraceSchema is the schema of the document that WriteTrace writes.
const TraceSchema = "rooftop.trace/v1"

// traceDocument is a rooftop.trace/v1 object.
type traceDocument struct {
	Schema  string    `json:"schema"`
	Rooftop program   `json:"rooftop"`
	Started time.Time `json:"started"`
	*optrace.Summary
}

// WriteTrace writes t as one rooftop.trace/v1 object, indented, with a trailing newline. It has every key;
// absent values are null, and gaps state why.
func WriteTrace(w io.Writer, t *trace.Trace) error {
	return Write(w, &traceDocument{TraceSchema, program{t.Version}, t.Started, t.Figures()})
}

package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/comparison"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
)

// TraceSchema is the schema of the document that WriteTrace writes, TraceCompareSchema that of
// WriteTraceComparison.
const (
	TraceSchema        = "rooftop.trace/v1"
	TraceCompareSchema = "rooftop.trace-compare/v1"
)

// traceDocument is a rooftop.trace/v1 object.
type traceDocument struct {
	Schema  string    `json:"schema"`
	Rooftop program   `json:"rooftop"`
	Started time.Time `json:"started"`
	*optrace.Summary
}

// WriteTrace writes t as one rooftop.trace/v1 object, indented, with a trailing newline. It has every key;
// absent values are null, and gaps state why. ReadTrace returns the same trace.
func WriteTrace(w io.Writer, t *trace.Trace) error {
	return Write(w, &traceDocument{TraceSchema, program{t.Version}, t.Started, t.Figures()})
}

// ReadTrace reads a document written by WriteTrace. It fails if the document has another schema or cannot be
// decoded.
func ReadTrace(r io.Reader) (*trace.Trace, error) {
	var head struct {
		Schema  string    `json:"schema"`
		Rooftop program   `json:"rooftop"`
		Started time.Time `json:"started"`
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		if head.Schema == "" {
			return nil, fmt.Errorf("not a document written by rooftop trace --json: %w", err)
		}
		return nil, fmt.Errorf("decode %s: %w", head.Schema, err)
	}
	switch head.Schema {
	case TraceSchema:
	case "":
		return nil, errors.New("not a document written by rooftop trace --json: it has no schema")
	default:
		return nil, fmt.Errorf("the document has schema %s, not %s: write it with rooftop trace --json", head.Schema, TraceSchema)
	}
	s := &optrace.Summary{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("decode a figure of %s: %w", head.Schema, err)
	}
	return &trace.Trace{Version: head.Rooftop.Version, Started: head.Started, Summary: s}, nil
}

// tracedSide is one side of a comparison.
type tracedSide struct {
	File    string    `json:"file"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Command string    `json:"command"`
	Model   string    `json:"model"`
	Runtime string    `json:"runtime"`
	Threads int       `json:"threads" absent:"0"`
	Detail  string    `json:"detail"`
}

func sideOf(name string, t *trace.Trace) tracedSide {
	s := t.Figures()
	return tracedSide{name, t.Version, t.Started, s.Coverage.Seconds, s.Target.Command, s.Target.Model, s.Target.Runtime, trace.Threads(s), s.Coverage.Detail}
}

// WriteTraceComparison writes c as one rooftop.trace-compare/v1 object, indented.
func WriteTraceComparison(w io.Writer, c *trace.Comparison) error {
	return Write(w, &struct {
		Schema     string     `json:"schema"`
		Rooftop    program    `json:"rooftop"`
		A          tracedSide `json:"trace_a"`
		B          tracedSide `json:"trace_b"`
		Comparable bool       `json:"comparable"`
		*comparison.Comparison
	}{TraceCompareSchema, program{c.Version}, sideOf(c.NameA, c.A), sideOf(c.NameB, c.B), len(c.Refused) == 0, c.Comparison})
}

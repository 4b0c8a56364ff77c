package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// TraceSchema names the document that WriteTraceJSON writes.
const TraceSchema = "rooftop.trace/v1"

// Trace is the figures of a trace as a document holds them.
type Trace struct {
	Version string    // of the rooftop that traced
	Started time.Time // wall clock at the begin of the recording
	Summary *optrace.Summary
}

// WriteTraceJSON writes t as one rooftop.trace/v1 object, indented, with a trailing
// newline. Every key is always there; what is absent is null, and gaps say why.
// ReadTrace gives t back.
func WriteTraceJSON(w io.Writer, t *Trace) error {
	s := t.Summary
	if s == nil {
		s = &optrace.Summary{}
	}
	head := object{
		{"schema", TraceSchema},
		{"rooftop", object{{"version", t.Version}}},
		{"started", t.Started.UTC().Format(time.RFC3339Nano)},
	}
	figures, _ := clean(s).(object)
	return encode(w, append(head, figures...), "  ")
}

// cleanObserver is what watching costs; what was not measured is null.
func cleanObserver(x optrace.Observer) object {
	o := cleanStruct(reflect.ValueOf(x))
	if x.Windows == 0 {
		o.forget("measured_ratio", "measured_low", "measured_high")
	}
	if !x.Reader.OK {
		o.forget("reader_ns")
	}
	return o
}

// cleanCoverage is what the figures rest on; what was not traced is null.
func cleanCoverage(x optrace.Coverage) object {
	o := cleanStruct(reflect.ValueOf(x))
	if !x.SawGraphs() {
		o.forget("graphs", "partial_graphs")
	}
	if x.Calls == 0 && x.Graphs > 0 {
		o.forget("calls")
	}
	return o
}

// forget makes members null.
func (o object) forget(names ...string) {
	for i := range o {
		if slices.Contains(names, o[i].key) {
			o[i].value = nil
		}
	}
}

// ReadTrace reads a document that WriteTraceJSON wrote. Its error says what is wrong
// with the document.
func ReadTrace(r io.Reader) (*Trace, error) {
	var doc struct {
		Schema  string `json:"schema"`
		Rooftop struct {
			Version string `json:"version"`
		} `json:"rooftop"`
		Started time.Time `json:"started"`
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		if doc.Schema == "" {
			return nil, fmt.Errorf("no document of rooftop trace --json: %w", err)
		}
		return nil, fmt.Errorf("a part of %s cannot be read: %w", doc.Schema, err)
	}
	switch doc.Schema {
	case TraceSchema:
	case "":
		return nil, errors.New("no document of rooftop trace --json: it has no schema")
	default:
		return nil, fmt.Errorf("a document of %s, not of %s: write it with rooftop trace --json", doc.Schema, TraceSchema)
	}
	s := &optrace.Summary{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("a figure of %s cannot be read: %w", doc.Schema, err)
	}
	return &Trace{Version: doc.Rooftop.Version, Started: doc.Started, Summary: s}, nil
}

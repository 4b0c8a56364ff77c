package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// ReadProbe reads a document that WriteProbeJSON wrote. Of the processes and devices
// of a sample the order is that of their lists. It fails where the document is not
// whole, of another schema, or contradicts itself.
func ReadProbe(r io.Reader) (*Probe, error) {
	var doc probeDocument
	err := json.NewDecoder(r).Decode(&doc)
	var other *json.UnmarshalTypeError // of a document that is another one, not a broken one
	if err != nil && (doc.Schema == "" || doc.Schema == ProbeSchema || !errors.As(err, &other)) {
		return nil, fmt.Errorf("read a probe: %w: give the whole file that --json wrote", err)
	}
	if doc.Schema != ProbeSchema {
		return nil, fmt.Errorf("read a probe: the file is of schema %q, not %s: give one that rooftop probe --json wrote", doc.Schema, ProbeSchema)
	}
	if doc.Kind != capture.Probe && doc.Kind != capture.Observation {
		return nil, fmt.Errorf("read a probe: kind %q is neither %s nor %s: it was written by another version", doc.Kind, capture.Probe, capture.Observation)
	}
	c, err := doc.Capture.capture()
	if err != nil {
		return nil, fmt.Errorf("read a probe: %w: the file was changed after it was written", err)
	}
	c.Kind, c.Wall, c.Period, c.Ended = doc.Kind, doc.Started, capture.Seconds(doc.Period), textOf(doc.Ended)
	c.Missing, c.Notes = doc.Missing, doc.Notes
	return &Probe{
		Setup:   capture.Setup{Version: doc.Rooftop.Version, Target: doc.Target, Request: doc.Request},
		Capture: c,
		Summary: doc.Figures.summary(),
	}, nil
}

// probeDocument is what is read of a document.
type probeDocument struct {
	Schema  string       `json:"schema"`
	Kind    capture.Kind `json:"kind"`
	Rooftop struct {
		Version string `json:"version"`
	} `json:"rooftop"`
	Started time.Time             `json:"started"`
	Ended   *string               `json:"ended"`
	Period  float64               `json:"period_s"`
	Target  engine.Target         `json:"target"`
	Request *capture.RequestSetup `json:"request"`
	Figures *wireFigures          `json:"figures"`
	Missing []engine.Missing      `json:"missing"`
	Notes   []string              `json:"notes"`
	Capture wireCapture           `json:"capture"`
}

// wireFigures are the figures of a document.
type wireFigures struct {
	Span     float64                  `json:"span_s"`
	Requests *capture.RequestsSummary `json:"requests"`
	Tree     *capture.TreeUsage       `json:"tree"`
	GPUs     []wireGPUUsage           `json:"gpus"`
	Energy   capture.Energy           `json:"energy"`
	Derived  namedQuantities          `json:"derived"`
	Sizing   capture.Sizing           `json:"sizing"`
	Warnings []capture.Warning        `json:"warnings"`
}

type wireGPUUsage struct {
	Index    int                    `json:"index"`
	Name     string                 `json:"name"`
	UUID     string                 `json:"uuid"`
	Fields   map[string]capture.Row `json:"fields"`
	Throttle struct {
		Mask mask `json:"mask"`
	} `json:"throttle_reasons"`
	Energy capture.Energy `json:"energy"`
}

func (f *wireFigures) summary() *capture.Summary {
	if f == nil {
		return nil
	}
	s := &capture.Summary{
		Span: capture.Seconds(f.Span), Requests: f.Requests, Tree: f.Tree, Energy: f.Energy, Derived: f.Derived, Sizing: f.Sizing, Warnings: f.Warnings,
	}
	for _, w := range f.GPUs {
		g := capture.GPUUsage{Index: w.Index, Name: w.Name, UUID: w.UUID, Throttle: w.Throttle.Mask.bits, ThrottleOK: w.Throttle.Mask.ok, Energy: w.Energy}
		for _, r := range readings() {
			g.Fields[r.field] = w.Fields[r.name]
		}
		s.GPUs = append(s.GPUs, g)
	}
	return s
}

// namedQuantities is an object of quantities whose order is kept.
type namedQuantities []engine.NamedQuantity

// UnmarshalJSON implements json.Unmarshaler.
func (q *namedQuantities) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return err // null, which is none
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		n := engine.NamedQuantity{Name: fmt.Sprint(name)}
		if err := d.Decode(&n.Quantity); err != nil {
			return err
		}
		*q = append(*q, n)
	}
	return nil
}

// textOf is a text, "" where there is none.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func duration(s seconds) time.Duration { return capture.Seconds(float64(s)) }

// momentOf is what moment was given.
func momentOf(s *seconds) time.Duration {
	if s == nil {
		return 0
	}
	return duration(*s)
}

// capture turns columns back into samples.
func (w *wireCapture) capture() (*capture.Capture, error) {
	c := &capture.Capture{Begin: duration(w.Begin), End: duration(w.End), PagesFrom: w.PagesFrom, Counting: capture.Counting(w.Counting)}
	for i := range w.Requests {
		r, err := w.Requests[i].request()
		if err != nil {
			return nil, fmt.Errorf("capture.requests[%d]: %w", i, err)
		}
		c.Requests = append(c.Requests, r)
	}
	if err := w.bounded(); err != nil {
		return nil, err
	}
	var err error
	if c.Tree, err = w.Tree.tree(); err != nil {
		return nil, fmt.Errorf("capture.tree: %w", err)
	}
	if c.GPUs, err = w.GPUs.gpus(); err != nil {
		return nil, fmt.Errorf("capture.gpus: %w", err)
	}
	if c.Pages, err = w.Pages.pages(); err != nil {
		return nil, fmt.Errorf("capture.pages: %w", err)
	}
	return c, nil
}

func (w *wireRequest) request() (capture.Request, error) {
	r := capture.Request{
		ID: w.ID, Lane: w.Lane, Sent: duration(w.Sent), Connect: duration(w.Connect), Reused: w.Reused,
		Written: momentOf(w.Written), Answered: momentOf(w.Answered), End: duration(w.End), Finish: textOf(w.Finish), Error: textOf(w.Error),
		PromptTokens: w.PromptTokens, CachedTokens: w.CachedTokens, OutputTokens: w.OutputTokens, ReasoningTokens: w.ReasoningTokens,
		PrefillSeconds: w.PrefillSeconds, DecodeSeconds: w.DecodeSeconds, Text: textOf(w.Text), Notes: w.Notes,
	}
	if w.Status != nil {
		r.Status = *w.Status
	}
	at, sizes := w.Chunks.At, w.Chunks.Bytes
	if len(sizes) != len(at) {
		return r, fmt.Errorf("%d times of chunks and %d sizes", len(at), len(sizes))
	}
	for _, run := range w.Chunks.Kinds {
		kind := slices.Index(chunkKinds[:], run.Kind)
		n := len(r.Chunks)
		if kind < 0 || run.Count < 0 || run.Count > len(at)-n {
			return r, fmt.Errorf("%d chunks of kind %q do not fit into %d", run.Count, run.Kind, len(at))
		}
		for i := n; i < n+run.Count; i++ {
			r.Chunks = append(r.Chunks, capture.Chunk{At: duration(at[i]), Kind: capture.ChunkKind(kind), Bytes: sizes[i]})
		}
	}
	if len(r.Chunks) != len(at) {
		return r, fmt.Errorf("%d of %d chunks have a kind", len(r.Chunks), len(at))
	}
	return r, nil
}

func (w *wirePages) pages() ([]capture.PageSample, error) {
	out := make([]capture.PageSample, len(w.At))
	if len(w.Took) != len(w.At) {
		return nil, fmt.Errorf("%d times and %d durations", len(w.At), len(w.Took))
	}
	for name, column := range w.Fields {
		if len(column) != len(out) {
			return nil, fmt.Errorf("%s has %d values for %d pages", name, len(column), len(out))
		}
	}
	for i := range out {
		p := &out[i]
		p.At, p.Took = duration(w.At[i]), duration(w.Took[i])
		for name, v := range pageFields(p) {
			if column := w.Fields[name]; column != nil {
				*v = column[i]
			}
		}
	}
	for _, e := range w.Errors {
		if e.Sample < 0 || e.Sample >= len(out) {
			return nil, fmt.Errorf("an error of page %d of %d", e.Sample, len(out))
		}
		out[e.Sample].Error = e.Error
	}
	return out, nil
}

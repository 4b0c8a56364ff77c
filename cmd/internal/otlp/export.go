package otlp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// Result says what a collector took.
type Result struct {
	Spans, Points int64  // accepted
	TraceID       string // 32 hexadecimal digits, to look the run up by; "" none was sent
	// Notes are what the collector said beside its yes, one sentence each.
	Notes []string
}

// PartialError says that a collector took a part.
type PartialError struct {
	URL            string
	Sent, Rejected int64
	What           string // "spans" or "data points"
	Said           string
}

// Error returns the count with the next step.
func (e *PartialError) Error() string {
	s := fmt.Sprintf("%s rejected %d of %d %s", e.URL, e.Rejected, e.Sent, e.What)
	if e.Said != "" {
		s += fmt.Sprintf(" (%q)", e.Said)
	}
	return s + ": the collector's log says more"
}

// Export sends a capture and its figures to a collector, within ten seconds, and
// returns what it took. The error is one sentence; a trace that was not taken does
// not keep the metrics back, and a run is none the worse for either.
func Export(ctx context.Context, o Options, c *capture.Capture, s *capture.Summary) (Result, error) {
	base, err := o.base()
	if err != nil {
		return Result{}, err
	}
	transport, err := o.transport()
	if err != nil {
		return Result{}, err
	}
	defer transport.CloseIdleConnections()
	e := &export{o: &o, c: c, s: s}
	e.to = sender{transport: transport, base: base, headers: o.Headers, agent: "rooftop/" + o.Version}
	return e.all(ctx)
}

// schemaURL names the semantic conventions whose names are used.
const schemaURL = "https://opentelemetry.io/schemas/1.43.0"

// export is one export while it goes on.
type export struct {
	o      *Options
	c      *capture.Capture
	s      *capture.Summary
	to     sender
	result Result
	failed []string
	cause  error // the first that failed
}

func (e *export) all(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res := e.resource()
	e.traces(ctx, res)
	// A collector that does not answer is not waited for twice.
	if reached(e.cause) {
		e.metrics(ctx, res)
	}
	switch len(e.failed) {
	case 0:
		return e.result, nil
	case 1:
		return e.result, fmt.Errorf("otlp: %w", e.cause)
	}
	return e.result, fmt.Errorf("otlp: %w; and %s", e.cause, strings.Join(e.failed[1:], "; and "))
}

func (e *export) fail(err error) {
	if e.cause == nil {
		e.cause = err
	}
	e.failed = append(e.failed, err.Error())
}

// resource is who sends: rooftop, and what it looked at.
func (e *export) resource() *resource.Resource {
	attrs := []attribute.KeyValue{
		attribute.String("service.name", "rooftop"),
		attribute.String("telemetry.sdk.name", "opentelemetry"),
		attribute.String("telemetry.sdk.language", "go"),
		attribute.String("telemetry.sdk.version", sdk.Version()),
		attribute.String("rooftop.run.kind", string(e.c.Kind)),
	}
	if e.o.Version != "" {
		attrs = append(attrs, attribute.String("service.version", e.o.Version))
	}
	if target := e.target(); target != "" {
		attrs = append(attrs, attribute.String("rooftop.target", target))
	}
	return resource.NewWithAttributes(schemaURL, attrs...)
}

// traces sends the spans, some at a time.
func (e *export) traces(ctx context.Context, res *resource.Resource) {
	spans, id := e.spans(ctx, res)
	exporter := otlptrace.NewUnstarted(&uploader{e})
	for batch := range slices.Chunk(spans, maxSpans) {
		err := exporter.ExportSpans(ctx, batch)
		if own := errors.Unwrap(err); own != nil {
			err = own // the exporter puts words in front of ours
		}
		if !e.goOn(err) {
			return
		}
		e.result.TraceID = id
	}
}

// goOn notes an error, the first of its signal, and says whether there is sense in
// sending the next batch.
func (e *export) goOn(err error) bool {
	var part *PartialError
	switch {
	case err == nil:
		return true
	case !errors.As(err, &part):
		e.fail(err)
		return false
	}
	if !slices.ContainsFunc(e.failed, func(s string) bool { return strings.HasPrefix(s, part.URL) }) {
		e.fail(err)
	}
	return true
}

// reached says that a collector answered, whatever it was.
func reached(err error) bool {
	var refused *RefusedError
	var part *PartialError
	return err == nil || errors.As(err, &refused) || errors.As(err, &part)
}

// maxSpans and maxPoints keep a request near 1 MB, far below the 20 MiB that the
// collector's receiver takes by default (confighttp, defaultMaxRequestBodySize).
const (
	maxSpans  = 1000
	maxPoints = 8000
)

// uploader is the client of the SDK's trace exporter.
type uploader struct{ e *export }

// Start has nothing to start: a connection is opened by what is sent.
func (u *uploader) Start(context.Context) error { return nil }

// Stop has nothing to stop.
func (u *uploader) Stop(context.Context) error { return nil }

// UploadTraces sends spans. TracesData has the fields and numbers of an
// ExportTraceServiceRequest (opentelemetry-proto, trace/v1 and collector/trace/v1),
// whose Go type comes with gRPC.
func (u *uploader) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	validUTF8(spans)
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode the trace: %w", err)
	}
	var n int64
	for _, r := range spans {
		for _, s := range r.ScopeSpans {
			n += int64(len(s.Spans))
		}
	}
	took, err := u.e.send(ctx, "/v1/traces", "spans", n, body)
	u.e.result.Spans += took
	return err
}

// metrics sends the metrics, some at a time.
func (e *export) metrics(ctx context.Context, res *resource.Resource) {
	for _, batch := range batches(e.collect()) {
		body, n, err := encode(res, batch)
		if err != nil {
			e.fail(fmt.Errorf("encode the metrics: %w", err))
			return
		}
		took, err := e.send(ctx, "/v1/metrics", "data points", n, body)
		e.result.Points += took
		if !e.goOn(err) {
			return
		}
	}
}

// batches divides metrics so that none but a single metric has more than maxPoints.
func batches(all []metricdata.Metrics) [][]metricdata.Metrics {
	var list [][]metricdata.Metrics
	n := maxPoints
	for _, m := range all {
		k := points(m)
		if n+k > maxPoints {
			list, n = append(list, nil), 0
		}
		list[len(list)-1] = append(list[len(list)-1], m)
		n += k
	}
	return list
}

// send posts a body of n things and returns how many of them were taken.
func (e *export) send(ctx context.Context, path, what string, n int64, body []byte) (took int64, err error) {
	answer, err := e.to.post(ctx, path, body)
	if err != nil {
		return 0, err
	}
	where := e.to.base + path
	if answer.rejected > 0 {
		rejected := min(answer.rejected, n)
		return n - rejected, &PartialError{URL: where, Sent: n, Rejected: rejected, What: what, Said: answer.message}
	}
	if answer.message != "" {
		e.result.Notes = append(e.result.Notes, fmt.Sprintf("%s took everything and said %q", where, answer.message))
	}
	return n, nil
}

package otlp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// Result is what a collector accepted.
type Result struct {
	Spans, Points int64  // accepted
	TraceID       string // 32 hexadecimal digits, to find the run; "" if no trace was sent
	// Notes are warnings of the collector, one sentence each.
	Notes []string
}

// PartialError reports that a collector accepted only a part of the data.
type PartialError struct {
	URL            string
	Sent, Rejected int64
	What           string // "spans" or "data points"
	Message        string // from the collector
}

// Error returns the count and the next step.
func (e *PartialError) Error() string {
	s := fmt.Sprintf("%s rejected %d of %d %s", e.URL, e.Rejected, e.Sent, e.What)
	if e.Message != "" {
		s += fmt.Sprintf(" (%q)", e.Message)
	}
	return s + ": check the collector's log"
}

// Export sends a capture and its figures to a collector, within ten seconds, and returns what was
// accepted. The error is one sentence. If the trace is rejected, the metrics are still sent.
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

// schemaURL identifies the semantic conventions in use.
const schemaURL = "https://opentelemetry.io/schemas/1.43.0"

const scopeName = "github.com/rooftop-dev/rooftop/cmd/internal/otlp"

// export is one export in progress.
type export struct {
	o      *Options
	c      *capture.Capture
	s      *capture.Summary
	to     sender
	result Result
	failed []string
	cause  error // the first error
}

func (e *export) all(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e.sendTraces(ctx)
	if answered(e.cause) { // do not wait twice for a collector that does not respond
		e.sendMetrics(ctx)
	}
	switch len(e.failed) {
	case 0:
		return e.result, nil
	case 1:
		return e.result, fmt.Errorf("otlp: %w", e.cause)
	}
	return e.result, fmt.Errorf("otlp: %w; and %s", e.cause, strings.Join(e.failed[1:], "; and "))
}

// resource describes the sender: rooftop, and the observed server.
func (e *export) resource() *resourcepb.Resource {
	return &resourcepb.Resource{Attributes: attributes(nil).text("service.name", "rooftop").
		text("rooftop.run.kind", string(e.c.Kind)).text("service.version", e.o.Version).text("rooftop.target", e.target())}
}

func (e *export) scope() *commonpb.InstrumentationScope {
	return &commonpb.InstrumentationScope{Name: scopeName, Version: e.o.Version}
}

// maxSpans and maxPoints keep a request near 1 MB, far below the 20 MiB that the collector's
// receiver accepts by default (confighttp, defaultMaxRequestBodySize).
const (
	maxSpans  = 1000
	maxPoints = 8000
)

// sendTraces sends the spans in batches. TracesData has the fields and numbers of an
// ExportTraceServiceRequest (opentelemetry-proto, trace/v1 and collector/trace/v1), whose Go type
// imports gRPC. The same is true of MetricsData.
func (e *export) sendTraces(ctx context.Context) {
	spans, id := e.spans()
	for batch := range slices.Chunk(spans, maxSpans) {
		accepted, err := e.send(ctx, "/v1/traces", "spans", int64(len(batch)), &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
			Resource: e.resource(), SchemaUrl: schemaURL,
			ScopeSpans: []*tracepb.ScopeSpans{{Scope: e.scope(), SchemaUrl: schemaURL, Spans: batch}},
		}}})
		e.result.Spans += accepted
		if !e.proceed(err) {
			return
		}
		e.result.TraceID = id
	}
}

// sendMetrics sends the metrics in batches.
func (e *export) sendMetrics(ctx context.Context) {
	for _, batch := range batches(e.metrics()) {
		n := 0
		for _, m := range batch {
			n += points(m)
		}
		accepted, err := e.send(ctx, "/v1/metrics", "data points", int64(n), &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
			Resource: e.resource(), SchemaUrl: schemaURL,
			ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: e.scope(), SchemaUrl: schemaURL, Metrics: batch}},
		}}})
		e.result.Points += accepted
		if !e.proceed(err) {
			return
		}
	}
}

// batches splits metrics into messages of at most maxPoints, except that a single metric may have
// more.
func batches(all []*metricspb.Metric) [][]*metricspb.Metric {
	var list [][]*metricspb.Metric
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

// points returns the number of data points of a metric.
func points(m *metricspb.Metric) int {
	return len(m.GetGauge().GetDataPoints()) + len(m.GetSum().GetDataPoints()) + len(m.GetHistogram().GetDataPoints())
}

// proceed records an error, once for each signal, and reports whether to send the next batch.
func (e *export) proceed(err error) bool {
	var part *PartialError
	partial := errors.As(err, &part)
	if err == nil || partial && slices.ContainsFunc(e.failed, func(s string) bool { return strings.HasPrefix(s, part.URL) }) {
		return true
	}
	if e.cause == nil {
		e.cause = err
	}
	e.failed = append(e.failed, err.Error())
	return partial
}

// answered reports whether the collector answered, with any status.
func answered(err error) bool {
	var refused *RefusedError
	var part *PartialError
	return err == nil || errors.As(err, &refused) || errors.As(err, &part)
}

// send posts a message of n spans or points and returns how many of them were accepted.
func (e *export) send(ctx context.Context, path, what string, n int64, message proto.Message) (accepted int64, err error) {
	body, err := proto.Marshal(message)
	if err != nil {
		return 0, fmt.Errorf("encode the %s: %w", what, err)
	}
	response, err := e.to.post(ctx, path, body)
	if err != nil {
		return 0, err
	}
	url := e.to.base + path
	if response.rejected > 0 {
		rejected := min(response.rejected, n)
		return n - rejected, &PartialError{URL: url, Sent: n, Rejected: rejected, What: what, Message: response.message}
	}
	if response.message != "" {
		e.result.Notes = append(e.result.Notes, fmt.Sprintf("%s accepted everything and said %q", url, response.message))
	}
	return n, nil
}

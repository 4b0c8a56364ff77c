package otlp

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const scope = "github.com/rooftop-dev/rooftop/cmd/internal/otlp"

// target is the server that was looked at, "" where that is unknown.
func (e *export) target() string {
	r := &e.o.Run
	switch {
	case r.ServerPort == 0:
		return r.ServerAddress
	case strings.Contains(r.ServerAddress, ":"):
		return fmt.Sprintf("[%s]:%d", r.ServerAddress, r.ServerPort)
	}
	return fmt.Sprintf("%s:%d", r.ServerAddress, r.ServerPort)
}

// moment is the wall clock at an offset of the capture, to the nanosecond.
func (e *export) moment(at time.Duration) time.Time { return e.c.Wall.Round(0).Add(at) }

// spans makes the trace of the run and returns it with its ID.
func (e *export) spans(ctx context.Context, res *resource.Resource) ([]sdktrace.ReadOnlySpan, string) {
	// The SDK reports a variable that it cannot read to this handler, whose own choice
	// is standard error. None of them has a say here.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	kept := &keeper{res: res}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(kept),
		sdktrace.WithResource(res),
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: -1, AttributeCountLimit: -1, EventCountLimit: -1,
			LinkCountLimit: -1, AttributePerEventCountLimit: -1, AttributePerLinkCountLimit: -1,
		}))
	tracer := provider.Tracer(scope, trace.WithInstrumentationVersion(e.o.Version), trace.WithSchemaURL(schemaURL))
	// Not a child of what ctx may hold: the run is a trace of its own.
	ctx, root := tracer.Start(ctx, "rooftop "+string(e.c.Kind), trace.WithNewRoot(),
		trace.WithTimestamp(e.moment(e.c.Begin)), trace.WithAttributes(e.runAttrs()...))
	for i := range e.c.Requests {
		e.request(ctx, tracer, &e.c.Requests[i])
	}
	if e.c.Ended != "" {
		root.SetStatus(codes.Error, e.c.Ended)
	}
	root.End(trace.WithTimestamp(e.moment(max(e.c.Begin, e.c.End))))
	return kept.spans, root.SpanContext().TraceID().String()
}

func (e *export) runAttrs() []attribute.KeyValue {
	attrs := e.server()
	attrs = append(attrs, attribute.Int("rooftop.run.requests", len(e.c.Requests)))
	if e.c.Ended != "" {
		attrs = append(attrs, attribute.String("rooftop.run.ended", e.c.Ended))
	}
	return attrs
}

// request makes the span of one request, with its first and last chunk and the end
// of its connecting as events.
func (e *export) request(ctx context.Context, tracer trace.Tracer, r *capture.Request) {
	name := e.operation()
	if e.o.Run.Model != "" {
		name += " " + e.o.Run.Model
	}
	_, span := tracer.Start(ctx, name, trace.WithTimestamp(e.moment(r.Sent)),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(e.requestAttrs(r)...))
	event := func(name string, at time.Duration, attrs ...attribute.KeyValue) {
		span.AddEvent(name, trace.WithTimestamp(e.moment(at)), trace.WithAttributes(attrs...))
	}
	if r.Connect > 0 {
		event("rooftop.connected", r.Sent+r.Connect)
	}
	if n := len(r.Chunks); n > 0 {
		event("rooftop.first_chunk", r.Chunks[0].At)
		event("rooftop.last_chunk", r.Chunks[n-1].At, attribute.Int("rooftop.chunk.number", n))
	}
	if r.Error != "" {
		span.SetStatus(codes.Error, ownWords(r))
	}
	span.End(trace.WithTimestamp(e.moment(max(r.Sent, r.End))))
}

// ownWords is the error of a request without what the server said of it, which stands
// behind a colon: servers quote what they were asked (FastAPI's validation), and that
// is not sent. Where no answer came, all words are ours.
func ownWords(r *capture.Request) string {
	if r.Status == 0 {
		return r.Error
	}
	own, _, _ := strings.Cut(r.Error, ": ")
	return own
}

func (e *export) requestAttrs(r *capture.Request) []attribute.KeyValue {
	attrs := append(e.genAI(), attribute.Bool("gen_ai.request.stream", true),
		attribute.Int("rooftop.request.number", r.ID), attribute.Int("rooftop.client.number", r.Lane),
		attribute.Int("rooftop.chunk.count", len(r.Chunks)), attribute.Bool("rooftop.connection.reused", r.Reused))
	if len(r.Chunks) > 0 {
		attrs = append(attrs, attribute.Float64("gen_ai.response.time_to_first_chunk", (r.Chunks[0].At-r.Sent).Seconds()))
	}
	for _, u := range []struct {
		key string
		v   stat.Opt
	}{
		{"gen_ai.usage.input_tokens", r.PromptTokens}, {"gen_ai.usage.output_tokens", r.OutputTokens},
		{"gen_ai.usage.cache_read.input_tokens", r.CachedTokens}, {"gen_ai.usage.reasoning.output_tokens", r.ReasoningTokens},
	} {
		if u.v.OK {
			attrs = append(attrs, attribute.Int64(u.key, int64(u.v.V)))
		}
	}
	if r.Finish != "" {
		attrs = append(attrs, attribute.StringSlice("gen_ai.response.finish_reasons", []string{r.Finish}))
	}
	if r.Status != 0 {
		attrs = append(attrs, attribute.Int("http.response.status_code", r.Status))
	}
	if kind := errorType(r); kind != "" {
		attrs = append(attrs, attribute.String("error.type", kind))
	}
	return attrs
}

// errorType is the class of a request's error: the status that refused it, or the
// convention's word for what has no class; "" for a whole answer.
func errorType(r *capture.Request) string {
	switch {
	case r.Status >= 400:
		return strconv.Itoa(r.Status)
	case r.Error != "":
		return "_OTHER"
	}
	return ""
}

func (e *export) operation() string {
	if e.o.Run.Operation == "" {
		return "chat"
	}
	return e.o.Run.Operation
}

// genAI are the attributes that spans and metrics of requests share.
func (e *export) genAI() []attribute.KeyValue {
	provider := e.o.Run.Provider
	if provider == "" {
		provider = "openai"
	}
	attrs := append(e.server(), attribute.String("gen_ai.operation.name", e.operation()), attribute.String("gen_ai.provider.name", provider))
	if e.o.Run.Model != "" {
		attrs = append(attrs, attribute.String("gen_ai.request.model", e.o.Run.Model))
	}
	return attrs
}

func (e *export) server() []attribute.KeyValue {
	var attrs []attribute.KeyValue
	if e.o.Run.ServerAddress != "" {
		attrs = append(attrs, attribute.String("server.address", e.o.Run.ServerAddress))
		if e.o.Run.ServerPort != 0 {
			attrs = append(attrs, attribute.Int("server.port", e.o.Run.ServerPort))
		}
	}
	return attrs
}

// keeper keeps the spans that end. The SDK's own batches read the environment and a
// clock.
type keeper struct {
	res   *resource.Resource
	spans []sdktrace.ReadOnlySpan
}

// OnStart does nothing.
func (k *keeper) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd keeps a span.
func (k *keeper) OnEnd(s sdktrace.ReadOnlySpan) { k.spans = append(k.spans, owned{s, k.res}) }

// Shutdown does nothing.
func (k *keeper) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (k *keeper) ForceFlush(context.Context) error { return nil }

// owned is a span with our resource: the one that the SDK gives it holds what
// OTEL_RESOURCE_ATTRIBUTES says.
type owned struct {
	sdktrace.ReadOnlySpan
	res *resource.Resource
}

// Resource is who sends.
func (o owned) Resource() *resource.Resource { return o.res }

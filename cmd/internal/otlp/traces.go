package otlp

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// target returns the address of the server, "" if it is unknown.
func (e *export) target() string {
	host, port := e.o.Run.ServerAddress, e.o.Run.ServerPort
	switch {
	case port == 0:
		return host
	case strings.Contains(host, ":"):
		return fmt.Sprintf("[%s]:%d", host, port)
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// moment returns the wall clock at an offset of the capture, in nanoseconds since 1970.
func (e *export) moment(at time.Duration) uint64 { return uint64(e.c.Wall.Add(at).UnixNano()) }

// sampled are the flags of a recorded span in a trace of this process.
const sampled = 1 | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)

func newID(bytes int) []byte {
	id := make([]byte, bytes)
	_, _ = rand.Read(id) // never fails
	return id
}

// spans returns the trace of the run, with the requests before the run itself, and its ID.
func (e *export) spans() ([]*tracepb.Span, string) {
	run := &tracepb.Span{
		TraceId: newID(16), SpanId: newID(8), Flags: sampled, Name: "rooftop " + string(e.c.Kind), Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: e.moment(e.c.Begin), EndTimeUnixNano: e.moment(max(e.c.Begin, e.c.End)),
		Attributes: e.server().int("rooftop.run.requests", len(e.c.Requests)).text("rooftop.run.ended", e.c.Ended),
	}
	if e.c.Ended != "" {
		run.Status = failed(e.c.Ended)
	}
	var spans []*tracepb.Span
	for i := range e.c.Requests {
		s := e.requestSpan(&e.c.Requests[i])
		s.TraceId, s.ParentSpanId = run.TraceId, run.SpanId
		spans = append(spans, s)
	}
	return append(spans, run), hex.EncodeToString(run.TraceId)
}

func failed(message string) *tracepb.Status {
	return &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: valid(message)}
}

// requestSpan returns the span of one request, with its first and last chunk and the end of
// connecting as events.
func (e *export) requestSpan(r *capture.Request) *tracepb.Span {
	span := &tracepb.Span{
		SpanId: newID(8), Flags: sampled, Name: valid(strings.TrimSpace(e.operation() + " " + e.o.Run.Model)), Kind: tracepb.Span_SPAN_KIND_CLIENT,
		StartTimeUnixNano: e.moment(r.Sent), EndTimeUnixNano: e.moment(max(r.Sent, r.End)), Attributes: e.requestAttributes(r),
	}
	event := func(name string, at time.Duration, attrs attributes) {
		span.Events = append(span.Events, &tracepb.Span_Event{Name: name, TimeUnixNano: e.moment(at), Attributes: attrs})
	}
	if r.Connect > 0 {
		event("rooftop.connected", r.Sent+r.Connect, nil)
	}
	if n := len(r.Chunks); n > 0 {
		event("rooftop.first_chunk", r.Chunks[0].At, nil)
		event("rooftop.last_chunk", r.Chunks[n-1].At, attributes(nil).int("rooftop.chunk.number", n))
	}
	if r.Error != "" {
		span.Status = failed(ownError(r))
	}
	return span
}

// ownError returns the error of a request without the server's message after the colon, because
// servers quote prompts (FastAPI's validation), which are not sent. Without a response the whole
// error is rooftop's own.
func ownError(r *capture.Request) string {
	if r.Status == 0 {
		return r.Error
	}
	own, _, _ := strings.Cut(r.Error, ": ")
	return own
}

func (e *export) requestAttributes(r *capture.Request) attributes {
	attrs := e.genAI().bool("gen_ai.request.stream", true).
		int("rooftop.request.number", r.ID).int("rooftop.client.number", r.Lane).
		int("rooftop.chunk.count", len(r.Chunks)).bool("rooftop.connection.reused", r.Reused)
	if ttft, ok := r.TTFT(); ok {
		attrs = attrs.float("gen_ai.response.time_to_first_chunk", ttft.Seconds())
	}
	attrs = attrs.count("gen_ai.usage.input_tokens", r.PromptTokens).
		count("gen_ai.usage.output_tokens", r.OutputTokens).
		count("gen_ai.usage.cache_read.input_tokens", r.CachedTokens).
		count("gen_ai.usage.reasoning.output_tokens", r.ReasoningTokens).
		list("gen_ai.response.finish_reasons", r.Finish)
	if r.Status != 0 {
		attrs = attrs.int("http.response.status_code", r.Status)
	}
	return attrs.text("error.type", errorType(r))
}

// errorType returns the class of a request's error: the status that refused it, or the convention's
// word for other errors. It returns "" for a complete answer.
func errorType(r *capture.Request) string {
	switch {
	case r.Status >= 400:
		return strconv.Itoa(r.Status)
	case r.Error != "":
		return "_OTHER"
	}
	return ""
}

func (e *export) operation() string { return cmp.Or(e.o.Run.Operation, "chat") }

// genAI returns the attributes that spans and metrics of requests share.
func (e *export) genAI() attributes {
	return e.server().text("gen_ai.operation.name", e.operation()).
		text("gen_ai.provider.name", cmp.Or(e.o.Run.Provider, "openai")).
		text("gen_ai.request.model", e.o.Run.Model)
}

func (e *export) server() attributes {
	attrs := attributes(nil).text("server.address", e.o.Run.ServerAddress)
	if len(attrs) > 0 && e.o.Run.ServerPort != 0 {
		attrs = attrs.int("server.port", e.o.Run.ServerPort)
	}
	return attrs
}

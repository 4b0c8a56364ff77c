package otlp

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

func attrs(list []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[kv.Key] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_DoubleValue:
			m[kv.Key] = fmt.Sprint(v.DoubleValue)
		case *commonpb.AnyValue_BoolValue:
			m[kv.Key] = fmt.Sprint(v.BoolValue)
		case *commonpb.AnyValue_ArrayValue:
			for _, a := range v.ArrayValue.Values {
				m[kv.Key] += "[" + a.GetStringValue() + "]"
			}
		}
	}
	return m
}

func TestTrace(t *testing.T) {
	to := newCollector(t)
	c, s := recorded()
	result, err := Export(t.Context(), options(to.URL), c, s)
	if err != nil {
		t.Fatal(err)
	}
	wantResource := map[string]string{
		"service.name": "rooftop", "service.version": "1.2.3", "rooftop.target": "127.0.0.1:8000", "rooftop.run.kind": "probe",
	}
	for _, got := range []map[string]string{attrs(to.traces[0].Resource.Attributes), attrs(to.metrics[0].Resource.Attributes)} {
		if diff := cmp.Diff(wantResource, got); diff != "" {
			t.Errorf("resource -want +got\n%s", diff)
		}
	}
	spans := to.spans()
	if result.Spans != 3 || len(spans) != 3 {
		t.Fatalf("%d spans came, the result says %d; want 3", len(spans), result.Spans)
	}
	root := spans[slices.IndexFunc(spans, func(s *tracepb.Span) bool { return len(s.ParentSpanId) == 0 })]
	at := func(d time.Duration) uint64 { return uint64(wall.Add(d).UnixNano()) }
	if root.Name != "rooftop probe" || root.StartTimeUnixNano != at(10*ms) || root.EndTimeUnixNano != at(400*ms) {
		t.Errorf("root %v", root)
	}
	for _, s := range spans {
		if fmt.Sprintf("%x", s.TraceId) != result.TraceID {
			t.Errorf("%s is of trace %x, the result says %s", s.Name, s.TraceId, result.TraceID)
		}
		if s != root && (!bytes.Equal(s.ParentSpanId, root.SpanId) || s.Kind != tracepb.Span_SPAN_KIND_CLIENT || s.Name != "chat m") {
			t.Errorf("request %v", s)
		}
	}
	good, bad := spans[0], spans[1]
	if good.StartTimeUnixNano != at(10*ms) || good.EndTimeUnixNano != at(200*ms+1) {
		t.Errorf("%d to %d", good.StartTimeUnixNano, good.EndTimeUnixNano)
	}
	if diff := cmp.Diff(map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m", "gen_ai.request.stream": "true",
		"gen_ai.response.time_to_first_chunk": "0.040000001", "gen_ai.response.finish_reasons": "[length]",
		"gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "3", "gen_ai.usage.cache_read.input_tokens": "0",
		"server.address": "127.0.0.1", "server.port": "8000", "http.response.status_code": "200",
		"rooftop.request.number": "0", "rooftop.client.number": "0", "rooftop.chunk.count": "3", "rooftop.connection.reused": "false",
	}, attrs(good.Attributes)); diff != "" {
		t.Errorf("attributes -want +got\n%s", diff)
	}
	var events []string
	for _, e := range good.Events {
		events = append(events, fmt.Sprint(e.Name, " ", int64(e.TimeUnixNano)-wall.UnixNano()))
	}
	if diff := cmp.Diff([]string{"rooftop.connected 12000000", "rooftop.first_chunk 50000001", "rooftop.last_chunk 200000000"}, events); diff != "" {
		t.Errorf("events -want +got\n%s", diff)
	}
	if a := attrs(bad.Attributes); bad.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || bad.Status.GetMessage() != "too many requests" || a["error.type"] != "429" {
		t.Errorf("the request that failed: %v", bad)
	}
}

func TestMetrics(t *testing.T) {
	to := newCollector(t)
	c, s := recorded()
	result, err := Export(t.Context(), options(to.URL), c, s)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range to.metrics {
		for _, sc := range r.ScopeMetrics {
			for _, m := range sc.Metrics {
				n += len(m.GetGauge().GetDataPoints()) + len(m.GetSum().GetDataPoints()) + len(m.GetHistogram().GetDataPoints())
			}
		}
	}
	if int64(n) != result.Points || n == 0 {
		t.Errorf("%d points came, the result says %d", n, result.Points)
	}
	// Points as "attribute=value … @ milliseconds: value".
	for _, w := range []struct{ name, kind, unit, points string }{
		{"process.cpu.time", "counter from 5", "s", "@5: 0, @405: 0.25"},
		{"process.memory.usage", "sum", "By", "@5: 1.073741824e+09, @405: 2.147483648e+09"},
		{"process.thread.count", "sum", "{thread}", "@5: 52, @405: 53"},
		{"process.paging.faults", "counter from 5", "{fault}", "major@5: 0, major@405: 5"},
		{"rooftop.process.memory.proportional", "sum", "By", "@5: 9, @405: 10"},
		{"hw.power", "gauge", "W", "@6: 37, @406: 72"},
		{"hw.energy", "counter from 6", "J", "@6: 0, @406: 20"},
		{"rooftop.server.requests.running", "gauge", "{request}", "@4: 0, @404: 1"},
		{"rooftop.server.tokens.generated", "counter from 4", "{token}", "@4: 0, @404: 3"},
		{"rooftop.run.output.rate", "gauge", "{token}/s", "@400: 7.5"},
		{"rooftop.run.energy", "gauge", "J", "@400: 20"},
		{"rooftop.run.derived.joules_per_token", "gauge", "J", "@400: 6.5"},
		{"rooftop.run.time_to_first_token", "gauge", "s", "mean@400: 0.04, p50@400: 0.04, p95@400: 0.04, p99@400: 0.04, max@400: 0.04"},
		{"gen_ai.client.operation.duration", "histogram", "s", "@400: 1 of 0.190000001 in bucket 5, 429@400: 1 of 0.199 in bucket 5"},
		{"gen_ai.client.operation.time_to_first_chunk", "histogram", "s", "@400: 1 of 0.040000001 in bucket 3"},
		{"gen_ai.client.operation.time_per_output_chunk", "histogram", "s", "@400: 2 of 0.149999999 in bucket 3 4"},
		{"gen_ai.client.token.usage", "histogram", "{token}", "input@400: 1 of 7 in bucket 2, output@400: 1 of 3 in bucket 1"},
		{"gen_ai.server.time_to_first_token", "histogram", "s", "@404: 2 of 0.25 in bucket"},
	} {
		t.Run(w.name, func(t *testing.T) {
			m := to.metric(w.name)
			if m == nil {
				t.Fatal("it did not come")
			}
			kind, points := describe(m)
			if kind != w.kind || points != w.points || m.Unit != w.unit {
				t.Errorf("got %s %q: %s\nwant %s %q: %s", kind, m.Unit, points, w.kind, w.unit, w.points)
			}
		})
	}
	if to.metric("hw.gpu.utilization") != nil || to.metric("process.disk.io") != nil {
		t.Error("what was not read was sent")
	}
}

// describe formats a metric in one line.
func describe(m *metricspb.Metric) (kind, points string) {
	millis := func(ns uint64) int64 { return (int64(ns) - wall.UnixNano()) / 1e6 }
	var list []string
	one := func(a []*commonpb.KeyValue, at uint64, text string) {
		got, word := attrs(a), ""
		for _, key := range []string{"system.paging.fault.type", "rooftop.statistic", "error.type", "gen_ai.token.type"} {
			word += got[key]
		}
		list = append(list, fmt.Sprintf("%s@%d: %s", word, millis(at), text))
	}
	number := func(all []*metricspb.NumberDataPoint) {
		for _, p := range all {
			one(p.Attributes, p.TimeUnixNano, fmt.Sprint(p.GetAsDouble()))
		}
	}
	switch {
	case m.GetGauge() != nil:
		kind = "gauge"
		number(m.GetGauge().DataPoints)
	case m.GetSum() != nil:
		kind = "sum"
		if m.GetSum().IsMonotonic {
			kind = fmt.Sprintf("counter from %d", millis(m.GetSum().DataPoints[0].StartTimeUnixNano))
		}
		number(m.GetSum().DataPoints)
	case m.GetHistogram() != nil:
		kind = "histogram"
		for _, p := range m.GetHistogram().DataPoints {
			text := fmt.Sprintf("%d of %v in bucket", p.Count, math.Round(p.GetSum()*1e9)/1e9)
			for i, n := range p.BucketCounts {
				text += strings.Repeat(fmt.Sprint(" ", i), int(n))
			}
			one(p.Attributes, p.TimeUnixNano, text)
		}
	}
	return kind, strings.Join(list, ", ")
}

// The text of prompts and answers does not leave the machine.
func TestNoContentIsSent(t *testing.T) {
	to := newCollector(t)
	c, s := recorded()
	// Servers repeat their input: FastAPI's validation quotes it.
	c.Requests[1].Error = "the server answered with status 422 Unprocessable Entity: input 'what was asked' is not allowed"
	stream := c.Requests[0]
	stream.Error = "the server reported an error in the stream, after the 3rd chunk: cannot go on with what was asked"
	late := c.Requests[1]
	late.Status, late.Error = 0, "no answer from 127.0.0.1:8000: connection reset by peer"
	c.Requests = append(c.Requests, stream, late)
	if _, err := Export(t.Context(), options(to.URL), c, s); err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprint(to.traces, to.metrics)
	for _, content := range []string{"what was generated", "what was asked"} {
		if strings.Contains(all, content) {
			t.Errorf("%q was sent", content)
		}
	}
	for _, own := range []string{"status 422 Unprocessable Entity", "an error in the stream, after the 3rd chunk", "connection reset by peer"} {
		if !strings.Contains(all, own) {
			t.Errorf("%q was not sent", own)
		}
	}
}

func TestEndpoints(t *testing.T) {
	c, s := recorded()
	for _, w := range []struct{ below, want string }{
		{"", "POST /v1/traces POST /v1/metrics"},
		{"/", "POST /v1/traces POST /v1/metrics"},
		{"/otlp", "POST /otlp/v1/traces POST /otlp/v1/metrics"},
		{"/a/b//", "POST /a/b/v1/traces POST /a/b/v1/metrics"},
	} {
		to := newCollector(t)
		if _, err := Export(t.Context(), options(to.URL+w.below), c, s); err != nil {
			t.Error(err)
		}
		if got := strings.Join(to.paths, " "); got != w.want {
			t.Errorf("%q: got %s, want %s", w.below, got, w.want)
		}
	}
}

func TestTLS(t *testing.T) {
	to := &collector{}
	to.Server = httptest.NewTLSServer(http.HandlerFunc(to.serve))
	to.Config.ErrorLog = nil
	defer to.Close()
	c, s := recorded()
	o := options(to.URL)
	if _, err := Export(t.Context(), o, c, s); err == nil || !strings.Contains(err.Error(), "signed by an unknown authority: give --otlp-ca-file") {
		t.Errorf("without its certificate: %v", err)
	}
	o.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(o.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: to.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Export(t.Context(), o, c, s); err != nil {
		t.Error(err)
	}
	o.Endpoint = strings.Replace(to.URL, "https", "http", 1)
	if _, err := Export(t.Context(), o, c, s); err == nil {
		t.Error("plain text was taken by a port for TLS")
	}
}

// Every variable that an OpenTelemetry SDK reads, and a proxy, name a second server; the limits
// would truncate the data.
func TestTheEnvironmentHasNoSay(t *testing.T) {
	t.Run("what it says is right", func(t *testing.T) { environment(t, "always_off", "leak=environment") })
	t.Run("what it says is wrong", func(t *testing.T) { environment(t, "no such sampler", "broken") })
}

func environment(t *testing.T, sampler, resource string) {
	t.Helper()
	to, other := newCollector(t), newCollector(t)
	for _, signal := range []string{"", "TRACES_", "METRICS_", "LOGS_"} {
		t.Setenv("OTEL_EXPORTER_OTLP_"+signal+"ENDPOINT", other.URL)
		t.Setenv("OTEL_EXPORTER_OTLP_"+signal+"HEADERS", "x-leak=environment")
		t.Setenv("OTEL_EXPORTER_OTLP_"+signal+"COMPRESSION", "gzip")
		t.Setenv("OTEL_EXPORTER_OTLP_"+signal+"TIMEOUT", "1")
		t.Setenv("OTEL_EXPORTER_OTLP_"+signal+"PROTOCOL", "grpc")
		t.Setenv("OTEL_EXPORTER_OTLP_"+signal+"CERTIFICATE", "/nonexistent")
	}
	for name, value := range map[string]string{
		"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none",
		"OTEL_RESOURCE_ATTRIBUTES": resource, "OTEL_SERVICE_NAME": "environment", "OTEL_ENTITIES": "x",
		"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": "0",
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "1", "OTEL_SPAN_EVENT_COUNT_LIMIT": "1", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1",
		"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1", "OTEL_ATTRIBUTE_COUNT_LIMIT": "1", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT": "0",
		"OTEL_BSP_EXPORT_TIMEOUT": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_METRIC_EXPORT_INTERVAL": "1",
		"OTEL_METRIC_EXPORT_TIMEOUT": "1", "OTEL_METRICS_EXEMPLAR_FILTER": "always_on",
		"OTEL_GO_X_OBSERVABILITY": "true", "OTEL_GO_X_RESOURCE": "true", "OTEL_GO_X_CARDINALITY_LIMIT": "1",
		"OTEL_PROPAGATORS": "b3", "HTTP_PROXY": other.URL, "http_proxy": other.URL, "ALL_PROXY": other.URL, "NO_PROXY": "",
	} {
		t.Setenv(name, value)
	}
	var said bytes.Buffer
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	o := options(to.URL)
	c, s := recorded()
	if _, err := Export(t.Context(), o, c, s); err != nil {
		t.Fatal(err)
	}
	if said.Len() != 0 {
		t.Errorf("the SDK wrote to standard error: %s", said.String())
	}
	// net/http uses no proxy for loopback addresses, so the server alone proves nothing.
	if transport, err := o.transport(); err != nil || transport.Proxy != nil {
		t.Errorf("a proxy may be asked (%v)", err)
	}
	if len(other.paths) != 0 {
		t.Errorf("the server that the environment names got %v", other.paths)
	}
	if all := fmt.Sprint(to.traces, to.metrics, to.headers); strings.Contains(all, "environment") || strings.Contains(all, "X-Leak") || strings.Contains(all, "gzip") {
		t.Error("the environment reached the collector")
	}
	spans := to.spans()
	if len(spans) != 3 || len(spans[0].Attributes) != 16 || len(spans[0].Events) != 3 {
		t.Errorf("the limits of the environment hold: %v", spans)
	}
}

func TestLongRunsAreThinned(t *testing.T) {
	for _, c := range []struct {
		n, want, last int
	}{{0, 0, 0}, {1, 1, 0}, {2, 2, 1}, {maxSamples, maxSamples, maxSamples - 1}, {100_000, maxSamples, 99_999}} {
		got := thinned(c.n)
		if len(got) != c.want || c.n > 0 && (got[0] != 0 || got[len(got)-1] != c.last) || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != c.want {
			t.Errorf("%d samples: %d are picked, %v", c.n, len(got), got)
		}
	}
}

func TestManySpansGoInBatches(t *testing.T) {
	to := newCollector(t)
	c, s := recorded()
	c.Requests = slices.Repeat(c.Requests, 1250)
	result, err := Export(t.Context(), options(to.URL), c, s)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(strings.Join(to.paths, " "), "traces"); got != 3 || result.Spans != 2501 || len(to.spans()) != 2501 {
		t.Errorf("%d requests with %d spans, the result says %d", got, len(to.spans()), result.Spans)
	}
}

func BenchmarkExport(b *testing.B) {
	b.ReportAllocs()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	c, s := recorded()
	c.Requests = slices.Repeat(c.Requests, 500)
	for b.Loop() {
		if _, err := Export(context.Background(), options(server.URL), c, s); err != nil {
			b.Fatal(err)
		}
	}
}

// Invalid UTF-8, for example in the name of a process, does not prevent the export.
func TestForeignBytes(t *testing.T) {
	to := newCollector(t)
	c, s := recorded()
	c.Tree.Processes[0].Comm, c.Tree.Processes[0].Title = "py\xffthon", "\xfe"
	c.GPUs.Readings[0].Devices[0].Name = "L4\xff"
	c.Requests[0].Finish, c.Requests[1].Error, c.Ended = "st\xffop", "\xff", "gone\xff"
	o := options(to.URL)
	o.Run.Model = "m\xff"
	if _, err := Export(t.Context(), o, c, s); err != nil {
		t.Fatal(err)
	}
	if to.metric("process.cpu.time") == nil || len(to.spans()) != 3 {
		t.Error("not everything came")
	}
}

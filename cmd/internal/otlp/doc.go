// Package otlp sends a capture to an OpenTelemetry collector, once, over
// OTLP/HTTP in protobuf: one trace for the run with a span for each request, and
// metrics.
//
// It talks to the endpoint it is given and to nothing else: no proxy, no redirect,
// and no variable OTEL_* of the environment has a say. What the SDK (v1.47.0) reads
// of them, and what becomes of it here:
//
//   - OTEL_TRACES_SAMPLER and its argument, OTEL_SPAN_*_LIMIT,
//     OTEL_ATTRIBUTE_*_LIMIT and the others of sdk/trace's limits: overridden.
//   - OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME: sdk/trace merges them into every
//     resource; spans leave with ours.
//   - OTEL_BSP_*, OTEL_METRIC_EXPORT_*, OTEL_METRICS_EXEMPLAR_FILTER and the limits
//     of sdk/metric: of parts that are not used.
//   - OTEL_EXPORTER_OTLP_* (endpoints, headers, certificates, compression,
//     timeouts): of the exporters' clients, which are not used either.
//   - OTEL_GO_X_OBSERVABILITY: the SDK then measures itself into the global meter
//     provider, which here is the one that drops everything.
//   - OTEL_SDK_DISABLED: the Go SDK does not know it.
//
// The exporters' own HTTP clients import gRPC for the request types (5 MB that
// nothing calls), and read the environment: otlptrace takes a client of ours, which
// is its documented seam. sdk/metric has none, so its data model is encoded here.
//
// Names are those of the OpenTelemetry semantic conventions: v1.43.0 for process.*,
// hw.* and server.*; gen_ai.* of open-telemetry/semantic-conventions-genai, where
// these went with v1.43.0: in development, without a release of their own (its main
// branch, commit 004902b8). What has no name there is below rooftop.*.
//
// What was asked and answered (the text of a prompt, of an answer) is never sent, nor
// what the server said of an error, which may quote it.
package otlp

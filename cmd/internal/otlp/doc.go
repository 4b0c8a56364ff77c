// Package otlp sends a capture to an OpenTelemetry collector, once, over
// OTLP/HTTP in protobuf: one trace for the run with a span for each request, and
// metrics.
//
// It contacts only the given endpoint: it uses no proxy, follows no redirect, and ignores the
// OTEL_* variables of the environment. The messages are built from the protocol's own types; the
// SDK would read the environment, and its exporters import gRPC.
//
// Names are those of the OpenTelemetry semantic conventions: v1.43.0 for process.*, hw.* and
// server.*; gen_ai.* from open-telemetry/semantic-conventions-genai, where these moved with
// v1.43.0: in development, without a release of their own (its main branch, commit 004902b8). Other
// names are below rooftop.*.
//
// The text of a prompt or of an answer is never sent, nor the server's error message, which may
// quote it.
package otlp

package otlp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// limit bounds a whole export: a run has ended, somebody waits for its report.
const limit = 10 * time.Second

// maxAnswer is more than a collector has to say.
const maxAnswer = 64 << 10

// sender posts to one collector.
type sender struct {
	transport http.RoundTripper
	base      string
	headers   Headers
	agent     string
}

// RefusedError is an answer of a collector other than yes.
type RefusedError struct {
	URL    string
	Status int
	Said   string // the collector's own words, "" none
}

// Error returns the status in words with the next step.
func (e *RefusedError) Error() string {
	s := fmt.Sprintf("%s answered %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.Said != "" {
		s += fmt.Sprintf(" (%q)", e.Said)
	}
	return s + ": " + nextStep(e.Status)
}

func nextStep(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "give its key with --otlp-headers-file"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return "give --otlp-endpoint the base of its OTLP/HTTP receiver, without /v1/traces"
	case status >= 300 && status < 400:
		return "a redirect is not followed; give --otlp-endpoint the address it leads to, if you trust it"
	case status == http.StatusRequestEntityTooLarge:
		return "raise its max_request_body_size"
	case status == http.StatusUnsupportedMediaType || status == http.StatusBadRequest:
		return "is this an OTLP/HTTP receiver that takes protobuf? check --otlp-endpoint"
	case status == http.StatusTooManyRequests || status >= 500:
		return "the collector is overloaded or in trouble; its log says more"
	}
	return "its log says more"
}

// post sends one request and returns what came of it. It tries again where the
// collector asks for that, as long as ctx has time (OTLP specification, "Retryable
// Response Codes").
func (s *sender) post(ctx context.Context, path string, body []byte) (partial, error) {
	where := s.base + path
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		answer, pause, err := s.once(ctx, where, body)
		var refused *RefusedError
		if !errors.As(err, &refused) || !retryable(refused.Status) {
			return answer, err
		}
		if !rest(ctx, max(wait, pause)) {
			return answer, err
		}
	}
}

func retryable(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusBadGateway ||
		status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// rest waits, where ctx leaves the time for it.
func rest(ctx context.Context, wait time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once makes one attempt; pause is how long the collector wants to be left alone.
func (s *sender) once(ctx context.Context, where string, body []byte) (answer partial, pause time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, where, bytes.NewReader(body))
	if err != nil {
		return partial{}, 0, fmt.Errorf("%w: %s", ErrEndpoint, where)
	}
	for name, values := range s.headers.fields {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", s.agent)
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return partial{}, 0, explain(where, err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			pause = time.Duration(min(seconds, 3600)) * time.Second
		}
		words := ""
		if resp.Header.Get("Content-Type") == "application/x-protobuf" {
			words = statusMessage(said)
		}
		return partial{}, pause, &RefusedError{URL: where, Status: resp.StatusCode, Said: words}
	}
	if err != nil {
		return partial{}, 0, explain(where, err)
	}
	return parsePartial(said), 0, nil
}

// ErrUnreachable says that a collector gave no answer. It arrives wrapped in a
// sentence that says what, where, and the next step.
var ErrUnreachable = errors.New("no answer of the collector")

// explain turns an error of the way to a collector into a sentence.
func explain(where string, err error) error {
	wrap := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrUnreachable, fmt.Sprintf(format, a...))
	}
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		timeout   interface{ Timeout() bool }
	)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("export to %s: %w", where, context.Canceled)
	case errors.Is(err, syscall.ECONNREFUSED):
		return wrap("connection refused at %s: is it up, and is this its port for OTLP/HTTP (4318)?", where)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return wrap("%s took longer than %s: is it overloaded, or a firewall between?", where, limit)
	case errors.As(err, &authority):
		return wrap("the certificate of %s is signed by an unknown authority: give --otlp-ca-file", where)
	case errors.As(err, &hostname):
		return wrap("the certificate of %s is for another name: %v", where, hostname)
	case errors.As(err, &invalid):
		return wrap("the certificate of %s is not valid: %v", where, invalid)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return wrap("%s does not speak TLS: give --otlp-endpoint http://…", where)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		strings.Contains(err.Error(), "malformed HTTP"),
		strings.Contains(err.Error(), "readLoopPeekFailLocked"): // it spoke before it was asked
		return wrap("%s broke off: is this its port for OTLP/HTTP (4318), not gRPC (4317)?", where)
	}
	return wrap("%s: %v; check --otlp-endpoint", where, err)
}

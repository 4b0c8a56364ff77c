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

// limit is the maximum duration of an export, because a user is waiting for the report.
const limit = 10 * time.Second

// maxAnswer limits the body of a response.
const maxAnswer = 64 << 10

// sender posts to one collector.
type sender struct {
	transport http.RoundTripper
	base      string
	headers   Headers
	agent     string
}

// RefusedError reports a response other than 2xx.
type RefusedError struct {
	URL     string
	Status  int
	Message string // from the collector; "" if none
}

// Error returns the status in words, and the next step.
func (e *RefusedError) Error() string {
	s := fmt.Sprintf("%s answered %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		s += fmt.Sprintf(" (%q)", e.Message)
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
		return "the collector is overloaded or failing; check its log"
	}
	return "check the collector's log"
}

// post sends one request. It retries if the collector asks for that, as long as ctx has time (OTLP
// specification, "Retryable Response Codes").
func (s *sender) post(ctx context.Context, path string, body []byte) (partial, error) {
	url := s.base + path
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		answer, pause, err := s.attempt(ctx, url, body)
		var refused *RefusedError
		if !errors.As(err, &refused) || !retryable(refused.Status) {
			return answer, err
		}
		if !pauseFor(ctx, max(wait, pause)) {
			return answer, err
		}
	}
}

func retryable(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusBadGateway ||
		status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// pauseFor waits. It returns false at once if ctx would end before.
func pauseFor(ctx context.Context, wait time.Duration) bool {
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

// attempt sends the request once. pause is the collector's Retry-After.
func (s *sender) attempt(ctx context.Context, url string, body []byte) (answer partial, pause time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return partial{}, 0, fmt.Errorf("%w: %s", ErrEndpoint, url)
	}
	for name, values := range s.headers.fields {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", s.agent)
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return partial{}, 0, explain(url, err)
	}
	defer resp.Body.Close()
	received, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			pause = time.Duration(min(seconds, 3600)) * time.Second
		}
		message := ""
		if resp.Header.Get("Content-Type") == "application/x-protobuf" {
			message = statusMessage(received)
		}
		return partial{}, pause, &RefusedError{URL: url, Status: resp.StatusCode, Message: message}
	}
	if err != nil {
		return partial{}, 0, explain(url, err)
	}
	return parsePartial(received), 0, nil
}

// ErrUnreachable reports that a collector did not respond. It is wrapped in a message with what
// failed, where, and the next step.
var ErrUnreachable = errors.New("no response from the collector")

// explain turns a connection error into a sentence.
func explain(url string, err error) error {
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
		return fmt.Errorf("export to %s: %w", url, context.Canceled)
	case errors.Is(err, syscall.ECONNREFUSED):
		return wrap("connection refused at %s: is it up, and is this its port for OTLP/HTTP (4318)?", url)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return wrap("%s took longer than %s: check its load, and firewalls on the way", url, limit)
	case errors.As(err, &authority):
		return wrap("the certificate of %s is signed by an unknown authority: give --otlp-ca-file", url)
	case errors.As(err, &hostname):
		return wrap("the certificate of %s is for another name: %v", url, hostname)
	case errors.As(err, &invalid):
		return wrap("the certificate of %s is not valid: %v", url, invalid)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return wrap("%s does not speak TLS: give --otlp-endpoint http://…", url)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		strings.Contains(err.Error(), "malformed HTTP"),
		strings.Contains(err.Error(), "readLoopPeekFailLocked"): // it sent data before a request
		return wrap("%s closed the connection: is this its port for OTLP/HTTP (4318), not gRPC (4317)?", url)
	}
	return wrap("%s: %v; check --otlp-endpoint", url, err)
}

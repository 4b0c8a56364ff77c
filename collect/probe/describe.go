package probe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// describe returns one sentence on why a request was not completed. parent is the caller's context,
// host the server's address.
func (x *exchange) describe(parent context.Context, host string, err error) string {
	var (
		late   *timeoutError
		status *StatusError
		stream *StreamError
		other  *notStreamError
	)
	switch {
	case parent.Err() != nil:
		return capture.InterruptedPrefix + x.progress()
	case errors.As(err, &late):
		return x.describeTimeout(late, host)
	case errors.As(err, &status):
		return "the server answered with " + status.Error()
	case errors.As(err, &stream):
		return fmt.Sprintf("the server reported an error in the stream, %s: %s", x.progress(), orNoMessage(stream.Message))
	case errors.As(err, &other):
		return other.Error()
	case errors.Is(err, ErrTruncated):
		return fmt.Sprintf("the server closed the stream %s, without [DONE] or a finish reason", x.progress())
	case errors.Is(err, ErrOverrun):
		return fmt.Sprintf("the server continued %s, beyond the %d requested tokens", x.progress(), x.request.MaxTokens)
	case errors.Is(err, ErrCancelled):
		return "closed by the client " + x.progress() + ", as requested"
	case errors.Is(err, errEventTooLong):
		return fmt.Sprintf("%v, %s", err, x.progress())
	}
	return x.describeFailure(host, err)
}

// describeFailure describes a request that failed because of the connection, the address
// or a message.
func (x *exchange) describeFailure(host string, err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the caller knows the address, and which request it was
	}
	var dns *net.DNSError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	text := oneLine(err.Error())
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("unknown host %s: check the server's address", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("connection refused at %s: is the server up? check its address", host)
	case errors.As(err, &syntax):
		return fmt.Sprintf("message %d of the stream is not JSON, %s: %s", x.messages, x.progress(), text)
	case errors.As(err, &kind):
		return fmt.Sprintf("message %d of the stream is not part of a completion, %s: %s", x.messages, x.progress(), text)
	// The second is net/http's name for a server that speaks before it is asked.
	case strings.Contains(text, "malformed HTTP"), strings.Contains(text, "readLoopPeekFailLocked"):
		return host + " does not speak HTTP: is it the server's address?"
	case x.record.Status != 0:
		return fmt.Sprintf("the connection broke %s: %s", x.progress(), text)
	}
	return "no response from " + host + ": " + text
}

// describeTimeout describes which timeout expired.
func (x *exchange) describeTimeout(e *timeoutError, host string) string {
	switch {
	case e.phase == connectPhase:
		return fmt.Sprintf("no connection to %s within %v: check the address, and firewalls on the way", host, e.after)
	case e.phase == wholePhase:
		return fmt.Sprintf("not finished within %v, stopped %s: allow more time or ask for fewer tokens", e.after, x.progress())
	case x.record.Finish != "":
		return fmt.Sprintf("the stream stayed open for %v after its finish reason, without [DONE]", e.after)
	case e.phase == firstTokenPhase && x.record.Status == 0:
		return fmt.Sprintf("no token within %v, and no response at all: is the server overloaded? check its queue and its log", e.after)
	case e.phase == firstTokenPhase:
		return fmt.Sprintf("no token within %v of the send, although the response has begun: is the server overloaded? check its queue and its log", e.after)
	}
	return fmt.Sprintf("no token for %v after the %s: the server stalled; check its log", e.after, ordinal(len(x.record.Chunks)))
}

// progress returns how far the stream had come.
func (x *exchange) progress() string {
	switch n := len(x.record.Chunks); {
	case n > 0:
		return "after the " + ordinal(n) + " chunk"
	case x.record.Status != 0:
		return "before the first chunk"
	}
	return "before any response"
}

// ordinal formats a rank: 1st, 2nd, 3rd, 4th, 11th, 21st.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// notStreamError reports a response of status 200 that is not a stream.
type notStreamError struct {
	sentence string
	cause    error // ErrTruncated for an empty response, otherwise nil
}

// Error describes the response.
func (e *notStreamError) Error() string { return e.sentence }

// Unwrap returns the cause.
func (e *notStreamError) Unwrap() error { return e.cause }

// notStream describes a response without events, and records the counts it contains.
func (x *exchange) notStream(contentType string, head []byte) error {
	text := bytes.TrimSpace(head)
	failed := func(format string, values ...any) error {
		return &notStreamError{sentence: "the server answered 200 with " + fmt.Sprintf(format, values...)}
	}
	switch {
	case len(text) == 0:
		return &notStreamError{"the server answered 200 with an empty body: check its log", ErrTruncated}
	case text[0] == '<':
		return failed("%s: is that the address of an OpenAI-compatible server?", webPage(text))
	case text[0] == '{' && json.Valid(text):
		return x.notStreamed(text)
	}
	for _, field := range []string{":", "data", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(text, []byte(field)) {
			return ErrTruncated
		}
	}
	return failed("%s instead of an event stream: %s", orNoMessage(oneLine(contentType)), serverMessage(text))
}

// notStreamed describes a single JSON object.
func (x *exchange) notStreamed(text []byte) error {
	c, err := parseChunk(text)
	if err != nil || c.failed || !c.choice {
		return &notStreamError{sentence: "the server answered 200 with an error instead of a stream: " + serverMessage(text)}
	}
	x.record.Finish = printableReason(c.finish)
	if c.tokens.OK {
		x.setUsage(&c)
	}
	x.timings = c.timings
	return &notStreamError{sentence: "the server did not stream: it sent the whole completion at once, so no token has a time; a proxy may buffer the stream"}
}

// webPage describes a web page in a few words.
func webPage(page []byte) string { return "a web page (" + orNoMessage(pageTitle(page)) + ")" }

// pageTitle returns the title of a web page, or else its beginning.
func pageTitle(page []byte) string {
	lower := bytes.ToLower(page)
	if from := bytes.Index(lower, []byte("<title>")); from >= 0 && len(lower) == len(page) {
		if length := bytes.Index(lower[from:], []byte("</title>")); length >= 0 {
			return serverMessage(page[from+len("<title>") : from+length])
		}
	}
	return serverMessage(page)
}

func orNoMessage(text string) string { return cmp.Or(text, "no message") }

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

// sentence tells in one sentence why a request did not become whole. Parent is the
// caller's context, own that of the request, host the server's.
func (x *examination) sentence(parent, own context.Context, host string, err error) string {
	var (
		late   *expiry
		status *StatusError
		said   *StreamError
		odd    *strangeError
	)
	switch {
	case parent.Err() != nil:
		return "interrupted " + x.where()
	case errors.As(context.Cause(own), &late):
		return x.late(late, host)
	case errors.As(err, &status):
		return "the server answered with " + status.Error()
	case errors.As(err, &said):
		return fmt.Sprintf("the server reported an error in the stream, %s: %s", x.where(), orNothing(said.Message))
	case errors.As(err, &odd):
		return odd.Error()
	case errors.Is(err, ErrTruncated):
		return fmt.Sprintf("the server closed the stream %s, without [DONE] or a finish reason", x.where())
	case errors.Is(err, ErrOverrun):
		return fmt.Sprintf("the server went on %s, beyond the %d tokens it was asked for", x.where(), x.request.MaxTokens)
	case errors.Is(err, ErrCancelled):
		return "closed by the client " + x.where() + ", as asked"
	case errors.Is(err, errEventTooLong):
		return fmt.Sprintf("%v, %s", err, x.where())
	}
	return x.broken(host, err)
}

// broken tells of a request that the connection, the address or a message failed.
func (x *examination) broken(host string, err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the caller knows the address, and which request it was
	}
	var dns *net.DNSError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	words := oneLine(err.Error())
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("no host is called %s: check the server's address", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("connection refused at %s: is the server up? check its address", host)
	case errors.As(err, &syntax):
		return fmt.Sprintf("message %d of the stream is not JSON, %s: %s", x.messages, x.where(), words)
	case errors.As(err, &kind):
		return fmt.Sprintf("message %d of the stream is no message of a completion, %s: %s", x.messages, x.where(), words)
	// The second is net/http's name for a server that speaks before it is asked.
	case strings.Contains(words, "malformed HTTP"), strings.Contains(words, "readLoopPeekFailLocked"):
		return host + " does not speak HTTP: is it the server's address?"
	case x.told.Status != 0:
		return fmt.Sprintf("the connection broke %s: %s", x.where(), words)
	}
	return "no answer from " + host + ": " + words
}

// late tells which patience ended.
func (x *examination) late(e *expiry, host string) string {
	n := len(x.told.Chunks)
	switch {
	case e.what == forConnection:
		return fmt.Sprintf("no connection to %s within %v: is it the right address, or a firewall between?", host, e.after)
	case e.what == forEnd:
		return fmt.Sprintf("not finished within %v, stopped %s: allow more time or ask for fewer tokens", e.after, x.where())
	case x.told.Finish != "":
		return fmt.Sprintf("the stream stayed open for %v after its finish reason, without [DONE]", e.after)
	case e.what == forFirst && x.told.Status == 0:
		return fmt.Sprintf("no token within %v, and no answer at all: is the server overloaded? its queue and its log say more", e.after)
	case e.what == forFirst:
		return fmt.Sprintf("no token within %v of the send, though the answer has begun: is the server overloaded? its queue and its log say more", e.after)
	}
	return fmt.Sprintf("no token for %v after the %s: the server stalled; its log says more", e.after, ordinal(n))
}

// where says how far the stream had come.
func (x *examination) where() string {
	switch n := len(x.told.Chunks); {
	case n > 0:
		return "after the " + ordinal(n) + " chunk"
	case x.told.Status != 0:
		return "before the first chunk"
	}
	return "before an answer came"
}

// ordinal is a rank in digits: 1st, 2nd, 3rd, 4th, 11th, 21st.
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

// strangeError is an answer of status 200 that is no stream.
type strangeError struct{ sentence string }

// Error says what came instead.
func (e *strangeError) Error() string { return e.sentence }

// strange tells what an answer is that holds no event, and takes what counts it
// has. Kind is its content type, head its begin.
func (x *examination) strange(kind string, head []byte) error {
	text := bytes.TrimSpace(head)
	switch {
	case len(text) == 0:
		return &strangeError{"the server answered 200 with nothing: its log says more"}
	case text[0] == '<':
		return &strangeError{fmt.Sprintf("the server answered 200 with a web page (%s): is that the address of an OpenAI-compatible server?", orNothing(title(text)))}
	case text[0] == '{' && json.Valid(text):
		return x.unstreamed(text)
	case begins(text, ":", "data", "event:", "id:", "retry:"):
		return ErrTruncated
	}
	return &strangeError{fmt.Sprintf("the server answered 200 with %s instead of an event stream: %s", orNothing(oneLine(kind)), serverMessage(text))}
}

// unstreamed tells what a single JSON object is.
func (x *examination) unstreamed(text []byte) error {
	c, err := decodeChunk(text, false)
	if err != nil || c.failed || !c.choice {
		return &strangeError{"the server answered 200 with an error instead of a stream: " + serverMessage(text)}
	}
	x.told.Finish = reasonShown(c.finish)
	if c.counted {
		x.count(&c)
	}
	x.timings = c.timings
	return &strangeError{"the server did not stream: it sent the whole completion at once, so that no token has a time; something before it may gather the stream"}
}

func begins(text []byte, words ...string) bool {
	for _, word := range words {
		if bytes.HasPrefix(text, []byte(word)) {
			return true
		}
	}
	return false
}

// title is that of a web page, or else its begin.
func title(page []byte) string {
	lower := bytes.ToLower(page)
	if from := bytes.Index(lower, []byte("<title>")); from >= 0 && len(lower) == len(page) {
		if length := bytes.Index(lower[from:], []byte("</title>")); length >= 0 {
			return serverMessage(page[from+len("<title>") : from+length])
		}
	}
	return serverMessage(page)
}

func orNothing(words string) string {
	if words == "" {
		return "no words"
	}
	return words
}

// oneLine makes foreign words fit to be shown.
func oneLine(words string) string {
	return strings.Join(strings.Fields(strings.Map(printable, words)), " ")
}

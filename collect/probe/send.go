package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Errors of a stream that broke its protocol.
var (
	// ErrTruncated reports that a stream ended without [DONE] or a finish reason.
	ErrTruncated = errors.New("stream ended before [DONE]")
	// ErrOverrun reports that a server continued after the requested number of tokens.
	ErrOverrun = errors.New("stream has more chunks than tokens were asked for")
	// ErrCancelled reports that the client closed a stream as the request demands.
	ErrCancelled = errors.New("cancelled by the client")
)

// StreamError is an error that the server reported inside a stream that began with
// status 200.
type StreamError struct {
	Message string
}

// Error returns the server's message.
func (e *StreamError) Error() string { return "server reported in the stream: " + e.Message }

const (
	// chunksPerToken limits the messages per token of a request: llama.cpp's server writes one for
	// each part of a reply that a token completes, such as text and a tool call.
	chunksPerToken = 4
	// extraChunks are tolerated beyond that: some servers open with an empty chunk and close with
	// one that has only the finish reason.
	extraChunks = 8
	// maxTextBytes limits the recorded text of an answer, about a million tokens of prose.
	maxTextBytes = 4 << 20
	// maxFinishRunes exceeds the length of any finish reason.
	maxFinishRunes = 64
)

// streamEnd is the data of the last event of a stream.
var streamEnd = []byte("[DONE]")

// errDone reports the end of a stream with [DONE].
var errDone = errors.New("stream is complete")

// Send sends one streaming completion and records the output in times of the clock. The time of a
// chunk is when its last byte was read from the connection; chunks that arrived in one read have
// the same time. If the server refuses the usual form of a request, Send repeats it in another form
// and adds a note to the record. The caller sets ID and Lane.
//
// The error is a *StatusError, a *StreamError, ErrTruncated, ErrOverrun, ErrCancelled, an expired
// timeout, or an error of the connection or context. The record is valid up to the error, and its
// Error field describes it in one sentence. Requests have no seed: a per-request seed stops the CPU
// engine of vLLM 0.32.0.
func (c *Client) Send(ctx context.Context, r Request, clock func() time.Duration) (capture.Request, error) {
	return c.send(ctx, &r, clock, clock)
}

// send is Send, but gets the time of sending from sent.
func (c *Client) send(ctx context.Context, r *Request, clock, sent func() time.Duration) (capture.Request, error) {
	for {
		d := dialect(c.dialect.Load())
		record, err := c.attempt(ctx, r, d, clock, sent)
		more := d.missing(err, r.Messages != nil)
		if more == 0 || ctx.Err() != nil {
			return record, err
		}
		c.dialect.Or(uint32(more))
		sent = clock // the ID of a request is assigned at its first attempt
	}
}

// exchange is one attempt at a request.
type exchange struct {
	request  *Request
	timeouts *timeouts
	record   capture.Request
	text     []byte
	messages int // of the stream
	choices  int // messages with a choice
	timings  *timings
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, r *Request, d dialect, clock, sent func() time.Duration) (capture.Request, error) {
	x := exchange{request: r, record: capture.Request{Notes: d.notes()}}
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x.timeouts = &timeouts{limits: c.timeouts, cancel: cancel}
	var seen connection
	request, err := c.newRequest(seen.traced(own, clock, x.timeouts), r, d)
	x.record.Sent = sent()
	if err == nil {
		x.timeouts.start()
		err = c.exchange(request, &x, clock)
		x.timeouts.stop()
	}
	if err != nil {
		x.record.End = clock()
		var late *timeoutError
		if ctx.Err() == nil && errors.As(context.Cause(own), &late) {
			err = late
		}
		x.record.Error = c.hide(x.describe(ctx, c.target.HostPort(), err))
		err = c.hideIn(err)
	}
	seen.fill(&x.record)
	x.record.Text = string(x.text)
	x.checkUsage()
	x.addTimings()
	if len(x.record.Chunks) < cap(x.record.Chunks)/2 {
		x.record.Chunks = slices.Clone(x.record.Chunks) // saves memory when there are a hundred thousand short answers
	}
	return x.record, err
}

// exchange sends the request and reads the response to its end.
func (c *Client) exchange(request *http.Request, x *exchange, clock func() time.Duration) error {
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	x.record.Status, x.record.Simulated = response.StatusCode, response.Header.Get("X-Simulated") != ""
	if response.StatusCode != http.StatusOK {
		return c.readStatus(response)
	}
	body := &timedReader{in: response.Body, now: clock, keep: true}
	err = x.read(newEventReader(body), body)
	switch {
	case err == nil:
		x.timeouts.stop() // the rest concerns only the connection
		drain(response.Body)
	case errors.Is(err, ErrTruncated) && x.messages == 0:
		return x.notStream(response.Header.Get("Content-Type"), body.head)
	}
	return err
}

// drain reads a response to its end, so that the connection can be used again, but waits at most
// closeGrace for a server that keeps it open.
func drain(body io.ReadCloser) {
	stop := time.AfterFunc(closeGrace, func() { _ = body.Close() })
	defer stop.Stop()
	_, _ = io.CopyN(io.Discard, body, maxErrorBytes)
}

// read reads the stream to its end.
func (x *exchange) read(events *eventReader, body *timedReader) error {
	x.record.Chunks = make([]capture.Chunk, 0, min(x.request.MaxTokens+1, 1<<6))
	var c chunk
	for {
		name, data, err := events.next()
		if err == nil {
			x.messages++
			body.keep = false
			x.record.End = events.at
		}
		if err := c.read(name, data, err); err != nil {
			switch finished := x.record.Finish != ""; {
			case errors.Is(err, errDone):
				return nil
			case finished && errors.Is(err, ErrTruncated): // some servers send no [DONE] after a finish reason
				x.record.End = body.now()
				return nil
			}
			return err
		}
		if err := x.add(&c, events.at); err != nil {
			return err
		}
	}
}

// read parses an event of which name, data and err were read. At the end of a stream it returns
// errDone or ErrTruncated.
func (c *chunk) read(name, data []byte, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return ErrTruncated
	case err != nil:
		return fmt.Errorf("read stream: %w", err)
	case bytes.Equal(bytes.TrimSpace(data), streamEnd):
		return errDone
	case string(name) == "error":
		return &StreamError{Message: serverMessage(data)}
	case len(data) == 0: // not an event, by WHATWG HTML 9.2.6
		*c = chunk{}
		return nil
	}
	if *c, err = parseChunk(data); err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	if c.failed {
		return &StreamError{Message: serverMessage(data)}
	}
	return nil
}

// add adds a message to the record.
func (x *exchange) add(c *chunk, at time.Duration) error {
	if c.tokens.OK {
		x.setUsage(c)
	}
	if c.timings != nil {
		x.timings = c.timings
	}
	if !c.choice {
		return nil
	}
	if c.finish != "" {
		x.record.Finish = printableReason(c.finish)
	}
	first := x.choices == 0
	if x.choices++; x.choices > chunksPerToken*x.request.MaxTokens+extraChunks {
		return ErrOverrun
	}
	if !c.token(first, len(x.record.Chunks)) {
		return nil
	}
	kind, size := c.kind()
	x.record.Chunks = append(x.record.Chunks, capture.Chunk{At: at, Kind: kind, Bytes: size})
	x.timeouts.chunk(len(x.record.Chunks))
	if c.output() && !c.tokens.OK {
		// A report that precedes more output does not cover the whole answer.
		x.record.OutputTokens, x.record.ReasoningTokens = stat.None, stat.None
	}
	if x.request.KeepText {
		x.text = append(x.text, c.text[:min(len(c.text), maxTextBytes-len(x.text))]...)
	}
	if x.request.OnChunk != nil {
		x.request.OnChunk(at - x.record.Sent)
	}
	if n := x.request.CancelAfter; n > 0 && len(x.record.Chunks) >= n {
		return ErrCancelled
	}
	return nil
}

// kind returns the kind of a chunk of output, and the bytes of its text.
func (c *chunk) kind() (kind capture.ChunkKind, size int) {
	switch {
	case c.says:
		return capture.Text, len(c.text)
	case c.thinks:
		return capture.Reasoning, c.thought
	case c.calls:
		return capture.ToolCall, 0
	}
	return capture.Empty, 0
}

// setUsage records the server's usage report. If several messages have one, the last one counts.
func (x *exchange) setUsage(c *chunk) {
	x.record.OutputTokens = c.tokens
	for _, count := range []struct {
		to   *stat.Opt
		from stat.Opt
	}{{&x.record.PromptTokens, c.prompt}, {&x.record.CachedTokens, c.cached}, {&x.record.ReasoningTokens, c.reasoned}} {
		if count.from.OK {
			*count.to = count.from
		}
	}
}

// checkUsage compares the usage report with the output and the request.
func (x *exchange) checkUsage() {
	visible := func(c capture.Chunk) bool { return c.Kind != capture.Empty }
	switch o := x.record.OutputTokens; {
	case o.OK && o.V == 0 && slices.ContainsFunc(x.record.Chunks, visible):
		x.record.OutputTokens, x.record.ReasoningTokens = stat.None, stat.None
		if x.record.PromptTokens.V == 0 {
			x.record.PromptTokens, x.record.CachedTokens = stat.None, stat.None
		}
		x.record.Notes = append(x.record.Notes, "the usage report counts no output tokens although text came: it is ignored")
	case o.V > float64(x.request.MaxTokens):
		x.record.Notes = append(x.record.Notes, "the usage report counts more output tokens than the request allows")
	}
}

// addTimings records llama.cpp's timings, and its token counts if there was no usage report. Its
// prompt count excludes cached tokens.
func (x *exchange) addTimings() {
	if x.timings == nil {
		return
	}
	positive := func(v *float64, unit float64) stat.Opt {
		if v == nil || !(*v >= 0 && *v <= maxCount) {
			return stat.None
		}
		return stat.Some(*v * unit)
	}
	t := x.timings
	x.record.PrefillSeconds, x.record.DecodeSeconds = positive(t.PromptMS, 1e-3), positive(t.PredictedMS, 1e-3)
	if x.record.OutputTokens.OK {
		return
	}
	x.record.OutputTokens = positive(t.Predicted, 1)
	if prompt, cached := positive(t.Prompt, 1), positive(t.Cached, 1); prompt.OK && cached.OK {
		x.record.PromptTokens, x.record.CachedTokens = prompt.Plus(cached), cached
	}
}

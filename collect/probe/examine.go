package probe

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxKindred bounds the messages of a request in its tokens: llama.cpp's server
// writes one for each part of a reply that a token completes, text and tool call
// among them.
const maxKindred = 4

// Examine sends one streaming completion and tells all that is seen of it, in
// moments of a clock that begins at the capture's origin. A chunk's moment is when
// its last byte was read from the connection; chunks that came in one read share
// it. The record is valid as far as the request got, Error says why it got no
// further. Where the server refuses the usual form it is asked again in one that it
// takes, and Notes says so. ID and Lane are left to the caller.
func (c *Client) Examine(ctx context.Context, r Request, clock func() time.Duration) capture.Request {
	return c.examine(ctx, &r, clock, clock)
}

// examine is Examine with sent in place of the clock at the moment of sending.
func (c *Client) examine(ctx context.Context, r *Request, clock, sent func() time.Duration) capture.Request {
	for {
		spoken := dialect(c.spoken.Load())
		told, err := c.attempt(ctx, r, spoken, clock, sent)
		more := spoken.wanted(err, r.Messages != nil)
		if more == 0 || ctx.Err() != nil {
			return told
		}
		c.spoken.Or(uint32(more))
		sent = clock // the number of a request is that of its first attempt
	}
}

// examination is one attempt at a request.
type examination struct {
	request  *Request
	patience *patience
	told     capture.Request
	text     []byte
	messages int // of the stream
	choices  int // messages with a choice
	timings  *timings
}

// attempt sends a request once. The error is what the record's Error tells.
func (c *Client) attempt(ctx context.Context, r *Request, spoken dialect, clock, sent func() time.Duration) (capture.Request, error) {
	x := examination{request: r, told: capture.Request{Notes: spoken.notes()}}
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x.patience = &patience{limits: c.timeouts, cancel: cancel}
	var seen milestones
	request, err := c.prepare(seen.traced(own, clock, x.patience), r, spoken)
	x.told.Sent = sent()
	if err == nil {
		x.patience.begin()
		err = c.exchange(request, &x, clock)
		x.patience.end()
	}
	if err != nil {
		x.told.End = clock()
		x.told.Error = c.hide(x.sentence(ctx, own, c.base.Host, err))
	}
	seen.into(&x.told)
	x.told.Text = string(x.text)
	x.doubt()
	x.settle()
	if len(x.told.Chunks) < cap(x.told.Chunks)/2 {
		x.told.Chunks = slices.Clone(x.told.Chunks) // a hundred thousand short answers are kept
	}
	return x.told, err
}

// prepare makes the request that goes to the connection.
func (c *Client) prepare(ctx context.Context, r *Request, spoken dialect) (*http.Request, error) {
	if r.MaxTokens < 1 {
		return nil, errNoTokens
	}
	return c.completion(ctx, r, spoken)
}

var errNoTokens = errors.New("a completion of no tokens: ask for at least 1")

// exchange sends the request and reads the answer to its end.
func (c *Client) exchange(request *http.Request, x *examination, clock func() time.Duration) error {
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	x.told.Status = response.StatusCode
	if response.StatusCode != http.StatusOK {
		return c.readStatus(response)
	}
	body := &stamped{in: response.Body, now: clock, keep: true}
	events := c.eventReader(body)
	events.times = body
	err = x.read(events)
	c.readers.Put(events)
	switch {
	case err == nil:
		x.patience.end() // what follows is the connection's affair
		drain(response.Body)
	case errors.Is(err, ErrTruncated) && x.messages == 0:
		return x.strange(response.Header.Get("Content-Type"), body.head)
	}
	return err
}

// read takes in the stream.
func (x *examination) read(events *eventReader) error {
	x.told.Chunks = make([]capture.Chunk, 0, min(x.request.MaxTokens+1, 1<<9)) // 12 KB for each that is in flight
	var c chunk
	for {
		name, data, err := events.next()
		if err == nil {
			x.messages++
			events.times.keep = false
			x.told.End = events.at
		}
		err = c.read(name, data, err, true)
		if errors.Is(err, ErrTruncated) && x.told.Finish != "" {
			x.told.End = events.times.now()
		}
		if err != nil {
			return overOf(err, x.told.Finish)
		}
		if err := x.take(&c, events.at); err != nil {
			return err
		}
	}
}

// take notes a message.
func (x *examination) take(c *chunk, at time.Duration) error {
	if c.counted {
		x.count(c)
	}
	if c.timings != nil {
		x.timings = c.timings
	}
	if !c.choice {
		return nil
	}
	if c.finish != "" {
		x.told.Finish = reasonShown(c.finish)
	}
	first := x.choices == 0
	if x.choices++; x.choices > maxKindred*x.request.MaxTokens+overrun {
		return ErrOverrun
	}
	if !c.token(first, len(x.told.Chunks)) {
		return nil
	}
	kind, bytes := c.kind()
	x.told.Chunks = append(x.told.Chunks, capture.Chunk{At: at, Kind: kind, Bytes: bytes})
	x.patience.took(len(x.told.Chunks))
	if c.output() && !c.counted {
		// A report that more output follows is none of the whole.
		x.told.OutputTokens, x.told.ReasoningTokens = stat.None, stat.None
	}
	if x.request.KeepText {
		x.text = append(x.text, c.text[:min(len(c.text), maxTextBytes-len(x.text))]...)
	}
	if x.request.OnChunk != nil {
		x.request.OnChunk(at - x.told.Sent)
	}
	if n := x.request.CancelAfter; n > 0 && len(x.told.Chunks) >= n {
		return ErrCancelled
	}
	return nil
}

// kind is what a chunk of output counts as, and the bytes of its text.
func (c *chunk) kind() (kind capture.ChunkKind, bytes int) {
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

// count notes the server's usage report. Where it comes with each message the last
// holds.
func (x *examination) count(c *chunk) {
	x.told.OutputTokens = stat.Some(float64(c.tokens))
	if c.tellsPrompt {
		x.told.PromptTokens = stat.Some(float64(c.prompt))
	}
	if c.tellsCached {
		x.told.CachedTokens = stat.Some(float64(c.cached))
	}
	if c.tellsThought {
		x.told.ReasoningTokens = stat.Some(float64(c.reasoned))
	}
}

// doubt holds the usage report against what came and what was asked for.
func (x *examination) doubt() {
	visible := func(c capture.Chunk) bool { return c.Kind != capture.Empty }
	switch o := x.told.OutputTokens; {
	case o.OK && o.V == 0 && slices.ContainsFunc(x.told.Chunks, visible):
		x.told.OutputTokens, x.told.ReasoningTokens = stat.None, stat.None
		if x.told.PromptTokens.V == 0 {
			x.told.PromptTokens, x.told.CachedTokens = stat.None, stat.None
		}
		x.told.Notes = append(x.told.Notes, "its usage report counts no output token, though text came: it is not believed")
	case o.V > float64(x.request.MaxTokens):
		x.told.Notes = append(x.told.Notes, "its usage report counts more output tokens than it was asked for")
	}
}

// maxFinishRunes is more than any finish reason has.
const maxFinishRunes = 64

// reasonShown is a finish reason fit to be kept and shown.
func reasonShown(reason string) string {
	if len(reason) > maxFinishRunes {
		runes := []rune(reason)
		reason = string(runes[:min(len(runes), maxFinishRunes)])
	}
	return oneLine(reason)
}

// settle takes in llama.cpp's timings, and its counts where it gave no usage
// report. It counts the cached part of a prompt apart.
func (x *examination) settle() {
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
	x.told.PrefillSeconds, x.told.DecodeSeconds = positive(t.PromptMS, 1e-3), positive(t.PredictedMS, 1e-3)
	if x.told.OutputTokens.OK {
		return
	}
	x.told.OutputTokens = positive(t.Predicted, 1)
	if prompt, cached := positive(t.Prompt, 1), positive(t.Cached, 1); prompt.OK && cached.OK {
		x.told.PromptTokens, x.told.CachedTokens = prompt.Plus(cached), cached
	}
}

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// Request is one completion to ask for.
type Request struct {
	Prompt    string
	Messages  []Message // ask the chat endpoint instead, where set
	Model     string    // "" is the client's own
	MaxTokens int       // output tokens at most; at least 1
	// IgnoreEOS makes vLLM generate MaxTokens tokens whatever the model says.
	// Servers that do not know it either ignore or refuse it.
	IgnoreEOS bool
	// CancelAfter, where above 0, is the number of chunks after which the client
	// closes the stream; the error is then ErrCancelled.
	CancelAfter int
	// Greedy asks for the likeliest token each time (temperature 0). Without it how
	// to draw is left to the server.
	Greedy   bool
	KeepText bool // Result.Text is wanted, up to 4 MiB
	// OnChunk, where set, is called as each chunk of output arrives, with the
	// time since the send, by the goroutine of the request.
	OnChunk func(sinceSend time.Duration)
}

// Result is what one request measured. After an error it holds what was
// measured up to then.
type Result struct {
	Sent   time.Time       // just before the request went to the connection
	Chunks []time.Duration // arrival of each chunk of output, since Sent
	Status int             // HTTP status; 0 where no answer came
	// PromptTokens and OutputTokens are the server's count where Counted is
	// true. Without it PromptTokens is 0, unknown, and OutputTokens the chunks.
	PromptTokens int
	OutputTokens int
	CachedTokens int // of the prompt, where the server tells; else 0
	Counted      bool
	FinishReason string // "length", "stop", ...; "" where the server gave none
	Simulated    bool   // the server says that it is a simulation
	Text         string // what was generated, where Request.KeepText
}

// TTFT returns the time from send to the first chunk; false where none came.
func (r *Result) TTFT() (time.Duration, bool) {
	if len(r.Chunks) == 0 {
		return 0, false
	}
	return r.Chunks[0], true
}

// E2E returns the time from send to the last chunk; false where none came.
func (r *Result) E2E() (time.Duration, bool) {
	if len(r.Chunks) == 0 {
		return 0, false
	}
	return r.Chunks[len(r.Chunks)-1], true
}

// TPOT returns (E2E-TTFT)/(tokens-1); false for fewer than two tokens, and
// where all of them came in one chunk.
func (r *Result) TPOT() (time.Duration, bool) {
	if len(r.Chunks) < 2 || r.OutputTokens < 2 {
		return 0, false
	}
	span := r.Chunks[len(r.Chunks)-1] - r.Chunks[0]
	return span / time.Duration(r.OutputTokens-1), true
}

// Errors of a stream that broke its protocol.
var (
	// ErrTruncated says that a stream ended without [DONE] or a finish reason.
	ErrTruncated = errors.New("stream ended before [DONE]")
	// ErrOverrun says that a server went on after the tokens it was asked for.
	ErrOverrun = errors.New("stream has more chunks than tokens were asked for")
	// ErrCancelled says that the client closed a stream as its request asks.
	ErrCancelled = errors.New("cancelled by the client")
)

// StreamError is an error that the server reported inside a stream it had
// begun with status 200.
type StreamError struct {
	Message string
}

// Error returns the server's words.
func (e *StreamError) Error() string { return "server reported in the stream: " + e.Message }

// overrun is how many chunks beyond MaxTokens are tolerated: some servers open
// with an empty chunk and close with one that only carries the finish reason.
const overrun = 8

// maxTextBytes bounds what is kept of an answer, whatever a chunk holds: about a
// million tokens of prose.
const maxTextBytes = 4 << 20

// streamEnd is the data of the last event of a stream.
var streamEnd = []byte("[DONE]")

type completionBody struct {
	Model         string        `json:"model"`
	Prompt        *string       `json:"prompt,omitempty"`
	Messages      []Message     `json:"messages,omitempty"`
	MaxTokens     int           `json:"max_tokens,omitempty"`
	NewMaxTokens  int           `json:"max_completion_tokens,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options,omitzero"`
	IgnoreEOS     bool          `json:"ignore_eos,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// Complete sends one streaming completion and reads it to its end. The error
// is a *StatusError, a *StreamError, ErrTruncated, ErrOverrun, ErrCancelled, or
// that of the connection or context; the result is valid as far as it got. The request
// carries no seed: a request's own seed stops the CPU engine of vLLM 0.32.0.
func (c *Client) Complete(ctx context.Context, r Request) (Result, error) {
	if r.MaxTokens < 1 {
		return Result{}, fmt.Errorf("completion of %d tokens: ask for at least 1", r.MaxTokens)
	}
	request, err := c.completion(ctx, &r, 0)
	if err != nil {
		return Result{Sent: time.Now()}, err
	}
	result := Result{Sent: time.Now()}
	response, err := c.http.Do(request)
	if err != nil {
		return result, err
	}
	defer response.Body.Close()
	result.Status, result.Simulated = response.StatusCode, response.Header.Get("X-Simulated") != ""
	if response.StatusCode != http.StatusOK {
		return result, c.readStatus(response)
	}
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return result, fmt.Errorf("answer is %q, not an event stream", kind)
	}
	events := c.eventReader(response.Body)
	err = result.read(events, &r)
	var said *StreamError
	if errors.As(err, &said) {
		said.Message = c.hide(said.Message)
	}
	c.readers.Put(events)
	if err == nil {
		drain(response.Body)
	}
	return result, err
}

// completion is a request as it goes to the connection.
func (c *Client) completion(ctx context.Context, r *Request, spoken dialect) (*http.Request, error) {
	content := completionBody{
		Model: r.Model, Messages: r.Messages, MaxTokens: r.MaxTokens, IgnoreEOS: r.IgnoreEOS,
		Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
	}
	if r.Greedy {
		content.Temperature = new(float64)
	}
	if spoken != 0 {
		content.speak(spoken)
	}
	at := c.chats
	if r.Messages == nil {
		at, content.Prompt = c.completions, &r.Prompt
	}
	if content.Model == "" {
		own, err := c.Model(ctx)
		if err != nil {
			return nil, err
		}
		content.Model = own
	}
	body, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return c.request(ctx, http.MethodPost, at, body)
}

// eventReader is one that is at hand, or a new one: each has a buffer.
func (c *Client) eventReader(body io.Reader) *eventReader {
	if e, ok := c.readers.Get().(*eventReader); ok {
		e.reset(body)
		return e
	}
	return newEventReader(body)
}

// drain reads a response to its end, so that the connection is used again, but
// waits no longer than closeGrace for a server that keeps it open.
func drain(body io.ReadCloser) {
	stop := time.AfterFunc(closeGrace, func() { _ = body.Close() })
	defer stop.Stop()
	_, _ = io.CopyN(io.Discard, body, maxErrorBytes)
}

// read takes in the stream of one completion.
func (r *Result) read(events *eventReader, request *Request) error {
	var text []byte
	if request.KeepText {
		defer func() { r.Text = string(text) }()
	}
	messages := 0
	var c chunk
	for {
		name, data, err := events.next()
		since := time.Since(r.Sent)
		if err := c.read(name, data, err, request.KeepText); err != nil {
			return overOf(err, r.FinishReason)
		}
		if c.counted {
			r.PromptTokens, r.OutputTokens, r.CachedTokens, r.Counted = c.prompt, c.tokens, c.cached, true
		}
		if !c.choice {
			continue
		}
		if c.finish != "" {
			r.FinishReason = c.finish
		}
		// Some servers name who speaks in each message of a chat.
		first := messages == 0
		if messages++; messages > request.MaxTokens+overrun {
			return ErrOverrun
		}
		if !c.token(first, len(r.Chunks)) {
			continue
		}
		text = append(text, c.text[:min(len(c.text), maxTextBytes-len(text))]...)
		if err := r.take(since, request); err != nil {
			return err
		}
	}
}

// errDone says that [DONE] came.
var errDone = errors.New("the stream is over")

// read takes what an event says; name, data and err are those of the event. At the end
// of a stream the error is errDone or ErrTruncated.
func (c *chunk) read(name, data []byte, err error, keepText bool) error {
	switch {
	case errors.Is(err, io.EOF):
		return ErrTruncated
	case err != nil:
		return fmt.Errorf("read stream: %w", err)
	case bytes.Equal(bytes.TrimSpace(data), streamEnd):
		return errDone
	case string(name) == "error":
		return &StreamError{Message: serverMessage(data)}
	case len(data) == 0: // no event, by WHATWG HTML 9.2.6
		*c = chunk{}
		return nil
	}
	if *c, err = parseChunk(data, keepText); err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	if c.failed {
		return &StreamError{Message: serverMessage(data)}
	}
	return nil
}

// overOf is the error with which a stream ended, nil for a whole one: some servers
// send no [DONE] after a finish reason.
func overOf(err error, finish string) error {
	if errors.Is(err, errDone) || finish != "" && errors.Is(err, ErrTruncated) {
		return nil
	}
	return err
}

// take notes a chunk of output.
func (r *Result) take(since time.Duration, request *Request) error {
	r.Chunks = append(r.Chunks, since)
	if !r.Counted {
		r.OutputTokens = len(r.Chunks)
	}
	if request.OnChunk != nil {
		request.OnChunk(since)
	}
	if request.CancelAfter > 0 && len(r.Chunks) >= request.CancelAfter {
		return ErrCancelled
	}
	return nil
}

// A message of a server is cut to so many runes, and the mark says so.
const (
	maxMessageRunes = 300
	cutMark         = "..."
)

// serverMessage finds the words in an error body: OpenAI's {"error":
// {"message"}}, {"error": "..."}, vLLM's older {"message"}, FastAPI's
// {"detail"}, or the text itself. It is one line of bounded length.
func serverMessage(body []byte) string {
	var spelled struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	text := string(body)
	if json.Unmarshal(body, &spelled) == nil {
		var nested struct {
			Message string `json:"message"`
		}
		var plain string
		switch {
		case json.Unmarshal(spelled.Error, &nested) == nil && nested.Message != "":
			text = nested.Message
		case json.Unmarshal(spelled.Error, &plain) == nil && plain != "":
			text = plain
		case spelled.Message != "":
			text = spelled.Message
		case json.Unmarshal(spelled.Detail, &plain) == nil && plain != "":
			text = plain
		}
	}
	text = oneLine(text)
	if runes := []rune(text); len(runes) > maxMessageRunes {
		return string(runes[:maxMessageRunes]) + cutMark
	}
	return text
}

// printable replaces what could move a terminal's cursor.
func printable(r rune) rune {
	if unicode.IsPrint(r) || unicode.IsSpace(r) {
		return r
	}
	return '?'
}

package vllmsim

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/token"
)

// Call is a request at the front end.
type Call struct {
	Prompt string // text; of a chat, rendered by the template
	// Tokens replaces Prompt where the caller gave token ids. The server keeps it
	// and never writes to it.
	Tokens    []core.Token
	MaxTokens int // 0: the model's rest
	MinTokens int
	IgnoreEOS bool
	Priority  int
	// Model is what the client asks for: a served name or an adapter; "" is the
	// first served name.
	Model   string
	Adapter string // LoRA adapter, where Model does not name it
	Salt    string
	// StopAfter is the output length at which the model ends by itself, where
	// IgnoreEOS is not set; 0 draws one from the server's own distribution.
	StopAfter int
	// Path is the HTTP path for the http_* families; "" is /v1/completions.
	Path string
	// Once asks for one update at the end, as a client without streaming does.
	Once bool
	// Quiet leaves Update.Text empty, for a sink that reads no text.
	Quiet bool
}

// Update is what a caller sees of its request, in order of time.
type Update struct {
	At     time.Duration // when it leaves the front end; outside, with a fault of the network
	Tokens []core.Token  // new ones; valid during the call
	Text   string        // their text
	Finish core.Reason
	Err    error      // of a request that failed; it is the last update
	Life   *core.Life // at the end, valid during the call; nil before, and where the engine did not end it
}

// Sink receives the updates of one request, called from Advance.
type Sink func(Update)

// request is a call on its way.
type request struct {
	id      core.ID
	call    Call
	sink    Sink // nil: nobody listens, or the client went away
	prompt  []core.Token
	adapter string
	max     int
	front   int // API server process
	rank    int // -1 before it is queued

	arrived time.Duration // at the front end's socket
	handled time.Duration // its handler began to run: vLLM's arrival_time
	gone    bool          // the client went away
	queued  bool          // the engine has it
	ended   bool          // the engine is done with it

	made, sent int          // tokens that left the engine, and of these those that a message is made of
	out        []core.Token // delivered to the front end, not sent yet
	messages   int
	counted    bool          // its answer is in the http_* families
	outside    int           // updates under way in a slow network
	last       time.Duration // of the last of these
}

// Refusal is an answer other than 200, in vLLM's words.
type Refusal struct {
	Status  int    // of HTTP
	Type    string // of the error body: "BadRequestError", "NotFoundError", …
	Param   string // that is wrong; "" none
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// Answers and breaks that are not about the request itself.
var (
	// ErrClosed is what an open or new connection gets from a server that does not
	// listen (yet, or any more), or that a fault cuts: no HTTP answer at all.
	ErrClosed = &Refusal{Message: "connection refused or reset: the server does not listen"}
	// ErrDead is the answer of an API server whose engine died (vLLM 0.32,
	// v1/engine/exceptions.py).
	ErrDead = &Refusal{Status: 500, Type: "InternalServerError",
		Message: "EngineCore encountered an issue. See stack trace (above) for the root cause."}
	errFailed = &Refusal{Status: 500, Type: "InternalServerError", Message: "Internal server error"}
)

// Submit takes a request at now. The error is the refusal that HTTP would answer
// at once: a [*Refusal] (400: too long; 404: unknown model; [ErrClosed], [ErrDead]). It is
// counted on the page. The ID is for Cancel.
func (v *Server) Submit(now time.Duration, c Call, sink Sink) (core.ID, error) {
	now = max(now, v.now)
	switch {
	case v.closed || now < v.healthy || v.cut(now):
		return 0, ErrClosed
	case v.dead:
		v.answered(&c, ErrDead.Status, 0, 0)
		return 0, ErrDead
	}
	q := &request{call: c, sink: sink, rank: -1, arrived: now, prompt: c.Tokens}
	if q.prompt == nil {
		// Capacity by the usual length of a token with its blank.
		q.prompt = token.Append(make([]core.Token, 0, len(c.Prompt)/5+8), c.Prompt)
	}
	if r := v.check(q); r != nil {
		v.answered(&c, r.Status, 0, len(r.Message)+100)
		return 0, r
	}
	v.lastID++
	q.id = v.lastID
	v.requests[q.id] = q
	q.front = int(q.id-1) % len(v.fronts)
	if now == v.now {
		v.arrive(q, now)
	} else {
		v.events.push(event{at: now, kind: arrives, request: q})
	}
	return q.id, nil
}

// check resolves what a request asks for; the answer is vLLM's refusal, nil
// where there is none. Words and order are those of vLLM 0.32 (entrypoints/openai/models/serving.py,
// renderers/params.py, sampling_params.py, v1/engine/input_processor.py), and of 0.11's
// entrypoints/openai/serving_engine.py before 0.20.
func (v *Server) check(q *request) *Refusal {
	s, c := v.settings, &q.call
	adapter := c.Adapter
	if c.Model != "" && !slices.Contains(s.Served, c.Model) {
		adapter = c.Model
	}
	if adapter != "" && !slices.Contains(s.LoRAModules, adapter) {
		return &Refusal{Status: 404, Type: "NotFoundError", Param: "model",
			Message: fmt.Sprintf("The model `%s` does not exist.", adapter)}
	}
	q.adapter = adapter
	prompt, model := len(q.prompt), s.MaxModelLen
	switch {
	case c.MaxTokens < 0:
		return bad("max_tokens", "max_tokens must be at least 1, got %d.", c.MaxTokens)
	case c.MinTokens < 0:
		return bad("", "min_tokens must be greater than or equal to 0, got %d.", c.MinTokens)
	case c.MaxTokens > 0 && c.MinTokens > c.MaxTokens:
		return bad("", "min_tokens must be less than or equal to max_tokens=%d, got %d.", c.MaxTokens, c.MinTokens)
	case prompt == 0:
		return bad("", "The decoder prompt cannot be empty")
	}
	if minor(s.Release) < 20 {
		switch {
		case prompt >= model:
			return bad("", "This model's maximum context length is %d tokens. However, your request has %d input tokens. Please reduce the length of the input messages.", model, prompt)
		case prompt+c.MaxTokens > model:
			return bad("max_tokens", "'max_tokens' or 'max_completion_tokens' is too large: %d. This model's maximum context length is %d tokens and your request has %d input tokens (%d > %d - %d).",
				c.MaxTokens, model, prompt, c.MaxTokens, model, prompt)
		}
	}
	switch {
	case c.MaxTokens > model:
		return bad("max_tokens", "max_tokens=%d cannot be greater than max_model_len=%d. Please request fewer output tokens.", c.MaxTokens, model)
	case prompt > model:
		return bad("input_tokens", "This model's maximum context length is %d tokens. However, your prompt contains %d input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.", model, prompt)
	case prompt == model:
		return bad("", "The decoder prompt (length %d) plus the number of requested output tokens (at least 1) is longer than the maximum model length of %d. Make sure that `max_model_len` is no smaller than the number of text tokens (prompt + requested output tokens).", prompt, model)
	}
	q.max = model - prompt
	if c.MaxTokens > 0 {
		q.max = min(q.max, c.MaxTokens)
	}
	return nil
}

func bad(param, format string, args ...any) *Refusal {
	return &Refusal{Status: 400, Type: "BadRequestError", Param: param, Message: fmt.Sprintf(format, args...)}
}

// Cancel tells that the client of a request went away. Its sink is not called
// any more; the engine frees what it held at the end of the step at hand. Requests
// that have ended, or never were, are ignored.
func (v *Server) Cancel(now time.Duration, id core.ID) {
	q := v.requests[id]
	if q == nil || q.gone {
		return
	}
	now = max(now, v.now)
	q.sink = nil
	if now == v.now {
		v.leave(q, now)
	} else {
		v.events.push(event{at: now, kind: leaves, request: q})
	}
}

// leave is the front end noticing that a client went away: from here on it
// ignores what the engine still has for it, in the counters too (vLLM
// v1/engine/output_processor.py).
func (v *Server) leave(q *request, now time.Duration) {
	if q.gone || v.requests[q.id] == nil {
		return
	}
	v.abandon(q, 200, now)
}

// abandon takes a request whose client is gone, or gets no more than an error,
// out of the front end and out of its engine.
func (v *Server) abandon(q *request, status int, now time.Duration) {
	q.gone, q.sink = true, nil
	v.close(q, status, now)
	switch {
	case v.dead || v.closed || q.ended:
		v.forget(q)
	case q.queued:
		r := v.ranks[q.rank]
		r.engine.Abort(q.id, now)
		r.begin(now)
	}
}

// close counts the answer to a request, once.
func (v *Server) close(q *request, status int, now time.Duration) {
	if !q.counted {
		q.counted = true
		v.answered(&q.call, status, now-q.arrived, q.bytes())
	}
}

// forget ends the book-keeping of a request.
func (v *Server) forget(q *request) {
	delete(v.requests, q.id)
}

// Sizes of messages on the wire, in bytes: what vLLM's JSON comes to beside the
// text itself. They only fill the http_* summaries of sizes.
const (
	requestBytes = 120
	answerBytes  = 420
	messageBytes = 210
)

// bytes estimates what was sent to the client so far.
func (q *request) bytes() int {
	if q.call.Once {
		return answerBytes + q.sent*6
	}
	return q.messages*messageBytes + q.sent*6
}

// answered counts an answer in the http_* families.
func (v *Server) answered(c *Call, status int, took time.Duration, bytes int) {
	path := c.Path
	if path == "" {
		path = "/v1/completions"
	}
	size := requestBytes + len(c.Prompt)
	if c.Tokens != nil {
		size += 6 * len(c.Tokens)
	}
	v.book.HTTP("POST", path, status, took, size, bytes)
}

// characters returns what the tokenizer has to read of a request.
func (q *request) characters() int {
	if q.call.Tokens != nil {
		return 0
	}
	return utf8.RuneCountInString(q.call.Prompt)
}

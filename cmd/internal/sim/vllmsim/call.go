package vllmsim

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// Call is a request at the front end.
type Call struct {
	Prompt string // text; a chat as rendered by the template
	// Tokens replaces Prompt if the caller gave token IDs. The server keeps it and never writes to
	// it.
	Tokens    []core.Token
	MaxTokens int // 0 means up to the model's length
	MinTokens int
	IgnoreEOS bool
	Priority  int
	// Model is the requested model: a served name or an adapter; "" means the first served name.
	Model string
	Salt  string
	// Path is the HTTP path for the http_* families; "" means /v1/completions.
	Path string
	// Once requests a single update at the end, like a client without streaming.
	Once bool
	// Quiet leaves Update.Text empty, for a sink that does not read it.
	Quiet bool
}

// Update is one update of a request. A caller gets the updates of a request in order of time.
type Update struct {
	At      time.Duration // when it leaves the front end, plus the delay of a network fault
	Tokens  []core.Token  // new ones; valid during the call
	Text    string        // their text
	Finish  core.Reason
	Err     error         // why the request failed; the update is then the last
	History *core.History // in the last update, valid during the call; nil if the engine did not end the request
}

// Sink receives the updates of one request, called from Advance.
type Sink func(Update)

// request is a call in progress.
type request struct {
	id      core.ID
	call    Call
	sink    Sink // nil without a listener or after the client went away
	prompt  []core.Token
	adapter string
	max     int
	front   int // API server process
	rank    int // -1 before an engine is chosen

	handled time.Duration // start of its handler: vLLM's arrival_time
	gone    bool          // whether the client went away
	queued  bool          // the engine has it
	ended   bool          // the engine is done with it

	made, sent int           // tokens that left the engine, and of these those that a message is made of
	out        []core.Token  // delivered to the front end, not sent yet
	counted    bool          // its answer is in the http_* families
	outside    int           // updates that are delayed in a slow network
	last       time.Duration // arrival of the last of these
}

// Refusal is an answer other than 200, with vLLM's text.
type Refusal struct {
	Status  int    // of HTTP
	Type    string // of the error body: "BadRequestError", "NotFoundError", …
	Param   string // parameter with the error; "" if none
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// Refusals that are not caused by the request itself.
var (
	// ErrClosed is the result of a connection that is refused or broken without an HTTP answer: the
	// server does not listen, or a fault cut the connection.
	ErrClosed = &Refusal{Message: "connection refused or reset: the server does not listen"}
	// ErrDead is the answer of an API server whose engine died (vLLM 0.32,
	// v1/engine/exceptions.py).
	ErrDead = &Refusal{Status: 500, Type: "InternalServerError",
		Message: "EngineCore encountered an issue. See stack trace (above) for the root cause."}
	errFailed = &Refusal{Status: 500, Type: "InternalServerError", Message: "Internal server error"}
)

// Submit accepts a request at time now and returns its ID for Cancel. The error is a [*Refusal] that
// HTTP would answer at once: 400 for a request that is too long, 404 for an unknown model, [ErrClosed]
// or [ErrDead]. The page counts it.
func (v *Server) Submit(now time.Duration, c Call, sink Sink) (core.ID, error) {
	now = max(now, v.now)
	switch {
	case now < v.healthy || v.faults.cut(now):
		return 0, ErrClosed
	case v.dead:
		v.answered(&c, ErrDead.Status)
		return 0, ErrDead
	case v.refused(now):
		v.answered(&c, errFailed.Status)
		return 0, errFailed
	}
	q := &request{call: c, sink: sink, rank: -1, prompt: c.Tokens}
	if q.prompt == nil {
		// Capacity for tokens of the usual length, including the blank.
		q.prompt = AppendTokens(make([]core.Token, 0, len(c.Prompt)/5+8), c.Prompt)
	}
	if r := v.check(q); r != nil {
		v.answered(&c, r.Status)
		return 0, r
	}
	v.lastID++
	q.id = v.lastID
	v.requests[q.id] = q
	q.front = int(q.id-1) % len(v.fronts)
	if now == v.now {
		v.arrive(q, now)
	} else {
		v.events.Push(now, func(at time.Duration) { v.arrive(q, at) })
	}
	return q.id, nil
}

// check resolves the parameters of a request and returns vLLM's refusal, nil if there is none. Texts
// and order are those of vLLM 0.32 (entrypoints/openai/models/serving.py,
// renderers/params.py, sampling_params.py, v1/engine/input_processor.py).
func (v *Server) check(q *request) *Refusal {
	s, c := v.settings, &q.call
	adapter := ""
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
		return badRequest("max_tokens", "max_tokens must be at least 1, got %d.", c.MaxTokens)
	case c.MinTokens < 0:
		return badRequest("", "min_tokens must be greater than or equal to 0, got %d.", c.MinTokens)
	case c.MaxTokens > 0 && c.MinTokens > c.MaxTokens:
		return badRequest("", "min_tokens must be less than or equal to max_tokens=%d, got %d.", c.MaxTokens, c.MinTokens)
	case prompt == 0:
		return badRequest("", "The decoder prompt cannot be empty")
	case c.MaxTokens > model:
		return badRequest("max_tokens", "max_tokens=%d cannot be greater than max_model_len=%d. Please request fewer output tokens.", c.MaxTokens, model)
	case prompt > model:
		return badRequest("input_tokens", "This model's maximum context length is %d tokens. However, your prompt contains %d input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.", model, prompt)
	case prompt == model:
		return badRequest("", "The decoder prompt (length %d) plus the number of requested output tokens (at least 1) is longer than the maximum model length of %d. Make sure that `max_model_len` is no smaller than the number of text tokens (prompt + requested output tokens).", prompt, model)
	}
	q.max = model - prompt
	if c.MaxTokens > 0 {
		q.max = min(q.max, c.MaxTokens)
	}
	return nil
}

// Cancel records that the client of a request went away. Its sink is no longer called, and the
// engine frees its blocks at the end of the current step. Requests that have ended and unknown IDs
// are ignored.
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
		v.events.Push(now, func(at time.Duration) { v.leave(q, at) })
	}
}

// leave makes the front end notice that a client went away: from then on it ignores further outputs of
// the request, also in the counters (vLLM v1/engine/output_processor.py).
func (v *Server) leave(q *request, now time.Duration) {
	if q.gone || v.requests[q.id] == nil {
		return
	}
	v.abandon(q, 200, now)
}

// abandon removes a request from the front end and its engine, because the client is gone or gets an
// error.
func (v *Server) abandon(q *request, status int, now time.Duration) {
	q.gone, q.sink = true, nil
	v.close(q, status)
	switch {
	case v.dead || q.ended:
		v.forget(q)
	case q.queued:
		r := v.ranks[q.rank]
		r.engine.Abort(q.id)
		r.begin(now)
	}
}

// close counts the answer to a request, once.
func (v *Server) close(q *request, status int) {
	if !q.counted {
		q.counted = true
		v.answered(&q.call, status)
	}
}

// forget removes a request that has ended from the server's table.
func (v *Server) forget(q *request) {
	delete(v.requests, q.id)
}

// answered counts an answer in the http_* families.
func (v *Server) answered(c *Call, status int) {
	v.book.HTTP(cmp.Or(c.Path, "/v1/completions"), status)
}

// characters returns the number of characters that the tokenizer reads of a request.
func (q *request) characters() int {
	if q.call.Tokens != nil {
		return 0
	}
	return utf8.RuneCountInString(q.call.Prompt)
}

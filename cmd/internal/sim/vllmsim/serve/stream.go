package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// stream is one HTTP request that generates. The loop's goroutine adds output as the bytes for the client; the
// request's handler writes them. A slow client delays only its own handler.
type stream struct {
	form    form
	wake    chan struct{} // has an element while there is something to write
	dirty   bool          // in the loop's list; only the loop's goroutine uses it
	choices []choice

	mu     sync.Mutex
	out    []byte // not yet written by the handler
	open   int    // choices that have not ended
	failed *refusal
	cut    bool // break the connection without an answer
}

// choice is one sequence of a request.
type choice struct {
	id     core.ID
	begun  bool
	text   []byte // of an answer without streaming
	tokens int
	prompt int
	cached int
	finish core.Reason
}

func newStream(f form, choices int) *stream {
	return &stream{form: f, wake: make(chan struct{}, 1), choices: make([]choice, choices), open: choices}
}

// notify wakes the handler.
func (s *stream) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// add adds an update of choice i. It runs on the loop's goroutine.
func (s *stream) add(l *loop, i int, u vllmsim.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.choices[i]
	if c.finish != core.NotFinished || s.failed != nil || s.cut {
		return
	}
	c.tokens += len(u.Tokens)
	if u.History != nil {
		c.prompt, c.cached, c.tokens = u.History.PromptTokens, u.History.CachedTokens, u.History.OutputTokens
	}
	if errors.Is(u.Err, vllmsim.ErrClosed) {
		s.cut, s.open = true, 0
		l.mark(s)
		return
	}
	if u.Err != nil || u.Finish == core.Error {
		s.fail(failure(u.Err))
		l.mark(s)
		return
	}
	c.finish = u.Finish
	if u.Finish != core.NotFinished {
		s.open--
	}
	if s.form.stream {
		s.out = s.form.chunk(s.out, i, c, u.Text)
		c.begun = true
		if s.open == 0 {
			s.out = s.form.last(s.out, s.choices)
		}
		l.mark(s)
		return
	}
	c.text = append(c.text, u.Text...)
	if s.open == 0 {
		s.out = s.form.whole(s.out, s.choices)
		l.mark(s)
	}
}

// failure returns the answer to a request that the engine failed.
func failure(err error) *refusal {
	if err == nil {
		return &refusal{http.StatusInternalServerError, "InternalServerError", "", "Internal server error"}
	}
	return refusalOf(err)
}

// fail ends the request with an error: as the answer if nothing was sent, else within the stream.
func (s *stream) fail(r *refusal) {
	s.failed, s.open = r, 0
	if s.form.stream && s.begun() {
		s.out = fmt.Appendf(s.out, "data: %s\n\ndata: [DONE]\n\n", r.body())
	}
}

func (s *stream) begun() bool {
	return slices.ContainsFunc(s.choices, func(c choice) bool { return c.begun })
}

// swap returns the bytes to write and keeps buf for the next ones.
func (s *stream) swap(buf []byte) (out []byte, ended bool, failed *refusal, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, s.out = s.out, buf[:0]
	return out, s.open == 0, s.failed, s.cut
}

// answer writes the answer as it is generated. It returns nil at the end, the error of ctx if the client goes
// away, errEnded if the server ends, and vllmsim.ErrClosed if a fault cuts the connection.
func (s *stream) answer(ctx context.Context, w http.ResponseWriter, ended <-chan struct{}) error {
	control := http.NewResponseController(w)
	var buf []byte
	sent := false
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return errEnded
		}
		out, done, failed, cut := s.swap(buf)
		switch {
		case cut:
			return vllmsim.ErrClosed
		case failed != nil && (!s.form.stream || !sent && len(out) == 0):
			failed.write(w)
			return nil
		case !s.form.stream:
			writeBody(w, http.StatusOK, "application/json", out)
			return nil
		}
		if !sent {
			// Sent with the first output, so that an earlier failure can have its own status.
			h := w.Header()
			h.Set("Content-Type", "text/event-stream; charset=utf-8")
			h.Set("Cache-Control", "no-cache")
			w.WriteHeader(http.StatusOK)
			sent = true
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		_ = control.Flush()
		if done {
			return nil
		}
		buf = out
	}
}

// ids returns the engine's IDs of the sequences in progress.
func (s *stream) ids() []core.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []core.ID
	for i := range s.choices {
		if s.choices[i].finish == core.NotFinished {
			ids = append(ids, s.choices[i].id)
		}
	}
	return ids
}

// reason returns a finish_reason as JSON.
func reason(r core.Reason) []byte { return quoteOrNull(r.String()) }

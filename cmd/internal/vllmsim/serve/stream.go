package serve

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
)

// stream is one HTTP request that generates. The loop's goroutine adds what the
// server puts out, as the bytes that the client will get; the request's handler
// writes them. A client that reads slowly holds up its own handler alone.
type stream struct {
	form    form
	wake    chan struct{} // holds one token while there is something to write
	dirty   bool          // in the loop's list; of the loop's goroutine alone
	choices []choice

	mu     sync.Mutex
	out    []byte // not yet taken by the handler
	open   int    // choices that have not ended
	failed *refusal
	cut    bool // the connection breaks, without an answer
}

// choice is one sequence of a request.
type choice struct {
	id      core.ID
	begun   bool
	text    []byte // of an answer in one piece
	tokens  int
	prompt  int
	cached  int
	finish  core.Reason
	counted int // prompt tokens that continuous usage tells before the end
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

// take adds an update of choice i. It runs in the loop's goroutine.
func (s *stream) take(l *loop, i int, u vllmsim.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.choices[i]
	if c.finish != core.NotFinished || s.failed != nil || s.cut {
		return
	}
	c.tokens += len(u.Tokens)
	if u.Life != nil {
		c.prompt, c.cached, c.tokens = u.Life.PromptTokens, u.Life.CachedTokens, u.Life.OutputTokens
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

// failure is what a client is told of a request that the engine gave up.
func failure(err error) *refusal {
	if err == nil {
		return &refusal{http.StatusInternalServerError, "InternalServerError", "", "Internal server error"}
	}
	return refusalOf(err)
}

// fail ends the request with an error: as an answer of its own while nothing
// was sent, else within the stream.
func (s *stream) fail(r *refusal) {
	s.failed, s.open = r, 0
	if s.form.stream && s.begun() {
		s.out = append(s.out, "data: "...)
		s.out = append(s.out, r.body()...)
		s.out = append(s.out, "\n\ndata: [DONE]\n\n"...)
	}
}

func (s *stream) begun() bool {
	for i := range s.choices {
		if s.choices[i].begun {
			return true
		}
	}
	return false
}

// swap takes what there is to write and leaves buf for what comes next.
func (s *stream) swap(buf []byte) (out []byte, ended bool, failed *refusal, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, s.out = s.out, buf[:0]
	return out, s.open == 0, s.failed, s.cut
}

// answer writes the request's answer as it comes. It returns at the end, when
// the client goes away (the context's error), when the life ends (errEnded), or
// where a fault cuts the connection (vllmsim.ErrClosed).
func (s *stream) answer(ctx context.Context, w http.ResponseWriter, ended <-chan struct{}) error {
	flush := func() {}
	if f, ok := w.(http.Flusher); ok {
		flush = f.Flush
	}
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
		case failed != nil && !sent && len(out) == 0:
			failed.write(w)
			return nil
		case failed != nil && !s.form.stream:
			failed.write(w)
			return nil
		case !s.form.stream:
			writeJSON(w, http.StatusOK, out)
			return nil
		}
		if !sent {
			// With the first output, so that whatever fails before it has a status
			// of its own.
			h := w.Header()
			h.Set("Content-Type", "text/event-stream; charset=utf-8")
			h.Set("Cache-Control", "no-cache")
			w.WriteHeader(http.StatusOK)
			sent = true
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		flush()
		if done {
			return nil
		}
		buf = out
	}
}

// ids are the engine's names of the sequences that are under way.
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

// appendReason appends a finish_reason.
func appendReason(b []byte, r core.Reason) []byte {
	switch r {
	case core.Stop:
		return append(b, `"stop"`...)
	case core.Length:
		return append(b, `"length"`...)
	case core.Aborted:
		return append(b, `"abort"`...)
	case core.Error:
		return append(b, `"error"`...)
	}
	return append(b, "null"...)
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

package vllmsim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// stream is one HTTP request that generates. The loop's goroutine adds output as the bytes for the client; the
// request's handler writes them. A slow client delays only its own handler.
type stream struct {
	form  requestForm
	wake  chan struct{} // has an element while there is something to write
	dirty bool          // in the loop's list; only the loop's goroutine uses it
	id    core.ID

	// Only the loop's goroutine uses these.
	begun          bool
	text           []byte // of an answer without streaming
	prompt, cached int
	tokens         int

	mu     sync.Mutex
	out    []byte // not yet written by the handler
	finish core.Reason
	ended  bool
	failed *refusal
	cut    bool // break the connection without an answer
}

func newStream(f requestForm) *stream { return &stream{form: f, wake: make(chan struct{}, 1)} }

// notify wakes the handler.
func (s *stream) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// add adds an update. It runs on the loop's goroutine.
func (s *stream) add(l *loop, u Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = u.Finish != core.NotFinished || u.Err != nil
	if s.ended || s.form.stream {
		l.mark(s)
	}
	s.tokens += len(u.Tokens)
	if u.History != nil {
		s.prompt, s.cached, s.tokens = u.History.PromptTokens, u.History.CachedTokens, u.History.OutputTokens
	}
	if errors.Is(u.Err, ErrClosed) {
		s.cut = true
		return
	}
	if u.Err != nil || u.Finish == core.Error {
		s.fail(refusalOf(u.Err))
		return
	}
	s.finish = u.Finish
	if !s.form.stream {
		s.text = append(s.text, u.Text...)
		if s.ended {
			s.out = s.form.whole(s.out, s)
		}
		return
	}
	s.out = s.form.chunk(s.out, s, u.Text)
	s.begun = true
	if s.ended {
		s.out = s.form.last(s.out, s)
	}
}

// fail ends the request with an error: as the answer if nothing was sent, else within the stream.
func (s *stream) fail(r *refusal) {
	s.failed = r
	if s.form.stream && s.begun {
		s.out = fmt.Appendf(s.out, "data: %s\n\ndata: [DONE]\n\n", errorBody(r))
	}
}

// swap returns the bytes to write and keeps buf for the next ones.
func (s *stream) swap(buf []byte) (out []byte, ended bool, failed *refusal, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, s.out = s.out, buf[:0]
	return out, s.ended, s.failed, s.cut
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
			return ErrClosed
		case failed != nil && (!s.form.stream || !sent && len(out) == 0):
			refuse(w, failed)
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

// reason returns a finish_reason as JSON.
func reason(r core.Reason) []byte { return quoteOrNull(r.String()) }

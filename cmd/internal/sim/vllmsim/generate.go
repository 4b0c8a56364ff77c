package vllmsim

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// lookup returns a refusal if the server does not serve a model's name; "" means the first served name.
func (f *incarnation) lookup(name string) *refusal {
	s := f.settings
	if name == "" || slices.Contains(s.Served, name) || slices.Contains(s.LoRAModules, name) {
		return nil
	}
	return noModel(name, strings.Join(s.Served, ", "))
}

// served returns the model name for answers: the adapter's, else the first served name, whichever of them was
// requested.
func (f *incarnation) served(name string) string {
	if slices.Contains(f.settings.LoRAModules, name) {
		return name
	}
	return f.settings.Served[0]
}

// completions answers POST /v1/completions.
func (f *incarnation) completions(w http.ResponseWriter, r *http.Request) *refusal {
	const limit = 16
	return f.generate(w, r, false, limit)
}

// chat answers POST /v1/chat/completions.
func (f *incarnation) chat(w http.ResponseWriter, r *http.Request) *refusal {
	return f.generate(w, r, true, 0)
}

// generate submits a request and writes the answer; limit bounds an output that the request does not bound, 0 is up to
// the model's length. It returns a refusal that the server has not counted.
func (f *incarnation) generate(w http.ResponseWriter, r *http.Request, chat bool, limit int) *refusal {
	body, refusal := readBody(w, r)
	if refusal != nil {
		return refusal
	}
	if !chat {
		body.MaxCompletionTokens = nil // a member of chats
	}
	c, refusal := body.call(limit, r.URL.Path)
	if refusal != nil {
		return refusal
	}
	if refusal = body.check(f.settings.StreamInterval); refusal != nil {
		return refusal
	}
	id := "cmpl-"
	if chat {
		id = "chatcmpl-"
		c.Prompt, refusal = body.chat()
	} else {
		refusal = body.prompt(&c)
	}
	if refusal != nil {
		return refusal
	}
	if refusal = f.lookup(body.Model); refusal != nil {
		return refusal
	}
	s := newStream(f.form(body, chat, id+f.requestID()))
	var refused error
	err := f.do(r.Context(), func(now time.Duration) {
		s.id, refused = f.m.Submit(now, c, func(u Update) { s.add(f.loop, u) })
	})
	switch {
	case err != nil:
	case errors.Is(refused, ErrClosed):
		err = refused
	case refused != nil:
		refuse(w, refusalOf(refused))
	default:
		err = s.answer(r.Context(), w, f.gone)
	}
	switch {
	case err == nil:
	case errors.Is(err, errEnded), errors.Is(err, ErrClosed):
		// The process has ended, or a fault cut the connection: the connection breaks.
		panic(http.ErrAbortHandler)
	default:
		f.cancel(s)
	}
	return nil
}

// cancel reports to the server that a request's client went away.
func (f *incarnation) cancel(s *stream) {
	_ = f.post(context.Background(), func(now time.Duration) { f.m.Cancel(now, s.id) })
}

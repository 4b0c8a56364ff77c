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

// generate submits a request's prompt as a call and writes the answer. It returns a refusal that the server has not
// counted.
func (f *incarnation) generate(w http.ResponseWriter, r *http.Request, p *params, chat bool, c Call) *refusal {
	if refused := f.lookup(p.model); refused != nil {
		return refused
	}
	id := "cmpl-"
	if chat {
		id = "chatcmpl-"
	}
	id += f.requestID()
	s := newStream(newForm(chat, p, id, time.Now().Unix(), f.served(p.model), f.fingerprint, f.details))
	c.Model, c.Path, c.Once = p.model, r.URL.Path, !p.stream
	c.MaxTokens, c.MinTokens, c.IgnoreEOS, c.Priority, c.Salt = p.maxTokens, p.minTokens, p.ignoreEOS, p.priority, p.salt
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

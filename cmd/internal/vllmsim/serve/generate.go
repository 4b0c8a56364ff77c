package serve

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
)

// lookup says whether the server answers to a model's name; "" is the first
// served one.
func (f *life) lookup(name string) *refusal {
	s := f.settings
	if name == "" || slices.Contains(s.Served, name) || slices.Contains(s.LoRAModules, name) {
		return nil
	}
	return noModel(name, strings.Join(s.Served, ", "))
}

// served is the name that answers carry: the adapter's, else the first served
// one, whichever of them was asked for.
func (f *life) served(name string) string {
	if slices.Contains(f.settings.LoRAModules, name) {
		return name
	}
	return f.settings.Served[0]
}

// generate submits a request's prompts, each a call of its own, and writes the
// answer.
func (f *life) generate(w http.ResponseWriter, r *http.Request, p *params, chat bool, calls []vllmsim.Call) {
	if refused := f.lookup(p.model); refused != nil {
		f.refuse(w, r, refused)
		return
	}
	f.inFlight.Add(1)
	defer f.inFlight.Add(-1)
	id := f.name(r, p, chat)
	p.usage = p.usage || f.forceUsage && p.stream
	p.continuous = p.continuous || f.forceUsage && p.stream
	s := newStream(newForm(chat, p, id, time.Now().Unix(), f.served(p.model), f.fingerprint, f.details), len(calls))
	for i := range calls {
		c := &calls[i]
		c.Model, c.Path, c.Once = p.model, r.URL.Path, !p.stream
		c.MaxTokens, c.MinTokens, c.IgnoreEOS, c.Priority, c.Salt = p.maxTokens, p.minTokens, p.ignoreEOS, p.priority, p.salt
		if p.continuous {
			s.choices[i].counted = length(c)
		}
	}
	f.log.add(f.clock.now(), "request", f.started, entry{Request: id, Endpoint: r.URL.Path})
	refused, err := f.submit(r.Context(), s, calls, id)
	if err == nil && refused != nil {
		f.log.add(f.clock.now(), "refused", f.started, entry{Request: id, Status: refused.status, Message: refused.message})
		refused.write(w)
		return
	}
	if err == nil {
		err = s.answer(r.Context(), w, f.gone)
	}
	switch {
	case err == nil:
	case errors.Is(err, errEnded), errors.Is(err, vllmsim.ErrClosed):
		// The process is gone, or a fault cut the connection: the client sees it
		// break.
		panic(http.ErrAbortHandler)
	default:
		f.cancel(s, id)
	}
}

// name is a request's id: the client's own, by header or body, else a new one.
func (f *life) name(r *http.Request, p *params, chat bool) string {
	prefix := "cmpl-"
	if chat {
		prefix = "chatcmpl-"
	}
	switch own := r.Header.Get("X-Request-Id"); {
	case own != "":
		return prefix + cut(own)
	case p.id != "":
		return prefix + cut(p.id)
	}
	return prefix + f.requestID()
}

// longestID bounds what a client may call its request: the name stands in every
// chunk and in the journal.
const longestID = 256 // bytes

func cut(id string) string { return strings.ToValidUTF8(id[:min(len(id), longestID)], "") }

// submit hands the calls to the server, all of them or none. The error says that
// there will be no HTTP answer.
func (f *life) submit(ctx context.Context, s *stream, calls []vllmsim.Call, id string) (*refusal, error) {
	var refused error
	err := f.do(ctx, func(now time.Duration) {
		for i := range calls {
			name, err := f.m.Submit(now, calls[i], func(u vllmsim.Update) {
				s.take(f.loop, i, u)
				if u.Life != nil {
					f.logEnd(u, id)
				}
			})
			if err != nil {
				refused = err
				for j := range i {
					f.m.Cancel(now, s.choices[j].id)
				}
				return
			}
			s.choices[i].id = name
		}
	})
	switch {
	case err != nil:
		return nil, err
	case errors.Is(refused, vllmsim.ErrClosed):
		return nil, refused
	case refused != nil:
		return refusalOf(refused), nil
	}
	return nil, nil
}

// refusalOf is a server's own refusal as an answer.
func refusalOf(err error) *refusal {
	var r *vllmsim.Refusal
	if errors.As(err, &r) && r.Status != 0 {
		return &refusal{r.Status, r.Type, r.Param, r.Message}
	}
	return &refusal{http.StatusInternalServerError, "InternalServerError", "", err.Error()}
}

// cancel tells the server that a request's client went away.
func (f *life) cancel(s *stream, id string) {
	_ = f.post(context.Background(), func(now time.Duration) {
		for _, name := range s.ids() {
			f.m.Cancel(now, name)
		}
		f.log.add(now, "disconnect", f.started, entry{Request: id})
	})
}

// logEnd notes what a request has been through.
func (f *life) logEnd(u vllmsim.Update, id string) {
	l := u.Life
	e := entry{
		Request: id, Prompt: l.PromptTokens, Output: l.OutputTokens, Cached: l.CachedTokens, Preempts: l.Preemptions,
		E2E: (u.At - l.Arrival).Seconds(), Finish: strings.Trim(string(appendReason(nil, u.Finish)), `"`),
	}
	if l.FirstToken > 0 {
		e.TTFT = (l.FirstToken - l.Arrival).Seconds()
	}
	if u.Finish == core.NotFinished {
		e.Finish = ""
	}
	f.log.add(u.At, "finished", f.started, e)
}

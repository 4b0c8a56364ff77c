package simbench

import (
	"errors"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/collect/probe"
)

// offer is a schedule of requests: a [probe.Offer].
type offer interface {
	Due() (time.Duration, bool)
	Next() probe.Intent
	Done(id int, o probe.Outcome) (again bool)
}

// clients sends what an offer asks for to the world's server, whichever life it
// has, and tells the offer how it went.
type clients struct {
	name   string
	world  *World
	offer  offer
	origin time.Duration // of the offer's times
	quiet  bool          // nobody reads what is generated
	tally  *Tally
	live   []*flight // in the order they were sent; nil where ended
	ended  []ending  // not yet told to the offer
}

// flight is one request that was sent.
type flight struct {
	intent probe.Intent
	id     core.ID
	sent   time.Duration
	last   time.Duration // latest piece of the answer
	tokens int
	text   []byte
	place  int // in live
	over   bool
}

type ending struct {
	id int
	o  probe.Outcome
}

func (c *clients) next() (time.Duration, bool) {
	t, ok := c.offer.Due()
	if !ok {
		return 0, false
	}
	return t + c.origin, true
}

// step tells the offer what ended and sends what is due.
func (c *clients) step(w *World) {
	for {
		for _, e := range c.ended {
			c.offer.Done(e.id, e.o)
		}
		c.ended = c.ended[:0]
		due, ok := c.next()
		if !ok || due > w.now {
			return
		}
		in := c.offer.Next()
		c.send(w, &in)
	}
}

func (c *clients) send(w *World, in *probe.Intent) {
	f := &flight{intent: *in, sent: w.now}
	f.intent.Prompt, f.intent.Messages = "", nil // the server keeps what it needs
	c.tally.sent(w.now, in.Attempt)
	w.log.write(w.now, "send", "stream", c.name, "request", in.ID, "attempt", in.Attempt, "prompt", in.PromptTokens, "most", in.MaxTokens)
	if !w.Listening() {
		c.end(f, w.now, errRefused)
		return
	}
	call := vllmsim.Call{
		Prompt: in.Prompt, MaxTokens: in.MaxTokens, IgnoreEOS: in.IgnoreEOS, Model: in.Model, Quiet: c.quiet,
	}
	id, err := w.server.Submit(w.now, call, func(u vllmsim.Update) { c.receive(f, u) })
	if err != nil {
		c.end(f, w.now, err)
		return
	}
	f.id, f.place = id, len(c.live)
	c.live = append(c.live, f)
	if d := in.Deadline; d > 0 {
		w.At(c.origin+in.At+d, func() { c.leave(f) })
	}
	c.compact()
}

// receive takes a piece of the answer.
func (c *clients) receive(f *flight, u vllmsim.Update) {
	if f.over {
		return
	}
	at := u.At
	if n := len(u.Tokens); n > 0 {
		if f.tokens == 0 {
			c.tally.first(at, at-c.origin-f.intent.At)
			c.world.log.write(at, "first", "stream", c.name, "request", f.intent.ID)
		} else {
			c.tally.next(at, at-f.last)
		}
		c.tally.tokens(at, n)
		f.tokens += n
		f.last = at
		f.text = append(f.text, u.Text...)
		if most := f.intent.CancelAfter; most > 0 && f.tokens >= most && u.Finish == core.NotFinished {
			c.world.At(at, func() { c.leave(f) })
		}
	}
	switch {
	case u.Err != nil:
		c.end(f, at, u.Err)
	case u.Finish == core.Stop || u.Finish == core.Length:
		c.end(f, at, nil)
	case u.Finish != core.NotFinished:
		c.end(f, at, errReset)
	}
}

// leave is a client that goes away.
func (c *clients) leave(f *flight) {
	if f.over {
		return
	}
	c.world.server.Cancel(c.world.now, f.id)
	c.tally.left(c.world.now)
	c.world.log.write(c.world.now, "leave", "stream", c.name, "request", f.intent.ID, "tokens", f.tokens)
	c.finish(f, probe.Outcome{At: c.world.now - c.origin, OK: true, Text: string(f.text)})
}

// end closes a request that was answered, or failed.
func (c *clients) end(f *flight, at time.Duration, err error) {
	var refusal *vllmsim.Refusal
	o := probe.Outcome{
		At: at - c.origin, OK: err == nil, Text: string(f.text),
		Refused: errors.As(err, &refusal) && refusal.Status >= 400 && refusal.Status < 500,
	}
	if err != nil {
		c.tally.failed(at)
		c.world.log.write(at, "fail", "stream", c.name, "request", f.intent.ID, "error", err.Error())
	} else {
		c.tally.finished(at, at-c.origin-f.intent.At)
		c.world.log.write(at, "end", "stream", c.name, "request", f.intent.ID, "tokens", f.tokens)
	}
	c.finish(f, o)
}

func (c *clients) finish(f *flight, o probe.Outcome) {
	f.over = true
	if f.place < len(c.live) && c.live[f.place] == f {
		c.live[f.place] = nil
	}
	c.ended = append(c.ended, ending{f.intent.ID, o})
}

// broken fails everything in flight: the server is gone.
func (c *clients) broken(now time.Duration, err error) {
	for _, f := range c.live {
		if f != nil && !f.over {
			c.end(f, now, err)
		}
	}
	c.live = c.live[:0]
}

// compact drops ended requests once they are the most.
func (c *clients) compact() {
	if len(c.live) < 64 || len(c.live)%64 != 0 {
		return
	}
	kept := c.live[:0]
	for _, f := range c.live {
		if f != nil {
			f.place = len(kept)
			kept = append(kept, f)
		}
	}
	clear(c.live[len(kept):])
	c.live = kept
}

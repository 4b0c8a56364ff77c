package bench

import (
	"container/list"
	"errors"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
)

// Offering is the timing of a stream of requests in a world.
type Offering struct {
	Origin   time.Duration // start of the stream's times
	Seed     uint64
	From, To time.Duration // window that is tallied
}

// Offer adds a stream of clients, which send requests to the current server of the world.
func (w *World) Offer(s *settings.Stream, o Offering) error {
	return w.offer(s.Name, Load(s, o.Seed), o)
}

func (w *World) offer(name string, load loadgen.Load, o Offering) error {
	schedule, err := loadgen.NewOffer(load)
	if err != nil {
		return err
	}
	c := &clients{
		name: name, world: w, offer: schedule, origin: o.Origin, quiet: load.Turns.Max <= 1,
		tally: &Tally{From: o.From, To: o.To},
	}
	w.clients = append(w.clients, c)
	return nil
}

// clients sends the requests of an offer to the current server of the world and reports their
// outcomes to the offer.
type clients struct {
	name   string
	world  *World
	offer  *loadgen.Offer
	origin time.Duration // start of the offer's times
	quiet  bool          // nothing reads the generated text
	tally  *Tally
	live   list.List // of *flight, in the order they were sent
	ended  []ending  // not yet reported to the offer
}

// flight is one request that was sent.
type flight struct {
	intent loadgen.Intent
	id     core.ID
	sent   time.Duration
	last   time.Duration // latest piece of the answer
	tokens int
	text   []byte
	place  *list.Element // in live; nil if it was not sent
	over   bool
}

type ending struct {
	id int
	o  loadgen.Outcome
}

func (c *clients) next() (time.Duration, bool) {
	t, ok := c.offer.Due()
	if !ok {
		return 0, false
	}
	return t + c.origin, true
}

// step reports requests that ended to the offer, and sends those that are due.
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

func (c *clients) send(w *World, in *loadgen.Intent) {
	f := &flight{intent: *in, sent: w.now}
	f.intent.Prompt, f.intent.Messages = "", nil // the server keeps what it needs
	c.tally.sent(w.now, in.Attempt)
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
	f.id, f.place = id, c.live.PushBack(f)
	if d := in.Deadline; d > 0 {
		w.At(c.origin+in.At+d, func() { c.leave(f) })
	}
}

// receive handles an update of a request.
func (c *clients) receive(f *flight, u vllmsim.Update) {
	if f.over {
		return
	}
	at := u.At
	if n := len(u.Tokens); n > 0 {
		if f.tokens == 0 {
			c.tally.observe(at, &c.tally.ttft, at-c.origin-f.intent.At)
		} else {
			c.tally.observe(at, &c.tally.itl, at-f.last)
		}
		c.tally.count(at, &c.tally.Tokens, n)
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

// leave cancels a request whose client goes away.
func (c *clients) leave(f *flight) {
	if f.over {
		return
	}
	c.world.server.Cancel(c.world.now, f.id)
	c.tally.count(c.world.now, &c.tally.Left, 1)
	c.finish(f, loadgen.Outcome{At: c.world.now - c.origin, OK: true, Text: string(f.text)})
}

// end closes a request that was answered or failed.
func (c *clients) end(f *flight, at time.Duration, err error) {
	var refusal *vllmsim.Refusal
	o := loadgen.Outcome{
		At: at - c.origin, OK: err == nil, Text: string(f.text),
		Refused: errors.As(err, &refusal) && refusal.Status >= 400 && refusal.Status < 500,
	}
	if err != nil {
		c.tally.count(at, &c.tally.Failed, 1)
	} else {
		c.tally.finished(at, at-c.origin-f.intent.At)
	}
	c.finish(f, o)
}

func (c *clients) finish(f *flight, o loadgen.Outcome) {
	f.over = true
	if f.place != nil {
		c.live.Remove(f.place)
	}
	c.ended = append(c.ended, ending{f.intent.ID, o})
}

// broken fails all requests in flight because the server has ended.
func (c *clients) broken(now time.Duration, err error) {
	for c.live.Len() > 0 {
		c.end(c.live.Front().Value.(*flight), now, err)
	}
}

package vllmsim

import (
	"hash/fnv"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// worker processes work sequentially, in order of arrival.
type worker struct {
	free time.Duration // when its current work is done
	work time.Duration // total so far
}

// add adds work at a time and returns when that work is done. Times must not decrease.
func (w *worker) add(at, work time.Duration) time.Duration {
	w.free = max(w.free, at) + work
	w.work += work
	return w.free
}

// done returns the work done by now, assuming that the current work runs without a gap. The result is too
// low if work was added ahead of time.
func (w *worker) done(now time.Duration) time.Duration {
	return w.work - max(0, w.free-now)
}

// front is one API server process; perf.FrontEnd lists its costs.
type front struct {
	loop, tokenizer worker
	deliveries      Queue[chunk]
	counted         time.Duration // CPU time that is already on the page
}

// spent returns the CPU time used since the last call.
func (f *front) spent(now time.Duration) time.Duration {
	total := f.loop.done(now) + f.tokenizer.done(now)
	d := max(0, total-f.counted)
	f.counted += d
	return d
}

// arrive handles a request that arrives at the socket of its API server.
func (v *Server) arrive(q *request, now time.Duration) {
	f := v.fronts[q.front]
	done := f.loop.add(now, v.costs.Request)
	q.handled = done - v.costs.Request
	if n := q.characters(); n > 0 {
		// The tokenizer gets requests in the order of the event loop.
		done = f.tokenizer.add(done, v.costs.Tokenize+time.Duration(n)*v.costs.Character)
	}
	v.events.Push(done+v.costs.HandOver, func(at time.Duration) { v.queue(q, at) })
}

// queue submits a tokenized request to an engine.
func (v *Server) queue(q *request, now time.Duration) {
	if q.gone {
		v.forget(q)
		return
	}
	c := &q.call
	r := core.Request{
		ID:        q.id,
		Arrival:   q.handled,
		Prompt:    q.prompt,
		MaxTokens: q.max,
		MinTokens: min(c.MinTokens, q.max),
		Priority:  c.Priority,
		Adapter:   q.adapter,
		Salt:      salt(c.Salt),
	}
	if !c.IgnoreEOS {
		r.StopAfter = v.outputLength(q.id)
	}
	q.rank = v.choose(q.front, now)
	q.queued = true
	k := v.ranks[q.rank]
	k.inFlight++
	k.engine.Submit(r)
	k.begin(now)
}

// salt returns the extra hash key of a cache_salt; 0 for "".
func salt(s string) uint64 {
	if s == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return max(1, h.Sum64())
}

package vllmsim

import (
	"hash/fnv"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
)

// worker does one thing after another, in the order of arrival.
type worker struct {
	free time.Duration // when it is done with what it has
	work time.Duration // given to it so far
}

// take gives it work at a time and returns when it is done. Times do not go
// back.
func (w *worker) take(at, work time.Duration) time.Duration {
	w.free = max(w.free, at) + work
	w.work += work
	return w.free
}

// done returns the work done by now, taking what it has as done without a break:
// too little by the time before work that was given to it ahead.
func (w *worker) done(now time.Duration) time.Duration {
	return w.work - max(0, w.free-now)
}

// front is one API server process, whose costs perf.FrontEnd names.
type front struct {
	loop, tokenizer worker
	deliveries      chunkQueue
	counted         time.Duration // of CPU, already on the page
}

// spent returns the CPU time used since the last call.
func (f *front) spent(now time.Duration) time.Duration {
	total := f.loop.done(now) + f.tokenizer.done(now)
	d := max(0, total-f.counted)
	f.counted += d
	return d
}

// arrive is a request reaching the socket of its API server.
func (v *Server) arrive(q *request, now time.Duration) {
	f := v.fronts[q.front]
	done := f.loop.take(now, v.costs.Request)
	q.handled = done - v.costs.Request
	if n := q.characters(); n > 0 {
		// The tokenizer sees requests in the order in which the loop hands them on.
		done = f.tokenizer.take(done, v.costs.Tokenize+time.Duration(n)*v.costs.Character)
	}
	v.events.push(event{at: done + v.costs.HandOver, kind: queues, request: q})
}

// queue hands a tokenized request to an engine.
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
	switch {
	case c.IgnoreEOS:
	case c.StopAfter > 0:
		r.StopAfter = c.StopAfter
	default:
		r.StopAfter = v.lengths.draw(stream(v.settings.Seed, forLengths, uint64(q.id)))
	}
	q.rank = v.choose(q.front, now)
	q.queued = true
	k := v.ranks[q.rank]
	k.inFlight++
	k.engine.Submit(r, now)
	k.begin(now)
}

// salt is the extra key of a cache_salt; 0 is none.
func salt(s string) uint64 {
	if s == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return max(1, h.Sum64())
}

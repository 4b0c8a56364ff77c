package core

import (
	"time"
)

// Engine is one scheduler with its KV cache.
type Engine struct {
	config    Config
	pool      pool
	watermark int // blocks

	byID     map[ID]*sequence // all requests that have not ended
	arrivals []*sequence      // submitted since the last step boundary
	aborts   []ID             // requested since the last step boundary
	running  []*sequence      // in order of admission
	waiting  queue
	skipped  queue // blocked in an earlier step (New)

	adapters map[string]int32 // name to index
	seen     []uint64         // by adapter index: the last step that scheduled it

	step    *plan  // in execution, else the next to fill
	next    *plan  // scheduled ahead under asynchronous scheduling
	ahead   bool   // whether next is scheduled
	lastNum uint64 // number of the last batch that Begin returned

	ends     []Output // ends without a token, for the next report
	outputs  []Output
	hits     []int32     // result of the current lookup
	setAside []*sequence // blocked in the current pass over waiting requests

	preemptions  int
	queries, hit int
}

// NewEngine returns an idle engine. Its configuration must be one with which vLLM starts.
func NewEngine(c Config) *Engine {
	e := &Engine{
		config:    c,
		watermark: int(c.Watermark * float64(c.NumBlocks)),
		byID:      map[ID]*sequence{},
		adapters:  map[string]int32{},
		step:      &plan{},
		next:      &plan{},
	}
	e.pool.init(c.NumBlocks, c.Generation == New)
	e.waiting.sorted = c.Policy == Priority
	e.skipped.sorted = c.Policy == Priority
	return e
}

// Submit queues a request, which the next step can schedule. A request that could never run (no prompt,
// no output requested, a prompt longer than the model's length or larger than the pool) ends with
// [Error]. No request with the same ID may be in flight.
func (e *Engine) Submit(r Request) {
	s := newSequence(&r, &e.config)
	s.adapter = e.adapter(r.Adapter)
	e.byID[r.ID] = s
	e.arrivals = append(e.arrivals, s)
}

// Abort ends a request in any state. The next step boundary frees its blocks, and the next report has its
// end. Unknown and finished requests are ignored.
func (e *Engine) Abort(id ID) {
	if e.byID[id] != nil {
		e.aborts = append(e.aborts, id)
	}
}

// Begin schedules the next step; it returns false if there is nothing to do. Complete must be called
// before the next Begin.
//
// With asynchronous scheduling, Begin returns the batch that the previous Begin scheduled and schedules
// the next one, before the output of either is known (vLLM v1/engine/core.py, step_with_batch_queue with
// a queue of two). Requests that arrive or end during step k therefore affect step k+2.
func (e *Engine) Begin(now time.Duration) (Batch, bool) {
	e.admitArrivals(now)
	e.applyAborts()
	if e.ahead {
		e.step, e.next = e.next, e.step
		e.ahead = false
	} else {
		e.schedule(e.step, e.lastNum+1, now)
		if e.step.empty() && len(e.ends) == 0 {
			return Batch{}, false
		}
	}
	e.lastNum = e.step.number
	if e.config.AsyncScheduling {
		e.schedule(e.next, e.lastNum+1, now)
		e.ahead = !e.next.empty()
	}
	return e.step.batch(), true
}

// Complete ends the step that Begin scheduled: it samples tokens and removes finished requests.
func (e *Engine) Complete(now time.Duration) Report {
	// Aborts during the step come first: the step's tokens for these requests are dropped
	// (v1/engine/core.py, _process_aborts_queue).
	e.applyAborts()
	r := Report{Ended: now}
	e.outputs = append(e.outputs[:0], e.ends...)
	e.ends = e.ends[:0]
	r.ComputedPrompt = e.sample(e.step, now)
	r.Outputs = e.outputs
	r.Preemptions, e.preemptions = e.preemptions, 0
	r.PrefixQueries, e.queries = e.queries, 0
	r.PrefixHits, e.hit = e.hit, 0
	r.State = e.State()
	return r
}

// State returns the values of the gauges. Requests that were submitted since the last step boundary are
// not included.
func (e *Engine) State() State {
	return State{
		Running:         len(e.running),
		WaitingCapacity: len(e.waiting.list),
		WaitingDeferred: len(e.skipped.list),
		KVUsage:         e.pool.usage(),
	}
}

// admitArrivals moves submitted requests to the waiting queue.
func (e *Engine) admitArrivals(now time.Duration) {
	for _, s := range e.arrivals {
		s.history.Queued = now
		s.status = waiting
		if e.neverFits(s) {
			e.end(s, Error)
			continue
		}
		e.waiting.push(s)
	}
	clear(e.arrivals)
	e.arrivals = e.arrivals[:0]
}

// neverFits reports whether a new request could not run even on an idle engine.
func (e *Engine) neverFits(s *sequence) bool {
	c := &e.config
	return len(s.req.Prompt) == 0 || s.req.MaxTokens < 1 || s.tokens >= c.MaxModelLen ||
		blocksFor(s.tokens, c.BlockSize) > c.NumBlocks-1
}

// applyAborts ends the requests whose abort was requested. A request that was submitted after the last
// step boundary becomes known at the next one.
func (e *Engine) applyAborts() {
	if len(e.aborts) == 0 {
		return
	}
	kept := e.aborts[:0]
	for _, id := range e.aborts {
		s := e.byID[id]
		switch {
		case s == nil:
		case s.status == arriving:
			kept = append(kept, id)
		default:
			e.end(s, Aborted)
		}
	}
	e.aborts = kept
	e.sweep()
}

// end ends a request without a token and frees its blocks. After ending a running request, the caller
// must call sweep.
func (e *Engine) end(s *sequence, why Reason) {
	e.finish(s)
	e.ends = append(e.ends, Output{ID: s.req.ID, Finish: why, History: &s.history})
}

// finish frees the blocks of a request and removes it from its queue.
func (e *Engine) finish(s *sequence) {
	e.release(s)
	if s.queue != nil {
		s.queue.remove(s)
	}
	s.status = finished
	delete(e.byID, s.req.ID)
}

// sweep removes finished requests from the running ones.
func (e *Engine) sweep() {
	kept := e.running[:0]
	for _, s := range e.running {
		if s.status == running {
			kept = append(kept, s)
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
}

// adapter returns the index of a LoRA adapter, -1 for the base model.
func (e *Engine) adapter(name string) int32 {
	if name == "" {
		return -1
	}
	i, ok := e.adapters[name]
	if !ok {
		i = int32(len(e.seen))
		e.adapters[name] = i
		e.seen = append(e.seen, 0)
	}
	return i
}

// Adapters returns the LoRA adapters of the running requests, each once, in the order in which the
// engine first saw them.
func (e *Engine) Adapters() (list []string) {
	names, in := make([]string, len(e.seen)), make([]bool, len(e.seen))
	for name, i := range e.adapters {
		names[i] = name
	}
	for _, s := range e.running {
		if s.adapter >= 0 {
			in[s.adapter] = true
		}
	}
	for i, name := range names {
		if in[i] {
			list = append(list, name)
		}
	}
	return list
}

package core

import (
	"fmt"
	"math"
	"time"
)

// Engine is one scheduler with its KV cache.
type Engine struct {
	config    Config
	pool      pool
	watermark int // blocks

	byID     map[ID]*sequence // every request that has not ended
	arrivals []*sequence      // submitted since the last step boundary
	aborts   []ID             // asked for since the last step boundary
	running  []*sequence      // in order of admission
	waiting  queue
	skipped  queue // set aside in an earlier step (New)

	adapters map[string]int32 // name to index
	seen     []uint64         // by adapter: the last step that scheduled it

	step    *plan // being executed, else the one to fill next
	next    *plan // scheduled ahead under asynchronous scheduling
	ahead   bool  // next is scheduled
	inStep  bool
	began   time.Duration
	lastNum uint64 // number of the last batch handed out

	ends     []Output    // without a token, for the next report
	ended    []*sequence // reported by the next Begin, which uses them again
	outputs  []Output
	hits     []int32     // of the lookup at hand
	setAside []*sequence // by the waiting pass at hand
	spare    []*sequence // to be used again

	preemptions  int
	queries, hit int
	observe      func(Event)
	submitted    int // ever
	finished     int // ever
}

// NewEngine returns an idle engine. The configuration is taken as checked: it
// panics on one that vLLM would not start with (a count below 1, fewer than two
// blocks, a ratio outside 0..1).
func NewEngine(c Config) *Engine {
	for _, n := range []struct {
		name  string
		value int
		least int
	}{
		{"MaxNumSeqs", c.MaxNumSeqs, 1},
		{"MaxNumBatchedTokens", c.MaxNumBatchedTokens, 1},
		{"MaxModelLen", c.MaxModelLen, 1},
		{"BlockSize", c.BlockSize, 1},
		{"NumBlocks", c.NumBlocks, 2},
		{"LongPrefillTokenThreshold", c.LongPrefillTokenThreshold, 0},
		{"MaxLoras", c.MaxLoras, 0},
	} {
		if n.value < n.least || n.value > math.MaxInt32 {
			panic(fmt.Sprintf("core: %s is %d, at least %d is needed", n.name, n.value, n.least))
		}
	}
	if !(c.Watermark >= 0 && c.Watermark <= 1) {
		panic(fmt.Sprintf("core: Watermark is %v, not within 0..1", c.Watermark))
	}
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

// Submit queues a request; the engine sees it in its next step. A request that
// could never run (no prompt, no output asked for, a prompt beyond the model's
// length or larger than the pool) ends with [Error]. It panics where a request of
// this ID is still in flight.
func (e *Engine) Submit(r Request, _ time.Duration) {
	if e.byID[r.ID] != nil {
		panic(fmt.Sprintf("core: request %d is submitted twice", r.ID))
	}
	s := e.fresh()
	s.begin(&r, &e.config)
	s.adapter = e.adapter(r.Adapter)
	e.byID[r.ID] = s
	e.arrivals = append(e.arrivals, s)
	e.submitted++
}

// Abort ends a request, whatever its state; the next step boundary frees what it
// held. Its end appears in the next report. Unknown and finished ones are ignored.
func (e *Engine) Abort(id ID, _ time.Duration) {
	if e.byID[id] != nil {
		e.aborts = append(e.aborts, id)
	}
}

// Begin schedules the next step; false where nothing is to be done. It must be
// followed by Complete before it is called again.
//
// Under asynchronous scheduling it hands out the batch that the previous Begin
// scheduled and schedules the one after it, before the output of either is known
// (vLLM v1/engine/core.py, step_with_batch_queue with a queue of two). So what
// arrives or ends during step k changes step k+2.
func (e *Engine) Begin(now time.Duration) (Batch, bool) {
	if e.inStep {
		panic("core: Begin before the Complete of the step before")
	}
	e.spare = append(e.spare, e.ended...)
	e.ended = e.ended[:0]
	e.admitArrivals(now)
	e.applyAborts(now)
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
	e.inStep = true
	e.began = now
	if e.observe != nil {
		e.observe(Event{At: now, Kind: StepBegan, Step: e.step.number, Batch: len(e.step.work), Tokens: e.step.tokens, Blocks: e.pool.used()})
	}
	if e.config.AsyncScheduling {
		e.schedule(e.next, e.lastNum+1, now)
		e.ahead = !e.next.empty()
	}
	return e.step.batch(), true
}

// Complete ends the step that Begin scheduled: tokens are sampled, what finished
// is removed. It panics without a step.
func (e *Engine) Complete(now time.Duration) Report {
	if !e.inStep {
		panic("core: Complete without a step")
	}
	e.inStep = false
	// Aborts that came during the step go first: the step's tokens for them are
	// thrown away (v1/engine/core.py, _process_aborts_queue).
	e.applyAborts(now)
	r := Report{Step: e.step.number, Began: e.began, Ended: now}
	e.outputs = append(e.outputs[:0], e.ends...)
	e.ends = e.ends[:0]
	r.ComputedPrompt = e.sample(e.step, now)
	r.Outputs = e.outputs
	r.Preemptions, e.preemptions = e.preemptions, 0
	r.PrefixQueries, e.queries = e.queries, 0
	r.PrefixHits, e.hit = e.hit, 0
	r.State = e.State()
	if e.observe != nil {
		e.observe(Event{At: now, Kind: StepEnded, Step: e.step.number, Batch: len(e.running), Tokens: tokensOf(r.Outputs), Blocks: e.pool.used()})
	}
	return r
}

// State returns what the gauges would show now. Requests that were submitted
// since the last step boundary are in none of them yet.
func (e *Engine) State() State {
	return State{
		Running:         len(e.running),
		WaitingCapacity: e.waiting.len,
		WaitingDeferred: e.skipped.len,
		KVUsage:         e.pool.usage(),
	}
}

// Idle says whether nothing is queued, running or left to be reported.
func (e *Engine) Idle() bool {
	return len(e.byID) == 0 && len(e.ends) == 0 && !e.inStep && !e.ahead
}

// admitArrivals takes what was submitted into the waiting queue.
func (e *Engine) admitArrivals(now time.Duration) {
	for _, s := range e.arrivals {
		s.life.Queued = now
		s.status = waiting
		if e.observe != nil {
			e.observe(Event{At: now, Kind: Queued, Request: s.req.ID, Step: e.lastNum, Tokens: s.tokens})
		}
		if e.hopeless(s) {
			e.end(s, Error, now)
			continue
		}
		e.waiting.push(s)
	}
	clear(e.arrivals)
	e.arrivals = e.arrivals[:0]
}

// hopeless says whether a new request could not run on an idle engine.
func (e *Engine) hopeless(s *sequence) bool {
	c := &e.config
	return len(s.req.Prompt) == 0 || s.req.MaxTokens < 1 || s.tokens >= c.MaxModelLen ||
		blocksFor(s.tokens, c.BlockSize) > c.NumBlocks-1
}

// applyAborts ends the requests that are to be aborted. One that was submitted
// after the last boundary is known only at the next.
func (e *Engine) applyAborts(now time.Duration) {
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
			e.end(s, Aborted, now)
		}
	}
	e.aborts = kept
	e.sweep()
}

// end ends a request without a token and frees what it holds. Whoever calls it
// for a running one sweeps afterwards.
func (e *Engine) end(s *sequence, why Reason, now time.Duration) {
	e.finish(s, why, now)
	e.ends = append(e.ends, Output{ID: s.req.ID, Finish: why, Life: &s.life})
	if s.inFlight == 0 {
		e.ended = append(e.ended, s)
	}
}

// finish frees what a request holds and takes it out of its queue.
func (e *Engine) finish(s *sequence, why Reason, now time.Duration) {
	if e.observe != nil {
		e.observe(Event{At: now, Kind: Finished, Request: s.req.ID, Step: e.lastNum, Tokens: s.life.OutputTokens, Blocks: len(s.blocks), Reason: why})
	}
	e.release(s)
	if s.queue != nil {
		s.queue.remove(s)
	}
	s.status = finished
	delete(e.byID, s.req.ID)
	e.finished++
}

// sweep takes finished requests out of the running ones.
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

// adapter returns the index of a LoRA adapter, -1 of the base model.
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

func tokensOf(outputs []Output) int {
	n := 0
	for i := range outputs {
		if outputs[i].HasToken {
			n++
		}
	}
	return n
}

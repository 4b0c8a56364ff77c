package core

import (
	"slices"
	"time"
)

// schedule fills a plan: running requests first, then, where nobody had to be
// preempted, waiting ones (vLLM v1/core/sched/scheduler.py, Scheduler.schedule).
// There are no phases: each request owes the tokens it has and has not computed.
func (e *Engine) schedule(p *plan, number uint64, now time.Duration) {
	p.reset(number)
	for {
		budget := e.scheduleRunning(p, now)
		if len(p.preempted) == 0 {
			e.scheduleWaiting(p, budget, now)
		}
		if !p.empty() || len(e.running) > 0 {
			return
		}
		// Nothing runs, so every block and seat is free: what stands first would
		// wait for ever.
		s := e.head()
		if s == nil {
			return
		}
		e.end(s, Error, now)
	}
}

// scheduleRunning gives tokens to running requests in order of admission and
// returns what is left of the budget.
func (e *Engine) scheduleRunning(p *plan, now time.Duration) int {
	c := &e.config
	budget := c.MaxNumBatchedTokens
	failed := false
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		if s.status != running {
			continue // failed below
		}
		// Of asynchronous scheduling: the steps in flight bring it to max_tokens.
		if s.pending > 0 && s.tokens+s.pending >= s.lastAt {
			continue
		}
		n := s.tokens + s.pending - s.computed
		if t := c.LongPrefillTokenThreshold; t > 0 && n > t {
			n = t
		}
		n = min(n, budget, c.MaxModelLen-1-s.computed)
		if n <= 0 {
			continue
		}
		for !e.extend(s, n) {
			if blocksFor(s.computed+n, c.BlockSize) > c.NumBlocks-1 {
				// The whole pool is too small for it. vLLM never meets this, as it
				// does not start with a pool that max_model_len exceeds.
				e.end(s, Error, now)
				failed = true
				break
			}
			victim := e.victim()
			if victim < i {
				i--
			}
			budget += e.preempt(p, victim, now)
			if s.status != running {
				break
			}
		}
		if s.status == preempted {
			break
		}
		if s.status == running {
			e.assign(p, s, n)
			budget -= n
		}
	}
	if failed {
		e.sweep()
	}
	return budget
}

// victim returns the index of the running request to preempt: the last, or by the
// priority policy the one that would be admitted last.
func (e *Engine) victim() int {
	worst := len(e.running) - 1
	if e.config.Policy != Priority {
		for e.running[worst].status != running {
			worst--
		}
		return worst
	}
	worst = -1
	for i, s := range e.running {
		if s.status == running && (worst < 0 || e.running[worst].sooner(s)) {
			worst = i
		}
	}
	return worst
}

// preempt takes a running request's blocks and puts it back in the queue, in
// front; all its tokens, the generated ones included, are to be computed again. It
// returns the budget that the request had of this plan.
func (e *Engine) preempt(p *plan, index int, now time.Duration) int {
	s := e.running[index]
	e.running = slices.Delete(e.running, index, index+1)
	back := p.drop(s)
	e.release(s)
	s.status = preempted
	s.computed, s.pending = 0, 0
	s.life.Preemptions++
	e.waiting.pushFront(s)
	e.preemptions++
	p.preempted = append(p.preempted, s.req.ID)
	if e.observe != nil {
		e.observe(Event{At: now, Kind: Preempted, Request: s.req.ID, Step: p.number, Tokens: s.tokens, Blocks: e.pool.used()})
	}
	return back
}

// assign makes n tokens of a running request part of a plan. The tokens count as
// computed from now on; what is sampled comes after the step.
func (e *Engine) assign(p *plan, s *sequence, n int) {
	w := Work{
		ID:      s.req.ID,
		Context: s.computed,
		New:     n,
		Prefill: s.computed < s.prefillEnd,
		Adapter: s.req.Adapter,
	}
	s.computed += n
	s.inFlight++
	if s.computed >= s.tokens+s.pending {
		w.Samples = true
		if e.config.AsyncScheduling {
			s.pending++
		}
	}
	p.work = append(p.work, w)
	p.seqs = append(p.seqs, s)
	p.tokens += n
}

// head returns the waiting request to be tried next, nil without one. What was set
// aside in an earlier step is tried first; by the priority policy the sooner one is.
func (e *Engine) head() *sequence {
	a, b := e.skipped.first, e.waiting.first
	if a == nil || b != nil && e.config.Policy == Priority && b.sooner(a) {
		return b
	}
	return a
}

// scheduleWaiting admits waiting requests, strictly the head first, while budget
// and seats last. A head that does not fit into the free blocks keeps all others
// waiting; one that needs another LoRA slot is set aside.
func (e *Engine) scheduleWaiting(p *plan, budget int, now time.Duration) {
	c := &e.config
	loras := 0
	if c.MaxLoras > 0 {
		loras = e.lorasOf(p)
	}
	e.setAside = e.setAside[:0]
	for budget > 0 && len(e.running) < c.MaxNumSeqs {
		s := e.head()
		if s == nil {
			break
		}
		if c.MaxLoras > 0 && s.adapter >= 0 && loras >= c.MaxLoras && e.seen[s.adapter] != p.number {
			s.queue.remove(s)
			e.setAside = append(e.setAside, s)
			continue
		}
		found := e.lookup(s)
		cached := len(found) * c.BlockSize
		n := s.tokens - cached
		if t := c.LongPrefillTokenThreshold; t > 0 && n > t {
			n = t
		}
		if !c.ChunkedPrefill && n > budget {
			break
		}
		n = min(n, budget)
		if !e.allocate(s, found, n) {
			break
		}
		if s.adapter >= 0 && e.seen[s.adapter] != p.number {
			e.seen[s.adapter] = p.number
			loras++
		}
		e.admit(p, s, cached, n, now)
		budget -= n
	}
	// Back in front, in their order: of a queue of their own (New), or of the
	// waiting ones (Old).
	q := &e.skipped
	if c.Generation == Old {
		q = &e.waiting
	}
	for _, s := range slices.Backward(e.setAside) {
		q.pushFront(s)
	}
}

// admit seats a waiting request whose blocks are allocated.
func (e *Engine) admit(p *plan, s *sequence, cached, n int, now time.Duration) {
	s.queue.remove(s)
	kind := Resumed
	if s.status == waiting {
		kind = Scheduled
		s.life.Scheduled = now
		s.life.CachedTokens = cached
		if e.config.Generation == New {
			e.count(s, cached/e.config.BlockSize)
		}
	}
	s.status = running
	s.computed = cached
	s.prefillEnd = s.tokens
	e.running = append(e.running, s)
	p.admitted = append(p.admitted, s.req.ID)
	e.assign(p, s, n)
	if e.observe != nil {
		e.observe(Event{At: now, Kind: kind, Request: s.req.ID, Step: p.number, Tokens: s.tokens - cached, Blocks: len(s.blocks)})
	}
}

// lorasOf is the number of adapters in a plan; each carries the plan's number in
// seen from now on.
func (e *Engine) lorasOf(p *plan) int {
	n := 0
	for _, s := range p.seqs {
		if s.adapter >= 0 && e.seen[s.adapter] != p.number {
			e.seen[s.adapter] = p.number
			n++
		}
	}
	return n
}

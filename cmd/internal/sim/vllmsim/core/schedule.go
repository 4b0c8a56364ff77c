package core

import (
	"slices"
	"time"
)

// schedule fills a plan: with running requests first, then with waiting ones if no request was preempted
// (vLLM v1/core/sched/scheduler.py, Scheduler.schedule). There is no separate prefill phase: each request
// is scheduled for its known tokens that are not computed.
func (e *Engine) schedule(p *plan, number uint64, now time.Duration) {
	p.reset(number)
	for {
		budget := e.scheduleRunning(p)
		if len(p.preempted) == 0 {
			e.scheduleWaiting(p, budget, now)
		}
		if !p.empty() || len(e.running) > 0 {
			return
		}
		// Nothing runs, so that all blocks and slots are free: the first request would wait
		// forever.
		s := e.head()
		if s == nil {
			return
		}
		e.end(s, Error)
	}
}

// scheduleRunning assigns tokens to running requests in order of admission and returns the remaining
// budget.
func (e *Engine) scheduleRunning(p *plan) int {
	c := &e.config
	budget := c.MaxNumBatchedTokens
	failed := false
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		if s.status != running {
			continue // failed below
		}
		// Asynchronous scheduling: the steps in flight reach max_tokens.
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
				// The request exceeds the whole pool. This cannot happen in vLLM, which does
				// not start if max_model_len exceeds the pool.
				e.end(s, Error)
				failed = true
				break
			}
			victim := e.victim()
			if victim < i {
				i--
			}
			budget += e.preempt(p, victim)
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

// victim returns the index of the running request to preempt: the last one, or with the priority policy
// the one that would be admitted last.
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

// preempt frees the blocks of a running request and moves it to the front of the queue; all its tokens,
// including generated ones, must be computed again. It returns the tokens that the plan had for it.
func (e *Engine) preempt(p *plan, index int) int {
	s := e.running[index]
	e.running = slices.Delete(e.running, index, index+1)
	back := p.drop(s)
	e.release(s)
	s.status = preempted
	s.computed, s.pending = 0, 0
	s.history.Preemptions++
	e.waiting.pushFront(s)
	e.preemptions++
	p.preempted = append(p.preempted, s.req.ID)
	return back
}

// assign adds n tokens of a running request to a plan. The tokens count as computed from then on; the
// sampled token follows after the step.
func (e *Engine) assign(p *plan, s *sequence, n int) {
	w := Work{
		ID:      s.req.ID,
		Context: s.computed,
		New:     n,
	}
	s.computed += n
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

// head returns the waiting request to try next, nil if there is none. Requests that were blocked in an
// earlier step come first; with the priority policy, the earlier of both queues does.
func (e *Engine) head() *sequence {
	a, b := e.skipped.first(), e.waiting.first()
	if a == nil || b != nil && e.config.Policy == Priority && b.sooner(a) {
		return b
	}
	return a
}

// scheduleWaiting admits waiting requests in strict order while budget and slots last. A head that does
// not fit into the free blocks blocks all others; one that needs another LoRA slot is set aside.
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
	// Requests that were set aside return to the front, in their order: of a separate queue (New), or
	// of the waiting queue (Old).
	q := &e.skipped
	if c.Generation == Old {
		q = &e.waiting
	}
	for _, s := range slices.Backward(e.setAside) {
		q.pushFront(s)
	}
}

// admit moves a waiting request whose blocks are allocated to the running ones.
func (e *Engine) admit(p *plan, s *sequence, cached, n int, now time.Duration) {
	s.queue.remove(s)
	if s.status == waiting {
		s.history.Scheduled = now
		s.history.CachedTokens = cached
		if e.config.Generation == New {
			e.count(s, cached/e.config.BlockSize)
		}
	}
	s.status = running
	s.computed = cached
	e.running = append(e.running, s)
	e.assign(p, s, n)
}

// lorasOf returns the number of adapters in a plan, and sets their entries in seen to the plan's number.
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

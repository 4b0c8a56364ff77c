package core

import "slices"

// status is where a request is.
type status uint8

const (
	arriving status = iota // submitted, not yet seen by a step
	waiting                // in a queue, never scheduled
	running
	preempted // in a queue, with everything to be computed again
	finished
)

// sequence is one request within the engine.
type sequence struct {
	// What every step reads comes first.
	computed int // tokens with KV, those of scheduled steps included
	tokens   int // known: prompt and sampled output
	pending  int // outputs scheduled and not yet sampled (asynchronous scheduling)
	room     int // tokens that fit in its blocks
	hashAt   int // tokens at which the next block is full and findable
	lastAt   int // tokens, sampled ones included, that MaxTokens allows
	inFlight int // batches, scheduled and not completed, that it is part of
	status   status
	adapter  int32
	// prefillEnd is the number of tokens at its last admission: what is computed
	// before it is prefill or recomputation.
	prefillEnd int

	blocks []int32
	hashed int      // blocks from the front that are findable or were
	hashes []uint64 // of full blocks, as far as they were needed
	out    []Token

	req    Request
	life   Life
	base   uint64 // of its generated tokens
	stopAt int    // output tokens at which it stops by itself; 0 never

	queue      *queue
	prev, next *sequence // in its queue
}

// begin makes a sequence of a new request, with the slices of an earlier one.
func (s *sequence) begin(r *Request, c *Config) {
	*s = sequence{
		blocks: s.blocks[:0],
		hashes: s.hashes[:0],
		out:    s.out[:0],
		req:    *r,
		tokens: len(r.Prompt),
		lastAt: len(r.Prompt) + r.MaxTokens,
		base:   mix(mix(c.Seed, 1), uint64(r.ID)),
		life: Life{
			ID:           r.ID,
			Arrival:      r.Arrival,
			PromptTokens: len(r.Prompt),
			MaxTokens:    r.MaxTokens,
			Adapter:      r.Adapter,
		},
	}
	if r.StopAfter > 0 {
		s.stopAt = max(r.StopAfter, r.MinTokens)
	}
}

// fresh returns a sequence to be used for a new request.
func (e *Engine) fresh() *sequence {
	n := len(e.spare)
	if n == 0 {
		return &sequence{}
	}
	s := e.spare[n-1]
	e.spare[n-1] = nil
	e.spare = e.spare[:n-1]
	return s
}

// sooner is the order of the priority policy: priority, then arrival, then ID
// (vLLM v1/request.py, Request.__lt__). It also chooses whom to preempt, where
// vLLM leaves the ID out: its arrivals are wall-clock times, which do not tie, and
// with ties two requests could preempt each other for ever.
func (s *sequence) sooner(o *sequence) bool {
	if s.req.Priority != o.req.Priority {
		return s.req.Priority < o.req.Priority
	}
	if s.req.Arrival != o.req.Arrival {
		return s.req.Arrival < o.req.Arrival
	}
	return s.req.ID < o.req.ID
}

// hash returns the hash of the i-th block, which is full of known tokens.
func (s *sequence) hash(i, blockSize int) uint64 {
	for n := len(s.hashes); n <= i; n++ {
		parent := root(&s.req)
		if n > 0 {
			parent = s.hashes[n-1]
		}
		from, to := n*blockSize, (n+1)*blockSize
		prompt := s.req.Prompt
		h := parent
		if from < len(prompt) {
			h = mixTokens(h, prompt[from:min(to, len(prompt))])
		}
		if to > len(prompt) {
			h = mixTokens(h, s.out[max(from-len(prompt), 0):to-len(prompt)])
		}
		s.hashes = append(s.hashes, seal(h))
	}
	return s.hashes[i]
}

// queue is a list of waiting requests: in order of arrival with preempted ones in
// front, or sorted by the priority policy.
type queue struct {
	first, last *sequence
	len         int
	sorted      bool
}

// push queues a request behind the others, or at its place by priority.
func (q *queue) push(s *sequence) {
	after := q.last
	if q.sorted {
		for after != nil && s.sooner(after) {
			after = after.prev
		}
	}
	q.insert(s, after)
}

// pushFront queues a request before the others, or at its place by priority: a
// sorted queue has no front of its own (vLLM v1/core/sched/request_queue.py).
func (q *queue) pushFront(s *sequence) {
	if q.sorted {
		q.push(s)
		return
	}
	q.insert(s, nil)
}

func (q *queue) insert(s, after *sequence) {
	s.queue, s.prev = q, after
	if after == nil {
		s.next, q.first = q.first, s
	} else {
		s.next, after.next = after.next, s
	}
	if s.next == nil {
		q.last = s
	} else {
		s.next.prev = s
	}
	q.len++
}

func (q *queue) remove(s *sequence) {
	if s.prev == nil {
		q.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		q.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.queue, s.prev, s.next = nil, nil, nil
	q.len--
}

// plan is one scheduled batch.
type plan struct {
	number    uint64
	work      []Work
	seqs      []*sequence // of work
	preempted []ID
	admitted  []ID
	tokens    int
}

func (p *plan) reset(number uint64) {
	p.number = number
	p.work = p.work[:0]
	clear(p.seqs)
	p.seqs = p.seqs[:0]
	p.preempted = p.preempted[:0]
	p.admitted = p.admitted[:0]
	p.tokens = 0
}

func (p *plan) empty() bool { return len(p.work) == 0 && len(p.preempted) == 0 }

func (p *plan) batch() Batch {
	return Batch{Step: p.number, Work: p.work, Tokens: p.tokens, Preempted: p.preempted, Admitted: p.admitted}
}

// drop takes a request out of the plan and returns the tokens it had of it, 0
// where it was not part of it.
func (p *plan) drop(s *sequence) int {
	i := slices.Index(p.seqs, s)
	if i < 0 {
		return 0
	}
	n := p.work[i].New
	p.work = slices.Delete(p.work, i, i+1)
	p.seqs = slices.Delete(p.seqs, i, i+1)
	p.tokens -= n
	s.inFlight--
	return n
}

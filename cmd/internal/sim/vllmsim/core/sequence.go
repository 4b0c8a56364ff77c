package core

import "slices"

// status is the state of a request.
type status uint8

const (
	arriving status = iota // submitted since the last step boundary
	waiting                // in a queue, never scheduled
	running
	preempted // in a queue, with all tokens to compute again
	finished
)

// sequence is one request within the engine.
type sequence struct {
	// Fields that every step reads come first.
	computed int // tokens with KV, including those of scheduled steps
	tokens   int // known tokens: prompt and sampled output
	pending  int // outputs scheduled and not yet sampled (asynchronous scheduling)
	room     int // tokens that fit in its blocks
	hashAt   int // tokens at which the next block is full and can be cached
	lastAt   int // maximum tokens, including sampled ones, by MaxTokens
	status   status
	adapter  int32

	blocks []int32
	hashed int      // blocks from the front that are or were in the cache
	hashes []uint64 // of full blocks, as far as they were needed
	out    []Token

	req     Request
	history History
	base    uint64 // of its generated tokens
	stopAt  int    // output tokens at which it stops by itself; 0 means never

	queue *queue // nil unless it waits
}

// newSequence returns the sequence of a new request.
func newSequence(r *Request, c *Config) *sequence {
	s := &sequence{
		req:    *r,
		tokens: len(r.Prompt),
		lastAt: len(r.Prompt) + r.MaxTokens,
		base:   mix(mix(c.Seed, 1), uint64(r.ID)),
		history: History{
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
	return s
}

// sooner reports whether s comes before o with the priority policy: by priority, then arrival, then ID
// (vLLM v1/request.py, Request.__lt__). It also chooses the victim of a preemption, for which vLLM does
// not compare the ID: its arrivals are wall-clock times, which are never equal, whereas here two requests
// with equal arrivals could preempt each other forever.
func (s *sequence) sooner(o *sequence) bool {
	if s.req.Priority != o.req.Priority {
		return s.req.Priority < o.req.Priority
	}
	if s.req.Arrival != o.req.Arrival {
		return s.req.Arrival < o.req.Arrival
	}
	return s.req.ID < o.req.ID
}

// hash returns the hash of the i-th block, which must be full of known tokens.
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

// queue is a list of waiting requests: in order of arrival with preempted ones first, or sorted by the
// priority policy.
type queue struct {
	list   []*sequence
	sorted bool
}

// first returns the request at the front, nil if there is none.
func (q *queue) first() *sequence {
	if len(q.list) == 0 {
		return nil
	}
	return q.list[0]
}

// push adds a request at the end, or at its position by priority.
func (q *queue) push(s *sequence) {
	i := len(q.list)
	for q.sorted && i > 0 && s.sooner(q.list[i-1]) {
		i--
	}
	q.insert(i, s)
}

// pushFront adds a request at the front, or in a sorted queue at its position by priority (vLLM
// v1/core/sched/request_queue.py).
func (q *queue) pushFront(s *sequence) {
	if q.sorted {
		q.push(s)
		return
	}
	q.insert(0, s)
}

func (q *queue) insert(i int, s *sequence) {
	s.queue, q.list = q, slices.Insert(q.list, i, s)
}

func (q *queue) remove(s *sequence) {
	i := slices.Index(q.list, s)
	s.queue, q.list = nil, slices.Delete(q.list, i, i+1)
}

// plan is one scheduled batch.
type plan struct {
	number    uint64
	work      []Work
	seqs      []*sequence // of work
	preempted []ID
	tokens    int
}

func (p *plan) reset(number uint64) {
	p.number = number
	p.work = p.work[:0]
	clear(p.seqs)
	p.seqs = p.seqs[:0]
	p.preempted = p.preempted[:0]
	p.tokens = 0
}

func (p *plan) empty() bool { return len(p.work) == 0 && len(p.preempted) == 0 }

func (p *plan) batch() Batch {
	return Batch{Work: p.work, Tokens: p.tokens, Preempted: p.preempted}
}

// drop removes a request from the plan and returns its tokens in the plan, 0 if it was not part of it.
func (p *plan) drop(s *sequence) int {
	i := slices.Index(p.seqs, s)
	if i < 0 {
		return 0
	}
	n := p.work[i].New
	p.work = slices.Delete(p.work, i, i+1)
	p.seqs = slices.Delete(p.seqs, i, i+1)
	p.tokens -= n
	return n
}

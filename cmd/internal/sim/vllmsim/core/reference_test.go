package core

import (
	"fmt"
	"slices"
	"time"
)

// reference is the scheduler stated a second time, as slowly and
// literally as it reads: plain slices, no hashes (a block's identity is the text of
// all tokens up to its end), nothing kept that can be counted. It shares no code
// with the engine, only the types at its border.
type reference struct {
	c Config

	// Blocks. Number 0 is the null block and in no list.
	freeList []int    // next to be used first
	findable []keyed  // in the order in which they became findable
	refCount []int    // by block
	requests []*refer // all that were submitted

	inbox   []*refer // submitted, not yet seen
	abortQ  []ID
	waiting []*refer
	skipped []*refer // New: its own queue
	running []*refer

	step     uint64
	inFlight []*refStep // scheduled and not completed, the executing one first
	ends     []Output

	preemptions, queries, hits int

	// model is what the model samples.
	model func(id ID, index int) Token
}

type keyed struct {
	key   string
	block int
}

type refer struct {
	Request
	state       string // "inbox", "waiting", "running", "preempted", "done"
	tokens      []Token
	computed    int
	placeholder int
	blocks      []int
	marked      int // blocks made findable, from the front
	admittedAt  int // tokens it had when it was last admitted
	history     History
}

type refStep struct {
	number    uint64
	rows      []refRow
	preempted []ID
	admitted  []ID
}

type refRow struct {
	r *refer
	Work
}

func newReference(c Config, model func(ID, int) Token) *reference {
	m := &reference{c: c, model: model, refCount: make([]int, c.NumBlocks)}
	for b := 1; b < c.NumBlocks; b++ {
		m.freeList = append(m.freeList, b)
	}
	return m
}

// ---- blocks (facts 17 to 21)

func (m *reference) key(r *refer, block int) string {
	return fmt.Sprint(r.Adapter, "|", r.Salt, "|", r.tokens[:(block+1)*m.c.BlockSize])
}

// cached returns the block that has been findable the longest under a key.
func (m *reference) cached(key string) (int, bool) {
	for _, k := range m.findable {
		if k.key == key {
			return k.block, true
		}
	}
	return 0, false
}

func (m *reference) isFindable(block int) bool {
	return slices.ContainsFunc(m.findable, func(k keyed) bool { return k.block == block })
}

// newBlock takes the first free block; taking it evicts its content.
func (m *reference) newBlock() int {
	b := m.freeList[0]
	m.freeList = m.freeList[1:]
	m.findable = slices.DeleteFunc(m.findable, func(k keyed) bool { return k.block == b })
	m.refCount[b] = 1
	return b
}

// freeAll gives back a request's blocks in reverse.
func (m *reference) freeAll(r *refer) {
	var unhashed, hashed []int
	for _, b := range slices.Backward(r.blocks) {
		m.refCount[b]--
		if m.refCount[b] > 0 {
			continue
		}
		if m.isFindable(b) {
			hashed = append(hashed, b)
		} else {
			unhashed = append(unhashed, b)
		}
		if m.c.Generation == Old {
			m.freeList = append(m.freeList, b)
		}
	}
	if m.c.Generation == New {
		m.freeList = slices.Concat(unhashed, m.freeList, hashed)
	}
	r.blocks = nil
	r.marked = 0
}

// makeFindable marks the full blocks among a request's first n tokens.
func (m *reference) makeFindable(r *refer, n int) {
	if !m.c.PrefixCaching {
		return
	}
	for (r.marked+1)*m.c.BlockSize <= n {
		m.findable = append(m.findable, keyed{m.key(r, r.marked), r.blocks[r.marked]})
		r.marked++
	}
}

// find is the longest run of cached full blocks within all tokens but the last.
func (m *reference) find(r *refer) []int {
	var found []int
	for m.c.PrefixCaching && (len(found)+1)*m.c.BlockSize <= len(r.tokens)-1 {
		b, ok := m.cached(m.key(r, len(found)))
		if !ok {
			break
		}
		found = append(found, b)
	}
	return found
}

// needed is ceil(tokens / block size).
func (m *reference) needed(tokens int) int {
	n := tokens / m.c.BlockSize
	if tokens%m.c.BlockSize != 0 {
		n++
	}
	return n
}

// ---- one step (facts 6 to 16)

func (m *reference) schedule(now time.Duration) *refStep {
	for {
		p := &refStep{number: m.step}
		budget := m.c.MaxNumBatchedTokens
		m.runningPass(p, &budget, now)
		if len(p.preempted) == 0 {
			m.waitingPass(p, &budget, now)
		}
		if len(p.rows) > 0 || len(p.preempted) > 0 || len(m.running) > 0 {
			return p
		}
		// Guard of 5.4: nothing scheduled, nothing runs: the first waiting request is
		// impossible.
		r := m.first()
		if r == nil {
			return p
		}
		m.fail(r, Error, now)
	}
}

func (m *reference) runningPass(p *refStep, budget *int, now time.Duration) {
	for _, r := range slices.Clone(m.running) {
		if r.state != "running" {
			continue // preempted or failed earlier in this pass
		}
		if *budget == 0 {
			return
		}
		if r.placeholder > 0 && len(r.tokens)-len(r.Prompt)+r.placeholder >= r.MaxTokens {
			continue // fact 14: known to end by length, no extra step
		}
		owed := len(r.tokens) + r.placeholder - r.computed
		if m.c.LongPrefillTokenThreshold > 0 {
			owed = min(owed, m.c.LongPrefillTokenThreshold)
		}
		owed = min(owed, *budget)
		owed = min(owed, m.c.MaxModelLen-1-r.computed)
		if owed <= 0 {
			continue
		}
		total := m.needed(r.computed + owed)
		if total > m.c.NumBlocks-1 {
			if total-len(r.blocks) > len(m.freeList) {
				m.fail(r, Error, now)
				continue
			}
		}
		for r.state == "running" && total-len(r.blocks) > len(m.freeList) {
			*budget += m.preempt(p, m.whom(), now)
		}
		if r.state != "running" {
			return
		}
		for len(r.blocks) < total {
			r.blocks = append(r.blocks, m.newBlock())
		}
		m.makeFindable(r, min(r.computed+owed, len(r.tokens)))
		m.put(p, r, owed)
		*budget -= owed
	}
}

// whom is the request to preempt.
func (m *reference) whom() *refer {
	if m.c.Policy == FCFS {
		return m.running[len(m.running)-1]
	}
	victim := m.running[0]
	for _, r := range m.running {
		switch {
		case r.Priority > victim.Priority,
			r.Priority == victim.Priority && r.Arrival > victim.Arrival,
			r.Priority == victim.Priority && r.Arrival == victim.Arrival && r.ID > victim.ID:
			victim = r
		}
	}
	return victim
}

func (m *reference) preempt(p *refStep, r *refer, now time.Duration) (restored int) {
	m.running = slices.DeleteFunc(m.running, func(o *refer) bool { return o == r })
	for i, row := range p.rows {
		if row.r == r {
			restored = row.New
			p.rows = slices.Delete(p.rows, i, i+1)
			break
		}
	}
	m.freeAll(r)
	r.computed, r.placeholder = 0, 0
	r.state = "preempted"
	r.history.Preemptions++
	m.preemptions++
	p.preempted = append(p.preempted, r.ID)
	m.waiting = slices.Insert(m.waiting, 0, r)
	m.sortByPolicy()
	return restored
}

// sortByPolicy keeps queues in order under the priority policy.
func (m *reference) sortByPolicy() {
	if m.c.Policy == FCFS {
		return
	}
	order := func(a, b *refer) int {
		switch {
		case a.Priority != b.Priority:
			return a.Priority - b.Priority
		case a.Arrival != b.Arrival:
			return int(a.Arrival - b.Arrival)
		default:
			return int(a.ID) - int(b.ID)
		}
	}
	slices.SortFunc(m.waiting, order)
	slices.SortFunc(m.skipped, order)
}

// put makes tokens of a running request part of the step; counters advance when
// scheduled (fact 12).
func (m *reference) put(p *refStep, r *refer, n int) {
	w := Work{ID: r.ID, Context: r.computed, New: n, Prefill: r.computed < r.admittedAt, Adapter: r.Adapter}
	r.computed += n
	if r.computed == len(r.tokens)+r.placeholder {
		w.Samples = true
		if m.c.AsyncScheduling {
			r.placeholder++
		}
	}
	p.rows = append(p.rows, refRow{r, w})
}

// first is the waiting request whose turn it is.
func (m *reference) first() *refer {
	switch {
	case len(m.skipped) == 0 && len(m.waiting) == 0:
		return nil
	case len(m.skipped) == 0:
		return m.waiting[0]
	case len(m.waiting) == 0 || m.c.Policy == FCFS:
		return m.skipped[0]
	}
	both := []*refer{m.skipped[0], m.waiting[0]}
	slices.SortStableFunc(both, func(a, b *refer) int {
		if a.Priority != b.Priority {
			return a.Priority - b.Priority
		}
		if a.Arrival != b.Arrival {
			return int(a.Arrival - b.Arrival)
		}
		return int(a.ID) - int(b.ID)
	})
	return both[0]
}

func (m *reference) unqueue(r *refer) {
	isR := func(o *refer) bool { return o == r }
	m.waiting = slices.DeleteFunc(m.waiting, isR)
	m.skipped = slices.DeleteFunc(m.skipped, isR)
}

func (m *reference) waitingPass(p *refStep, budget *int, now time.Duration) {
	var aside []*refer
	for *budget > 0 && len(m.running) < m.c.MaxNumSeqs {
		r := m.first()
		if r == nil {
			break
		}
		if m.c.MaxLoras > 0 && r.Adapter != "" {
			loaded := map[string]bool{}
			for _, row := range p.rows {
				if row.Adapter != "" {
					loaded[row.Adapter] = true
				}
			}
			if len(loaded) >= m.c.MaxLoras && !loaded[r.Adapter] {
				m.unqueue(r)
				aside = append(aside, r)
				continue
			}
		}
		found := m.find(r)
		hit := len(found) * m.c.BlockSize
		if m.c.Generation == Old && m.c.PrefixCaching {
			m.queries += len(r.tokens)
			m.hits += hit
		}
		n := len(r.tokens) - hit
		if m.c.LongPrefillTokenThreshold > 0 {
			n = min(n, m.c.LongPrefillTokenThreshold)
		}
		if n > *budget {
			if !m.c.ChunkedPrefill {
				break
			}
			n = *budget
		}
		available := len(m.freeList)
		for _, b := range found {
			if m.refCount[b] == 0 {
				available--
			}
		}
		if len(m.running) > 0 {
			available -= int(m.c.Watermark * float64(m.c.NumBlocks))
		}
		whole := m.needed(min(len(r.tokens), m.c.MaxModelLen)) - len(found)
		if m.c.Generation == New && m.c.ReserveFullISL && whole > available {
			break
		}
		more := m.needed(hit+n) - len(found)
		if more > available {
			break
		}
		for _, b := range found {
			m.freeList = slices.DeleteFunc(m.freeList, func(f int) bool { return f == b })
			m.refCount[b]++
			r.blocks = append(r.blocks, b)
		}
		r.marked = len(found)
		for range more {
			r.blocks = append(r.blocks, m.newBlock())
		}
		m.makeFindable(r, hit+n)
		m.unqueue(r)
		if r.state == "waiting" {
			r.history.Scheduled = now
			r.history.CachedTokens = hit
			if m.c.Generation == New && m.c.PrefixCaching {
				m.queries += len(r.tokens)
				m.hits += hit
			}
		}
		r.state = "running"
		r.computed = hit
		r.admittedAt = len(r.tokens)
		m.running = append(m.running, r)
		p.admitted = append(p.admitted, r.ID)
		m.put(p, r, n)
		*budget -= n
	}
	if m.c.Generation == New {
		m.skipped = append(aside, m.skipped...)
	} else {
		m.waiting = append(aside, m.waiting...)
	}
	m.sortByPolicy()
}

package core

import "fmt"

// Check returns an error if an invariant of the engine is violated, nil if all are met: block references
// agree with the blocks of requests, as do the free list, the table of cached blocks, queues and slots,
// and requests in flight agree with submissions and ends. Check reads everything once, which costs about
// as much as a step of a full engine; it may be called at any time.
func (e *Engine) Check() error {
	if err := e.checkRequests(); err != nil {
		return err
	}
	return e.checkBlocks()
}

func (e *Engine) checkRequests() error {
	c := &e.config
	if len(e.running) > c.MaxNumSeqs {
		return fmt.Errorf("%d requests run on %d slots", len(e.running), c.MaxNumSeqs)
	}
	if n := len(e.arrivals) + len(e.running) + e.waiting.len + e.skipped.len; n != len(e.byID) {
		return fmt.Errorf("%d requests are in flight, %d are queued or running", len(e.byID), n)
	}
	for _, s := range e.running {
		switch {
		case s.status != running:
			return fmt.Errorf("request %d runs with status %d", s.req.ID, s.status)
		case s.computed > len(s.blocks)*c.BlockSize:
			return fmt.Errorf("request %d has %d tokens computed in %d blocks of %d", s.req.ID, s.computed, len(s.blocks), c.BlockSize)
		case blocksFor(s.computed, c.BlockSize) != len(s.blocks):
			return fmt.Errorf("request %d holds %d blocks for %d tokens", s.req.ID, len(s.blocks), s.computed)
		case s.tokens != len(s.req.Prompt)+len(s.out) || s.computed > s.tokens+s.pending:
			return fmt.Errorf("request %d has %d of %d tokens computed", s.req.ID, s.computed, s.tokens+s.pending)
		}
	}
	for _, q := range []*queue{&e.waiting, &e.skipped} {
		n := 0
		for s := q.first; s != nil; s = s.next {
			n++
			if s.queue != q || s.status != waiting && s.status != preempted || len(s.blocks) > 0 {
				return fmt.Errorf("request %d waits with status %d and %d blocks", s.req.ID, s.status, len(s.blocks))
			}
		}
		if n != q.len {
			return fmt.Errorf("a queue of %d counts %d", n, q.len)
		}
	}
	return nil
}

func (e *Engine) checkBlocks() error {
	p := &e.pool
	held := 0
	for _, s := range e.running {
		held += len(s.blocks)
	}
	refs, used, findable := 0, 0, 0
	for b := 1; b < len(p.refs); b++ {
		refs += int(p.refs[b])
		if p.refs[b] > 0 {
			used++
		}
		if p.hash[b] != 0 {
			findable++
		}
	}
	if refs != held {
		return fmt.Errorf("blocks have %d references, requests hold %d", refs, held)
	}
	if used+p.free != len(p.refs)-1 {
		return fmt.Errorf("%d blocks are held and %d free of %d", used, p.free, len(p.refs)-1)
	}
	n := 0
	for b := p.next[0]; b != 0; b = p.next[b] {
		if n++; n > p.free || p.refs[b] != 0 || p.prev[p.next[b]] != b {
			return fmt.Errorf("block %d is in the free list with %d references", b, p.refs[b])
		}
	}
	if n != p.free {
		return fmt.Errorf("the free list has %d blocks and counts %d", n, p.free)
	}
	n = 0
	for _, first := range p.table {
		if first == 0 {
			continue
		}
		if p.find(p.hash[first]) != first {
			return fmt.Errorf("block %d is in the table and not found", first)
		}
		for b := first; ; b = p.dupNext[b] {
			if n++; n > findable || p.hash[b] != p.hash[first] {
				return fmt.Errorf("block %d is in the table under another hash", b)
			}
			if p.dupNext[b] == first {
				break
			}
		}
	}
	if n != findable {
		return fmt.Errorf("%d blocks have a hash, %d are in the table", findable, n)
	}
	return nil
}

package core

import "math"

// extend gives a running request the blocks for n more tokens and makes those
// that become full findable; false where too few blocks are free.
func (e *Engine) extend(s *sequence, n int) bool {
	end := s.computed + n
	if end > s.room {
		need := blocksFor(end, e.config.BlockSize) - len(s.blocks)
		if need > e.pool.free {
			return false
		}
		e.grow(s, need)
	}
	if known := min(end, s.tokens); known >= s.hashAt {
		e.publish(s, known)
	}
	return true
}

// grow appends free blocks to a request. They must be free.
func (e *Engine) grow(s *sequence, blocks int) {
	for range blocks {
		s.blocks = append(s.blocks, e.pool.take())
	}
	s.room = len(s.blocks) * e.config.BlockSize
}

// publish makes the full blocks of a request's first tokens findable. That is
// done when they are scheduled, so that a request admitted in the same step can
// share them already.
func (e *Engine) publish(s *sequence, tokens int) {
	size := e.config.BlockSize
	if !e.config.PrefixCaching {
		s.hashAt = math.MaxInt
		return
	}
	for full := tokens / size; s.hashed < full; s.hashed++ {
		e.pool.remember(s.blocks[s.hashed], s.hash(s.hashed, size))
	}
	s.hashAt = (s.hashed + 1) * size
}

// lookup finds the cached blocks that a request's tokens begin with. At least one
// token is left to be computed, so of a prompt that is wholly cached and ends with
// a block the last block is computed again. The result is valid until the next
// call.
func (e *Engine) lookup(s *sequence) []int32 {
	e.hits = e.hits[:0]
	if !e.config.PrefixCaching {
		return e.hits
	}
	size := e.config.BlockSize
	for i := range (s.tokens - 1) / size {
		b := e.pool.find(s.hash(i, size))
		if b == 0 {
			break
		}
		e.hits = append(e.hits, b)
	}
	if e.config.Generation == Old {
		e.count(s, len(e.hits))
	}
	return e.hits
}

// count counts one lookup: old releases count each (v0.10.0,
// KVCacheManager.get_computed_blocks), new ones the first admission's only
// (KVCacheManager.record_prefix_cache_stats and PrefixCacheStats.record).
func (e *Engine) count(s *sequence, blocks int) {
	if !e.config.PrefixCaching {
		return
	}
	e.queries += s.tokens
	e.hit += blocks * e.config.BlockSize
}

// allocate gives a waiting request the blocks it found and those for n more
// tokens; false where too few blocks are free. Found blocks that nobody holds
// count as free and are used up by being held.
func (e *Engine) allocate(s *sequence, found []int32, n int) bool {
	c := &e.config
	held := len(found)
	for _, b := range found {
		if e.pool.refs[b] > 0 {
			held--
		}
	}
	// held is now the number of found blocks that leave the free list.
	free := e.pool.free - held
	if len(e.running) > 0 {
		free -= e.watermark
	}
	if c.Generation == New && c.ReserveFullISL &&
		blocksFor(min(s.tokens, c.MaxModelLen), c.BlockSize)-len(found) > free {
		return false
	}
	cached := len(found) * c.BlockSize
	need := blocksFor(cached+n, c.BlockSize) - len(found)
	if need > free {
		return false
	}
	for _, b := range found {
		e.pool.touch(b)
	}
	s.blocks = append(s.blocks[:0], found...)
	s.hashed = len(found)
	e.grow(s, need)
	e.publish(s, min(cached+n, s.tokens))
	return true
}

// release gives back what a request holds.
func (e *Engine) release(s *sequence) {
	e.pool.release(s.blocks)
	s.blocks = s.blocks[:0]
	s.room, s.hashed, s.hashAt = 0, 0, 0
}

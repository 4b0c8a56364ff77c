package core

import "math"

// extend allocates the blocks for n more tokens of a running request and publishes those that become
// full. It returns false if too few blocks are free.
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

// grow appends free blocks to a request. Enough blocks must be free.
func (e *Engine) grow(s *sequence, blocks int) {
	for range blocks {
		s.blocks = append(s.blocks, e.pool.allocate())
	}
	s.room = len(s.blocks) * e.config.BlockSize
}

// publish makes the full blocks of a request's first tokens available in the prefix cache. This happens
// when they are scheduled, so that requests admitted in the same step can already share them.
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

// lookup returns the cached blocks of a request's prefix. At least one token must be left to compute: if
// a prompt is fully cached and ends at the end of a block, its last block is computed again. The result
// is valid until the next call.
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

// count counts one lookup. Old releases count each one (v0.10.0, KVCacheManager.get_computed_blocks), new
// ones only that of the first admission (KVCacheManager.record_prefix_cache_stats and
// PrefixCacheStats.record).
func (e *Engine) count(s *sequence, blocks int) {
	if !e.config.PrefixCaching {
		return
	}
	e.queries += s.tokens
	e.hit += blocks * e.config.BlockSize
}

// allocate gives a waiting request its cached blocks and new blocks for n more tokens. It returns false if
// too few blocks are free. Cached blocks without a reference count as free and leave the free list.
func (e *Engine) allocate(s *sequence, found []int32, n int) bool {
	c := &e.config
	held := len(found)
	for _, b := range found {
		if e.pool.refs[b] > 0 {
			held--
		}
	}
	// held is now the number of cached blocks that leave the free list.
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

// release frees the blocks of a request.
func (e *Engine) release(s *sequence) {
	e.pool.release(s.blocks)
	s.blocks = s.blocks[:0]
	s.room, s.hashed, s.hashAt = 0, 0, 0
}

package core

import "slices"

// pool is the KV cache: its blocks, the free list, and the cached blocks by the hash of their
// content (vLLM v1/core/block_pool.py). Block 0 is the null block, which is never allocated; here it is
// the head of the free list.
type pool struct {
	refs       []int32
	next, prev []int32 // the free list, a ring through block 0 in order of reuse
	free       int

	hash   []uint64           // of a cached block; 0 means none
	cached map[uint64][]int32 // blocks by hash, in the order in which they were cached

	// split makes freed blocks without a hash the first in the free list, so that they are reused
	// before cached ones (New).
	split bool
}

func (p *pool) init(blocks int, split bool) {
	*p = pool{
		refs:   make([]int32, blocks),
		next:   make([]int32, blocks),
		prev:   make([]int32, blocks),
		free:   blocks - 1,
		hash:   make([]uint64, blocks),
		cached: map[uint64][]int32{},
		split:  split,
	}
	for b := range int32(blocks) {
		p.next[b] = (b + 1) % int32(blocks)
		p.prev[p.next[b]] = b
	}
}

// usage returns the share of the pool that requests hold; cached blocks without a reference count as free.
func (p *pool) usage() float64 {
	return 1 - float64(p.free)/float64(len(p.refs)-1)
}

// allocate returns the next free block and removes its content from the cache. A block must be free.
func (p *pool) allocate() int32 {
	b := p.next[0]
	p.unlink(b)
	p.refs[b] = 1
	if p.hash[b] != 0 {
		p.forget(b)
	}
	return b
}

// touch adds a reference to a block, which may be free.
func (p *pool) touch(b int32) {
	if p.refs[b] == 0 {
		p.unlink(b)
	}
	p.refs[b]++
}

// release removes one reference from each block of a request. The last blocks are freed first, so that
// they are reused first: a prefix is more useful than the blocks after it.
func (p *pool) release(blocks []int32) {
	front := int32(0)
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		p.refs[b]--
		if p.refs[b] > 0 {
			continue
		}
		if p.split && p.hash[b] == 0 {
			p.link(b, front)
			front = b
		} else {
			p.link(b, p.prev[0])
		}
	}
}

func (p *pool) link(b, after int32) {
	n := p.next[after]
	p.prev[b], p.next[b] = after, n
	p.next[after], p.prev[n] = b, b
	p.free++
}

func (p *pool) unlink(b int32) {
	p.next[p.prev[b]] = p.next[b]
	p.prev[p.next[b]] = p.prev[b]
	p.free--
}

// find returns the block with a content hash, 0 if there is none; of several, the one that was cached
// first.
func (p *pool) find(h uint64) int32 {
	if list := p.cached[h]; len(list) > 0 {
		return list[0]
	}
	return 0
}

// remember adds a block to the cache. Blocks with equal content are not merged.
func (p *pool) remember(b int32, h uint64) {
	p.hash[b] = h
	p.cached[h] = append(p.cached[h], b)
}

// forget removes a block from the cache.
func (p *pool) forget(b int32) {
	h := p.hash[b]
	p.hash[b] = 0
	if list := p.cached[h]; len(list) > 1 {
		i := slices.Index(list, b)
		p.cached[h] = slices.Delete(list, i, i+1)
		return
	}
	delete(p.cached, h)
}

// blocksFor returns the number of blocks that the given tokens need.
func blocksFor(tokens, blockSize int) int { return (tokens + blockSize - 1) / blockSize }

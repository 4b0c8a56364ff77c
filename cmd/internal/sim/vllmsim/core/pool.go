package core

// pool is the KV cache: its blocks, the free list, and the table of cached blocks by the hash of their
// content (vLLM v1/core/block_pool.py). Block 0 is the null block, which is never allocated; here it is
// the head of the free list.
type pool struct {
	refs       []int32
	next, prev []int32 // the free list, a ring through block 0 in order of reuse
	free       int

	hash []uint64 // of a cached block; 0 means none
	// Blocks with the same content form a ring in the order in which they were cached; the first of
	// them is in the table.
	dupNext, dupPrev []int32
	table            []int32 // open addressing; 0 is an empty entry
	mask             uint64

	// split makes freed blocks without a hash the first in the free list, so that they are reused
	// before cached ones (New).
	split bool
}

func (p *pool) init(blocks int, split bool) {
	size := 4
	for size < 2*blocks {
		size *= 2
	}
	*p = pool{
		refs:    make([]int32, blocks),
		next:    make([]int32, blocks),
		prev:    make([]int32, blocks),
		free:    blocks - 1,
		hash:    make([]uint64, blocks),
		dupNext: make([]int32, blocks),
		dupPrev: make([]int32, blocks),
		table:   make([]int32, size),
		mask:    uint64(size - 1),
		split:   split,
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

func (p *pool) used() int { return len(p.refs) - 1 - p.free }

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
func (p *pool) find(h uint64) int32 { return p.table[p.place(h)] }

// place returns the index of a hash in the table, or the index at which it would be inserted.
func (p *pool) place(h uint64) uint64 {
	i := h & p.mask
	for p.table[i] != 0 && p.hash[p.table[i]] != h {
		i = (i + 1) & p.mask
	}
	return i
}

// remember adds a block to the cache. Blocks with equal content are not merged.
func (p *pool) remember(b int32, h uint64) {
	i := p.place(h)
	p.hash[b] = h
	first := p.table[i]
	if first == 0 {
		p.table[i] = b
		p.dupNext[b], p.dupPrev[b] = b, b
		return
	}
	last := p.dupPrev[first]
	p.dupNext[last], p.dupPrev[b] = b, last
	p.dupNext[b], p.dupPrev[first] = first, b
}

// forget removes a block from the cache.
func (p *pool) forget(b int32) {
	i := p.place(p.hash[b])
	n := p.dupNext[b]
	if n != b {
		if p.table[i] == b {
			p.table[i] = n
		}
		p.dupNext[p.dupPrev[b]], p.dupPrev[n] = n, p.dupPrev[b]
		p.hash[b] = 0
		return
	}
	p.hash[b] = 0
	p.vacate(i)
}

// vacate empties an entry of the table and moves entries that were displaced by it.
func (p *pool) vacate(i uint64) {
	for j := (i + 1) & p.mask; p.table[j] != 0; j = (j + 1) & p.mask {
		home := p.hash[p.table[j]] & p.mask
		// The entry at j may move to i unless its own place lies after i.
		if (j-home)&p.mask >= (j-i)&p.mask {
			p.table[i] = p.table[j]
			i = j
		}
	}
	p.table[i] = 0
}

// blocksFor returns the number of blocks that the given tokens need.
func blocksFor(tokens, blockSize int) int { return (tokens + blockSize - 1) / blockSize }

package core

import "math/bits"

// The hashes of the prefix cache identify block contents across requests. vLLM uses SHA-256 or Python's
// hash, of which only equality matters. These are 64-bit multiply-and-fold hashes like wyhash: they are
// equal on every system and Go version, and with 30,000 blocks the probability of a collision is about
// 1e-11.

const (
	odd1 = 0x9e3779b97f4a7c15
	odd2 = 0xd6e8feb86659fd93
)

// mix folds two words into one.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^odd1, b^odd2)
	return hi ^ lo ^ bits.RotateLeft64(a, 23)
}

// mixTokens folds tokens into a hash, one at a time, so that the result does not depend on how a run of
// tokens is split over calls.
func mixTokens(h uint64, tokens []Token) uint64 {
	for _, t := range tokens {
		h = mix(h, uint64(uint32(t))+1)
	}
	return h
}

// seal returns the final hash of a block. It is never 0, which means no hash.
func seal(h uint64) uint64 {
	h = mix(h, odd1)
	if h == 0 {
		return 1
	}
	return h
}

// root returns the parent hash of a request's first block, which separates its blocks from those of other
// adapters and salts (vLLM v1/core/kv_cache_utils.py, generate_block_hash_extra_keys).
func root(r *Request) uint64 {
	h := mix(odd2, r.Salt)
	for i := range len(r.Adapter) {
		h = mix(h, uint64(r.Adapter[i])+1)
	}
	return h
}

// sampled returns the token that a request generates at an index, from 0.
func (s *sequence) sampled(index int) Token {
	h := mix(s.base, uint64(index))
	return Token((h ^ h>>32) & (VocabWords - 1))
}

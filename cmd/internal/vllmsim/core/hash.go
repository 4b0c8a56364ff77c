package core

import "math/bits"

// The hashes of the prefix cache identify block contents across requests; vLLM
// uses SHA-256 or Python's hash, of which only equality matters. These are 64 bits
// of a multiply-and-fold hash in the manner of wyhash: equal on every system and
// Go version, and with 30,000 blocks a collision has a chance of about 1e-11.

const (
	odd1 = 0x9e3779b97f4a7c15
	odd2 = 0xd6e8feb86659fd93
)

// mix folds two words into one.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^odd1, b^odd2)
	return hi ^ lo ^ bits.RotateLeft64(a, 23)
}

// mixTokens folds tokens into a hash, one at a time, so that a run gives the same
// hash however it is cut.
func mixTokens(h uint64, tokens []Token) uint64 {
	for _, t := range tokens {
		h = mix(h, uint64(uint32(t))+1)
	}
	return h
}

// seal makes a block's hash: never 0, which stands for a block without one.
func seal(h uint64) uint64 {
	h = mix(h, odd1)
	if h == 0 {
		return 1
	}
	return h
}

// root is the parent of a request's first block: what keeps its blocks apart from
// those of other adapters and salts (vLLM v1/core/kv_cache_utils.py,
// generate_block_hash_extra_keys).
func root(r *Request) uint64 {
	h := mix(odd2, r.Salt)
	for i := range len(r.Adapter) {
		h = mix(h, uint64(r.Adapter[i])+1)
	}
	return h
}

// sampled is the index-th token that a request generates, counted from 0.
func (s *sequence) sampled(index int) Token {
	h := mix(s.base, uint64(index))
	return Token((h ^ h>>32) & (VocabWords - 1))
}

package roofline

import (
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// indexerBytes is the bytes per token that one layer of sparse attention (DSA) stores and reads in
// addition to the cache: 128 fp8 values and a scale.
const indexerBytes = 132

// cache is the bytes that one layer stores for one token, and the number of ranks that share the
// heads of one sequence: heads are split, and replicated beyond their number. A latent cache has one
// head for all.
type cache struct{ bytes, shards float64 }

// caches returns the caches of layers with the whole context and of windowed layers, whose heads
// differ in some models.
func (c *Config) caches() (full, window cache) {
	m, t, b := &c.Model, c.tp(), c.KV.Bytes()
	if m.Attention == catalog.AttentionMLA {
		latent := cache{float64(m.KVLoraRank+m.QKRopeHeadDim) * b, 1}
		return latent, latent
	}
	heads := func(k, d int) cache {
		return cache{2 * float64(k) * float64(d) * b, max(1, min(t, float64(k)))}
	}
	window = heads(m.KVHeads, m.HeadDim)
	full = window
	if m.FullKVHeads > 0 && m.FullHeadDim > 0 {
		full = heads(m.FullKVHeads, m.FullHeadDim)
	}
	return full, window
}

// indexer returns the bytes that one layer's sparse indexer stores for one token.
func (c *Config) indexer() float64 {
	if c.Model.SparseTopK == 0 {
		return 0
	}
	return indexerBytes
}

// chunked reports whether windowed layers attend to their own chunk of the context instead of the
// last tokens (Llama 4).
func (c *Config) chunked() bool {
	f := strings.TrimPrefix(c.Model.Family, "Meta ")
	return strings.EqualFold(f, "Llama 4") || strings.EqualFold(f, "llama4")
}

// atMost returns the mean of min(c, limit) over contexts c with mean s. Equal contexts give
// min(s, limit); contexts spread evenly from 0 to 2s give less, which a bound must assume.
func atMost(s, limit float64, spread bool) float64 {
	if !spread || 2*s <= limit {
		return min(s, limit)
	}
	return limit - limit*limit/(4*s)
}

// visible returns the tokens that a windowed layer attends to, for contexts of mean s. A chunk is half
// full on average and contexts are spread, so a chunked layer rises to half the window and stays
// there.
func (c *Config) visible(s float64, spread bool) float64 {
	w := float64(c.Model.SlidingWindow)
	if w <= 0 {
		return s
	}
	if c.chunked() {
		s = min(s, w)
		return s * (1 - s/(2*w))
	}
	return atMost(s, w, spread)
}

// stateBytes returns the constant state of one linear-attention or state-space layer in bytes, stored
// in 16 bit. Without a known size it assumes an expansion of 2 with 128 states per channel, as in
// Mamba 2 and Gated DeltaNet layers (Qwen3-Next: 32 heads of 128 x 128 for a width of 2,048).
func (c *Config) stateBytes() float64 {
	if c.Model.StateElements > 0 {
		return 2 * float64(c.Model.StateElements)
	}
	return 256 * float64(c.Model.Hidden) * 2
}

// KVBytesPerToken returns the bytes that another token of context adds to the cache, over all layers
// and without replication between ranks; 0 if the model's dimensions are unknown.
func (c Config) KVBytesPerToken() float64 {
	s := shapeOf(&c.Model)
	full, _ := c.caches()
	return s.full * (full.bytes + c.indexer())
}

// poolPerToken returns KVBytesPerToken including the replicas on several ranks.
func (c *Config) poolPerToken() float64 {
	full, _ := c.caches()
	return c.KVBytesPerToken() * c.tp() / full.shards
}

// StoredPerSequence returns the bytes stored for a sequence of context tokens, over all layers and
// without replication: the growing part, windowed caches and constant states.
func (c Config) StoredPerSequence(context float64) float64 {
	s := shapeOf(&c.Model)
	full, window := c.caches()
	return s.full*(full.bytes+c.indexer())*context + s.window*window.bytes*c.kept(context) + s.linear*c.stateBytes()
}

// kept returns the tokens of a context that a windowed layer stores.
func (c *Config) kept(context float64) float64 {
	if w := float64(c.Model.SlidingWindow); w > 0 {
		return min(context, w)
	}
	return context
}

// KVRead returns the bytes of cache that are read to decode one token of a sequence with context
// tokens, over all layers and without replication. It equals the stored bytes, except that sparse
// layers read only their top tokens and states are also written.
func (c Config) KVRead(context float64) float64 {
	s := shapeOf(&c.Model)
	full, window := c.caches()
	return s.full*(full.bytes*c.top(context, false)+c.indexer()*context) +
		s.window*window.bytes*c.visible(context, false) + s.linear*2*c.stateBytes()
}

// top returns the tokens that a full layer reads, for contexts of mean s: all, or the top ones of
// sparse attention.
func (c *Config) top(s float64, spread bool) float64 {
	if k := float64(c.Model.SparseTopK); k > 0 {
		return atMost(s, k, spread)
	}
	return s
}

// rankRead returns the bytes of token caches, without states, that one rank reads for one sequence.
func (c *Config) rankRead(s *shape, context float64, spread bool) float64 {
	full, window := c.caches()
	return s.full*(full.bytes*c.top(context, spread)+c.indexer()*context)/full.shards +
		s.window*window.bytes*c.visible(context, spread)/window.shards
}

// poolPerSequence returns the bytes of the pool taken by a sequence of context tokens over all ranks,
// including replicas.
func (c *Config) poolPerSequence(context float64) float64 {
	s := shapeOf(&c.Model)
	full, window := c.caches()
	return c.tp() * (s.full*(full.bytes+c.indexer())*context/full.shards +
		s.window*window.bytes*c.kept(context)/window.shards + s.linear*c.stateBytes()/c.tp())
}

func (c *Config) tp() float64 { return float64(max(1, c.TP)) }
func (c *Config) pp() float64 { return float64(max(1, c.PP)) }
func (c *Config) dp() float64 { return float64(max(1, c.DP)) }

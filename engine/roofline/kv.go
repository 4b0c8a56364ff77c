package roofline

import (
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// indexerBytes is what one layer of sparse attention (DSA) keeps and reads of
// every token beside the cache itself: 128 fp8 values and a scale.
const indexerBytes = 132

// layerKV returns the bytes one layer keeps of one token, without the indexer.
func (c *Config) layerKV() float64 {
	m := &c.Model
	if m.Attention == catalog.AttentionMLA {
		return float64(m.KVLoraRank+m.QKRopeHeadDim) * c.KV.Bytes()
	}
	return 2 * float64(m.KVHeads) * float64(m.HeadDim) * c.KV.Bytes()
}

// indexer returns the bytes one layer's sparse indexer keeps of one token.
func (c *Config) indexer() float64 {
	if c.Model.SparseTopK == 0 {
		return 0
	}
	return indexerBytes
}

// chunked reports whether the windowed layers see only their own chunk of the
// context instead of the last tokens (Llama 4).
func (c *Config) chunked() bool {
	f := strings.TrimPrefix(c.Model.Family, "Meta ")
	return strings.EqualFold(f, "Llama 4") || strings.EqualFold(f, "llama4")
}

// visible returns the tokens a windowed layer sees of a context of s tokens. A
// chunk is half full on average, and full contexts are spread: the chunked form
// rises to half the window and stays there.
func (c *Config) visible(s float64) float64 {
	w := float64(c.Model.SlidingWindow)
	if w <= 0 {
		return s
	}
	s = min(s, w)
	if c.chunked() {
		return s * (1 - s/(2*w))
	}
	return s
}

// stateBytes returns the constant state of one linear-attention or state-space
// layer, in bytes: an expansion of 2 with 128 states per channel in 16 bit,
// which is what Mamba 2 and Gated DeltaNet layers have (Qwen3-Next: 32 heads of
// 128 x 128 for a width of 2,048).
func (c *Config) stateBytes() float64 { return 256 * float64(c.Model.Hidden) * 2 }

// KVBytesPerToken returns the bytes that one more token of context adds to the
// cache, over all layers and without replication between ranks (physics.md
// section 4). 0 where the model's dimensions are unknown.
func (c Config) KVBytesPerToken() float64 {
	s := shapeOf(&c.Model)
	return s.full * (c.layerKV() + c.indexer())
}

// StoredPerSequence returns the bytes that a sequence of context tokens keeps,
// over all layers and without replication: what grows, what a window bounds,
// and the constant states.
func (c Config) StoredPerSequence(context float64) float64 {
	s := shapeOf(&c.Model)
	return c.stored(&s, context)
}

func (c *Config) stored(s *shape, context float64) float64 {
	window := context
	if w := float64(c.Model.SlidingWindow); w > 0 {
		window = min(context, w)
	}
	return s.full*(c.layerKV()+c.indexer())*context + s.window*c.layerKV()*window + s.linear*c.stateBytes()
}

// KVRead returns the bytes of cache that one decoded token of a sequence with
// context tokens reads, over all layers and without replication. It equals what
// is stored, except that sparse layers read their top tokens only and states
// are also written.
func (c Config) KVRead(context float64) float64 {
	s := shapeOf(&c.Model)
	return c.read(&s, context) + s.linear*2*c.stateBytes()
}

// read returns the bytes of token caches read, without states.
func (c *Config) read(s *shape, context float64) float64 {
	top := context
	if k := float64(c.Model.SparseTopK); k > 0 {
		top = min(context, k)
	}
	return s.full*(c.layerKV()*top+c.indexer()*context) + s.window*c.layerKV()*c.visible(context)
}

// shards returns over how many ranks the cache of one sequence is spread: heads
// are split, and replicated beyond their number; a latent cache has one head.
func (c *Config) shards() float64 {
	t := c.tp()
	if c.Model.Attention == catalog.AttentionMLA || c.Model.KVHeads == 0 {
		return 1
	}
	return min(t, float64(c.Model.KVHeads))
}

func (c *Config) tp() float64 { return float64(max(1, c.TP)) }
func (c *Config) pp() float64 { return float64(max(1, c.PP)) }
func (c *Config) dp() float64 { return float64(max(1, c.DP)) }

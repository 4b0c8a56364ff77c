package roofline

import (
	"cmp"
	"math"

	"github.com/rooftop-dev/rooftop/catalog"
)

// shape is the parameters of a model, divided into the parts that a step treats differently. It does
// not use published active counts if the dimensions give them: some include the embeddings, some do
// not.
type shape struct {
	table  float64 // input embedding unless it is also the output layer: looked up, never multiplied
	head   float64 // output layer
	dense  float64 // every other weight that all tokens use: attention, dense FFNs, shared experts, routers
	attn   float64 // of dense, the attention projections; 0 where unknown
	expert float64 // one routed expert of one layer

	layers, moeLayers    float64
	experts, perToken    float64 // routed experts of a layer, and those used by one token
	full, window, linear float64 // numbers of layers by how they store context
}

// routed returns the parameters of all routed experts.
func (s *shape) routed() float64 { return s.moeLayers * s.experts * s.expert }

// stored returns all parameters.
func (s *shape) stored() float64 { return s.table + s.head + s.dense + s.routed() }

// shapeOf derives the parts from a catalog entry. A total that contradicts the dimensions takes
// precedence, because a published total has been counted.
func shapeOf(m *catalog.Model) shape {
	h := float64(m.Hidden)
	embed := float64(m.Vocab) * h
	s := shape{layers: float64(m.Layers), head: embed}
	if !m.TiedEmbeddings {
		s.table = embed
	}
	if s.table+s.head >= m.TotalParams {
		s.table, s.head = 0, 0
	}
	body := max(0, m.TotalParams-m.VisionParams-s.table-s.head)
	full, window, linear := m.CacheLayers()
	s.full, s.window, s.linear = float64(full), float64(window), float64(linear)
	s.attn = min(body, attention(m))

	if m.Experts == 0 {
		s.dense = body
		// A total may include towers that text does not use. The gated FFN has three matrices; a
		// model with two has fewer parameters than this and keeps its total.
		if ffn := 3 * h * float64(m.Intermediate) * s.layers; s.attn > 0 && ffn > 0 && s.attn+ffn > body/2 {
			s.dense = min(body, s.attn+ffn)
		}
		return s
	}

	s.experts, s.perToken = float64(m.Experts), float64(m.ExpertsPerToken)
	s.moeLayers = max(1, float64(m.MoELayers()))
	s.expert = 3 * h * float64(cmp.Or(m.ExpertWidth, m.Intermediate))
	if s.perToken == 0 && s.expert > 0 {
		active := m.ActiveParams - (m.TotalParams - s.routed())
		s.perToken = min(s.experts, max(1, math.Round(active/(s.moeLayers*s.expert))))
	}
	if s.expert == 0 || s.routed() > body {
		// Total = N + R and Active = N + R k/E give R.
		r := body
		if idle := 1 - s.perToken/s.experts; idle > 0 {
			r = min(body, (m.TotalParams-m.ActiveParams)/idle)
		}
		s.expert = max(0, r) / (s.moeLayers * s.experts)
	}
	s.dense = body - s.routed()
	s.attn = min(s.attn, s.dense)
	return s
}

// attention returns the parameters of all attention projections, or 0 if the dimensions do not give
// them (linear attention).
func attention(m *catalog.Model) float64 {
	h, heads := float64(m.Hidden), float64(m.Heads)
	if heads == 0 {
		return 0
	}
	if m.Attention == catalog.AttentionMLA {
		rope, nope, v := float64(m.QKRopeHeadDim), float64(cmp.Or(m.QKNopeHeadDim, 128)), float64(cmp.Or(m.VHeadDim, 128))
		q := h * heads * (nope + rope)
		if r := float64(m.QLoraRank); r > 0 {
			q = r * (h + heads*(nope+rope))
		}
		kv := float64(m.KVLoraRank)
		return float64(m.Layers) * (q + h*(kv+rope) + kv*heads*(nope+v) + heads*v*h)
	}
	full, window, linear := m.CacheLayers()
	if linear > 0 {
		return 0
	}
	per := func(kvHeads, d int) float64 { return 2 * h * float64(d) * (heads + float64(kvHeads)) }
	if m.FullHeadDim > 0 && m.FullKVHeads > 0 {
		return float64(window)*per(m.KVHeads, m.HeadDim) + float64(full)*per(m.FullKVHeads, m.FullHeadDim)
	}
	return float64(m.Layers) * per(m.KVHeads, m.HeadDim)
}

// distinct returns the expected number of distinct routed experts that n tokens use in one layer, for
// uniform and independent routing. One token uses exactly its own, so fewer than one counts as one.
func (s *shape) distinct(n float64) float64 {
	if s.experts == 0 {
		return 0
	}
	return s.experts * -math.Expm1(max(1, n)*math.Log1p(-min(s.perToken/s.experts, 1-1e-12)))
}

// correlated is the optimistic share of the expected distinct experts that correlated routing reads.
const correlated = 0.75

// fewest returns the optimistic bound of distinct, at least one token's own experts.
func (s *shape) fewest(n float64) float64 {
	return max(s.perToken, correlated*s.distinct(n))
}

// precision is the bytes of one parameter in each part of the model.
type precision struct {
	table, head, dense, expert float64
	// leanDense is the lower bound of dense: some checkpoints keep attention unquantized, others
	// do not.
	leanDense float64
}

// bodyDType returns the dtype of everything except routed experts, embeddings and output layer. It is
// wider than that of the experts in models that were trained so (gpt-oss in mxfp4, Kimi-K2-Thinking
// in int4).
func (c *Config) bodyDType() catalog.DType {
	if c.Model.Experts > 0 && c.Model.NonExpertDType != "" && c.Weight == c.Model.NativeDType {
		return c.Model.NonExpertDType
	}
	return c.Weight
}

// precisionOf returns the bytes per parameter of each part of a checkpoint. Quantized checkpoints keep
// embeddings and output layer in 16 bit. NVIDIA's nvfp4 checkpoints of MLA models also keep
// attention in 16 bit: DeepSeek-R1-0528-FP4 loads as 4 x 94.1 GiB, 404 GB, where quantized attention
// would leave 381.
func (c *Config) precisionOf(s *shape) precision {
	w, body := c.Weight.Bytes(), c.bodyDType().Bytes()
	p := precision{table: w, head: w, dense: body, leanDense: body, expert: w}
	if w >= 2 {
		return p
	}
	p.table, p.head = 2, 2
	if c.Weight == catalog.INT4 && body >= 2 {
		// Trained in groups of 32, not of 128: 4.5 bit with its scales
		// (Kimi-K2-Thinking, 594 GB).
		p.expert = catalog.NVFP4.Bytes()
	}
	if c.Weight == catalog.NVFP4 && c.Model.Attention == catalog.AttentionMLA && s.dense > 0 {
		p.dense = (s.attn*2 + (s.dense-s.attn)*w) / s.dense
	}
	return p
}

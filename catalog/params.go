package catalog

import "cmp"

// shape is a model with the additional dimensions that are needed to count its parameters.
type shape struct {
	Model

	plainFFN  bool // an FFN of two matrices instead of the three of a gated one
	positions bool // has a table of learned positions
	// queryGate doubles the query projection of full layers (Qwen3-Next).
	queryGate bool
	// keysAsValues is set if full layers have no value projection (Gemma 4).
	keysAsValues bool

	// Gated DeltaNet layers.
	linearKeyHeads, linearValueHeads int
	linearKeyDim, linearValueDim     int
	convKernel                       int

	// The indexer of sparse latent attention.
	indexHeads, indexDim int
}

// params is a count of parameters: all, and those that a step reads for one token.
type params struct {
	total  float64 // 0 if the dimensions are unknown
	active float64 // total without the routed experts that one token does not use
}

func (m Model) shape() shape { return shape{Model: m} }

// count returns the parameters of a decoder: embeddings, attention, FFN, experts and routers. It
// omits norms and biases (below 0.1 %) and image encoders. Layers of linear attention count if their
// dimensions are known.
func (s shape) count() params {
	h := float64(s.Hidden)
	if s.Layers == 0 || s.Hidden == 0 || s.Vocab == 0 || s.Heads == 0 {
		return params{}
	}
	full, window, linear := s.CacheLayers()
	attention := float64(full)*s.fullAttention() + float64(window)*s.attention(s.KVHeads, s.HeadDim, false)
	attention += float64(linear) * s.linearAttention()

	matrices := pick(s.plainFFN, 2.0, 3.0)
	moe := float64(s.MoELayers())
	expert := matrices * h * float64(cmp.Or(s.ExpertWidth, s.Intermediate))
	ffn := (float64(s.Layers) - moe) * matrices * h * float64(s.Intermediate)
	ffn += moe * (h*float64(s.Experts) + matrices*h*float64(s.SharedWidth) + float64(s.Experts)*expert)

	tables := pick(s.TiedEmbeddings, 1.0, 2.0)
	total := attention + ffn + (tables*float64(s.Vocab)+pick(s.positions, float64(s.MaxPositions), 0))*h
	return params{total: total, active: total - moe*float64(s.Experts-s.ExpertsPerToken)*expert}
}

// fullAttention returns the parameters of the projections of one full layer.
func (s shape) fullAttention() float64 {
	if s.Attention == AttentionMLA {
		return s.latentAttention()
	}
	kv, dim := cmp.Or(s.FullKVHeads, s.KVHeads), cmp.Or(s.FullHeadDim, s.HeadDim)
	return s.attention(kv, dim, s.keysAsValues) + pick(s.queryGate, float64(s.Hidden)*float64(s.Heads)*float64(s.HeadDim), 0)
}

func (s shape) attention(kvHeads, headDim int, keysAsValues bool) float64 {
	h, d := float64(s.Hidden), float64(headDim)
	return 2*h*float64(s.Heads)*d + pick(keysAsValues, 1.0, 2.0)*h*float64(kvHeads)*d
}

// latentAttention returns the parameters of one layer of latent attention as in DeepSeek V2 and V3
// (arXiv 2405.04434, section 2.1).
func (s shape) latentAttention() float64 {
	h, heads := float64(s.Hidden), float64(s.Heads)
	qk, rank := float64(s.QKNopeHeadDim+s.QKRopeHeadDim), float64(s.KVLoraRank)
	q := h * heads * qk
	if r := float64(s.QLoraRank); r > 0 {
		q = h*r + r*heads*qk
	}
	kv := h*(rank+float64(s.QKRopeHeadDim)) + rank*heads*float64(s.QKNopeHeadDim+s.VHeadDim)
	index := float64(s.indexDim)*(float64(s.QLoraRank*s.indexHeads)+h) + h*float64(s.indexHeads)
	return q + kv + heads*float64(s.VHeadDim)*h + index
}

// linearAttention returns the parameters of one gated DeltaNet layer as in Qwen3-Next: the
// projections of queries, keys, values and gate, a short convolution, and the output.
func (s shape) linearAttention() float64 {
	h := float64(s.Hidden)
	key, value := float64(s.linearKeyHeads*s.linearKeyDim), float64(s.linearValueHeads*s.linearValueDim)
	return h*(2*key+2*value+2*float64(s.linearValueHeads)) + (2*key+value)*float64(s.convKernel) + value*h
}

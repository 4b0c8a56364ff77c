package catalog

// shape is a model's dimensions with what only counting its parameters needs.
type shape struct {
	Model

	plainFFN  bool // two matrices instead of the three of a gated FFN
	positions bool // a table of learned positions
	// queryGate doubles the query projection of full layers (Qwen3-Next).
	queryGate bool
	// keysAsValues: full layers have no value projection (Gemma 4).
	keysAsValues bool

	// Gated DeltaNet layers.
	linearKeyHeads, linearValueHeads int
	linearKeyDim, linearValueDim     int
	convKernel                       int

	// The indexer of sparse latent attention.
	indexHeads, indexDim int
}

// params is a count of parameters, by what a step reads.
type params struct {
	total  float64 // 0 where the dimensions are not known
	active float64 // total without the routed experts that one token skips
}

func (m Model) shape() shape { return shape{Model: m} }

// count adds up the matrices of a decoder: embeddings, attention, FFN, experts
// and routers; norms and biases are left out (below 0.1 %). Towers for images
// are not part of it. Layers of linear attention are counted where their
// dimensions are known.
func (s shape) count() params {
	h := float64(s.Hidden)
	if s.Layers == 0 || s.Hidden == 0 || s.Vocab == 0 || s.Heads == 0 {
		return params{}
	}
	full, window, linear := s.CacheLayers()
	attention := float64(full)*s.fullAttention() + float64(window)*s.attention(s.KVHeads, s.HeadDim, false)
	attention += float64(linear) * s.linearAttention()

	matrices := 3.0
	if s.plainFFN {
		matrices = 2
	}
	moe := float64(s.MoELayers())
	width := float64(s.ExpertWidth)
	if width == 0 {
		width = float64(s.Intermediate)
	}
	expert := matrices * h * width
	ffn := (float64(s.Layers) - moe) * matrices * h * float64(s.Intermediate)
	ffn += moe * (h*float64(s.Experts) + matrices*h*float64(s.SharedWidth) + float64(s.Experts)*expert)

	tables := 2.0
	if s.TiedEmbeddings {
		tables = 1
	}
	total := attention + ffn + (tables*float64(s.Vocab)+pick(s.positions, float64(s.MaxPositions), 0))*h
	return params{total: total, active: total - moe*float64(s.Experts-s.ExpertsPerToken)*expert}
}

// fullAttention counts the projections of one layer whose cache grows.
func (s shape) fullAttention() float64 {
	if s.Attention == AttentionMLA {
		return s.latentAttention()
	}
	kv, dim := s.KVHeads, s.HeadDim
	if s.FullKVHeads > 0 {
		kv = s.FullKVHeads
	}
	if s.FullHeadDim > 0 {
		dim = s.FullHeadDim
	}
	return s.attention(kv, dim, s.keysAsValues) + pick(s.queryGate, float64(s.Hidden)*float64(s.Heads)*float64(s.HeadDim), 0)
}

func (s shape) attention(kvHeads, headDim int, keysAsValues bool) float64 {
	h, d := float64(s.Hidden), float64(headDim)
	return 2*h*float64(s.Heads)*d + pick(keysAsValues, 1.0, 2.0)*h*float64(kvHeads)*d
}

// latentAttention is that of DeepSeek V2 and V3 (arXiv 2405.04434, section 2.1).
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

// linearAttention is the gated DeltaNet of Qwen3-Next: projections of queries,
// keys, values and gate, one short convolution, the output.
func (s shape) linearAttention() float64 {
	h := float64(s.Hidden)
	key, value := float64(s.linearKeyHeads*s.linearKeyDim), float64(s.linearValueHeads*s.linearValueDim)
	return h*(2*key+2*value+2*float64(s.linearValueHeads)) + (2*key+value)*float64(s.convKernel) + value*h
}

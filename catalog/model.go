package catalog

// Attention is the way in which a model stores its context.
type Attention string

// Kinds of attention.
const (
	AttentionMHA    Attention = "mha"
	AttentionGQA    Attention = "gqa"
	AttentionMLA    Attention = "mla"    // latent cache, replicated on every TP rank
	AttentionHybrid Attention = "hybrid" // full layers among windowed, chunked, linear or state-space ones
)

// Model describes the dimensions of a served model, as in its config.json. 0 means unknown or not
// applicable.
type Model struct {
	ID      string   `yaml:"id"` // on Hugging Face
	Aliases []string `yaml:"aliases,omitempty"`
	Family  string   `yaml:"family"`

	TotalParams  float64 `yaml:"total_params"`  // parameters
	ActiveParams float64 `yaml:"active_params"` // parameters that one token uses; equal to TotalParams for dense models

	Layers       int `yaml:"layers,omitempty"`
	Hidden       int `yaml:"hidden,omitempty"`
	Heads        int `yaml:"heads,omitempty"`
	KVHeads      int `yaml:"kv_heads,omitempty"`
	HeadDim      int `yaml:"head_dim,omitempty"`
	Intermediate int `yaml:"intermediate,omitempty"` // FFN width of layers without routed experts; of one expert if ExpertWidth is 0
	Vocab        int `yaml:"vocab,omitempty"`
	// TiedEmbeddings is set if the input embedding is also the output layer, which every step
	// reads.
	TiedEmbeddings bool `yaml:"tied_embeddings,omitempty"`

	Experts         int `yaml:"experts,omitempty"`           // routed experts of a MoE layer
	ExpertsPerToken int `yaml:"experts_per_token,omitempty"` // routed experts one token uses
	ExpertWidth     int `yaml:"expert_width,omitempty"`      // FFN width of one routed expert
	SharedWidth     int `yaml:"shared_width,omitempty"`      // FFN width of all shared experts
	DenseLayers     int `yaml:"dense_layers,omitempty"`      // layers without routed experts

	Attention     Attention `yaml:"attention,omitempty"`
	QLoraRank     int       `yaml:"q_lora_rank,omitempty"` // of latent attention; 0 if queries are not compressed
	KVLoraRank    int       `yaml:"kv_lora_rank,omitempty"`
	QKRopeHeadDim int       `yaml:"qk_rope_head_dim,omitempty"`
	QKNopeHeadDim int       `yaml:"qk_nope_head_dim,omitempty"`
	VHeadDim      int       `yaml:"v_head_dim,omitempty"`
	SlidingWindow int       `yaml:"sliding_window,omitempty"` // tokens that a windowed layer keeps
	FullLayers    int       `yaml:"full_layers,omitempty"`    // layers whose cache grows with the context; see CacheLayers
	WindowLayers  int       `yaml:"window_layers,omitempty"`  // layers that keep SlidingWindow tokens
	LinearLayers  int       `yaml:"linear_layers,omitempty"`  // layers with a constant state
	SparseTopK    int       `yaml:"sparse_top_k,omitempty"`   // cached tokens that a step of sparse attention reads
	// FullKVHeads and FullHeadDim replace KVHeads and HeadDim in the full layers if they differ
	// there (Gemma 4).
	FullKVHeads int `yaml:"full_kv_heads,omitempty"`
	FullHeadDim int `yaml:"full_head_dim,omitempty"`
	// StateElements is the number of elements that one linear layer keeps per sequence: recurrent
	// state and convolution tail.
	StateElements int `yaml:"state_elements,omitempty"`

	// VisionParams is the number of parameters in image and sound encoders: they are part of
	// TotalParams and resident, but a text step does not read them.
	VisionParams float64 `yaml:"vision_params,omitempty"`

	MaxPositions int   `yaml:"max_positions,omitempty"`
	NativeDType  DType `yaml:"native_dtype,omitempty"` // of the weights as published
	// NonExpertDType is the type of all weights except the routed experts, if it differs from
	// NativeDType (gpt-oss: four-bit experts, all else bf16).
	NonExpertDType DType  `yaml:"non_expert_dtype,omitempty"`
	Source         string `yaml:"source"`
}

// CacheLayers returns the number of layers by what they cache: full layers the whole context,
// window layers SlidingWindow tokens, linear layers a constant state. If all three fields of a model
// are 0, all its layers are full.
func (m Model) CacheLayers() (full, window, linear int) {
	if m.FullLayers == 0 && m.WindowLayers == 0 && m.LinearLayers == 0 {
		return m.Layers, 0, 0
	}
	return m.FullLayers, m.WindowLayers, m.LinearLayers
}

// MoELayers returns the layers with routed experts, 0 for a dense model.
func (m Model) MoELayers() int {
	if m.Experts == 0 {
		return 0
	}
	return m.Layers - m.DenseLayers
}

// DType is the storage type of a number.
type DType string

// Storage types. The four-bit types include their scales.
const (
	FP32  DType = "fp32"
	BF16  DType = "bf16"
	FP16  DType = "fp16"
	FP8   DType = "fp8"
	INT8  DType = "int8"
	INT4  DType = "int4"  // AWQ, GPTQ: groups of 128
	MXFP4 DType = "mxfp4" // 4.25 bit
	NVFP4 DType = "nvfp4" // 4.5 bit
)

// Bytes returns the bytes of one element with its share of the scales; 0 for an unknown type.
func (d DType) Bytes() float64 {
	switch d {
	case FP32:
		return 4
	case BF16, FP16:
		return 2
	case FP8, INT8:
		return 1
	case INT4:
		return 0.515
	case MXFP4:
		return 4.25 / 8
	case NVFP4:
		return 4.5 / 8
	}
	return 0
}

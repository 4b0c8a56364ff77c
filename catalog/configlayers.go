package catalog

import (
	"cmp"
	"encoding/json"
	"strings"
)

// experts reads the routed and shared experts and which layers have them.
func (c *config) experts(s *shape) {
	s.Experts = c.int("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
	if s.Experts <= 1 {
		s.Experts = 0
		return
	}
	s.ExpertsPerToken = c.int("num_experts_per_tok", "top_k_experts", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "moe_top_k")
	if s.ExpertsPerToken == 0 || s.ExpertsPerToken > s.Experts {
		c.fail("num_experts_per_tok", "%d of %d experts", s.ExpertsPerToken, s.Experts)
		return
	}
	s.ExpertWidth = cmp.Or(c.int("moe_intermediate_size", "expert_intermediate_size"), s.Intermediate)
	switch {
	case c.isVariantOf("llama4"):
		s.SharedWidth = s.Intermediate
		s.Intermediate = cmp.Or(c.int("intermediate_size_mlp"), s.Intermediate)
	case c.isVariantOf("gemma4"): // has a dense FFN in addition to the experts
		s.SharedWidth = s.Intermediate
	default:
		s.SharedWidth = cmp.Or(c.int("shared_expert_intermediate_size", "shared_intermediate_size"),
			c.int("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")*s.ExpertWidth)
	}
	s.DenseLayers = s.Layers
	routed := c.routing()
	for i := range s.Layers {
		if routed(i) {
			s.DenseLayers--
		}
	}
	if s.DenseLayers == 0 {
		s.Intermediate = 0
	}
}

// routing returns a function that reports whether layer i has experts, from whichever of the fields
// for it the config has.
func (c *config) routing() func(i int) bool {
	kinds, _ := c.fields["mlp_layer_types"].([]any)
	dense := c.set("mlp_only_layers")
	routed := c.set("moe_layers")
	flags, _ := c.fields["moe_layer_freq"].([]any)
	first := c.int("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
	step := c.int("interleave_moe_layer_step", "decoder_sparse_step")
	every := 1
	if flags == nil {
		every = max(1, c.int("moe_layer_freq"))
	}
	return func(i int) bool {
		switch {
		case i < len(kinds):
			return kinds[i] != "dense"
		case i < first || dense[i]:
			return false
		case routed != nil && c.isVariantOf("llama4"):
			return routed[i]
		case step > 1:
			return (i+1)%step == 0
		case i < len(flags):
			return flags[i] != json.Number("0")
		}
		return i%every == 0
	}
}

// set returns a list of layer numbers as a set; nil if there is none.
func (c *config) set(field string) map[int]bool {
	list, ok := c.fields[field].([]any)
	if !ok {
		return nil
	}
	out := make(map[int]bool, len(list))
	for _, v := range list {
		if n, ok := v.(json.Number); ok {
			if x, err := n.Int64(); err == nil {
				out[int(x)] = true
			}
		}
	}
	return out
}

// layerKind is what a layer caches: the whole context, a window, or a constant state.
type layerKind uint8

const (
	fullLayer layerKind = iota
	windowLayer
	linearLayer
)

// layers counts the layers of each kind and derives the kind of attention of the model.
func (c *config) layers(s *shape) {
	s.SlidingWindow = c.int("sliding_window", "attention_chunk_size", "sliding_window_size")
	if !c.bool(!c.isVariantOf("qwen2", "qwen3"), "use_sliding_window") && c.fields["layer_types"] == nil {
		s.SlidingWindow = 0
	}
	if s.SlidingWindow > 0 && s.MaxPositions > 0 && s.SlidingWindow >= s.MaxPositions {
		s.SlidingWindow = 0 // as wide as the context: not a limit
	}
	if c.hybridPattern(s) {
		return
	}
	kind := c.layerKinds(s)
	var n [3]int
	for i := range s.Layers {
		k := kind(i)
		if k == windowLayer && s.SlidingWindow == 0 {
			k = fullLayer
		}
		n[k]++
	}
	if n[windowLayer] == 0 {
		s.SlidingWindow = 0
	}
	if n[windowLayer]+n[linearLayer] > 0 {
		s.FullLayers, s.WindowLayers, s.LinearLayers = n[fullLayer], n[windowLayer], n[linearLayer]
	}
	c.linear(s)
	switch {
	case s.Attention == AttentionMLA:
	case s.WindowLayers+s.LinearLayers > 0:
		s.Attention = AttentionHybrid
	case s.KVHeads == s.Heads:
		s.Attention = AttentionMHA
	default:
		s.Attention = AttentionGQA
	}
	if s.FullLayers > 0 && s.WindowLayers > 0 {
		if dim := c.int("global_head_dim"); dim != 0 && dim != s.HeadDim {
			s.FullHeadDim = dim
		}
		if heads := c.int("num_global_key_value_heads"); heads != 0 && heads != s.KVHeads {
			s.FullKVHeads = heads
		}
		s.keysAsValues = c.bool(false, "attention_k_eq_v")
	}
}

// layerKinds returns a function for the kind of layer i: from a list, a pattern, or the model type.
func (c *config) layerKinds(s *shape) func(i int) layerKind {
	every := func(n int, other layerKind) func(int) layerKind {
		return func(i int) layerKind { return pick((i+1)%n == 0, fullLayer, other) }
	}
	_, listed := c.get("layer_types", "layers_block_type")
	list, _ := listed.([]any)
	interval := c.int("full_attention_interval")
	_, pattern := c.get("sliding_window_pattern", "_sliding_window_pattern")
	letters, _ := pattern.(string)
	switch {
	case len(list) > 0:
		if len(list) < s.Layers {
			c.fail("layer_types", "%d entries for %d layers", len(list), s.Layers)
			return every(1, fullLayer)
		}
		return func(i int) layerKind { return namedKind(list[i]) }
	case interval > 1:
		return every(interval, linearLayer)
	case c.isVariantOf("llama4"):
		if rope, ok := c.fields["no_rope_layers"].([]any); ok && len(rope) >= s.Layers {
			return func(i int) layerKind { return pick(rope[i] == json.Number("0"), fullLayer, windowLayer) }
		}
		return every(cmp.Or(c.int("no_rope_layer_interval"), 4), windowLayer)
	case s.SlidingWindow == 0:
		return every(1, fullLayer)
	case letters != "": // EXAONE: LLLG
		return func(i int) layerKind { return pick(letters[i%len(letters)] == 'L', windowLayer, fullLayer) }
	case pattern != nil:
		return every(max(1, c.int("sliding_window_pattern", "_sliding_window_pattern")), windowLayer)
	case c.isVariantOf("gemma2", "gpt_oss"):
		return every(2, windowLayer)
	case c.isVariantOf("cohere2", "olmo3"):
		return every(4, windowLayer)
	case c.isVariantOf("gemma3", "gemma4"):
		return every(6, windowLayer)
	case c.isVariantOf("qwen2", "qwen3"):
		from := c.int("max_window_layers")
		return func(i int) layerKind { return pick(i < from, fullLayer, windowLayer) }
	case c.isKind("mistral", "mixtral", "starcoder2", "phi3", "phimoe"):
		return func(int) layerKind { return windowLayer }
	}
	return every(1, fullLayer)
}

func namedKind(name any) layerKind {
	switch name {
	case "sliding_attention", "chunked_attention":
		return windowLayer
	case "linear_attention", "mamba", "mamba2", "conv", "recurrent":
		return linearLayer
	}
	return fullLayer
}

// hybridPattern reads Nemotron-H's pattern of one letter per layer: * is attention, M a state-space
// layer, all others FFN only. It reports whether the config has one.
func (c *config) hybridPattern(s *shape) bool {
	pattern, ok := c.fields["hybrid_override_pattern"].(string)
	if !ok {
		return false
	}
	s.FullLayers, s.LinearLayers = strings.Count(pattern, "*"), strings.Count(pattern, "M")
	s.Attention, s.SlidingWindow, c.countable = AttentionHybrid, 0, false
	return true
}

// linear reads the dimensions of gated DeltaNet layers. With other layers of a constant state the
// parameters cannot be counted.
func (c *config) linear(s *shape) {
	if s.LinearLayers == 0 {
		return
	}
	s.linearKeyHeads, s.linearValueHeads = c.int("linear_num_key_heads"), c.int("linear_num_value_heads")
	s.linearKeyDim, s.linearValueDim = c.int("linear_key_head_dim"), c.int("linear_value_head_dim")
	s.convKernel = c.int("linear_conv_kernel_dim")
	if s.linearValueHeads == 0 || s.linearValueDim == 0 || max(s.linearKeyHeads, s.linearValueHeads, s.linearKeyDim, s.linearValueDim, s.convKernel) > 1e5 {
		c.countable = false
		return
	}
	key, value := s.linearKeyHeads*s.linearKeyDim, s.linearValueHeads*s.linearValueDim
	s.StateElements = value*s.linearKeyDim + max(0, s.convKernel-1)*(2*key+value)
	s.queryGate = c.bool(c.isVariantOf("qwen3_next", "qwen3_5"), "attn_output_gate")
}

package catalog

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// bounds is the valid range of a number in a user's file. A number outside is a typing error or in
// another unit.
type bounds struct {
	min, max float64
	zero     bool // 0 is valid
	unit     string
}

// boundsOf returns the bounds of a field by its name; fields without their own are counts.
func boundsOf(field string) bounds {
	if b, ok := numberBounds[field]; ok {
		return b
	}
	switch {
	case strings.HasSuffix(field, "tflops"), strings.HasSuffix(field, "_tops"):
		return bounds{0, 1e6, false, "1e12 operations per second"}
	case strings.HasPrefix(field, "achieved.") && strings.HasSuffix(field, "_seconds"):
		return bounds{0, 1, true, "seconds"}
	case strings.HasPrefix(field, "achieved."):
		return bounds{0, 1, false, "share of the peak, 0 to 1"}
	case strings.HasPrefix(field, "price."):
		return bounds{0, 1e4, true, "dollars for one GPU and hour"}
	}
	return bounds{0, 1e7, true, "count"}
}

var numberBounds = map[string]bounds{
	"vram_gib":           {0, 1e5, false, "GiB"},
	"mem_bandwidth_gb_s": {0, 1e6, false, "1e9 bytes per second"},
	"nvlink_gb_s":        {0, 1e5, true, "1e9 bytes per second"},
	"pcie_gen":           {0, 10, true, "generation"},
	"tdp_w":              {0, 1e5, false, "watts"},

	"mem_channels":         {1, 64, false, "channels of a socket"},
	"channel_bits":         {8, 4096, false, "bits"},
	"transfer_mt_s":        {100, 1e5, false, "1e6 transfers per second"},
	"fp32_flops_per_cycle": {1, 1e4, false, "operations of a core"},
	"int8_ops_per_cycle":   {1, 1e5, false, "operations of a core"},
	"max_ghz":              {0.1, 20, false, "1e9 cycles per second"},

	"total_params":  {1e4, 1e14, false, "parameters: 8 billion is 8e9"},
	"active_params": {1e4, 1e14, false, "parameters: 8 billion is 8e9"},
	"vision_params": {1e4, 1e14, true, "parameters: 8 billion is 8e9"},
	"layers":        {0, 1e4, false, "layers"},
	"hidden":        {0, 1e6, false, "width"},
	"heads":         {0, 1e5, false, "heads"},
	"kv_heads":      {0, 1e5, false, "heads"},
	"head_dim":      {0, 1e5, false, "width"},
	"vocab":         {0, 1e8, false, "tokens"},
	"max_positions": {0, 1e10, true, "tokens"},
}

// gpu checks that the required fields of a GPU are present.
func (v *checker) gpu(n *yaml.Node, f map[string]*yaml.Node) {
	v.require(n, f, "vendor", "mem_bandwidth_gb_s")
}

// cpu checks that the required fields of a CPU are present.
func (v *checker) cpu(n *yaml.Node, f map[string]*yaml.Node) {
	v.require(n, f, "vendor", "mem_channels", "transfer_mt_s")
}

// model checks that the fields of a model are consistent.
func (v *checker) model(n *yaml.Node, f map[string]*yaml.Node) {
	if v.require(n, f, "total_params"); f["total_params"] == nil {
		return
	}
	var m Model
	if err := n.Decode(&m); err != nil {
		v.add(n, "", "%v", err)
		return
	}
	at := func(field string) *yaml.Node {
		if f[field] != nil {
			return f[field]
		}
		return n
	}
	caching := m.FullLayers + m.WindowLayers + m.LinearLayers
	for _, c := range []struct {
		wrong bool
		field string
		what  string
	}{
		{m.Experts > 0 && m.ActiveParams == 0, "active_params", "missing for a model with experts"},
		{m.ActiveParams > m.TotalParams, "active_params", "more than total_params"},
		{m.VisionParams >= m.TotalParams, "vision_params", "not less than total_params"},
		{m.KVHeads > m.Heads && m.Heads > 0, "kv_heads", "more than heads"},
		{m.Experts > 0 && m.ExpertsPerToken == 0, "experts_per_token", "missing for a model with experts"},
		{m.ExpertsPerToken > m.Experts, "experts_per_token", "more than experts"},
		{m.DenseLayers > m.Layers, "dense_layers", "more than layers"},
		{caching != 0 && caching != m.Layers, "full_layers", "full, window and linear layers do not add up to layers"},
		{m.WindowLayers > 0 && m.SlidingWindow == 0, "sliding_window", "missing for a model with window_layers"},
		{m.Attention == AttentionMLA && m.KVLoraRank == 0, "kv_lora_rank", "missing for latent attention"},
	} {
		if c.wrong {
			v.add(at(c.field), c.field, "%s", c.what)
		}
	}
	// A factor of two means another model or a typing error. The check is not stricter because
	// count does not cover every architecture.
	if count := m.shape().count(); count.total > 0 && !within(m.TotalParams-m.VisionParams, count.total, 0.5) &&
		!within(count.total, m.TotalParams-m.VisionParams, 0.5) {
		v.add(at("total_params"), "total_params", "%.3g, but the dimensions make %.3g", m.TotalParams, count.total)
	}
}

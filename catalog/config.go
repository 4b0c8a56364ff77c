package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// maxConfig bounds a config.json, in bytes; real ones have a few kilobytes.
const maxConfig = 4 << 20

// ParseModelConfig returns the model that a Hugging Face config.json describes, without ID:
// dimensions, experts, the cache of each layer, and the type of the published weights. For a
// multi-modal model it reads the text model (text_config) and estimates the encoder. Parameters
// are counted from the dimensions; they are 0 if the architecture is not known well enough
// (state-space layers, per-layer embeddings). Errors name the field.
func ParseModelConfig(r io.Reader) (Model, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	switch {
	case err != nil:
		return Model{}, fmt.Errorf("config.json: read: %w", err)
	case len(raw) > maxConfig:
		return Model{}, fmt.Errorf("config.json: larger than %d bytes", maxConfig)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var top map[string]any
	if err := dec.Decode(&top); err != nil {
		return Model{}, fmt.Errorf("config.json: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Model{}, errors.New("config.json: more than one value")
	}
	c := newConfig(top)
	s := c.shape()
	if c.err != nil {
		return Model{}, c.err
	}
	count := s.count()
	if c.countable && !math.IsInf(count.total, 0) {
		s.TotalParams, s.ActiveParams = count.total+s.VisionParams, count.active
		if s.Experts == 0 {
			s.ActiveParams = s.TotalParams
		}
	}
	return s.Model, nil
}

// config reads fields of a config.json and keeps the first error.
type config struct {
	fields    map[string]any
	kind      string // model_type
	countable bool   // the parameters can be counted from the dimensions
	err       error
}

// newConfig returns the fields of a config. For a multi-modal model these are the fields of its text
// model, and those that only the outer object has (types, quantization).
func newConfig(top map[string]any) *config {
	c := &config{fields: maps.Clone(top), countable: true}
	if c.fields == nil { // null
		c.fields = make(map[string]any)
	}
	for _, inner := range []string{"text_config", "llm_config", "language_config", "thinker_config"} {
		text, ok := c.fields[inner].(map[string]any)
		if !ok {
			continue
		}
		delete(c.fields, inner)
		for k, v := range text {
			if v != nil {
				c.fields[k] = v
			}
		}
	}
	c.kind, _ = c.fields["model_type"].(string)
	for field, value := range classDefaults[c.kind] {
		if c.fields[field] == nil {
			c.fields[field] = json.Number(value)
		}
	}
	return c
}

// classDefaults lists, by model type, dimensions that published configs omit because they are the
// defaults of the configuration class in transformers.
var classDefaults = map[string]map[string]string{
	"gemma3_text": {"vocab_size": "262208", "num_attention_heads": "8", "num_key_value_heads": "4", "head_dim": "256", "max_position_embeddings": "131072"},
}

// fail keeps the first error.
func (c *config) fail(field, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("config.json: "+field+": "+format, args...)
	}
}

// get returns the first of the fields that is present and not null; the first name and nil if there
// is none.
func (c *config) get(names ...string) (field string, value any) {
	for _, name := range names {
		if v := c.fields[name]; v != nil {
			return name, v
		}
	}
	return names[0], nil
}

// int returns the whole number from 0 to 1e9 under the first of several names that is present, 0 if
// there is none. A list of equal numbers, one per layer, counts as that number.
func (c *config) int(names ...string) int {
	field, v := c.get(names...)
	if list, ok := v.([]any); ok && len(list) > 0 {
		first, _ := list[0].(json.Number)
		for _, item := range list {
			if n, _ := item.(json.Number); n != first {
				c.fail(field, "layers of unequal width are not supported")
				return 0
			}
		}
		v = list[0]
	}
	if v == nil {
		return 0
	}
	n, ok := v.(json.Number)
	x, err := n.Float64()
	if !ok || err != nil || x != math.Trunc(x) || x < 0 || x > 1e9 {
		c.fail(field, "must be a whole number of 0 to 1e9")
		return 0
	}
	return int(x)
}

// requiredInt is int for a field that every model has: it fails if the number is 0 or absent.
func (c *config) requiredInt(names ...string) int {
	n := c.int(names...)
	if n == 0 {
		c.fail(names[0], "missing or 0")
	}
	return n
}

func (c *config) bool(fallback bool, names ...string) bool {
	field, v := c.get(names...)
	b, ok := v.(bool)
	if v != nil && !ok {
		c.fail(field, "must be true or false")
	}
	return pick(ok, b, fallback)
}

// isKind reports whether the model type is one of kinds.
func (c *config) isKind(kinds ...string) bool { return slices.Contains(kinds, c.kind) }

// isVariantOf reports whether the model type is one of kinds or a variant of one:
// qwen3_5_moe_text is a variant of qwen3_5.
func (c *config) isVariantOf(kinds ...string) bool {
	return slices.ContainsFunc(kinds, func(k string) bool { return c.kind == k || strings.HasPrefix(c.kind, k+"_") })
}

// shape returns the dimensions of the model; it stops at the first error.
func (c *config) shape() shape {
	var s shape
	s.Family, s.Source = c.kind, "config.json"
	s.Layers = c.requiredInt("num_hidden_layers", "n_layer", "n_layers", "num_layers")
	s.Hidden = c.requiredInt("hidden_size", "n_embd", "d_model", "dim")
	s.Heads = c.requiredInt("num_attention_heads", "n_head", "n_heads")
	s.Vocab = c.requiredInt("vocab_size", "padded_vocab_size")
	s.Intermediate = c.int("intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner")
	s.MaxPositions = c.int("max_position_embeddings", "n_positions", "seq_length", "max_sequence_length")
	if c.fields["block_configs"] != nil {
		c.fail("block_configs", "layers of unequal shape are not supported")
	}
	if c.err != nil {
		return s
	}
	for _, d := range []struct {
		field    string
		got, max int
	}{{"num_hidden_layers", s.Layers, 1e4}, {"hidden_size", s.Hidden, 1e6}, {"num_attention_heads", s.Heads, 1e5}, {"vocab_size", s.Vocab, 1e8}} {
		if d.got > d.max {
			c.fail(d.field, "%d is more than any model has", d.got)
			return s
		}
	}
	s.HeadDim = cmp.Or(c.int("head_dim", "kv_channels"), s.Hidden/s.Heads)
	s.KVHeads = c.kvHeads(s.Heads)
	s.TiedEmbeddings = c.bool(c.isVariantOf(tiedKinds...), "tie_word_embeddings")
	s.plainFFN, s.positions = c.isKind(plainKinds...), c.isKind("gpt2", "gpt_bigcode", "opt")
	if s.plainFFN && s.Intermediate == 0 {
		s.Intermediate = 4 * s.Hidden
	}
	c.latent(&s)
	c.experts(&s)
	c.layers(&s)
	c.types(&s)
	c.towers(&s)
	c.countable = c.countable && c.int("hidden_size_per_layer_input") == 0 && c.int("num_kv_shared_layers") == 0
	return s
}

// Model types with tied embeddings whose configs omit tie_word_embeddings, and model types whose FFN
// has no gate (transformers, configuration_*.py).
var (
	tiedKinds  = []string{"gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "gpt2", "gpt_bigcode", "opt", "bloom", "falcon", "mpt", "cohere", "cohere2", "starcoder2", "smollm3"}
	plainKinds = []string{"gpt2", "gpt_bigcode", "gpt_neox", "gptj", "opt", "bloom", "falcon", "mpt", "starcoder2", "phi", "nemotron", "nemotron_h"}
)

func (c *config) kvHeads(heads int) int {
	switch {
	case c.isKind("falcon") && !c.bool(false, "new_decoder_architecture"), c.isKind("gpt_bigcode"):
		return pick(c.bool(true, "multi_query"), 1, heads)
	case c.fields["num_key_value_heads"] == nil && c.fields["attn_config"] != nil: // MPT, DBRX
		attn, _ := c.fields["attn_config"].(map[string]any)
		inner := config{fields: attn}
		return cmp.Or(inner.int("kv_n_heads"), heads)
	}
	return cmp.Or(c.int("num_key_value_heads", "num_kv_heads", "multi_query_group_num"), heads)
}

// latent reads the dimensions of latent attention.
func (c *config) latent(s *shape) {
	s.KVLoraRank = c.int("kv_lora_rank")
	if s.KVLoraRank == 0 {
		return
	}
	s.Attention = AttentionMLA
	s.HeadDim = 0
	s.QLoraRank = c.int("q_lora_rank")
	s.QKRopeHeadDim, s.QKNopeHeadDim, s.VHeadDim = c.requiredInt("qk_rope_head_dim"), c.requiredInt("qk_nope_head_dim"), c.requiredInt("v_head_dim")
	s.SparseTopK = c.int("index_topk")
	s.indexHeads, s.indexDim = c.int("index_n_heads"), c.int("index_head_dim")
}

// types reads the types in which the published weights are stored.
func (c *config) types(s *shape) {
	if name, ok := c.fields["dtype"].(string); ok {
		s.NativeDType, _ = ParseDType(name)
	} else if name, ok := c.fields["torch_dtype"].(string); ok {
		s.NativeDType, _ = ParseDType(name)
	}
	_, v := c.get("quantization_config", "compression_config")
	q, ok := v.(map[string]any)
	if !ok {
		return
	}
	base := s.NativeDType
	s.NativeDType = quantizedType(q)
	if s.Experts > 0 && s.NativeDType != base && skipsAttention(q) {
		s.NonExpertDType = base
	}
}

// towers estimates the parameters of the vision encoder of a multi-modal model: four square matrices
// and an FFN per layer, without the projector.
func (c *config) towers(s *shape) {
	tower, ok := c.fields["vision_config"].(map[string]any)
	if !ok {
		return
	}
	v := config{fields: tower}
	h, depth, width := float64(v.int("hidden_size", "embed_dim", "width")), float64(v.int("num_hidden_layers", "depth", "layers")), float64(v.int("intermediate_size"))
	gated := strings.Contains(strings.ToLower(fmt.Sprint(tower["hidden_act"])), "silu")
	count := depth * (4*h*h + pick(gated, 3.0, 2.0)*h*width)
	if v.err == nil && count < 1e12 {
		s.VisionParams = count
	}
}

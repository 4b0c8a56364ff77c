package catalog

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func parseConfig(t *testing.T, name string) Model {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "configs", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := ParseModelConfig(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// knownConfigs lists published configs, reduced to the fields about the shape. params is the number of
// parameters of the text model that transformers builds from the same file, including norms and
// biases.
var knownConfigs = []struct {
	file   string
	params float64
	entry  string // the catalog's entry of that model
	apart  []string
}{
	{"llama-3.1-8b", 8030261248, "meta-llama/Llama-3.1-8B-Instruct", nil},
	{"qwen3-30b-a3b", 30532122624, "Qwen/Qwen3-30B-A3B", nil},
	{"qwen2.5-7b-awq", 7615616512, "Qwen/Qwen2.5-7B-Instruct", []string{"NativeDType"}},
	{"deepseek-v3", 671026404352, "deepseek-ai/DeepSeek-V3", nil},
	{"deepseek-v2-lite", 15706484224, "deepseek-ai/DeepSeek-V2-Lite", nil},
	{"gpt-oss-20b", 20914757184, "openai/gpt-oss-20b", nil},
	{"gemma-3-4b", 3880263168, "google/gemma-3-4b-it", nil},
	{"gemma-3-27b", 27009346304, "google/gemma-3-27b-it", nil},
	{"gemma-2-9b", 9241705984, "google/gemma-2-9b-it", nil},
	{"mixtral-8x7b", 46702792704, "mistralai/Mixtral-8x7B-Instruct-v0.1", nil},
	{"mistral-7b-v0.1", 7241732096, "mistralai/Mistral-7B-Instruct-v0.1", nil},
	{"llama-4-scout", 107769861120, "meta-llama/Llama-4-Scout-17B-16E-Instruct", nil},
	{"llama-4-maverick", 400711848960, "meta-llama/Llama-4-Maverick-17B-128E-Instruct", nil},
	{"qwen3-next-80b", 79674391296, "Qwen/Qwen3-Next-80B-A3B-Instruct", nil},
	{"qwen3.5-35b-a3b", 34660610688, "Qwen/Qwen3.5-35B-A3B", nil},
	{"glm-4.5-air", 106852245504, "zai-org/GLM-4.5-Air", nil},
	{"minimax-m2", 228689748992, "MiniMaxAI/MiniMax-M2", nil},
	{"gemma-4-26b-a4b", 25233141760, "google/gemma-4-26B-A4B-it", nil},
	{"opt-125m", 125239296, "facebook/opt-125m", nil},
}

// TestParseModelConfig checks that a config gives the shape that the catalog has for the model, and
// the number of parameters that transformers counts.
func TestParseModelConfig(t *testing.T) {
	for _, tt := range knownConfigs {
		t.Run(tt.file, func(t *testing.T) {
			got := parseConfig(t, tt.file)
			want, err := Default().FindModel(tt.entry)
			if err != nil {
				t.Fatal(err)
			}
			apart := append([]string{"ID", "Aliases", "Family", "Source", "TotalParams", "ActiveParams", "VisionParams"}, tt.apart...)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Model{}, apart...)); diff != "" {
				t.Errorf("the catalog's entry (-) and the config (+):\n%s", diff)
			}
			if count := got.TotalParams - got.VisionParams; !within(count, tt.params, 0.004) {
				t.Errorf("%.5g parameters, transformers counts %.5g", count, tt.params)
			}
			if !within(got.TotalParams-got.VisionParams, want.TotalParams-want.VisionParams, 0.015) {
				t.Errorf("%.5g parameters, the catalog has %.5g", got.TotalParams-got.VisionParams, want.TotalParams-want.VisionParams)
			}
			// Publishers truncate to whole billions and count one embedding table or two.
			if got.ActiveParams > got.TotalParams || got.Experts > 0 && !within(got.ActiveParams, want.ActiveParams, 0.3) {
				t.Errorf("%.5g active parameters, the catalog has %.5g", got.ActiveParams, want.ActiveParams)
			}
		})
	}
}

// TestParseModelConfigTiny compares the model of the end-to-end tests with a count by hand: eight
// layers of 512*512*2 + 512*256*2 + 3*512*1536, and two tables of 512*512.
func TestParseModelConfigTiny(t *testing.T) {
	want := Model{Family: "llama", TotalParams: 25690112, ActiveParams: 25690112, Layers: 8, Hidden: 512, Heads: 8, KVHeads: 4, HeadDim: 64,
		Intermediate: 1536, Vocab: 512, Attention: AttentionGQA, MaxPositions: 4096, NativeDType: BF16, Source: "config.json"}
	if diff := cmp.Diff(want, parseConfig(t, "tiny")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// llama returns a small config with changes: fields to add, replace or (null) remove.
func llama(changes string) string {
	base := `{"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4,
		"intermediate_size": 1536, "vocab_size": 512, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"`
	return base + pick(changes == "", "", ", ") + changes + "}"
}

func TestParseModelConfigLayers(t *testing.T) {
	layers := func(kinds ...string) string { return `"layer_types": ["` + strings.Join(kinds, `","`) + `"]` }
	s, f, l := "sliding_attention", "full_attention", "linear_attention"
	for _, tt := range []struct {
		name, changes        string
		full, window, linear int // of CacheLayers
		width                int // of the window
	}{
		{"plain", ``, 8, 0, 0, 0},
		{"listed", `"sliding_window": 128, ` + layers(s, f, s, f, s, f, s, f), 4, 4, 0, 128},
		{"listed, none slide", `"sliding_window": 128, ` + layers(f, f, f, f, f, f, f, f), 8, 0, 0, 0},
		{"listed, no window given", layers(s, f, s, f, s, f, s, f), 8, 0, 0, 0},
		{"listed, linear", layers(l, l, l, f, l, l, l, f), 2, 0, 6, 0},
		{"listed, conv", layers("conv", "conv", f, "conv", "conv", f, "conv", f), 3, 0, 5, 0},
		{"listed, of a kind to come", layers("novel", f, f, f, f, f, f, f), 8, 0, 0, 0},
		{"longer list", `"num_hidden_layers": 2, "sliding_window": 16, ` + layers(s, f, s, f), 1, 1, 0, 16},
		{"mistral slides everywhere", `"model_type": "mistral", "sliding_window": 1024`, 0, 8, 0, 1024},
		{"window as wide as the context", `"model_type": "mistral", "sliding_window": 4096`, 8, 0, 0, 0},
		{"qwen2 says no", `"model_type": "qwen2", "use_sliding_window": false, "sliding_window": 1024, "max_window_layers": 2`, 8, 0, 0, 0},
		{"qwen2 says nothing", `"model_type": "qwen2", "sliding_window": 1024, "max_window_layers": 2`, 8, 0, 0, 0},
		{"qwen2 slides in the upper layers", `"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 1024, "max_window_layers": 6`, 6, 2, 0, 1024},
		{"pattern", `"model_type": "cohere2", "sliding_window": 1024, "sliding_window_pattern": 4`, 2, 6, 0, 1024},
		{"letters", `"model_type": "exaone4", "sliding_window": 1024, "sliding_window_pattern": "LLLG"`, 2, 6, 0, 1024},
		{"gemma2 without a pattern", `"model_type": "gemma2", "sliding_window": 1024`, 4, 4, 0, 1024},
		{"gemma3 without a pattern", `"model_type": "gemma3_text", "sliding_window": 1024`, 1, 7, 0, 1024},
		{"llama4 chunks", `"model_type": "llama4_text", "attention_chunk_size": 1024`, 2, 6, 0, 1024},
		{"interval", `"full_attention_interval": 4`, 2, 0, 6, 0},
		{"nemotron-h", `"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*M-M*"`, 2, 0, 4, 0},
		{"an unknown type with a window", `"model_type": "novel", "sliding_window": 1024`, 8, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ParseModelConfig(strings.NewReader(llama(tt.changes)))
			if err != nil {
				t.Fatal(err)
			}
			full, window, linear := m.CacheLayers()
			if full != tt.full || window != tt.window || linear != tt.linear || m.SlidingWindow != tt.width {
				t.Errorf("%d full, %d of %d tokens, %d linear; want %d, %d of %d, %d", full, window, m.SlidingWindow, linear, tt.full, tt.window, tt.width, tt.linear)
			}
			if hybrid := window+linear > 0; hybrid != (m.Attention == AttentionHybrid) {
				t.Errorf("attention %q", m.Attention)
			}
			if known := linear == 0; known != (m.TotalParams > 0) {
				t.Errorf("%v parameters counted with %d linear layers of unknown width", m.TotalParams, linear)
			}
		})
	}
}

func TestParseModelConfigExperts(t *testing.T) {
	for _, tt := range []struct {
		name, changes                      string
		dense, width, shared, intermediate int
	}{
		{"mixtral", `"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2`, 0, 1536, 0, 0},
		{"one expert is dense", `"num_experts": 1`, 0, 0, 0, 1536},
		{"first dense", `"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "first_k_dense_replace": 3, "n_shared_experts": 2`, 3, 64, 128, 1536},
		{"every second", `"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "decoder_sparse_step": 2, "shared_expert_intermediate_size": 256`, 4, 64, 256, 1536},
		{"named dense", `"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "mlp_only_layers": [0, 7]`, 2, 64, 0, 1536},
		{"flags", `"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "moe_layer_freq": [0, 0, 1, 1, 1, 1, 1, 1]`, 2, 64, 0, 1536},
		{"kinds", `"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "mlp_layer_types": ["dense","sparse","sparse","sparse","sparse","sparse","sparse","sparse"]`, 1, 64, 0, 1536},
		{"llama4", `"model_type": "llama4_text", "num_local_experts": 8, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "intermediate_size_mlp": 3072`, 4, 1536, 1536, 3072},
		{"llama4, listed", `"model_type": "llama4_text", "num_local_experts": 8, "num_experts_per_tok": 1, "moe_layers": [1, 3], "intermediate_size_mlp": 3072`, 6, 1536, 1536, 3072},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ParseModelConfig(strings.NewReader(llama(tt.changes)))
			if err != nil {
				t.Fatal(err)
			}
			if m.DenseLayers != tt.dense || m.ExpertWidth != tt.width || m.SharedWidth != tt.shared || m.Intermediate != tt.intermediate {
				t.Errorf("dense layers %d, expert width %d, shared %d, intermediate %d; want %d, %d, %d, %d",
					m.DenseLayers, m.ExpertWidth, m.SharedWidth, m.Intermediate, tt.dense, tt.width, tt.shared, tt.intermediate)
			}
		})
	}
}

func TestParseModelConfigQuantization(t *testing.T) {
	compressed := func(weights string, more string) string {
		return `{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"], "weights": ` + weights + `}}` + more + `}`
	}
	moe := `, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64`
	for _, tt := range []struct {
		name, changes string
		want, rest    DType
	}{
		{"none", ``, BF16, ""},
		{"new spelling", `"torch_dtype": null, "dtype": "float16"`, FP16, ""},
		{"fp8", `"quantization_config": {"quant_method": "fp8"}`, FP8, ""},
		{"awq", `"quantization_config": {"quant_method": "awq", "bits": 4}`, INT4, ""},
		{"awq, other spelling", `"quantization_config": {"quant_method": "awq", "w_bit": 4}`, INT4, ""},
		{"gptq 8", `"quantization_config": {"quant_method": "gptq", "bits": 8}`, INT8, ""},
		{"gptq 3", `"quantization_config": {"quant_method": "gptq", "bits": 3}`, "", ""},
		{"bitsandbytes 4", `"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true, "load_in_8bit": false}`, INT4, ""},
		{"bitsandbytes 8", `"quantization_config": {"quant_method": "bitsandbytes", "_load_in_8bit": true}`, INT8, ""},
		{"compressed-tensors int4", `"quantization_config": ` + compressed(`{"num_bits": 4, "type": "int", "group_size": 128}`, ``), INT4, ""},
		{"compressed-tensors int8", `"quantization_config": ` + compressed(`{"num_bits": 8, "type": "int"}`, ``), INT8, ""},
		{"compressed-tensors fp8", `"quantization_config": ` + compressed(`{"num_bits": 8, "type": "float"}`, ``), FP8, ""},
		{"compressed-tensors nvfp4", `"quantization_config": ` + compressed(`{"num_bits": 4, "type": "float", "group_size": 16}`, `, "format": "nvfp4-pack-quantized"`), NVFP4, ""},
		{"compressed-tensors mxfp4", `"quantization_config": ` + compressed(`{"num_bits": 4, "type": "float", "group_size": 32}`, ``), MXFP4, ""},
		{"compression_config", `"compression_config": ` + compressed(`{"num_bits": 8, "type": "int"}`, ``), INT8, ""},
		{"int4 experts", `"quantization_config": ` + compressed(`{"num_bits": 4, "type": "int", "group_size": 32}`, `, "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"]`) + moe, INT4, BF16},
		{"modelopt fp4", `"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}`, NVFP4, ""},
		{"modelopt fp4 experts", `"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["model.layers.*.self_attn*"]}` + moe, NVFP4, BF16},
		{"modelopt fp8", `"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}`, FP8, ""},
		{"modelopt w4a16", `"quantization_config": {"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"}`, INT4, ""},
		{"quark fp8", `"quantization_config": {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}`, FP8, ""},
		{"quark mxfp4", `"quantization_config": {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}`, MXFP4, ""},
		{"mxfp4 experts", `"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}` + moe, MXFP4, BF16},
		{"auto-round", `"quantization_config": {"quant_method": "auto-round", "bits": 4}`, INT4, ""},
		{"a method to come", `"quantization_config": {"quant_method": "novel"}`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ParseModelConfig(strings.NewReader(llama(tt.changes)))
			if err != nil {
				t.Fatal(err)
			}
			if m.NativeDType != tt.want || m.NonExpertDType != tt.rest {
				t.Errorf("weights %q, outside the experts %q; want %q, %q", m.NativeDType, m.NonExpertDType, tt.want, tt.rest)
			}
		})
	}
}

func TestParseModelConfigRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", "config.json: EOF"},
		{"null", "null", "config.json: num_hidden_layers: missing or 0"},
		{"a list", "[]", "config.json: json: cannot unmarshal array"},
		{"cut off", `{"model_type": "llama"`, "config.json: unexpected EOF"},
		{"HTML", "<html>", "config.json: invalid character '<'"},
		{"two values", llama("") + "{}", "config.json: more than one value"},
		{"no layers", `{"model_type": "llama"}`, "config.json: num_hidden_layers: missing or 0"},
		{"no vocabulary", `{"hidden_size": 1, "num_hidden_layers": 1, "num_attention_heads": 1}`, "config.json: vocab_size: missing or 0"},
		{"text for a number", llama(`"hidden_size": "512"`), "config.json: hidden_size: must be a whole number of 0 to 1e9"},
		{"fraction", llama(`"num_key_value_heads": 1.5`), "config.json: num_key_value_heads: must be a whole number of 0 to 1e9"},
		{"negative", llama(`"head_dim": -1`), "config.json: head_dim: must be a whole number of 0 to 1e9"},
		{"beyond any float", llama(`"vocab_size": 1e999`), "config.json: vocab_size: must be a whole number of 0 to 1e9"},
		{"absurd", llama(`"num_hidden_layers": 1000000`), "config.json: num_hidden_layers: 1000000 is more than any model has"},
		{"not a switch", llama(`"tie_word_embeddings": "yes"`), "config.json: tie_word_embeddings: must be true or false"},
		{"more experts than there are", llama(`"num_experts": 8, "num_experts_per_tok": 9`), "config.json: num_experts_per_tok: 9 of 8 experts"},
		{"no experts a token", llama(`"num_experts": 8`), "config.json: num_experts_per_tok: 0 of 8 experts"},
		{"short list of layers", llama(`"layer_types": ["full_attention"]`), "config.json: layer_types: 1 entries for 8 layers"},
		{"latent attention half given", llama(`"kv_lora_rank": 512`), "config.json: qk_rope_head_dim: missing or 0"},
		{"a list of lists", llama(`"hidden_size": [[512], [512]]`), "config.json: hidden_size: must be a whole number of 0 to 1e9"},
		{"unequal layers", llama(`"intermediate_size": [1, 2]`), "config.json: intermediate_size: layers of unequal width are not supported"},
		{"pruned blocks", llama(`"block_configs": []`), "config.json: block_configs: layers of unequal shape are not supported"},
		{"too large", strings.Repeat(" ", maxConfig+1), fmt.Sprintf("config.json: larger than %d bytes", maxConfig)},
	} {
		_, err := ParseModelConfig(strings.NewReader(tt.in))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	broken := errors.New("disk gone")
	if _, err := ParseModelConfig(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a failing reader: %v", err)
	}
}

func FuzzParseModelConfig(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "configs", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal("no configs", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(llama(`"layer_types": [null], "sliding_window_pattern": "L"`)))
	f.Add([]byte(llama(`"text_config": {"text_config": {}}, "num_local_experts": 2, "moe_layer_freq": []`)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := ParseModelConfig(strings.NewReader(string(raw)))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "config.json: ") {
				t.Errorf("%v", err)
			}
			return
		}
		full, window, linear := m.CacheLayers()
		for what, n := range map[string]int{"layers": m.Layers, "hidden": m.Hidden, "heads": m.Heads, "kv heads": m.KVHeads, "vocab": m.Vocab} {
			if n <= 0 {
				t.Errorf("%s %d", what, n)
			}
		}
		if full < 0 || window < 0 || linear < 0 || m.DenseLayers < 0 || m.DenseLayers > m.Layers {
			t.Errorf("%d full, %d windowed, %d linear, %d dense of %d layers", full, window, linear, m.DenseLayers, m.Layers)
		}
		if m.TotalParams < 0 || m.ActiveParams < 0 || math.IsNaN(m.TotalParams) || math.IsInf(m.TotalParams, 0) || m.ActiveParams > m.TotalParams {
			t.Errorf("%v parameters, %v active", m.TotalParams, m.ActiveParams)
		}
	})
}

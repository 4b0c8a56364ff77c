package catalog

import (
	"errors"
	"strings"
	"testing"
)

func TestFindModel(t *testing.T) {
	const ambiguous, none = "ambiguous", "unknown"
	for _, tt := range []struct{ name, want string }{
		// IDs, repacks by other publishers, paths, short names.
		{"meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"},
		{"meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"},
		{"meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"},
		{"nvidia/Llama-3.3-70B-Instruct-FP4", "meta-llama/Llama-3.3-70B-Instruct"},
		{"nvidia/Llama-3_3-70B-Instruct-NVFP4", "meta-llama/Llama-3.3-70B-Instruct"},
		{"RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "meta-llama/Llama-3.1-8B-Instruct"},
		{"neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B-Instruct"},
		{"neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w4a16", "meta-llama/Llama-3.1-70B-Instruct"},
		{"hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "meta-llama/Llama-3.1-70B-Instruct"},
		{"amd/Llama-3.1-70B-Instruct-FP8-KV", "meta-llama/Llama-3.1-70B-Instruct"},
		{"amd/Llama-3.3-70B-Instruct-MXFP4-Preview", "meta-llama/Llama-3.3-70B-Instruct"},
		{"Qwen/Qwen2.5-72B-Instruct-AWQ", "Qwen/Qwen2.5-72B-Instruct"},
		{"Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-72B-Instruct"},
		{"unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "meta-llama/Llama-3.1-8B-Instruct"},
		{"unsloth/Qwen3-8B-unsloth-bnb-4bit", "Qwen/Qwen3-8B"},
		{"nvidia/DeepSeek-R1-0528-FP4", "deepseek-ai/DeepSeek-R1"},
		{"nvidia/DeepSeek-R1-0528-NVFP4-v2", "deepseek-ai/DeepSeek-R1"},
		{"deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3"},
		{"deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-ai/DeepSeek-V3.2"},
		{"Qwen3-30B-A3B-Instruct-2507-FP8", "Qwen/Qwen3-30B-A3B-Instruct-2507"},
		{"Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen/Qwen3-30B-A3B-Instruct-2507"},
		{"Qwen/Qwen3-Coder-30B-A3B-Instruct", "Qwen/Qwen3-Coder-30B-A3B-Instruct"},
		{"Qwen/Qwen2.5-Coder-32B-Instruct", "Qwen/Qwen2.5-32B-Instruct"},
		{"Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-8B-Instruct"},
		{"/models/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"},
		{"/models/Llama-3.1-8B-Instruct/", "meta-llama/Llama-3.1-8B-Instruct"},
		{"s3://bucket/weights/Qwen3-32B/main", "Qwen/Qwen3-32B"},
		{"/root/.cache/huggingface/hub/models--meta-llama--Llama-3.1-8B-Instruct/snapshots/0e9e39f249a16976918f6564b8830bc894c89659", "meta-llama/Llama-3.1-8B-Instruct"},
		{"Llama-3.2-3B-Instruct-Q4_K_M.gguf", "meta-llama/Llama-3.2-3B-Instruct"},
		{"Llama-3.2-3B-Instruct-Q8_0.gguf", "meta-llama/Llama-3.2-3B-Instruct"},
		{"llama-3.1-8b", "meta-llama/Llama-3.1-8B-Instruct"}, {"llama-3-1-8b", "meta-llama/Llama-3.1-8B-Instruct"}, {"llama3.1:8b", "meta-llama/Llama-3.1-8B-Instruct"},
		{"Qwen3-32B", "Qwen/Qwen3-32B"}, {"qwen3:30b-a3b", "Qwen/Qwen3-30B-A3B"}, {"Qwen3-30B", "Qwen/Qwen3-30B-A3B"},
		{"Llama-2-7B", "meta-llama/Llama-2-7b-hf"}, {"Mixtral-8x7B", "mistralai/Mixtral-8x7B-Instruct-v0.1"}, {"gpt-oss-20b", "openai/gpt-oss-20b"},
		{"phi-4", "microsoft/phi-4"}, {"kimi-k2", "moonshotai/Kimi-K2-Instruct"}, {"mistral-nemo", "mistralai/Mistral-Nemo-Instruct-2407"},
		{"DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1"}, {"Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-8B-Instruct"},
		{"Qwen3-235B-A22B-Instruct-2601", "Qwen/Qwen3-235B-A22B"}, // a release newer than the catalog

		// As tables of models have them; of a size that several releases have, the release has to be named.
		{"Llama 4 Maverick", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"},
		{"Llama 4 Scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct"}, {"Llama 3 405B", "meta-llama/Llama-3.1-405B-Instruct"},
		{"Llama 3 70B", "meta-llama/Meta-Llama-3-70B-Instruct"}, {"Llama 3 8B", "meta-llama/Meta-Llama-3-8B-Instruct"},
		{"Nemotron 70B", "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF"}, {"Nemotron 8B", "nvidia/Llama-3.1-Nemotron-Nano-8B-v1"},
		{"Qwen3 235B", "Qwen/Qwen3-235B-A22B"}, {"Qwen3 72B", none}, {"Qwen3 32B", "Qwen/Qwen3-32B"},
		{"Qwen3 30B", "Qwen/Qwen3-30B-A3B"}, {"Qwen3 14B", "Qwen/Qwen3-14B"}, {"Qwen3 7B", none},
		{"Qwen2.5 72B", "Qwen/Qwen2.5-72B-Instruct"}, {"Qwen2.5 32B", "Qwen/Qwen2.5-32B-Instruct"},
		{"Qwen2.5 14B", "Qwen/Qwen2.5-14B-Instruct"}, {"Qwen2.5 7B", "Qwen/Qwen2.5-7B-Instruct"}, {"DeepSeek 671B", ambiguous},
		{"DeepSeek R1", "deepseek-ai/DeepSeek-R1"}, {"DeepSeek V3", "deepseek-ai/DeepSeek-V3"},
		{"DeepSeek 70B", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B"}, {"DeepSeek 7B", "deepseek-ai/deepseek-llm-7b-chat"},
		{"Mistral Large 675B", "mistralai/Mistral-Large-3-675B-Instruct-2512"},
		{"Mistral Large 123B", "mistralai/Mistral-Large-Instruct-2407"}, {"Mixtral 8x22B", "mistralai/Mixtral-8x22B-Instruct-v0.1"},
		{"Mixtral 8x7B", "mistralai/Mixtral-8x7B-Instruct-v0.1"}, {"Mistral 7B", ambiguous}, {"Gemma 27B", ambiguous},
		{"Gemma 9B", "google/gemma-2-9b-it"}, {"Kimi K2", "moonshotai/Kimi-K2-Instruct"}, {"GLM 744B", "zai-org/GLM-5"},
		{"GLM 32B", "zai-org/GLM-4-32B-0414"}, {"Phi 4 32B", none}, {"Phi 4 14B", "microsoft/phi-4"},

		// Several names with the same shape: any of them is correct.
		{"llama-8b", "meta-llama/Meta-Llama-3-8B-Instruct"},

		// Distilled models and their teachers.
		{"deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1"},
		{"DeepSeek-R1-Distill-Qwen-7B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"},
		{"DeepSeek-R1-Distill-Llama-70B-FP8-dynamic", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B"},
		{"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B"},
		{"deepseek-1.5b", none}, {"DeepSeek-R1-7B", none}, {"DeepSeek-R1-Distill-Qwen-3B", none},

		// Versions and sizes must agree.
		{"Qwen3-72B", none}, {"Qwen3-7B", none}, {"Qwen2.5-8B", none}, {"Llama-3.5-8B", none}, {"Llama-3.1-7B", none}, {"Llama-3.1-80B", none}, {"phi-4-32b", none}, {"phi-5", none},
		{"Mixtral-7B", none}, {"Qwen3-8B-VL-Embedding", none},

		// Several shapes.
		{"llama-70b", ambiguous}, {"qwen-7b", ambiguous}, {"gemma-27b", ambiguous}, {"mistral-7b", ambiguous}, {"glm-4.7", "zai-org/GLM-4.7"}, {"command-r", ambiguous},

		// A family or a word of a name is not a name.
		{"qwen", none}, {"deepseek", none}, {"llama", none}, {"next", none}, {"/dev/zero", none}, {"small", none},

		// Fine-tunes and other models that are not in the catalog.
		{"my-company/support-bot", none}, {"NousResearch/Hermes-3-Llama-3.1-8B", none}, {"acme/Llama-3.1-8B-Instruct-my-lora", none},
		{"Qwen/Qwen3-Embedding-8B", none}, {"nvidia/Llama-3_3-Nemotron-Super-49B-v1", none}, {"/mnt/models", none}, {"8b", none}, {"model", none}, {"", none}, {"///", none}, {"qwen38", none},
	} {
		got, err := Default().FindModel(tt.name)
		var several *AmbiguousError
		switch tt.want {
		case ambiguous:
			if !errors.As(err, &several) || len(several.Candidates) < 2 {
				t.Errorf("FindModel(%q) = %q, %v, want ambiguous", tt.name, got.ID, err)
			}
		case none:
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("FindModel(%q) = %q, %v, want unknown", tt.name, got.ID, err)
			}
		default:
			if err != nil || got.ID != tt.want {
				t.Errorf("FindModel(%q) = %q, %v, want %q", tt.name, got.ID, err, tt.want)
			}
		}
	}
}

// TestEveryModelFindsItself checks that an ID or alias matches its own entry, with or without
// publisher and quantization.
func TestEveryModelFindsItself(t *testing.T) {
	for _, m := range Default().Models() {
		for _, name := range append([]string{m.ID}, m.Aliases...) {
			_, base, _ := strings.Cut(name, "/")
			for _, spelling := range []string{name, strings.ToLower(name), base, "/models/" + base, name + "-FP8", "x/" + base + "-quantized.w4a16", "x/" + base + "-AWQ"} {
				if base == "" {
					continue
				}
				got, err := Default().FindModel(spelling)
				if err != nil || got.ID != m.ID {
					t.Errorf("FindModel(%q) = %q, %v, want %q", spelling, got.ID, err, m.ID)
				}
			}
		}
	}
}

package catalog

import "testing"

func TestParseDType(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want DType
	}{
		{"bfloat16", BF16}, {"bf16", BF16}, {"torch.bfloat16", BF16}, {"BFloat16", BF16}, {"half", FP16}, {"float16", FP16}, {"fp16", FP16},
		{"float", FP32}, {"float32", FP32}, {"fp8", FP8}, {"fp8_e4m3", FP8}, {"fp8-e4m3", FP8}, {"fp8_e5m2", FP8}, {"fp8_inc", FP8}, {"fp8_ds_mla", FP8},
		{"fp8_per_token_head", FP8}, {"float8_e4m3fn", FP8}, {"int8", INT8}, {"int8_per_token_head", INT8}, {"int4_per_token_head", INT4},
		{"nvfp4", NVFP4}, {"nvfp4_4over6", NVFP4}, {"mxfp4", MXFP4}, {" bf16 ", BF16},
		{"auto", ""}, {"", ""}, {"turboquant_k8v4", ""}, {"float64", ""}, {"awq", ""},
	} {
		got, ok := ParseDType(tt.in)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("ParseDType(%q) = %q, %v, want %q", tt.in, got, ok, tt.want)
		}
		if ok && got.Bytes() == 0 {
			t.Errorf("ParseDType(%q) = %q, which has no size", tt.in, got)
		}
	}
}

func TestDTypeOfName(t *testing.T) {
	for _, tt := range []struct {
		name   string
		want   DType
		method string
	}{
		{"Qwen/Qwen3-32B-FP8", FP8, "fp8"},
		{"meta-llama/Llama-3.1-405B-Instruct-FP8", FP8, ""},
		{"RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", FP8, "compressed-tensors"},
		{"someone/Qwen3-8B-FP8-Dynamic", FP8, "compressed-tensors"},
		{"nvidia/Llama-3.1-8B-Instruct-FP8", FP8, "modelopt"},
		{"amd/Llama-3.1-70B-Instruct-FP8-KV", FP8, "quark"},
		{"nvidia/Llama-3.3-70B-Instruct-FP4", NVFP4, "modelopt_fp4"},
		{"nvidia/Qwen3-30B-A3B-NVFP4", NVFP4, "modelopt_fp4"},
		{"RedHatAI/Llama-3.3-70B-Instruct-NVFP4", NVFP4, "compressed-tensors"},
		{"x/Llama-3.3-70B-NVFP4", NVFP4, ""},
		{"amd/DeepSeek-R1-MXFP4-Preview", MXFP4, "quark"},
		{"x/gpt-oss-20b-MXFP4", MXFP4, "mxfp4"},
		{"Qwen/Qwen2.5-72B-Instruct-AWQ", INT4, "awq"},
		{"Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", INT4, "gptq"},
		{"Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", INT8, "gptq"},
		{"TheBloke/Llama-2-7B-Chat-GPTQ", INT4, "gptq"},
		{"neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w4a16", INT4, "compressed-tensors"},
		{"RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", INT8, "compressed-tensors"},
		{"RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w8a16", INT8, "compressed-tensors"},
		{"/models/Qwen3-8B-W8A8-FP8", FP8, "compressed-tensors"},
		{"unsloth/Qwen3-8B-unsloth-bnb-4bit", INT4, "bitsandbytes"},
		{"x/Llama-3.1-8B-bnb-8bit", INT8, "bitsandbytes"},
		{"Intel/Qwen3-8B-int4-AutoRound", INT4, "inc"},
		{"x/Qwen3-8B-4bit", INT4, ""},
		{"x/Qwen3-8B-INT8", INT8, ""},
		{"bartowski/Llama-3.2-3B-Instruct-Q4_K_M.gguf", INT4, "gguf"},
		{"Llama-3.2-3B-Instruct-Q8_0.gguf", INT8, "gguf"},
		{"Llama-3.2-3B-Instruct-IQ4_XS.gguf", INT4, "gguf"},
		{"unsloth/gpt-oss-20b-BF16", BF16, ""},
		{"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", BF16, ""},
		{"/root/.cache/huggingface/hub/models--nvidia--DeepSeek-R1-0528-FP4/snapshots/0e9e39f249a16976918f6564b8830bc894c89659", NVFP4, "modelopt_fp4"},
	} {
		got, method, ok := DTypeOfName(tt.name)
		if got != tt.want || method != tt.method || !ok {
			t.Errorf("DTypeOfName(%q) = %q, %q, %v, want %q, %q", tt.name, got, method, ok, tt.want, tt.method)
		}
	}
	for _, tt := range []struct{ name, method string }{
		{"meta-llama/Llama-3.1-8B-Instruct", ""}, {"deepseek-ai/DeepSeek-V3", ""}, {"Qwen/Qwen3-8B", ""}, {"", ""},
		{"my-fp8ish-model", ""},
		{"bartowski/Llama-3.2-3B-Instruct-Q5_K_M.gguf", "gguf"}, {"bartowski/Llama-3.2-3B-Instruct-GGUF", "gguf"},
	} {
		if got, method, ok := DTypeOfName(tt.name); ok || got != "" || method != tt.method {
			t.Errorf("DTypeOfName(%q) = %q, %q, %v, want none and method %q", tt.name, got, method, ok, tt.method)
		}
	}
}

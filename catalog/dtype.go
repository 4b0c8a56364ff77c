package catalog

import (
	"slices"
	"strings"
)

// dtypeSpellings maps the spellings of vLLM's --dtype and --kv-cache-dtype, of torch and of
// config.json to storage types. "auto" and formats without a DType (turboquant) are omitted on
// purpose.
var dtypeSpellings = map[string]DType{
	"float32": FP32, "float": FP32, "fp32": FP32, "f32": FP32,
	"bfloat16": BF16, "bf16": BF16,
	"float16": FP16, "half": FP16, "fp16": FP16, "f16": FP16,
	"fp8": FP8, "fp8_e4m3": FP8, "fp8_e5m2": FP8, "fp8_inc": FP8, "fp8_ds_mla": FP8,
	"fp8_e4m3fn": FP8, "fp8_e4m3fnuz": FP8, "fp8_e5m2fnuz": FP8, "fp8_per_token_head": FP8,
	"fp8_per_tensor": FP8, "fp8_per_block": FP8, "fp8_per_channel": FP8, "mxfp8": FP8,
	"float8": FP8, "float8_e4m3fn": FP8, "float8_e4m3fnuz": FP8, "float8_e5m2": FP8, "float8_e4m3": FP8,
	"int8": INT8, "int8_per_token_head": INT8,
	"int4": INT4, "int4_per_token_head": INT4, "uint4": INT4, "nf4": INT4,
	"mxfp4": MXFP4,
	"nvfp4": NVFP4, "nvfp4_ds_mla": NVFP4, "nvfp4_4over6": NVFP4,
}

// ParseDType returns the type that vLLM's flags, torch or a config.json spell as s: "bfloat16",
// "half", "fp8_e4m3", "torch.float16". It returns false for "auto" and unknown spellings.
func ParseDType(s string) (DType, bool) {
	s = strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "torch."), "-", "_")
	d, ok := dtypeSpellings[s]
	return d, ok
}

// DTypeOfName returns the storage type of the weights that a model's name or path states:
// "…-FP8-dynamic", "…-AWQ", "…quantized.w4a16", "…-bnb-4bit". method is vLLM's name of the
// quantization if name and publisher determine it, else "". ok is false if the name states no type,
// or one that DType does not have (GGUF with three, five or six bits); method is then still
// returned.
func DTypeOfName(name string) (d DType, method string, ok bool) {
	org, tokens := nameTokens(name)
	has := func(want ...string) bool {
		return slices.ContainsFunc(want, func(w string) bool { return slices.Contains(tokens, w) })
	}
	packed := publisherMethods[org]
	eight := has("int8", "8bit", "w8a16", "w8a8")
	compressed := "compressed-tensors"
	if packed != "" && packed != compressed {
		compressed = packed
	}
	switch {
	case has("gguf") || slices.ContainsFunc(tokens, ggufWidth):
		return ggufDType(tokens)
	case has("awq"):
		return pick(eight, INT8, INT4), "awq", true
	case has("gptq"):
		return pick(eight, INT8, INT4), "gptq", true
	case has("bnb", "bitsandbytes"):
		return pick(eight, INT8, INT4), "bitsandbytes", true
	case has("w4a16", "w4a8", "w4afp8"):
		return INT4, compressed, true
	case has("w8a16"):
		return INT8, compressed, true
	case has("w8a8") && has("fp8", "fp"):
		return FP8, compressed, true
	case has("w8a8"):
		return INT8, compressed, true
	case has("nvfp4", "fp4", "nvfp4a16"):
		return NVFP4, pick(packed == "modelopt", "modelopt_fp4", packed), true
	case has("mxfp4"):
		return MXFP4, pick(has("oss"), "mxfp4", packed), true
	case has("fp8", "mxfp8", "float8"):
		if has("dynamic") && packed == "" {
			packed = "compressed-tensors" // llm-compressor's name for the scheme
		}
		return FP8, packed, true
	case has("int4", "4bit", "nf4"):
		return INT4, pick(has("autoround"), "inc", ""), true
	case has("int8", "8bit"):
		return INT8, "", true
	case has("bf16", "bfloat16"):
		return BF16, "", true
	case has("fp16", "float16"):
		return FP16, "", true
	}
	return "", "", false
}

// publisherMethods maps publishers whose quantized models have one format to vLLM's name of it.
var publisherMethods = map[string]string{
	"nvidia":      "modelopt",
	"redhatai":    "compressed-tensors",
	"neuralmagic": "compressed-tensors",
	"nm-testing":  "compressed-tensors",
	"amd":         "quark",
	"qwen":        "fp8",
	"deepseek-ai": "fp8",
	"zai-org":     "fp8",
}

// pick returns a if first is true, else b.
func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// ggufWidth reports whether t is a width as in the names of GGUF files: q4, iq4.
func ggufWidth(t string) bool { return ggufBits(t) != 0 }

func ggufBits(t string) byte {
	t = strings.TrimPrefix(t, "i")
	if len(t) != 2 || t[0] != 'q' || t[1] < '1' || t[1] > '8' {
		return 0
	}
	return t[1]
}

func ggufDType(tokens []string) (DType, string, bool) {
	for _, t := range tokens {
		switch ggufBits(t) {
		case 0:
		case '4':
			return INT4, "gguf", true
		case '8':
			return INT8, "gguf", true
		default:
			return "", "gguf", false
		}
	}
	switch {
	case slices.Contains(tokens, "bf16"):
		return BF16, "gguf", true
	case slices.Contains(tokens, "f16"), slices.Contains(tokens, "fp16"):
		return FP16, "gguf", true
	}
	return "", "gguf", false
}

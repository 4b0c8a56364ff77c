package catalog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// modelNoise lists tokens that do not affect a model's shape.
var modelNoise = strings.Fields(`meta nvidia instruct instruction chat it hf base pt preview latest model official
	unsloth redhatai neuralmagic thebloke bartowski lmstudio community mlx text`)

// quantNoise lists tokens of quantized repacks. Some have a meaning only next to another of them
// (dynamic, block, tensor), but none names a model.
var quantNoise = strings.Fields(`fp8 fp4 nvfp4 nvfp4a16 mxfp4 mxfp8 float8 fp16 bf16 bfloat16 float16 int4 int8 nf4
	awq gptq bnb bitsandbytes 4bit 8bit w4a16 w8a8 w8a16 w4a8 w4afp8 w4a4 gguf f16 ud quantized quant quants dynamic static
	block channel per weight weights tensor tensors compressed asym sym g128 128g g32 32g autoround hqq ptq marlin quark`)

// nameTokens returns the publisher ("" if the name has none) and the tokens of the model's own name.
// The name may be a Hugging Face ID, a local path, a path into the Hugging Face cache, or a served
// name.
func nameTokens(name string) (org string, tokens []string) {
	org, base := modelBase(name)
	return org, tokenize(base)
}

// modelBase returns the publisher in lower case, "" if there is none, and the part of a name or path
// that names the model.
func modelBase(name string) (org, base string) {
	name = strings.TrimSpace(name)
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
	for _, p := range slices.Backward(parts) {
		if id, ok := strings.CutPrefix(p, "models--"); ok {
			org, base, ok := strings.Cut(id, "--")
			if !ok {
				return "", org
			}
			return strings.ToLower(org), base
		}
	}
	for len(parts) > 1 && genericDir(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	switch n := len(parts); {
	case n == 0:
		return "", ""
	case n == 2 && name[0] != '/' && name[0] != '.' && name[0] != '~':
		return strings.ToLower(parts[0]), parts[1]
	default:
		return "", parts[n-1]
	}
}

// genericDir reports whether a directory does not name its model: a revision, "snapshots" and the
// like.
func genericDir(dir string) bool {
	switch strings.ToLower(dir) {
	case "main", "latest", "snapshots", "model", "models", "weights", "checkpoint", "hf", "default":
		return true
	}
	if _, err := strconv.Atoi(dir); err == nil {
		return true
	}
	hex := strings.Trim(strings.ToLower(dir), "0123456789abcdef") == ""
	return hex && len(dir) >= 32
}

// modelKeys returns the keys of a model's name: its words as they are, and without tuning and quantization.
func modelKeys(name string) []string {
	_, fields := nameTokens(name)
	var plain []string
	quant := false // the previous token belonged to a quantization
	for _, t := range fields {
		quant = quantToken(t) || quant && quantTail(t)
		if !quant && !slices.Contains(modelNoise, t) {
			plain = append(plain, t)
		}
	}
	keys := []string{joinModelKey(fields), joinModelKey(plain)}
	return slices.Compact(slices.DeleteFunc(keys, func(key string) bool { return key == "" }))
}

// undated returns a model's name without release dates and context lengths.
func undated(name string) string {
	_, fields := nameTokens(name)
	return strings.Join(slices.DeleteFunc(fields, func(t string) bool { return dateToken(t) || contextToken(t) }), " ")
}

// familyVersion is a family that is written together with its version: llama3.1, qwen2.5, phi4. A single
// letter with a number stays one word (r1, v3, k2).
var familyVersion = regexp.MustCompile(`\b([a-z]{2,})(\d)`)

// joinModelKey joins tokens such that llama3.1:8b, llama-3-1-8b and Llama-3_1-8B are the same.
func joinModelKey(tokens []string) string {
	return familyVersion.ReplaceAllString(strings.ReplaceAll(strings.Join(tokens, "-"), ".", "-"), "$1-$2")
}

func quantToken(t string) bool { return slices.Contains(quantNoise, t) || ggufWidth(t) }

// quantTail reports whether t is part of a quantization if it follows a token of one: Q4_K_M, FP8-KV,
// NVFP4-v2.
func quantTail(t string) bool {
	switch t {
	case "k", "m", "s", "l", "xl", "xs", "xxs", "0", "1", "kv", "v2", "nl":
		return true
	}
	return false
}

// contextToken reports whether t is a context length: 128k, 4k, 1m.
func contextToken(t string) bool {
	number, unit := cutNumber(t)
	v, err := strconv.ParseFloat(number, 64)
	return err == nil && (unit == "k" || unit == "m" && v <= 10)
}

// dateToken reports whether t is a release date: 0528, 2507, 20250101.
func dateToken(t string) bool {
	if len(t) != 4 && len(t) != 6 && len(t) != 8 {
		return false
	}
	_, err := strconv.Atoi(t)
	return err == nil
}

// cutNumber splits a token after its leading decimal number.
func cutNumber(t string) (number, unit string) {
	i := 0
	for i < len(t) && (t[i] >= '0' && t[i] <= '9' || t[i] == '.') {
		i++
	}
	return t[:i], t[i:]
}

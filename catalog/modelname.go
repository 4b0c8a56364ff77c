package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// modelName is a model's name as tokens, without those that do not affect its shape: publisher,
// tuning (instruct, chat) and quantization.
type modelName struct {
	words words
	sizes words // "8b", "8x7b", "0.6b"
	dates words // "0528", "2507"
	// context is "128k", "1m"; it decides only between names that match equally.
	context words
}

// modelNoise lists tokens that do not affect a model's shape.
var modelNoise = newWords(strings.Fields(`meta nvidia instruct instruction chat it hf base pt preview latest model official
	unsloth redhatai neuralmagic thebloke bartowski lmstudio community mlx text`))

// quantNoise lists tokens of quantized repacks. Some have a meaning only next to another of them
// (dynamic, block, tensor), but none names a model.
var quantNoise = newWords(strings.Fields(`fp8 fp4 nvfp4 nvfp4a16 mxfp4 mxfp8 float8 fp16 bf16 bfloat16 float16 int4 int8 nf4
	awq gptq bnb bitsandbytes 4bit 8bit w4a16 w8a8 w8a16 w4a8 w4afp8 w4a4 gguf f16 ud quantized quant quants dynamic static
	block channel per weight weights tensor tensors compressed asym sym g128 128g g32 32g autoround hqq ptq marlin quark`))

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

func parseModelName(s string) modelName {
	_, fields := nameTokens(s)
	var tokens, sizes, dates, context []string
	quant := false // the previous token belonged to a quantization
	for _, t := range fields {
		if quantToken(t) || quant && quantTail(t) {
			quant = true
			continue
		}
		quant = false
		switch {
		case modelNoise.has(t):
		case contextToken(t):
			context = append(context, t)
		case sizeToken(t):
			sizes = append(sizes, t)
		case dateToken(t):
			dates = append(dates, t)
		default:
			tokens = append(tokens, splitVersion(t)...)
		}
	}
	return modelName{newWords(joinVersions(tokens)), newWords(sizes), newWords(dates), newWords(context)}
}

func quantToken(t string) bool { return quantNoise.has(t) || ggufWidth(t) }

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

// sizeToken reports whether t is a parameter count: 8b, 0.6b, 8x7b, 125m, 1t.
func sizeToken(t string) bool {
	number, unit := cutNumber(t)
	if experts, each, ok := strings.Cut(t, "x"); ok && len(experts) > 0 && len(each) > 0 {
		if _, err := strconv.Atoi(experts); err == nil {
			number, unit = cutNumber(each)
		}
	}
	return number != "" && (unit == "b" || unit == "m" || unit == "t")
}

// sizeParams returns the number of parameters of a size token; 0 if it is a product (8x7b).
func sizeParams(t string) float64 {
	number, unit := cutNumber(t)
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	switch unit {
	case "m":
		return v * 1e6
	case "b":
		return v * 1e9
	case "t":
		return v * 1e12
	}
	return 0
}

// dateToken reports whether t is a release date: 0528, 2507, 20250101.
func dateToken(t string) bool {
	if len(t) != 4 && len(t) != 6 && len(t) != 8 {
		return false
	}
	_, err := strconv.Atoi(t)
	return err == nil
}

// splitVersion splits a family from its version: llama3.1, qwen2.5, phi4. A single letter with a
// number stays one token (r1, v3, k2).
func splitVersion(t string) []string {
	family := strings.TrimRight(t, "0123456789.")
	version := t[len(family):]
	if len(family) < 2 || version == "" || strings.ContainsAny(family, "0123456789") {
		return []string{trimZero(t)}
	}
	return []string{family, trimZero(version)}
}

func trimZero(t string) string { return strings.TrimSuffix(t, ".0") }

// joinVersions joins separate digits to one version: llama-3-1 and Llama-3_1 become llama 3.1.
func joinVersions(tokens []string) []string {
	digit := func(t string) bool { return len(t) == 1 && t[0] >= '0' && t[0] <= '9' }
	var out []string
	for _, t := range tokens {
		if n := len(out); n > 0 && digit(t) && digit(out[n-1]) {
			out[n-1] += "." + t
			continue
		}
		out = append(out, t)
	}
	return out
}

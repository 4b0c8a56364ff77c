package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// quantizedType returns the type of the weights that a quantization_config describes, "" if the
// method is unknown: a guessed width would halve or double every ceiling.
func quantizedType(q map[string]any) DType {
	method := strings.ToLower(stringOf(q["quant_method"]))
	switch {
	case method == "fp8", method == "fbgemm_fp8", method == "mxfp8":
		return FP8
	case method == "mxfp4", method == "gpt_oss_mxfp4":
		return MXFP4
	case method == "bitsandbytes":
		return pick(q["load_in_8bit"] == true || q["_load_in_8bit"] == true, INT8, INT4)
	case strings.HasPrefix(method, "modelopt"), q["quant_algo"] != nil:
		if d := algorithmType(stringOf(q["quant_algo"])); d != "" {
			return d
		}
		return groupsType(q)
	case method == "compressed-tensors":
		return groupsType(q)
	case method == "quark":
		global, _ := q["global_quant_config"].(map[string]any)
		return weightType(global["weight"])
	case method == "experts_int8":
		return INT8
	}
	// awq, gptq, auto-round, inc and aqlm give the width in bits.
	switch stringOf(q["bits"]) + stringOf(q["w_bit"]) {
	case "4":
		return INT4
	case "8":
		return INT8
	}
	return ""
}

// stringOf returns a JSON string or number as text, "" for other values.
func stringOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// algorithmType returns the type of a ModelOpt quant_algo, "" if it is unknown.
func algorithmType(name string) DType {
	name = strings.ToUpper(name)
	for _, a := range []struct {
		part string
		is   DType
	}{{"NVFP4", NVFP4}, {"MXFP4", MXFP4}, {"W4A", INT4}, {"INT4", INT4}, {"FP8", FP8}, {"INT8", INT8}, {"W8A8", INT8}} {
		if strings.Contains(name, a.part) {
			return a.is
		}
	}
	return ""
}

// groupsType returns the type of config_groups, as written by compressed-tensors and newer ModelOpt.
// If groups differ, the narrowest type counts: most of the weights have it.
func groupsType(q map[string]any) DType {
	groups, _ := q["config_groups"].(map[string]any)
	var best DType
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		group, _ := groups[key].(map[string]any)
		d := weightType(group["weights"])
		if d == NVFP4 && strings.Contains(stringOf(group["format"])+stringOf(q["format"]), "mxfp4") {
			d = MXFP4
		}
		if d != "" && (best == "" || d.Bytes() < best.Bytes()) {
			best = d
		}
	}
	return best
}

// weightType returns the type of {num_bits, type, group_size} or quark's {dtype}, "" if it is
// unknown.
func weightType(v any) DType {
	w, _ := v.(map[string]any)
	if name := stringOf(w["dtype"]); name != "" {
		if name == "fp4" {
			return MXFP4 // quark's fp4 has one scale per group of 32
		}
		d, _ := ParseDType(name)
		return d
	}
	float := stringOf(w["type"]) == "float"
	switch bits := stringOf(w["num_bits"]); {
	case bits == "4" && float:
		return pick(stringOf(w["group_size"]) == "32", MXFP4, NVFP4)
	case bits == "4":
		return INT4
	case bits == "8" && float:
		return FP8
	case bits == "8":
		return INT8
	}
	return ""
}

// skipsAttention reports whether a quantization excludes the attention of all layers: then only the
// experts are quantized.
func skipsAttention(q map[string]any) bool {
	for _, key := range []string{"ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers", "exclude"} {
		list, _ := q[key].([]any)
		for _, item := range list {
			name := fmt.Sprint(item)
			if strings.Contains(name, "self_attn") && strings.Contains(name, "*") && !strings.Contains(name, "_proj") {
				return true
			}
		}
	}
	return false
}

package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// quantizedType reads the type of the weights out of a quantization_config;
// "" where the method is not known, since guessing the width would halve or
// double every ceiling.
func quantizedType(q map[string]any) DType {
	method := strings.ToLower(text(q["quant_method"]))
	switch {
	case method == "fp8", method == "fbgemm_fp8", method == "mxfp8":
		return FP8
	case method == "mxfp4", method == "gpt_oss_mxfp4":
		return MXFP4
	case method == "bitsandbytes":
		return pick(q["load_in_8bit"] == true || q["_load_in_8bit"] == true, INT8, INT4)
	case strings.HasPrefix(method, "modelopt"), q["quant_algo"] != nil:
		if d := algorithmType(text(q["quant_algo"])); d != "" {
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
	// awq, gptq, auto-round, inc, aqlm: a width in bits.
	switch text(q["bits"]) + text(q["w_bit"]) {
	case "4":
		return INT4
	case "8":
		return INT8
	}
	return ""
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// algorithmType reads ModelOpt's quant_algo.
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

// groupsType reads config_groups: compressed-tensors' and newer ModelOpt's.
// Where groups differ, the narrowest counts: it holds the bulk of the weights.
func groupsType(q map[string]any) DType {
	groups, _ := q["config_groups"].(map[string]any)
	var best DType
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		group, _ := groups[key].(map[string]any)
		d := weightType(group["weights"])
		if d == NVFP4 && strings.Contains(text(group["format"])+text(q["format"]), "mxfp4") {
			d = MXFP4
		}
		if d != "" && (best == "" || d.Bytes() < best.Bytes()) {
			best = d
		}
	}
	return best
}

// weightType reads {num_bits, type, group_size} or quark's {dtype}.
func weightType(v any) DType {
	w, _ := v.(map[string]any)
	if name := text(w["dtype"]); name != "" {
		if name == "fp4" {
			return MXFP4 // quark's fp4 has scales for groups of 32
		}
		d, _ := ParseDType(name)
		return d
	}
	float := text(w["type"]) == "float"
	switch bits := text(w["num_bits"]); {
	case bits == "4" && float:
		return pick(text(w["group_size"]) == "32", MXFP4, NVFP4)
	case bits == "4":
		return INT4
	case bits == "8" && float:
		return FP8
	case bits == "8":
		return INT8
	}
	return ""
}

// sparesAttention reports whether a quantization leaves the attention of all
// layers as it was: then only the experts are narrow.
func sparesAttention(q map[string]any) bool {
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

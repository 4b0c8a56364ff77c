package launch

import (
	_ "embed" // sglang.txt
	"strings"
)

//go:embed sglang.txt
var sglangTable string

// sglang is the grammar of `python -m sglang.launch_server` and `sglang serve`.
var sglang = grammar{
	engine: "sglang", call: callSGLang, kinds: parseTable(sglangTable), port: 30000, mark: "sglang",
	alias: map[string]string{
		"model_path": "model", "tp": "tensor_parallel_size", "tp_size": "tensor_parallel_size", "dp": "data_parallel_size",
		"dp_size": "data_parallel_size", "pp": "pipeline_parallel_size", "pp_size": "pipeline_parallel_size", "ep": "ep_size",
		"expert_parallel_size": "ep_size", "enable_hicache": "enable_hierarchical_cache",
		"attention_data_parallel_size": "attn_dp_size", "speculative_draft_model": "speculative_draft_model_path",
	},
}

// callSGLang finds the SGLang call among the words themselves, not inside scripts.
func callSGLang(ws []word) (f form, args int, direct bool) {
	if len(ws) == 0 || mentions(ws) {
		return formNone, 0, false
	}
	for i, w := range ws {
		switch {
		case w.opaque:
			continue
		case w.text == "-m" && at(ws, i+1) == "sglang.launch_server":
			return formModule, i + 2, interpreted(ws[:i])
		case w.text == "-m" && at(ws, i+1) == "sglang" && at(ws, i+2) == "serve":
			return formModule, i + 3, interpreted(ws[:i])
		case strings.HasSuffix(w.text, "sglang/launch_server.py"):
			return formModule, i + 1, interpreted(ws[:i])
		case (w.text == "sglang" || strings.HasSuffix(w.text, "/sglang")) && at(ws, i+1) == "serve":
			return formModule, i + 2, interpreted(ws[:i])
		}
	}
	// The arguments of a container image: --model-path is SGLang's alone.
	for _, w := range ws {
		if name, _, _ := strings.Cut(w.text, "="); strings.HasPrefix(ws[0].text, "--") && name == "--model-path" {
			return formArgs, 0, false
		}
	}
	return formNone, 0, false
}

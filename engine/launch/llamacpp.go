package launch

import (
	_ "embed" // llamacpp.txt
	"path"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// llamaTable lists the flags of llama-server as flagTable does, and their other spellings.
//
//go:embed llamacpp.txt
var llamaTable string

// llamaCPP is the grammar of llama-server. It parses its flags itself: none is abbreviated, and no value is
// attached to one. A variable LLAMA_ARG_… replaces a flag that is not given.
var llamaCPP = func() grammar {
	table, spelled, _ := strings.Cut(llamaTable, "\nspelled:")
	g := grammar{
		engine: catalog.LlamaCPP, call: callLlama, kinds: parseTable(table), short: map[string]string{}, alias: map[string]string{}, exact: true,
		fromEnvironment: map[string]string{
			"api_key": "LLAMA_API_KEY", "hf_token": "HF_TOKEN", "batch_size": "LLAMA_ARG_BATCH", "ubatch_size": "LLAMA_ARG_UBATCH",
			"parallel": "LLAMA_ARG_N_PARALLEL", "metrics": "LLAMA_ARG_ENDPOINT_METRICS",
		},
		port: 9931, mark: "llama-server",
	}
	for _, name := range []string{"model", "alias", "host", "port", "ctx_size", "threads", "kv_unified", "cache_prompt", "cache_reuse", "cache_ram",
		"cache_type_k", "cache_type_v", "cont_batching", "n_gpu_layers", "device", "flash_attn"} {
		g.fromEnvironment[name] = "LLAMA_ARG_" + strings.ToUpper(name)
	}
	_, spelled, _ = strings.Cut(spelled, "\n")
	for pair := range strings.FieldsSeq(spelled) {
		other, name, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(other, "-") {
			g.short[other] = name
		} else {
			g.alias[other] = name
		}
	}
	return g
}()

// callLlama finds the call of llama-server among the words themselves, not inside scripts. A model is only
// taken from a flag.
func callLlama(ws []word) (f form, args int, direct bool) {
	if len(ws) == 0 || mentions(ws) {
		return formNone, 0, false
	}
	for i, w := range ws {
		switch name := strings.TrimSuffix(path.Base(w.text), ".exe"); {
		case w.opaque:
		case name == "llama-server":
			return formModule, i + 1, i == 0
		case strings.Contains(w.text, "/llama.cpp:server") && containerRun(ws[:i]):
			return formModule, i + 1, false
		}
	}
	return formNone, 0, false
}

package optrace

import "strings"

// maxLayerDigits bounds the numbers that count as layers: models have fewer than 10,000.
const maxLayerDigits = 4

// LayerOf splits the layer from a tensor's name: "blk.3.attn_q.weight" is layer 3 and
// "attn_q.weight", "ffn_out-11" is 11 and "ffn_out", "cache_k_l5 (view)" is 5 and "cache_k
// (view)" (llama.cpp: LLM_TN, llm_graph_context::cb, llama_kv_cache; ggml.c adds the brackets).
// If a name includes others ("… (copy of Kcur-3)"), the first layer counts and all are removed.
// The numbers that ggml.c gives to unnamed tensors ("node_12", "leaf_3") are positions in a
// graph: they are removed too, and the layer is -1 as for all names without one.
func LayerOf(name string) (layer int, rest string) {
	layer = -1
	var b strings.Builder
	at := 0 // everything before it is in b
	for i := 0; i < len(name); {
		from, to, number := i, i, -1
		switch {
		case strings.HasPrefix(name[i:], "blk.") && (i == 0 || !isWord(name[i-1])):
			if n, end := numberAt(name, i+len("blk.")); n >= 0 && end < len(name) && name[end] == '.' {
				to, number = end+1, n
			}
		case name[i] == '-' && i > 0:
			if n, end := numberAt(name, i+1); n >= 0 && endsName(name, end) {
				to, number = end, n
			}
		case strings.HasPrefix(name[i:], "_l") && i > 0:
			if n, end := numberAt(name, i+len("_l")); n >= 0 && endsName(name, end) {
				to, number = end, n
			}
		}
		if number < 0 {
			i++
			continue
		}
		if layer < 0 {
			layer = number
		}
		b.WriteString(name[at:from])
		at, i = to, to
	}
	if at == 0 {
		return -1, unnumbered(name)
	}
	b.WriteString(name[at:])
	return layer, b.String()
}

// unnumbered returns a name that ggml.c made up without its number.
func unnumbered(name string) string {
	for _, made := range []string{"node_", "leaf_"} {
		if !strings.HasPrefix(name, made) {
			continue
		}
		end := len(made)
		for end < len(name) && isDigit(name[end]) {
			end++
		}
		if end > len(made) && endsName(name, end) {
			return strings.TrimSuffix(made, "_") + name[end:]
		}
	}
	return name
}

// numberAt returns the number at from and where it ends, or -1 if there is none.
func numberAt(s string, from int) (n, end int) {
	end = from
	for end < len(s) && isDigit(s[end]) {
		n = n*10 + int(s[end]-'0')
		if end++; end-from > maxLayerDigits {
			return -1, from
		}
	}
	if end == from {
		return -1, from
	}
	return n, end
}

// endsName reports whether a name, or one within brackets, ends at the position.
func endsName(s string, at int) bool {
	return at == len(s) || s[at] == ' ' || s[at] == ')'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// LogitsName is llama.cpp's name for the tensor of logits (llama-graph.cpp, t_logits).
const LogitsName = "result_output"

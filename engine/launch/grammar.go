package launch

import (
	_ "embed" // flags.txt
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// kind is the number of words that a flag takes, argparse's nargs.
type kind int

const (
	kindUnknown  kind = iota // not in the table: another release's, or a typo
	kindValue                // exactly one
	kindBool                 // none; --no-NAME is its opposite
	kindTrue                 // none, and no opposite
	kindList                 // one or more
	kindOptional             // none or one
	kindRepeat               // one; repeating the flag appends
)

// grammar is how the command lines of one engine are written.
type grammar struct {
	engine string // ID in the catalog
	// call finds the call of the engine among words, not inside scripts: the form, the index of the first
	// word after it, and whether the program itself is the engine.
	call  func(ws []word) (f form, args int, direct bool)
	kinds map[string]kind   // by canonical name
	short map[string]string // one-dash spellings, with the dash, to canonical names
	alias map[string]string // second names to canonical ones
	// fromEnvironment names the variables that replace a flag that is not given.
	fromEnvironment map[string]string
	port            int    // at which it listens by default
	mark            string // part of every command line of the engine, in lower case
	exact           bool   // flags are spelled in full, and no value is attached to one
}

// grammars are those of every engine, in the order in which a command line is tried. They are set when
// the package starts: a call looks for others inside itself.
var grammars []*grammar

func init() { grammars = []*grammar{&sglang, &llamaCPP, &vllm} }

// vllm is the grammar of `vllm serve`.
var vllm = grammar{
	engine: catalog.VLLM, call: callVLLM, kinds: parseTable(flagTable), short: short, alias: alias,
	fromEnvironment: fromEnvironment, port: 8000, mark: "vllm",
}

// short maps the one-dash spellings to canonical names. -O is handled separately, because
// its meaning changed in 0.12.
var short = map[string]string{
	"-ac": "attention_config", "-asc": "api_server_count", "-cc": "compilation_config",
	"-dc": "diffusion_config", "-dcp": "decode_context_parallel_size", "-dp": "data_parallel_size",
	"-dpa": "data_parallel_address", "-dpb": "data_parallel_backend", "-dpe": "data_parallel_external_lb",
	"-dph": "data_parallel_hybrid_lb", "-dpl": "data_parallel_size_local",
	"-dpm": "data_parallel_multi_port_external_lb", "-dpn": "data_parallel_rank",
	"-dpp": "data_parallel_rpc_port", "-dpr": "data_parallel_start_rank", "-ep": "enable_expert_parallel",
	"-n": "nnodes", "-pcp": "prefill_context_parallel_size", "-pp": "pipeline_parallel_size",
	"-q": "quantization", "-r": "node_rank", "-sc": "speculative_config", "-tp": "tensor_parallel_size",
}

// alias maps second names to canonical ones.
var alias = map[string]string{"device_memory_utilization": "gpu_memory_utilization"}

// fromEnvironment names the variables that replace a flag that is not given.
var fromEnvironment = map[string]string{
	"api_key":           "VLLM_API_KEY",
	"attention_backend": "VLLM_ATTENTION_BACKEND",
	"hf_token":          "HF_TOKEN",
}

// flagTable lists the flags of vllm serve in groups, one for each kind.
//
//go:embed flags.txt
var flagTable string

func parseTable(table string) map[string]kind {
	groups := map[string]kind{
		"switch:": kindBool, "true:": kindTrue, "list:": kindList, "optional:": kindOptional, "repeat:": kindRepeat, "value:": kindValue,
	}
	flags, current := map[string]kind{}, kindUnknown
	for line := range strings.Lines(table) {
		names, _, _ := strings.Cut(line, "#")
		for name := range strings.FieldsSeq(names) {
			if k, isGroup := groups[name]; isGroup {
				current = k
				continue
			}
			flags[name] = current
		}
	}
	return flags
}

// canonical returns a flag name in the form of the table: without leading dashes, with
// underscores, aliases resolved. It does not change sub-keys after a dot.
func (g *grammar) canonical(flag string) string {
	if name, ok := g.short[flag]; ok {
		return name
	}
	head, rest, dotted := strings.Cut(strings.TrimLeft(flag, "-"), ".")
	if name, ok := g.short["-"+head]; ok && strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--") {
		head = name
	}
	head = strings.ReplaceAll(head, "-", "_")
	if name, ok := g.alias[head]; ok {
		head = name
	}
	if dotted {
		return head + "." + rest
	}
	return head
}

// kindOf returns the kind of a canonical name.
func (g *grammar) kindOf(name string) kind { return g.kinds[name] }

// abbreviated lists the flags of the table that a prefix may stand for, sorted.
// argparse accepts a prefix that only one option has.
func (g *grammar) abbreviated(prefix string) []string {
	var names []string
	for name := range g.kinds {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

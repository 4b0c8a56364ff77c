package advice

import (
	"path"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// dialect is the names of options in a program that embeds GGML.
type dialect struct {
	// program is its name; known reports whether it was recognised. If not, the names are those
	// of llama.cpp's own programs.
	program string
	known   bool
	names   map[option]spelling
}

// option is a setting that several programs have.
type option uint8

const (
	optThreads option = iota
	optBatch          // tokens of one graph of a prefill
	optFlash          // attention in one operator
	optKVType         // number format of the cache
	optMlock          // weights kept in memory
	optRepack         // weights rearranged for the CPU at load
	optLayers         // layers on a GPU
)

// spelling is the name of an option and the value that switches it on; "" if a number or a type
// is given.
type spelling struct{ flag, on string }

// Names of options: llama.cpp's common/arg.cpp; Ollama's docs/modelfile.md, docs/faq.md
// and api/types.go; node-llama-cpp's LlamaContext and LlamaModel options; the
// parameters of llama-cpp-python's class Llama; llama.node's README; koboldcpp --help.
var (
	dialectLlama = dialect{program: "llama.cpp", names: map[option]spelling{
		optThreads: {flag: "--threads"}, optBatch: {flag: "--ubatch-size"}, optFlash: {"--flash-attn", "on"},
		optKVType: {flag: "--cache-type-k and --cache-type-v"}, optMlock: {flag: "--mlock"}, optRepack: {flag: "--repack"}, optLayers: {flag: "--gpu-layers"},
	}}
	dialectOllama = dialect{program: "Ollama", names: map[option]spelling{
		optThreads: {flag: "num_thread"}, optBatch: {flag: "num_batch"}, optFlash: {"OLLAMA_FLASH_ATTENTION", "1"},
		optKVType: {flag: "OLLAMA_KV_CACHE_TYPE"}, optMlock: {"use_mmap", "false"}, optLayers: {flag: "num_gpu"},
	}}
	dialectNode = dialect{program: "node-llama-cpp", names: map[option]spelling{
		optThreads: {flag: "threads (createContext)"}, optBatch: {flag: "batchSize (createContext)"}, optFlash: {"flashAttention (createContext)", "true"},
		optKVType: {flag: "experimentalKvCacheKeyType and experimentalKvCacheValueType (createContext)"}, optMlock: {"useMlock (loadModel)", "true"}, optLayers: {flag: "gpuLayers (loadModel)"},
	}}
	dialectLlamaNode = dialect{program: "llama.node", names: map[option]spelling{
		optThreads: {flag: "n_threads"}, optBatch: {flag: "n_ubatch"}, optFlash: {"flash_attn_type", "on"},
		optKVType: {flag: "cache_type_k and cache_type_v"}, optMlock: {"use_mlock", "true"}, optLayers: {flag: "n_gpu_layers"},
	}}
	dialectPython = dialect{program: "llama-cpp-python", names: map[option]spelling{
		optThreads: {flag: "n_threads"}, optBatch: {flag: "n_ubatch"}, optFlash: {"flash_attn", "True"},
		optKVType: {flag: "type_k and type_v"}, optMlock: {"use_mlock", "True"}, optLayers: {flag: "n_gpu_layers"},
	}}
	dialectKobold = dialect{program: "koboldcpp", names: map[option]spelling{
		optThreads: {flag: "--threads"}, optBatch: {flag: "--blasbatchsize"}, optFlash: {flag: "--flashattention"},
		optKVType: {flag: "--quantkv"}, optMlock: {flag: "--usemlock"}, optLayers: {flag: "--gpulayers"},
	}}
)

// dialectOf recognises the program by its mapped files, then by its command.
func dialectOf(t *optrace.Target) dialect {
	for _, f := range t.Files {
		for _, hint := range [...]struct {
			part string
			dialect
		}{
			{"/node-llama-cpp/", dialectNode}, {"/@node-llama-cpp/", dialectNode}, {"/llama.node/", dialectLlamaNode}, {"/node-llama-linux-", dialectLlamaNode},
			{"/llama_cpp/", dialectPython},
		} {
			if strings.Contains(f.Path, hint.part) {
				return hint.recognised()
			}
		}
	}
	first, _, _ := strings.Cut(t.Command, " ")
	switch name := path.Base(first); {
	case strings.HasPrefix(name, "ollama"):
		return dialectOllama.recognised()
	case strings.HasPrefix(name, "koboldcpp"):
		return dialectKobold.recognised()
	case strings.HasPrefix(name, "llama-"), name == "llama":
		return dialectLlama.recognised()
	case strings.Contains(t.Command, "node-llama-cpp"):
		return dialectNode.recognised()
	case strings.Contains(t.Command, "-m llama_cpp"):
		return dialectPython.recognised()
	}
	return dialectLlama
}

// recognised returns d marked as known.
func (d dialect) recognised() dialect {
	d.known = true
	return d
}

// spell returns the option's name and value; value "" is replaced by the one that switches it
// on.
func (d dialect) spell(o option, value string) (flag, with string) {
	s := d.names[o]
	if value == "" {
		value = s.on
	}
	return s.flag, value
}

// unrecognisedNote returns a note that names are llama.cpp's if the program was not recognised, "" if it
// was.
func (d dialect) unrecognisedNote() string {
	if d.known {
		return ""
	}
	return " The option is named as in llama.cpp: the program that embeds it here was not recognised."
}

// argument finds an option in a command by any of its names, with its value ("" if the option
// is the last word or another option follows).
func argument(command string, names ...string) (value string, found bool) {
	words := strings.Fields(command)
	for i, w := range words {
		for _, n := range names {
			if after, ok := strings.CutPrefix(w, n+"="); ok {
				return after, true
			}
			if w != n {
				continue
			}
			if i+1 < len(words) && !isOption(words[i+1]) {
				return words[i+1], true
			}
			return "", true
		}
	}
	return "", false
}

// isOption reports whether a word starts with a dash and is not a negative number.
func isOption(w string) bool {
	if !strings.HasPrefix(w, "-") {
		return false
	}
	_, err := strconv.ParseFloat(w, 64)
	return err != nil
}

package optrace

import (
	"path"
	"strconv"
	"strings"
)

// dialect is how a program that embeds GGML calls the options that advice is about.
type dialect struct {
	// program is its name; told says that it was recognised. Where it was not, the
	// names are those of llama.cpp's own programs.
	program string
	told    bool
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

// spelling is an option's name and the value that switches it on; "" where a number
// or a type is given.
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
func dialectOf(t *Target) dialect {
	for _, f := range t.Files {
		for _, known := range [...]struct {
			part string
			dialect
		}{
			{"/node-llama-cpp/", dialectNode}, {"/@node-llama-cpp/", dialectNode}, {"/llama.node/", dialectLlamaNode}, {"/node-llama-linux-", dialectLlamaNode},
			{"/llama_cpp/", dialectPython},
		} {
			if strings.Contains(f.Path, known.part) {
				return known.recognised()
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

func (d dialect) recognised() dialect {
	d.told = true
	return d
}

// spell is the option's name and the value to give it; value "" takes the one that
// switches it on.
func (d dialect) spell(o option, value string) (flag, with string) {
	s := d.names[o]
	if value == "" {
		value = s.on
	}
	return s.flag, value
}

// aside says whose names are given where the program was not recognised.
func (d dialect) aside() string {
	if d.told {
		return ""
	}
	return " The option is named as in llama.cpp: the program that embeds it here was not recognised."
}

// argument finds an option in a command by any of its names, with the value after it
// ("" where the option is the last or another option follows).
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

// isOption says that a word begins an option and is no negative number.
func isOption(w string) bool {
	if !strings.HasPrefix(w, "-") {
		return false
	}
	_, err := strconv.ParseFloat(w, 64)
	return err != nil
}

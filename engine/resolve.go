package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Given is what the person in front of rooftop said, by flag or environment.
// Zero values were not given.
type Given struct {
	MaxNumSeqs     int
	TensorParallel int
	CostPerHour    stat.Opt // USD for the whole server
	GPU            string
	Model          string
	DType          string // DTYPE / VLLM_DTYPE of the classic formulas
}

// ServerFacts is what the server's own HTTP endpoints tell. Empty is untold.
type ServerFacts struct {
	Version     string // /version, with build suffix
	Model       string // id of /v1/models
	Root        string // model path behind it
	MaxModelLen int
	// Args holds engine arguments from /server_info (dev mode), by canonical
	// name with underscores.
	Args map[string]string
}

// Setting is one engine argument as the server was started with.
type Setting struct {
	Value  string `json:"value"`
	Source Source `json:"source"` // cmdline, config or env
}

// LaunchNames are the engine arguments that facts are read from.
var LaunchNames = [...]string{
	"api_server_count", "async_scheduling", "block_size", "data_parallel_size", "device", "dtype",
	"enable_chunked_prefill", "enable_expert_parallel", "enable_prefix_caching", "enforce_eager",
	"gpu_memory_utilization", "kv_cache_dtype", "max_model_len", "max_num_batched_tokens",
	"max_num_seqs", "num_gpu_blocks_override", "performance_mode", "pipeline_parallel_size", "quantization",
	"speculative_config", "tensor_parallel_size",
}

// Inputs is everything that facts are resolved from. It holds no secret and can
// be written down: a recording carries it.
type Inputs struct {
	Flags, Env Given
	// Launch holds the engine arguments found in the server's command line,
	// config file and environment, by canonical name with underscores; nil where
	// the process is unknown, empty where it was started with none.
	Launch      map[string]Setting
	LaunchModel string // model named on the command line
	LaunchText  string // redacted command line
	Local       bool
	PID         int
	OnCPU       bool // the server's environment or build says that it runs on a CPU
	Server      ServerFacts
	Page        *Page // the latest, nil before the first
	Devices     []GPU // of the server; nil where none is readable
	GPUsAssumed bool  // nothing told the server's GPUs from others of its machine
	ModelConfig *catalog.Model
	// ModelConfigFrom says where config.json was read; a flag or a file.
	ModelConfigFrom Source
	ModelConfigNote string
	// Made are the changes that were made to a launch that cannot be read: they are
	// younger than what a person said and than defaults.
	Made    []Change         `json:"-"`
	Catalog *catalog.Catalog `json:"-"`
	Spot    bool             // use spot prices
}

// Resolve settles every fact: a flag of rooftop beats its environment, which
// beats what was discovered, which beats the catalog's defaults. Each fact
// keeps its source; what contradicts is listed in Conflicts.
func Resolve(in Inputs) Facts {
	r := resolver{in: in, cat: in.Catalog}
	if r.cat == nil {
		r.cat = catalog.Default()
	}
	if in.Page != nil && len(in.Page.Ranks) > 0 {
		r.cache = in.Page.Ranks[0].Cache
	}
	f := &r.f
	f.Local, f.PID, f.Launch = in.Local, in.PID, in.LaunchText
	r.engine()
	r.hardware()
	r.parallel()
	r.scheduler()
	r.model()
	r.dtypes()
	r.pool()
	r.money()
	return r.f
}

type resolver struct {
	in    Inputs
	cat   *catalog.Catalog
	cache CacheConfig
	f     Facts
}

func (r *resolver) conflict(format string, args ...any) {
	r.f.Conflicts = append(r.f.Conflicts, fmt.Sprintf(format, args...))
}

// discovered looks an engine argument up where the server itself has it.
func (r *resolver) discovered(name string) (string, Source, bool) {
	if s, ok := r.in.Launch[name]; ok {
		return s.Value, s.Source, true
	}
	if v, ok := r.in.Server.Args[name]; ok && v != "" && v != "None" {
		return v, FromServer, true
	}
	return "", "", false
}

// defaulted falls back to vLLM's default for this version and hardware.
func (r *resolver) defaulted(name string) (value, note string, ok bool) {
	hw := catalog.Hardware{
		Device:    r.f.Device.Value,
		VRAMGiB:   r.vramGiB(),
		GPUName:   r.f.GPUName.Value,
		WorldSize: max(1, r.f.TensorParallel.Value) * max(1, r.f.PipelineParallel.Value),
		V0:        r.f.V0.Value,
		APIServer: true,
	}
	return r.cat.FlagDefault(name, r.f.EngineVersion.Value, hw)
}

// parsed is one way to read a fact's text.
type parsed[T any] func(string) (T, bool)

func asInt(s string) (int, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || v != float64(int(v)) {
		return 0, false
	}
	return int(v), true
}

func asFloat(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return v, err == nil
}

func asBool(s string) (bool, bool) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "1", "yes", "on":
		return true, true
	case "false", "0", "no", "off":
		return false, true
	}
	return false, false
}

// lookup resolves one engine argument: discovered, then a label of the page,
// then what this run set it to, then the default of the version.
func lookup[T any](r *resolver, name, label string, parse parsed[T]) Fact[T] {
	if text, from, ok := r.discovered(name); ok {
		v, good := parse(text)
		if !good {
			// A value that is there and not understood is no reason for a default.
			return Fact[T]{Note: fmt.Sprintf("%q of the server's %s is not understood", text, from)}
		}
		return Know(v, from, "")
	}
	if label != "" && label != "None" {
		if v, good := parse(label); good {
			return Know(v, FromMetrics, "")
		}
	}
	if text, ok := r.made(name); ok && text != "" {
		if v, good := parse(text); good {
			return Know(v, FromDerived, madeNote)
		}
	}
	text, note, ok := r.defaulted(name)
	if !ok {
		return Fact[T]{Note: note}
	}
	v, good := parse(text)
	if !good {
		return Fact[T]{Note: note}
	}
	return Know(v, FromDefault, note)
}

// override lets what a person said beat what was found, and reports where the
// two contradict. What this run changed is no longer as that person said.
func override[T comparable](r *resolver, name string, fact Fact[T], flag, env T) Fact[T] {
	var zero T
	said, from := flag, FromFlag
	if said == zero {
		said, from = env, FromEnv
	}
	if _, changed := r.made(name); said == zero || changed {
		return fact
	}
	certain := fact.Source != FromDefault && fact.Source != FromCatalog || r.launched()
	if fact.Known && certain && fact.Value != said {
		r.conflict("%s: %v from rooftop's %s contradicts %v from the server's %s; %v is used",
			name, said, from, fact.Value, fact.Source, said)
	}
	return Know(said, from, "")
}

func (r *resolver) launched() bool { return r.in.Launch != nil || len(r.in.Server.Args) > 0 }

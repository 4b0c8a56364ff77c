package facts

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Given has the values that the user gave by flag or environment. Zero values were not given.
type Given struct {
	MaxNumSeqs     int
	TensorParallel int
	CostPerHour    stat.Opt // USD for the whole server
	GPU            string
	Model          string
	DType          string // DTYPE or VLLM_DTYPE of the PROFILE formulas
}

// Over returns older with what is given in g in place of it.
func (g Given) Over(older Given) Given {
	return Given{
		MaxNumSeqs: cmp.Or(g.MaxNumSeqs, older.MaxNumSeqs), TensorParallel: cmp.Or(g.TensorParallel, older.TensorParallel),
		CostPerHour: cmp.Or(g.CostPerHour, older.CostPerHour), GPU: cmp.Or(g.GPU, older.GPU),
		Model: cmp.Or(g.Model, older.Model), DType: cmp.Or(g.DType, older.DType),
	}
}

// ServerAnswers has the answers of the server's HTTP endpoints; "" is unknown.
type ServerAnswers struct {
	Version     string // /version, with build suffix
	Model       string // ID of /v1/models
	Root        string // model path behind it
	MaxModelLen int
	// Args has engine arguments from /server_info (dev mode), by canonical name with
	// underscores, as the command line would give them.
	Args map[string]string
}

// Setting is an engine argument of the server's launch.
type Setting struct {
	Value  string        `json:"value"`
	Source engine.Source `json:"source"` // cmdline, config or env
}

// LaunchNames are the settings behind facts, named as vLLM's arguments, or as SGLang's where vLLM has none.
var LaunchNames = [...]string{
	"api_server_count", "async_scheduling", "attn_dp_size", "block_size", "data_parallel_size", "device", "dtype",
	"enable_chunked_prefill", "enable_dp_attention", "enable_expert_parallel", "enable_lora", "enable_prefix_caching", "enforce_eager",
	"gpu_memory_utilization", "kv_cache_dtype", "kv_unified", "max_lora_rank", "max_loras", "max_model_len", "max_num_batched_tokens",
	"max_num_seqs", "num_gpu_blocks_override", "performance_mode", "pipeline_parallel_size", "quantization",
	"speculative_config", "tensor_parallel_size",
}

// Inputs is everything that facts are resolved from. It has no secrets, so a recording may include it.
type Inputs struct {
	Engine     string `json:",omitempty"` // ID of the engine, "" for vLLM
	Flags, Env Given
	// Launch has the engine arguments found in the server's command line, config file and
	// environment, by canonical name with underscores. It is nil if the process is unknown, and
	// empty if it was started without arguments.
	Launch      map[string]Setting
	LaunchModel string // model named on the command line
	LaunchText  string // redacted command line
	LaunchIn    string `json:",omitempty"` // what holds the command line: "vllm.service"; "" for a process of its own
	Local       bool
	PID         int
	OnCPU       bool // the server's environment or build shows that it runs on a CPU
	Server      ServerAnswers
	Page        *engine.Page // latest page, nil before the first
	Devices     []engine.GPU // of the server; nil if none is readable
	// NodeGPU is the name of the GPUs of the server's machine by a label of its Kubernetes node or of a scraped
	// series, "" if unknown; NodeGPULabel is which, as "nvidia.com/gpu.product of its node".
	NodeGPU, NodeGPULabel string
	PodGPUs               int  `json:",omitempty"` // of the name NodeGPU that the server's pod has; 0 if unknown
	FreeGPUs              *int // GPUs of its machine like its own that no process uses; nil if unknown
	GPUsAssumed           bool // the server's GPUs could not be distinguished from others of its machine
	ModelConfig           *catalog.Model
	// ModelConfigFrom is the source of config.json: a flag or a file.
	ModelConfigFrom engine.Source
	ModelConfigNote string
	// Made are changes by this run to an unreadable launch. They take precedence over what the
	// user gave and over defaults, because they are newer.
	Made    []engine.Change  `json:"-"`
	Catalog *catalog.Catalog `json:"-"`
	Spot    bool             // use spot prices
}

// Resolve resolves every fact. A flag of rooftop takes precedence over its environment, then
// discovered values, then the catalog's defaults. Each fact keeps its source. Contradictions are
// listed in Conflicts.
func Resolve(in Inputs) engine.Facts {
	r := resolver{in: in, cat: in.Catalog, eng: catalog.EngineOf(in.Engine)}
	if in.Page != nil {
		r.eng = catalog.EngineOf(in.Page.Engine)
	}
	if r.cat == nil {
		r.cat = catalog.Default()
	}
	if in.Page != nil && len(in.Page.Ranks) > 0 {
		r.cache = in.Page.Ranks[0].Cache
	}
	f := &r.f
	f.PID, f.Launch, f.LaunchIn = in.PID, in.LaunchText, in.LaunchIn
	r.engine()
	r.hardware()
	r.parallel()
	r.scheduler()
	r.withholdGPU()
	r.model()
	r.dtypes()
	r.pool()
	r.money()
	return r.f
}

type resolver struct {
	in    Inputs
	cat   *catalog.Catalog
	eng   *catalog.Engine
	cache engine.CacheConfig
	f     engine.Facts
}

func (r *resolver) conflict(format string, args ...any) {
	r.f.Conflicts = append(r.f.Conflicts, fmt.Sprintf(format, args...))
}

// discoveredInt returns an engine argument above zero that the server itself reports.
func (r *resolver) discoveredInt(name string) (engine.Fact[int], bool) {
	text, from, ok := r.discovered(name)
	if n, good := asInt(text); good && n > 0 {
		return engine.Know(n, from, ""), ok
	}
	return engine.Fact[int]{}, ok
}

// discovered returns an engine argument that the server itself reports, with its source.
func (r *resolver) discovered(name string) (string, engine.Source, bool) {
	if s, ok := r.in.Launch[name]; ok {
		return s.Value, s.Source, true
	}
	if v, ok := r.in.Server.Args[name]; ok && v != "" && v != "None" {
		return v, engine.FromServer, true
	}
	return "", "", false
}

// defaulted returns the engine's default for this version and hardware.
func (r *resolver) defaulted(name string) (value, note string, ok bool) {
	hw := catalog.Hardware{
		Device:    r.f.Device.Value,
		VRAMGiB:   r.vramGiB(),
		GPUName:   r.f.GPUName.Value,
		WorldSize: max(1, r.f.TensorParallel.Value) * max(1, r.f.PipelineParallel.Value),
		V0:        r.f.V0.Value,
		APIServer: true,
	}
	return r.eng.Default(name, r.f.EngineVersion.Value, hw)
}

// parsed parses the text of a fact.
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

// lookup resolves one engine argument: discovered, then a label of the page, then the value that this
// run set, then the default of the version.
func lookup[T any](r *resolver, name, label string, parse parsed[T]) engine.Fact[T] {
	if text, from, ok := r.discovered(name); ok {
		v, good := parse(text)
		if !good {
			// An unparsable value must not be replaced by a default.
			return engine.Fact[T]{Note: fmt.Sprintf("%q in the server's %s cannot be parsed", text, from)}
		}
		return engine.Know(v, from, "")
	}
	if label != "" && label != "None" {
		if v, good := parse(label); good {
			return engine.Know(v, engine.FromMetrics, "")
		}
	}
	if text, ok := r.made(name); ok && text != "" {
		if v, good := parse(text); good {
			return engine.Know(v, engine.FromDerived, madeNote)
		}
	}
	text, note, ok := r.defaulted(name)
	if v, good := parse(text); ok && good {
		return engine.Know(v, engine.FromDefault, note)
	}
	return engine.Fact[T]{Note: note}
}

// given returns the value that the user gave by flag or else by environment; the zero value if none.
func given[T comparable](flag, env T) (T, engine.Source) {
	var zero T
	if flag != zero {
		return flag, engine.FromFlag
	}
	return env, engine.FromEnv
}

// override gives a value from the user precedence over the discovered one, and reports a
// contradiction. It ignores the user's value for arguments that this run changed.
func override[T comparable](r *resolver, name string, fact engine.Fact[T], flag, env T) engine.Fact[T] {
	var zero T
	said, from := given(flag, env)
	if _, changed := r.made(name); said == zero || changed {
		return fact
	}
	certain := fact.Source != engine.FromDefault && fact.Source != engine.FromCatalog || r.launched()
	if fact.Known && certain && fact.Value != said {
		r.conflict("%s: %v from rooftop's %s contradicts %v from the server's %s; %v is used",
			name, said, from, fact.Value, fact.Source, said)
	}
	return engine.Know(said, from, "")
}

func (r *resolver) launched() bool { return r.in.Launch != nil || len(r.in.Server.Args) > 0 }

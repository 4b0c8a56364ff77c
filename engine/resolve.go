package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/roofline"
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
	Catalog         *catalog.Catalog `json:"-"`
	Spot            bool             // use spot prices
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

func (r *resolver) vramGiB() float64 {
	if len(r.in.Devices) > 0 {
		if v := r.in.Devices[0].Fields[GPUVRAMTotal]; v.OK {
			return v.V / (1 << 30)
		}
	}
	if r.f.GPUKnown {
		return r.f.GPU.VRAMGiB
	}
	return 0
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
// then the default of the version.
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
// two contradict.
func override[T comparable](r *resolver, name string, fact Fact[T], flag, env T) Fact[T] {
	var zero T
	said, from := flag, FromFlag
	if said == zero {
		said, from = env, FromEnv
	}
	if said == zero {
		return fact
	}
	certain := fact.Source != FromDefault && fact.Source != FromCatalog || r.launched()
	if fact.Known && certain && fact.Value != said {
		r.conflict("%s: %v from rooftop's %s contradicts %v from the server's %s; %v is used",
			name, said, from, fact.Value, fact.Source, said)
	}
	return Know(said, from, "")
}

func (r *resolver) engine() {
	f := &r.f
	f.Engine = Know("vllm", FromMetrics, "")
	if v, _, _ := strings.Cut(r.in.Server.Version, "+"); v != "" {
		f.EngineVersion = Know(v, FromServer, "")
	} else {
		f.EngineVersion = Fact[string]{Note: "the server does not answer /version"}
	}
	f.V0 = Know(false, FromDerived, "")
	if p := r.in.Page; p != nil && (p.Gauges[GaugeSwapped].OK || p.Gauges[GaugeCPUKVUsage].OK) {
		f.V0 = Know(true, FromMetrics, "the page has gauges of the V0 engine")
	}
	switch {
	case r.in.OnCPU, strings.Contains(r.in.Server.Version, "cpu"):
		f.Device = Know("cpu", FromServer, "")
	case len(r.in.Devices) > 0:
		f.Device = Know("cuda", FromGPU, "")
	case r.in.Flags.GPU != "" || r.in.Env.GPU != "":
		f.Device = Know("cuda", FromFlag, "")
	default:
		f.Device = Fact[string]{Note: "no GPU is readable here and the server does not say what it runs on"}
	}
	if text, from, ok := r.discovered("device"); ok && text != "auto" {
		f.Device = Know(text, from, "")
	}
}

func (r *resolver) hardware() {
	f := &r.f
	name, from, vram := r.in.Flags.GPU, FromFlag, 0.0
	if name == "" {
		name, from = r.in.Env.GPU, FromEnv
	}
	if len(r.in.Devices) > 0 {
		seen := r.in.Devices[0].Name
		vram = r.in.Devices[0].Fields[GPUVRAMTotal].Or(0)
		if name == "" {
			name, from = seen, FromGPU
		}
		for _, d := range r.in.Devices[1:] {
			if d.Name != seen {
				r.conflict("the server's GPUs differ: %s and %s; ceilings are those of the first", seen, d.Name)
				break
			}
		}
	}
	if name == "" {
		f.GPUName = Fact[string]{Note: "no GPU readable and no --gpu given"}
		return
	}
	f.GPUName = Know(name, from, "")
	g, err := r.cat.FindGPU(name, vram)
	if err != nil {
		f.GPUName.Note = err.Error()
		return
	}
	f.GPU, f.GPUKnown = g, true
	if g.Vendor == "cpu" {
		f.Device = Know("cpu", from, "")
	}
	if len(r.in.Devices) > 0 && from != FromGPU {
		if seen, err := r.cat.FindGPU(r.in.Devices[0].Name, vram); err == nil && seen.Name != g.Name {
			r.conflict("gpu: %s from rooftop's %s contradicts the device's own name %s; %s is used", g.Name, from, seen.Name, g.Name)
		}
	}
	if vram > 0 {
		f.GPU.VRAMGiB = vram / (1 << 30)
	}
}

func (r *resolver) parallel() {
	f := &r.f
	f.TensorParallel = override(r, "tensor_parallel_size",
		lookup(r, "tensor_parallel_size", "", asInt), r.in.Flags.TensorParallel, r.in.Env.TensorParallel)
	if !f.TensorParallel.Known {
		f.TensorParallel = Know(1, FromDefault, "assumed: the page does not tell it; give --tensor-parallel-size")
	} else if f.TensorParallel.Source == FromDefault && r.in.Launch == nil {
		f.TensorParallel.Note = "assumed: the page does not tell it; give --tensor-parallel-size"
	}
	f.PipelineParallel = lookup(r, "pipeline_parallel_size", "", asInt)
	if !f.PipelineParallel.Known {
		f.PipelineParallel = Know(1, FromDefault, "assumed")
	}
	f.DataParallel = lookup(r, "data_parallel_size", "", asInt)
	ranks := 1
	if r.in.Page != nil {
		ranks = max(1, len(r.in.Page.Ranks))
	}
	switch {
	case f.DataParallel.Known && f.DataParallel.Source != FromDefault:
		if ranks > 1 && ranks != f.DataParallel.Value {
			f.DataParallel.Note = fmt.Sprintf("this page shows %d of them", ranks)
		}
	case r.in.Page != nil:
		f.DataParallel = Know(ranks, FromMetrics, "engine labels on the page")
	default:
		f.DataParallel = Know(1, FromDefault, "assumed")
	}
	f.ExpertParallel = lookup(r, "enable_expert_parallel", "", asBool)
	if text, from, ok := r.discovered("api_server_count"); ok {
		if n, good := asInt(text); good && n > 0 {
			f.APIServerCount = Know(n, from, "")
		}
	} else if r.launched() {
		// vLLM starts as many front ends as it has data-parallel ranks.
		f.APIServerCount = Know(f.DataParallel.Value, FromDefault, "")
	} else {
		f.APIServerCount = Fact[int]{Note: "the launch command is not readable"}
	}
	f.Ranks = ranks
	if d := len(r.in.Devices); d > 1 && !r.in.GPUsAssumed && !r.launched() && f.TensorParallel.Source == FromDefault && f.PipelineParallel.Source == FromDefault && d%ranks == 0 {
		f.TensorParallel = Know(d/ranks, FromDerived, fmt.Sprintf("the server's processes hold %d GPUs", d))
	}
	// GPUs, price and ceilings are those of the ranks that are measured.
	n := f.TensorParallel.Value * f.PipelineParallel.Value * ranks
	f.GPUCount = Know(n, FromDerived, "tensor x pipeline parallel x ranks on the page")
	if d := len(r.in.Devices); d > 0 && d != n {
		f.GPUCount.Note += fmt.Sprintf("; %d GPUs are read", d)
	}
}

func (r *resolver) scheduler() {
	f := &r.f
	fact := r.doubled(lookup(r, "max_num_seqs", "", asInt))
	if p := r.in.Page; p != nil && len(p.Ranks) > 0 {
		if g := p.Ranks[0].Gauges[GaugeMaxNumSeqs]; g.OK && g.V >= 1 {
			if fact.Known && fact.Source != FromDefault && fact.Value != int(g.V) {
				r.conflict("max_num_seqs: the page's gauge says %d, the %s %d; the gauge is used", int(g.V), fact.Source, fact.Value)
			}
			fact = Know(int(g.V), FromMetrics, "vllm:max_num_seqs gauge")
		}
	}
	f.MaxNumSeqs = override(r, "max_num_seqs", fact, r.in.Flags.MaxNumSeqs, r.in.Env.MaxNumSeqs)
	if f.MaxNumSeqs.Known && f.MaxNumSeqs.Source == FromDefault && r.in.Launch == nil && len(r.in.Server.Args) == 0 {
		// The launch is unknown: a default is no more than the most likely value,
		// and rules that compare with the seats must not rest on it.
		f.MaxNumSeqs = Fact[int]{Note: fmt.Sprintf("the page does not tell it and the launch command is not readable; vLLM's default would be %d: give -m", f.MaxNumSeqs.Value)}
	} else if !f.MaxNumSeqs.Known {
		f.MaxNumSeqs.Note = strings.TrimPrefix(f.MaxNumSeqs.Note+"; give -m", "; ")
	}
	f.MaxNumBatchedTokens = r.doubled(lookup(r, "max_num_batched_tokens", "", asInt))
	f.PrefixCaching = lookup(r, "enable_prefix_caching", r.cache.EnablePrefixCaching, asBool)
	f.ChunkedPrefill = lookup(r, "enable_chunked_prefill", r.cache.ChunkedPrefill, asBool)
	f.EnforceEager = lookup(r, "enforce_eager", "", asBool)
	f.AsyncScheduling = lookup(r, "async_scheduling", "", asBool)
	f.GPUMemoryUtilization = lookup(r, "gpu_memory_utilization", r.cache.GPUMemoryUtilization, asFloat)
	if text, from, ok := r.discovered("speculative_config"); ok {
		f.Speculative = Know(text != "", from, "")
	} else if r.in.Page != nil && r.in.Page.Counters[CounterSpecDraftTokens].OK {
		f.Speculative = Know(true, FromMetrics, "")
	} else if r.in.Launch != nil {
		f.Speculative = Know(false, FromCmdline, "")
	}
	if !r.launched() {
		// Without the launch these defaults are assumptions, and say so.
		for _, fact := range []*Fact[bool]{&f.EnforceEager, &f.AsyncScheduling, &f.ExpertParallel} {
			if fact.Source == FromDefault {
				fact.Note = "assumed: the launch command is not readable"
			}
		}
		if f.MaxNumBatchedTokens.Source == FromDefault {
			f.MaxNumBatchedTokens.Note = strings.TrimSuffix("assumed: the launch command is not readable; "+f.MaxNumBatchedTokens.Note, "; ")
		}
	}
}

// doubled applies --performance-mode throughput to a default: it doubles seats
// and token budget where they are unset (vLLM 0.17 and newer).
func (r *resolver) doubled(fact Fact[int]) Fact[int] {
	if mode, _, ok := r.discovered("performance_mode"); ok && mode == "throughput" && fact.Source == FromDefault {
		return Know(2*fact.Value, FromDefault, "doubled by --performance-mode throughput")
	}
	return fact
}

func (r *resolver) launched() bool { return r.in.Launch != nil || len(r.in.Server.Args) > 0 }

func (r *resolver) model() {
	f := &r.f
	served := r.in.Server.Model
	from := FromServer
	if served == "" && r.in.Page != nil {
		served, from = r.in.Page.Model, FromMetrics
	}
	if served != "" {
		f.Model = Know(served, from, "")
	}
	switch {
	case r.in.LaunchModel != "":
		f.ModelPath = Know(r.in.LaunchModel, FromCmdline, "")
	case r.in.Server.Root != "":
		f.ModelPath = Know(r.in.Server.Root, FromServer, "")
	case served != "":
		f.ModelPath = Know(served, from, "the served name; the path behind it is not known")
	}
	said := r.in.Flags.Model
	saidFrom := FromFlag
	if said == "" {
		said, saidFrom = r.in.Env.Model, FromEnv
	}
	if said != "" {
		f.ModelPath = Know(said, saidFrom, "")
		if !f.Model.Known {
			f.Model = f.ModelPath
		}
	}
	r.modelSpec(said)
	if f.ModelKnown {
		source, note := f.ModelFrom, ""
		if source == FromCatalog {
			note = "(est) " + f.ModelSpec.ID
		}
		f.ParamsTotal = Know(f.ModelSpec.TotalParams, source, note)
		f.ParamsActive = Know(f.ModelSpec.ActiveParams, source, note)
	}
	f.MaxModelLen = r.maxModelLen()
}

// modelSpec finds the shape of the model: config.json beats the catalog, the
// path behind the served name beats the name.
func (r *resolver) modelSpec(said string) {
	f := &r.f
	if r.in.ModelConfig != nil {
		f.ModelSpec, f.ModelKnown, f.ModelFrom = *r.in.ModelConfig, true, r.in.ModelConfigFrom
		if f.ModelSpec.ID == "" {
			f.ModelSpec.ID = f.ModelPath.Value
		}
		return
	}
	names := []string{said, r.in.LaunchModel, r.in.Server.Root, f.Model.Value}
	if said != "" {
		names = names[:1]
	}
	var first error
	for _, name := range names {
		if name == "" {
			continue
		}
		spec, err := r.cat.FindModel(name)
		if err == nil {
			f.ModelSpec, f.ModelKnown, f.ModelFrom = spec, true, FromCatalog
			return
		}
		if first == nil {
			first = err
		}
	}
	note := "the model's name is not known"
	if first != nil {
		note = first.Error()
	}
	f.ParamsTotal.Note, f.ParamsActive.Note = note, note
}

func (r *resolver) maxModelLen() Fact[int] {
	if n := r.in.Server.MaxModelLen; n > 0 {
		return Know(n, FromServer, "")
	}
	if text, from, ok := r.discovered("max_model_len"); ok {
		if n, good := asInt(text); good && n > 0 {
			return Know(n, from, "")
		}
	}
	tokens, okT := asFloat(r.cache.KVCacheSizeTokens)
	times, okC := asFloat(r.cache.KVCacheMaxConcurrency)
	if okT && okC && times > 0 {
		return Know(int(tokens/times+0.5), FromMetrics, "kv_cache_size_tokens / kv_cache_max_concurrency")
	}
	if r.f.ModelKnown && r.f.ModelSpec.MaxPositions > 0 {
		return Know(r.f.ModelSpec.MaxPositions, r.f.ModelFrom, "the model's own limit; the launch may have set less")
	}
	return Fact[int]{Note: "neither /v1/models nor the launch command is readable"}
}

// dtypes settles three different things: how weights are stored, how the cache
// is stored, and what the arithmetic runs in. The weights' type is never taken
// from the cache's.
func (r *resolver) dtypes() {
	f := &r.f
	quant, quantFrom, quantized := r.discovered("quantization")
	if quantized {
		f.Quantization = Know(quant, quantFrom, "")
	}
	dtype, dtypeFrom, dtypeSet := r.discovered("dtype")
	compute, computeOK := catalog.ParseDType(dtype)
	if dtypeSet && computeOK {
		f.ComputeDType = Know(string(compute), dtypeFrom, "")
	} else {
		f.ComputeDType = Know(string(catalog.BF16), FromDefault, "")
		if f.ModelKnown && (f.ModelSpec.NativeDType == catalog.FP16 || f.ModelSpec.NativeDType == catalog.FP32) {
			f.ComputeDType = Know(string(f.ModelSpec.NativeDType), f.ModelFrom, "")
		}
	}
	f.WeightDType = r.weightDType(quant, quantFrom, quantized)
	if !f.Quantization.Known {
		if _, method, ok := catalog.DTypeOfName(f.ModelPath.Value); ok && method != "" {
			f.Quantization = Know(method, FromDerived, "from the model's name")
		}
	}

	kv, kvFrom, ok := r.discovered("kv_cache_dtype")
	if !ok && r.cache.CacheDType != "" {
		kv, kvFrom, ok = r.cache.CacheDType, FromMetrics, true
	}
	stored, known := catalog.ParseDType(kv)
	switch {
	case ok && known:
		f.KVCacheDType = Know(string(stored), kvFrom, "")
	case ok && kv != "auto":
		f.KVCacheDType = Fact[string]{Note: fmt.Sprintf("%q is not a cache type rooftop knows", kv)}
	case ok:
		f.KVCacheDType = Know(f.ComputeDType.Value, kvFrom, "auto: the model's own type")
	default:
		f.KVCacheDType = Know(f.ComputeDType.Value, FromDefault, "auto: the model's own type")
	}
	r.classicBytes(kv)
}

func (r *resolver) weightDType(quant string, quantFrom Source, quantized bool) Fact[string] {
	f := &r.f
	if r.in.ModelConfig != nil && f.ModelSpec.NativeDType != "" && !quantized {
		if f.ComputeDType.Source != FromDefault && unquantized(f.ModelSpec.NativeDType) {
			return Know(f.ComputeDType.Value, f.ComputeDType.Source, "--dtype")
		}
		return Know(string(f.ModelSpec.NativeDType), r.in.ModelConfigFrom, "config.json")
	}
	for _, name := range []string{f.ModelPath.Value, f.Model.Value} {
		if d, _, ok := catalog.DTypeOfName(name); ok {
			return Know(string(d), FromDerived, "from the model's name")
		}
	}
	if quantized {
		if d, ok := catalog.ParseDType(quant); ok {
			return Know(string(d), quantFrom, "--quantization")
		}
		if d, _, ok := catalog.DTypeOfName("x-" + quant); ok {
			return Know(string(d), quantFrom, "--quantization")
		}
	}
	if f.ModelKnown && f.ModelSpec.NativeDType != "" {
		if f.ComputeDType.Source != FromDefault && unquantized(f.ModelSpec.NativeDType) && f.ComputeDType.Source != f.ModelFrom {
			return Know(f.ComputeDType.Value, f.ComputeDType.Source, "--dtype")
		}
		return Know(string(f.ModelSpec.NativeDType), FromCatalog, "(est)")
	}
	return Know(string(catalog.BF16), FromDefault, "assumed: bf16, the model's own type is not known")
}

func unquantized(d catalog.DType) bool {
	return d == catalog.BF16 || d == catalog.FP16 || d == catalog.FP32
}

// classicBytes follows the documented order of the classic formulas: DTYPE or
// VLLM_DTYPE of rooftop's environment, then kv_cache_dtype, then the catalog,
// then bf16.
func (r *resolver) classicBytes(kv string) {
	f := &r.f
	if d, ok := catalog.ParseDType(r.in.Env.DType); ok {
		f.ClassicBytes, f.ClassicBytesFrom = d.Bytes(), "env"
		return
	}
	if d, ok := catalog.ParseDType(kv); ok {
		f.ClassicBytes, f.ClassicBytesFrom = d.Bytes(), "kv_cache_dtype"
		return
	}
	if w := f.WeightDType; w.Known && (w.Source == FromCmdline || w.Source == FromConfig) {
		f.ClassicBytes, f.ClassicBytesFrom = catalog.DType(w.Value).Bytes(), string(w.Source)
		return
	}
	if f.ModelKnown && f.ModelSpec.NativeDType != "" {
		f.ClassicBytes, f.ClassicBytesFrom = f.ModelSpec.NativeDType.Bytes(), "catalog"
		return
	}
	f.ClassicBytes, f.ClassicBytesFrom = catalog.BF16.Bytes(), "bf16 fallback"
}

// pool settles the size of one rank's KV pool. What the server says beats what
// can be computed: the capacity of hybrid models is not blocks x block size.
func (r *resolver) pool() {
	f := &r.f
	f.BlockSize = lookup(r, "block_size", r.cache.BlockSize, asInt)
	if n, ok := asInt(r.cache.BlockSize); ok && n > 0 {
		f.BlockSize = Know(n, FromMetrics, "") // what the engine resolved, whatever was asked for
	}
	if n, ok := asInt(r.cache.NumGPUBlocks); ok && n > 0 {
		f.NumGPUBlocks = Know(n, FromMetrics, "")
	} else {
		f.NumGPUBlocks = Fact[int]{Note: "the page has no num_gpu_blocks label"}
	}
	if text, from, ok := r.discovered("num_gpu_blocks_override"); ok {
		if n, good := asInt(text); good && n > 0 {
			f.NumGPUBlocksOverride = Know(n, from, "")
		}
	} else if n, ok := asInt(r.cache.NumGPUBlocksOverride); ok && n > 0 {
		f.NumGPUBlocksOverride = Know(n, FromMetrics, "")
	}
	switch tokens, ok := asFloat(r.cache.KVCacheSizeTokens); {
	case ok && tokens > 0:
		f.KVCapacityTokens = Know(tokens, FromMetrics, "kv_cache_size_tokens")
	case f.NumGPUBlocks.Known && f.BlockSize.Known:
		note := "num_gpu_blocks x block_size"
		if f.ModelKnown && f.ModelSpec.Attention == catalog.AttentionHybrid {
			note += "; too high for a hybrid model"
		}
		f.KVCapacityTokens = Know(float64(f.NumGPUBlocks.Value*f.BlockSize.Value), FromDerived, note)
	default:
		f.KVCapacityTokens = r.estimatedPool()
	}
}

func (r *resolver) estimatedPool() Fact[float64] {
	c, missing := ReplicaConfig(&r.f)
	if len(missing) > 0 || !r.f.GPUMemoryUtilization.Known {
		return Fact[float64]{Note: "the page does not tell it, and " + strings.Join(append(missing, "gpu_memory_utilization"), ", ") + " would be needed to compute it"}
	}
	tokens, _, _ := c.Capacity(r.f.GPUMemoryUtilization.Value)
	if tokens <= 0 {
		return Fact[float64]{Note: "by the catalog the weights leave no room for a pool"}
	}
	return Know(tokens, FromDerived, "(est) from GPU memory, weights and utilisation, +-20 %")
}

// ReplicaConfig is the physical model's view of one data-parallel replica, or
// the names of the facts it lacks.
func ReplicaConfig(f *Facts) (roofline.Config, []string) {
	var missing []string
	if !f.GPUKnown {
		missing = append(missing, "the GPU")
	}
	if !f.ModelKnown {
		missing = append(missing, "the model's shape")
	}
	if !f.KVCacheDType.Known {
		missing = append(missing, "the KV cache type")
	}
	c := roofline.Config{
		GPU:            f.GPU,
		Model:          f.ModelSpec,
		TP:             max(1, f.TensorParallel.Value),
		PP:             max(1, f.PipelineParallel.Value),
		ExpertParallel: f.ExpertParallel.Value,
		Weight:         catalog.DType(f.WeightDType.Value),
		KV:             catalog.DType(f.KVCacheDType.Value),
		Compute:        catalog.DType(f.ComputeDType.Value),
		Eager:          f.EnforceEager.Value,
	}
	if c.ExpertParallel {
		c.DP = max(1, f.DataParallel.Value)
	}
	if c.Weight == catalog.INT8 && f.Quantization.Value == "compressed-tensors" {
		c.Compute = catalog.INT8 // W8A8; other int8 weights are unpacked to 16 bit
	}
	if len(missing) == 0 {
		missing = append(missing, c.Check()...)
	}
	return c, missing
}

// money settles the price: the person's figure is for the whole server, the
// catalog's is per GPU, times the GPUs used, and an estimate.
func (r *resolver) money() {
	f := &r.f
	for _, given := range []struct {
		v    stat.Opt
		from Source
	}{{r.in.Flags.CostPerHour, FromFlag}, {r.in.Env.CostPerHour, FromEnv}} {
		if given.v.OK {
			f.CostPerHour = Know(given.v.V, given.from, "USD per hour, whole server")
			return
		}
	}
	if !f.GPUKnown || f.GPU.Price == nil {
		f.CostPerHour = Fact[float64]{Note: "no price in the catalog: give --cost-per-hour"}
		return
	}
	per, kind := f.GPU.Price.OnDemandUSD, "on demand"
	if r.in.Spot {
		per, kind = f.GPU.Price.SpotUSD, "spot"
	}
	if per <= 0 {
		f.CostPerHour = Fact[float64]{Note: "no " + kind + " price in the catalog: give --cost-per-hour"}
		return
	}
	f.CostEst = true
	f.CostPerHour = Know(per*float64(f.GPUCount.Value), FromCatalog,
		fmt.Sprintf("(est) %s, %d x $%.2f, as of %s", kind, f.GPUCount.Value, per, f.GPU.Price.AsOf))
}

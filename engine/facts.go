package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Source is the origin of a fact. A flag of rooftop takes precedence over its environment,
// then discovery, then the catalog.
type Source string

// Sources of facts and of evidence.
const (
	FromFlag     Source = "flag"    // rooftop's own command line
	FromEnv      Source = "env"     // rooftop's or the server's environment
	FromCmdline  Source = "cmdline" // the server's command line
	FromConfig   Source = "config"  // the server's config file, or the model's config.json
	FromServer   Source = "server"  // /v1/models, /version, /server_info
	FromMetrics  Source = "metrics" // labels and gauges of the page
	FromCatalog  Source = "catalog" // an estimate, marked (est)
	FromDefault  Source = "default" // the engine's default for this version and hardware
	FromDerived  Source = "derived" // computed from other facts
	FromMeasured Source = "measured"
	FromGPU      Source = "gpu" // read from the device
)

// Fact is one property of the server that is known without measuring.
type Fact[T any] struct {
	Value  T
	Known  bool
	Source Source
	Note   string // a remark, or why the fact is unknown
}

// Know returns a fact with a known value, its source and an optional note.
func Know[T any](v T, from Source, note string) Fact[T] {
	return Fact[T]{Value: v, Known: true, Source: from, Note: note}
}

// FactOpt returns the value of a fact, absent if it is unknown.
func FactOpt[T int | float64](f Fact[T]) stat.Opt {
	if !f.Known {
		return stat.None
	}
	return stat.Some(float64(f.Value))
}

// Facts are the known properties of a server's launch, model and hardware. Known integers are
// at least 1.
type Facts struct {
	Engine        Fact[string] // ID in the catalog: "vllm"
	EngineVersion Fact[string] // "0.32.0", without a build suffix
	V0            Fact[bool]   // the engine before V1: other names, swap, defaults
	Model         Fact[string] // served model name
	ModelPath     Fact[string] // model path or HF ID behind the name
	Device        Fact[string] // "cuda", "cpu", "rocm"

	MaxNumSeqs         Fact[int]
	SlotsInferred      int  // slots of a rank that the page alone shows; 0 if it shows none
	MaxNumSeqsInferred bool // MaxNumSeqs is SlotsInferred: nothing else shows it
	// CutOffAt is the mean length in tokens of requests at their end, where it is their slot's part of a divided pool,
	// as the windows show; absent elsewhere.
	CutOffAt stat.Opt
	// LongPrompt is how many tokens the longest prompt has to compute, at least, where they fill several steps; inferred
	// from the lengths of prompts and the tokens of steps, else absent.
	LongPrompt           stat.Opt
	MaxNumBatchedTokens  Fact[int]
	LongPrefillThreshold Fact[int] // tokens of one prompt in a step, at most; 0 is unlimited
	MaxModelLen          Fact[int]
	TensorParallel       Fact[int]
	PipelineParallel     Fact[int]
	DataParallel         Fact[int]
	ExpertParallel       Fact[bool]
	GPUMemoryUtilization Fact[float64] // 0..1
	KVCacheDType         Fact[string]  // spelled as catalog.DType; resolved, never "auto"
	WeightDType          Fact[string]  // spelled as catalog.DType
	ComputeDType         Fact[string]  // dtype of activations
	Quantization         Fact[string]
	PrefixCaching        Fact[bool]
	ChunkedPrefill       Fact[bool]
	EnforceEager         Fact[bool]
	AsyncScheduling      Fact[bool]
	BlockSize            Fact[int]     // tokens
	NumGPUBlocks         Fact[int]     // blocks of one rank's pool
	NumGPUBlocksOverride Fact[int]     // blocks
	KVCapacityTokens     Fact[float64] // tokens of one rank's pool
	APIServerCount       Fact[int]
	Speculative          Fact[bool]
	EnableLoRA           Fact[bool]
	MaxLoRAs             Fact[int] // adapters that one step takes
	MaxLoRARank          Fact[int]

	Ranks int // data-parallel ranks on the page, at least 1
	// DividedBy is the number of data-parallel ranks among which the server divides the numbers of three flags: slots,
	// step budget and tensor parallelism (SGLang's attention data parallelism); 0 if each rank has them. Facts are
	// those of one rank: FlagValue returns the flags'. DividedSlots is the number of slots that the flag gives.
	DividedBy    int
	DividedSlots int

	GPUName     Fact[string]
	GPUCount    Fact[int]     // GPUs of the measured ranks
	GPUsFree    Fact[int]     // further GPUs of that kind on the server's machine that no process uses
	CostPerHour Fact[float64] // USD for the whole server
	CostEst     bool          // the cost is a catalog price

	ParamsTotal  Fact[float64] // parameters
	ParamsActive Fact[float64]

	// GPU and ModelSpec are the catalog entries (or config.json) behind the names. They are
	// valid only if GPUKnown and ModelKnown are set.
	GPU        catalog.GPU
	GPUKnown   bool
	ModelSpec  catalog.Model
	ModelKnown bool
	ModelFrom  Source

	// ClassicBytes is bytes per parameter for R4 and the PROFILE ceilings, in their documented
	// order of precedence. Its origin is "env", "kv_cache_dtype", "catalog" or "bf16 fallback".
	ClassicBytes     float64
	ClassicBytesFrom string

	PID       int    // listening process, 0 if unknown
	Launch    string // redacted command line, "" if unknown
	LaunchIn  string // what holds the command line: "vllm.service"; "" for a process of its own, or if unknown
	Conflicts []string
}

// Dialect returns the server's engine, vLLM if it is not known.
func (f *Facts) Dialect() *catalog.Engine { return catalog.EngineOf(f.Engine.Value) }

// Spell returns a sentence that is written for vLLM in the words and flags of the server's engine.
func (f *Facts) Spell(text string) string { return spelled(f.Dialect(), text) }

// Change returns a change of vLLM's flag ("--max-num-seqs"), with the values of one rank, as the change of this
// server's flag for the same setting. Its flag is "" if the engine has none.
func (f *Facts) Change(flag, from, to string) Change {
	c, ok := SettingChange(f.Dialect(), ArgumentName(flag), f.FlagValue(flag, from), f.FlagValue(flag, to))
	if !ok {
		return Change{}
	}
	return c
}

// FlagValue returns the value of vLLM's flag ("--max-num-seqs") with which a rank has a value: that of all ranks
// together where the server divides it among them, else the same.
func (f *Facts) FlagValue(flag, value string) string {
	n, err := strconv.Atoi(value)
	if f.DividedBy < 2 || err != nil || n < 1 {
		return value
	}
	switch flag {
	case "--max-num-seqs":
		if f.DividedSlots > 0 && n == max(1, f.DividedSlots/f.DividedBy) {
			return strconv.Itoa(f.DividedSlots)
		}
	case "--max-num-batched-tokens", "--tensor-parallel-size":
	default:
		return value
	}
	return strconv.Itoa(n * f.DividedBy)
}

// WithPool returns changes of this server's flags, completed by what its engine ties to the number of slots: a pool
// that is divided among them is raised with them, so that a request may have as many tokens as before, and one that
// they share stays shared. pool is what the slots then share, in tokens, 0 if it does not change.
func (f *Facts) WithPool(changes []Change) (all []Change, pool int) {
	g, slots := f.Dialect(), f.MaxNumSeqs
	i := slices.IndexFunc(changes, func(c Change) bool { return c.Sets("--max-num-seqs") })
	if g.Divided == "" || i < 0 || !slots.Known || !f.KVCapacityTokens.Known {
		return changes, 0
	}
	to, err := strconv.Atoi(changes[i].To)
	flag, shared := g.Flag(g.Divided), g.Flag(g.Shared)
	switch {
	case err != nil || to < 1 || slices.ContainsFunc(changes, func(c Change) bool { return c.Flag == flag }):
		return changes, 0
	case slots.Value > 1 && f.KVCapacityTokens.Value == float64(f.MaxModelLen.Value):
		if strings.Contains(f.Launch, shared) {
			return changes, 0
		}
		return append(slices.Clone(changes), Change{Flag: shared, To: "on"}), 0
	}
	from := ""
	if f.NumGPUBlocksOverride.Known {
		from = strconv.Itoa(f.NumGPUBlocksOverride.Value)
	}
	pool = int(f.KVCapacityTokens.Value) / slots.Value * to
	return append(slices.Clone(changes), Change{Flag: flag, From: from, To: strconv.Itoa(pool)}), pool
}

// OnCPU reports whether the model runs on a CPU: no GPU computes it.
func (f *Facts) OnCPU() bool { return f.Device.Known && f.Device.Value == "cpu" }

// ReplicaConfig returns the physical model's configuration of one data-parallel replica, or
// the names of the missing facts.
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
		KVAssumed:      f.KVCacheDType.Source == FromDefault,
		Compute:        catalog.DType(f.ComputeDType.Value),
		Eager:          f.EnforceEager.Value,
		OtherEngine:    f.Dialect().ID != catalog.VLLM,
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

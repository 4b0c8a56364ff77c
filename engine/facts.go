package engine

import (
	"github.com/rooftop-dev/rooftop/catalog"
)

// Source says where a fact came from, strongest first: a flag of rooftop beats
// its environment, which beats discovery, which beats the catalog.
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
	FromDefault  Source = "default" // vLLM's default for this version and hardware
	FromDerived  Source = "derived" // computed from other facts
	FromMeasured Source = "measured"
	FromGPU      Source = "gpu" // read from the device
)

// Fact is one thing known of the server before any measuring.
type Fact[T any] struct {
	Value  T
	Known  bool
	Source Source
	Note   string // what else should be said of it, or why it is unknown
}

// Know returns a known fact.
func Know[T any](v T, from Source, note string) Fact[T] {
	return Fact[T]{Value: v, Known: true, Source: from, Note: note}
}

// Facts is what is known of a server's launch, model and hardware. Integers
// are at least 1 where known.
type Facts struct {
	Engine        Fact[string] // "vllm"
	EngineVersion Fact[string] // "0.32.0", without build suffix
	V0            Fact[bool]   // the engine before V1: other names, swap, defaults
	Model         Fact[string] // served model name
	ModelPath     Fact[string] // model path or HF id behind it
	Device        Fact[string] // "cuda", "cpu", "rocm"

	MaxNumSeqs           Fact[int]
	MaxNumBatchedTokens  Fact[int]
	MaxModelLen          Fact[int]
	TensorParallel       Fact[int]
	PipelineParallel     Fact[int]
	DataParallel         Fact[int]
	ExpertParallel       Fact[bool]
	GPUMemoryUtilization Fact[float64] // 0..1
	KVCacheDType         Fact[string]  // catalog.DType spelling; resolved, never "auto"
	WeightDType          Fact[string]  // catalog.DType spelling
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

	Ranks       int // data-parallel ranks on the page, at least 1
	GPUName     Fact[string]
	GPUCount    Fact[int]     // GPUs of the ranks that are measured
	CostPerHour Fact[float64] // USD for the whole server
	CostEst     bool          // cost is a catalog price

	ParamsTotal  Fact[float64] // parameters
	ParamsActive Fact[float64]

	// GPU and ModelSpec are the catalog entries (or config.json) behind the
	// names; valid where GPUKnown and ModelKnown.
	GPU        catalog.GPU
	GPUKnown   bool
	ModelSpec  catalog.Model
	ModelKnown bool
	ModelFrom  Source

	// ClassicBytes is bytes per parameter in the documented order of R4 and the
	// classic ceilings, with where it came from: "env", "kv_cache_dtype",
	// "catalog" or "bf16 fallback".
	ClassicBytes     float64
	ClassicBytesFrom string

	Local     bool   // the server's process was found on this machine
	PID       int    // of the listening process, 0 unknown
	Launch    string // the redacted command line as one string, "" unknown
	Conflicts []string
}

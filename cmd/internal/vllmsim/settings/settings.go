// Package settings turns vLLM's command line into a simulated server's
// configuration: the same spellings, the same defaults by version and hardware,
// the same refusals.
package settings

import (
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
)

// Releases are the releases of vLLM that can be simulated, as --sim-dialect
// names them, the newest last.
var Releases = []string{"0.10", "0.11", "0.20", "0.32"}

// Settings is a server as its command line, model and hardware make it. Every
// field has its value; none is "unset".
type Settings struct {
	Argv []string // as given, without the program's own words

	Release   string        // of vLLM, "0.32"; the dialect of page and scheduler
	Model     catalog.Model // shape
	ModelName string        // as --model spells it
	Served    []string      // names it answers to, at least one
	GPU       catalog.GPU
	Host      string
	Port      int
	APIKey    string // "" is none

	MaxModelLen         int
	MaxNumSeqs          int
	MaxNumBatchedTokens int

	GPUMemoryUtilization float64 // 0..1
	KVCacheMemoryBytes   float64 // 0: sized by utilisation
	NumGPUBlocksOverride int     // 0: none
	BlockSize            int
	WeightDType          catalog.DType // of the linear layers
	ComputeDType         catalog.DType // of activations
	// LinearDType is what the linear layers multiply in: ComputeDType where
	// quantisation saves bytes only, else the type of the weights.
	LinearDType    catalog.DType
	KVDType        catalog.DType
	Quantization   string // "" is none
	TensorParallel int
	DataParallel   int

	PrefixCaching             bool
	ChunkedPrefill            bool
	LongPrefillTokenThreshold int
	PriorityPolicy            bool
	ReserveFullISL            bool
	Watermark                 float64
	AsyncScheduling           bool
	EnforceEager              bool
	// MaxCaptureSize is the largest step, in tokens, for which a CUDA graph is
	// captured; 0 is none.
	MaxCaptureSize int
	StreamInterval int
	LoRA           bool
	MaxLoras       int
	LoRAModules    []string // adapter names
	LogStats       bool
	APIServers     int // front-end processes

	// What only a simulation has.
	Seed        uint64
	Scale       float64       // simulated seconds per wall second; 1 is live
	StartupTime time.Duration // <0: from weights, disk and graph capture
	PerfFile    string        // path of a device description; "" is none
	Device      []byte        // its content; nil without one
	Scenario    string        // name; "" is none
	Faults      []Fault

	// Notes says, once each, what was accepted and has no effect here.
	Notes []string
}

// Fault is something that goes wrong at a time.
type Fault struct {
	Kind   string        // "stall", "slow", "die", "reset", "network", "skew" (all requests to one rank), "hiccup" (rare long steps)
	At     time.Duration // after the server is healthy
	For    time.Duration // 0: for good
	Factor float64       // of "slow": step time is multiplied by it
	Rank   int           // data-parallel rank; -1 all
	Delay  time.Duration // of "network": added to every answer, outside the server; of "hiccup": added to a step
}

// Core returns the scheduler's configuration of a data-parallel rank whose pool
// has that many blocks, the null block included.
func (s *Settings) Core(numBlocks, rank int) core.Config {
	c := core.Config{
		MaxNumSeqs: s.MaxNumSeqs, MaxNumBatchedTokens: s.MaxNumBatchedTokens, MaxModelLen: s.MaxModelLen,
		BlockSize: s.BlockSize, NumBlocks: numBlocks,
		PrefixCaching: s.PrefixCaching, ChunkedPrefill: s.ChunkedPrefill,
		LongPrefillTokenThreshold: s.LongPrefillTokenThreshold,
		ReserveFullISL:            s.ReserveFullISL, Watermark: s.Watermark,
		AsyncScheduling: s.AsyncScheduling,
		Generation:      s.Generation(),
		Seed:            s.Seed + uint64(rank)<<32,
	}
	if s.PriorityPolicy {
		c.Policy = core.Priority
	}
	if s.LoRA {
		c.MaxLoras = s.MaxLoras
	}
	return c
}

// Generation returns the scheduler that the release has. Whole-sequence admission
// came with 0.19, the rest of the newer scheduler around it (simulator.md facts 9,
// 21, 29); pages of 0.15 and 0.19.1 still count the lookups of a blocked request
// again with every step.
func (s *Settings) Generation() core.Generation {
	if s.Release == "0.10" || s.Release == "0.11" {
		return core.Old
	}
	return core.New
}

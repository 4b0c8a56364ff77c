// Package settings turns vLLM's command line into a simulated server's
// configuration: the same spellings, the same defaults by version and hardware,
// the same refusals.
package settings

import (
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
)

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
	APIKey    string

	MaxModelLen         int
	MaxNumSeqs          int
	MaxNumBatchedTokens int

	GPUMemoryUtilization float64 // 0..1
	KVCacheMemoryBytes   float64 // 0: sized by utilisation
	NumGPUBlocksOverride int     // 0: none
	BlockSize            int
	WeightDType          catalog.DType // of the linear layers
	ComputeDType         catalog.DType // of activations
	KVDType              catalog.DType
	Quantization         string // "" is none
	TensorParallel       int
	DataParallel         int

	PrefixCaching             bool
	ChunkedPrefill            bool
	LongPrefillTokenThreshold int
	PriorityPolicy            bool
	ReserveFullISL            bool
	Watermark                 float64
	AsyncScheduling           bool
	EnforceEager              bool
	StreamInterval            int
	LoRA                      bool
	MaxLoras                  int
	LoRAModules               []string // adapter names
	LogStats                  bool
	APIServers                int // front-end processes

	// What only a simulation has.
	Seed        uint64
	Scale       float64       // simulated seconds per wall second; 1 is live
	StartupTime time.Duration // <0: from weights, disk and graph capture
	PerfFile    string        // path of a device description; "" is none
	Scenario    string        // name; "" is none
	Faults      []Fault

	// Notes says, once each, what was accepted and has no effect here.
	Notes []string
}

// Fault is something that goes wrong at a time.
type Fault struct {
	Kind   string        // "stall", "slow", "die", "reset", "network"
	At     time.Duration // after the server is healthy
	For    time.Duration // 0: for good
	Factor float64       // of "slow": step time is multiplied by it
	Rank   int           // data-parallel rank; -1 all
	Delay  time.Duration // of "network": added to every answer, outside the server
}

// Parse reads vLLM's arguments (flags, and a model as the first lone word). read
// opens the files that --config, --model DIR and --sim-perf-file name. The error
// is one sentence in the words vLLM would use where it refuses the same, else
// naming flag, value and what would be accepted.
func Parse(argv []string, read func(path string) ([]byte, error)) (*Settings, error) {
	return nil, nil
}

// Package settings has the settings of a simulated server. It parses vLLM's command line with the spellings,
// the defaults by version and hardware, and the refusals of vLLM; reads the file that describes an accelerator
// (--sim-perf-file); and holds the library of scenarios: a server with its flags and hardware, the load on it,
// its faults, the correct diagnosis, a change that must help and one that must not.
//
// The truth of a scenario follows from its mechanism, not from rooftop's answer. FORMAT.md describes its file.
package settings

import (
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// Releases lists the releases of vLLM that can be simulated, the values of --sim-dialect, newest last.
var Releases = []string{"0.10", "0.11", "0.20", "0.32"}

// Minor returns the second number of a release, 32 for "0.32" and "0.32.0"; for any other text that of the
// newest of Releases.
func Minor(release string) int {
	if rest, ok := strings.CutPrefix(release, "0."); ok {
		rest, _, _ = strings.Cut(rest, ".")
		if n, err := strconv.Atoi(rest); err == nil {
			return n
		}
	}
	return Minor(Releases[len(Releases)-1])
}

// Settings is the configuration of a server, resolved from its command line, model and hardware. No field is
// unset.
type Settings struct {
	core.Config // of the scheduler; [Settings.Core] adds what a rank has of its own

	Argv []string // as given, without the program's own words

	Release   string        // of vLLM, "0.32"; the dialect of page and scheduler
	Model     catalog.Model // shape
	ModelName string        // as --model spells it
	Served    []string      // names it answers to, at least one
	GPU       catalog.GPU
	Host      string
	Port      int
	APIKey    string // "" is none

	GPUMemoryUtilization float64       // 0..1
	KVCacheMemoryBytes   float64       // 0 if the pool is sized by utilization
	NumGPUBlocksOverride int           // 0 means no override
	WeightDType          catalog.DType // of the linear layers
	ComputeDType         catalog.DType // of activations
	// LinearDType is the type in which the linear layers multiply: ComputeDType if quantisation only
	// saves bytes, else the type of the weights.
	LinearDType    catalog.DType
	KVDType        catalog.DType
	Quantization   string // "" is none
	TensorParallel int
	DataParallel   int

	EnforceEager bool
	// MaxCaptureSize is the largest step, in tokens, for which a CUDA graph is captured; 0 means none.
	MaxCaptureSize int
	StreamInterval int
	LoRA           bool
	LoRAModules    []string // adapter names
	LogStats       bool
	APIServers     int // front-end processes

	// Options of the simulation.
	Scale       float64       // simulated seconds per wall second; 1 is live
	MachineGPUs int           // GPUs of the machine; 0 is as many as the server uses
	StartupTime time.Duration // <0 if computed from weights, disk and graph capture
	PerfFile    string        // path of a device description; "" means none
	Device      DeviceFile    // its content
	Scenario    string        // name; "" is none
	Faults      []Fault

	// Notes lists, once each, the options that were accepted without effect.
	Notes []string
}

// Fault is a fault at a time.
type Fault struct {
	Kind   string        // "stall", "slow", "die", "reset", "network", "skew" (all requests to one rank), "errors"
	At     time.Duration // after the server is healthy
	For    time.Duration // 0 means permanently
	Factor float64       // for "slow": factor of the step time; for "errors": share of the requests that are answered 500
	Rank   int           // data-parallel rank; -1 means all
	Delay  time.Duration // for "network": added to every answer, outside the server
}

// Core returns the scheduler configuration of a data-parallel rank with numBlocks blocks, including the null
// block.
func (s *Settings) Core(numBlocks, rank int) core.Config {
	c := s.Config
	c.NumBlocks, c.Seed = numBlocks, c.Seed+uint64(rank)<<32
	return c
}

// generation returns the generation of a release's scheduler. Admission by whole sequences came with 0.19, the
// other changes at about the same time; pages of 0.15 and 0.19.1 still count the lookups of a blocked request
// again in every step.
func generation(release string) core.Generation {
	if release == "0.10" || release == "0.11" {
		return core.Old
	}
	return core.New
}

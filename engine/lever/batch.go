package lever

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
)

// Slots are the requests that one rank runs at once.
var Slots = &Lever{
	Flag: "--max-num-seqs", Tied: true, Values: count, Gain: GainOfSlots,
	Now: fact(func(f *engine.Facts) engine.Fact[int] { return f.MaxNumSeqs }),
}

// GainOfSlots predicts another number of slots by the physical model.
func GainOfSlots(d *engine.Diagnosis, to int) roofline.Gain {
	if to < d.Facts.MaxNumSeqs.Value {
		return d.Performance.LowerSlots(to)
	}
	return d.Performance.RaiseSlots(to)
}

// TokenBudget is the number of tokens of a step, at most.
var TokenBudget = &Lever{
	Flag: "--max-num-batched-tokens", Tied: true, Values: count,
	Now:  fact(func(f *engine.Facts) engine.Fact[int] { return f.MaxNumBatchedTokens }),
	Gain: func(d *engine.Diagnosis, to int) roofline.Gain { return d.Performance.TokenBudget(to) },
}

const (
	// UsualBudget is vLLM's smallest default on a GPU, and its default on a CPU. For throughput, a smaller budget is never
	// better than it, only its gain may be too small to distinguish from noise.
	UsualBudget = 2048
	// MostBudget is the largest default of any release.
	MostBudget = 16384
)

// LongPrefill is the number of tokens of one prompt in a step, at most. Its present value is not read: a rule only adds it.
var LongPrefill = &Lever{
	Flag: "--long-prefill-token-threshold",
	Now:  func(*engine.Facts) (string, engine.Source) { return "", engine.FromDefault },
}

// Eager turns CUDA graphs off.
var Eager = &Lever{
	Flag: "--enforce-eager", Values: toggle, Costs: []string{"a longer start (graph capture) and 0.3 to 2 GiB of GPU memory"},
	Now: func(f *engine.Facts) (string, engine.Source) {
		if !f.EnforceEager.Value {
			return "", f.EnforceEager.Source
		}
		return "on", f.EnforceEager.Source
	},
	Gain: func(d *engine.Diagnosis, _ int) roofline.Gain { return d.Performance.NoEager() }, Predicted: []string{"off", ""},
}

// GraphsOff reports whether the launch turns CUDA graphs off on a GPU.
func GraphsOff(f *engine.Facts) bool {
	return f.EnforceEager.Known && f.EnforceEager.Value && f.EnforceEager.Source != engine.FromDefault && !f.OnCPU()
}

// APIServers is the number of processes for HTTP and tokenization.
var APIServers = &Lever{
	Flag: "--api-server-count", Values: fewCount,
	Now:   fact(func(f *engine.Facts) engine.Fact[int] { return f.APIServerCount }),
	Costs: []string{"a CPU core and about 1 GB of host memory for each added server", "the metrics page loses its process_* metrics"},
}

const (
	// ServerShare is the share of a core that each API server should use.
	ServerShare = 0.5
	// MostServers is the largest number of API servers to propose.
	MostServers = 8
)

// ServersFor returns how many API servers to run if each of now servers uses this share of a core.
func ServersFor(now int, cores float64) int {
	return min(MostServers, max(2*now, int(math.Ceil(float64(now)*cores/ServerShare))))
}

// PrefixCaching keeps the cache of a prompt for others with the same beginning.
var PrefixCaching = &Lever{
	Flag: "--enable-prefix-caching", Values: toggle, Costs: []string{"no memory: cached blocks are freed when they are needed"},
	Now: func(f *engine.Facts) (string, engine.Source) {
		from := f.PrefixCaching.Source
		if from == engine.FromDefault || from == engine.FromMetrics && f.V0.Value {
			return "", from // it is off by default, and old releases have no --no- form
		}
		return "off", from
	},
}

// LoRAs is the number of adapters in a step, at most.
var LoRAs = &Lever{
	Flag: "--max-loras", Values: count,
	Now: fact(func(f *engine.Facts) engine.Fact[int] { return f.MaxLoRAs }),
}

// TensorParallel is the number of GPUs that share each layer.
var TensorParallel = &Lever{
	Flag: "--tensor-parallel-size", Values: fewCount,
	Asks: "it takes idle GPUs of the machine; --allow-flags has to name it", Gain: GainOfDegree,
	Now: fact(func(f *engine.Facts) engine.Fact[int] { return f.TensorParallel }),
}

// GainOfDegree predicts a tensor-parallel degree by the physical model. A number of blocks that is given stays,
// although there is memory for more.
func GainOfDegree(d *engine.Diagnosis, to int) roofline.Gain {
	p := *d.Performance
	if d.Facts.NumGPUBlocksOverride.Known {
		wide, util := p.Config, d.Facts.GPUMemoryUtilization.Value
		was, _, _ := wide.Capacity(util)
		wide.TP = to
		is, _, _ := wide.Capacity(util)
		if was > 0 && is > 0 {
			p.Measured.KVCapacity = p.Measured.KVCapacity.Times(was / is)
		}
	}
	return p.TensorParallel(to)
}

// CacheType is the type of the values in the KV pool.
var CacheType = &Lever{
	Flag: "--kv-cache-dtype", Tied: true, Values: &Values{Choices: []string{"auto", "fp8"}},
	Costs: []string{"a small accuracy risk: check the model's answers"},
	Now:   fact(func(f *engine.Facts) engine.Fact[string] { return f.KVCacheDType }),
	Gain:  func(d *engine.Diagnosis, _ int) roofline.Gain { return d.Performance.FP8KV() }, Predicted: []string{"fp8"},
}

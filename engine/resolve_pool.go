package engine

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/roofline"
)

// pool settles the size of one rank's KV pool. What the server says beats what
// can be computed: the capacity of hybrid models is not blocks x block size.
func (r *resolver) pool() {
	f := &r.f
	f.BlockSize = lookup(r, "block_size", r.cache.BlockSize, asInt)
	if n, ok := asInt(r.cache.BlockSize); ok && n > 0 {
		f.BlockSize = Know(n, FromMetrics, "") // what the engine resolved, whatever was asked for
	}
	if n, ok := asInt(r.cache.NumGPUBlocks); ok && n > 0 {
		f.NumGPUBlocks = r.rankBlocks(n)
	} else {
		f.NumGPUBlocks = Fact[int]{Note: "the page has no num_gpu_blocks label"}
	}
	if text, from, ok := r.discovered("num_gpu_blocks_override"); ok {
		if n, good := asInt(text); good && n > 0 {
			f.NumGPUBlocksOverride = Know(n, from, "")
		}
	} else if n, ok := asInt(r.cache.NumGPUBlocksOverride); ok && n > 0 {
		f.NumGPUBlocksOverride = Know(n, FromMetrics, "")
	} else if n, ok := r.madeInt("num_gpu_blocks_override"); ok && n > 0 && r.cache.NumGPUBlocksOverride == "" {
		f.NumGPUBlocksOverride = Know(n, FromDerived, madeNote)
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

// rankBlocks turns the page's num_gpu_blocks into one rank's. vLLM's front end
// adds up the blocks of all its engines and shows the sum with each of them
// (v1/engine/core_client.py, 0.10 to 0.32), while kv_cache_size_tokens is one
// engine's; a recorded page of two ranks says 2048 blocks of 128 and 131,072
// tokens.
func (r *resolver) rankBlocks(n int) Fact[int] {
	ranks := r.in.Page.Ranks
	frontEnd := func(name string) string { return name[:strings.LastIndex(name, "/")+1] } // Ray's replica
	sharing := 0
	for i := range ranks {
		if frontEnd(ranks[i].Name) == frontEnd(ranks[0].Name) && ranks[i].Cache.NumGPUBlocks == r.cache.NumGPUBlocks {
			sharing++
		}
	}
	tokens, told := asFloat(r.cache.KVCacheSizeTokens)
	if sharing < 2 || told && tokens == float64(n*r.f.BlockSize.Value) {
		return Know(n, FromMetrics, "")
	}
	return Know(max(1, n/sharing), FromMetrics, fmt.Sprintf("num_gpu_blocks %d is the sum of %d ranks", n, sharing))
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

package facts

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
)

// pool resolves the size of one rank's KV pool. The server's own answer takes precedence over a
// computed one: the capacity of hybrid models is not blocks x block size.
func (r *resolver) pool() {
	f := &r.f
	f.BlockSize = lookup(r, "block_size", r.cache.BlockSize, asInt)
	if n, ok := asInt(r.cache.BlockSize); ok && n > 0 {
		f.BlockSize = engine.Know(n, engine.FromMetrics, "") // as resolved by the engine, whatever was requested
	}
	if n, ok := asInt(r.cache.NumGPUBlocks); ok && n > 0 {
		f.NumGPUBlocks = r.rankBlocks(n)
	} else {
		f.NumGPUBlocks = engine.Fact[int]{Note: "the page has no num_gpu_blocks label"}
	}
	if n, ok := r.discoveredInt("num_gpu_blocks_override"); ok {
		f.NumGPUBlocksOverride = n
	} else if n, ok := asInt(r.cache.NumGPUBlocksOverride); ok && n > 0 {
		f.NumGPUBlocksOverride = engine.Know(n, engine.FromMetrics, "")
	} else if n, ok := r.madeInt("num_gpu_blocks_override"); ok && n > 0 && r.cache.NumGPUBlocksOverride == "" {
		f.NumGPUBlocksOverride = engine.Know(n, engine.FromDerived, madeNote)
	}
	switch tokens, ok := asFloat(r.cache.KVCacheSizeTokens); {
	case ok && tokens > 0:
		f.KVCapacityTokens = engine.Know(tokens, engine.FromMetrics, "kv_cache_size_tokens")
	case f.NumGPUBlocks.Known && f.BlockSize.Known:
		note := "num_gpu_blocks x block_size"
		if f.ModelKnown && f.ModelSpec.Attention == catalog.AttentionHybrid {
			note += "; too high for a hybrid model"
		}
		f.KVCapacityTokens = engine.Know(float64(f.NumGPUBlocks.Value*f.BlockSize.Value), engine.FromDerived, note)
	default:
		f.KVCapacityTokens = r.estimatedPool()
	}
}

// rankBlocks converts the page's num_gpu_blocks to one rank's. vLLM's front end sums the blocks of all
// its engines and reports the sum for each of them (v1/engine/core_client.py, 0.10 to 0.32), while
// kv_cache_size_tokens is one engine's. A recorded page of two ranks has 2048 blocks of 128 and
// 131,072 tokens.
func (r *resolver) rankBlocks(n int) engine.Fact[int] {
	ranks := r.in.Page.Ranks
	frontEnd := func(name string) string { return name[:strings.LastIndex(name, "/")+1] } // Ray's replica
	sharing := 0
	for i := range ranks {
		if frontEnd(ranks[i].Name) == frontEnd(ranks[0].Name) && ranks[i].Cache.NumGPUBlocks == r.cache.NumGPUBlocks {
			sharing++
		}
	}
	tokens, known := asFloat(r.cache.KVCacheSizeTokens)
	if sharing < 2 || known && tokens == float64(n*r.f.BlockSize.Value) {
		return engine.Know(n, engine.FromMetrics, "")
	}
	return engine.Know(max(1, n/sharing), engine.FromMetrics, fmt.Sprintf("num_gpu_blocks %d is the sum of %d ranks", n, sharing))
}

func (r *resolver) estimatedPool() engine.Fact[float64] {
	c, missing := engine.ReplicaConfig(&r.f)
	if len(missing) > 0 || !r.f.GPUMemoryUtilization.Known {
		return engine.Fact[float64]{Note: "not on the metrics page, and " + strings.Join(append(missing, "gpu_memory_utilization"), ", ") + " would be needed to compute it"}
	}
	tokens, _, _ := c.Capacity(r.f.GPUMemoryUtilization.Value)
	if tokens <= 0 {
		return engine.Fact[float64]{Note: "by the catalog, the weights leave no room for a KV pool"}
	}
	return engine.Know(tokens, engine.FromDerived, "(est) from GPU memory, weights and utilization, +-20 %")
}

package vllm

import (
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
)

// Dialect returns how vLLM's page is read, from V0 to the newest release.
func Dialect() *enginepage.Dialect {
	return &enginepage.Dialect{
		Engine: catalog.EngineOf(catalog.VLLM),
		Core:   []string{"prompt_tokens", "generation_tokens", "preemptions"},
		Rank:   "engine", Replica: "ReplicaId", HTTP: "http_requests_total", Status: "status", Generates: generates,
		CacheInfo: "cache_config_info", Cache: cacheConfig,
		// The page of a simulated server has sim_info too.
		Bare:     []string{"http_", "process_", "python_", "sim_"},
		StatsOff: "if this is vLLM, it runs with --disable-log-stats: restart it without that flag",
	}
}

// generating are the ends of the paths whose requests the engine computes.
var generating = []string{
	"/completions", "/responses", "/messages", "/generate", "/invocations", "/transcriptions", "/translations",
	"/embeddings", "/pooling", "/score", "/rerank", "/classify",
}

// generates reports series of requests to the engine.
func generates(s collect.Sample) bool {
	handler := s.Label("handler")
	return s.Label("method") == "POST" && slices.ContainsFunc(generating, func(end string) bool { return strings.HasSuffix(handler, end) })
}

// cacheConfig returns the labels that rooftop uses; "" if they are absent or None.
func cacheConfig(s *collect.Series) engine.CacheConfig {
	get := func(names ...string) string {
		for _, name := range names {
			if v := s.Label(name); v != "" && v != "None" {
				return enginepage.Clip(v)
			}
		}
		return ""
	}
	return engine.CacheConfig{
		BlockSize:             get("block_size"),
		NumGPUBlocks:          get("num_gpu_blocks"),
		NumGPUBlocksOverride:  get("num_gpu_blocks_override"),
		GPUMemoryUtilization:  get("gpu_memory_utilization"),
		CacheDType:            get("cache_dtype"),
		EnablePrefixCaching:   get("enable_prefix_caching"),
		ChunkedPrefill:        get("enable_chunked_prefill", "chunked_prefill_enabled", "chunked_prefill"),
		KVCacheSizeTokens:     get("kv_cache_size_tokens"),
		KVCacheMaxConcurrency: get("kv_cache_max_concurrency"),
	}
}

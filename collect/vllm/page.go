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
		Engine: catalog.EngineOf(catalog.VLLM), Targets: targets(),
		Core: []string{"prompt_tokens", "generation_tokens", "preemptions"},
		Rank: "engine", Replica: "ReplicaId", HTTP: "http_requests_total", Status: "status", Generates: generates,
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

func targets() map[string][]enginepage.Target {
	gauge := func(g engine.Gauge) []enginepage.Target { return []enginepage.Target{enginepage.Gauge(g)} }
	counter := func(c engine.Counter) []enginepage.Target { return []enginepage.Target{enginepage.Counter(c)} }
	hist := func(h engine.Hist) []enginepage.Target { return []enginepage.Target{enginepage.Hist(h)} }
	return map[string][]enginepage.Target{
		"running":            gauge(engine.GaugeRunning),
		"waiting":            gauge(engine.GaugeWaiting),
		"waiting_capacity":   gauge(engine.GaugeWaitingCapacity),
		"waiting_deferred":   gauge(engine.GaugeWaitingDeferred),
		"swapped":            gauge(engine.GaugeSwapped),
		"kv_usage":           gauge(engine.GaugeKVUsage),
		"cpu_kv_usage":       gauge(engine.GaugeCPUKVUsage),
		"engine_sleep_state": gauge(engine.GaugeAsleep),
		"max_num_seqs":       gauge(engine.GaugeMaxNumSeqs),
		"prefix_hit_rate":    gauge(engine.GaugePrefixHitRate),
		"lora_requests":      {{Reading: enginepage.ReadLoRA}},

		"prompt_tokens":        counter(engine.CounterPromptTokens),
		"prompt_tokens_cached": counter(engine.CounterPromptTokensCached),
		"prompt_tokens_by_source": {
			enginepage.Counter(engine.CounterPromptTokensComputed).Where("source", "local_compute"),
			enginepage.Counter(engine.CounterPromptTokensExternal).Where("source", "external_kv_transfer"),
		},
		"generation_tokens": counter(engine.CounterGenerationTokens),
		"request_success": {
			enginepage.Counter(engine.CounterRequestSuccess),
			enginepage.Counter(engine.CounterRequestErrors).Where("finished_reason", "error"),
		},
		"preemptions":          counter(engine.CounterPreemptions),
		"prefix_queries":       counter(engine.CounterPrefixQueries),
		"prefix_hits":          counter(engine.CounterPrefixHits),
		"external_queries":     counter(engine.CounterExternalQueries),
		"external_hits":        counter(engine.CounterExternalHits),
		"spec_drafts":          counter(engine.CounterSpecDrafts),
		"spec_draft_tokens":    counter(engine.CounterSpecDraftTokens),
		"spec_accepted":        counter(engine.CounterSpecAccepted),
		"admission_rejections": counter(engine.CounterAdmissionRejections),

		"ttft":             hist(engine.HistTTFT),
		"itl":              hist(engine.HistITL),
		"tpot":             hist(engine.HistTPOT),
		"e2e":              hist(engine.HistE2E),
		"queue":            hist(engine.HistQueue),
		"prefill":          hist(engine.HistPrefill),
		"decode":           hist(engine.HistDecode),
		"inference":        hist(engine.HistInference),
		"prompt_len":       hist(engine.HistPromptTokens),
		"output_len":       hist(engine.HistGenerationTokens),
		"iteration_tokens": hist(engine.HistIterationTokens),
	}
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

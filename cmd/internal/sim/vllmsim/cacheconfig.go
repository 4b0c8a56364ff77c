package vllmsim

import (
	"strconv"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// cacheConfig writes cache_config_info, with the labels that rooftop reads: fields of vLLM's CacheConfig
// (vllm/config/cache.py), as strings.
func (b *Book) cacheConfig(w *builder) {
	s, c := b.settings, b.cache
	w.head("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", gauge)
	for engine := range b.ranks {
		labels := []label{
			{"engine", strconv.Itoa(engine)},
			{"block_size", strconv.Itoa(s.BlockSize)},
			{"cache_dtype", cacheDType(s)},
			{"enable_prefix_caching", pyBool(s.PrefixCaching)},
			{"gpu_memory_utilization", reprString(s.GPUMemoryUtilization)},
			{"num_cpu_blocks", none},
			// The front end adds up the blocks of its engines (vLLM v1/engine/core_client.py).
			{"num_gpu_blocks", strconv.Itoa(c.NumBlocks * max(1, s.DataParallel))},
			{"num_gpu_blocks_override", countOrNone(s.NumGPUBlocksOverride)},
			{"sliding_window", none},
		}
		if b.release <= 17 {
			labels = append(labels, label{"swap_space_bytes", "4294967296.0"})
		}
		if b.release >= 23 {
			labels = append(labels, label{"kv_cache_max_concurrency", reprString(c.MaxConcurrency)}, label{"kv_cache_size_tokens", strconv.Itoa(c.SizeTokens)})
		}
		w.constant(1, "vllm:cache_config_info", labels...)
	}
}

const none = "None"

// cacheDType returns vLLM's value of --kv-cache-dtype: "auto" unless it was given.
func cacheDType(s *settings.Settings) string {
	if s.KVDType == s.ComputeDType {
		return "auto"
	}
	return string(s.KVDType)
}

func pyBool(v bool) string {
	if v {
		return "True"
	}
	return "False"
}

// countOrNone formats a whole number, "None" if it is 0.
func countOrNone(n int) string {
	if n == 0 {
		return none
	}
	return strconv.Itoa(n)
}

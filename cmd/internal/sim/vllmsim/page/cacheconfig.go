package page

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// field is one field of vLLM's CacheConfig (vllm/config/cache.py), as a string.
type field struct {
	name         string
	since, until int // minor releases, inclusive; 0 means no bound
	value        string
}

// cacheConfig writes cache_config_info, with one label for each field of the release's CacheConfig.
func (b *Book) cacheConfig(w *builder) {
	w.head("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", gauge)
	for engine := range b.ranks {
		w.constant(1, "vllm:cache_config_info", b.cacheLabels(engine)...)
	}
}

func (b *Book) cacheLabels(engine int) []label {
	labels := []label{{"engine", strconv.Itoa(engine)}}
	for _, f := range cacheFields(b.settings, b.cache) {
		if inBounds(b.release, f.since, f.until) {
			labels = append(labels, label{f.name, f.value})
		}
	}
	return labels
}

const none = "None"

// cacheFields returns the fields of CacheConfig since 0.10. Their bounds are those of the flag of the same
// name, if there is one (last patch of each minor release), else those of recorded pages.
func cacheFields(s *settings.Settings, c Cache) []field {
	return []field{
		{name: "_block_size_resolved", since: 18, value: "True"},
		{name: "block_size", value: strconv.Itoa(s.BlockSize)},
		{name: "cache_dtype", value: cacheDType(s)},
		{name: "cache_hit_alignment_tokens", since: 32, value: none},
		{name: "calculate_kv_scales", until: 27, value: "False"},
		{name: "cpu_kvcache_space_bytes", until: 20, value: none},
		{name: "cpu_offload_gb", until: 16, value: "0.0"},
		{name: "effective_attention_block_size", since: 32, value: strconv.Itoa(s.BlockSize)},
		{name: "enable_mamba_fine_grained_prefix_cache", since: 30, until: 30, value: "False"},
		{name: "enable_mamba_shared_prefix_checkpoint", since: 31, value: "False"},
		{name: "enable_prefix_caching", value: pyBool(s.PrefixCaching)},
		{name: "gpu_memory_utilization", value: reprString(s.GPUMemoryUtilization)},
		{name: "hash_block_size", since: 32, value: none},
		{name: "is_attention_free", value: "False"},
		{name: "kv_cache_dtype_skip_layers", since: 19, value: "[]"},
		{name: "kv_cache_layout", since: 28, value: none},
		{name: "kv_cache_max_concurrency", since: 23, value: reprString(c.MaxConcurrency)},
		{name: "kv_cache_memory_bytes", since: 11, value: countOrNone(s.KVCacheMemoryBytes)},
		{name: "kv_cache_size_tokens", since: 23, value: strconv.Itoa(c.SizeTokens)},
		{name: "kv_offloading_backend", since: 12, until: 13, value: none},
		{name: "kv_offloading_backend", since: 14, value: "native"},
		{name: "kv_offloading_size", since: 12, value: none},
		{name: "kv_sharing_fast_prefill", since: 11, value: "False"},
		{name: "mamba_block_size", since: 12, value: none},
		{name: "mamba_cache_dtype", since: 11, value: "auto"},
		{name: "mamba_cache_mode", since: 15, value: "none"},
		{name: "mamba_page_size_padded", value: none},
		{name: "mamba_ssm_cache_dtype", since: 11, until: 26, value: "auto"},
		{name: "mamba_ssm_cache_dtype", since: 27, value: "float32"},
		{name: "num_cpu_blocks", value: none},
		// The front end adds up the blocks of its engines (vLLM v1/engine/core_client.py).
		{name: "num_gpu_blocks", value: strconv.Itoa(c.NumBlocks * max(1, s.DataParallel))},
		{name: "num_gpu_blocks_override", value: countOrNone(float64(s.NumGPUBlocksOverride))},
		{name: "prefix_cache_retention_interval", since: 29, value: "0"},
		{name: "prefix_caching_hash_algo", until: 10, value: "builtin"},
		{name: "prefix_caching_hash_algo", since: 11, value: "sha256"},
		{name: "prefix_match_unit", since: 26, value: none},
		{name: "replayssm_buffer_len", since: 27, value: "16"},
		{name: "skip_page_size_padded", since: 26, value: none},
		{name: "sliding_window", value: none},
		{name: "swa_bounded_replay", since: 31, value: "True"},
		{name: "swap_space", until: 17, value: "4.0"},
		{name: "swap_space_bytes", until: 17, value: "4294967296.0"},
		{name: "use_kda_recoverssm", since: 30, value: "False"},
		{name: "use_replayssm", since: 27, value: "False"},
		{name: "user_specified_block_size", since: 18, value: pyBool(given(s.Argv, "--block-size"))},
		{name: "user_specified_mamba_block_size", since: 26, until: 30, value: "False"},
	}
}

// cacheDType returns vLLM's value of --kv-cache-dtype: "auto" unless it was given.
func cacheDType(s *settings.Settings) string {
	if s.KVDType == s.ComputeDType {
		return "auto"
	}
	return string(s.KVDType)
}

// given reports whether a command line has a flag, with dashes or underscores.
func given(argv []string, flag string) bool {
	spelled := func(a string) string { a, _, _ = strings.Cut(a, "="); return strings.ReplaceAll(a, "_", "-") }
	return slices.ContainsFunc(argv, func(a string) bool { return spelled(a) == flag })
}

func pyBool(v bool) string {
	if v {
		return "True"
	}
	return "False"
}

// countOrNone formats a whole number, "None" if it is 0.
func countOrNone(n float64) string {
	if n == 0 {
		return none
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

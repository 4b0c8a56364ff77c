package page

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// field is one field of vLLM's CacheConfig (vllm/config/cache.py), as a string.
type field struct {
	name         string
	since, until int // minor releases, both included; 0 is open
	value        string
}

// cacheConfig writes cache_config_info, one label for each field of the
// release's CacheConfig.
func (b *Book) cacheConfig(w *builder) {
	w.head("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", gauge.String())
	for engine := range b.ranks {
		w.constant(1, "vllm:cache_config_info", b.cacheLabels(engine)...)
	}
}

func (b *Book) cacheLabels(engine int) []label {
	labels := []label{{"engine", strconv.Itoa(engine)}}
	for _, f := range cacheFields(b.settings, b.cache, b.release) {
		if in(b.release, f.since, f.until) {
			labels = append(labels, label{f.name, f.value})
		}
	}
	return labels
}

const none = "None"

// cacheFields are the fields of CacheConfig from 0.10 on. The bounds are those of
// the flags of the same name where there is one (last patch of each minor
// release), else of the pages seen.
func cacheFields(s *settings.Settings, c Cache, release int) []field {
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
		{name: "kv_cache_memory_bytes", since: 11, value: bytesOrNone(s.KVCacheMemoryBytes)},
		{name: "kv_cache_size_tokens", since: 23, value: strconv.Itoa(c.SizeTokens)},
		{name: "kv_offloading_backend", since: 12, value: offloadingBackend(release)},
		{name: "kv_offloading_size", since: 12, value: none},
		{name: "kv_sharing_fast_prefill", since: 11, value: "False"},
		{name: "mamba_block_size", since: 12, value: none},
		{name: "mamba_cache_dtype", since: 11, value: "auto"},
		{name: "mamba_cache_mode", since: 15, value: "none"},
		{name: "mamba_page_size_padded", value: none},
		{name: "mamba_ssm_cache_dtype", since: 11, value: ssmDType(release)},
		{name: "num_cpu_blocks", value: none},
		// The front end adds up what its engines tell (vLLM v1/engine/core_client.py).
		{name: "num_gpu_blocks", value: strconv.Itoa(c.NumBlocks * max(1, s.DataParallel))},
		{name: "num_gpu_blocks_override", value: countOrNone(s.NumGPUBlocksOverride)},
		{name: "prefix_cache_retention_interval", since: 29, value: "0"},
		{name: "prefix_caching_hash_algo", value: hashAlgorithm(release)},
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

// cacheDType is --kv-cache-dtype as vLLM keeps it: "auto" unless it was given.
func cacheDType(s *settings.Settings) string {
	if s.KVDType == s.ComputeDType {
		return "auto"
	}
	return string(s.KVDType)
}

func offloadingBackend(release int) string {
	if release < 14 {
		return none
	}
	return "native"
}

func hashAlgorithm(release int) string {
	if release < 11 {
		return "builtin"
	}
	return "sha256"
}

func ssmDType(release int) string {
	if release < 27 {
		return "auto"
	}
	return "float32"
}

// given says whether a flag stands on a command line, in either spelling.
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

func bytesOrNone(v float64) string {
	if v == 0 {
		return none
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

func countOrNone(n int) string {
	if n == 0 {
		return none
	}
	return strconv.Itoa(n)
}

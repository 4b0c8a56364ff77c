package catalog

import (
	"strings"
	"testing"
)

func TestParseRelease(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want release
		ok   bool
	}{
		{"0.11.0", release{0, 11}, true}, {"v0.8.5.post1", release{0, 8}, true}, {"0.11.1rc2.dev20+gabc", release{0, 11}, true},
		{"0.32.0+cpu", release{0, 32}, true}, {"0.9", release{0, 9}, true}, {"1.0.0", release{1, 0}, true},
		{"0.1.dev1+g0123", release{}, false}, {"0.1.dev10", release{}, false}, {"dev", release{}, false}, {"", release{}, false}, {"0", release{}, false}, {"-1.2", release{}, false},
		{"99999999999999999999.1", release{}, false},
	} {
		if got, ok := parseRelease(tt.in); got != tt.want || ok != tt.ok {
			t.Errorf("parseRelease(%q) = %v, %v, want %v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestFlagDefault(t *testing.T) {
	h100 := Hardware{Device: "cuda", VRAMGiB: 79.65, GPUName: "NVIDIA H100 80GB HBM3", WorldSize: 1, APIServer: true}
	a100 := Hardware{Device: "cuda", VRAMGiB: 80, GPUName: "NVIDIA A100-SXM4-80GB", WorldSize: 1, APIServer: true}
	l40s := Hardware{Device: "cuda", VRAMGiB: 44.99, GPUName: "NVIDIA L40S", WorldSize: 4, APIServer: true}
	b200 := Hardware{Device: "cuda", VRAMGiB: 179, GPUName: "NVIDIA B200", WorldSize: 1, APIServer: true}
	mi300 := Hardware{Device: "rocm", VRAMGiB: 191.7, GPUName: "AMD Instinct MI300X", WorldSize: 1, APIServer: true}
	cpu := Hardware{Device: "cpu", WorldSize: 1, APIServer: true}
	cpu2 := Hardware{Device: "cpu", WorldSize: 2, APIServer: true}
	v0 := Hardware{Device: "cuda", VRAMGiB: 79.65, GPUName: "NVIDIA H100 80GB HBM3", WorldSize: 1, V0: true, APIServer: true}
	offline := h100
	offline.APIServer = false

	for _, tt := range []struct {
		flag, version string
		hw            Hardware
		want          string // "" if not ok
		note          string // contained in the note
	}{
		{"max_num_seqs", "0.11.0", h100, "1024", "per data-parallel rank"},
		{"--max-num-seqs", "0.11.0", h100, "1024", ""},
		{"max_num_seqs", "0.11.0", a100, "256", "A100"},
		{"max_num_seqs", "0.8.5", a100, "1024", ""},
		{"max_num_seqs", "0.9.0", a100, "256", ""},
		{"max_num_seqs", "0.11.0", l40s, "256", ""},
		{"max_num_seqs", "0.32.0", b200, "1024", ""},
		{"max_num_seqs", "0.32.0", mi300, "1024", ""},
		{"max_num_seqs", "0.32.0+cpu", cpu, "128", ""},
		{"max_num_seqs", "0.32.0", cpu2, "256", "each"},
		{"max_num_batched_tokens", "0.32.0+cpu", cpu, "2048", ""}, // these as create_engine_config makes them on a CPU
		{"gpu_memory_utilization", "0.32.0+cpu", cpu, "0.92", ""},
		{"enable_chunked_prefill", "0.32.0+cpu", cpu, "true", ""},
		{"async_scheduling", "0.32.0+cpu", cpu2, "false", ""},
		{"max_num_seqs", "0.9.2", v0, "256", ""},
		{"max_num_seqs", "0.11.0", v0, "1024", ""}, // V0 was removed
		{"max_num_seqs", "0.6.6", h100, "256", "oldest release read"},
		{"max_num_seqs", "0.11.0", Hardware{}, "", "the device, which is unknown"},
		{"max_num_seqs", "0.11.0", Hardware{Device: "cuda"}, "", "the memory of the GPU, which is unknown"},
		{"max_num_seqs", "0.11.0", Hardware{Device: "cuda", VRAMGiB: 80}, "", "the name of the GPU, which is unknown"},
		{"max_num_seqs", "0.11.0", Hardware{VRAMGiB: 141}, "1024", ""},
		{"max_num_seqs", "0.11.0", Hardware{VRAMGiB: 24}, "256", ""},
		{"max_num_seqs", "0.11.0", Hardware{Device: "cpu"}, "", "number of ranks"},
		{"max_num_seqs", "0.11.0", Hardware{Device: "tpu"}, "", "tpu"},
		{"max_num_seqs", "", h100, "1024", "version \"\" unknown: as in 0.32"},
		{"max_num_seqs", "0.99.0", h100, "1024", "newest release read"},

		{"max_num_batched_tokens", "0.11.0", h100, "8192", ""},
		{"max_num_batched_tokens", "0.11.0", offline, "16384", ""},
		{"max_num_batched_tokens", "0.11.0", a100, "2048", ""},
		{"max_num_batched_tokens", "0.8.5", a100, "8192", ""},
		{"max_num_batched_tokens", "0.27.1", b200, "8192", ""},
		{"max_num_batched_tokens", "0.28.0", b200, "16384", ""},
		{"max_num_batched_tokens", "0.28.0", mi300, "16384", ""},
		{"max_num_batched_tokens", "0.28.0", h100, "8192", ""},
		{"max_num_batched_tokens", "0.32.0", cpu2, "4096", ""},
		{"max_num_batched_tokens", "0.9.2", v0, "", "V0"},

		{"gpu_memory_utilization", "0.19.1", Hardware{}, "0.9", ""},
		{"gpu_memory_utilization", "0.20.0", Hardware{}, "0.92", ""},
		{"gpu_memory_utilization", "0.6.0", Hardware{}, "0.9", "oldest"},
		{"block_size", "0.11.0", h100, "16", "cache_config_info"},
		{"block_size", "0.32.0", cpu, "128", ""},
		{"block_size", "0.9.2", Hardware{Device: "cpu", V0: true}, "16", ""}, // as the recorded V0 page on CPU
		{"enable_prefix_caching", "0.11.0", Hardware{}, "true", "hybrid"},
		{"enable_prefix_caching", "0.9.2", v0, "false", ""},
		{"--no-enable-prefix-caching", "0.11.0", Hardware{}, "true", ""},
		{"enable_chunked_prefill", "0.11.0", Hardware{}, "true", ""},
		{"enable_chunked_prefill", "0.9.2", v0, "", "32768"},
		{"async_scheduling", "0.13.0", Hardware{}, "false", ""},
		{"async_scheduling", "0.14.0", h100, "true", "speculation"},
		{"async_scheduling", "0.14.0", Hardware{}, "", "the device, which is unknown"},
		{"async_scheduling", "0.9.2", Hardware{}, "", "since 0.10"},
		{"swap_space", "0.10.2", Hardware{}, "4", "V0"},
		{"swap_space", "0.18.0", Hardware{}, "", "removed after 0.17"},
		{"kv_cache_dtype", "0.11.0", Hardware{}, "auto", ""},
		{"tensor_parallel_size", "0.11.0", Hardware{}, "1", ""},
		{"enforce_eager", "0.8.5", Hardware{}, "false", ""},
		{"performance_mode", "0.17.1", Hardware{}, "balanced", ""},
		{"performance_mode", "0.16.0", Hardware{}, "", "since 0.17"},
		{"scheduler_reserve_full_isl", "0.19.1", Hardware{}, "true", ""},
		{"max_model_len", "0.11.0", Hardware{}, "", "model's config"},
		{"num_gpu_blocks_override", "0.11.0", Hardware{}, "", "unset"},
		{"kv_offloading_backend", "0.13.0", Hardware{}, "", "unset"},
		{"kv_offloading_backend", "0.14.1", Hardware{}, "native", ""},
		{"seed", "0.11.2", Hardware{}, "", "unset"},
		{"seed", "0.12.0", Hardware{}, "0", ""},
		{"no_such_flag", "0.11.0", Hardware{}, "", "not an engine argument"},
		{"", "0.11.0", Hardware{}, "", "not an engine argument"},
	} {
		got, note, ok := EngineOf(VLLM).FlagDefault(tt.flag, tt.version, tt.hw)
		if got != tt.want || ok != (tt.want != "") || !strings.Contains(note, tt.note) {
			t.Errorf("FlagDefault(%q, %q, %+v) = %q, %q, %v, want %q and a note with %q", tt.flag, tt.version, tt.hw, got, note, ok, tt.want, tt.note)
		}
	}
}

func TestFlagKnown(t *testing.T) {
	for _, tt := range []struct {
		flag, version string
		want          bool
		note          string
	}{
		{"swap_space", "0.17.1", true, ""}, {"swap_space", "0.18.0", false, "removed after 0.17"}, {"--swap-space", "0.32.0", false, "removed after 0.17"},
		{"watermark", "0.23.0", false, "since 0.24"}, {"watermark", "0.24.0", true, ""},
		{"max_num_seqs", "0.8.5", true, ""}, {"max_num_seqs", "0.4.0", true, "oldest"}, {"max_num_queued_reqs", "nightly", true, "as in 0.32"},
		{"api_key", "0.11.0", false, "not an engine argument"},
	} {
		if got, note := EngineOf(VLLM).FlagKnown(tt.flag, tt.version); got != tt.want || !strings.Contains(note, tt.note) {
			t.Errorf("FlagKnown(%q, %q) = %v, %q, want %v and a note with %q", tt.flag, tt.version, got, note, tt.want, tt.note)
		}
	}
}

// TestFlagRulesAreSound checks that every rule can apply and has a value or a note.
func TestFlagRulesAreSound(t *testing.T) {
	for _, e := range EngineOf(VLLM).flags().Flags {
		for i, rule := range e.Rules {
			if rule.Value == "" && rule.Note == "" {
				t.Errorf("%s, rule %d: neither value nor note", e.Name, i)
			}
			last := i == len(e.Rules)-1
			free := rule.Engine == "" && rule.MinVRAMGiB == 0 && !rule.APIServer && rule.Until == nil && rule.From == nil
			if last && !free {
				t.Errorf("%s: the last rule has conditions that can fail", e.Name)
			}
		}
	}
}

func TestChangesAnswers(t *testing.T) {
	c := EngineOf(VLLM)
	for _, tt := range []struct {
		flag string
		want bool
	}{
		{"--kv-cache-dtype", true}, {"quantization", true}, {"dtype", true},
		{"--speculative-config", true}, {"--speculative-config.model", true}, {"--max-model-len", true},
		{"--max-num-seqs", false}, {"gpu_memory_utilization", false}, {"--num-gpu-blocks-override", false},
		{"--max-num-batched-tokens", false}, {"--enforce-eager", false}, {"--no-enable-prefix-caching", false},
		{"--api-server-count", false}, {"--never-heard-of", true},
	} {
		if got := c.ChangesAnswers(tt.flag); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.flag, got, tt.want)
		}
	}
}

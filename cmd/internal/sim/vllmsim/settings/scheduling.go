package settings

import (
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// cache sets the options of the KV pool.
func (p *parser) cache() {
	s := p.s
	s.GPUMemoryUtilization = 0.9
	if f, err := strconv.ParseFloat(p.fallback("gpu_memory_utilization"), 64); err == nil {
		s.GPUMemoryUtilization = f
	}
	if f, ok := p.inRange("gpu_memory_utilization", 0, 1); ok {
		if f == 0 {
			p.refuse("gpu_memory_utilization: Input should be greater than 0 (got 0)")
		}
		s.GPUMemoryUtilization = f
	}
	if value, _, ok := p.cfg.Value("kv_cache_memory_bytes"); ok {
		n, _, isInt := p.cfg.Int("kv_cache_memory_bytes")
		if !isInt || n < 1 || n > 1<<50 {
			p.refuse("argument --kv-cache-memory-bytes: invalid human_readable_int value: %s", quoted(value))
		}
		s.KVCacheMemoryBytes = float64(n)
	}
	p.setWhole(&s.NumGPUBlocksOverride, "num_gpu_blocks_override", 2)
	p.blockSize()
	s.PrefixCaching = p.boolean("enable_prefix_caching", true)
}

// blockSize sets the size of a KV block. The default kernels of latent
// attention on Hopper and newer GPUs take blocks of 64
// (vllm/v1/attention/backends/mla/flashmla.py).
func (p *parser) blockSize() {
	s := p.s
	s.BlockSize = p.fallbackInt("block_size", 16)
	if s.Model.Attention == catalog.AttentionMLA && capability(s.GPU) >= 90 {
		s.BlockSize = 64
	}
	n, ok := p.wholeNumber("block_size", 1)
	if !ok {
		return
	}
	if old := []int{1, 8, 16, 32, 64, 128, 256}; s.Release != "0.32" && !slices.Contains(old, n) {
		p.refuse("argument --block-size: invalid choice: '%d' (choose from 1, 8, 16, 32, 64, 128, 256)", n)
	}
	if s.GPU.Vendor != "cpu" && n%16 != 0 {
		p.refuse("No valid attention backend found for %s with block_size=%d: block_size not supported (a multiple of 16 is)", p.hw.Device, n)
	}
	if n > 4096 {
		p.limitation("--block-size "+strconv.Itoa(n), "blocks of more than 4096 tokens")
	}
	s.BlockSize = n
}

// scheduler sets the options of the scheduler.
func (p *parser) scheduler() {
	s := p.s
	s.ChunkedPrefill = p.boolean("enable_chunked_prefill", true)
	s.Generation = generation(s.Release)
	if p.choice("scheduling_policy", "fcfs", []string{"fcfs", "priority"}) == "priority" {
		s.Policy = core.Priority
	}
	s.ReserveFullISL = p.boolean("scheduler_reserve_full_isl", p.fallback("scheduler_reserve_full_isl") == "true")
	s.AsyncScheduling = p.boolean("async_scheduling", p.fallback("async_scheduling") == "true")
	if p.setWhole(&s.LongPrefillTokenThreshold, "long_prefill_token_threshold", 0); s.LongPrefillTokenThreshold > s.MaxModelLen {
		p.refuse("long_prefill_token_threshold (%d) cannot be greater than the max_model_len (%d).", s.LongPrefillTokenThreshold, s.MaxModelLen)
	}
	if f, ok := p.inRange("watermark", 0, 1); ok {
		s.Watermark = f
		if f == 1 {
			p.refuse("watermark: Input should be less than 1 (got 1)")
		}
	}
}

// batch sets slots and token budget, as
// EngineArgs._set_default_max_num_seqs_and_batched_tokens_args does (0.32.0).
func (p *parser) batch() {
	s := p.s
	seqs, seqsGiven := p.wholeNumber("max_num_seqs", 1)
	budget, budgetGiven := p.wholeNumber("max_num_batched_tokens", 1)
	double := 1
	if mode := p.choice("performance_mode", "balanced", []string{"balanced", "interactivity", "throughput"}); mode == "throughput" {
		double = 2
	} else if mode == "interactivity" {
		p.note("accepted, not simulated: --performance-mode interactivity")
	}
	if !seqsGiven {
		seqs = double * p.fallbackInt("max_num_seqs", 256)
	}
	if !budgetGiven {
		budget = double * p.fallbackInt("max_num_batched_tokens", 2048)
		if !s.ChunkedPrefill {
			budget = max(budget, s.MaxModelLen)
		}
		budget = min(budget, seqs*s.MaxModelLen)
	}
	if !seqsGiven {
		seqs = min(seqs, budget)
	}
	switch {
	case !s.ChunkedPrefill && budget < s.MaxModelLen:
		p.refuse("max_num_batched_tokens (%d) is smaller than max_model_len (%d). This effectively limits the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer sequences. Please increase max_num_batched_tokens or decrease max_model_len.", budget, s.MaxModelLen)
	case budget < seqs:
		p.refuse("max_num_batched_tokens (%d) must be greater than or equal to max_num_seqs (%d).", budget, seqs)
	case budget > seqs*s.MaxModelLen:
		p.note("max_num_batched_tokens (%d) exceeds max_num_seqs * max_model_len (%d). This may lead to unexpected behavior.", budget, seqs*s.MaxModelLen)
	}
	s.MaxNumSeqs, s.MaxNumBatchedTokens = seqs, budget
}

// graphs sets the steps for which CUDA graphs exist, as
// VllmConfig._set_cudagraph_sizes does (0.32.0).
func (p *parser) graphs() {
	s := p.s
	s.EnforceEager = p.boolean("enforce_eager", s.GPU.Vendor == "cpu")
	if level, ok := p.wholeNumber("optimization_level", 0); ok {
		if level > 3 {
			p.refuse("argument --optimization-level: invalid choice: '%d' (choose from 0, 1, 2, 3)", level)
		}
		s.EnforceEager = s.EnforceEager || level == 0
	}
	largest := 512
	if c := capability(s.GPU); c >= 100 && c < 110 {
		largest = 1024
	}
	s.MaxCaptureSize = min(2*s.MaxNumSeqs, largest)
	p.setWhole(&s.MaxCaptureSize, "max_cudagraph_capture_size", 0)
	s.MaxCaptureSize = min(s.MaxCaptureSize, s.MaxNumBatchedTokens)
	if s.EnforceEager {
		s.MaxCaptureSize = 0
	}
}

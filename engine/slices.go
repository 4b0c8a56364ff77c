package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// idleMost is how many windows without load in a row are part of a load that comes
// in bursts; a longer silence is left out of a measurement.
const idleMost = 5

// sideLives is how many runs of one configuration are kept for comparison.
const sideLives = 3

// sliceOf is what a window counted. It shares the window's histograms: that of a
// live windower has to be cloned first.
func sliceOf(w *Window) verdict.Slice {
	s := verdict.Slice{
		Start: w.Start, Length: w.Duration,
		Tokens: w.Delta[CounterGenerationTokens], Prompt: w.Delta[CounterPromptTokens], Computed: w.Delta[CounterPromptTokensComputed],
		Finished: w.Delta[CounterRequestSuccess], Hits: w.Delta[CounterPrefixHits], Queries: w.Delta[CounterPrefixQueries],
		Running: w.Running, Waiting: w.Waiting, StepTime: w.StepTime, KV: w.KVPeak, Preempts: w.Delta[CounterPreemptions], Power: w.Power,
		TTFT: w.Hist[HistTTFT], ITL: w.Hist[HistITL], TPOT: w.Hist[HistTPOT], E2E: w.Hist[HistE2E],
		PromptLen: w.Hist[HistPromptTokens], OutputLen: w.Hist[HistGenerationTokens],
	}
	if !s.Computed.OK && s.Prompt.OK && w.Delta[CounterPromptTokensCached].OK {
		s.Computed = stat.Some(max(0, s.Prompt.V-w.Delta[CounterPromptTokensCached].V))
	}
	return s
}

// slicesOf are the slices of windows, without those that nothing can be said of and
// without long silences.
func slicesOf(windows []Window) verdict.Life {
	var out verdict.Life
	for i := 0; i < len(windows); {
		n := 0
		for i+n < len(windows) && !loaded(windows[i+n:i+n+1]) {
			n++
		}
		if n > idleMost {
			i += n
			continue
		}
		for range max(1, n) {
			if w := &windows[i]; w.Evaluable && w.Duration > 0 && !w.Restarted && !w.Asleep {
				out = append(out, sliceOf(w))
			}
			i++
		}
	}
	return out
}

// lengthOf is the time that slices span together.
func lengthOf(life verdict.Life) time.Duration {
	sum := time.Duration(0)
	for i := range life {
		sum += life[i].Length
	}
	return sum
}

// extended appends slices and lets go of the oldest beyond a length.
func extended(life, more verdict.Life, most time.Duration) verdict.Life {
	out := slices.Concat(life, more)
	over := lengthOf(out) - most
	for len(out) > 0 && over > 0 {
		over -= out[0].Length
		out = out[1:]
	}
	return out
}

// reuses and batches are arguments that move the hit rate, and how many requests
// run at once, by themselves.
var (
	reuses = [...]string{
		"block_size", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "kv_cache_dtype", "kv_cache_memory_bytes",
		"kv_offloading_size", "num_gpu_blocks_override", "prefix_caching_hash_algo", "swap_space",
	}
	batches = [...]string{
		"block_size", "data_parallel_size", "dtype", "enable_chunked_prefill", "enforce_eager", "gpu_memory_utilization", "kv_cache_dtype",
		"kv_cache_memory_bytes", "long_prefill_token_threshold", "max_long_partial_prefills", "max_model_len", "max_num_batched_tokens",
		"max_num_partial_prefills", "max_num_seqs", "num_gpu_blocks_override", "pipeline_parallel_size", "quantization",
		"scheduling_policy", "speculative_config", "tensor_parallel_size",
	}
)

// touches says what changes may move by themselves. Of changes that nobody can
// read, anything may.
func touches(changes []Change, known bool) verdict.Touch {
	if !known {
		return verdict.Touch{Reuse: true, Batch: true}
	}
	var t verdict.Touch
	for _, c := range changes {
		name, _, _ := strings.Cut(nameOf(c.Flag), ".")
		memory := name == "tensor_parallel_size" || name == "pipeline_parallel_size" || name == "data_parallel_size" || name == "quantization" || name == "dtype"
		t.Reuse = t.Reuse || memory || slices.Contains(reuses[:], name)
		t.Batch = t.Batch || slices.Contains(batches[:], name)
		if !strings.HasPrefix(c.Flag, "--") { // the engine itself, or a variable
			t = verdict.Touch{Reuse: true, Batch: true}
		}
	}
	return t
}

// alters says whether a change can change what the model answers.
func alters(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return catalog.Default().ChangesAnswers(c.Flag) })
}

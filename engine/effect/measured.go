package effect

import (
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// idleMost is the number of consecutive idle windows that still count as part of a bursty load. A
// longer pause is left out of a measurement.
const idleMost = 5

// MostStarts is the number of starts of one configuration to keep for comparison.
const MostStarts = 3

// sliceOf converts a window to a slice. It shares the window's histograms, so that a window of a
// live windower must be cloned first.
func sliceOf(w *engine.Window) verdict.Slice {
	s := verdict.Slice{
		Start: w.Start, Length: w.Duration,
		Tokens: w.Delta[engine.CounterGenerationTokens], Prompt: w.Delta[engine.CounterPromptTokens], Computed: w.Delta[engine.CounterPromptTokensComputed],
		Finished: w.Delta[engine.CounterRequestSuccess], Hits: w.Delta[engine.CounterPrefixHits], Queries: w.Delta[engine.CounterPrefixQueries],
		Running: w.Running, Waiting: w.Waiting, StepTime: w.StepTime, KV: w.KVPeak, Preempts: w.Delta[engine.CounterPreemptions], Power: w.Power,
		TTFT: w.Hist[engine.HistTTFT], ITL: w.Hist[engine.HistITL], TPOT: w.Hist[engine.HistTPOT], E2E: w.Hist[engine.HistE2E],
		PromptLen: w.Hist[engine.HistPromptTokens], OutputLen: w.Hist[engine.HistGenerationTokens],
	}
	if !s.Computed.OK && s.Prompt.OK && w.Delta[engine.CounterPromptTokensCached].OK {
		s.Computed = stat.Some(max(0, s.Prompt.V-w.Delta[engine.CounterPromptTokensCached].V))
	}
	return s
}

// Slices converts windows to slices, without windows that cannot be evaluated and without long
// pauses.
func Slices(windows []engine.Window) verdict.Incarnation {
	var out verdict.Incarnation
	for i := 0; i < len(windows); {
		n := 0
		for i+n < len(windows) && !engine.Loaded(windows[i+n:i+n+1]) {
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

// Length returns the total duration of slices.
func Length(start verdict.Incarnation) time.Duration {
	sum := time.Duration(0)
	for i := range start {
		sum += start[i].Length
	}
	return sum
}

// Rates returns the generated tokens per second of each stretch of this length in a start, of
// the whole start if it is shorter; nil if a slice has none.
func Rates(start verdict.Incarnation, stretch time.Duration) []float64 {
	var rates []float64
	tokens, length := 0.0, time.Duration(0)
	for i := range start {
		if !start[i].Tokens.OK {
			return nil
		}
		tokens, length = tokens+start[i].Tokens.V, length+start[i].Length
		if length >= stretch-engine.WindowSlack || i == len(start)-1 && rates == nil {
			rates = append(rates, tokens/length.Seconds())
			tokens, length = 0, 0
		}
	}
	return rates
}

// Append appends slices and drops the oldest beyond a total duration.
func Append(start, more verdict.Incarnation, most time.Duration) verdict.Incarnation {
	out := slices.Concat(start, more)
	over := Length(out) - most
	for len(out) > 0 && over > 0 {
		over -= out[0].Length
		out = out[1:]
	}
	return out
}

// reuseArguments and batchArguments are arguments that by themselves affect the hit rate and the number of
// running requests.
var (
	reuseArguments = [...]string{
		"block_size", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "kv_cache_dtype", "kv_cache_memory_bytes",
		"kv_offloading_size", "num_gpu_blocks_override", "prefix_caching_hash_algo", "swap_space",
	}
	batchArguments = [...]string{
		"block_size", "data_parallel_size", "dtype", "enable_chunked_prefill", "enforce_eager", "gpu_memory_utilization", "kv_cache_dtype",
		"kv_cache_memory_bytes", "long_prefill_token_threshold", "max_long_partial_prefills", "max_model_len", "max_num_batched_tokens",
		"max_num_partial_prefills", "max_num_seqs", "num_gpu_blocks_override", "pipeline_parallel_size", "quantization",
		"scheduling_policy", "speculative_config", "tensor_parallel_size",
	}
)

// TouchedBy returns what changes may affect by themselves. Unreadable changes may affect anything.
func TouchedBy(changes []engine.Change, known bool) verdict.Touch {
	if !known {
		return verdict.Touch{Reuse: true, Batch: true}
	}
	var t verdict.Touch
	for _, c := range changes {
		name, _, _ := strings.Cut(engine.ArgumentName(c.Canonical().Flag), ".")
		memory := name == "tensor_parallel_size" || name == "pipeline_parallel_size" || name == "data_parallel_size" || name == "quantization" || name == "dtype"
		t.Reuse = t.Reuse || memory || slices.Contains(reuseArguments[:], name)
		t.Batch = t.Batch || slices.Contains(batchArguments[:], name)
		t.Front = t.Front || name == "api_server_count"
		if !strings.HasPrefix(c.Flag, "--") { // the engine itself, or an environment variable
			t = verdict.Touch{Reuse: true, Batch: true}
		}
	}
	return t
}

// ChangesAnswers reports whether a change can alter the model's answers.
func ChangesAnswers(changes []engine.Change) bool {
	return slices.ContainsFunc(changes, func(c engine.Change) bool { return catalog.ChangesAnswers(c.Flag) })
}

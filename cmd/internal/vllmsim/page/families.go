package page

import (
	"strconv"
	"strings"
)

// kind is the type of a family.
type kind uint8

const (
	gauge kind = iota
	counter
	histo
)

func (k kind) String() string { return [...]string{"gauge", "counter", "histogram"}[k] }

// child is one series of each engine, besides the labels that all have.
type child struct {
	value string // of the family's extra label
	cell  cell
	since int // minor release; 0 as the family
}

// family is one of the engine's families, as PrometheusStatLogger creates it.
type family struct {
	name         string // as the source has it: a counter's gets its _total on the wire
	help         string
	kind         kind
	since, until int    // minor releases, both included; 0 is open
	label        string // extra label; "" is none
	children     []child
	hist         hist
	noEngine     bool // has no engine label
	perProcess   int  // until this minor release a multiprocess page has it once for each API server
}

func one(c cell) []child { return []child{{cell: c}} }

// families of the engine in the order in which prometheus_client has them, which
// is that of their creation. Those that need a feature that is not simulated
// (speculation, connectors, watermarks, KV residency) are left out, as they are
// on a server that does not use it.
func families() []family {
	return []family{
		{name: "vllm:estimated_flops_per_gpu_total", kind: counter, since: 17, children: one(cellZero),
			help: "Estimated number of floating point operations per GPU (for Model Flops Utilization calculations)."},
		{name: "vllm:estimated_read_bytes_per_gpu_total", kind: counter, since: 17, children: one(cellZero),
			help: "Estimated number of bytes read from memory per GPU (for Model Flops Utilization calculations)."},
		{name: "vllm:estimated_write_bytes_per_gpu_total", kind: counter, since: 17, children: one(cellZero),
			help: "Estimated number of bytes written to memory per GPU (for Model Flops Utilization calculations)."},
		{name: "vllm:num_requests_running", kind: gauge, children: one(cellRunning),
			help: "Number of requests in model execution batches."},
		{name: "vllm:num_requests_waiting", kind: gauge, children: one(cellWaiting),
			help: "Number of requests waiting to be processed."},
		{name: "vllm:num_requests_waiting_by_reason", kind: gauge, since: 20, label: "reason",
			children: []child{{value: "capacity", cell: cellCapacity}, {value: "deferred", cell: cellDeferred}},
			help: "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; " +
				"'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). " +
				"Sum of all reasons equals vllm:num_requests_waiting."},
		{name: "vllm:engine_sleep_state", kind: gauge, since: 12, label: "sleep_state",
			children: []child{{value: "awake", cell: cellOne}, {value: "weights_offloaded"}, {value: "discard_all"}},
			help: "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; " +
				"weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2."},
		{name: "vllm:gpu_cache_usage_perc", kind: gauge, until: 10, children: one(cellKVUsage),
			help: "GPU KV-cache usage. 1 means 100 percent usage.DEPRECATED: Use vllm:kv_cache_usage_perc instead."},
		{name: "vllm:gpu_prefix_cache_queries", kind: counter, until: 10, children: one(cellQueries),
			help: "GPU prefix cache queries, in terms of number of queriedtokens. DEPRECATED: Use vllm:prefix_cache_queries instead."},
		{name: "vllm:gpu_prefix_cache_hits", kind: counter, until: 10, children: one(cellHits),
			help: "GPU prefix cache hits, in terms of number of cached tokens. DEPRECATED: Use vllm:prefix_cache_hits instead."},
		{name: "vllm:kv_cache_usage_perc", kind: gauge, children: one(cellKVUsage), perProcess: 11,
			help: "KV-cache usage. 1 means 100 percent usage."},
		{name: "vllm:prefix_cache_queries", kind: counter, children: one(cellQueries),
			help: "Prefix cache queries, in terms of number of queried tokens."},
		{name: "vllm:prefix_cache_hits", kind: counter, children: one(cellHits),
			help: "Prefix cache hits, in terms of number of cached tokens."},
		{name: "vllm:external_prefix_cache_queries", kind: counter, since: 12, children: one(cellZero),
			help: "External prefix cache queries from KV connector cross-instance cache sharing, in terms of number of queried tokens."},
		{name: "vllm:external_prefix_cache_hits", kind: counter, since: 12, children: one(cellZero),
			help: "External prefix cache hits from KV connector cross-instance cache sharing, in terms of number of cached tokens."},
		{name: "vllm:mm_cache_queries", kind: counter, since: 12, children: one(cellZero),
			help: "Multi-modal cache queries, in terms of number of queried items."},
		{name: "vllm:mm_cache_hits", kind: counter, since: 12, children: one(cellZero),
			help: "Multi-modal cache hits, in terms of number of cached items."},
		{name: "vllm:num_preemptions", kind: counter, children: one(cellPreemptions),
			help: "Cumulative number of preemption from the engine."},
		{name: "vllm:prompt_tokens", kind: counter, children: one(cellPrompt),
			help: "Number of prefill tokens processed."},
		{name: "vllm:prompt_tokens_by_source", kind: counter, since: 16, label: "source",
			children: []child{{value: "local_compute", cell: cellComputed}, {value: "local_cache_hit", cell: cellCached}, {value: "external_kv_transfer"}},
			help:     "Number of prompt tokens by source."},
		{name: "vllm:prompt_tokens_cached", kind: counter, since: 16, children: one(cellCached),
			help: "Number of cached prompt tokens (local + external)."},
		{name: "vllm:prompt_tokens_recomputed", kind: counter, since: 16, until: 19, children: one(cellZero),
			help: "Number of cached tokens recomputed for forward pass."},
		{name: "vllm:prompt_tokens_cached_by_source", kind: counter, since: 32, label: "source",
			children: []child{{value: "device", cell: cellHits}, {value: "host"}, {value: "p2p"}, {value: "disk"}, {value: "external_unspecified"}},
			help: "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), disk, " +
				"p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; sums to " +
				"vllm:prefix_cache_hits + vllm:external_prefix_cache_hits."},
		{name: "vllm:generation_tokens", kind: counter, children: one(cellGeneration),
			help: "Number of generation tokens processed."},
		{name: "vllm:request_success", kind: counter, label: "finished_reason",
			children: []child{
				{value: "stop", cell: cellStop}, {value: "length", cell: cellLength}, {value: "abort"},
				{value: "error", cell: cellError, since: 12}, {value: "repetition", since: 20},
			},
			help: "Count of successfully processed requests."},
		{name: "vllm:admission_rejections", kind: counter, since: 32, label: "reason", noEngine: true,
			children: []child{{value: "max_num_queued_reqs"}, {value: "max_num_queued_tokens"}},
			help:     "Number of admission attempts rejected by a queue limit, by reason."},
		{name: "vllm:request_prompt_tokens", kind: histo, hist: histPromptTokens,
			help: "Number of prefill tokens processed."},
		{name: "vllm:request_generation_tokens", kind: histo, hist: histGenerationTokens,
			help: "Number of generation tokens processed."},
		{name: "vllm:iteration_tokens_total", kind: histo, hist: histIterationTokens,
			help: "Histogram of number of tokens per engine_step."},
		{name: "vllm:request_max_num_generation_tokens", kind: histo, hist: histMaxGenerationTokens,
			help: "Histogram of maximum number of requested generation tokens."},
		{name: "vllm:request_params_n", kind: histo, hist: histN,
			help: "Histogram of the n request parameter."},
		{name: "vllm:request_params_max_tokens", kind: histo, hist: histMaxTokens,
			help: "Histogram of the max_tokens request parameter."},
		{name: "vllm:time_to_first_token_seconds", kind: histo, hist: histTTFT,
			help: "Histogram of time to first token in seconds."},
		{name: "vllm:time_per_output_token_seconds", kind: histo, hist: histITL, until: 10,
			help: "Histogram of time per output token in seconds."},
		{name: "vllm:time_per_output_token_seconds", kind: histo, hist: histITL, since: 11, until: 11,
			help: "Histogram of time per output token in seconds.DEPRECATED: Use vllm:inter_token_latency_seconds instead."},
		{name: "vllm:inter_token_latency_seconds", kind: histo, hist: histITL, since: 11,
			help: "Histogram of inter-token latency in seconds."},
		{name: "vllm:request_time_per_output_token_seconds", kind: histo, hist: histTPOT, since: 11,
			help: "Histogram of time_per_output_token_seconds per request."},
		{name: "vllm:e2e_request_latency_seconds", kind: histo, hist: histE2E,
			help: "Histogram of e2e request latency in seconds."},
		{name: "vllm:request_queue_time_seconds", kind: histo, hist: histQueue,
			help: "Histogram of time spent in WAITING phase for request."},
		{name: "vllm:request_inference_time_seconds", kind: histo, hist: histInference,
			help: "Histogram of time spent in RUNNING phase for request."},
		{name: "vllm:request_prefill_time_seconds", kind: histo, hist: histPrefill,
			help: "Histogram of time spent in PREFILL phase for request."},
		{name: "vllm:request_decode_time_seconds", kind: histo, hist: histDecode,
			help: "Histogram of time spent in DECODE phase for request."},
		{name: "vllm:request_num_preemptions", kind: histo, hist: histPreemptions, since: 30,
			help: "Histogram of the number of times a request was preempted."},
		{name: "vllm:request_prefill_kv_computed_tokens", kind: histo, hist: histPrefillComputed, since: 13,
			help: "Histogram of new KV tokens computed during prefill (excluding cached tokens)."},
	}
}

// in says whether a release has something of these bounds.
func in(release, since, until int) bool {
	return release >= since && (until == 0 || release <= until)
}

// wire returns a family's name on the page.
func (f *family) wire() string {
	if f.kind == counter {
		return f.base() + "_total"
	}
	return f.name
}

// base returns the name that _created follows. prometheus_client takes the
// _total off a counter that has one by itself.
func (f *family) base() string {
	if f.kind == counter {
		return strings.TrimSuffix(f.name, "_total")
	}
	return f.name
}

// minor returns the second number of a release, 32 of "0.32"; of what is none it
// is the newest.
func minor(release string) int {
	rest, ok := strings.CutPrefix(release, "0.")
	if !ok {
		return newest
	}
	rest, _, _ = strings.Cut(rest, ".")
	n, err := strconv.Atoi(rest)
	if err != nil {
		return newest
	}
	return n
}

const newest = 32

package enginemetrics

import (
	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// merge is how the series of several ranks are combined into one number.
type merge uint8

const (
	counted  merge = iota // a counter: the sum
	level                 // a gauge: the sum of the largest of each set of copies
	averaged              // a gauge that is a ratio: the mean over sets of copies
)

// field is one number of a page.
type field struct {
	page  string // name in capture.PageSample.Fields
	merge merge
	// names are wire names, best first: only the first that the page has is used.
	names []string
	// plus are wire names that are added to it.
	plus []string
	// times is the wire name of a factor, "" if there is none. A page without the factor
	// lacks the number. The product is rounded to a whole number.
	times string
}

// dialect is how an engine names its metrics.
type dialect struct {
	engine   string
	prefixes []string         // of its metric names
	counting capture.Counting // when its counter of output tokens grows
	fields   []field
}

// dialects returns all dialects, in the order in which they are tried on a page.
func dialects() []dialect { return []dialect{vllm(), sglang(), llamacpp(), tgi()} }

// vllm returns vLLM's dialect, with names and aliases from the catalog in the spellings of
// Prometheus and of Ray, which has no colons.
func vllm() dialect {
	metrics := map[string]catalog.Metric{}
	for _, m := range catalog.EngineOf(catalog.VLLM).Metrics() {
		metrics[m.Key] = m
	}
	prefixes := catalog.EngineOf(catalog.VLLM).Families
	names := func(key, suffix string) (all []string) {
		for _, name := range metrics[key].WireNames() {
			for _, prefix := range prefixes {
				all = append(all, prefix+name+suffix)
			}
		}
		return all
	}
	return dialect{engine: "vLLM", prefixes: prefixes, counting: capture.EachStep, fields: []field{
		{page: "generation_tokens", names: names("generation_tokens", "")},
		{page: "prompt_tokens", names: names("prompt_tokens", "")},
		{page: "requests", names: names("request_success", "")},
		{page: "running", merge: level, names: names("running", "")},
		{page: "waiting", merge: level, names: names("waiting", "")},
		{page: "kv_usage", merge: averaged, names: names("kv_usage", "")},
		{page: "ttft_sum_s", names: names("ttft", "_sum")}, {page: "ttft_count", names: names("ttft", "_count")},
		{page: "queue_sum_s", names: names("queue", "_sum")}, {page: "queue_count", names: names("queue", "_count")},
		{page: "prefill_sum_s", names: names("prefill", "_sum")}, {page: "prefill_count", names: names("prefill", "_count")},
	}}
}

// sglang returns the dialect of SGLang 0.5.19 (python/sglang/srt/observability, formerly
// srt/metrics). Its counters count finished requests: generation_tokens_total grows
// when a request ends.
func sglang() dialect {
	either := func(name string) []string { return []string{"sglang:" + name, "sglang_" + name} }
	return dialect{engine: "SGLang", prefixes: []string{"sglang:", "sglang_"}, counting: capture.AtEnd, fields: []field{
		{page: "generation_tokens", names: either("generation_tokens_total")},
		{page: "prompt_tokens", names: either("prompt_tokens_total")},
		{page: "requests", names: either("num_requests_total")},
		{page: "running", merge: level, names: either("num_running_reqs")},
		{page: "waiting", merge: level, names: either("num_queue_reqs")},
		{page: "kv_usage", merge: averaged, names: either("token_usage")},
		{page: "ttft_sum_s", names: either("time_to_first_token_seconds_sum")}, {page: "ttft_count", names: either("time_to_first_token_seconds_count")},
		{page: "queue_sum_s", names: either("queue_time_seconds_sum")}, {page: "queue_count", names: either("queue_time_seconds_count")},
	}}
}

// llamacpp returns the dialect of llama.cpp's server (tools/server/server-context.cpp).
// prompt_tokens_total leaves out cached tokens, which releases up to b11549 began to
// count separately. tokens_predicted_total grows when a slot is released, by all tokens
// of its request (server_metrics::on_prediction). n_decode_total grows with each step;
// n_busy_slots_per_decode is the mean over these steps, with six digits.
// kv_cache_usage_ratio was removed in 2025.
func llamacpp() dialect {
	return dialect{engine: "llama.cpp", prefixes: []string{"llamacpp:"}, counting: capture.AtEnd, fields: []field{
		{page: "generation_tokens", names: []string{"llamacpp:tokens_predicted_total"}},
		{page: "prompt_tokens", names: []string{"llamacpp:prompt_tokens_total"}, plus: []string{"llamacpp:prompt_tokens_cached_total"}},
		{page: "running", merge: level, names: []string{"llamacpp:requests_processing"}},
		{page: "waiting", merge: level, names: []string{"llamacpp:requests_deferred"}},
		{page: "kv_usage", merge: averaged, names: []string{"llamacpp:kv_cache_usage_ratio"}},
		{page: "sequence_steps", names: []string{"llamacpp:n_decode_total"}, times: "llamacpp:n_busy_slots_per_decode"},
	}}
}

// tgi returns the dialect of Hugging Face's text-generation-inference 3
// (docs/source/reference/metrics.md). Tokens are sums of histograms of finished
// requests. It has no time to first token.
func tgi() dialect {
	return dialect{engine: "TGI", prefixes: []string{"tgi_"}, counting: capture.AtEnd, fields: []field{
		{page: "generation_tokens", names: []string{"tgi_request_generated_tokens_sum"}},
		{page: "prompt_tokens", names: []string{"tgi_request_input_length_sum"}},
		{page: "requests", names: []string{"tgi_request_success", "tgi_request_success_total"}},
		{page: "running", merge: level, names: []string{"tgi_batch_current_size"}},
		{page: "waiting", merge: level, names: []string{"tgi_queue_size"}},
		{page: "queue_sum_s", names: []string{"tgi_request_queue_duration_sum"}}, {page: "queue_count", names: []string{"tgi_request_queue_duration_count"}},
	}}
}

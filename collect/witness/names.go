package witness

import (
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// merge says how the series of several ranks become one number.
type merge uint8

const (
	counted  merge = iota // added up
	level                 // a gauge: of copies the largest, and these added up
	averaged              // a gauge that is a ratio
)

// field is one number of a page.
type field struct {
	into  func(*capture.PageSample) *stat.Opt
	merge merge
	// names are wire names, best first: the first that the page has counts alone.
	names []string
	// plus are wire names that count beside it.
	plus []string
	// times is the wire name of a factor, which a page without it lacks the number for;
	// "" none. The product is a whole number.
	times string
}

// dialect is how an engine names its metrics.
type dialect struct {
	engine   string
	prefixes []string         // of its families
	counting capture.Counting // of its output tokens
	fields   []field
}

// Fields of a page sample.
func generation(s *capture.PageSample) *stat.Opt { return &s.GenerationTokens }
func prompt(s *capture.PageSample) *stat.Opt     { return &s.PromptTokens }
func requests(s *capture.PageSample) *stat.Opt   { return &s.Requests }
func running(s *capture.PageSample) *stat.Opt    { return &s.Running }
func waiting(s *capture.PageSample) *stat.Opt    { return &s.Waiting }
func kvUsage(s *capture.PageSample) *stat.Opt    { return &s.KVUsage }
func sequenceSteps(s *capture.PageSample) *stat.Opt {
	return &s.SequenceSteps
}
func ttftSum(s *capture.PageSample) *stat.Opt      { return &s.TTFTSum }
func ttftCount(s *capture.PageSample) *stat.Opt    { return &s.TTFTCount }
func queueSum(s *capture.PageSample) *stat.Opt     { return &s.QueueSum }
func queueCount(s *capture.PageSample) *stat.Opt   { return &s.QueueCount }
func prefillSum(s *capture.PageSample) *stat.Opt   { return &s.PrefillSum }
func prefillCount(s *capture.PageSample) *stat.Opt { return &s.PrefillCount }

// dialects returns every engine's, in the order in which a page is tried.
func dialects() []dialect { return []dialect{vllm(), sglang(), llamacpp(), tgi()} }

// vllm takes names and aliases from the catalog, in the spellings of Prometheus and
// of Ray, which has no colons.
func vllm() dialect {
	prefixes := []string{"vllm:", "vllm_", "ray_vllm_"}
	known := map[string]catalog.Metric{}
	for _, m := range catalog.Default().Metrics() {
		known[m.Key] = m
	}
	names := func(key, suffix string) (all []string) {
		for _, name := range known[key].Names {
			for _, prefix := range prefixes {
				all = append(all, prefix+name+suffix)
			}
		}
		if known[key].Kind == catalog.KindCounter {
			// Some exporters, Ray among them, leave out the _total.
			for _, name := range all {
				if bare, cut := strings.CutSuffix(name, "_total"); cut {
					all = append(all, bare)
				}
			}
		}
		return all
	}
	return dialect{engine: "vLLM", prefixes: prefixes, counting: capture.EachStep, fields: []field{
		{into: generation, names: names("generation_tokens", "")},
		{into: prompt, names: names("prompt_tokens", "")},
		{into: requests, names: names("request_success", "")},
		{into: running, merge: level, names: names("running", "")},
		{into: waiting, merge: level, names: names("waiting", "")},
		{into: kvUsage, merge: averaged, names: names("kv_usage", "")},
		{into: ttftSum, names: names("ttft", "_sum")}, {into: ttftCount, names: names("ttft", "_count")},
		{into: queueSum, names: names("queue", "_sum")}, {into: queueCount, names: names("queue", "_count")},
		{into: prefillSum, names: names("prefill", "_sum")}, {into: prefillCount, names: names("prefill", "_count")},
	}}
}

// sglang has the names of SGLang 0.5.19 (python/sglang/srt/observability, before
// srt/metrics). Its counters are those of finished requests: generation_tokens_total
// grows when a request ends.
func sglang() dialect {
	either := func(name string) []string { return []string{"sglang:" + name, "sglang_" + name} }
	return dialect{engine: "SGLang", prefixes: []string{"sglang:", "sglang_"}, counting: capture.AtEnd, fields: []field{
		{into: generation, names: either("generation_tokens_total")},
		{into: prompt, names: either("prompt_tokens_total")},
		{into: requests, names: either("num_requests_total")},
		{into: running, merge: level, names: either("num_running_reqs")},
		{into: waiting, merge: level, names: either("num_queue_reqs")},
		{into: kvUsage, merge: averaged, names: either("token_usage")},
		{into: ttftSum, names: either("time_to_first_token_seconds_sum")}, {into: ttftCount, names: either("time_to_first_token_seconds_count")},
		{into: queueSum, names: either("queue_time_seconds_sum")}, {into: queueCount, names: either("queue_time_seconds_count")},
	}}
}

// llamacpp has the names of llama.cpp's server (tools/server/server-context.cpp).
// prompt_tokens_total leaves out cached tokens; releases up to b11549 came to count
// these beside it. tokens_predicted_total grows when a slot is released, by all tokens
// of its request (server_metrics::on_prediction); n_decode_total and the mean of busy
// slots over all of these, with six digits, grow with each step.
// kv_cache_usage_ratio went in 2025.
func llamacpp() dialect {
	return dialect{engine: "llama.cpp", prefixes: []string{"llamacpp:"}, counting: capture.AtEnd, fields: []field{
		{into: generation, names: []string{"llamacpp:tokens_predicted_total"}},
		{into: prompt, names: []string{"llamacpp:prompt_tokens_total"}, plus: []string{"llamacpp:prompt_tokens_cached_total"}},
		{into: running, merge: level, names: []string{"llamacpp:requests_processing"}},
		{into: waiting, merge: level, names: []string{"llamacpp:requests_deferred"}},
		{into: kvUsage, merge: averaged, names: []string{"llamacpp:kv_cache_usage_ratio"}},
		{into: sequenceSteps, names: []string{"llamacpp:n_decode_total"}, times: "llamacpp:n_busy_slots_per_decode"},
	}}
}

// tgi has the names of Hugging Face's text-generation-inference 3
// (docs/source/reference/metrics.md). Tokens are sums of histograms of finished
// requests; it measures no time to first token.
func tgi() dialect {
	return dialect{engine: "TGI", prefixes: []string{"tgi_"}, counting: capture.AtEnd, fields: []field{
		{into: generation, names: []string{"tgi_request_generated_tokens_sum"}},
		{into: prompt, names: []string{"tgi_request_input_length_sum"}},
		{into: requests, names: []string{"tgi_request_success", "tgi_request_success_total"}},
		{into: running, merge: level, names: []string{"tgi_batch_current_size"}},
		{into: waiting, merge: level, names: []string{"tgi_queue_size"}},
		{into: queueSum, names: []string{"tgi_request_queue_duration_sum"}}, {into: queueCount, names: []string{"tgi_request_queue_duration_count"}},
	}}
}

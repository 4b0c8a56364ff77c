package enginepage

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

// totalsDialect is how an engine names its metrics.
type totalsDialect struct {
	engine   string
	prefixes []string         // of its metric names
	counting capture.Counting // when its counter of output tokens grows
	fields   []field
}

// totalsDialects returns all dialects, in the order in which they are tried on a page.
func totalsDialects() []totalsDialect {
	// SGLang's counters count finished requests: generation_tokens_total grows when one ends.
	return []totalsDialect{fromCatalog(catalog.VLLM, capture.EachStep), fromCatalog("sglang", capture.AtEnd), llamacpp(), tgi()}
}

// fromCatalog returns the dialect of an engine whose names, with their aliases, are in the catalog, in every spelling of
// its prefixes.
func fromCatalog(id string, counting capture.Counting) totalsDialect {
	engine := catalog.EngineOf(id)
	d := totalsDialect{engine: engine.Name, prefixes: engine.Families, counting: counting}
	add := func(page string, how merge, m catalog.Metric, suffix string) {
		f := field{page: page, merge: how}
		for _, name := range m.WireNames() {
			for _, prefix := range engine.Families {
				f.names = append(f.names, prefix+name+suffix)
			}
		}
		d.fields = append(d.fields, f)
	}
	for _, m := range engine.Metrics() {
		if len(m.Labels) > 0 {
			continue // one of several stages
		}
		switch m.Key {
		case "generation_tokens", "prompt_tokens":
			add(m.Key, counted, m, "")
		case "request_success":
			add("requests", counted, m, "")
		case "running", "waiting":
			add(m.Key, level, m, "")
		case "kv_usage":
			add(m.Key, averaged, m, "")
		case "ttft", "queue", "prefill":
			add(m.Key+"_sum_s", counted, m, "_sum")
			add(m.Key+"_count", counted, m, "_count")
		}
	}
	return d
}

// llamacpp returns the dialect of llama.cpp's server (tools/server/server-context.cpp).
// prompt_tokens_total leaves out cached tokens, which releases up to b11549 began to
// count separately. tokens_predicted_total grows when a slot is released, by all tokens
// of its request (server_metrics::on_prediction). n_decode_total grows with each step;
// n_busy_slots_per_decode is the mean over these steps, with six digits.
// kv_cache_usage_ratio was removed in 2025.
func llamacpp() totalsDialect {
	return totalsDialect{engine: "llama.cpp", prefixes: []string{"llamacpp:"}, counting: capture.AtEnd, fields: []field{
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
func tgi() totalsDialect {
	return totalsDialect{engine: "TGI", prefixes: []string{"tgi_"}, counting: capture.AtEnd, fields: []field{
		{page: "generation_tokens", names: []string{"tgi_request_generated_tokens_sum"}},
		{page: "prompt_tokens", names: []string{"tgi_request_input_length_sum"}},
		{page: "requests", names: []string{"tgi_request_success", "tgi_request_success_total"}},
		{page: "running", merge: level, names: []string{"tgi_batch_current_size"}},
		{page: "waiting", merge: level, names: []string{"tgi_queue_size"}},
		{page: "queue_sum_s", names: []string{"tgi_request_queue_duration_sum"}}, {page: "queue_count", names: []string{"tgi_request_queue_duration_count"}},
	}}
}

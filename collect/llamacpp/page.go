package llamacpp

import (
	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Dialect returns how the page of llama.cpp's server is read, with what [Get] appends to it or without.
func Dialect() *enginepage.Dialect {
	gauge := func(g engine.Gauge) []enginepage.Target { return []enginepage.Target{enginepage.Gauge(g)} }
	counter := func(c engine.Counter) []enginepage.Target { return []enginepage.Target{enginepage.Counter(c)} }
	hist := func(h engine.Hist) []enginepage.Target { return []enginepage.Target{enginepage.Hist(h)} }
	return &enginepage.Dialect{
		Engine: catalog.EngineOf(catalog.LlamaCPP),
		Targets: map[string][]enginepage.Target{
			"running":          gauge(engine.GaugeRunning),
			"waiting":          gauge(engine.GaugeWaiting),
			"waiting_capacity": gauge(engine.GaugeWaitingCapacity),
			"max_num_seqs":     gauge(engine.GaugeMaxNumSeqs),
			"kv_usage":         gauge(engine.GaugeKVUsage),
			"kv_tokens":        {enginepage.Cache(enginepage.CacheTokens)},

			"prompt_tokens":          counter(engine.CounterPromptTokens),
			"prompt_tokens_cached":   counter(engine.CounterPromptTokensCached),
			"prompt_tokens_computed": counter(engine.CounterPromptTokensComputed),
			"generation_tokens":      counter(engine.CounterGenerationTokens),
			"request_success":        counter(engine.CounterRequestSuccess),
			"steps":                  counter(engine.CounterSteps),
			"spec_drafts":            counter(engine.CounterSpecDrafts),
			"spec_draft_tokens":      counter(engine.CounterSpecDraftTokens),
			"spec_accepted":          counter(engine.CounterSpecAccepted),

			"itl":              hist(engine.HistITL),
			"prefill":          hist(engine.HistPrefill),
			"decode":           hist(engine.HistDecode),
			"prompt_len":       hist(engine.HistPromptTokens),
			"output_len":       hist(engine.HistGenerationTokens),
			"iteration_tokens": hist(engine.HistIterationTokens),
		},
		Finish: finish,
	}
}

// finish completes a page. The KV buffer is allocated by the token, and the counters of speculative decoding
// exist even without it.
func finish(p *engine.Page) {
	for i := range p.Ranks {
		p.Ranks[i].Cache.BlockSize = "1"
	}
	if p.Counters[engine.CounterSpecDrafts].Or(0) == 0 {
		for _, c := range [...]engine.Counter{engine.CounterSpecDrafts, engine.CounterSpecDraftTokens, engine.CounterSpecAccepted} {
			p.Counters[c] = stat.None
		}
	}
}

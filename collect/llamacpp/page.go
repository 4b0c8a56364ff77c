package llamacpp

import (
	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Dialect returns how the page of llama.cpp's server is read, with what [Get] appends to it or without.
func Dialect() *enginepage.Dialect {
	return &enginepage.Dialect{Engine: catalog.EngineOf(catalog.LlamaCPP), Finish: finish}
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

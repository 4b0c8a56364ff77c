// Package sglang says how SGLang's metrics page is read, and reads facts from its other endpoints. It sends
// only GET requests, one at a time, and none that changes state.
package sglang

import (
	"slices"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// generating are the endpoints whose requests the scheduler runs.
var generating = []string{"/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/generate"}

// Dialect returns how the pages of one SGLang server are read.
func Dialect() *enginepage.Dialect {
	var inServer []enginepage.Target
	for _, path := range generating {
		inServer = append(inServer, enginepage.Gauge(engine.GaugeInServer).Where("endpoint", path))
	}
	var seen gauges
	var read ranks
	return &enginepage.Dialect{
		Engine: catalog.EngineOf("sglang"), Targets: map[string][]enginepage.Target{"in_server": inServer},
		Rank: "dp_rank", HTTP: "sglang:http_responses_total", Status: "status_code",
		Generates: func(s collect.Sample) bool { return slices.Contains(generating, s.Label("endpoint")) },
		Skip:      read.repeated, Finish: func(p *engine.Page) { read = ranks{}; finish(p); seen.correct(p) },
	}
}

// ranks are the tensor-parallel ranks of a page of which the series are read, by their data-parallel rank. With
// --enable-metrics-for-all-schedulers each tensor- and pipeline-parallel rank publishes the same values; under
// --enable-dp-attention those of a further data-parallel rank do not begin at 0.
type ranks map[string]string

// repeated reports series of a further rank of one replica.
func (r *ranks) repeated(s collect.Sample) bool {
	if pp := s.Label("pp_rank"); pp != "" && pp != "0" {
		return true
	}
	dp, tp := s.Label("dp_rank"), s.Label("tp_rank")
	if tp == "" {
		return false
	}
	if *r == nil {
		*r = ranks{}
	}
	first, found := (*r)[dp]
	if !found {
		(*r)[dp], first = tp, tp
	}
	return tp != first
}

// finish completes a page with what SGLang reports differently from vLLM.
func finish(p *engine.Page) {
	// The front end's series have no dp_rank. It is not a rank.
	if len(p.Ranks) > 1 {
		p.Ranks = slices.DeleteFunc(p.Ranks, func(r engine.Rank) bool { return r.Name == "" })
	}
	for i := range p.Ranks {
		if c := &p.Ranks[i].Cache; c.NumGPUBlocks != "" {
			c.BlockSize = "1" // the pool is counted in tokens
		}
	}
	ttft, itl, prefill, e2e := &p.Hists[engine.HistTTFT], &p.Hists[engine.HistITL], &p.Hists[engine.HistPrefill], &p.Hists[engine.HistE2E]
	if ttft.OK && itl.OK { // generation_tokens_total grows only when a request ends
		p.Counters[engine.CounterGenerationTokens] = stat.Some(ttft.Count + itl.Count)
	}
	// The gaps between tokens are the time that requests decode, counted as it passes. Sums alone: no bounds,
	// so that no quantile is made of them.
	if itl.OK && e2e.OK {
		p.Hists[engine.HistDecode] = stat.Histogram{Sum: itl.Sum, Count: e2e.Count, OK: true}
		if prefill.OK {
			p.Hists[engine.HistInference] = stat.Histogram{Sum: itl.Sum + prefill.Sum, Count: e2e.Count, OK: true}
		}
	}
	prompts, cached := p.Counters[engine.CounterPromptTokens], p.Counters[engine.CounterPromptTokensCached]
	if !cached.OK && p.Counters[engine.CounterPromptTokensComputed].OK {
		cached = stat.Some(0) // in releases that count computed tokens, this series appears with the first hit
	}
	if prompts.OK && cached.OK {
		p.Counters[engine.CounterPrefixQueries], p.Counters[engine.CounterPrefixHits] = prompts, cached
	}
	// The gauges are first written for the first request.
	if running := &p.Gauges[engine.GaugeRunning]; !running.OK && !p.Gauges[engine.GaugeKVUsage].OK && !p.Hists[engine.HistQueue].OK && !p.Hists[engine.HistTTFT].OK &&
		!p.Counters[engine.CounterGenerationTokens].OK && !p.Counters[engine.CounterRequestSuccess].OK {
		*running, p.Gauges[engine.GaugeWaiting] = stat.Some(0), stat.Some(0)
		for i := range p.Ranks {
			p.Ranks[i].Gauges[engine.GaugeRunning], p.Ranks[i].Gauges[engine.GaugeWaiting] = stat.Some(0), stat.Some(0)
		}
	}
	if deferred := p.Gauges[engine.GaugeWaitingDeferred]; deferred.OK { // not part of num_queue_reqs
		p.Gauges[engine.GaugeWaiting] = p.Gauges[engine.GaugeWaiting].Plus(deferred)
	}
}

// gauges corrects the gauges of running and queued requests of one server. SGLang writes them at a prefill, whose
// requests do not count as running yet, and then at every 40th decode step; the front end knows at any time how many
// requests it has, of which some have finished and their answers are still open. Gauges that add up to those are
// right. Otherwise the requests run that have left the queue, counted once each, and have not finished, less those
// that are never counted as finished, whose number follows from the gauges while these are right. Until then, those
// run that are not queued, and no more than have left the queue; where that is not counted, those that are not
// queued. The result is never more than the scheduler was seen to run at once: the end of a request is counted later
// than the start of the next, and requests that came since are queued too.
//
// Before 0.5.10 the front end counts a stream only until it begins (Starlette's BaseHTTPMiddleware). Tokens that come
// while it has no request and none finishes show this; the gauges are then taken as they are.
type gauges struct {
	most   float64 // running requests that a gauge had since the server's start
	tokens float64 // generated, on the last page
	// uncounted are the requests that left the queue and are never counted as finished, such as health checks, as
	// of the last time at which the gauges were right; absent before the first.
	uncounted stat.Opt
	// empty is set if the front end had no request on the last page, finished are those that had finished by then,
	// and partial is set once it is seen not to count all.
	empty    bool
	finished float64
	partial  bool
}

func (g *gauges) correct(p *engine.Page) {
	running, waiting, all := &p.Gauges[engine.GaugeRunning], &p.Gauges[engine.GaugeWaiting], p.Gauges[engine.GaugeInServer]
	if !all.OK || !running.OK || len(p.Ranks) > 1 {
		return
	}
	tokens, finished := p.Counters[engine.CounterGenerationTokens].Or(0), p.Counters[engine.CounterRequestSuccess].Or(0)
	if tokens < g.tokens {
		*g = gauges{} // a restart
	} else if g.empty && all.V == 0 && tokens > g.tokens && finished == g.finished {
		g.partial = true
	}
	g.tokens, g.finished, g.empty = tokens, finished, all.V == 0
	if g.partial {
		p.Gauges[engine.GaugeInServer] = stat.None
		return
	}
	g.most = max(g.most, running.V)
	most := all.V
	if g.most > 1 { // 1 is what it is at a first prefill
		most = min(most, g.most)
	}
	left := stat.None // the queue and have not finished
	if queue := &p.Hists[engine.HistQueue]; queue.OK {
		left = stat.Some(queue.Count - finished) // the series of finished requests appears with the first
	}
	scheduled := stat.None
	if left.OK && g.uncounted.OK {
		scheduled = stat.Some(left.V - g.uncounted.V)
	}
	switch {
	case all.V == 0:
		running.V, *waiting = 0, stat.Some(0)
		g.uncounted = left
	case running.V+waiting.Or(0) == all.V:
		g.uncounted = left.Map(func(v float64) float64 { return v - running.V })
	case scheduled.OK && scheduled.V >= 0 && scheduled.V <= all.V:
		running.V = min(scheduled.V, most)
		*waiting = stat.Some(min(waiting.Or(0), all.V-running.V))
	case left.OK && !g.uncounted.OK:
		running.V = min(max(running.V, min(all.V-waiting.Or(0), left.V)), most)
		*waiting = stat.Some(min(waiting.Or(0), all.V-running.V))
	default:
		running.V = min(max(running.V, all.V-waiting.Or(0)), most)
		*waiting = stat.Some(all.V - running.V)
	}
	for i := range p.Ranks {
		p.Ranks[i].Gauges[engine.GaugeRunning], p.Ranks[i].Gauges[engine.GaugeWaiting] = *running, *waiting
	}
}

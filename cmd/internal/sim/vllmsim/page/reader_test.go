package page_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestReaderGetsBackWhatWasPutIn reads our pages as a real server's: every number
// that rooftop takes from a page is exactly the one observed, in every dialect.
func TestReaderGetsBackWhatWasPutIn(t *testing.T) {
	for _, release := range releases {
		for _, servers := range []int{1, 2} {
			t.Run(release+", API servers "+strconv.Itoa(servers), func(t *testing.T) {
				b := page.NewBook(tiny(func(s *settings.Settings) {
					s.Release, s.DataParallel, s.APIServers = release, 2, servers
				}), page.Cache{NumBlocks: 512, SizeTokens: 65536, MaxConcurrency: 16}, start)
				// Eighths of a second are exact in binary: sums do not depend on their order.
				worlds := []*world{newWorld(11, time.Second/8), newWorld(12, time.Second/8)}
				reader := enginepage.NewReader("", vllm.Dialect())
				var p engine.Page
				for range 60 {
					for e, w := range worlds {
						b.Observe(e, w.next())
					}
					b.HTTP("POST", "/v1/completions", 200, time.Second/8, 10, 0)
					b.HTTP("POST", "/v1/completions", 404, time.Second/8, 10, 0)
					if err := reader.Parse([]byte(write(b)), &p); err != nil {
						t.Fatal(err)
					}
				}
				checkPage(t, &p, release, worlds)
				if servers == 1 {
					equal(t, "start", p.StartTime, 1795223534.54)
					// The newest of the core counters' creation times.
					if v := p.Created; !v.OK || v.V < 1795223534.54 || v.V > 1795223534.55 {
						t.Errorf("created is %v", p.Created)
					}
				}
				if p.Model != "rooftop-tiny" {
					t.Errorf("model is %q", p.Model)
				}
				equal(t, "2xx", p.Counters[engine.CounterHTTP2xx], 60)
				equal(t, "4xx", p.Counters[engine.CounterHTTP4xx], 60)
			})
		}
	}
}

func equal(t *testing.T, what string, got stat.Opt, want float64) {
	t.Helper()
	if !got.OK || got.V != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func checkPage(t *testing.T, p *engine.Page, release string, worlds []*world) {
	t.Helper()
	sum := func(of func(y *tally) int) float64 {
		n := 0
		for _, w := range worlds {
			n += of(&w.tally)
		}
		return float64(n)
	}
	equal(t, "running", p.Gauges[engine.GaugeRunning], sum(func(y *tally) int { return y.running }))
	equal(t, "waiting", p.Gauges[engine.GaugeWaiting], sum(func(y *tally) int { return y.waiting }))
	equal(t, "KV usage", p.Gauges[engine.GaugeKVUsage], (worlds[0].tally.usage+worlds[1].tally.usage)/2)
	equal(t, "KV usage of the fullest", p.KVUsageMax, max(worlds[0].tally.usage, worlds[1].tally.usage))
	equal(t, "prompt tokens", p.Counters[engine.CounterPromptTokens], sum(func(y *tally) int { return y.prompt }))
	equal(t, "generation tokens", p.Counters[engine.CounterGenerationTokens], sum(func(y *tally) int { return y.generation }))
	equal(t, "preemptions", p.Counters[engine.CounterPreemptions], sum(func(y *tally) int { return y.preemptions }))
	equal(t, "prefix queries", p.Counters[engine.CounterPrefixQueries], sum(func(y *tally) int { return y.queries }))
	equal(t, "prefix hits", p.Counters[engine.CounterPrefixHits], sum(func(y *tally) int { return y.hits }))
	succeeded := func(y *tally) int { return y.stop + y.length + y.failed }
	if release == "0.10" || release == "0.11" {
		succeeded = func(y *tally) int { return y.stop + y.length } // no reason "error" there
	}
	equal(t, "finished", p.Counters[engine.CounterRequestSuccess], sum(succeeded))
	if release == "0.20" || release == "0.32" {
		equal(t, "waiting for capacity", p.Gauges[engine.GaugeWaitingCapacity], sum(func(y *tally) int { return y.waiting - y.deferred }))
		equal(t, "deferred", p.Gauges[engine.GaugeWaitingDeferred], sum(func(y *tally) int { return y.deferred }))
		equal(t, "asleep", p.Gauges[engine.GaugeAsleep], 0)
		equal(t, "cached", p.Counters[engine.CounterPromptTokensCached], sum(func(y *tally) int { return y.cached }))
		equal(t, "computed", p.Counters[engine.CounterPromptTokensComputed], sum(func(y *tally) int { return y.prompt - y.cached }))
	}
	hists := map[string]engine.Hist{
		"time_to_first_token_seconds": engine.HistTTFT, "inter_token_latency_seconds": engine.HistITL,
		"e2e_request_latency_seconds": engine.HistE2E, "request_queue_time_seconds": engine.HistQueue,
		"request_prefill_time_seconds": engine.HistPrefill, "request_decode_time_seconds": engine.HistDecode,
		"request_inference_time_seconds": engine.HistInference, "request_prompt_tokens": engine.HistPromptTokens,
		"request_generation_tokens": engine.HistGenerationTokens, "iteration_tokens_total": engine.HistIterationTokens,
	}
	if release != "0.10" {
		hists["request_time_per_output_token_seconds"] = engine.HistTPOT
	}
	for name, h := range hists {
		var seen []float64
		for _, w := range worlds {
			seen = append(seen, w.tally.seen[name]...)
		}
		total := 0.0
		for _, v := range seen {
			total += v
		}
		got := p.Hists[h]
		// Tokens divide a decode into parts that are not exact.
		exact := name != "request_time_per_output_token_seconds"
		if !got.OK || got.Count != float64(len(seen)) || exact && got.Sum != total {
			t.Errorf("%s has count %v and sum %v, want %d and %v", name, got.Count, got.Sum, len(seen), total)
		}
		for i, bound := range got.Bounds {
			below := 0
			for _, v := range seen {
				if v <= bound {
					below++
				}
			}
			if got.Cumulative[i] != float64(below) {
				t.Errorf("%s has %v up to %v, want %d", name, got.Cumulative[i], bound, below)
			}
		}
	}
}

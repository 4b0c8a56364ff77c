package sglang

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// loaded is a page of SGLang 0.5.23 on a CPU, recorded while clients came and went on 4 slots.
func loaded(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "sglang-0.5.23-cpu-loaded.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parsed(t testing.TB, text string) *engine.Page {
	t.Helper()
	var p engine.Page
	if err := enginepage.NewReader("", Dialect()).Parse([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func TestPageOfARealServer(t *testing.T) {
	p := parsed(t, string(loaded(t)))
	if p.Engine != "sglang" || p.Model != "model" || len(p.Ranks) != 1 {
		t.Errorf("engine %q, model %q, %d ranks", p.Engine, p.Model, len(p.Ranks))
	}
	for g, want := range map[engine.Gauge]float64{
		// The page says 0, written at a prefill: 30 have left the queue and 25 have finished. It ran 4: one had ended and
		// was not counted yet, which later pages show (TestLatePage).
		engine.GaugeRunning: 5,
		engine.GaugeWaiting: 4, engine.GaugeWaitingDeferred: 0, engine.GaugeKVUsage: 0.05, engine.GaugeInServer: 16,
	} {
		if p.Gauges[g] != stat.Some(want) {
			t.Errorf("gauge %d is %v, want %v", g, p.Gauges[g], want)
		}
	}
	for c, want := range map[engine.Counter]float64{
		engine.CounterPromptTokens: 2411, engine.CounterPromptTokensCached: 7, engine.CounterPromptTokensComputed: 2804,
		engine.CounterGenerationTokens: 1553, // first tokens and the gaps after them; finished requests have 1552
		engine.CounterRequestSuccess:   25, engine.CounterPrefixQueries: 2411, engine.CounterPrefixHits: 7, engine.CounterHTTP2xx: 21,
		engine.CounterProcessCPUSeconds: 1.43,
	} {
		if got := p.Counters[c]; !got.OK || got.V < want-0.01 || got.V > want+0.01 {
			t.Errorf("counter %d is %v, want %v", c, got, want)
		}
	}
	for h, want := range map[engine.Hist]float64{
		engine.HistTTFT: 29, engine.HistITL: 1524, engine.HistE2E: 25, engine.HistQueue: 30, engine.HistPrefill: 30,
		engine.HistDecode: 25, engine.HistInference: 25, engine.HistPromptTokens: 25, engine.HistGenerationTokens: 25,
	} {
		if got := p.Hists[h]; !got.OK || got.Count != want {
			t.Errorf("histogram %d has a count of %v, want %v", h, got.Count, want)
		}
	}
	if c := p.Ranks[0].Cache; c.NumGPUBlocks != "8192" || c.BlockSize != "1" || c.KVCacheSizeTokens != "8192" {
		t.Errorf("cache %+v", c)
	}
}

// TestLatePage reads the same page after one at a decode step, on which all 4 slots were seen to run.
func TestLatePage(t *testing.T) {
	text := string(loaded(t))
	decoding := regexp.MustCompile(`(?m)^(sglang:num_running_reqs\{.*) 0\.0$`).ReplaceAllString(text, "$1 4.0")
	if decoding == text {
		t.Fatal("the page has no running gauge of 0")
	}
	r := enginepage.NewReader("", Dialect())
	for _, body := range []string{decoding, text} {
		var p engine.Page
		if err := r.Parse([]byte(body), &p); err != nil {
			t.Fatal(err)
		}
		if p.Gauges[engine.GaugeRunning] != stat.Some(4) || p.Gauges[engine.GaugeWaiting] != stat.Some(4) {
			t.Errorf("%v running, %v waiting, want 4 and 4", p.Gauges[engine.GaugeRunning].V, p.Gauges[engine.GaugeWaiting].V)
		}
	}
}

// TestOlderPage reads an excerpt of a page of 0.5.19 from an A10.
func TestOlderPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "enginepage", "testdata", "sglang-0.5.19.txt"))
	if err != nil {
		t.Fatal(err)
	}
	p := parsed(t, string(text))
	if !p.Gauges[engine.GaugeWaiting].OK || !p.Gauges[engine.GaugeKVUsage].OK || p.Counters[engine.CounterGenerationTokens] != stat.Some(1240) || p.Gauges[engine.GaugeInServer].OK {
		t.Errorf("gauges %v, generated %v", p.Gauges, p.Counters[engine.CounterGenerationTokens])
	}
}

func TestRanks(t *testing.T) {
	var text strings.Builder
	for _, rank := range []string{"0", "1"} {
		for name, value := range map[string]string{"num_running_reqs": "3", "num_queue_reqs": "1", "token_usage": "0.5", "max_total_num_tokens": "1000"} {
			text.WriteString("sglang:" + name + `{dp_rank="` + rank + `",model_name="m",tp_rank="` + rank + "\"} " + value + "\n")
		}
	}
	text.WriteString("sglang:generation_tokens_total{model_name=\"m\"} 70\n")
	p := parsed(t, text.String())
	if len(p.Ranks) != 2 || p.Gauges[engine.GaugeRunning] != stat.Some(6) || p.Gauges[engine.GaugeKVUsage] != stat.Some(0.5) || p.Ranks[1].Cache.NumGPUBlocks != "1000" {
		t.Errorf("%d ranks, running %v, usage %v", len(p.Ranks), p.Gauges[engine.GaugeRunning], p.Gauges[engine.GaugeKVUsage])
	}
	// Every scheduler of a tensor-parallel server publishes the same.
	same := parsed(t, "sglang:num_running_reqs{model_name=\"m\",tp_rank=\"0\"} 3\nsglang:num_running_reqs{model_name=\"m\",tp_rank=\"1\"} 3\n")
	if same.Gauges[engine.GaugeRunning] != stat.Some(3) {
		t.Errorf("running %v, want 3", same.Gauges[engine.GaugeRunning])
	}
	// Those of a data-parallel rank too, whose first is not 0 under --enable-dp-attention.
	text.Reset()
	for tp, running := range []int{3, 3, 2, 2} {
		fmt.Fprintf(&text, "sglang:num_running_reqs{dp_rank=\"%d\",tp_rank=\"%d\"} %d\n", tp/2, tp, running)
	}
	r := enginepage.NewReader("", Dialect())
	for range 2 {
		var p engine.Page
		if err := r.Parse([]byte(text.String()), &p); err != nil || p.Gauges[engine.GaugeRunning] != stat.Some(5) || len(p.Ranks) != 2 {
			t.Errorf("%v: running %v in %d ranks, want 5 in 2", err, p.Gauges[engine.GaugeRunning], len(p.Ranks))
		}
	}
}

// look is what one page of a server says, and how many requests then run and wait. A count below 0 is not on the page.
type look struct{ tokens, gauge, queue, active, left, finished, running, waiting float64 }

func (l look) page() string {
	var text strings.Builder
	for _, line := range []struct {
		name  string
		value float64
	}{
		{`num_running_reqs{model_name="m"}`, l.gauge}, {`num_queue_reqs{model_name="m"}`, l.queue}, {`http_requests_active{endpoint="/v1/completions"}`, l.active},
		{`generation_tokens_total{model_name="m"}`, l.tokens}, {`queue_time_seconds_count{model_name="m"}`, l.left}, {`queue_time_seconds_sum{model_name="m"}`, min(l.left, 1)},
		{`num_requests_total{model_name="m"}`, l.finished},
	} {
		if line.value >= 0 {
			fmt.Fprintf(&text, "sglang:%s %v\n", line.name, line.value)
		}
	}
	return text.String()
}

// TestRunningOfALateGauge follows servers whose gauges are written before or after what happened.
func TestRunningOfALateGauge(t *testing.T) {
	const none = -1
	for name, looks := range map[string][]look{
		"4 slots, whose 24 clients are served four at a time": {
			{none, 1, 20, 24, none, none, 4, 20}, // at the first prefill
			{none, 4, 20, 24, none, none, 4, 20}, // at a decode step
			{none, 0, 16, 24, none, none, 4, 20}, // at the next prefill, with four requests more since
			{none, 4, 20, 28, none, none, 4, 24}, // four answers end while their clients send again
			{none, 4, 0, 2, none, none, 2, 0},
		},
		"32 slots, whose clients send again before it has closed their answers": {
			{none, 24, 0, 24, 144, 120, 24, 0},
			{none, 0, 0, 48, 168, 144, 24, 0},
			{none, 1, 0, 48, 168, 144, 24, 0},
			{none, 24, 0, 24, 168, 144, 24, 0},
			{none, 0, 0, 4, 170, 168, 2, 0},
			{none, 1, 0, 48, 196, 168, 24, 0}, // ends are counted late
			{none, 0, 0, 0, 203, 193, 0, 0},   // ten health checks, which are never counted as finished
			{none, 1, 0, 9, 207, 193, 4, 0},
		},
		// Ten readiness checks leave the queue and are never counted as finished, before the 24 clients are back.
		"a restart with 4 slots": {
			{9000, 24, 0, 24, 144, 120, 24, 0},
			{0, 1, 20, 24, 14, 0, 4, 20},   // nothing shows yet which of the 14 are the clients'
			{0, 0, 20, 24, 14, 0, 4, 20},   // nor that no more than 4 run at once
			{90, 4, 20, 24, 14, 0, 4, 20},  // the gauges are right: ten are not
			{160, 0, 16, 24, 18, 4, 4, 16}, // at the next prefill
			{200, 0, 0, 2, 38, 26, 2, 0},
		},
		"a stream counts as an open request only until it begins": {
			{100, 0, 0, 0, none, 7, 0, 0},
			{160, 4, 0, 0, none, 9, 0, 0}, // two requests may have come and gone
			{220, 4, 0, 0, none, 9, 4, 0}, // nothing finished, and no request is open: tokens of whom?
			{300, 4, 0, 1, none, 9, 4, 0}, // one that has not begun
			{0, 4, 0, 0, none, 0, 0, 0},   // another server
		},
		"the last request ended": {{none, 4, 0, 0, none, none, 0, 0}},
	} {
		r := enginepage.NewReader("", Dialect())
		for i, l := range looks {
			var p engine.Page
			if err := r.Parse([]byte(l.page()), &p); err != nil {
				t.Fatal(err)
			}
			if running, waiting := p.Gauges[engine.GaugeRunning], p.Gauges[engine.GaugeWaiting]; running != stat.Some(l.running) || waiting != stat.Some(l.waiting) {
				t.Errorf("%s, page %d: %v running, %v waiting, want %v and %v", name, i, running, waiting, l.running, l.waiting)
			}
		}
	}
}

// A page without cached tokens has no hits yet if it counts computed tokens, and says nothing of hits otherwise.
func TestHitsThatAreNotTold(t *testing.T) {
	const prompts = "sglang:prompt_tokens_total{model_name=\"m\"} 900\n"
	if p := parsed(t, prompts); p.Counters[engine.CounterPrefixHits].OK || p.Counters[engine.CounterPrefixQueries].OK {
		t.Errorf("an older release: %v hits of %v", p.Counters[engine.CounterPrefixHits], p.Counters[engine.CounterPrefixQueries])
	}
	p := parsed(t, prompts+"sglang:realtime_tokens_total{mode=\"prefill_compute\",model_name=\"m\"} 900\n")
	if p.Counters[engine.CounterPrefixHits] != stat.Some(0) || p.Counters[engine.CounterPrefixQueries] != stat.Some(900) {
		t.Errorf("before the first hit: %v hits of %v", p.Counters[engine.CounterPrefixHits], p.Counters[engine.CounterPrefixQueries])
	}
}

func FuzzParse(f *testing.F) {
	f.Add(loaded(f))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = enginepage.NewReader("", Dialect()).Parse(text, new(engine.Page))
	})
}

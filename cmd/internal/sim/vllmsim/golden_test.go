package vllmsim_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt" // the reference parser judges our page
	"github.com/prometheus/common/model"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/engine"
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// smallRun is a server of one engine with two requests, one of which is preempted and half cached, one that fails
// after its first token and one whose client goes away.
func smallRun(release string, servers int) *vllmsim.Book {
	b := vllmsim.NewBook(tiny(func(s *settings.Settings) {
		s.Release, s.APIServers, s.MaxModelLen = release, servers, 128
		s.Seed, s.Scenario, s.Scale = 7, "kv-capped", 20
		s.LoRA, s.MaxLoras = true, 2
	}), vllmsim.Cache{NumBlocks: 33, SizeTokens: 4096, MaxConcurrency: 32}, start)
	first := &core.History{
		ID: 1, Arrival: ms(100), Queued: ms(102), Scheduled: ms(103), FirstToken: ms(130), LastToken: ms(130),
		PromptTokens: 64, CachedTokens: 32, OutputTokens: 1, MaxTokens: 3,
	}
	b.Observe(0, &core.Report{
		Ended: ms(130), ComputedPrompt: 32, PrefixQueries: 64, PrefixHits: 32,
		Outputs: []core.Output{{ID: 1, HasToken: true, First: true, History: first}},
		State:   core.State{Running: 1, WaitingCapacity: 1, KVUsage: 0.03125},
	})
	b.Adapters(ms(130), []string{"sql", "chat"})
	b.Observe(0, &core.Report{Ended: ms(140), Preemptions: 1, State: core.State{WaitingCapacity: 2}})
	first.Preemptions = 1
	second := &core.History{
		ID: 2, Arrival: ms(101), Queued: ms(103), Scheduled: ms(140), FirstToken: ms(175), LastToken: ms(175),
		PromptTokens: 100, OutputTokens: 1, MaxTokens: 28,
	}
	third := &core.History{ID: 3, Arrival: ms(100), Queued: ms(103), Scheduled: ms(140), FirstToken: ms(150), LastToken: ms(150), PromptTokens: 7, OutputTokens: 1}
	b.Observe(0, &core.Report{
		Ended: ms(175), ComputedPrompt: 100, PrefixQueries: 100,
		Outputs: []core.Output{
			{ID: 2, HasToken: true, First: true, Finish: core.Stop, History: second},
			{ID: 3, Finish: core.Error, History: third},
			{ID: 4, Finish: core.Aborted, History: &core.History{ID: 4, PromptTokens: 50}},
		},
		State: core.State{WaitingCapacity: 1, WaitingDeferred: 1},
	})
	b.Append(nil, ms(176))
	b.HTTP("/v1/completions", 200)
	for i, end := range []int{190, 200} {
		first.LastToken, first.OutputTokens = ms(end), 2+i
		o := core.Output{ID: 1, HasToken: true, Gap: ms([]int{60, 10}[i]), History: first}
		if i == 1 {
			o.Finish = core.Length
		}
		b.Observe(0, &core.Report{
			Ended: ms(end), Outputs: []core.Output{o},
			State: core.State{Running: 2, WaitingCapacity: 3, WaitingDeferred: 1, KVUsage: 0.5},
		})
	}
	b.Adapters(ms(200), nil)
	b.HTTP("/v1/chat/completions", 400)
	b.CPU(ms(1234))
	return b
}

// TestReaderGetsBackWhatWasPutIn reads our pages as a real server's, in every dialect.
func TestReaderGetsBackWhatWasPutIn(t *testing.T) {
	for _, release := range settings.Releases {
		for _, servers := range []int{1, 2} {
			body := smallRun(release, servers).Append(nil, ms(300))
			parser := expfmt.NewTextParser(model.UTF8Validation)
			if _, err := parser.TextToMetricFamilies(bytes.NewReader(body)); err != nil {
				t.Errorf("%s: %v", release, err)
			}
			var p engine.Page
			if err := enginepage.NewReader("", vllm.Dialect()).Parse(body, &p); err != nil {
				t.Fatal(err)
			}
			gauges, counters := &p.Gauges, &p.Counters
			got := []any{
				p.Model, gauges[engine.GaugeRunning].V, gauges[engine.GaugeWaiting].V, gauges[engine.GaugeKVUsage].V,
				counters[engine.CounterPromptTokens].V, counters[engine.CounterGenerationTokens].V, counters[engine.CounterPreemptions].V,
				counters[engine.CounterPrefixQueries].V, counters[engine.CounterPrefixHits].V, counters[engine.CounterHTTP2xx].V,
				counters[engine.CounterHTTP4xx].V, p.Hists[engine.HistTTFT].Count, p.Hists[engine.HistE2E].Count, p.Hists[engine.HistE2E].Sum,
				p.Hists[engine.HistIterationTokens].Count, p.Hists[engine.HistIterationTokens].Sum,
			}
			want := []any{"rooftop-tiny", 2.0, 4.0, 0.5, 164.0, 4.0, 1.0, 164.0, 32.0, 1.0, 1.0, 2.0, 3.0, 0.074 + 0.075 + 0.1, 4.0, 136.0}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, %d API servers (-want +got):\n%s", release, servers, d)
			}
			if start := p.StartTime; servers == 1 && start.V != 1795223534.54 {
				t.Errorf("%s: started at %v", release, start.V)
			}
		}
	}
}

func TestLabelsAreEscaped(t *testing.T) {
	body := write(vllmsim.NewBook(tiny(func(s *settings.Settings) { s.Served = []string{"a\"b\\c\nd"} }), vllmsim.Cache{}, start))
	if want := `model_name="a\"b\\c\nd"`; !strings.Contains(body, want) {
		t.Errorf("the page lacks %s", want)
	}
}

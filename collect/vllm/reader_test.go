package vllm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestPagesOfEveryAge reads in short what the pages of the releases between hold: how many readings, and those that differ in kind.
func TestPagesOfEveryAge(t *testing.T) {
	type short struct {
		Gauges, Counters, Hists int
		Running, Usage, Fullest stat.Opt
		Tokens, Created         stat.Opt
		ITL, TPOT               string // the names that they are read from
	}
	const inter, each, old = "vllm:inter_token_latency_seconds", "vllm:request_time_per_output_token_seconds", "vllm:time_per_output_token_seconds"
	some, none := stat.Some, stat.None
	for _, tt := range []struct {
		name string
		want short
	}{
		{loadedPage, short{6, 17, 11, some(4), some(0.01564027370478982), some(0.01564027370478982), some(829), some(1.7952236157866588e+09), inter, each}},
		{"v0-0.6.6.txt", short{5, 4, 4, some(7), some(0.93), some(0.93), some(2500), none, old, old}},
		{"vllm-0.32.0-cpu-dp2.txt.gz", short{6, 17, 11, some(8), some(0.011730205278592365), some(0.011730205278592365), some(846), some(1.795223775857037e+09), inter, each}},
		{"v1-0.9.2-multiprocess.txt", short{3, 3, 2, some(28), some(0.4), some(0.6), some(200), none, old, old}},
		{"v1-0.11-both-names.txt", short{2, 0, 2, some(5), some(0.4), some(0.4), none, none, inter, each}},
		{"rust-front-end.txt", short{2, 1, 1, some(3), some(0.125), some(0.125), some(640), some(1790824300.5), "", ""}},
		{"ray.txt", short{3, 3, 1, some(10), some(0.6), some(0.9), some(150), none, "", ""}},
		{"field/vllm-0.30.0-inferlint-live-qwen3.8-27b-after-load.txt", short{6, 16, 11, some(0), some(0), some(0), some(32144), some(1.7908243272217329e+09), inter, each}},
		{"field/vllm-0.11.0-hardware-aware-router-idle.txt", short{3, 7, 11, some(0), some(0), some(0), some(0), some(1.7624384230435507e+09), inter, each}},
		{"field/vllm-0.9-v0-cpu-qwen3-0.6b-loaded.txt", short{6, 4, 11, some(0), some(0), some(0), some(4874), none, old, old}},
		{"field/vllm-0.5.4-kubeai-llama31-8b-fp8.txt", short{5, 5, 6, some(3), some(0.0026235242675994863), some(0.0026235242675994863), some(2546), none, old, old}},
		{"field/vllm-0.11-multiproc-pid-label-partial.txt", short{1, 0, 0, none, some(0.6530455880475035), some(0.6530455880475035), none, none, "", ""}},
		{"field/vllm-0.8-v1-production-stack-318-partial.txt", short{3, 1, 0, some(0), some(0), some(0), none, none, "", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p *engine.Page
			if name, field := strings.CutPrefix(tt.name, "field/"); field {
				p = read(t, shared(t, "vllm-metrics", name))
			} else {
				p = read(t, ours(t, name))
			}
			got := short{
				Running: p.Gauges[engine.GaugeRunning], Usage: p.Gauges[engine.GaugeKVUsage], Fullest: p.KVUsageMax, Tokens: p.Counters[engine.CounterGenerationTokens],
				Created: p.Created, ITL: p.HistNames[engine.HistITL], TPOT: p.HistNames[engine.HistTPOT],
			}
			for _, g := range p.Gauges {
				got.Gauges += map[bool]int{true: 1}[g.OK]
			}
			for _, c := range p.Counters {
				got.Counters += map[bool]int{true: 1}[c.OK]
			}
			for _, h := range p.Hists {
				got.Hists += map[bool]int{true: 1}[h.OK]
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRanks(t *testing.T) {
	type short struct {
		Name                              string
		Running, Waiting, KV, Tokens, Run stat.Opt
	}
	some := stat.Some
	tests := []struct {
		page string
		want []short
	}{
		{"vllm-0.32.0-cpu-dp2.txt.gz", []short{
			{"0", some(4), some(2), some(0.011730205278592365), some(409), some(108)},
			{"1", some(4), some(2), some(0.011730205278592365), some(437), some(115)},
		}},
		{"v1-0.9.2-multiprocess.txt", []short{
			{"0", some(16), some(4), some(0.6), some(140), stat.None},
			{"1", some(12), some(2), some(0.2), some(60), stat.None},
		}},
		{"ray.txt", []short{
			{"app#a/0", some(6), some(1), some(0.9), some(100), some(31)},
			{"app#b/0", some(4), stat.None, some(0.3), some(50), stat.None},
		}},
		{"v0-0.6.6.txt", []short{{"", some(7), some(3), some(0.93), some(2500), stat.None}}},
	}
	for _, tt := range tests {
		t.Run(tt.page, func(t *testing.T) {
			var got []short
			for _, r := range read(t, ours(t, tt.page)).Ranks {
				got = append(got, short{r.Name, r.Gauges[engine.GaugeRunning], r.Gauges[engine.GaugeWaiting], r.Gauges[engine.GaugeKVUsage], r.Generation, r.Steps})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRanksAreInNumericOrder(t *testing.T) {
	var page strings.Builder
	for i := 11; i >= 0; i-- {
		fmt.Fprintf(&page, "vllm:num_requests_running{engine=\"%d\",model_name=\"m\"} %d\n", i, i)
	}
	p := read(t, []byte(page.String()))
	for i, r := range p.Ranks {
		if r.Name != fmt.Sprint(i) || r.Gauges[engine.GaugeRunning].V != float64(i) {
			t.Fatalf("rank %d is %q with %v running", i, r.Name, r.Gauges[engine.GaugeRunning])
		}
	}
}

func TestCacheConfig(t *testing.T) {
	tests := []struct {
		name string
		body []byte
		want []engine.CacheConfig
	}{
		{"newest", ours(t, loadedPage), []engine.CacheConfig{{
			BlockSize: "128", NumGPUBlocks: "1024", GPUMemoryUtilization: "0.92", CacheDType: "auto", EnablePrefixCaching: "True",
			KVCacheSizeTokens: "131072", KVCacheMaxConcurrency: "32.0",
		}}},
		{"V0 without an engine label", ours(t, "v0-0.6.6.txt"), []engine.CacheConfig{{
			BlockSize: "16", NumGPUBlocks: "1000", GPUMemoryUtilization: "0.9", CacheDType: "auto", EnablePrefixCaching: "False",
		}}},
		{"one for each engine", []byte(`vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="90",num_gpu_blocks_override="90"} 1
vllm:num_requests_running{engine="1",model_name="m"} 1
vllm:num_requests_running{engine="0",model_name="m"} 1
`), []engine.CacheConfig{{BlockSize: "16", NumGPUBlocks: "100"}, {BlockSize: "16", NumGPUBlocks: "90", NumGPUBlocksOverride: "90"}}},
		{"one for all engines", []byte(`vllm:num_requests_running{engine="0",model_name="m"} 1
vllm:num_requests_running{engine="1",model_name="m"} 1
vllm:cache_config_info{block_size="16"} 1
`), []engine.CacheConfig{{BlockSize: "16"}, {BlockSize: "16"}}},
		{"alone", []byte("vllm:cache_config_info{block_size=\"16\"} 1\n"), []engine.CacheConfig{{BlockSize: "16"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []engine.CacheConfig
			for _, r := range read(t, tt.body).Ranks {
				got = append(got, r.Cache)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGauges pins what single gauges mean, odd values first of all.
func TestGauges(t *testing.T) {
	some := stat.Some
	tests := []struct {
		name, page string
		gauge      engine.Gauge
		want       stat.Opt
		note       string
	}{
		{"unknown labels are summed over", "vllm:num_requests_waiting{model_name=\"m\",priority=\"0\"} 2\nvllm:num_requests_waiting{model_name=\"m\",priority=\"1\"} 3\n", engine.GaugeWaiting, some(5), ""},
		{"waiting from its reasons", "vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 2\nvllm:num_requests_waiting_by_reason{reason=\"deferred\"} 1\n", engine.GaugeWaiting, some(3), ""},
		{"an unknown reason is neither", "vllm:num_requests_waiting 4\nvllm:num_requests_waiting_by_reason{reason=\"new\"} 4\n", engine.GaugeWaitingCapacity, stat.None, ""},
		{"NaN is absent", "vllm:num_requests_running NaN\n", engine.GaugeRunning, stat.None, "is NaN"},
		{"infinite is absent", "vllm:num_requests_running +Inf\n", engine.GaugeRunning, stat.None, "is +Inf"},
		{"negative is absent", "vllm:num_requests_running -1\n", engine.GaugeRunning, stat.None, "is -1"},
		{"one bad rank makes the sum absent", "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} NaN\n", engine.GaugeRunning, stat.None, "is NaN"},
		{"zero is a value", "vllm:num_requests_running 0\n", engine.GaugeRunning, some(0), ""},
		{"slots", "vllm:max_num_seqs{engine=\"0\",model_name=\"m\"} 256\n", engine.GaugeMaxNumSeqs, some(256), ""},
		{"usage in percent is not guessed at", "vllm:kv_cache_usage_perc 65.3\n", engine.GaugeKVUsage, stat.None, "not a ratio"},
		{"usage is rounded down to 1", "vllm:kv_cache_usage_perc 1.0000001\n", engine.GaugeKVUsage, some(1), ""},
		{"usage NaN", "vllm:kv_cache_usage_perc NaN\n", engine.GaugeKVUsage, stat.None, "not a ratio"},
		{"hit rate of V0", "vllm:gpu_prefix_cache_hit_rate{model_name=\"m\"} 0.25\n", engine.GaugePrefixHitRate, some(0.25), ""},
		{"hit rate not available", "vllm:gpu_prefix_cache_hit_rate{model_name=\"m\"} -1.0\n", engine.GaugePrefixHitRate, stat.None, ""},
		{"awake", "vllm:engine_sleep_state{sleep_state=\"awake\"} 1\nvllm:engine_sleep_state{sleep_state=\"discard_all\"} 0\n", engine.GaugeAsleep, some(0), ""},
		{"asleep", "vllm:engine_sleep_state{sleep_state=\"awake\"} 0\nvllm:engine_sleep_state{sleep_state=\"weights_offloaded\"} 1\n", engine.GaugeAsleep, some(1), ""},
		{"asleep by the state alone", "vllm:engine_sleep_state{sleep_state=\"weights_offloaded\"} 1\n", engine.GaugeAsleep, some(1), ""},
		{"one of two engines asleep", "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 1\nvllm:engine_sleep_state{engine=\"1\",sleep_state=\"awake\"} 0\n", engine.GaugeAsleep, some(1), ""},
		{"sleep state without a state", "vllm:engine_sleep_state 1\n", engine.GaugeAsleep, stat.None, ""},
		{"the first of duplicates", "vllm:num_requests_running 3\nvllm:num_requests_running 5\n", engine.GaugeRunning, some(3), "occurs twice"},
		{"Ray without its prefix", "vllm_num_requests_running 3\n", engine.GaugeRunning, some(3), ""},
		{"a router's page", "vllm:num_requests_running{server=\"http://a\"} 3\nvllm:num_requests_running{server=\"http://b\"} 4\n", engine.GaugeRunning, some(7), "router"},
		{"two spellings are not added", "vllm:num_requests_running 3\nray_vllm_num_requests_running 3\n", engine.GaugeRunning, some(3), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := read(t, []byte(tt.page))
			if got := p.Gauges[tt.gauge]; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if notes := strings.Join(p.Notes, "\n"); (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
}

func TestCounters(t *testing.T) {
	some := stat.Some
	tests := []struct {
		name, page string
		counter    engine.Counter
		want       stat.Opt
	}{
		{"negative is absent", "vllm:generation_tokens_total -5\n", engine.CounterGenerationTokens, stat.None},
		{"NaN is absent", "vllm:generation_tokens_total NaN\n", engine.CounterGenerationTokens, stat.None},
		{"infinite is absent", "vllm:generation_tokens_total +Inf\n", engine.CounterGenerationTokens, stat.None},
		{"a part of a sum is not a sum", "vllm:generation_tokens_total{engine=\"0\"} 5\nvllm:generation_tokens_total{engine=\"1\"} NaN\n", engine.CounterGenerationTokens, stat.None},
		{"tokens are not taken from steps", "vllm:iteration_tokens_total_sum 500\nvllm:iteration_tokens_total_count 5\n", engine.CounterGenerationTokens, stat.None},
		{"without _total", "vllm:request_success{finished_reason=\"stop\"} 4\n", engine.CounterRequestSuccess, some(4)},
		{"with and without _total", "vllm:request_success 4\nvllm:request_success_total 5\n", engine.CounterRequestSuccess, some(5)},
		{"finished reasons", "vllm:request_success_total{finished_reason=\"stop\"} 4\nvllm:request_success_total{finished_reason=\"brand_new\"} 2\n", engine.CounterRequestSuccess, some(6)},
		{"pids of one counter", "vllm:generation_tokens_total{pid=\"1\"} 4\nvllm:generation_tokens_total{pid=\"2\"} 6\n", engine.CounterGenerationTokens, some(10)},
		{"early prefix counters", "vllm:gpu_prefix_cache_hits_total 3\n", engine.CounterPrefixHits, some(3)},
		{"newer prefix counters win", "vllm:gpu_prefix_cache_hits_total 3\nvllm:prefix_cache_hits_total 48\n", engine.CounterPrefixHits, some(48)},
		{"refused admissions carry no engine", "vllm:admission_rejections_total{model_name=\"m\",reason=\"max_num_queued_reqs\"} 2\nvllm:admission_rejections_total{model_name=\"m\",reason=\"max_num_queued_tokens\"} 1\n", engine.CounterAdmissionRejections, some(3)},
		{"speculation", "vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 7\n", engine.CounterSpecAccepted, some(7)},
		{"HTTP 2xx", "vllm:num_requests_running 0\nhttp_requests_total{handler=\"/v1/chat/completions\",method=\"POST\",status=\"2xx\"} 7\nhttp_requests_total{handler=\"/score\",method=\"POST\",status=\"200\"} 1\n", engine.CounterHTTP2xx, some(8)},
		{"HTTP without the engine", "vllm:num_requests_running 0\nhttp_requests_total{handler=\"/v1/models\",method=\"GET\",status=\"2xx\"} 7\nhttp_requests_total{handler=\"/v1/messages/count_tokens\",method=\"POST\",status=\"2xx\"} 1\n", engine.CounterHTTP2xx, some(0)},
		{"HTTP 5xx not yet seen", "vllm:num_requests_running 0\nhttp_requests_total{handler=\"/a\",status=\"2xx\"} 7\n", engine.CounterHTTP5xx, some(0)},
		{"HTTP not counted at all", "vllm:num_requests_running 0\n", engine.CounterHTTP5xx, stat.None},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := read(t, []byte(tt.page)).Counters[tt.counter]; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestHistograms(t *testing.T) {
	inf := math.Inf(1)
	const name = "vllm:time_to_first_token_seconds"
	tests := []struct {
		name, page string
		want       stat.Histogram
		note       string
	}{
		{"plain", "@_bucket{le=\"1\"} 2\n@_bucket{le=\"+Inf\"} 3\n@_sum 4\n@_count 3\n",
			stat.Histogram{Bounds: []float64{1, inf}, Cumulative: []float64{2, 3}, Sum: 4, Count: 3, OK: true}, ""},
		{"buckets behind the count, as Rust writes them", "@_sum 4\n@_count 3\n@_bucket{le=\"1\"} 2\n@_bucket{le=\"+Inf\"} 3\n# EOF\n",
			stat.Histogram{Bounds: []float64{1, inf}, Cumulative: []float64{2, 3}, Sum: 4, Count: 3, OK: true}, ""},
		{"exponents and carriage returns", "@_bucket{le=\"1e0\"} 2.0E+0\r\n@_bucket{le=\"+Inf\"} 3e0 1395066363000\r\n@_sum 4\r\n@_count 3\r\n",
			stat.Histogram{Bounds: []float64{1, inf}, Cumulative: []float64{2, 3}, Sum: 4, Count: 3, OK: true}, ""},
		{"+Inf of one engine missing", "@_bucket{engine=\"0\",le=\"1\"} 2\n@_count{engine=\"0\"} 3\n@_bucket{engine=\"1\",le=\"1\"} 2\n@_bucket{engine=\"1\",le=\"+Inf\"} 3\n@_count{engine=\"1\"} 3\n@_sum 4\n",
			stat.Histogram{Sum: 4, Count: 6, OK: true}, "different buckets"},
		{"+Inf missing, without a count", "@_bucket{le=\"1\"} 2\n@_sum 4\n", stat.Histogram{}, "no count"},
		{"buckets in disorder", "@_bucket{le=\"+Inf\"} 3\n@_bucket{le=\"2\"} 2\n@_bucket{le=\"1\"} 1\n@_sum 4\n@_count 3\n",
			stat.Histogram{Bounds: []float64{1, 2, inf}, Cumulative: []float64{1, 2, 3}, Sum: 4, Count: 3, OK: true}, ""},
		{"no +Inf", "@_bucket{le=\"1\"} 2\n@_sum 4\n@_count 3\n",
			stat.Histogram{Bounds: []float64{1, inf}, Cumulative: []float64{2, 3}, Sum: 4, Count: 3, OK: true}, ""},
		{"no count but +Inf", "@_bucket{le=\"1\"} 2\n@_bucket{le=\"+Inf\"} 3\n@_sum 4\n",
			stat.Histogram{Bounds: []float64{1, inf}, Cumulative: []float64{2, 3}, Sum: 4, Count: 3, OK: true}, ""},
		{"no buckets", "@_sum 4\n@_count 3\n", stat.Histogram{Sum: 4, Count: 3, OK: true}, ""},
		{"no sum", "@_bucket{le=\"+Inf\"} 3\n@_count 3\n",
			stat.Histogram{Bounds: []float64{inf}, Cumulative: []float64{3}, Sum: math.NaN(), Count: 3, OK: true}, ""},
		{"sum alone", "@_sum 4\n", stat.Histogram{}, "no count"},
		{"count NaN", "@_sum 4\n@_count NaN\n", stat.Histogram{}, "no count"},
		{"buckets fall", "@_bucket{le=\"1\"} 5\n@_bucket{le=\"2\"} 4\n@_bucket{le=\"+Inf\"} 6\n@_sum 4\n@_count 6\n",
			stat.Histogram{Sum: 4, Count: 6, OK: true}, "decrease"},
		{"bucket NaN", "@_bucket{le=\"1\"} NaN\n@_bucket{le=\"+Inf\"} 6\n@_sum 4\n@_count 6\n", stat.Histogram{Sum: 4, Count: 6, OK: true}, "decrease"},
		{"bound NaN", "@_bucket{le=\"NaN\"} 1\n@_bucket{le=\"+Inf\"} 6\n@_sum 4\n@_count 6\n", stat.Histogram{Sum: 4, Count: 6, OK: true}, "no bound"},
		{"bound missing", "@_bucket 1\n@_bucket{le=\"+Inf\"} 6\n@_sum 4\n@_count 6\n", stat.Histogram{Sum: 4, Count: 6, OK: true}, "no bound"},
		{"two engines", "@_bucket{engine=\"0\",le=\"1\"} 2\n@_bucket{engine=\"0\",le=\"+Inf\"} 3\n@_sum{engine=\"0\"} 4\n@_count{engine=\"0\"} 3\n" +
			"@_bucket{engine=\"1\",le=\"1\"} 5\n@_bucket{engine=\"1\",le=\"+Inf\"} 5\n@_sum{engine=\"1\"} 1\n@_count{engine=\"1\"} 5\n",
			stat.Histogram{Bounds: []float64{1, inf}, Cumulative: []float64{7, 8}, Sum: 5, Count: 8, OK: true}, ""},
		{"engines with different buckets", "@_bucket{engine=\"0\",le=\"1\"} 2\n@_bucket{engine=\"0\",le=\"+Inf\"} 3\n@_sum{engine=\"0\"} 4\n@_count{engine=\"0\"} 3\n" +
			"@_bucket{engine=\"1\",le=\"2\"} 5\n@_bucket{engine=\"1\",le=\"+Inf\"} 5\n@_sum{engine=\"1\"} 1\n@_count{engine=\"1\"} 5\n",
			stat.Histogram{Sum: 5, Count: 8, OK: true}, "different buckets"},
		{"one engine without a count", "@_bucket{engine=\"0\",le=\"+Inf\"} 3\n@_sum{engine=\"0\"} 4\n@_count{engine=\"0\"} 3\n@_bucket{engine=\"1\",le=\"+Inf\"} 5\n@_sum{engine=\"1\"} 1\n",
			stat.Histogram{Sum: 5, Count: 3, OK: true}, "different buckets"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := read(t, []byte(strings.ReplaceAll(tt.page, "@", name)+"vllm:num_requests_running 0\n"))
			if diff := cmp.Diff(tt.want, p.Hists[engine.HistTTFT], cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if notes := strings.Join(p.Notes, "\n"); (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
}

func TestSeveralModels(t *testing.T) {
	page := []byte(`vllm:num_requests_running{engine="0",model_name="a"} 1
vllm:num_requests_running{engine="0",model_name="b"} 2
vllm:num_requests_waiting{engine="0",model_name="b"} 3
vllm:cache_config_info{engine="0",block_size="16"} 1
`)
	tests := []struct {
		wanted, model string
		running       float64
	}{
		{"", "b", 2}, {"a", "a", 1}, {"b", "b", 2}, {"meta-llama/a-long-name-for-the-catalog", "b", 2},
	}
	for _, tt := range tests {
		t.Run("asked for "+tt.wanted, func(t *testing.T) {
			var p engine.Page
			if err := newReader(tt.wanted).Parse(page, &p); err != nil {
				t.Fatal(err)
			}
			if p.Model != tt.model || p.Gauges[engine.GaugeRunning] != stat.Some(tt.running) || !slices.Equal(p.Models, []string{"a", "b"}) {
				t.Errorf("model %q of %q with %v running, want %q with %g", p.Model, p.Models, p.Gauges[engine.GaugeRunning], tt.model, tt.running)
			}
			if p.Ranks[0].Cache.BlockSize != "16" {
				t.Error("series without a model belong to every model")
			}
			if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "several models") {
				t.Errorf("notes %q", p.Notes)
			}
		})
	}
}

// Two models behind one address: the one that was read continues to be read, although the other has
// more series by then.
func TestTheModelThatWasReadIsReadOn(t *testing.T) {
	const first = "vllm:num_requests_running{model_name=\"b\"} 2\nvllm:num_requests_waiting{model_name=\"b\"} 2\nvllm:num_requests_running{model_name=\"a\"} 1\n"
	r := newReader("")
	for i, c := range []struct{ page, model string }{
		{first, "b"},
		{first + "vllm:num_requests_waiting{model_name=\"a\"} 1\nvllm:generation_tokens_total{model_name=\"a\"} 1\n", "b"},
		{"vllm:num_requests_running{model_name=\"a\"} 1\n", "a"}, // b was unloaded
	} {
		var p engine.Page
		if err := r.Parse([]byte(c.page), &p); err != nil || p.Model != c.model {
			t.Errorf("page %d: model %q, %v; want %q", i+1, p.Model, err, c.model)
		}
	}
}

// A page that Rust's client writes ends with buckets, and may be cut off within them.
func TestAPageThatEndsWithBuckets(t *testing.T) {
	const counted = "vllm:time_to_first_token_seconds_sum{engine=\"0\"} 4\nvllm:time_to_first_token_seconds_count{engine=\"0\"} 3\n"
	for _, c := range []struct {
		name, page string
		whole      bool
	}{
		{"whole", counted + "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"1\"} 2\nvllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} 3\n", true},
		{"within", counted + "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"1\"} 2\n", false},
		{"of another series", counted + "vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"+Inf\"} 3\n", false},
		{"without a count", "vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 3\n", false},
	} {
		err := newReader("").Parse([]byte(c.page), new(engine.Page))
		if c.whole != (err == nil) || !c.whole && !errors.Is(err, collect.ErrTruncated) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestManyModels(t *testing.T) {
	var page strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&page, "vllm:num_requests_running{engine=\"%d\",model_name=\"m%03d\"} 1\n", i, i)
	}
	p := read(t, []byte(page.String()))
	if want := "the page has several models: m000 is read, not m001, m002, m003, 996 more"; p.Model != "m000" || len(p.Models) != 1000 || !slices.Contains(p.Notes, want) {
		t.Errorf("model %q of %d, notes %q, want %q", p.Model, len(p.Models), p.Notes, want)
	}
}

func TestControlCharactersReachNoTerminal(t *testing.T) {
	p := read(t, []byte("vllm:num_requests_running{engine=\"\x1b[2J0\",model_name=\"\x1b]0;x\am\"} 1\nvllm:num_requests_running{engine=\"\x1b[2J0\",model_name=\"\x1b]0;x\am\"} 1\n"))
	for _, s := range append([]string{p.Model, p.Models[0], p.Ranks[0].Name}, p.Notes...) {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
			t.Errorf("%q holds a control character", s)
		}
	}
	if p.Gauges[engine.GaugeRunning] != stat.Some(1) {
		t.Errorf("running is %v", p.Gauges[engine.GaugeRunning])
	}
}

func TestNotVLLM(t *testing.T) {
	tests := []struct {
		name string
		body []byte
		is   error
		says string
	}{
		{"statistics off", ours(t, "vllm-0.32.0-cpu-stats-off.txt.gz"), enginepage.ErrStatsOff, "--disable-log-stats"},
		{"node exporter", ours(t, "node-exporter.txt"), enginepage.ErrNotEngine, "a node exporter"},
		{"LiteLLM", []byte("litellm_requests_metric_total 5\n"), enginepage.ErrNotEngine, "a LiteLLM gateway (litellm_requests_metric_total); it is a proxy in front of servers"},
		{"Triton", []byte("nv_inference_request_success{model=\"m\"} 5\n"), enginepage.ErrNotEngine, "a Triton server (nv_inference_request_success); rooftop probe and load"},
		{"Dynamo", []byte("dynamo_frontend_requests_total 5\n"), enginepage.ErrNotEngine, "a Dynamo front end"},
		{"Envoy", []byte("envoy_cluster_upstream_rq_total 5\n"), enginepage.ErrNotEngine, "an Envoy proxy"},
		{"TGI", []byte("tgi_queue_size 5\n"), enginepage.ErrNotEngine, "a Text Generation Inference server"},
		{"DCGM exporter", []byte("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 5\n"), enginepage.ErrNotEngine, "--dcgm-url"},
		{"unknown exporter", []byte("foo_total 1\nbar 2\n"), enginepage.ErrNotEngine, "foo_total, bar"},
		{"prose", []byte("OK\n"), enginepage.ErrNotEngine, "holds no metrics"},
		{"empty", nil, enginepage.ErrNotEngine, "empty"},
		{"HTML", []byte("<html></html>\n"), enginepage.ErrNotEngine, "HTML"},
		{"JSON", []byte(`{"detail":"Not Found"}`), enginepage.ErrNotEngine, "JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p engine.Page
			err := newReader("").Parse(tt.body, &p)
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v that says %q", err, tt.is, tt.says)
			}
			if diff := cmp.Diff(engine.Page{}, p, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("values in spite of the error:\n%s", diff)
			}
		})
	}
}

// TestYoungPages reads pages of servers that have had no request yet.
func TestYoungPages(t *testing.T) {
	p := read(t, ours(t, "vllm-0.32.0-cpu-young.txt.gz"))
	if p.Counters[engine.CounterGenerationTokens] != stat.Some(0) || p.Counters[engine.CounterHTTP2xx].OK {
		t.Errorf("tokens %v, 2xx %v; want a measured 0 and absent", p.Counters[engine.CounterGenerationTokens], p.Counters[engine.CounterHTTP2xx])
	}
	p = read(t, []byte("# TYPE vllm:num_requests_running gauge\n# EOF\n"))
	if p.Gauges[engine.GaugeRunning].OK || len(p.Notes) != 1 {
		t.Errorf("running %v, notes %q", p.Gauges[engine.GaugeRunning], p.Notes)
	}
}

// TestEveryCutOfAPage cuts a real page at every byte of its last kilobytes and
// at every line: what is left is an error, or lacks whole families at its end.
func TestEveryCutOfAPage(t *testing.T) {
	body := ours(t, loadedPage)
	whole := read(t, body)
	reader := newReader("")
	for n := range body {
		if n < len(body)-2000 && body[n] != '\n' && n%97 != 0 {
			continue
		}
		var p engine.Page
		err := reader.Parse(body[:n], &p)
		if n > 0 && body[n-1] != '\n' {
			if err == nil {
				t.Fatalf("%d of %d bytes end within a line and were read", n, len(body))
			}
			continue
		}
		if err != nil {
			continue
		}
		for h := range p.Hists {
			if p.Hists[h].OK && !math.IsNaN(p.Hists[h].Sum) {
				if diff := cmp.Diff(whole.Hists[h], p.Hists[h]); diff != "" {
					t.Fatalf("%d bytes give another histogram %s:\n%s", n, histNames[h], diff)
				}
			}
		}
	}
	if err := reader.Parse(body[:strings.Index(string(body), `request_prefill_time_seconds_bucket{engine="0",le="60.0"`)], new(engine.Page)); !errors.Is(err, collect.ErrTruncated) {
		t.Errorf("a page that ends within a histogram: error %v, want ErrTruncated", err)
	}
}

// TestPagesAreImmutable reads pages one after the other: a published page
// no longer changes.
func TestPagesAreImmutable(t *testing.T) {
	reader := newReader("")
	var first, again, second engine.Page
	body := ours(t, loadedPage)
	if err := errors.Join(reader.Parse(body, &first), reader.Parse(body, &again), reader.Parse(ours(t, "vllm-0.32.0-cpu-young.txt.gz"), &second)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := reader.Parse(ours(t, "v0-0.6.6.txt"), new(engine.Page)); err != nil {
			t.Fatal(err)
		}
	}
	want := read(t, body)
	for name, p := range map[string]*engine.Page{"first": &first, "second reading": &again} {
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("%s (-fresh +kept):\n%s", name, diff)
		}
	}
	if second.Counters[engine.CounterGenerationTokens] != stat.Some(0) {
		t.Error("the page of another moment was changed")
	}
}

// TestRestartShows compares recordings of one start of a server with a page of the next start:
// start and creation times grow, counters fall.
func TestRestartShows(t *testing.T) {
	before := read(t, ours(t, loadedPage))
	after := read(t, ours(t, "vllm-0.32.0-cpu-dp2.txt.gz"))
	if !(after.StartTime.V > before.StartTime.V) || !(after.Created.V > before.Created.V) {
		t.Errorf("start %v then %v, created %v then %v", before.StartTime, after.StartTime, before.Created, after.Created)
	}
	// A series that appears with its first event is created long after the server
	// started: that is not a restart.
	late := append(slices.Clone(ours(t, loadedPage)), "vllm:admission_rejections_created{reason=\"x\"} 9e+09\nvllm:tool_call_parser_invocations_created 9e+09\n"...)
	if p := read(t, late); p.Created != before.Created {
		t.Errorf("created %v, want %v", p.Created, before.Created)
	}
}

// The series of adapters that was set last counts, wherever it is on the page; an adapter of both
// running and waiting requests runs.
func TestLoRAAdapters(t *testing.T) {
	const page = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
# TYPE vllm:lora_requests_info gauge
vllm:lora_requests_info{max_lora="2",running_lora_adapters="",waiting_lora_adapters=""} 1.70000001e+09
vllm:lora_requests_info{max_lora="2",running_lora_adapters="sql,chat",waiting_lora_adapters="chat,law,tax,sql"} 1.70000009e+09
vllm:lora_requests_info{max_lora="2",running_lora_adapters="law",waiting_lora_adapters="a,b,c,d,e"} 1.70000005e+09
`
	var p engine.Page
	if err := newReader("").Parse([]byte(page), &p); err != nil {
		t.Fatal(err)
	}
	for g, want := range map[engine.Gauge]float64{engine.GaugeMaxLoRAs: 2, engine.GaugeRunningLoRAs: 2, engine.GaugeWaitingLoRAs: 2} {
		if p.Gauges[g] != stat.Some(want) {
			t.Errorf("%s is %v, want %v", gaugeNames[g], p.Gauges[g], want)
		}
	}
	if len(p.Ranks) != 1 {
		t.Errorf("%d ranks, want 1: the adapters belong to none", len(p.Ranks))
	}
	// V1 lists those that run under both labels; those of a moment ago wait.
	var series strings.Builder
	for i, name := range []string{"old", "a", "b", "c"} {
		fmt.Fprintf(&series, "vllm:lora_requests_info{max_lora=\"1\",running_lora_adapters=%q,waiting_lora_adapters=%q} %d\n", name, name, 1_700_000_000+40*min(i, 1)+i)
	}
	if err := newReader("").Parse([]byte("# TYPE vllm:lora_requests_info gauge\n"+series.String()), &p); err != nil || p.Gauges[engine.GaugeRunningLoRAs] != stat.Some(1) || p.Gauges[engine.GaugeWaitingLoRAs] != stat.Some(2) {
		t.Errorf("a, b and c in turn: %v, running %v, waiting %v, want 1 and 2", err, p.Gauges[engine.GaugeRunningLoRAs], p.Gauges[engine.GaugeWaitingLoRAs])
	}
	off := strings.ReplaceAll(page, `max_lora="2"`, `max_lora="0"`)
	if err := newReader("").Parse([]byte(off), &p); err != nil || p.Gauges[engine.GaugeMaxLoRAs].OK || p.Gauges[engine.GaugeRunningLoRAs].OK {
		t.Errorf("without LoRA: %v, %v", err, p.Gauges)
	}
}

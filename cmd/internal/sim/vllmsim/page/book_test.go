package page_test

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt" // the reference parser judges our page
	"github.com/prometheus/common/model"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// releases are the dialects.
var releases = []string{"0.10", "0.11", "0.20", "0.32"}

func parse(t *testing.T, body string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("the page does not parse: %v", err)
	}
	return families
}

// find returns the series of a family with all these labels (name, value, …).
func find(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) *dto.Metric {
	t.Helper()
	f, ok := families[name]
	if !ok {
		t.Fatalf("the page has no %s", name)
	}
	for _, m := range f.GetMetric() {
		has := func(name, value string) bool {
			return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == name && l.GetValue() == value })
		}
		all := true
		for i := 0; i < len(labels); i += 2 {
			all = all && has(labels[i], labels[i+1])
		}
		if all {
			return m
		}
	}
	t.Fatalf("%s has no series %v", name, labels)
	return nil
}

func number(m *dto.Metric) float64 {
	if m.GetCounter() != nil {
		return m.GetCounter().GetValue()
	}
	return m.GetGauge().GetValue()
}

// checkEngine compares an engine's series with what happened to it.
func checkEngine(t *testing.T, families map[string]*dto.MetricFamily, engine string, y *tally) {
	t.Helper()
	type want struct {
		name   string
		value  float64
		labels []string
	}
	wants := []want{
		{"vllm:num_requests_running", float64(y.running), nil},
		{"vllm:num_requests_waiting", float64(y.waiting), nil},
		{"vllm:num_requests_waiting_by_reason", float64(y.waiting - y.deferred), []string{"reason", "capacity"}},
		{"vllm:num_requests_waiting_by_reason", float64(y.deferred), []string{"reason", "deferred"}},
		{"vllm:kv_cache_usage_perc", y.usage, nil},
		{"vllm:gpu_cache_usage_perc", y.usage, nil},
		{"vllm:prefix_cache_queries_total", float64(y.queries), nil},
		{"vllm:prefix_cache_hits_total", float64(y.hits), nil},
		{"vllm:gpu_prefix_cache_queries_total", float64(y.queries), nil},
		{"vllm:gpu_prefix_cache_hits_total", float64(y.hits), nil},
		{"vllm:num_preemptions_total", float64(y.preemptions), nil},
		{"vllm:prompt_tokens_total", float64(y.prompt), nil},
		{"vllm:prompt_tokens_cached_total", float64(y.cached), nil},
		{"vllm:prompt_tokens_by_source_total", float64(y.prompt - y.cached), []string{"source", "local_compute"}},
		{"vllm:prompt_tokens_by_source_total", float64(y.cached), []string{"source", "local_cache_hit"}},
		{"vllm:prompt_tokens_by_source_total", 0, []string{"source", "external_kv_transfer"}},
		{"vllm:prompt_tokens_cached_by_source_total", float64(y.hits), []string{"source", "device"}},
		{"vllm:generation_tokens_total", float64(y.generation), nil},
		{"vllm:request_success_total", float64(y.stop), []string{"finished_reason", "stop"}},
		{"vllm:request_success_total", float64(y.length), []string{"finished_reason", "length"}},
		{"vllm:request_success_total", 0, []string{"finished_reason", "abort"}},
	}
	for _, w := range wants {
		if families[w.name] == nil {
			continue // of another dialect; TestFamiliesOfTheReleases says which has what
		}
		if got := number(find(t, families, w.name, append(w.labels, "engine", engine)...)); got != w.value {
			t.Errorf("engine %s: %s%v is %v, want %v", engine, w.name, w.labels, got, w.value)
		}
	}
	checked := 0
	for _, name := range slices.Sorted(keys(y.seen)) {
		names := []string{name}
		if name == "inter_token_latency_seconds" {
			names = append(names, "time_per_output_token_seconds")
		}
		for _, name := range names {
			if families["vllm:"+name] == nil {
				continue
			}
			checked++
			seen := y.seen[name]
			if name == "time_per_output_token_seconds" {
				seen = y.seen["inter_token_latency_seconds"]
			}
			checkHistogram(t, name, find(t, families, "vllm:"+name, "engine", engine).GetHistogram(), seen)
		}
	}
	if checked < 10 {
		t.Errorf("only %d histograms were compared", checked)
	}
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// checkHistogram counts the observations again.
func checkHistogram(t *testing.T, name string, h *dto.Histogram, seen []float64) {
	t.Helper()
	if h.GetSampleCount() != uint64(len(seen)) {
		t.Errorf("%s counts %d, want %d", name, h.GetSampleCount(), len(seen))
	}
	sum := 0.0
	for _, v := range seen {
		sum += v
	}
	if d := math.Abs(h.GetSampleSum() - sum); d > 1e-9*math.Max(1, math.Abs(sum)) {
		t.Errorf("%s sums up to %v, want %v", name, h.GetSampleSum(), sum)
	}
	for _, b := range h.GetBucket() {
		below := 0
		for _, v := range seen {
			if v <= b.GetUpperBound() {
				below++
			}
		}
		if b.GetCumulativeCount() != uint64(below) {
			t.Errorf("%s has %d up to %v, want %d", name, b.GetCumulativeCount(), b.GetUpperBound(), below)
		}
	}
}

func TestPageShowsWhatHappened(t *testing.T) {
	for _, release := range releases {
		for _, servers := range []int{1, 3} {
			t.Run(release+", API servers "+strconv.Itoa(servers), func(t *testing.T) {
				for seed := range uint64(4) {
					const engines = 2
					b := page.NewBook(tiny(func(s *settings.Settings) {
						s.Release, s.DataParallel, s.APIServers = release, engines, servers
					}), page.Cache{NumBlocks: 100}, start)
					var worlds []*world
					for e := range uint64(engines) {
						worlds = append(worlds, newWorld(seed*engines+e, time.Duration(1+seed*977_777)))
					}
					for range 100 + 50*seed {
						for e, w := range worlds {
							b.Observe(e, w.next())
						}
					}
					families := parse(t, dropStale(write(b)))
					totals := page.Totals{}
					for e, w := range worlds {
						checkEngine(t, families, strconv.Itoa(e), &w.tally)
						y := &w.tally
						totals.PromptTokens += float64(y.prompt)
						totals.GenerationTokens += float64(y.generation)
						totals.Preemptions += float64(y.preemptions)
						totals.Finished += float64(y.stop + y.length + y.failed)
						totals.PrefixQueries += float64(y.queries)
						totals.PrefixHits += float64(y.hits)
					}
					if got := b.Totals(); got != totals {
						t.Errorf("totals are %+v, want %+v", got, totals)
					}
				}
			})
		}
	}
}

// dropStale leaves of the gauges that several API servers show the one that has
// the engine's value: that of the server of the same rank.
func dropStale(body string) string {
	var kept []string
	for _, l := range strings.SplitAfter(body, "\n") {
		if strings.Contains(l, `pid="`) &&
			!(strings.Contains(l, `engine="0"`) && strings.Contains(l, `pid="271"`)) &&
			!(strings.Contains(l, `engine="1"`) && strings.Contains(l, `pid="272"`)) {
			continue
		}
		kept = append(kept, l)
	}
	return strings.Join(kept, "")
}

// TestInvariants checks, page by page, that what only grows never falls and that
// the histograms agree with each other and with the counters.
func TestInvariants(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			b := page.NewBook(tiny(func(s *settings.Settings) { s.Release = release }), page.Cache{}, start)
			w := newWorld(3, time.Millisecond)
			before := map[string]float64{}
			for range 200 {
				b.Observe(0, w.next())
				b.CPU(3 * time.Millisecond)
				b.HTTP("POST", "/v1/completions", 200, time.Second, 10, 20)
				families := parse(t, string(b.Append(nil, w.now)))
				for _, name := range slices.Sorted(keys(families)) {
					f := families[name]
					for i, m := range f.GetMetric() {
						key := name + strconv.Itoa(i)
						switch {
						case m.GetCounter() != nil:
							notLess(t, before, key, number(m))
						case m.GetHistogram() != nil:
							h := m.GetHistogram()
							last := uint64(0)
							for _, bucket := range h.GetBucket() {
								if bucket.GetCumulativeCount() < last {
									t.Errorf("%s: the bucket up to %v has less than the one below", name, bucket.GetUpperBound())
								}
								last = bucket.GetCumulativeCount()
								notLess(t, before, key+"/"+strconv.FormatFloat(bucket.GetUpperBound(), 'g', -1, 64), float64(last))
							}
							if last != h.GetSampleCount() {
								t.Errorf("%s: the last bucket has %d of %d", name, last, h.GetSampleCount())
							}
							notLess(t, before, key+"/sum", h.GetSampleSum())
						}
					}
				}
				count := func(name string) float64 {
					return float64(find(t, families, "vllm:"+name).GetHistogram().GetSampleCount())
				}
				itl := "inter_token_latency_seconds"
				if release == "0.10" {
					itl = "time_per_output_token_seconds"
				}
				generated := number(find(t, families, "vllm:generation_tokens_total"))
				// One latency for each output; a failure is an output without a token.
				if got, want := count(itl), generated-count("time_to_first_token_seconds")+float64(w.tally.failures); got != want {
					t.Errorf("gaps between tokens: %v, want %v", got, want)
				}
				if first, ended := count("time_to_first_token_seconds"), count("e2e_request_latency_seconds"); first < ended {
					t.Errorf("%v requests ended, %v had a first output", ended, first)
				}
			}
			if w.tally.failures == 0 || w.tally.stop == 0 || w.tally.length == 0 || w.tally.preemptions == 0 {
				t.Errorf("the run lacks something: %+v", w.tally)
			}
		})
	}
}

func notLess(t *testing.T, before map[string]float64, key string, v float64) {
	t.Helper()
	if was, ok := before[key]; ok && cmp.Compare(v, was) < 0 {
		t.Errorf("%s fell from %v to %v", key, was, v)
	}
	before[key] = v
}

// TestGaugesAreStale checks that a page between two steps shows the last one.
func TestGaugesAreStale(t *testing.T) {
	b := page.NewBook(tiny(nil), page.Cache{}, start)
	b.Observe(0, &core.Report{State: core.State{Running: 3, WaitingCapacity: 2, KVUsage: 0.5}})
	first := b.Append(nil, time.Second)
	second := b.Append(nil, time.Hour)
	if string(first) != string(second) {
		t.Error("a page changed though nothing happened")
	}
}

func TestStatisticsOff(t *testing.T) {
	b := page.NewBook(tiny(func(s *settings.Settings) { s.LogStats = false }), page.Cache{}, start)
	w := newWorld(1, time.Millisecond)
	for range 50 {
		b.Observe(0, w.next())
	}
	if body := write(b); strings.Contains(body, "vllm:") {
		t.Error("the page has families of the engine")
	}
	if got := b.Totals().GenerationTokens; got != float64(w.tally.generation) || got == 0 {
		t.Errorf("totals have %v tokens, want %d", got, w.tally.generation)
	}
}

package vllm

import (
	"maps"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect/promtext"
	"github.com/rooftop-dev/rooftop/engine"
)

// reading is the kind of value that a series feeds.
type reading uint8

const (
	readGauge   reading = iota
	readCounter         // sum over all series
	readHist
	readCreated // when a core counter was created, Unix time
	readStart   // when the process started, Unix time
	readHTTP    // answered requests by status
	readCache   // labels of the cache configuration
	readLoRA    // labels with the LoRA adapters of requests
)

// part is the part of a histogram that a series holds.
type part uint8

const (
	partNone part = iota
	partBucket
	partSum
	partCount
)

func (p part) suffix() string { return [...]string{"", "_bucket", "_sum", "_count"}[p] }

// target is the gauge, counter or histogram of the page to which a metric of the catalog
// contributes, with all its series or with those of one label value.
type target struct {
	reading      reading
	index        uint8 // engine.Gauge, engine.Counter or engine.Hist
	label, value string
}

func gauge(g engine.Gauge) target     { return target{reading: readGauge, index: uint8(g)} }
func counter(c engine.Counter) target { return target{reading: readCounter, index: uint8(c)} }
func hist(h engine.Hist) target       { return target{reading: readHist, index: uint8(h)} }

func (t target) where(label, value string) target {
	t.label, t.value = label, value
	return t
}

// targets returns the targets of each metric key of the catalog. Labels that a metric
// requires are in the catalog; labels that split a metric are here.
func targets() map[string][]target {
	return map[string][]target{
		"running":            {gauge(engine.GaugeRunning)},
		"waiting":            {gauge(engine.GaugeWaiting)},
		"waiting_capacity":   {gauge(engine.GaugeWaitingCapacity)},
		"waiting_deferred":   {gauge(engine.GaugeWaitingDeferred)},
		"swapped":            {gauge(engine.GaugeSwapped)},
		"kv_usage":           {gauge(engine.GaugeKVUsage)},
		"cpu_kv_usage":       {gauge(engine.GaugeCPUKVUsage)},
		"engine_sleep_state": {gauge(engine.GaugeAsleep)},
		"max_num_seqs":       {gauge(engine.GaugeMaxNumSeqs)},
		"prefix_hit_rate":    {gauge(engine.GaugePrefixHitRate)},
		"lora_requests":      {{reading: readLoRA}},

		"prompt_tokens":        {counter(engine.CounterPromptTokens)},
		"prompt_tokens_cached": {counter(engine.CounterPromptTokensCached)},
		"prompt_tokens_by_source": {
			counter(engine.CounterPromptTokensComputed).where("source", "local_compute"),
			counter(engine.CounterPromptTokensExternal).where("source", "external_kv_transfer"),
		},
		"generation_tokens": {counter(engine.CounterGenerationTokens)},
		"request_success": {
			counter(engine.CounterRequestSuccess),
			counter(engine.CounterRequestErrors).where("finished_reason", "error"),
		},
		"preemptions":          {counter(engine.CounterPreemptions)},
		"prefix_queries":       {counter(engine.CounterPrefixQueries)},
		"prefix_hits":          {counter(engine.CounterPrefixHits)},
		"external_queries":     {counter(engine.CounterExternalQueries)},
		"external_hits":        {counter(engine.CounterExternalHits)},
		"spec_drafts":          {counter(engine.CounterSpecDrafts)},
		"spec_draft_tokens":    {counter(engine.CounterSpecDraftTokens)},
		"spec_accepted":        {counter(engine.CounterSpecAccepted)},
		"admission_rejections": {counter(engine.CounterAdmissionRejections)},

		"ttft":             {hist(engine.HistTTFT)},
		"itl":              {hist(engine.HistITL)},
		"tpot":             {hist(engine.HistTPOT)},
		"e2e":              {hist(engine.HistE2E)},
		"queue":            {hist(engine.HistQueue)},
		"prefill":          {hist(engine.HistPrefill)},
		"decode":           {hist(engine.HistDecode)},
		"inference":        {hist(engine.HistInference)},
		"prompt_len":       {hist(engine.HistPromptTokens)},
		"output_len":       {hist(engine.HistGenerationTokens)},
		"iteration_tokens": {hist(engine.HistIterationTokens)},
	}
}

// meansOnly are the histograms of which a diagnosis reads means and counts, and no quantile.
var meansOnly = []engine.Hist{engine.HistE2E, engine.HistQueue, engine.HistDecode, engine.HistInference, engine.HistGenerationTokens}

// DiagnosisSeries returns the names, without the prefix, of vLLM's series that a diagnosis depends on: those
// that a page is read for, without the buckets of histograms of which no rule and no figure has a quantile.
// A native histogram has the name of its family.
func DiagnosisSeries() []string {
	names := map[string]bool{}
	for wire, roles := range newTable(catalog.Default().Metrics()).roles {
		for _, r := range roles {
			if r.reading == readHist {
				names[r.wire] = true
			}
			if r.part != partBucket || !slices.Contains(meansOnly, engine.Hist(r.index)) {
				names[wire] = true
			}
		}
	}
	var out []string
	for name := range names {
		if bare, ours := strings.CutPrefix(name, catalog.Spellings[0]); ours {
			out = append(out, bare)
		}
	}
	slices.Sort(out)
	return out
}

// core are the counters that exist from the first page after a server's start. Their
// creation times reveal a restart. A series that appears with its first event would
// look like a restart.
var core = map[string]bool{"prompt_tokens": true, "generation_tokens": true, "preemptions": true}

// role is one use of a wire name. A name may have several: the old per-token
// histogram replaces two newer ones.
type role struct {
	target
	part part
	slot int    // index into build.best; all names of one target share it
	pref int    // position in the list of names, 0 is preferred
	wire string // family name on the page
	vllm bool   // a family of vLLM, not of the process or its HTTP server
}

// table maps wire names to roles.
type table struct {
	roles map[string][]role
	slots int
	names []string // all families, for the filter
}

// newTable returns the table for metrics of the catalog.
func newTable(metrics []catalog.Metric) *table {
	t := &table{roles: map[string][]role{}}
	known := targets()
	for _, m := range metrics {
		for _, to := range known[m.Key] {
			for _, label := range slices.Sorted(maps.Keys(m.Labels)) {
				to = to.where(label, m.Labels[label])
			}
			t.add(m, to)
		}
	}
	for _, prefix := range catalog.Spellings {
		t.addRole(prefix+"cache_config_info", role{target: target{reading: readCache}, slot: t.slots, vllm: true})
	}
	t.addRole("process_start_time_seconds", role{target: target{reading: readStart}, slot: t.slots + 1})
	t.addRole("process_cpu_seconds_total", role{target: counter(engine.CounterProcessCPUSeconds), slot: t.slots + 2})
	t.addRole("http_requests_total", role{target: target{reading: readHTTP}, slot: t.slots + 3})
	t.slots += 4
	return t
}

// add adds roles for one target under all names of a metric, in every spelling.
func (t *table) add(m catalog.Metric, to target) {
	pref := 0
	for _, name := range m.WireNames() {
		for _, prefix := range catalog.Spellings {
			r := role{target: to, slot: t.slots, pref: pref, wire: prefix + name, vllm: true}
			pref++
			if to.reading != readHist {
				t.addRole(r.wire, r)
				continue
			}
			for _, p := range []part{partBucket, partSum, partCount} {
				r.part = p
				t.addRole(r.wire+p.suffix(), r)
			}
		}
	}
	t.slots++
	if !core[m.Key] {
		return
	}
	for _, prefix := range catalog.Spellings {
		t.addRole(prefix+strings.TrimSuffix(m.Names[0], "_total")+"_created", role{target: target{reading: readCreated}, slot: t.slots, vllm: true})
	}
	t.slots++
}

func (t *table) addRole(wire string, r role) {
	if len(t.roles[wire]) == 0 {
		t.names = append(t.names, wire)
	}
	t.roles[wire] = append(t.roles[wire], r)
}

// filter passes the families of the table.
func (t *table) filter() *promtext.Filter { return promtext.NewExactFilter(t.names...) }

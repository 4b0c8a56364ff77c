package enginepage

import "github.com/rooftop-dev/rooftop/engine"

// TargetsOf returns what a metric key of the catalog feeds; none if the page is not read for it.
func (d *Dialect) TargetsOf(key string) []Target {
	if own, ok := d.Targets[key]; ok {
		return own
	}
	return targets[key]
}

// targets are the targets of the metric keys that mean the same on every engine's page.
var targets = map[string][]Target{
	"running":            {Gauge(engine.GaugeRunning)},
	"waiting":            {Gauge(engine.GaugeWaiting)},
	"waiting_capacity":   {Gauge(engine.GaugeWaitingCapacity)},
	"waiting_deferred":   {Gauge(engine.GaugeWaitingDeferred)},
	"swapped":            {Gauge(engine.GaugeSwapped)},
	"kv_usage":           {Gauge(engine.GaugeKVUsage)},
	"cpu_kv_usage":       {Gauge(engine.GaugeCPUKVUsage)},
	"engine_sleep_state": {Gauge(engine.GaugeAsleep)},
	"max_num_seqs":       {Gauge(engine.GaugeMaxNumSeqs)},
	"prefix_hit_rate":    {Gauge(engine.GaugePrefixHitRate)},
	"lora_requests":      {{Reading: ReadLoRA}},
	"kv_tokens":          {Cache(CacheTokens)},
	"pool_tokens":        {Cache(CacheTokens), Cache(CacheBlocks)},

	"prompt_tokens":          {Counter(engine.CounterPromptTokens)},
	"prompt_tokens_cached":   {Counter(engine.CounterPromptTokensCached)},
	"prompt_tokens_computed": {Counter(engine.CounterPromptTokensComputed)},
	"prompt_tokens_by_source": {
		Counter(engine.CounterPromptTokensComputed).Where("source", "local_compute"),
		Counter(engine.CounterPromptTokensExternal).Where("source", "external_kv_transfer"),
	},
	"generation_tokens": {Counter(engine.CounterGenerationTokens)},
	"steps":             {Counter(engine.CounterSteps)},
	"request_success": {
		Counter(engine.CounterRequestSuccess),
		Counter(engine.CounterRequestErrors).Where("finished_reason", "error"),
	},
	"preemptions":          {Counter(engine.CounterPreemptions)},
	"prefix_queries":       {Counter(engine.CounterPrefixQueries)},
	"prefix_hits":          {Counter(engine.CounterPrefixHits)},
	"external_queries":     {Counter(engine.CounterExternalQueries)},
	"external_hits":        {Counter(engine.CounterExternalHits)},
	"spec_drafts":          {Counter(engine.CounterSpecDrafts)},
	"spec_draft_tokens":    {Counter(engine.CounterSpecDraftTokens)},
	"spec_accepted":        {Counter(engine.CounterSpecAccepted)},
	"admission_rejections": {Counter(engine.CounterAdmissionRejections)},
	"api_cpu":              {Counter(engine.CounterProcessCPUSeconds)},

	"ttft":             {Hist(engine.HistTTFT)},
	"itl":              {Hist(engine.HistITL)},
	"tpot":             {Hist(engine.HistTPOT)},
	"e2e":              {Hist(engine.HistE2E)},
	"queue":            {Hist(engine.HistQueue)},
	"prefill":          {Hist(engine.HistPrefill)},
	"decode":           {Hist(engine.HistDecode)},
	"inference":        {Hist(engine.HistInference)},
	"prompt_len":       {Hist(engine.HistPromptTokens)},
	"output_len":       {Hist(engine.HistGenerationTokens)},
	"iteration_tokens": {Hist(engine.HistIterationTokens)},
}

package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Gauge identifies an instantaneous reading of the server's page.
type Gauge uint8

// Gauges of a page. Counts are requests; usages are ratios 0..1.
const (
	GaugeRunning         Gauge = iota // requests in the running batch
	GaugeWaiting                      // requests queued, capacity and deferred together
	GaugeWaitingCapacity              // of these, waiting for slots or KV blocks (vLLM >= 0.20)
	GaugeWaitingDeferred              // of these, waiting for something else (KV transfer, grammar, LoRA slot)
	GaugeSwapped                      // V0: requests whose KV lies in host memory
	GaugeKVUsage                      // share of the KV pool in use, 0..1
	GaugeCPUKVUsage                   // V0: share of the host KV pool in use, 0..1
	GaugeAsleep                       // 1 while the engine sleeps or is paused
	GaugeMaxNumSeqs                   // number of slots, if the page has it
	GaugePrefixHitRate                // V0: hit-rate gauge 0..1; the -1 of "not available" is absent
	GaugeMaxLoRAs                     // LoRA adapters that one step takes; absent without LoRA
	GaugeRunningLoRAs                 // adapters of the running requests
	GaugeWaitingLoRAs                 // adapters of waiting requests that no running request uses
	GaugeInServer                     // requests that the front end has, running and queued, if it counts them
	NumGauges
)

// Counter identifies a reading of the page that only grows while the server runs.
type Counter uint8

// Counters of a page.
const (
	CounterPromptTokens         Counter = iota // prompt tokens, cached ones included
	CounterPromptTokensCached                  // of these, served from a prefix cache (vLLM >= 0.16)
	CounterPromptTokensComputed                // of these, computed here (source="local_compute")
	CounterPromptTokensExternal                // of these, transferred by a KV connector
	CounterGenerationTokens                    // output tokens
	CounterRequestSuccess                      // finished requests
	CounterRequestErrors                       // of these, finished with an error
	CounterPreemptions                         // preempted sequences
	CounterPrefixQueries                       // prefix-cache lookups, in tokens (early V1: blocks)
	CounterPrefixHits                          // prefix-cache hits, same unit
	CounterExternalQueries                     // external (connector) prefix-cache lookups, tokens
	CounterExternalHits                        // external hits, tokens
	CounterSpecDrafts                          // speculative decoding: drafts
	CounterSpecDraftTokens                     // speculative decoding: drafted tokens
	CounterSpecAccepted                        // speculative decoding: accepted tokens
	CounterAdmissionRejections                 // requests refused with 503 by admission limits
	CounterHTTP2xx                             // answered HTTP requests to the engine by status class
	CounterHTTP4xx
	CounterHTTP5xx
	CounterProcessCPUSeconds // CPU seconds of the API-server process
	CounterSteps             // steps of the engine, of a page that counts tokens only when a request ends
	NumCounters
)

// Hist identifies a histogram of the page.
type Hist uint8

// Histograms of a page; latencies in seconds, the rest in tokens.
const (
	HistTTFT             Hist = iota // time to first token, from arrival at the front end
	HistITL                          // inter-token latency, one value per engine output
	HistTPOT                         // time per output token, one value per finished request
	HistE2E                          // end-to-end latency of finished requests
	HistQueue                        // first enqueue to first scheduling
	HistPrefill                      // first scheduling to first token
	HistDecode                       // first token to last
	HistInference                    // prefill + decode
	HistPromptTokens                 // prompt length of finished requests
	HistGenerationTokens             // output length of finished requests
	HistIterationTokens              // tokens per engine step that produced output
	NumHists
)

// Rank is the state of one data-parallel rank (one engine) on a page.
type Rank struct {
	Name       string // value of the engine label, "" if pages have none
	Gauges     [NumGauges]stat.Opt
	Generation stat.Opt // output tokens, cumulative
	Prompt     stat.Opt // prompt tokens, cumulative
	Steps      stat.Opt // engine steps with output, cumulative (count of iteration_tokens)
	Cache      CacheConfig
}

// Untouched reports whether nothing has run on the rank yet. With several API servers vLLM's
// page omits a gauge that no process has set yet (prometheus_client, multiprocess mode), while
// counters start at 0. Without a gauge and without a token the rank's gauges are therefore
// known to be 0, provided that another rank has them ([HaveGauges]).
func (r *Rank) Untouched(haveGauges bool) bool {
	for _, g := range [...]Gauge{GaugeRunning, GaugeWaiting, GaugeKVUsage} {
		if r.Gauges[g].OK {
			return false
		}
	}
	return haveGauges && r.Generation.OK && r.Generation.V <= 0 && r.Prompt.Or(0) <= 0 && r.Steps.Or(0) <= 0
}

// HaveGauges reports whether any of the ranks of a page has the gauge of running requests.
func HaveGauges(ranks []Rank) bool {
	for i := range ranks {
		if ranks[i].Gauges[GaugeRunning].OK {
			return true
		}
	}
	return false
}

// kvUsage returns the mean KV usage over ranks, 0..1, counting untouched ranks as 0.
func (p *Page) kvUsage() stat.Opt {
	usage, untouched := p.Gauges[GaugeKVUsage], 0
	if len(p.Ranks) < 2 || !usage.OK {
		return usage
	}
	haveGauges := HaveGauges(p.Ranks)
	for i := range p.Ranks {
		if p.Ranks[i].Untouched(haveGauges) {
			untouched++
		}
	}
	return usage.Times(float64(len(p.Ranks)-untouched) / float64(len(p.Ranks)))
}

// CacheConfig holds the labels of vllm:cache_config_info that rooftop uses, as on the page;
// "" is absent.
type CacheConfig struct {
	BlockSize             string
	NumGPUBlocks          string
	NumGPUBlocksOverride  string
	GPUMemoryUtilization  string
	CacheDType            string
	EnablePrefixCaching   string
	ChunkedPrefill        string
	KVCacheSizeTokens     string // vLLM >= 0.23; also correct for hybrid models
	KVCacheMaxConcurrency string // vLLM >= 0.23; KVCacheSizeTokens / max_model_len
}

// Page is one scrape of the server's /metrics, merged over engines and worker processes. A
// page must not be modified once published.
type Page struct {
	T     time.Duration // completion, since the start of the session (monotonic)
	Took  time.Duration // from request to last byte
	Bytes int

	// Gauges are sums over ranks for counts and means for usages. KVUsageMax is the KV usage
	// of the fullest rank.
	Gauges     [NumGauges]stat.Opt
	KVUsageMax stat.Opt
	Counters   [NumCounters]stat.Opt
	Hists      [NumHists]stat.Histogram
	// HistNames are the wire names of the histograms. A fallback name has another meaning and
	// is labelled.
	HistNames [NumHists]string
	Ranks     []Rank // in order of rank name

	StartTime stat.Opt // process_start_time_seconds, Unix
	Created   stat.Opt // newest *_created of the counters that exist from the start, Unix

	Engine string   `json:",omitempty"` // ID of the engine that wrote the page, "" for vLLM
	Model  string   // model_name of the series used
	Models []string // every model_name on the page, sorted
	Notes  []string // anomalies of the page: duplicate series, stale PIDs, a second model
}

// GPUField identifies one reading of a GPU.
type GPUField uint8

// Readings of a GPU. Ratios are 0..1.
const (
	GPUUtil         GPUField = iota // share of time any kernel was executing; not occupancy
	GPUMemUtil                      // share of time the memory controller was busy
	GPUPowerW                       // power draw
	GPUPowerLimitW                  // enforced power limit
	GPUVRAMTotal                    // bytes
	GPUVRAMUsed                     // bytes
	GPUTemperatureC                 // core temperature
	GPUSMClockMHz
	GPUMemClockMHz
	GPUEnergyJ    // energy counter since driver load
	GPUDRAMActive // GPM: share of DRAM bandwidth used, 0..1 (Hopper and newer)
	GPUTensorUtil // GPM: share of tensor-core cycles used, 0..1
	GPUSMActive   // GPM: share of SM cycles active, 0..1
	GPUPCIeTxBps  // bytes per second
	GPUPCIeRxBps
	GPUNVLinkTxBps // bytes per second, all links
	GPUNVLinkRxBps
	GPUSMClockMaxMHz     // the highest SM clock of the device
	GPUTemperatureLimitC // core temperature from which the device lowers its clocks
	NumGPUFields
)

// GPU is the reading of one device.
type GPU struct {
	Index  int
	Name   string
	UUID   string
	Fields [NumGPUFields]stat.Opt
	// Throttle is the NVML mask of clock-event reasons, valid if ThrottleOK is set.
	Throttle   uint64
	ThrottleOK bool
}

// GPUReading is one poll of all GPUs of the server.
type GPUReading struct {
	T       time.Duration // completion, since the start of the session
	Took    time.Duration
	Devices []GPU
}

// Sample is the result of one tick of collection. A nil part with an error is a failure; a nil
// part without one means that the source does not exist.
type Sample struct {
	T       time.Duration // the tick, since the start of the session
	Page    *Page
	PageErr string
	GPU     *GPUReading
	GPUErr  string
	Health  *Health // nil if it was not read at this tick
	Missed  int     // ticks that rooftop missed since the previous sample
}

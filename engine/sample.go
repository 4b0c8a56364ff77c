package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Gauge names a reading of the server's page that has a value at an instant.
type Gauge uint8

// Gauges of a page. Counts are requests; usages are ratios 0..1.
const (
	GaugeRunning         Gauge = iota // requests in the running batch
	GaugeWaiting                      // requests queued, capacity and deferred together
	GaugeWaitingCapacity              // of these, waiting for seats or KV blocks (vLLM >= 0.20)
	GaugeWaitingDeferred              // of these, waiting for something else (KV transfer, grammar, LoRA slot)
	GaugeSwapped                      // V0: requests whose KV lies in host memory
	GaugeKVUsage                      // share of the KV pool in use, 0..1
	GaugeCPUKVUsage                   // V0: share of the host KV pool in use, 0..1
	GaugeAsleep                       // 1 while the engine sleeps or is paused
	GaugeMaxNumSeqs                   // the seats, where a page tells them
	GaugePrefixHitRate                // V0: hit-rate gauge 0..1; the -1 of "not available" is absent
	NumGauges
)

// Counter names a reading of the page that only grows while the server lives.
type Counter uint8

// Counters of a page.
const (
	CounterPromptTokens         Counter = iota // prompt tokens, cached ones included
	CounterPromptTokensCached                  // of these, served from a prefix cache (vLLM >= 0.16)
	CounterPromptTokensComputed                // of these, computed here (source="local_compute")
	CounterPromptTokensExternal                // of these, transferred by a KV connector
	CounterGenerationTokens                    // output tokens
	CounterRequestSuccess                      // finished requests
	CounterPreemptions                         // preempted sequences
	CounterPrefixQueries                       // prefix-cache lookups, in tokens (early V1: blocks)
	CounterPrefixHits                          // prefix-cache hits, same unit
	CounterExternalQueries                     // external (connector) prefix-cache lookups, tokens
	CounterExternalHits                        // external hits, tokens
	CounterSpecDrafts                          // speculative decoding: drafts
	CounterSpecDraftTokens                     // speculative decoding: drafted tokens
	CounterSpecAccepted                        // speculative decoding: accepted tokens
	CounterAdmissionRejections                 // requests refused with 503 by admission limits
	CounterHTTP2xx                             // answered HTTP requests by status class, all handlers
	CounterHTTP4xx
	CounterHTTP5xx
	CounterProcessCPUSeconds // CPU seconds of the API-server process
	NumCounters
)

// Hist names a histogram of the page.
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

// Rank is what a page says of one data-parallel rank (one engine).
type Rank struct {
	Name       string // value of the engine label, "" where pages have none
	Gauges     [NumGauges]stat.Opt
	Generation stat.Opt // output tokens, cumulative
	Prompt     stat.Opt // prompt tokens, cumulative
	Steps      stat.Opt // engine steps with output, cumulative (count of iteration_tokens)
	Cache      CacheConfig
}

// Untouched says that nothing ever ran on the rank. With several API servers
// vLLM's page leaves out a gauge that no process has set yet (prometheus_client,
// multiprocess mode), while counters stand at 0 from the start: without a gauge
// and without a token the rank's gauges are known to be 0, not unknown. Another
// rank's gauges are the proof that the page has them at all.
func (r *Rank) Untouched(others []Rank) bool {
	for _, g := range [...]Gauge{GaugeRunning, GaugeWaiting, GaugeKVUsage} {
		if r.Gauges[g].OK {
			return false
		}
	}
	if !r.Generation.OK || r.Generation.V > 0 || r.Prompt.Or(0) > 0 || r.Steps.Or(0) > 0 {
		return false
	}
	for i := range others {
		if others[i].Gauges[GaugeRunning].OK {
			return true
		}
	}
	return false
}

// kvUsage is the mean KV usage over ranks, 0..1, with those that nothing ever
// ran on at 0.
func (p *Page) kvUsage() stat.Opt {
	usage, untouched := p.Gauges[GaugeKVUsage], 0
	if len(p.Ranks) < 2 || !usage.OK {
		return usage
	}
	for i := range p.Ranks {
		if p.Ranks[i].Untouched(p.Ranks) {
			untouched++
		}
	}
	return usage.Times(float64(len(p.Ranks)-untouched) / float64(len(p.Ranks)))
}

// CacheConfig holds the labels of vllm:cache_config_info that rooftop uses.
// Strings are kept as the page has them; "" is absent.
type CacheConfig struct {
	BlockSize             string
	NumGPUBlocks          string
	NumGPUBlocksOverride  string
	GPUMemoryUtilization  string
	CacheDType            string
	EnablePrefixCaching   string
	ChunkedPrefill        string
	KVCacheSizeTokens     string // vLLM >= 0.23; true also for hybrid models
	KVCacheMaxConcurrency string // vLLM >= 0.23; KVCacheSizeTokens / max_model_len
	SlidingWindow         string
	SwapSpaceBytes        string // V0
	NumCPUBlocks          string // V0
}

// Page is one scrape of the server's /metrics, merged over engines and worker
// processes. Pages are immutable once published.
type Page struct {
	T     time.Duration // completion, since the start of the session (monotonic)
	Took  time.Duration // from request to last byte
	Bytes int

	// Gauges are sums over ranks for counts, means for usages. The fullest
	// rank's KV usage is KVUsageMax.
	Gauges     [NumGauges]stat.Opt
	KVUsageMax stat.Opt
	Counters   [NumCounters]stat.Opt
	Hists      [NumHists]stat.Histogram
	// HistNames are the wire names the histograms came from: a fallback name
	// has another meaning and is labelled.
	HistNames [NumHists]string
	Ranks     []Rank // in order of rank name

	StartTime stat.Opt // process_start_time_seconds, Unix
	Created   stat.Opt // newest *_created of the counters that exist from the start, Unix

	Model  string   // model_name of the series used
	Models []string // every model_name on the page, sorted
	Notes  []string // what was odd about the page: duplicate series, stale pids, a second model
}

// GPUField names one reading of a GPU.
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
	NumGPUFields
)

// GPU is one reading of one device.
type GPU struct {
	Index  int
	Name   string
	UUID   string
	Fields [NumGPUFields]stat.Opt
	// Throttle is the NVML mask of clock-event reasons, valid where ThrottleOK.
	Throttle   uint64
	ThrottleOK bool
}

// GPUReading is one poll of all GPUs of the server.
type GPUReading struct {
	T       time.Duration // completion, since the start of the session
	Took    time.Duration
	Devices []GPU
}

// Sample is one tick of collection: what each source had to say by then. A nil
// part with an error is a failure, without one the source does not exist.
type Sample struct {
	T       time.Duration // the tick, since the start of the session
	Page    *Page
	PageErr string
	GPU     *GPUReading
	GPUErr  string
	Missed  int // ticks that rooftop itself missed since the previous sample
}

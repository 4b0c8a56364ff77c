package capture

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Summary has all figures of a capture. Its parts go into the document rooftop.probe/v1 with their
// tags.
type Summary struct {
	Span     time.Duration
	Requests *RequestsSummary // nil for an observation
	Tree     *TreeUsage       // nil if no process was sampled
	GPUs     []GPUUsage       // empty if none was sampled
	Energy   Energy           // of all sampled GPUs together
	Derived  []engine.NamedQuantity
	Sizing   Sizing
	Warnings []Warning
}

// Row is one reading over a run. Mean and Peak are absent, with the reason, if there are too few
// samples.
type Row struct {
	Mean    stat.Opt `json:"mean"`
	Peak    stat.Opt `json:"peak"`
	Samples int      `json:"samples"` // number of samples
	Reason  string   `json:"reason"`
}

// NotRead is why a field of a GPU has no value when it has no reason of its own.
const NotRead = "not read on this device"

// Distribution is a [stat.Distribution] for a document.
type Distribution struct {
	Count int           `json:"count"`
	Mean  time.Duration `json:"mean_s"`
	P50   time.Duration `json:"p50_s"`
	P95   time.Duration `json:"p95_s"`
	P99   time.Duration `json:"p99_s"`
	Max   time.Duration `json:"max_s"`
}

// Failure is one kind of error of a run.
type Failure struct {
	Error   string `json:"error"` // the first of its kind
	Count   int    `json:"count"`
	Example bool   `json:"example"` // others of the kind have other numbers in it
}

// RequestsSummary has the results of a probe's requests.
type RequestsSummary struct {
	Sent     int       `json:"sent"`
	Whole    int       `json:"whole"` // completed
	Failures []Failure `json:"failures"`
	// TTFT and E2E count from the send, over requests that reached that point. ITL is every gap
	// between successive chunks of a request, TPOT one value per request: (last chunk − first) /
	// (tokens − 1).
	TTFT Distribution `json:"ttft"`
	ITL  Distribution `json:"itl"`
	TPOT Distribution `json:"tpot"`
	E2E  Distribution `json:"e2e"`
	// Connect covers requests that made a new connection.
	Connect Distribution `json:"connect"`
	Tokens  Tokens       `json:"tokens"`
	// OutputPerSecond is all output tokens over the run. RequestPerSecond is the mean
	// over requests of tokens / (send to last chunk), DecodePerSecond that of
	// (tokens − 1) / (first chunk to last).
	OutputPerSecond  stat.Opt   `json:"output_tokens_per_s"`
	RequestPerSecond stat.Opt   `json:"request_tokens_per_s"`
	DecodePerSecond  stat.Opt   `json:"decode_tokens_per_s"`
	PromptTokens     stat.Opt   `json:"prompt_tokens"`
	CachedTokens     stat.Opt   `json:"cached_tokens"` // by the server's usage report, all requests
	Server           ServerTTFT `json:"server_ttft"`
}

// Tokens counts output tokens in three ways. Figures are based on Used.
type Tokens struct {
	Usage   stat.Opt `json:"usage"`   // the server's usage reports, of requests that have one
	Chunks  int      `json:"chunks"`  // streamed messages with output
	Counter stat.Opt `json:"counter"` // growth of the server's own counter over the run
	Used    stat.Opt `json:"used"`
	From    string   `json:"from"` // the origin of Used: "usage", "chunks", "counter"
	// Reasoning and ToolChunks are the numbers of chunks of these kinds; ReasoningTokens is the
	// server's count.
	ReasoningChunks int      `json:"reasoning_chunks"`
	ToolChunks      int      `json:"tool_chunks"`
	ReasoningTokens stat.Opt `json:"reasoning_tokens"`
	// Differences describes where the three disagree and possible causes, one sentence each.
	Differences []string `json:"differences"`
}

// ServerTTFT divides the time to first token into what the server itself measured and the
// remainder: the network, the client, and what the server does before its clock starts. Values are
// means in seconds over requests.
type ServerTTFT struct {
	Client  stat.Opt `json:"client_s"`
	Server  stat.Opt `json:"server_s"`
	Outside stat.Opt `json:"outside_s"`
	Queue   stat.Opt `json:"queue_s"`
	Prefill stat.Opt `json:"prefill_s"` // part of Server, if it reports it
	From    string   `json:"from"`      // "vLLM metrics", "timings of the answer"
	Reason  string   `json:"reason"`    // why there is none
}

// ProcessUsage is the usage of one process, one role or a whole tree over the run.
type ProcessUsage struct {
	Name    string `json:"name"` // role, or the process's name
	PID     int    `json:"pid"`  // of a single process, otherwise 0
	Role    string `json:"role"`
	Count   int    `json:"count"`     // processes seen
	CPU     Row    `json:"cpu_cores"` // cores; the mean is CPU time over the run, the peak over at least 200 ms
	RSS     Row    `json:"rss_bytes"` // bytes
	Threads Row    `json:"threads"`
	// Over the run.
	CPUSeconds     stat.Opt `json:"cpu_s"`
	RunWaitSeconds stat.Opt `json:"run_wait_s"`
}

// TreeUsage is the usage of a process tree over the run.
type TreeUsage struct {
	Total     ProcessUsage   `json:"total"`
	Roles     []ProcessUsage `json:"roles"`
	Processes []ProcessUsage `json:"processes"`
	Samples   int            `json:"samples"`
	Failed    int            `json:"failed"`
	Partial   int            `json:"partial"` // looks; those that failed; those that children were hidden from
	Cgroup    *CgroupUsage   `json:"cgroup"`
}

// CgroupUsage has the CPU limit of the tree's control group, and how it slowed the run down.
type CgroupUsage struct {
	Path             string   `json:"path"`
	ThrottledSeconds stat.Opt `json:"throttled_s"`
	ThrottledShare   stat.Opt `json:"throttled_share"` // of its enforcement periods
	CPULimitCores    stat.Opt `json:"cpu_limit_cores"`
}

// GPUUsage is the usage of one GPU over the run.
type GPUUsage struct {
	Index      int
	Name, UUID string
	Fields     [engine.NumGPUFields]Row
	Throttle   uint64 // union of all throttle reasons
	ThrottleOK bool
	Energy     Energy
}

// Energy is the energy used over the run, and its source.
type Energy struct {
	Joules stat.Opt `json:"joules"`
	How    string   `json:"how"` // "energy counter", "integrated power"
	// Reason is why there is no energy, or else a remark about it: why it is not the counter's, or
	// how uncertain it is.
	Reason string `json:"reason"`
}

// Sizing is the verdict on whether the hardware is larger than this load needs.
type Sizing struct {
	Verdict string `json:"verdict"` // over-provisioned, partly used, earned or unknown
	Text    string `json:"text"`    // one sentence with its figures
	Smaller []Card `json:"smaller"` // catalog cards that would serve this, cheapest first
	Reason  string `json:"reason"`  // why no smaller card is named
}

// Card is a GPU of the catalog that could serve the measured load.
type Card struct {
	Name          string   `json:"name"`
	GPUs          int      `json:"gpus"`
	DollarsPerH   stat.Opt `json:"usd_per_hour"`
	PriceDate     string   `json:"price_date"`
	NeedBytes     float64  `json:"need_bytes"`   // weights, cache of this batch and reserve
	VRAMBytes     float64  `json:"vram_bytes"`   // of all its GPUs
	TokensPerS    stat.Opt `json:"tokens_per_s"` // predicted at this batch and context (est)
	Low           stat.Opt `json:"tokens_per_s_low"`
	High          stat.Opt `json:"tokens_per_s_high"`
	DollarsPerMTk stat.Opt `json:"usd_per_million_tokens"` // per million output tokens at that rate (est)
}

// Warning is what a reader must know before trusting a figure. It does not stop anything.
type Warning struct {
	ID   string `json:"id"`   // "idle-pid", "wrong-tree", "period-missed", …
	Text string `json:"text"` // what was seen and the next step
}

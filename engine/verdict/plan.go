package verdict

// Goal is what a change is to improve.
type Goal string

// Goals. Latency is the mean time of a request from arrival to its last token at
// equal load; Cost is dollars per output token.
const (
	Throughput Goal = "throughput"
	Latency    Goal = "latency"
	Cost       Goal = "cost"
)

// Objective is a limit on a latency that must hold: p99 of the time to first token
// below 0.5 s.
type Objective struct {
	Name     string  // as it was asked for: "ttft_p99"
	Metric   Metric  // MetricTTFT, MetricITL, MetricTPOT or MetricE2E
	Quantile float64 // 0..1; 0 is the mean
	Limit    float64 // seconds
}

// Metric names what is compared, as measured{} of interfaces.md section 3 does
// without its suffix.
type Metric string

// Metrics of two sides.
const (
	MetricTokens   Metric = "generation_tokens_per_s"
	MetricRequests Metric = "requests_per_s"
	MetricTTFT     Metric = "ttft"
	MetricITL      Metric = "itl"
	MetricTPOT     Metric = "tpot"
	MetricE2E      Metric = "e2e"
	MetricStep     Metric = "step_time"
	MetricPreempts Metric = "preemptions_per_s"
	MetricPower    Metric = "power_w"
	MetricPerWatt  Metric = "tokens_per_watt"
)

// Touch says what a change may move by itself, so that it is not taken for traffic.
type Touch struct {
	Reuse bool // the hit rate: caching, pool, KV type, block size
	Batch bool // how many run at once: seats, pool, token budget
}

// Plan is how two sides are judged.
type Plan struct {
	Goal       Goal // "" is Throughput
	Objectives []Objective
	// Precision is the relative difference that matters, 0.03 where it is 0: an
	// interval within it on both sides is a plateau.
	Precision float64
	// Spread is how much restarts of one configuration differ on this server.
	Spread Spread
	Touch  Touch
	// Look is the number of this look, from 0, of Looks planned ones; Last says that
	// none follows, whatever it shows.
	Look, Looks int
	Last        bool
	Seed        uint64
}

// Spread is the standard deviation of the logarithm of throughput between starts
// of one configuration.
type Spread struct {
	SD float64
	// Repeats is how many differences between starts it was measured from; 0 is an
	// assumption.
	Repeats int
	// DoF are the degrees of freedom that its uncertainty is worth.
	DoF  float64
	From string // where it comes from, in words
}

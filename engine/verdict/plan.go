package verdict

import (
	"fmt"
	"math"
)

// Goal is the quantity that a change should improve.
type Goal string

// Goals. Latency is the mean time of a request from arrival to its last token at equal load.
// Cost is dollars per output token.
const (
	Throughput Goal = "throughput"
	Latency    Goal = "latency"
	Cost       Goal = "cost"
)

// Quantity returns the name of the quantity of docs/interfaces.md section 3 that the goal is about. For cost
// it is the cost of a token, the inverse of what is compared.
func (g Goal) Quantity() string {
	switch g {
	case Latency:
		return MetricE2E.Quantity(0)
	case Cost:
		return MetricCost.Quantity(0)
	}
	return MetricTokens.Quantity(0)
}

// Objective is a required limit on a latency, such as a p99 of the time to first token below
// 0.5 s.
type Objective struct {
	Name     string  // as given: "ttft_p99"
	Metric   Metric  // MetricTTFT, MetricITL, MetricTPOT or MetricE2E
	Quantile float64 // 0..1; 0 is the mean
	Limit    float64 // seconds
}

// Metric is the name of a measure: a name of docs/interfaces.md section 3 (measured) without its
// suffix.
type Metric string

// Metrics of a comparison.
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

// Metrics without a test of their own: their values describe what was judged.
const (
	MetricRunning Metric = "running_mean"
	MetricWaiting Metric = "waiting_mean"
	MetricKVPeak  Metric = "kv_usage_peak"
	MetricHits    Metric = "prefix_hit_rate"
	MetricCost    Metric = "usd_per_million_tokens"
)

// Quantity returns the name of the quantity of docs/interfaces.md section 3 that has the quantile of a metric,
// 0 for its mean: "ttft_p99_s".
func (m Metric) Quantity(quantile float64) string {
	switch m {
	case MetricTTFT, MetricITL, MetricTPOT, MetricE2E:
		return string(m) + "_" + QuantileName(quantile) + "_s"
	case MetricStep:
		return "step_time_s"
	}
	return string(m)
}

// QuantileName returns the name of a quantile, "p99", or "mean" for 0.
func QuantileName(quantile float64) string {
	if quantile == 0 {
		return "mean"
	}
	return fmt.Sprintf("p%g", math.Round(1000*quantile)/10)
}

// Touch states what a change may affect by itself, so that it is not attributed to the traffic.
type Touch struct {
	Reuse bool // the hit rate: changes of caching, pool, KV type, block size
	Batch bool // the number of running requests: changes of slots, pool, token budget
	// Front marks a change of the API servers: how many requests they hold back, and so how many
	// are in the engine, follows from the change.
	Front bool
}

// Plan configures a verdict.
type Plan struct {
	Goal       Goal // "" is Throughput
	Objectives []Objective
	// Precision is the relative difference that matters; 0 is 0.03. An interval within it on
	// both sides is a plateau.
	Precision float64
	// Spread is the difference between restarts of one configuration on this server.
	Spread Spread
	Touch  Touch
	// Paired states that both sides were measured at the same time: the starts of the side before are servers
	// without the change, those after it servers with it, and Slice.Start is on one clock for all. Only what
	// both sides have slices of is compared. The load that is common to all then cancels.
	Paired bool
	// Look is the number of this look, from 0, of Looks planned ones. Last marks the final
	// look.
	Look, Looks int
	Last        bool
	// Again is the number of earlier measurements of the same start that were looked at. Each halves the
	// error rate, so that repeated measurements find no difference where there is none.
	Again int
}

// Spread is the standard deviation of the logarithm of throughput between starts of one
// configuration.
type Spread struct {
	SD float64 `json:"sd"`
	// Repeats is the number of measured differences between starts; with 0 the spread is
	// assumed.
	Repeats int `json:"repeats"`
	// DoF are the degrees of freedom of the estimate.
	DoF  float64 `json:"-"`
	From string  `json:"from,omitzero"` // its source, in words
}

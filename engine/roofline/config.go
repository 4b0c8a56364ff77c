package roofline

import (
	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Config is one replica: a model on its GPUs.
type Config struct {
	GPU            catalog.GPU
	Model          catalog.Model
	TP             int  // tensor-parallel degree, >= 1
	PP             int  // pipeline-parallel degree, >= 1
	ExpertParallel bool // experts spread over the ranks instead of sliced
	Weight         catalog.DType
	KV             catalog.DType
	// Compute is the dtype of activations. Narrow weights decide the tensor-core
	// peak by themselves, but for int8: there INT8 here means W8A8, all else W8A16.
	Compute catalog.DType
	Eager   bool // no CUDA graphs
	// DP is the data-parallel ranks that share the routed experts (expert
	// parallelism across replicas); 0 or 1: this replica holds them all.
	DP int
	// Captured is the largest batch replayed from a CUDA graph; 0: vLLM's
	// default of 512.
	Captured int
}

// Point is one operating point of a replica's engine step.
type Point struct {
	Batch   float64 // running sequences that decode in the step
	Context float64 // mean resident context of a sequence, tokens
	Tokens  float64 // all tokens of the step: decodes and prefill chunk
	// PrefillContext is the mean context that a prefill token of the step
	// attends to, tokens; 0 where the step has no prefill.
	PrefillContext float64
	// PerSequence is the tokens one sequence gains in a step: 1, or the
	// accepted length under speculation.
	PerSequence float64
	// Chunk is how many prefill tokens a step carries where it carries any: a
	// prompt or the token budget, whichever is smaller. Prefill comes in bursts,
	// not as the mean of Tokens suggests. 0: 2,048.
	Chunk float64
}

// Terms splits a step's time, in seconds per step. Linear layers are rooflines
// of their own: of each group of layers that shares a dtype the larger of
// Weights and Compute counts and the smaller is zero.
type Terms struct {
	Weights     float64 `json:"weights"`     // reading weights
	Compute     float64 `json:"compute"`     // tensor-core work of the linear layers
	KV          float64 `json:"kv"`          // reading the cache in decode attention
	Attention   float64 `json:"attention"`   // prefill attention work
	Collectives float64 `json:"collectives"` // all-reduces between ranks
	Fixed       float64 `json:"fixed"`       // launch tails, scheduler, sampler
}

// Total returns the step's time in seconds.
func (t Terms) Total() float64 {
	return t.Weights + t.Compute + t.KV + t.Attention + t.Collectives + t.Fixed
}

// Binding names the largest term by its wire name: weights, kv, compute
// (linear layers and prefill attention), collectives or fixed.
func (t Terms) Binding() string {
	name, most := "weights", t.Weights
	for _, c := range []struct {
		name string
		s    float64
	}{{"kv", t.KV}, {"compute", t.Compute + t.Attention}, {"collectives", t.Collectives}, {"fixed", t.Fixed}} {
		if c.s > most {
			name, most = c.name, c.s
		}
	}
	return name
}

// Step is the time of one engine step as physics allows it (Ideal: every
// fraction 1, nothing fixed) and as good software reaches it (Achievable).
type Step struct {
	Ideal       Terms
	Achievable  Terms
	Assumptions []string // what was taken from the architecture rather than this GPU
}

// Workload is the shape of the requests, means per request in tokens.
type Workload struct {
	Prompt   float64 // prompt tokens
	Computed float64 // of these, not served from a cache
	Output   float64 // generated tokens
}

// Measured is what a run says of one replica; absent parts were not readable.
type Measured struct {
	Point
	// Resident is what a sequence holds of the pool, tokens: shared prefix blocks
	// count once. Absent, it is Context, what a sequence reads.
	Resident     stat.Opt
	StepSeconds  stat.Opt // mean step while busy
	OutputPerS   stat.Opt // generated tokens per second
	PrefillPerS  stat.Opt // computed prompt tokens per second
	Waiting      stat.Opt // queued requests
	KVCapacity   stat.Opt // tokens of the pool
	MaxNumSeqs   stat.Opt
	TokenBudget  stat.Opt // max_num_batched_tokens
	TTFTSeconds  stat.Opt
	QueueSeconds stat.Opt
	// PrefillSeconds is a prompt's own processing, from first scheduling to first
	// token.
	PrefillSeconds stat.Opt
	PreemptsPerS   stat.Opt
	Offered        Offered
	// FrontShare is the share of its one core that the API server's process uses,
	// 0..1; absent where it is not one process of its own.
	FrontShare    stat.Opt
	Workload      Workload
	WorkloadKnown bool
}

// Offered is how requests come. Without any of its parts they come from clients
// that send the next one at once.
type Offered struct {
	// Demand is requests that come over those that are finished, where they do not
	// follow the server: above 1 the queue grows, at 1 all are served.
	Demand  stat.Opt
	Growing bool
	// Thinking is how many clients of one replica are between an answer and their
	// next request, mean.
	Thinking stat.Opt
}

// Classic is every figure of the documented formulas (the seed's), on the
// corrected catalog. Per replica, estimates.
type Classic struct {
	DecodeTokensPerS      stat.Opt `json:"decode_tokens_per_s"` // of one sequence
	DecodeLower           stat.Opt `json:"decode_lower_tokens_per_s"`
	DecodeUpper           stat.Opt `json:"decode_upper_tokens_per_s"`
	PrefillTokensPerS     stat.Opt `json:"prefill_tokens_per_s"`
	PrefillLower          stat.Opt `json:"prefill_lower_tokens_per_s"`
	PrefillUpper          stat.Opt `json:"prefill_upper_tokens_per_s"`
	RidgeBatch            stat.Opt `json:"ridge_batch"`
	AggregateTokensPerS   stat.Opt `json:"aggregate_tokens_per_s"` // decode ceiling times running
	Efficiency            stat.Opt `json:"efficiency"`             // 0..1; absent above 1
	Headroom              stat.Opt `json:"headroom"`               // 0..1
	WeightGB              stat.Opt `json:"weight_gb"`
	KVHeadroomGB          stat.Opt `json:"kv_headroom_gb"` // per GPU; negative: does not fit
	TPOTFloorS            stat.Opt `json:"tpot_floor_s"`
	PrefillFloorS         stat.Opt `json:"prefill_floor_s"` // absent at or above the ridge batch
	RecoverableUSDPerHour stat.Opt `json:"recoverable_usd_per_hour"`
	BytesPerParam         stat.Opt `json:"bytes_per_param"`
	BytesPerParamFrom     string   `json:"bytes_per_param_from"`
	Caveat                string   `json:"caveat"` // prefill-heavy load reads low, ""
}

// Operating is the physical ceiling at the measured operating point, summed
// over the replicas of a server.
type Operating struct {
	IdealTokensPerS      stat.Opt `json:"ideal_tokens_per_s"`
	AchievableTokensPerS stat.Opt `json:"achievable_tokens_per_s"`
	AchievableLower      stat.Opt `json:"achievable_lower_tokens_per_s"`
	AchievableUpper      stat.Opt `json:"achievable_upper_tokens_per_s"`
	Efficiency           stat.Opt `json:"efficiency"` // t_ideal/t_measured, 0..1
	Binding              string   `json:"binding"`
	TermsS               Terms    `json:"terms_s"` // achievable, seconds per step
	IdealTermsS          Terms    `json:"ideal_terms_s"`
	StepIdealS           float64  `json:"step_ideal_s"`
	StepAchievableS      float64  `json:"step_achievable_s"`
	// Calibration is t_measured/t_achievable, clipped to 0.8..3 for
	// predictions; CalibrationRaw is not clipped.
	Calibration    stat.Opt `json:"calibration"`
	CalibrationRaw stat.Opt `json:"calibration_raw"`
	Batch          float64  `json:"batch"` // of one replica, as are the steps
	Context        float64  `json:"context_tokens"`
	StepTokens     float64  `json:"step_tokens"`
	RidgeTokens    float64  `json:"ridge_tokens"`
	// BestTokensPerS is the calibrated maximum over the batch sizes that seats
	// and KV pool allow, at BestBatch running requests; both of all replicas.
	BestTokensPerS stat.Opt `json:"best_tokens_per_s"`
	BestBatch      float64  `json:"best_batch"`
	Assumptions    []string `json:"assumptions"`
}

// Performance joins a configuration with what was measured on it: the basis of
// every predicted gain.
type Performance struct {
	Config   Config
	Measured Measured
	Now      Step    // the model's step at the measured point
	Raw      float64 // t_measured/t_achievable
	Scale    float64 // Raw clipped to 0.8..3

	again float64 // tokens of Measured's step that are computed again after a preemption
}

// Range is a predicted relative change: 0.25 is +25 %, and Low <= Mid <= High
// as numbers, so that for a latency the pessimistic end is High. Absent ends are
// unknown.
type Range struct{ Low, Mid, High stat.Opt }

// Gain is what a change is predicted to do to output tokens per second, to the
// time to the first token and to the time between tokens, with what a reader
// must know of it in one sentence.
type Gain struct {
	Throughput, TTFT, ITL Range
	Note                  string
}

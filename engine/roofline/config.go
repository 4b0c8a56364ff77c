package roofline

import (
	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Config is the configuration of one replica: a model on its GPUs.
type Config struct {
	GPU            catalog.GPU
	Model          catalog.Model
	TP             int  // tensor-parallel degree, >= 1
	PP             int  // pipeline-parallel degree, >= 1
	ExpertParallel bool // whole experts are spread over the ranks instead of sliced
	Weight         catalog.DType
	KV             catalog.DType
	// KVAssumed marks a KV type that was neither given nor read. Checkpoints with weights of 8 bit or
	// less often come with an 8-bit cache, so that the ideal bound then counts 8 bit.
	KVAssumed bool
	// Compute is the dtype of activations. Narrow weights alone determine the tensor-core peak,
	// except for int8: INT8 here means W8A8, any other dtype W8A16.
	Compute catalog.DType
	Eager   bool // no CUDA graphs
	// DP is the number of data-parallel ranks that share the routed experts (expert parallelism
	// across replicas); 0 or 1: this replica has all of them.
	DP int
	// Captured is the largest batch replayed from a CUDA graph; 0: vLLM's default of 512.
	Captured int
	// OtherEngine marks an engine other than vLLM, on which the achieved fractions were measured: the
	// achievable rate then has a wider range.
	OtherEngine bool
}

// Point is one operating point of a replica's engine step.
type Point struct {
	Batch   float64 // running sequences that decode in the step
	Context float64 // mean resident context of a sequence, tokens
	Tokens  float64 // all tokens of the step: decodes and the prefill chunk
	// PrefillContext is the mean context that a prefill token of the step attends to, in tokens;
	// 0 without prefill.
	PrefillContext float64
	// PerSequence is the tokens that a sequence gains in a step: 1, or the accepted length with
	// speculative decoding.
	PerSequence float64
	// Chunk is the number of prefill tokens in a step that has any: a prompt or the token
	// budget, whichever is smaller. Prefill comes in bursts, not evenly as the mean in Tokens
	// suggests. 0: 2,048.
	Chunk float64
}

// Terms are the parts of a step's time, in seconds per step. Each group of linear layers that
// shares a dtype is a roofline of its own: only the larger of its Weights and Compute counts.
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

// Binding returns the wire name of the largest term: weights, kv, compute (linear layers and
// prefill attention), collectives or fixed.
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

// Step is the time of one engine step: the physical bound (Ideal: every fraction 1, nothing
// fixed) and that of efficient software (Achievable).
type Step struct {
	Ideal       Terms
	Achievable  Terms
	Assumptions []string // parameters taken from the architecture instead of this GPU
}

// Workload is the shape of the requests, means per request in tokens.
type Workload struct {
	Prompt   float64 // prompt tokens
	Computed float64 // of these, not found in a cache
	Output   float64 // generated tokens
}

// Measured is the measurement of one replica. Parts that could not be read are absent.
type Measured struct {
	Point
	// Resident is the tokens of the pool held by a sequence, counting shared prefix blocks once.
	// If absent, Context, the tokens that a sequence reads, is used.
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
	// PrefillSeconds is the processing time of a prompt, from first scheduling to first token.
	PrefillSeconds stat.Opt
	PreemptsPerS   stat.Opt
	Offered        Offered
	// FrontShare is the share of one core that the API server's process uses, 0..1; absent if
	// the API server is not a single process of its own.
	FrontShare    stat.Opt
	Workload      Workload
	WorkloadKnown bool
}

// Offered is the arrival pattern of requests. The zero value is clients that send the next
// request at once.
type Offered struct {
	// Demand is arrivals over completions, if arrivals do not depend on the server: above 1 the
	// queue grows, at 1 all requests are served.
	Demand  stat.Opt
	Growing bool
	// Thinking is the mean number of clients of one replica that are between an answer and their
	// next request.
	Thinking stat.Opt
}

// Classic has the results of the PROFILE formulas with the corrected catalog. They are estimates
// for one replica.
type Classic struct {
	DecodeTokensPerS      stat.Opt `json:"decode_tokens_per_s"` // of one sequence
	DecodeLower           stat.Opt `json:"decode_lower_tokens_per_s"`
	DecodeUpper           stat.Opt `json:"decode_upper_tokens_per_s"`
	PrefillTokensPerS     stat.Opt `json:"prefill_tokens_per_s"` // in prompts per second: the formula divides by the prompt's length
	PrefillLower          stat.Opt `json:"prefill_lower_tokens_per_s"`
	PrefillUpper          stat.Opt `json:"prefill_upper_tokens_per_s"`
	RidgeBatch            stat.Opt `json:"ridge_batch"`
	AggregateTokensPerS   stat.Opt `json:"aggregate_tokens_per_s"` // decode ceiling times running requests
	Efficiency            stat.Opt `json:"efficiency"`             // 0..1; absent above 1
	Headroom              stat.Opt `json:"headroom"`               // 0..1
	WeightGB              stat.Opt `json:"weight_gb"`
	KVHeadroomGB          stat.Opt `json:"kv_headroom_gb"` // per GPU; negative: the weights do not fit
	TPOTFloorS            stat.Opt `json:"tpot_floor_s"`
	PrefillFloorS         stat.Opt `json:"prefill_floor_s"` // absent at or above the ridge batch
	RecoverableUSDPerHour stat.Opt `json:"recoverable_usd_per_hour"`
	BytesPerParam         stat.Opt `json:"bytes_per_param"`
	BytesPerParamFrom     string   `json:"bytes_per_param_from"`
	Caveat                string   `json:"caveat,omitzero"` // set for a prefill-heavy load, whose efficiency reads low; else ""
}

// Operating has the physical ceilings at the measured operating point, summed over the replicas of
// a server.
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
	// Calibration is t_measured/t_achievable, clipped to 0.4..3 for predictions. CalibrationRaw
	// is not clipped.
	Calibration    stat.Opt `json:"calibration"`
	CalibrationRaw stat.Opt `json:"calibration_raw"`
	Batch          float64  `json:"batch"` // of one replica, like the steps
	Context        float64  `json:"context_tokens"`
	StepTokens     float64  `json:"step_tokens"`
	RidgeTokens    float64  `json:"ridge_tokens"`
	// BestTokensPerS is the calibrated maximum over the batch sizes that slots and KV pool
	// allow, reached with BestBatch running requests; both over all replicas. Absent without the slots.
	BestTokensPerS stat.Opt `json:"best_tokens_per_s"`
	BestBatch      stat.Opt `json:"best_batch"`
	Assumptions    []string `json:"assumptions"`
}

// Performance is a configuration with its measurement: the basis of every predicted gain.
type Performance struct {
	Config   Config
	Measured Measured
	Now      Step    // the modelled step at the measured point
	Raw      float64 // t_measured/t_achievable
	Scale    float64 // Raw clipped to 0.4..3

	again float64 // tokens of the measured step that are recomputed after a preemption
}

// Range is a predicted relative change: 0.25 is +25 %. Low <= Mid <= High as numbers, so for a
// latency High is the pessimistic end. Absent ends are unknown.
type Range struct{ Low, Mid, High stat.Opt }

// Map returns the range with f applied to its ends and middle.
func (r Range) Map(f func(stat.Opt) stat.Opt) Range { return Range{f(r.Low), f(r.Mid), f(r.High)} }

// Inverse returns the change of 1/x for a change r of x. An end at or below -1 becomes absent.
func (r Range) Inverse() Range {
	return Range{r.High, r.Mid, r.Low}.Map(func(o stat.Opt) stat.Opt {
		if o.V <= -1 {
			return stat.None
		}
		return o.Map(func(v float64) float64 { return 1/(1+v) - 1 })
	})
}

// Known reports whether an end or the middle is known.
func (r Range) Known() bool { return r.Low.OK || r.Mid.OK || r.High.OK }

// Gain is the predicted effect of a change on output tokens per second, time to first token and
// time between tokens, with a note of one sentence.
type Gain struct {
	Throughput, TTFT, ITL Range
	Note                  string
}

package roofline

import (
	"math"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// ClassicInput is the input of the PROFILE formulas. Absent optional inputs,
// and zero parameters, bytes or peaks, make their results absent.
type ClassicInput struct {
	GPU            catalog.GPU
	VRAMTotalBytes stat.Opt // of one GPU, as read from it; absent: the catalog's
	TP             int      // below 1 counts as 1

	TotalParams       float64 // parameters; 0: the active ones are used
	ActiveParams      float64 // parameters used by one token; 0: the total is used
	BytesPerParam     float64
	BytesPerParamFrom string // "env", "kv_cache_dtype", "catalog", "bf16 fallback"

	PromptTokens stat.Opt // mean per request
	MaxModelLen  stat.Opt // tokens, used if no prompt was seen

	Running        stat.Opt // requests
	GenerationPerS stat.Opt // generated tokens per second
	CostPerHour    stat.Opt // USD, whole server
	PrefillShare   stat.Opt // of request time, 0..1; adds the caveat
}

// Band of the PROFILE ceilings around the expected value.
const (
	classicLower = 0.85
	classicUpper = 1.05
)

// prefillHeavy is the share of prefill in request time above which the decode ceiling does not
// apply (R1).
const prefillHeavy = 0.40

// NewClassic computes the PROFILE formulas:
//
//	decode ceiling  = bandwidth * tp / (params * bytes)          tok/s of one sequence
//	prefill ceiling = flops32 * tp / (6 * params * seq_len)     prompts/s
//	ridge batch     = flops32 * bytes / bandwidth
//	efficiency      = actual / (decode ceiling * running)        absent above 1
//	headroom        = 1 - efficiency
//
// Ceilings use active parameters if known; weights use the total.
func NewClassic(in ClassicInput) Classic {
	known := func(v float64) stat.Opt { return stat.Opt{V: v, OK: v > 0} }
	bytes := known(in.BytesPerParam)
	c := Classic{BytesPerParam: bytes, BytesPerParamFrom: in.BytesPerParamFrom}
	tp := float64(max(1, in.TP))
	params, weights := known(in.ActiveParams), known(in.TotalParams)
	if !params.OK {
		params = weights
	}
	if !weights.OK {
		weights = params
	}
	bandwidth, flops := known(in.GPU.MemBandwidthGBs*1e9), known(in.GPU.FP32TFLOPS*1e12)
	vram := in.VRAMTotalBytes
	if !positive(vram) {
		vram = known(in.GPU.VRAMGiB * gib)
	}

	c.DecodeTokensPerS = bandwidth.Times(tp).Div(times(params, bytes))
	seq := in.MaxModelLen
	if positive(in.PromptTokens) {
		seq = stat.Some(max(1, math.Round(in.PromptTokens.V)))
	}
	c.PrefillTokensPerS = flops.Times(tp).Div(times(params.Times(6), seq))
	c.DecodeLower, c.DecodeUpper = c.DecodeTokensPerS.Times(classicLower), c.DecodeTokensPerS.Times(classicUpper)
	c.PrefillLower, c.PrefillUpper = c.PrefillTokensPerS.Times(classicLower), c.PrefillTokensPerS.Times(classicUpper)
	c.RidgeBatch = times(flops, bytes).Div(bandwidth)

	if positive(in.Running) {
		c.AggregateTokensPerS = times(c.DecodeTokensPerS, in.Running)
	}
	if e := in.GenerationPerS.Div(c.AggregateTokensPerS); positive(e) && e.V <= 1 {
		c.Efficiency, c.Headroom = e, stat.Some(1-e.V)
		c.RecoverableUSDPerHour = in.CostPerHour.Times(1 - e.V)
	}

	c.WeightGB = times(weights, bytes).Times(1e-9)
	if c.WeightGB.OK && vram.OK {
		c.KVHeadroomGB = stat.Some(vram.V/1e9 - c.WeightGB.V/tp)
	}
	c.TPOTFloorS = stat.Some(1).Div(c.DecodeTokensPerS)
	computeBound := in.Running.OK && c.RidgeBatch.OK && in.Running.V >= c.RidgeBatch.V
	if !computeBound {
		c.PrefillFloorS = stat.Some(1).Div(c.PrefillTokensPerS)
	}
	if c.Efficiency.OK && in.PrefillShare.OK && in.PrefillShare.V >= prefillHeavy {
		c.Caveat = "prefill-heavy load: efficiency against the decode ceiling reads low"
	}
	return c
}

// activationGB is reserved on each GPU for activations and the first KV blocks (R4).
const activationGB = 3.0

// MinTPClassic returns R4's least tensor-parallel degree, ceil(weightGB / (vramGB*util - 3)), in
// 1e9 bytes; absent if no memory is usable.
func MinTPClassic(weightGB, vramGB, util float64) stat.Opt {
	usable := vramGB*util - activationGB // negative for a GPU smaller than the reserve
	if usable <= 0 || weightGB <= 0 {
		return stat.None
	}
	return stat.Some(math.Ceil(weightGB / usable))
}

// Economics is the cost of tokens at a measured rate.
type Economics struct {
	TokensPerWatt       stat.Opt `json:"tokens_per_watt"` // tokens per second and watt
	JoulesPerToken      stat.Opt `json:"joules_per_token"`
	USDPerMillionTokens stat.Opt `json:"usd_per_million_tokens"`
}

// NewEconomics computes the cost from generated tokens per second, watts of all GPUs and USD per
// hour of the whole server. Results that lack an input are absent.
func NewEconomics(outputPerS, powerW, costPerHour stat.Opt) Economics {
	return Economics{
		TokensPerWatt:       outputPerS.Div(powerW),
		JoulesPerToken:      powerW.Div(outputPerS),
		USDPerMillionTokens: costPerHour.Div(outputPerS.Times(3600)).Times(1e6),
	}
}

func positive(o stat.Opt) bool { return o.OK && o.V > 0 }

// times multiplies two optional values, absent if either is.
func times(a, b stat.Opt) stat.Opt {
	if !b.OK {
		return stat.None
	}
	return a.Times(b.V)
}

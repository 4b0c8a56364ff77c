package roofline

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// ClassicInput is what the documented formulas take; absent inputs make their
// results absent. Bandwidth and FLOPS are one GPU's.
type ClassicInput struct {
	BandwidthGBs stat.Opt // 1e9 bytes per second
	FP32TFLOPS   stat.Opt // non-tensor-core, as documented
	VRAMGB       stat.Opt // 1e9 bytes of one GPU
	TP           int      // below 1 counts as 1

	TotalParams   stat.Opt // parameters
	ActiveParams  stat.Opt // parameters one token uses
	BytesPerParam stat.Opt
	BytesFrom     string // "env", "kv_cache_dtype", "catalog", "bf16 fallback"

	PromptMean  stat.Opt // tokens
	MaxModelLen stat.Opt // tokens, where no prompt was seen

	Running     stat.Opt // requests
	OutputPerS  stat.Opt // generated tokens per second
	CostPerHour stat.Opt // USD, whole server
	// PrefillShare of request time, 0..1, decides the caveat; absent: the ratio
	// of prompt to output lengths does.
	PrefillShare stat.Opt
	OutputMean   stat.Opt // tokens
}

// Band of the documented ceilings around the expected value.
const (
	classicLower = 0.85
	classicUpper = 1.05
)

// prefillHeavy is the share of request time in prefill from which the decode
// ceiling is no longer the relevant one: R1's own limit for saturated prefill.
const prefillHeavy = 0.40

// NewClassic computes the documented formulas (seed, "Math"):
//
//	decode ceiling  = bandwidth * tp / (params * bytes)          tok/s of one sequence
//	prefill ceiling = flops32 * tp / (6 * params * seq_len)
//	ridge batch     = flops32 * bytes / bandwidth
//	efficiency      = actual / (decode ceiling * running)        absent above 1
//	headroom        = 1 - efficiency
//
// Ceilings use active parameters where known, weights total ones.
func NewClassic(in ClassicInput) Classic {
	c := Classic{BytesPerParam: in.BytesPerParam, BytesPerParamFrom: in.BytesFrom}
	tp := float64(max(1, in.TP))
	params, weights := in.ActiveParams, in.TotalParams
	if !positive(params) {
		params = in.TotalParams
	}
	if !positive(weights) {
		weights = in.ActiveParams
	}
	bandwidth, flops := in.BandwidthGBs.Times(1e9), in.FP32TFLOPS.Times(1e12)

	c.DecodeTokensPerS = bandwidth.Times(tp).Div(times(params, in.BytesPerParam))
	seq := in.PromptMean
	if seq.OK {
		seq.V = math.Round(seq.V)
	}
	if !positive(seq) {
		seq = in.MaxModelLen
	}
	c.PrefillTokensPerS = flops.Times(tp).Div(times(params.Times(6), seq))
	if !positive(c.DecodeTokensPerS) {
		c.DecodeTokensPerS = stat.None
	}
	if !positive(c.PrefillTokensPerS) {
		c.PrefillTokensPerS = stat.None
	}
	c.DecodeLower, c.DecodeUpper = c.DecodeTokensPerS.Times(classicLower), c.DecodeTokensPerS.Times(classicUpper)
	c.PrefillLower, c.PrefillUpper = c.PrefillTokensPerS.Times(classicLower), c.PrefillTokensPerS.Times(classicUpper)
	if positive(flops) && positive(in.BytesPerParam) {
		c.RidgeBatch = times(flops, in.BytesPerParam).Div(bandwidth)
	}

	if positive(in.Running) {
		c.AggregateTokensPerS = times(c.DecodeTokensPerS, in.Running)
	}
	if e := in.OutputPerS.Div(c.AggregateTokensPerS); positive(e) && e.V <= 1 {
		c.Efficiency, c.Headroom = e, stat.Some(1-e.V)
		if in.CostPerHour.OK {
			c.RecoverableUSDPerHour = in.CostPerHour.Times(1 - e.V)
		}
	}

	if positive(weights) && positive(in.BytesPerParam) {
		c.WeightGB = times(weights, in.BytesPerParam).Times(1e-9)
		if positive(in.VRAMGB) {
			c.KVHeadroomGB = stat.Some(in.VRAMGB.V - c.WeightGB.V/tp)
		}
	}
	c.TPOTFloorS = stat.Some(1).Div(c.DecodeTokensPerS)
	computeBound := in.Running.OK && c.RidgeBatch.OK && in.Running.V >= c.RidgeBatch.V
	if !computeBound {
		c.PrefillFloorS = stat.Some(1).Div(c.PrefillTokensPerS)
	}
	if c.Efficiency.OK && in.prefillHeavy() {
		c.Caveat = "prefill-heavy load: efficiency against the decode ceiling reads low"
	}
	return c
}

// prefillHeavy reports a load of long prompts and short outputs.
func (in *ClassicInput) prefillHeavy() bool {
	if in.PrefillShare.OK {
		return in.PrefillShare.V >= prefillHeavy
	}
	ratio := in.PromptMean.Div(in.OutputMean)
	return ratio.OK && ratio.V >= 8
}

// activationGB is what the documented out-of-memory rule keeps of each GPU for
// activations and the first KV blocks (R4).
const activationGB = 3.0

// MinTPClassic returns R4's least tensor-parallel degree, ceil(weightGB /
// (vramGB*util - 3)), in 1e9 bytes; absent where nothing is usable.
func MinTPClassic(weightGB, vramGB, util float64) stat.Opt {
	usable := UsableVRAMGB(vramGB, util)
	if usable <= 0 || weightGB <= 0 {
		return stat.None
	}
	return stat.Some(math.Ceil(weightGB / usable))
}

// UsableVRAMGB returns R4's memory of one GPU for weights, in 1e9 bytes; it is
// negative for a GPU smaller than the reserve.
func UsableVRAMGB(vramGB, util float64) float64 { return vramGB*util - activationGB }

// Economics is what a token costs at a measured rate.
type Economics struct {
	TokensPerWatt       stat.Opt `json:"tokens_per_watt"` // tokens per second and watt
	JoulesPerToken      stat.Opt `json:"joules_per_token"`
	USDPerMillionTokens stat.Opt `json:"usd_per_million_tokens"`
}

// NewEconomics computes them from generated tokens per second, watts of all
// GPUs and USD per hour of the whole server; absent inputs make their results
// absent.
func NewEconomics(outputPerS, powerW, costPerHour stat.Opt) Economics {
	return Economics{
		TokensPerWatt:       outputPerS.Div(powerW),
		JoulesPerToken:      powerW.Div(outputPerS),
		USDPerMillionTokens: costPerHour.Div(outputPerS.Times(3600)).Times(1e6),
	}
}

func positive(o stat.Opt) bool { return o.OK && o.V > 0 }

// times multiplies two optional values, absent where either is.
func times(a, b stat.Opt) stat.Opt {
	if !b.OK {
		return stat.None
	}
	return a.Times(b.V)
}

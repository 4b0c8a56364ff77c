package roofline

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// CeilingInput is a hypothetical load, for which no server is measured.
type CeilingInput struct {
	Batch       float64 // running sequences; below 1 counts as 1
	Context     float64 // mean resident context, tokens; 0: the length of the prompt
	Prompt      float64 // tokens of a prompt to prefill; 0: no prefill
	Cached      float64 // of the context before the prompt, tokens already cached
	Chunk       float64 // token budget of a step; 0: the whole prompt
	Utilization float64 // fraction of GPU memory for the engine, 0..1; 0: 0.9
}

// CeilingResult holds the ceilings of the physical model for one replica. A part is absent if it
// lacks an input; Missing names those.
type CeilingResult struct {
	StepIdealS                 float64  `json:"step_ideal_s"`
	StepAchievableS            float64  `json:"step_achievable_s"`
	DecodeIdealTokensPerS      float64  `json:"decode_ideal_tokens_per_s"`
	DecodeAchievableTokensPerS float64  `json:"decode_achievable_tokens_per_s"`
	DecodeAchievableLower      float64  `json:"decode_achievable_lower_tokens_per_s"`
	DecodeAchievableUpper      float64  `json:"decode_achievable_upper_tokens_per_s"`
	PrefillIdealTokensPerS     stat.Opt `json:"prefill_ideal_tokens_per_s"`
	PrefillAchievableTokensS   stat.Opt `json:"prefill_achievable_tokens_per_s"`
	Binding                    string   `json:"binding"`
	TermsS                     Terms    `json:"terms_s"`       // achievable
	IdealTermsS                Terms    `json:"ideal_terms_s"` // ideal
	KVBytesPerToken            float64  `json:"kv_bytes_per_token"`
	WeightBytes                float64  `json:"weight_bytes"`       // all weights, over the replica's GPUs
	KVCapacityTokens           stat.Opt `json:"kv_capacity_tokens"` // estimate; absent if GPU memory is unknown
	KVCapacityLow              stat.Opt `json:"kv_capacity_low_tokens"`
	KVCapacityHigh             stat.Opt `json:"kv_capacity_high_tokens"`
	MaxSequences               stat.Opt `json:"max_sequences"` // of that context
	RidgeTokens                stat.Opt `json:"ridge_tokens"`  // absent if the compute peak is unknown
	Fits                       bool     `json:"fits"`          // the weights leave room for a cache; false if memory is unknown
	MinTP                      stat.Opt `json:"min_tp"`        // smallest degree that fits and that the heads allow
	Assumptions                []string `json:"assumptions"`
}

// Ceiling computes the limits of the hardware for a hypothetical load. It fails if Check finds a
// missing input.
func (c Config) Ceiling(in CeilingInput) (CeilingResult, error) {
	if missing := c.Check(); len(missing) > 0 {
		return CeilingResult{}, fmt.Errorf("ceiling not computable: unknown %s", strings.Join(missing, ", "))
	}
	b, util := max(1, in.Batch), in.Utilization
	if util <= 0 {
		util = 0.9
	}
	context := in.Context
	if context <= 0 {
		context = in.Prompt
	}
	at := Point{Batch: b, Context: context, Tokens: b}
	s := c.Step(at)
	pl := c.plan()
	lower, upper := pl.band(at, s.Achievable)
	r := CeilingResult{
		StepIdealS: s.Ideal.Total(), StepAchievableS: s.Achievable.Total(),
		Binding: s.Achievable.Binding(), TermsS: s.Achievable, IdealTermsS: s.Ideal,
		KVBytesPerToken: c.KVBytesPerToken(), WeightBytes: c.TotalWeightBytes(), Assumptions: s.Assumptions,
	}
	r.DecodeIdealTokensPerS = b / r.StepIdealS
	r.DecodeAchievableTokensPerS = b / r.StepAchievableS
	r.DecodeAchievableLower = lower * r.DecodeAchievableTokensPerS
	r.DecodeAchievableUpper = min(upper*r.DecodeAchievableTokensPerS, r.DecodeIdealTokensPerS)
	if in.Prompt > 0 {
		ideal, achievable := c.PrefillRate(in.Prompt, in.Cached, in.Chunk)
		r.PrefillIdealTokensPerS, r.PrefillAchievableTokensS = stat.Some(ideal), stat.Some(achievable)
	}
	if ridge := c.RidgeTokens(); ridge > 0 {
		r.RidgeTokens = stat.Some(ridge)
	}
	if c.GPU.VRAMGiB > 0 {
		tokens, low, high := c.Capacity(util)
		r.KVCapacityTokens, r.KVCapacityLow, r.KVCapacityHigh = stat.Some(tokens), stat.Some(low), stat.Some(high)
		if context > 0 {
			r.MaxSequences = stat.Some(c.MaxSequences(context, util))
		}
		r.Fits = tokens > 0
		if tp, ok := c.MinTP(util); ok {
			r.MinTP = stat.Some(float64(tp))
		}
	}
	return r, nil
}

package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of slow-steps.
const (
	// slowFactor is the minimum time of a step over the achievable one. Undisturbed engines
	// measure 0.8 to 3, of 139 published results of SGLang three above 5; the disturbed one of the
	// recorded runs is far above 10.
	slowFactor = 5.0
	// slowFactorFull applies while kv-pressure is significant: recomputation and prompts admitted
	// in bursts lengthen steps several times by themselves.
	slowFactorFull = 15.0
	// slowExcess is the minimum loss of a slow step, in seconds: with a small model on a fast
	// GPU, milliseconds of host time are several achievable steps.
	slowExcess     = 0.010
	slowConfidence = 0.90
	// eagerGain is the predicted gain from which --enforce-eager alone is the cause of slow
	// steps.
	eagerGain       = 0.20
	eagerConfidence = 0.80
)

var slowSteps = definition{engine.Rule{
	ID: engine.SlowSteps, Code: "beyond", Title: "Slow steps", Group: engine.GroupHost, Impact: 4,
	Once: judgeSlowSteps, While: "the steps are slow",
	// The cost of a step is the basis of all these fixes.
	Overrides: []engine.FindingID{
		engine.UnderBatching, engine.KVPressure, engine.KVAdmission, engine.LowPrefixReuse,
		engine.ConcurrencySaturation, engine.TokenBudget, engine.LoRASlots, engine.DPImbalance, engine.PrefillInterference,
	},
}, Explanation{
	Condition: []string{
		fmt.Sprintf("the measured step takes at least %v times as long as the achievable step (est) of the physical model at these gauges on this hardware, and at least %v s longer, over the run and in the windows that count", slowFactor, slowExcess),
		fmt.Sprintf("while kv-pressure is significant, at least %v times: recomputation explains shorter ones", slowFactorFull),
		fmt.Sprintf("or --enforce-eager is set on a GPU, and the physical model predicts a gain of at least %s from CUDA graphs", figure.PercentSign(eagerGain)),
	},
	Thresholds: []Threshold{
		{"measured step / achievable step", ">=", slowFactor, "", fromJudgement},
		{"the same while kv-pressure is significant", ">=", slowFactorFull, "", fromJudgement},
		{"measured step - achievable step", ">=", slowExcess, "s", fromJudgement},
		{"predicted gain of CUDA graphs", ">=", eagerGain, "ratio", fromDecision},
	},
	Formula: []string{
		"achievable step (est) = weights + KV + compute + attention + collectives + fixed, at the run's batch, context and tokens per step",
	},
	Gate:       standardGate,
	Confidence: []string{fmt.Sprint(slowConfidence), fmt.Sprintf("%v for --enforce-eager alone", eagerConfidence)},
	Remedy: []string{
		"if --enforce-eager is set: remove it",
		"else no flag: look for another process on the GPU or its host, throttling, a lost NVLink, wrong kernels, weight or KV offloading",
	},
	Limits: []string{"needs GPU and model in the catalog (or --gpu, --model-config); does not fire if GPU, model, dtype or TP are misread"},
}}

func judgeSlowSteps(r *engine.Run, f *engine.Finding) {
	f.State = engine.NotEvaluable
	if r.Perf == nil {
		f.Missing = append(f.Missing, "the physical ceiling")
		f.Reason = "needs the physical ceiling: " + r.PerfReason
		return
	}
	achievable, factor := r.Perf.Now.Achievable.Total(), slowFactor
	kv := kvPressure.rule
	if kvSignificant(engine.TallyChecks(&kv, r)) {
		factor = slowFactorFull
	}
	for w := range windows(r, always) {
		if !w.Active || !w.StepTime.OK {
			continue
		}
		f.Judged++
		if w.StepTime.V >= max(factor*achievable, achievable+slowExcess) {
			f.Fired++
		}
	}
	f.Evaluable = r.Agg.Windows.Evaluable
	ratio := r.Perf.Raw
	if f.Judged == 0 || ratio <= 0 {
		f.Missing = append(f.Missing, "an active window with a step time")
		f.Reason = "needs " + f.Missing[0]
		return
	}
	f.State = engine.NotFired
	f.Reason = fmt.Sprintf("a step takes %s times the achievable %s (est) (limit %v)", figure.Count(ratio), formatSeconds(achievable), factor)
	if f.Fired == 0 || ratio < factor || (ratio-1)*achievable < slowExcess {
		f.Fired = 0
		judgeEager(r, f)
		return
	}
	slow := engine.Tally{Fired: f.Fired, Evaluable: f.Evaluable}
	f.State, f.Significant, f.Confidence = engine.Fired, slow.Significant(), slowConfidence
	step := ratio * achievable
	addEvidence(f,
		compared("step_time_s", stat.Some(step), "s", ">=", factor*achievable, engine.FromMeasured,
			fmt.Sprintf("a step took %s; %s (est) is achievable at this batch and context on this hardware", formatSeconds(step), formatSeconds(achievable))),
		measured("running_mean", r.Agg.Running, "req", figure.Counted(r.Agg.Running.Or(0), "request")+" ran at once"))
	addKnownEvidence(f, measured("kv_usage_mean", r.Agg.KV, "ratio", "the KV pool was "+figure.PercentSign(r.Agg.KV.V)+" full, which does not explain slow steps"))
	addKnownEvidence(f, measured("gpu_util", r.Agg.GPUUtil, "ratio", "a kernel ran "+figure.PercentSign(r.Agg.GPUUtil.V)+" of the time"))
	f.Fix = findInterference(ratio, factor == slowFactorFull)
	if eager := r.Facts.EnforceEager; eager.Known && eager.Value && !r.Facts.OnCPU() {
		reject(f.Fix, "removing --enforce-eager", "useful, but eager launches alone do not make steps this slow")
	}
}

// findInterference returns the fix on the host. times is the step over the achievable one, and
// full reports whether the KV pool is full too.
func findInterference(times float64, full bool) *engine.Fix {
	rest := "Slots, KV pool and load are normal: no server flag explains it."
	if full {
		rest = "The KV pool is full as well, but that explains far shorter steps: check the host first, then the pool."
	}
	return &engine.Fix{
		Kind:    engine.KindHost,
		Command: "find what slows the steps: another process on the GPU or its host (nvidia-smi, top), throttling, a lost NVLink, wrong kernels, weights or KV offloaded to host memory",
		Why:     fmt.Sprintf("Steps take %s times as long as achievable (est) on this hardware at this batch and context. %s", figure.Count(times), rest),
		Costs:   []string{"none: nothing on the server changes"},
	}
}

// judgeEager makes the finding fire if --enforce-eager is set and CUDA graphs are predicted to
// gain at least eagerGain.
func judgeEager(r *engine.Run, f *engine.Finding) {
	if !lever.GraphsOff(r.Facts) {
		return
	}
	g := modelled(r, (*roofline.Performance).NoEager)
	if g.Throughput.Mid.Or(0) < eagerGain {
		return
	}
	f.State, f.Significant, f.Confidence = engine.Fired, true, eagerConfidence
	f.Fired, f.Judged = f.Evaluable, f.Evaluable
	f.Reason = "--enforce-eager is set: CUDA graphs are off"
	addEvidence(f, sourced("enforce_eager", stat.None, "", r.Facts.EnforceEager.Source, "--enforce-eager is set: the host launches every kernel of every step"))
	f.Fix = flagFix(r.Facts, lever.Eager, "", "CUDA graphs are off, so launching kernels, not the GPU, limits small batches.")
	f.Fix.Command, f.Fix.Predicted = removeFlag(r.Facts, lever.Eager.Flag), g.predictions()
}

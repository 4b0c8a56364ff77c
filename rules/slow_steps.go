package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of slow-steps.
const (
	// slowFactor is how many times longer than achievable a step must take. Good
	// engines measure 0.8 to 3 (MoE with a latent cache 2, physics.md section 7);
	// the disturbed run among the recorded ones is far above 10.
	slowFactor = 5.0
	// slowFactorFull stands in its place while kv-pressure is significant:
	// recomputation and prompts that are admitted in bursts lengthen steps by
	// themselves, several times over where the page counts no engine steps.
	slowFactorFull = 15.0
	// slowExcess is what a slow step must lose at least, in seconds: of a small
	// model on a fast GPU, milliseconds of host time are several achievable steps.
	slowExcess     = 0.010
	slowConfidence = 0.90
	// eagerGain is the predicted gain from which --enforce-eager alone is called
	// the cause of slow steps.
	eagerGain       = 0.20
	eagerConfidence = 0.80
)

func slowSteps() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.SlowSteps, Code: "beyond", Title: "Slow steps", Group: engine.GroupHost, Impact: 4,
			Once: judgeSlowSteps,
			// What a step costs is the basis of every one of these remedies.
			Overrides: []engine.FindingID{
				engine.UnderBatching, engine.KVPressure, engine.KVAdmission, engine.LowPrefixReuse,
				engine.SeatSaturation, engine.TokenBudget, engine.DPImbalance, engine.PrefillInterference,
			},
		},
		explain: Explanation{
			Condition: []string{
				fmt.Sprintf("the measured step takes %s times as long as the physical model finds achievable at these gauges on this hardware and at least %s longer, over the run and in the windows that count", number(slowFactor), seconds(slowExcess)),
				fmt.Sprintf("while kv-pressure is significant, %s times: recomputation explains shorter ones", number(slowFactorFull)),
				fmt.Sprintf("or --enforce-eager is set on a GPU, and the physical model expects %s and more from CUDA graphs", percent(eagerGain)),
			},
			Thresholds: []Threshold{
				{"measured step / achievable step", ">=", slowFactor, "", fromJudgement},
				{"the same while kv-pressure is significant", ">=", slowFactorFull, "", fromJudgement},
				{"measured step - achievable step", ">=", slowExcess, "s", fromJudgement},
				{"predicted gain of CUDA graphs", ">=", eagerGain, "ratio", fromDecisions},
			},
			Formula: []string{
				"achievable step = weights + KV + compute + attention + collectives + fixed, physics.md sections 2 to 6, at the run's batch, context and tokens per step",
			},
			Gate:       standardGate,
			Confidence: []string{number(slowConfidence), number(eagerConfidence) + " for --enforce-eager alone"},
			Remedy: []string{
				"--enforce-eager set: drop it",
				"else no flag: look for a neighbour on the GPU or its host, throttling, a lost NVLink, wrong kernels, weight or KV offloading",
			},
			Limits: []string{"needs GPU and model in the catalog (or --gpu, --model-config); silent where GPU, model, dtype or TP are misread"},
		},
	}
}

func judgeSlowSteps(r *engine.Run, f *engine.Finding) {
	f.State = engine.NotEvaluable
	if r.Perf == nil {
		f.Missing = append(f.Missing, "the physical ceiling")
		f.Reason = "needs the physical ceiling: " + r.PerfReason
		return
	}
	achievable, factor := r.Perf.Now.Achievable.Total(), slowFactor
	kv := kvPressure().rule
	if kvSignificant(engine.Count(&kv, r)) {
		factor = slowFactorFull
	}
	for i := range r.Windows {
		w := &r.Windows[i]
		if !w.Active || !w.StepTime.OK {
			continue
		}
		f.Evaluable++
		if w.StepTime.V >= max(factor*achievable, achievable+slowExcess) {
			f.Fired++
		}
	}
	ratio := r.Perf.Raw
	if f.Evaluable == 0 || ratio <= 0 {
		f.Missing = append(f.Missing, "an active window with a step time")
		f.Reason = "needs " + f.Missing[0]
		return
	}
	f.State = engine.NotFired
	f.Reason = fmt.Sprintf("a step takes %s times the achievable %s (limit %s)", number(ratio), seconds(achievable), number(factor))
	if f.Fired == 0 || ratio < factor || (ratio-1)*achievable < slowExcess {
		f.Fired = 0
		judgeEager(r, f)
		return
	}
	slow := engine.Tally{Fired: f.Fired, Evaluable: f.Evaluable}
	f.State, f.Significant, f.Confidence = engine.Fired, slow.Significant(), slowConfidence
	step := ratio * achievable
	f.Evidence = append(f.Evidence,
		evidence("step_time_s", stat.Some(step), "s", ">=", stat.Some(factor*achievable), engine.FromMeasured,
			fmt.Sprintf("a step took %s; at this batch, context and hardware about %s is achievable", seconds(step), seconds(achievable))),
		measured("running_mean", r.Agg.Running, "req", number(r.Agg.Running.Or(0))+" requests ran at once"))
	if r.Agg.KV.OK {
		f.Evidence = append(f.Evidence, measured("kv_usage_mean", r.Agg.KV, "ratio", "the KV pool was "+percent(r.Agg.KV.V)+" full: it does not explain it"))
	}
	if u := r.Agg.GPUUtil; u.OK {
		f.Evidence = append(f.Evidence, measured("gpu_util", u, "ratio", "some kernel ran "+percent(u.V)+" of the time"))
	}
	f.Fix = findNeighbour(ratio, factor == slowFactorFull)
	if eager := r.Facts.EnforceEager; eager.Known && eager.Value && !onCPU(r.Facts) {
		f.Fix.Rejected = append(f.Fix.Rejected, engine.Rejected{What: "removing --enforce-eager", Why: "worth doing, but eager launches alone do not make steps this slow"})
	}
	setImpact(f, 4)
}

// findNeighbour sends to the host; full says that the KV pool is full too.
func findNeighbour(times float64, full bool) *engine.Fix {
	rest := "Seats, KV pool and load are ordinary: no flag of this server explains it."
	if full {
		rest = "The KV pool is full as well, which explains far shorter ones: look at the host first, then at the pool."
	}
	return &engine.Fix{
		Kind:    engine.KindHost,
		Command: "look for what slows the steps: another process on the GPU or on its host (nvidia-smi, top), throttling, a lost NVLink, wrong kernels, weights or KV offloaded to host memory",
		Why:     fmt.Sprintf("Steps are %s times as slow as this hardware allows at this batch and context. %s", number(times), rest),
		Price:   []string{"none: nothing on the server changes"},
	}
}

// judgeEager fires where CUDA graphs are switched off and would pay.
func judgeEager(r *engine.Run, f *engine.Finding) {
	eager := r.Facts.EnforceEager
	if !eager.Known || !eager.Value || eager.Source == engine.FromDefault || onCPU(r.Facts) {
		return
	}
	g := withGraphs(r)
	if g.Throughput.Mid.Or(0) < eagerGain {
		return
	}
	f.State, f.Significant, f.Confidence = engine.Fired, true, eagerConfidence
	f.Fired = f.Evaluable
	f.Reason = "--enforce-eager is set: CUDA graphs are off"
	f.Evidence = append(f.Evidence, evidence("enforce_eager", stat.None, "", "", stat.None, eager.Source, "--enforce-eager is set: every kernel is launched by the host, step after step"))
	f.Fix = &engine.Fix{
		Kind: engine.KindFlag, Flag: "--enforce-eager", From: "on",
		Command:   dropFlag(r.Facts, "--enforce-eager"),
		Why:       "CUDA graphs are off, so that launching kernels, not the GPU, sets the pace of small batches.",
		Predicted: g.predictions(),
		Price:     []string{priceRestart, "a longer start (graph capture) and 0.3 to 2 GiB of GPU memory"},
		Risk:      1,
	}
	setImpact(f, 4)
}

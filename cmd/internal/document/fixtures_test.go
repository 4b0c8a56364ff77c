package document_test

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// figures are measured values by name. Missing ones are absent with the reason under "".
type figures map[string]float64

// put returns the quantities of a diagnosis in their order.
func put(values figures, origins map[string]engine.Origin, why func(name string) string) []engine.NamedQuantity {
	var list []engine.NamedQuantity
	for _, name := range engine.MeasuredNames {
		q := engine.Quantity{Unit: tuning.UnitOf(name), Source: engine.Measured}
		if v, ok := values[name]; ok {
			q.Value = stat.Some(v)
		} else {
			q.Reason = why(name)
		}
		if o, ok := origins[name]; ok {
			q.Source = o
		}
		list = append(list, engine.NamedQuantity{Name: name, Quantity: q})
	}
	return list
}

var priced = map[string]engine.Origin{
	"usd_per_million_tokens": engine.Estimate, "recoverable_usd_per_hour": engine.Estimate,
	"front_end_mean_s": engine.Derived, "preemption_lost_s": engine.Derived, "step_time_s": engine.Measured,
	"tokens_per_watt": engine.Derived, "joules_per_token": engine.Derived,
}

func some(v float64) stat.Opt { return stat.Some(v) }

func predict(metric string, low, mid, high float64) engine.Prediction {
	return engine.Prediction{Metric: metric, Unit: "ratio", Low: some(low), Mid: some(mid), High: some(high)}
}

// llama is a run of Llama 3.3 70B on B200s, before any measurement.
func llama(tp, slots int) *engine.Diagnosis {
	d := &engine.Diagnosis{
		Started:  time.Date(2026, 2, 4, 19, 9, 3, 649e6, time.UTC),
		Duration: 30 * time.Second,
		Version:  "0.1.0",
		Target: engine.Target{
			URL: "http://localhost:8888/metrics", Engine: "vllm", EngineVersion: "0.15.0",
			Model: "nvidia/Llama-3.3-70B-Instruct-FP4",
		},
		Windows: engine.WindowCounts{Collected: 15, Evaluable: 15, Active: 15},
		Facts: engine.Facts{
			Engine:               engine.Know("vllm", engine.FromMetrics, ""),
			EngineVersion:        engine.Know("0.15.0", engine.FromServer, ""),
			Model:                engine.Know("nvidia/Llama-3.3-70B-Instruct-FP4", engine.FromMetrics, ""),
			Device:               engine.Know("cuda", engine.FromDerived, ""),
			MaxNumSeqs:           engine.Know(slots, engine.FromCmdline, ""),
			MaxNumBatchedTokens:  engine.Know(8192, engine.FromConfig, ""),
			MaxModelLen:          engine.Know(131072, engine.FromServer, ""),
			TensorParallel:       engine.Know(tp, engine.FromCmdline, ""),
			DataParallel:         engine.Know(1, engine.FromDefault, ""),
			GPUMemoryUtilization: engine.Know(0.9, engine.FromCmdline, ""),
			KVCacheDType:         engine.Know("fp8", engine.FromConfig, ""),
			WeightDType:          engine.Know("nvfp4", engine.FromConfig, "hf_quant_config.json"),
			Quantization:         engine.Know("modelopt_fp4", engine.FromConfig, ""),
			PrefixCaching:        engine.Know(true, engine.FromDefault, "the default since 0.6"),
			BlockSize:            engine.Know(16, engine.FromMetrics, ""),
			KVCapacityTokens:     engine.Know(713_000*float64(tp), engine.FromMetrics, ""),
			GPUName:              engine.Know("NVIDIA B200", engine.FromFlag, ""),
			GPUCount:             engine.Know(tp, engine.FromDerived, "tensor parallel size"),
			CostPerHour:          engine.Know(6*float64(tp), engine.FromCatalog, fmt.Sprintf("(est) on demand, %d x $6.00, as of 2026-06", tp)),
			CostEst:              true,
			ParamsTotal:          engine.Know(70.6e9, engine.FromCatalog, ""),
			ParamsActive:         engine.Know(70.6e9, engine.FromCatalog, ""),
			GPUKnown:             true, ModelKnown: true,
			GPU:          catalog.GPU{Name: "NVIDIA B200", Price: &catalog.Price{OnDemandUSD: 6, AsOf: "2026-06"}},
			ClassicBytes: 1, ClassicBytesFrom: "kv_cache_dtype",
			Launch: "vllm serve nvidia/Llama-3.3-70B-Instruct-FP4 --host 0.0.0.0 --port 8888 --config sweep_results_20260204_062339/tp2_bs128_offloadoff/config.yaml --max-num-seqs 128 --gpu-memory-utilization 0.9 --tensor-parallel-size 2 --attention-config.use_trtllm_attention=0",
		},
		Missing: []engine.Missing{{
			What: "GPU", Reason: "no NVML library on this machine, and nvidia-smi is not in the path",
			Effect: "utilization, power, VRAM, temperature and energy are absent; --gpu names the model for the ceilings",
		}},
	}
	return d
}

func noGPU(name string) string {
	for _, q := range engine.GPUFields() {
		if q.Key() == name {
			return "no GPU is readable"
		}
	}
	switch name {
	case "vram_peak_bytes", "throttled", "temperature_peak_c":
		return "no GPU is readable"
	case "tokens_per_watt", "joules_per_token":
		return "needs generated tokens and the power of every GPU"
	}
	return "the page does not have it"
}

func physical(ideal, reach, eff, step float64, binding string, t roofline.Terms) *roofline.Operating {
	return &roofline.Operating{
		IdealTokensPerS: some(ideal), AchievableTokensPerS: some(reach), AchievableLower: some(reach * 0.8), AchievableUpper: some(reach * 1.15),
		Efficiency: some(eff), Binding: binding, TermsS: t, IdealTermsS: roofline.Terms{Weights: t.Weights * .7, Compute: t.Compute * .6, KV: t.KV * .7},
		StepIdealS: step * eff, StepAchievableS: t.Total(), Calibration: some(step / t.Total()), CalibrationRaw: some(step / t.Total()),
		Batch: 128, Context: 2450, StepTokens: 151, RidgeTokens: 590,
		Assumptions: []string{"B200 achieves of its peaks what was measured on H100 (no row of its own)"},
	}
}

func classicOf(running, tps float64) *roofline.Classic {
	decode := 16000e9 / (70.6e9 * 1)
	eff := tps / (decode * running)
	return &roofline.Classic{
		DecodeTokensPerS: some(decode), DecodeLower: some(decode * .85), DecodeUpper: some(decode * 1.05),
		PrefillTokensPerS: some(140), PrefillLower: some(119), PrefillUpper: some(147), RidgeBatch: some(9.4),
		AggregateTokensPerS: some(decode * running), Efficiency: some(eff), Headroom: some(1 - eff),
		WeightGB: some(70.6), KVHeadroomGB: some(144.7), TPOTFloorS: some(1 / decode), RecoverableUSDPerHour: some(12 * (1 - eff)),
		BytesPerParam: some(1), BytesPerParamFrom: "kv_cache_dtype",
		Caveat: "Calibrated for decode; 4 % of this load's time is prefill.",
	}
}

// quiet are findings that did not fire.
func quiet(ids ...engine.FindingID) []engine.Finding {
	var list []engine.Finding
	for _, id := range ids {
		f := engine.Finding{ID: id, Rule: "beyond", Group: engine.GroupLoad, State: engine.NotFired, Judged: 15, Evaluable: 15, Title: "A rule that is quiet", Reason: "page shows nothing of it"}
		switch id {
		case engine.UnderBatching:
			f.Rule, f.Title, f.Reason = "R1", "Under-batching", "occupancy 100 % of the slots, limit 25 %"
		case engine.OOMRisk:
			f.Rule, f.Title, f.Reason = "R4", "Out-of-memory risk", "the weights take 42.3 of 180 GB on each GPU"
		case engine.KVPressure:
			f.Rule, f.Title, f.Reason = "R2", "KV cache pressure", "KV usage peaks at 31 %, limit 88 %"
		}
		list = append(list, f)
	}
	return list
}

func blind() []engine.Finding {
	return []engine.Finding{{
		ID: engine.PowerLimit, Rule: "beyond", Group: engine.GroupHardware, State: engine.NotEvaluable, Title: "Power limit",
		Missing: []string{"the GPU's throttle reasons", "a readable GPU"}, Reason: "the GPU's throttle reasons",
	}}
}

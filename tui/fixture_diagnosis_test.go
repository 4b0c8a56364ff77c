package tui

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/roofline"
)

// diagnosisAt returns an 8B model on one A100 with a number of slots, all in use while requests
// wait. Step time, rates and pool are consistent.
func diagnosisAt(slots int, waiting float64) *engine.Diagnosis {
	running := float64(slots) - 0.1
	step := 0.0113 + 0.000105*running // s
	out := running / step
	const output, prompt = 256.0, 512.0
	reqs := out / output
	queue := waiting / reqs
	decode := step * output
	prefill := 0.062
	ttft := queue + prefill + 0.011
	kv := running * (prompt + output/2) / 417_000
	facts := fixtureFacts(slots)
	q := map[string]float64{
		"generation_tokens_per_s": out, "prompt_tokens_per_s": reqs * prompt, "requests_per_s": reqs,
		"running_mean": running, "waiting_mean": waiting, "kv_usage_mean": kv, "kv_usage_peak": kv * 1.12, "preemptions_per_s": 0,
		"prefix_hit_rate": 0.034, "prompt_tokens_mean": prompt, "output_tokens_mean": output,
		"ttft_mean_s": ttft, "ttft_p99_s": ttft * 1.9, "tpot_mean_s": step * 1.01, "tpot_p99_s": step * 1.2,
		"itl_mean_s": step, "itl_p99_s": step * 1.75, "e2e_mean_s": ttft + decode, "queue_mean_s": queue,
		"prefill_mean_s": prefill, "decode_mean_s": decode, "front_end_mean_s": 0.011, "preemption_lost_s": 0, "step_time_s": step,
		"missed_ticks": 0, "gpu_util": 0.97, "mem_util": 0.81, "power_w": 287, "power_limit_w": 400, "throttled": 0,
		"vram_total_bytes": 80 << 30, "vram_used_bytes": 71.8 * (1 << 30), "vram_peak_bytes": 71.8 * (1 << 30),
		"temperature_c": 61, "sm_clock_mhz": 1410, "tokens_per_watt": out / 287, "joules_per_token": 287 / out,
		"usd_per_million_tokens": 1.79 / 3600 / out * 1e6, "recoverable_usd_per_hour": 0.86,
		"waiting_deferred_mean": 0, "lookup_ratio": 1, "prefill_tokens_per_s": reqs * prompt * 0.966, "prefill_share": 0.021,
		"total_generation_tokens": 1.2e6, "total_requests": 4812, "temperature_peak_c": 63, "api_server_cpu": 0.22,
		"http_4xx_per_s": 0, "rejections_per_s": 0, "http_5xx_per_s": 0,
	}
	d := &engine.Diagnosis{
		Started: fixtureStart().Add(246 * time.Second), Duration: 20 * time.Second, Version: "0.1.0",
		Target:  engine.Target{URL: fixtureURL, Engine: "vllm", EngineVersion: "0.11.0", Model: fixtureModel},
		Facts:   facts,
		Windows: engine.WindowCounts{Collected: 10, Evaluable: 10, Active: 10},
		Outcome: engine.OutcomeRecommendation,
		Runners: []engine.FindingID{engine.LowPrefixReuse},
		GPUs:    []engine.GPUSummary{summaryOf(fixtureGPU(0).Devices[0])},
	}
	for _, name := range engine.MeasuredNames {
		n := engine.NamedQuantity{Name: name, Quantity: engine.Quantity{Unit: tuning.UnitOf(name), Source: engine.Measured}}
		if v, ok := q[name]; ok {
			n.Value = some(v)
		} else {
			n.Reason = "the page does not have it"
		}
		d.Measured = append(d.Measured, n)
	}
	d.Curve = curveOf(slots, running, out)
	reach := d.Curve.Now.Achievable.V
	ideal := d.Curve.Now.Ideal.V
	d.Ceiling.Physical = &roofline.Operating{
		IdealTokensPerS: some(ideal), AchievableTokensPerS: some(reach), AchievableLower: some(reach * 0.85), AchievableUpper: some(reach * 1.1),
		Efficiency: some(out / ideal), Binding: "weights",
		TermsS:      roofline.Terms{Weights: 0.0092, KV: 0.0004, Compute: 0.0006, Fixed: 0.0011},
		IdealTermsS: roofline.Terms{Weights: 0.0079, KV: 0.0003, Compute: 0.0004},
		StepIdealS:  running / ideal, StepAchievableS: running / reach, Calibration: some(reach / out), CalibrationRaw: some(reach / out),
		Batch: running, Context: 640, StepTokens: running + 30, RidgeTokens: 165,
		BestTokensPerS: some(out * 2.2), BestBatch: some(40),
		Assumptions: []string{"kernel efficiency of an A100 is taken from published runs of this model size"},
	}
	d.Ceiling.Classic = &roofline.Classic{
		DecodeTokensPerS: some(127), DecodeLower: some(108), DecodeUpper: some(133), PrefillTokensPerS: some(12.6), RidgeBatch: some(153),
		AggregateTokensPerS: some(127 * running), Efficiency: some(out / (127 * running)), Headroom: some(1 - out/(127*running)),
		WeightGB: some(16.1), KVHeadroomGB: some(55.2), TPOTFloorS: some(1 / 127.0), RecoverableUSDPerHour: some(0.86), BytesPerParam: some(2), BytesPerParamFrom: "catalog",
	}
	to := 40
	if slots == 8 {
		to = 16
	}
	d.Findings, d.Recommendation = fixtureFindings(slots, to, waiting, kv)
	return d
}

func fixtureFacts(slots int) engine.Facts {
	return engine.Facts{
		Engine: engine.Know("vllm", engine.FromMetrics, ""), EngineVersion: engine.Know("0.11.0", engine.FromServer, ""),
		Model: engine.Know(fixtureModel, engine.FromMetrics, ""), ModelPath: engine.Know(fixtureModel, engine.FromCmdline, ""),
		Device:               engine.Know("cuda", engine.FromDerived, ""),
		MaxNumSeqs:           engine.Know(slots, engine.FromCmdline, ""),
		MaxNumBatchedTokens:  engine.Know(2048, engine.FromDefault, "vLLM 0.11 on this GPU"),
		MaxModelLen:          engine.Know(8192, engine.FromCmdline, ""),
		TensorParallel:       engine.Know(1, engine.FromDefault, ""),
		DataParallel:         engine.Know(1, engine.FromDefault, ""),
		GPUMemoryUtilization: engine.Know(0.9, engine.FromCmdline, ""),
		KVCacheDType:         engine.Know("bf16", engine.FromConfig, ""), WeightDType: engine.Know("bf16", engine.FromConfig, ""), ComputeDType: engine.Know("bf16", engine.FromConfig, ""),
		Quantization:     engine.Fact[string]{Note: "no quantization in config.json"},
		PrefixCaching:    engine.Know(true, engine.FromMetrics, ""),
		ChunkedPrefill:   engine.Know(true, engine.FromDefault, ""),
		BlockSize:        engine.Know(16, engine.FromMetrics, ""),
		NumGPUBlocks:     engine.Know(26_062, engine.FromMetrics, ""),
		KVCapacityTokens: engine.Know(417_000.0, engine.FromDerived, "blocks x block size"),
		Ranks:            1, GPUName: engine.Know("NVIDIA A100-SXM4-80GB", engine.FromGPU, ""), GPUCount: engine.Know(1, engine.FromGPU, ""),
		CostPerHour: engine.Know(1.79, engine.FromCatalog, "(est) on demand, 1 x $1.79, as of 2026-06"), CostEst: true,
		ParamsTotal: engine.Know(8.03e9, engine.FromCatalog, ""), ParamsActive: engine.Know(8.03e9, engine.FromCatalog, ""),
		GPU: catalog.GPU{Name: "NVIDIA A100-SXM4-80GB", Price: &catalog.Price{OnDemandUSD: 1.79, AsOf: "2026-06"}}, GPUKnown: true,
		ModelSpec: catalog.Model{ID: fixtureModel}, ModelKnown: true, ModelFrom: engine.FromCatalog,
		ClassicBytes: 2, ClassicBytesFrom: "catalog", PID: 4120, Launch: fmt.Sprintf(fixtureLaunch, slots),
	}
}

func curveOf(slots int, running, out float64) *engine.Curve {
	at := func(n float64) engine.CurvePoint {
		step := 0.0113 + 0.000105*n
		reach := n / (0.0096 + 0.000075*n)
		ideal := n / (0.0079 + 0.00005*n)
		return engine.CurvePoint{Running: n, Expected: n / step, Achievable: some(reach), Ideal: some(ideal)}
	}
	c := &engine.Curve{Slots: some(float64(slots)), Pool: some(543), Ridge: some(153)}
	for _, n := range []float64{1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 224, 256} {
		c.Points = append(c.Points, at(n))
	}
	c.Now = at(running)
	c.Now.Expected = out
	return c
}

func fixtureFindings(slots, to int, waiting, kv float64) ([]engine.Finding, *engine.Recommendation) {
	step := func(n int) float64 { return 0.0113 + 0.000105*float64(n) }
	gain := float64(to)/step(to)/(float64(slots)/step(slots)) - 1
	slower := step(to)/step(slots) - 1
	fix := engine.Fix{
		Kind: engine.KindFlag, Flag: "--max-num-seqs", From: fmt.Sprint(slots), To: fmt.Sprint(to),
		Command: fmt.Sprintf("in the launch command change --max-num-seqs %d to %d, and restart", slots, to),
		Why:     fmt.Sprintf("All %d slots are taken while %.0f requests wait, and the KV pool peaks at %.1f %%: it holds 543 sequences of 768 tokens.", slots, waiting, kv*112),
		Predicted: []engine.Prediction{
			{Metric: "generation_tokens_per_s", Unit: "ratio", Low: some(gain * 0.82), Mid: some(gain), High: some(gain * 1.12)},
			{Metric: "ttft_mean_s", Unit: "ratio", Low: some(-0.98), Mid: some(-0.93), High: some(-0.8)},
			{Metric: "itl_mean_s", Unit: "ratio", Low: some(slower * 0.7), Mid: some(slower), High: some(slower * 1.5)},
			{Metric: "usd_per_million_tokens", Unit: "ratio", Low: some(1/(1+gain*1.12) - 1), Mid: some(1/(1+gain) - 1), High: some(1/(1+gain*0.82) - 1)},
		},
		Costs:    []string{"one restart: no requests are served while the model loads and warms up", fmt.Sprintf("time between tokens rises by about %.0f %%", slower*100)},
		Rejected: []engine.Rejected{{What: "a second replica", Why: "the KV pool of this one is 97 % empty"}},
		Risk:     1,
	}
	findings := []engine.Finding{
		{
			ID: engine.ConcurrencySaturation, Rule: "R5", Title: "Concurrency saturation", State: engine.Fired, Significant: true, Fired: 10, Judged: 10, Evaluable: 10,
			Confidence: 0.9, Impact: 4, Score: 3.6, Group: engine.GroupSlots, Fix: &fix,
			Reason: fmt.Sprintf("all %d slots taken, queue ratio %.0f %%", slots, 100*waiting/(waiting+float64(slots))),
			Evidence: []engine.Evidence{
				{Name: "running_mean", Value: some(float64(slots) - 0.1), Unit: "req", Op: ">=", Limit: some(float64(slots) - 0.5), Source: engine.FromMeasured, Text: fmt.Sprintf("%.1f ran at once on %d slots", float64(slots)-0.1, slots)},
				{Name: "queue_ratio", Value: some(waiting / (waiting + float64(slots))), Unit: "ratio", Op: ">=", Limit: some(0.3), Source: engine.FromMeasured, Text: fmt.Sprintf("%.0f waited, %.0f %% of all requests in the server", waiting, 100*waiting/(waiting+float64(slots)))},
				{Name: "kv_usage_peak", Value: some(kv * 1.12), Unit: "ratio", Op: "<", Limit: some(0.8), Source: engine.FromMeasured, Text: fmt.Sprintf("the KV pool was %.1f %% full at its peak", kv*112)},
			},
		},
		{
			ID: engine.LowPrefixReuse, Rule: "R3", Title: "Low prefix reuse", State: engine.Fired, Significant: true, Fired: 9, Judged: 10, Evaluable: 10,
			Confidence: 0.6, Impact: 2, Score: 1.2, Group: engine.GroupReuse, Reason: "3.4 % of prompt tokens come from the cache",
			Evidence: []engine.Evidence{{Name: "prefix_hit_rate", Value: some(0.034), Unit: "ratio", Op: "<", Limit: some(0.1), Source: engine.FromMeasured, Text: "3.4 % of the looked-up tokens were cached"}},
			Fix: &engine.Fix{
				Kind: engine.KindClient, Command: "put what prompts share at their beginning", Why: "Caching is on and finds almost nothing to share.",
				Withheld: "prefill takes 2 % of the time: nothing to gain here",
			},
		},
		{
			ID: engine.PrefillInterference, Rule: "beyond", Title: "Prefill interference", State: engine.Fired, Fired: 2, Judged: 10, Evaluable: 10,
			Confidence: 0.5, Impact: 1, Score: 0.5, Group: engine.GroupSlots, Reason: "fired in 2 of 10 windows: too few to act on",
		},
		{ID: engine.KVAdmission, Rule: "R2", Title: "KV cache pressure: admission backlog", State: engine.Suppressed, Fired: 0, Judged: 10, Evaluable: 10, Group: engine.GroupMemory, SuppressedBy: string(engine.ConcurrencySaturation), Reason: "the same cause as concurrency-saturation"},
		{ID: engine.UnderBatching, Rule: "R1", Title: "Under-batching", State: engine.NotFired, Judged: 10, Evaluable: 10, Group: engine.GroupLoad, Reason: "occupancy 99 % of the slots, limit 25 %"},
		{ID: engine.KVPressure, Rule: "R2", Title: "KV cache pressure", State: engine.NotFired, Judged: 10, Evaluable: 10, Group: engine.GroupMemory, Reason: fmt.Sprintf("KV usage peaks at %.1f %%, limit 88 %%", kv*112)},
		{ID: engine.OOMRisk, Rule: "R4", Title: "OOM risk", State: engine.NotFired, Judged: 10, Evaluable: 10, Group: engine.GroupMemory, Reason: "VRAM peaks at 90 %, limit 97 %"},
		{ID: engine.TokenBudget, Rule: "beyond", Title: "Token budget", State: engine.NotFired, Judged: 10, Evaluable: 10, Group: engine.GroupSlots, Reason: "prefill waits 4 ms for its tokens, limit 50 ms"},
		{ID: engine.Stuck, Rule: "beyond", Title: "Stuck engine", State: engine.NotFired, Judged: 10, Evaluable: 10, Group: engine.GroupHost, Reason: "tokens moved in every window"},
		{ID: engine.SlowSteps, Rule: "beyond", Title: "Slow steps", State: engine.NotFired, Judged: 10, Evaluable: 10, Group: engine.GroupHost, Reason: "steps take 1.2 of what this hardware needs, limit 2.0"},
		{ID: engine.FrontEnd, Rule: "beyond", Title: "Front end", State: engine.NotFired, Judged: 10, Evaluable: 10, Group: engine.GroupHost, Reason: "11 ms outside the engine, limit 100 ms"},
		{ID: engine.PowerLimit, Rule: "beyond", Title: "Power or temperature limit", State: engine.NotEvaluable, Group: engine.GroupHardware, Missing: []string{"the GPU's throttle reasons"}, Reason: "needs the GPU's throttle reasons"},
		{ID: engine.DPImbalance, Rule: "beyond", Title: "Uneven data-parallel ranks", State: engine.NotFired, Judged: 10, Evaluable: 10, Group: engine.GroupLoad, Reason: "one rank"},
	}
	return findings, &engine.Recommendation{Finding: engine.ConcurrencySaturation, Fix: fix, Launch: fmt.Sprintf(fixtureLaunch, to)}
}

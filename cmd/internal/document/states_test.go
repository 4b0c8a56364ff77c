package document_test

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
)

func slots() *engine.Diagnosis {
	d := llama(2, 128)
	d.Measured = put(figures{
		"generation_tokens_per_s": 3297.4, "prompt_tokens_per_s": 612.3, "requests_per_s": 3.117, "running_mean": 127.93, "waiting_mean": 127.6,
		"kv_usage_mean": .2214, "kv_usage_peak": .226, "preemptions_per_s": 0, "prefix_hit_rate": .9795, "prompt_tokens_mean": 1964,
		"ttft_mean_s": 39.92, "ttft_p99_s": 78.4, "tpot_mean_s": .0382, "tpot_p99_s": .0488, "itl_mean_s": .0385, "itl_p99_s": .0742,
		"e2e_mean_s": 80.6, "queue_mean_s": 39.7, "prefill_mean_s": .184, "decode_mean_s": 40.68, "front_end_mean_s": .0361, "preemption_lost_s": 0,
		"step_time_s": .0385, "missed_ticks": 0, "usd_per_million_tokens": 1.0109, "recoverable_usd_per_hour": 10.9, "output_tokens_mean": 1058,
		"total_generation_tokens": 1.2e6, "total_requests": 1134,
	}, priced, noGPU)
	d.Ceiling = engine.Ceiling{Classic: classicOf(128, 3297), Physical: physical(7210, 4480, .457, .0385, "weights", roofline.Terms{Weights: .0118, KV: .0079, Collectives: .0031, Fixed: .0058})}
	d.Ceiling.Physical.BestTokensPerS, d.Ceiling.Physical.BestBatch = some(3310), some(128)
	fix := engine.Fix{
		Kind: engine.KindFlag, Flag: "--max-num-seqs", From: "128", To: "256",
		Command: "in the launch command change --max-num-seqs 128 to 256, and restart",
		Why:     "All 128 slots were taken in 15 of 15 windows while 128 requests waited, and the KV pool peaks at 23 %: it holds 570 sequences of 2,450 tokens. 256 slots hold those that run and those that wait.",
		Predicted: []engine.Prediction{
			predict("generation_tokens_per_s", .26, .45, .52), predict("ttft_mean_s", -.99, -.97, -.6), predict("itl_mean_s", .31, .38, .58),
			predict("usd_per_million_tokens", -.34, -.31, -.21),
		},
		Costs: []string{"one restart: no requests are served while the model loads and warms up", "time between tokens rises by about 38 %"},
		Rejected: []engine.Rejected{
			{What: "lower --max-model-len", Why: "frees nothing in V1: blocks are taken as a sequence grows"},
			{What: "a second replica", Why: "the KV pool of this one is 78 % empty; slots are free"},
		},
	}
	d.Findings = append([]engine.Finding{
		{
			ID: engine.ConcurrencySaturation, Rule: "R5", Title: "Concurrency saturation", State: engine.Fired, Significant: true, Fired: 15, Judged: 15, Evaluable: 15,
			Confidence: .9, Impact: 4, Score: 3.6, Group: engine.GroupSlots, Reason: "127.9 of 128 slots taken, 50 % of the requests queue, KV peak 23 %",
			Evidence: []engine.Evidence{
				{Name: "running_mean", Value: some(127.93), Unit: "req", Limit: some(127.5), Op: ">=", Source: engine.FromMeasured, Text: "every slot is taken"},
				{Name: "queue_ratio", Value: some(.4994), Unit: "ratio", Limit: some(.3), Op: ">=", Source: engine.FromMeasured, Text: "half of the requests wait"},
				{Name: "kv_usage_peak", Value: some(.226), Unit: "ratio", Limit: some(.8), Op: "<", Source: engine.FromMeasured, Text: "the pool has room for more"},
			}, Fix: &fix,
		},
		{
			ID: engine.KVAdmission, Rule: "R2", Title: "Requests wait for KV blocks", State: engine.Suppressed, Judged: 15, Evaluable: 15, Group: engine.GroupMemory,
			SuppressedBy: "concurrency-saturation", Reason: "the same cause as concurrency-saturation",
		},
	}, append(quiet(engine.UnderBatching, engine.KVPressure, engine.LowPrefixReuse, engine.OOMRisk, engine.TokenBudget, engine.Stuck, engine.SlowSteps, engine.FrontEnd, engine.DPImbalance), blind()...)...)
	d.Recommendation = &engine.Recommendation{Finding: engine.ConcurrencySaturation, Fix: fix}
	d.Recommendation.Launch = strings.Replace(d.Facts.Launch, "--max-num-seqs 128", "--max-num-seqs 256", 1)
	d.Outcome = engine.OutcomeRecommendation
	return d
}

// kvBound preempts: the pool of one GPU is full, as read with NVML.
func kvBound() *engine.Diagnosis {
	d := llama(1, 256)
	d.Missing = nil
	d.Facts.GPUName.Source = engine.FromGPU
	d.Facts.CostPerHour, d.Facts.CostEst = engine.Know(5.2, engine.FromFlag, ""), false
	d.Measured = put(figures{
		"generation_tokens_per_s": 1880, "prompt_tokens_per_s": 9120, "requests_per_s": 4.3, "running_mean": 223.4, "waiting_mean": 31.9,
		"kv_usage_mean": .978, "kv_usage_peak": .9983, "preemptions_per_s": 13.9, "prompt_tokens_mean": 2110,
		"ttft_mean_s": 5.02, "ttft_p99_s": 19.2, "tpot_mean_s": .0972, "tpot_p99_s": .1511, "itl_mean_s": .0968, "itl_p99_s": .22,
		"e2e_mean_s": 57.1, "queue_mean_s": 4.31, "prefill_mean_s": .66, "decode_mean_s": 52.1, "front_end_mean_s": .021, "preemption_lost_s": 8.4,
		"step_time_s": .0968, "missed_ticks": 0, "usd_per_million_tokens": .768, "recoverable_usd_per_hour": 4.1,
		"gpu_util": .994, "mem_util": .61, "dram_util": .38, "power_w": 871, "power_limit_w": 1000, "throttled": 0,
		"vram_total_bytes": 192.3e9, "vram_used_bytes": 176.9e9, "vram_peak_bytes": 178.1e9, "temperature_c": 71, "sm_clock_mhz": 1965,
		"tokens_per_watt": 2.158, "joules_per_token": .4633, "temperature_peak_c": 83,
	}, map[string]engine.Origin{"tokens_per_watt": engine.Derived, "joules_per_token": engine.Derived, "usd_per_million_tokens": engine.Derived, "recoverable_usd_per_hour": engine.Estimate}, func(name string) string {
		if name == "prefix_hit_rate" {
			return "inflated: 4.4 lookups per prompt token, requests are looked up again while admission is blocked"
		}
		return noGPU(name)
	})
	var g engine.GPUSummary
	g.Name, g.UUID, g.ThrottleOK, g.Throttle = "NVIDIA B200", "GPU-1c6b2c7e-6a0d-4f0e-9a57-6f6a3d2b1e11", true, 0x4
	for f, v := range map[engine.GPUField][3]float64{
		engine.GPUUtil: {.99, .994, 1}, engine.GPUMemUtil: {.6, .61, .74}, engine.GPUPowerW: {880, 871, 955}, engine.GPUPowerLimitW: {1000, 1000, 1000},
		engine.GPUVRAMTotal: {192.3e9, 192.3e9, 192.3e9}, engine.GPUVRAMUsed: {176.9e9, 176.8e9, 178.1e9}, engine.GPUTemperatureC: {71, 70, 83},
		engine.GPUSMClockMHz: {1965, 1962, 1965}, engine.GPUMemClockMHz: {3996, 3996, 3996}, engine.GPUEnergyJ: {8.1e8, 8.1e8, 8.1e8}, engine.GPUDRAMActive: {.39, .38, .44},
		engine.GPUPCIeRxBps: {2.1e8, 1.9e8, 4e8},
	} {
		g.Last[f], g.Mean[f], g.Peak[f] = some(v[0]), some(v[1]), some(v[2])
	}
	d.GPUs = []engine.GPUSummary{g}
	d.Ceiling = engine.Ceiling{Classic: classicOf(223, 1880), Physical: physical(5910, 3370, .318, .0968, "kv", roofline.Terms{Weights: .0093, KV: .0441, Fixed: .0081, Attention: .0048})}
	fix := engine.Fix{
		Kind: engine.KindFlag, Flag: "--max-num-seqs", From: "256", To: "176",
		Command: "in the launch command change --max-num-seqs 256 to 176, and restart",
		Why:     "The KV pool is 98 % full and 13.9 requests a second are preempted and computed again. It holds 180 sequences at the 3,960 tokens they end with; 256 are let in.",
		Predicted: []engine.Prediction{
			predict("generation_tokens_per_s", -.01, .12, .19),
			{Metric: "ttft_mean_s", Unit: "ratio"},
			{Metric: "itl_mean_s", Unit: "ratio", Low: some(-.2)},
			predict("usd_per_million_tokens", -.16, -.11, .01),
		},
		Costs:    []string{"one restart: no requests are served while the model loads and warms up", "80 more requests wait in the queue instead of in the batch"},
		Rejected: []engine.Rejected{{What: "--kv-cache-dtype fp8", Why: "the cache is fp8 already"}, {What: "--gpu-memory-utilization 0.95", Why: "adds 9.0 GB, 5 % of the pool: less than the 42 % that are missing"}},
	}
	d.Findings = append([]engine.Finding{
		{
			ID: engine.KVPressure, Rule: "R2", Title: "KV cache pressure", State: engine.Fired, Significant: true, Fired: 15, Judged: 15, Evaluable: 15,
			Confidence: .95, Impact: 5, Score: 4.75, Group: engine.GroupMemory, Reason: "13.9 preemptions a second; KV usage peaks at 99.8 %, VRAM at 93 %", Fix: &fix,
		},
		{
			ID: engine.LowPrefixReuse, Rule: "R3", Title: "Low prefix reuse", State: engine.Fired, Significant: true, Fired: 9, Judged: 15, Evaluable: 15,
			Confidence: .9, Impact: 2, Score: 1.8, Group: engine.GroupReuse, Reason: "hit rate 21 %, limit 35 %",
			Fix: &engine.Fix{Kind: engine.KindClient, Command: "put shared instructions first", Withheld: "the counters are inflated while admission is blocked"},
		},
		{
			ID: engine.SlowSteps, Rule: "beyond", Title: "Slow steps", State: engine.Fired, Fired: 1, Judged: 15, Evaluable: 15,
			Confidence: .6, Impact: 4, Group: engine.GroupHost, Reason: "fired in 1 of 15 windows: too few to act on",
		},
	}, quiet(engine.UnderBatching, engine.OOMRisk, engine.ConcurrencySaturation, engine.TokenBudget, engine.Stuck, engine.FrontEnd, engine.PowerLimit, engine.DPImbalance)...)
	d.Recommendation = &engine.Recommendation{Finding: engine.KVPressure, Fix: fix}
	d.Outcome = engine.OutcomeRecommendation
	return d
}

func client() *engine.Diagnosis {
	d := llama(1, 16)
	d.Measured = put(figures{
		"generation_tokens_per_s": 884, "prompt_tokens_per_s": 3010, "requests_per_s": 1.37, "running_mean": 15.9, "waiting_mean": 0,
		"kv_usage_mean": .081, "kv_usage_peak": .094, "preemptions_per_s": 0, "prefix_hit_rate": .67, "prompt_tokens_mean": 2190,
		"ttft_mean_s": .211, "ttft_p99_s": .74, "tpot_mean_s": .0179, "tpot_p99_s": .0213, "itl_mean_s": .018, "itl_p99_s": .0245,
		"e2e_mean_s": 11.6, "queue_mean_s": .0002, "prefill_mean_s": .19, "decode_mean_s": 11.37, "front_end_mean_s": .0208, "preemption_lost_s": 0,
		"step_time_s": .018, "missed_ticks": 0, "usd_per_million_tokens": 1.885, "recoverable_usd_per_hour": 3.1,
	}, priced, noGPU)
	d.Ceiling = engine.Ceiling{Classic: classicOf(16, 884), Physical: physical(2110, 1240, .42, .018, "weights", roofline.Terms{Weights: .0081, KV: .0009, Fixed: .0039})}
	d.Ceiling.Physical.BestTokensPerS, d.Ceiling.Physical.BestBatch = some(3370), some(180)
	fix := engine.Fix{
		Kind: engine.KindClient, Command: "send at least 64 requests at once; the server has room for 180",
		Why:       "16 requests run at a time and none waits: every step reads all weights for 16 sequences, where the KV pool holds 180 and compute binds above 590 tokens a step.",
		Predicted: []engine.Prediction{predict("generation_tokens_per_s", 1.1, 2.2, 2.5), predict("usd_per_million_tokens", -.71, -.69, -.52), predict("itl_mean_s", .1, .3, .4)},
		Costs:     []string{"nothing on the server; each request's tokens come about 30 % slower"},
	}
	d.Findings = append([]engine.Finding{{
		ID: engine.UnderBatching, Rule: "R1", Title: "Under-batching", State: engine.Fired, Significant: true, Fired: 15, Judged: 15, Evaluable: 15,
		Confidence: .8, Impact: 5, Score: 4, Group: engine.GroupLoad, Reason: "15.9 running, less than 25 % of the 180 that the pool holds; 0 waiting", Fix: &fix,
	}}, append(quiet(engine.KVPressure, engine.KVAdmission, engine.OOMRisk, engine.ConcurrencySaturation), blind()...)...)
	d.Recommendation = &engine.Recommendation{Finding: engine.UnderBatching, Fix: fix}
	d.Outcome = engine.OutcomeRecommendation
	return d
}

func healthy() *engine.Diagnosis {
	d := llama(4, 512)
	d.Measured = put(figures{
		"generation_tokens_per_s": 9348, "prompt_tokens_per_s": 31200, "requests_per_s": 14.2, "running_mean": 509.7, "waiting_mean": .2,
		"kv_usage_mean": .31, "kv_usage_peak": .334, "preemptions_per_s": 0, "prefix_hit_rate": .71, "prompt_tokens_mean": 2201,
		"ttft_mean_s": .61, "ttft_p99_s": 2.9, "tpot_mean_s": .0541, "tpot_p99_s": .069, "itl_mean_s": .0544, "itl_p99_s": .0987,
		"e2e_mean_s": 36.1, "queue_mean_s": .012, "prefill_mean_s": .54, "decode_mean_s": 35.5, "front_end_mean_s": .058, "preemption_lost_s": 0,
		"step_time_s": .0544, "missed_ticks": 0, "usd_per_million_tokens": .7132, "recoverable_usd_per_hour": 20,
	}, priced, noGPU)
	d.Ceiling = engine.Ceiling{Classic: classicOf(510, 9348), Physical: physical(20150, 10310, .464, .0544, "kv", roofline.Terms{Weights: .0061, KV: .0201, Collectives: .0107, Fixed: .0104})}
	d.Findings = append(quiet(engine.UnderBatching, engine.KVPressure, engine.KVAdmission, engine.LowPrefixReuse, engine.OOMRisk, engine.ConcurrencySaturation, engine.TokenBudget, engine.Stuck, engine.SlowSteps, engine.FrontEnd, engine.DPImbalance), blind()...)
	d.Outcome = engine.OutcomeHealthy
	return d
}

func slowSteps() *engine.Diagnosis {
	d := llama(8, 256)
	d.Measured = put(figures{
		"generation_tokens_per_s": 589, "prompt_tokens_per_s": 1740, "requests_per_s": .83, "running_mean": 255.1, "waiting_mean": 0,
		"kv_usage_mean": .1, "kv_usage_peak": .11, "preemptions_per_s": 0, "prefix_hit_rate": .7, "prompt_tokens_mean": 2120,
		"ttft_mean_s": 9.7, "ttft_p99_s": 38.1, "tpot_mean_s": .433, "itl_mean_s": .4331, "itl_p99_s": .97, "step_time_s": .4331, "missed_ticks": 0,
		"usd_per_million_tokens": 22.64,
	}, priced, func(name string) string {
		switch name {
		case "e2e_mean_s", "queue_mean_s", "prefill_mean_s", "decode_mean_s", "tpot_p99_s":
			return "no request finished while it was measured"
		case "front_end_mean_s":
			return "needs TTFT, queue and prefill times of finished requests"
		}
		return noGPU(name)
	})
	for i := range d.Measured {
		if d.Measured[i].Name == "tpot_mean_s" {
			d.Measured[i].Note = "since start: nothing was observed in the run"
		}
	}
	d.Ceiling = engine.Ceiling{ClassicReason: "needs a model of the catalog", Physical: physical(14100, 7050, .0418, .4331, "fixed", roofline.Terms{Weights: .0031, KV: .0052, Collectives: .0135, Fixed: .0144})}
	fix := engine.Fix{
		Kind: engine.KindHost, Command: "look for what shares the GPUs or the host with this server, or slows the KV offload; nvidia-smi dmon and top show it",
		Why:       "A step takes 433 ms where this model, batch and context need 36 ms: 12 times slower, with ordinary gauges. No setting that the page shows explains it.",
		Predicted: []engine.Prediction{{Metric: "generation_tokens_per_s", Unit: "ratio", High: some(11)}},
	}
	d.Findings = append([]engine.Finding{{
		ID: engine.SlowSteps, Rule: "beyond", Title: "Slow steps", State: engine.Fired, Significant: true, Fired: 15, Judged: 15, Evaluable: 15,
		Confidence: .8, Impact: 5, Score: 4, Group: engine.GroupHost, Reason: "433 ms measured, 36 ms achievable", Fix: &fix,
	}}, append(quiet(engine.UnderBatching, engine.KVPressure), blind()...)...)
	d.Recommendation = &engine.Recommendation{Finding: engine.SlowSteps, Fix: fix}
	d.Outcome = engine.OutcomeRecommendation
	return d
}

// cpu is a small model on a CPU: no GPU, no catalog entry, no price.
func cpu() *engine.Diagnosis {
	d := llama(1, 4)
	d.Target = engine.Target{URL: "http://127.0.0.1:8000/metrics", Engine: "vllm", EngineVersion: "0.32.0", Model: "rooftop-tiny"}
	f := &d.Facts
	f.Device = engine.Know("cpu", engine.FromMetrics, "")
	f.GPUName, f.GPUCount = engine.Fact[string]{Note: "the server runs on a CPU"}, engine.Fact[int]{Note: "the server runs on a CPU"}
	f.CostPerHour, f.CostEst = engine.Fact[float64]{Note: "give --cost-per-hour"}, false
	f.WeightDType, f.KVCacheDType = engine.Know("bf16", engine.FromConfig, "config.json"), engine.Know("bf16", engine.FromDerived, "auto: as the weights")
	f.Quantization = engine.Know("", engine.FromDefault, "none")
	f.KVCapacityTokens = engine.Know(1_048_576.0, engine.FromMetrics, "")
	f.MaxModelLen = engine.Know(512, engine.FromServer, "")
	f.Launch, f.GPUKnown, f.ClassicBytes = "python -m vllm.entrypoints.openai.api_server --model rooftop-tiny --max-num-seqs 4", false, 0
	d.Measured = put(figures{
		"generation_tokens_per_s": 1210, "prompt_tokens_per_s": 811, "requests_per_s": 25.3, "running_mean": 3.97, "waiting_mean": 27.8,
		"kv_usage_mean": .0004, "kv_usage_peak": .0006, "preemptions_per_s": 0, "prefix_hit_rate": 0, "prompt_tokens_mean": 32,
		"ttft_mean_s": 1.12, "ttft_p99_s": 1.31, "tpot_mean_s": .00321, "tpot_p99_s": .0049, "itl_mean_s": .0032, "itl_p99_s": .0078,
		"e2e_mean_s": 1.27, "queue_mean_s": 1.1, "prefill_mean_s": .0041, "decode_mean_s": .15, "front_end_mean_s": .0159, "preemption_lost_s": 0,
		"step_time_s": .0032, "missed_ticks": 2,
	}, nil, func(name string) string {
		if name == "usd_per_million_tokens" {
			return "no price is known: give --cost-per-hour"
		}
		return noGPU(name)
	})
	d.Ceiling = engine.Ceiling{ClassicReason: "needs a GPU of the catalog (the server runs on a CPU)", PhysicalReason: "needs a GPU of the catalog (the server runs on a CPU); a --catalog file can describe it"}
	fix := engine.Fix{
		Kind: engine.KindFlag, Flag: "--max-num-seqs", From: "4", To: "32", Command: "in the launch command change --max-num-seqs 4 to 32, and restart",
		Why:       "All 4 slots were taken in 14 of 15 windows while 28 requests waited, and the KV pool is empty. 32 slots hold those that run and those that wait.",
		Predicted: []engine.Prediction{{Metric: "generation_tokens_per_s", Unit: "ratio"}, {Metric: "ttft_mean_s", Unit: "ratio", Low: some(-.5)}},
		Costs:     []string{"one restart: no requests are served while the model loads and warms up"},
	}
	d.Findings = append([]engine.Finding{{
		ID: engine.ConcurrencySaturation, Rule: "R5", Title: "Concurrency saturation", State: engine.Fired, Significant: true, Fired: 14, Judged: 15, Evaluable: 15,
		Confidence: .9, Impact: 4, Score: 3.6, Group: engine.GroupSlots, Reason: "4 of 4 slots taken, 88 % of the requests queue, KV peak 0.1 %", Fix: &fix,
	}}, append(quiet(engine.UnderBatching, engine.KVPressure), blind()...)...)
	d.Recommendation = &engine.Recommendation{Finding: engine.ConcurrencySaturation, Fix: fix}
	d.Outcome = engine.OutcomeRecommendation
	d.Notes = []string{
		"interrupted after 30 s of 2 min: this is what was measured so far",
		"the server restarted once during the run; windows across a restart are left out",
		"rooftop missed 2 of 120 ticks: this host is short of CPU",
	}
	d.Target.Simulated = true
	return d
}

func noLoad() *engine.Diagnosis {
	d := llama(1, 256)
	d.Windows.Active = 0
	d.Measured = put(figures{"kv_usage_mean": 0, "kv_usage_peak": 0, "missed_ticks": 0}, nil, func(name string) string {
		if s := noGPU(name); s != "the page does not have it" {
			return s
		}
		return "no window in which the server was working"
	})
	d.Ceiling = engine.Ceiling{ClassicReason: "no request was running", PhysicalReason: "no request was running"}
	d.Findings = append(quiet(engine.UnderBatching, engine.KVPressure), blind()...)
	d.Outcome = engine.OutcomeNoLoad
	return d
}

func notEvaluable() *engine.Diagnosis {
	d := noLoad()
	d.Windows = engine.WindowCounts{Collected: 4}
	d.Duration = 8 * time.Second
	d.Measured = put(nil, nil, func(string) string { return "no window could be evaluated" })
	d.Findings = blind()
	d.Outcome = engine.OutcomeNotEvaluable
	w := &engine.Window{Polls: 3, Failed: 6, Why: "the page has no vllm:num_requests_running", Waiting: some(3)}
	w.Rate[engine.CounterGenerationTokens] = some(140)
	d.LastRaw = w
	d.Missing = append(d.Missing, engine.Missing{What: "vLLM page", Reason: "6 of 9 scrapes timed out after 2 s", Effect: "nothing can be judged"})
	return d
}

func impossible() *engine.Diagnosis {
	d := healthy()
	d.Ceiling.Impossible = "measured 9348 tok/s is above the ideal ceiling of 5120 tok/s: model, GPU, dtype or tensor parallelism is misread (nvidia/Llama-3.3-70B-Instruct-FP4, bf16 weights, NVIDIA B200, TP 4)"
	d.Ceiling.Physical.IdealTokensPerS, d.Ceiling.Physical.Efficiency = some(5120), some(1.83)
	d.Facts.Conflicts = []string{"--tensor-parallel-size 4 was given, the command line says 8"}
	return d
}

// mla is a mixture of experts on four GPUs with an unreliable hit rate.
func mla() *engine.Diagnosis {
	d := kvBound()
	d.Target.Model = "nvidia/DeepSeek-R1-0528-FP4"
	d.Facts.Model = engine.Know(d.Target.Model, engine.FromMetrics, "")
	d.Facts.TensorParallel, d.Facts.GPUCount = engine.Know(4, engine.FromCmdline, ""), engine.Know(4, engine.FromGPU, "")
	one := d.GPUs[0]
	for i := 1; i < 4; i++ {
		g := one
		g.Index, g.Throttle = i, 0
		d.GPUs = append(d.GPUs, g)
	}
	return d
}

// states are the diagnoses of the golden files.
func states() map[string]func() *engine.Diagnosis {
	return map[string]func() *engine.Diagnosis{
		"slots": slots, "kv": kvBound, "client": client, "healthy": healthy, "slow-steps": slowSteps, "cpu": cpu,
		"no-load": noLoad, "not-evaluable": notEvaluable, "impossible": impossible, "mla": mla,
	}
}

package tui

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// fixtures are the snapshots that frames are drawn from, by name, in order.
func fixtures() []namedSnapshot {
	return []namedSnapshot{
		{"starting", nil},
		{"empty", &engine.Snapshot{}},
		{"looking", lookingSnapshot()},
		{"statsoff", statsOffSnapshot()},
		{"baseline", baselineSnapshot()},
		{"waiting", waitingSnapshot()},
		{"settling", settlingSnapshot()},
		{"measuring", measuringSnapshot()},
		{"worse", worseSnapshot()},
		{"reverting", revertingSnapshot()},
		{"down", downSnapshot()},
		{"late", lateSnapshot()},
		{"idle", idleSnapshot()},
		{"nogpu", noGPUSnapshot()},
		{"paused", pausedSnapshot()},
		{"healthy", healthySnapshot()},
		{"finished", finishedSnapshot()},
		{"long", longSnapshot()},
	}
}

type namedSnapshot struct {
	name string
	s    *engine.Snapshot
}

func some(v float64) stat.Opt { return stat.Some(v) }

const (
	fixtureModel  = "meta-llama/Llama-3.1-8B-Instruct"
	fixtureURL    = "http://localhost:8000"
	fixtureLaunch = "vllm serve meta-llama/Llama-3.1-8B-Instruct --port 8000 --max-num-seqs %d --gpu-memory-utilization 0.90 --max-model-len 8192"
)

func fixtureStart() time.Time { return time.Date(2026, 3, 4, 14, 0, 0, 0, time.UTC) }

// waitingSnapshot is five minutes into a run: a first change (8 → 16 seats) was
// kept, a second one (the token budget) gained nothing, and a recommendation
// stands: 16 → 40 seats.
func waitingSnapshot() *engine.Snapshot {
	const now = 312*time.Second + 250*time.Millisecond
	live := diagnosisAt(16, 24)
	s := &engine.Snapshot{
		Seq: 1249, Now: now, Started: fixtureStart(), Version: "0.1.0", Watch: fixtureURL,
		Phase: engine.PhaseWaiting, Since: 246 * time.Second,
		Progress: engine.Progress{Elapsed: now - 246*time.Second, Text: "waits for the server to be restarted with --max-num-seqs 40"},
		Attached: true, Target: live.Target, Facts: live.Facts, Launch: live.Facts.Launch, Kept: live.Facts.Launch,
		Missing: []engine.Missing{{What: "DRAM activity", Reason: "GPM needs Hopper or newer", Effect: "dram_util is absent; memory bandwidth use is estimated"}},
		Notes:   []string{"the server runs on this machine: its launch command is read anew at every restart"},
		Page:    fixturePage(now, 16, 24), GPU: fixtureGPU(now), Processes: fixtureProcesses(),
		Sources: freshSources(now),
		Live:    live, Baseline: diagnosisAt(16, 24), Advice: live.Recommendation, Firm: true,
		Iterations: fixtureIterations(), Noise: []float64{0.021, -0.013},
		Points: fixturePoints(now), Marks: fixtureMarks(), Journal: fixtureJournal(),
	}
	s.Can = available(map[engine.Command]string{
		engine.CommandApply:    "rooftop did not start this server and does not restart it: type the command, rooftop notices.",
		engine.CommandRevert:   "There is nothing to go back to: the last change was kept.",
		engine.CommandContinue: "There is no question open.",
	})
	return s
}

// available is every command but those that have a reason.
func available(not map[engine.Command]string) (can [engine.NumCommands]engine.Availability) {
	for c := range engine.NumCommands {
		why := not[c]
		can[c] = engine.Availability{OK: why == "", Why: why}
	}
	return can
}

// diagnosisAt is an 8B model on one A100 with some seats, of which all are taken
// while requests wait. The figures hang together: step time, rates, pool.
func diagnosisAt(seats int, waiting float64) *engine.Diagnosis {
	running := float64(seats) - 0.1
	step := 0.0113 + 0.000105*running // s
	out := running / step
	const output, prompt = 256.0, 512.0
	reqs := out / output
	queue := waiting / reqs
	decode := step * output
	prefill := 0.062
	ttft := queue + prefill + 0.011
	kv := running * (prompt + output/2) / 417_000
	facts := fixtureFacts(seats)
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
		n := engine.NamedQuantity{Name: name, Quantity: engine.Quantity{Unit: fixtureUnit(name), Source: fixtureOrigin(name)}}
		if v, ok := q[name]; ok {
			n.Value = some(v)
		} else {
			n.Reason = "the page does not have it"
		}
		d.Measured = append(d.Measured, n)
	}
	d.Curve = curveOf(seats, running, out)
	reach := d.Curve.Now.Achievable.V
	ideal := d.Curve.Now.Ideal.V
	d.Ceiling.Physical = &roofline.Operating{
		IdealTokensPerS: some(ideal), AchievableTokensPerS: some(reach), AchievableLower: some(reach * 0.85), AchievableUpper: some(reach * 1.1),
		Efficiency: some(out / ideal), Binding: "weights",
		TermsS:      roofline.Terms{Weights: 0.0092, KV: 0.0004, Compute: 0.0006, Fixed: 0.0011},
		IdealTermsS: roofline.Terms{Weights: 0.0079, KV: 0.0003, Compute: 0.0004},
		StepIdealS:  running / ideal, StepAchievableS: running / reach, Calibration: some(reach / out), CalibrationRaw: some(reach / out),
		Batch: running, Context: 640, StepTokens: running + 30, RidgeTokens: 165,
		BestTokensPerS: some(out * 2.2), BestBatch: 40,
		Assumptions: []string{"kernel efficiency of an A100 is taken from published runs of this model size"},
	}
	d.Ceiling.Classic = &roofline.Classic{
		DecodeTokensPerS: some(127), DecodeLower: some(108), DecodeUpper: some(133), PrefillTokensPerS: some(12.6), RidgeBatch: some(153),
		AggregateTokensPerS: some(127 * running), Efficiency: some(out / (127 * running)), Headroom: some(1 - out/(127*running)),
		WeightGB: some(16.1), KVHeadroomGB: some(55.2), TPOTFloorS: some(1 / 127.0), RecoverableUSDPerHour: some(0.86), BytesPerParam: some(2), BytesPerParamFrom: "catalog",
	}
	to := 40
	if seats == 8 {
		to = 16
	}
	d.Findings, d.Recommendation = fixtureFindings(seats, to, waiting, kv)
	return d
}

func fixtureOrigin(name string) engine.Origin {
	switch name {
	case "usd_per_million_tokens", "recoverable_usd_per_hour":
		return engine.Estimate
	case "front_end_mean_s", "preemption_lost_s", "tokens_per_watt", "joules_per_token":
		return engine.Derived
	}
	return engine.Measured
}

func fixtureUnit(name string) string {
	units := []struct {
		unit  string
		names []string
	}{
		{"tok/s", []string{"generation_tokens_per_s", "prompt_tokens_per_s", "prefill_tokens_per_s"}},
		{"req/s", []string{"requests_per_s"}},
		{"req", []string{"running_mean", "waiting_mean", "waiting_deferred_mean", "swapped_mean", "total_requests"}},
		{"ratio", []string{"kv_usage_mean", "kv_usage_peak", "prefix_hit_rate", "gpu_util", "mem_util", "dram_util", "throttled", "cpu_kv_usage_mean", "external_hit_rate", "lookup_ratio", "prefill_share", "spec_acceptance", "api_server_cpu"}},
		{"1/s", []string{"preemptions_per_s", "http_4xx_per_s", "rejections_per_s", "http_5xx_per_s"}},
		{"tok", []string{"prompt_tokens_mean", "output_tokens_mean", "total_generation_tokens"}},
		{"W", []string{"power_w", "power_limit_w"}},
		{"B", []string{"vram_total_bytes", "vram_used_bytes", "vram_peak_bytes"}},
		{"C", []string{"temperature_c", "temperature_peak_c"}},
		{"MHz", []string{"sm_clock_mhz"}},
		{"tok/s/W", []string{"tokens_per_watt"}},
		{"J", []string{"joules_per_token"}},
		{"USD", []string{"usd_per_million_tokens"}},
		{"USD/h", []string{"recoverable_usd_per_hour"}},
		{"", []string{"missed_ticks"}},
	}
	for _, u := range units {
		if slices.Contains(u.names, name) {
			return u.unit
		}
	}
	return "s"
}

func fixtureFacts(seats int) engine.Facts {
	return engine.Facts{
		Engine: engine.Know("vllm", engine.FromMetrics, ""), EngineVersion: engine.Know("0.11.0", engine.FromServer, ""),
		Model: engine.Know(fixtureModel, engine.FromMetrics, ""), ModelPath: engine.Know(fixtureModel, engine.FromCmdline, ""),
		Device:               engine.Know("cuda", engine.FromDerived, ""),
		MaxNumSeqs:           engine.Know(seats, engine.FromCmdline, ""),
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
		ClassicBytes: 2, ClassicBytesFrom: "catalog", Local: true, PID: 4120, Launch: fmt.Sprintf(fixtureLaunch, seats),
	}
}

func curveOf(seats int, running, out float64) *engine.Curve {
	at := func(n float64) engine.CurvePoint {
		step := 0.0113 + 0.000105*n
		reach := n / (0.0096 + 0.000075*n)
		ideal := n / (0.0079 + 0.00005*n)
		return engine.CurvePoint{Running: n, Expected: n / step, Achievable: some(reach), Ideal: some(ideal)}
	}
	c := &engine.Curve{Seats: some(float64(seats)), Pool: some(543), Ridge: some(153)}
	for _, n := range []float64{1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 224, 256} {
		c.Points = append(c.Points, at(n))
	}
	c.Now = at(running)
	c.Now.Expected = out
	return c
}

func fixtureFindings(seats, to int, waiting, kv float64) ([]engine.Finding, *engine.Recommendation) {
	step := func(n int) float64 { return 0.0113 + 0.000105*float64(n) }
	gain := float64(to)/step(to)/(float64(seats)/step(seats)) - 1
	slower := step(to)/step(seats) - 1
	fix := engine.Fix{
		Kind: engine.KindFlag, Flag: "--max-num-seqs", From: fmt.Sprint(seats), To: fmt.Sprint(to),
		Command: fmt.Sprintf("in the launch command change --max-num-seqs %d to %d, and restart", seats, to),
		Why:     fmt.Sprintf("All %d seats are taken while %.0f requests wait, and the KV pool peaks at %.1f %%: it holds 543 sequences of 768 tokens.", seats, waiting, kv*112),
		Predicted: []engine.Prediction{
			{Metric: "generation_tokens_per_s", Unit: "ratio", Low: some(gain * 0.82), Mid: some(gain), High: some(gain * 1.12)},
			{Metric: "ttft_mean_s", Unit: "ratio", Low: some(-0.98), Mid: some(-0.93), High: some(-0.8)},
			{Metric: "itl_mean_s", Unit: "ratio", Low: some(slower * 0.7), Mid: some(slower), High: some(slower * 1.5)},
			{Metric: "usd_per_million_tokens", Unit: "ratio", Low: some(1/(1+gain*1.12) - 1), Mid: some(1/(1+gain) - 1), High: some(1/(1+gain*0.82) - 1)},
		},
		Price:    []string{"one restart: no request is served while the model loads and warms up", fmt.Sprintf("time between tokens rises by about %.0f %%", slower*100)},
		Rejected: []engine.Rejected{{What: "a second replica", Why: "the KV pool of this one is 97 % empty"}},
		Risk:     1,
	}
	findings := []engine.Finding{
		{
			ID: engine.SeatSaturation, Rule: "R5", Title: "Seat saturation", State: engine.Fired, Significant: true, Fired: 10, Evaluable: 10,
			Confidence: 0.9, Impact: 4, Score: 3.6, Group: engine.GroupSeats, Fix: &fix,
			Reason: fmt.Sprintf("all %d seats taken, queue ratio %.0f %%", seats, 100*waiting/(waiting+float64(seats))),
			Evidence: []engine.Evidence{
				{Name: "running_mean", Value: some(float64(seats) - 0.1), Unit: "req", Op: ">=", Limit: some(float64(seats) - 0.5), Source: engine.FromMeasured, Text: fmt.Sprintf("%.1f ran at once on %d seats", float64(seats)-0.1, seats)},
				{Name: "queue_ratio", Value: some(waiting / (waiting + float64(seats))), Unit: "ratio", Op: ">=", Limit: some(0.3), Source: engine.FromMeasured, Text: fmt.Sprintf("%.0f waited, %.0f %% of all requests in the server", waiting, 100*waiting/(waiting+float64(seats)))},
				{Name: "kv_usage_peak", Value: some(kv * 1.12), Unit: "ratio", Op: "<", Limit: some(0.8), Source: engine.FromMeasured, Text: fmt.Sprintf("the KV pool was %.1f %% full at its peak", kv*112)},
			},
		},
		{
			ID: engine.LowPrefixReuse, Rule: "R3", Title: "Low prefix reuse", State: engine.Fired, Significant: true, Fired: 9, Evaluable: 10,
			Confidence: 0.6, Impact: 2, Score: 1.2, Group: engine.GroupReuse, Reason: "3.4 % of prompt tokens come from the cache",
			Evidence: []engine.Evidence{{Name: "prefix_hit_rate", Value: some(0.034), Unit: "ratio", Op: "<", Limit: some(0.1), Source: engine.FromMeasured, Text: "3.4 % of the looked-up tokens were cached"}},
			Fix: &engine.Fix{
				Kind: engine.KindClient, Command: "put what prompts share at their beginning", Why: "Caching is on and finds almost nothing to share.",
				Withheld: "prefill takes 2 % of the time: nothing to gain here",
			},
		},
		{
			ID: engine.PrefillInterference, Rule: "beyond", Title: "Prefill interference", State: engine.Fired, Fired: 2, Evaluable: 10,
			Confidence: 0.5, Impact: 1, Score: 0.5, Group: engine.GroupSeats, Reason: "fired in 2 of 10 windows: too few to act on",
		},
		{ID: engine.KVAdmission, Rule: "R2", Title: "KV cache pressure: admission backlog", State: engine.Suppressed, Fired: 0, Evaluable: 10, Group: engine.GroupMemory, SuppressedBy: string(engine.SeatSaturation), Reason: "the same cause as seat-saturation"},
		{ID: engine.UnderBatching, Rule: "R1", Title: "Under-batching", State: engine.NotFired, Evaluable: 10, Group: engine.GroupLoad, Reason: "occupancy 99 % of the seats, limit 25 %"},
		{ID: engine.KVPressure, Rule: "R2", Title: "KV cache pressure", State: engine.NotFired, Evaluable: 10, Group: engine.GroupMemory, Reason: fmt.Sprintf("KV usage peaks at %.1f %%, limit 88 %%", kv*112)},
		{ID: engine.OOMRisk, Rule: "R4", Title: "OOM risk", State: engine.NotFired, Evaluable: 10, Group: engine.GroupMemory, Reason: "VRAM peaks at 90 %, limit 97 %"},
		{ID: engine.TokenBudget, Rule: "beyond", Title: "Token budget", State: engine.NotFired, Evaluable: 10, Group: engine.GroupSeats, Reason: "prefill waits 4 ms for its tokens, limit 50 ms"},
		{ID: engine.Stuck, Rule: "beyond", Title: "Stuck engine", State: engine.NotFired, Evaluable: 10, Group: engine.GroupHost, Reason: "tokens moved in every window"},
		{ID: engine.SlowSteps, Rule: "beyond", Title: "Slow steps", State: engine.NotFired, Evaluable: 10, Group: engine.GroupHost, Reason: "steps take 1.2 of what this hardware needs, limit 2.0"},
		{ID: engine.FrontEnd, Rule: "beyond", Title: "Front end", State: engine.NotFired, Evaluable: 10, Group: engine.GroupHost, Reason: "11 ms outside the engine, limit 100 ms"},
		{ID: engine.PowerLimit, Rule: "beyond", Title: "Power or temperature limit", State: engine.NotEvaluable, Group: engine.GroupHardware, Missing: []string{"the GPU's throttle reasons"}, Reason: "needs the GPU's throttle reasons"},
		{ID: engine.DPImbalance, Rule: "beyond", Title: "Uneven data-parallel ranks", State: engine.NotFired, Evaluable: 10, Group: engine.GroupLoad, Reason: "one rank"},
	}
	return findings, &engine.Recommendation{Finding: engine.SeatSaturation, Fix: fix, Launch: fmt.Sprintf(fixtureLaunch, to)}
}

// seatsAt is how many seats ran at a time of the fixture's run; 0 while the
// server was down.
func seatsAt(t time.Duration) (seats int, iteration int) {
	switch s := t.Seconds(); {
	case s < 62:
		return 8, 0
	case s < 84:
		return 0, 1
	case s < 170:
		return 16, 1
	case s < 190:
		return 0, 2
	}
	return 16, 2
}

func fixturePoints(now time.Duration) []engine.Point {
	var list []engine.Point
	for t := engine.WindowLength; t <= now; t += engine.WindowLength {
		seats, iteration := seatsAt(t)
		p := engine.Point{T: t, Iteration: iteration}
		if seats > 0 {
			n := float64(seats) - 0.1
			wobble := 1 + 0.02*math.Sin(t.Seconds()/7) + 0.008*math.Sin(t.Seconds()*1.7)
			step := (0.0113 + 0.000105*n) / wobble
			out := n / step
			p.Tokens, p.Prompt, p.Requests = some(out), some(out*2), some(out/256)
			p.Running, p.Waiting = some(n), some(math.Round(40-n+3*math.Sin(t.Seconds()/11)))
			p.KV = some(n * 640 / 417_000 * (1 + 0.1*math.Sin(t.Seconds()/5)))
			p.TTFT, p.ITL = some(p.Waiting.V/(out/256)*1.9), some(step*1.75)
			p.GPU, p.Power, p.Preempted = some(0.97), some(285+6*math.Sin(t.Seconds()/9)), some(0)
		}
		list = append(list, p)
	}
	return list
}

func fixtureMarks() []engine.Mark {
	return []engine.Mark{
		{T: 2 * time.Second, Kind: engine.MarkMeasure, Text: "baseline"},
		{T: 62 * time.Second, Kind: engine.MarkDown, Text: "the server stopped answering"},
		{T: 84 * time.Second, Kind: engine.MarkUp, Text: "the server answers again"},
		{T: 84 * time.Second, Kind: engine.MarkChange, Text: "--max-num-seqs 8 → 16"},
		{T: 96 * time.Second, Kind: engine.MarkMeasure, Text: "measuring the change"},
		{T: 116 * time.Second, Kind: engine.MarkVerdict, Text: "better: output +88 %"},
		{T: 170 * time.Second, Kind: engine.MarkDown, Text: "the server stopped answering"},
		{T: 190 * time.Second, Kind: engine.MarkUp, Text: "the server answers again"},
		{T: 190 * time.Second, Kind: engine.MarkChange, Text: "--max-num-batched-tokens 2048 → 8192"},
		{T: 226 * time.Second, Kind: engine.MarkMeasure, Text: "measuring the change"},
		{T: 246 * time.Second, Kind: engine.MarkVerdict, Text: "plateau: output 0 %"},
	}
}

func fixtureIterations() []engine.Iteration {
	first := engine.Iteration{
		N: 1, At: 62 * time.Second, Up: 84 * time.Second, Settled: 96 * time.Second, End: engine.IterationKept,
		Noticed: engine.AsRecommended, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "8", To: "16"}},
		Text: "you changed --max-num-seqs 8 → 16 as recommended", Command: fmt.Sprintf(fixtureLaunch, 16),
		Predicted: []engine.Prediction{{Metric: "generation_tokens_per_s", Unit: "ratio", Low: some(0.71), Mid: some(0.87), High: some(0.97)}},
		Before:    diagnosisAt(8, 32), After: diagnosisAt(16, 24),
	}
	second := engine.Iteration{
		N: 2, At: 170 * time.Second, Up: 190 * time.Second, Settled: 226 * time.Second, End: engine.IterationNoGain,
		Noticed: engine.SomethingElse, Changes: []engine.Change{{Flag: "--max-num-batched-tokens", From: "", To: "8192"}},
		Text: "you changed something else: --max-num-batched-tokens 8192", Command: fmt.Sprintf(fixtureLaunch, 16) + " --max-num-batched-tokens 8192",
		Before: diagnosisAt(16, 24), After: diagnosisAt(16, 25),
		Load: []string{"prompts were 9 % longer after the change"},
	}
	for _, it := range []*engine.Iteration{&first, &second} {
		delta := engine.Compare(it.Before, it.After)
		it.Delta = &delta
	}
	return []engine.Iteration{first, second}
}

func fixtureJournal() []engine.Entry {
	list := []engine.Entry{
		{T: 0, Kind: engine.EventAttached, Text: "attached to " + fixtureURL + ": vLLM 0.11.0, " + fixtureModel + ", NVIDIA A100-SXM4-80GB"},
		{T: 8 * time.Second, Level: engine.LevelWarn, Kind: engine.EventDiagnosis, Text: "so far: seat saturation (R5), all 8 seats taken"},
		{T: 22 * time.Second, Kind: engine.EventMeasured, Text: "baseline: 651 tok/s, TTFT p99 24.0 s, 10 windows"},
		{T: 22 * time.Second, Kind: engine.EventRecommendation, Text: "recommended: --max-num-seqs 8 → 16, output +87 % (+71 to +97 %)"},
		{T: 62 * time.Second, Level: engine.LevelBad, Kind: engine.EventServerDown, Text: "the server stopped answering: connection refused"},
		{T: 84 * time.Second, Level: engine.LevelGood, Kind: engine.EventServerUp, Text: "the server answers again after 22 s"},
		{T: 84 * time.Second, Kind: engine.EventSettling, Text: "you changed --max-num-seqs 8 → 16 as recommended"},
		{T: 96 * time.Second, Kind: engine.EventMeasured, Text: "settled after 12 s: measuring for 20 s"},
		{T: 116 * time.Second, Level: engine.LevelGood, Kind: engine.EventVerdict, Text: "better: output +88 %, TTFT p99 −60 %, ITL p99 +6.9 %"},
		{T: 116 * time.Second, Level: engine.LevelGood, Kind: engine.EventKept, Text: "kept: this is the new baseline"},
		{T: 170 * time.Second, Level: engine.LevelBad, Kind: engine.EventServerDown, Text: "the server stopped answering: connection refused"},
		{T: 190 * time.Second, Level: engine.LevelGood, Kind: engine.EventServerUp, Text: "the server answers again after 20 s"},
		{T: 190 * time.Second, Level: engine.LevelWarn, Kind: engine.EventSettling, Text: "you changed something else: --max-num-batched-tokens 8192"},
		{T: 246 * time.Second, Level: engine.LevelInfo, Kind: engine.EventVerdict, Text: "plateau: output 0 %, within 10 %; the kept configuration stays --max-num-seqs 16"},
		{T: 246 * time.Second, Kind: engine.EventRecommendation, Text: "recommended: --max-num-seqs 16 → 40, output +110 % (+90 to +123 %)"},
	}
	for i := range list {
		list[i].Seq = i + 1
	}
	return list
}

func fixturePage(now time.Duration, running, waiting float64) *engine.Page {
	p := &engine.Page{T: now, Took: 11 * time.Millisecond, Bytes: 53_120, Model: fixtureModel, Models: []string{fixtureModel}, KVUsageMax: some(0.026)}
	p.Gauges[engine.GaugeRunning], p.Gauges[engine.GaugeWaiting], p.Gauges[engine.GaugeKVUsage] = some(running), some(waiting), some(0.0245)
	return p
}

func fixtureGPU(now time.Duration) *engine.GPUReading {
	g := engine.GPU{Index: 0, Name: "NVIDIA A100-SXM4-80GB", UUID: "GPU-5c1f0f6e-0000-0000-0000-000000000000", ThrottleOK: false}
	for f, v := range map[engine.GPUField]float64{
		engine.GPUUtil: 0.97, engine.GPUMemUtil: 0.81, engine.GPUPowerW: 287, engine.GPUPowerLimitW: 400, engine.GPUVRAMTotal: 80 << 30, engine.GPUVRAMUsed: 71.8 * (1 << 30),
		engine.GPUTemperatureC: 61, engine.GPUSMClockMHz: 1410, engine.GPUMemClockMHz: 1593, engine.GPUEnergyJ: 1.2e8, engine.GPUPCIeTxBps: 3.1e6, engine.GPUPCIeRxBps: 9.4e6,
	} {
		g.Fields[f] = some(v)
	}
	return &engine.GPUReading{T: now, Took: 3 * time.Millisecond, Devices: []engine.GPU{g}}
}

func summaryOf(g engine.GPU) engine.GPUSummary {
	return engine.GPUSummary{Index: g.Index, Name: g.Name, UUID: g.UUID, Last: g.Fields, Mean: g.Fields, Peak: g.Fields}
}

func fixtureProcesses() []engine.Process {
	return []engine.Process{
		{PID: 4120, PPID: 1, Role: "api-server", Name: "vllm", State: "S", Age: 122 * time.Second, CPU: some(0.22), RunWait: some(0.002), RSSBytes: 1_620_000_000, Threads: 118},
		{PID: 4188, PPID: 4120, Role: "engine-core", Name: "VLLM::EngineCore", State: "R", Age: 119 * time.Second, CPU: some(0.99), RunWait: some(0.004), RSSBytes: 4_910_000_000, Threads: 96},
		{PID: 4189, PPID: 4120, Role: "helper", Name: "python3 resource_tracker", State: "S", Age: 119 * time.Second, CPU: some(0), RSSBytes: 14_200_000, Threads: 1},
	}
}

func freshSources(now time.Duration) []engine.SourceState {
	return []engine.SourceState{
		{Name: "metrics", State: engine.SourceFresh, Last: now, Took: 11 * time.Millisecond, Interval: 250 * time.Millisecond},
		{Name: "gpu", State: engine.SourceFresh, Last: now, Took: 3 * time.Millisecond, Interval: 250 * time.Millisecond},
		{Name: "processes", State: engine.SourceFresh, Last: now - 750*time.Millisecond, Took: 6 * time.Millisecond, Interval: 2 * time.Second},
	}
}

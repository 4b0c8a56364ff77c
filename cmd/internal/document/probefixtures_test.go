package document_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const ms = time.Millisecond

// probes are the states of a probe for the writers' tests.
func probes() map[string]func() *capture.Record {
	return map[string]func() *capture.Record{
		"one":         oneOnCPU,
		"many":        manyOnGPU,
		"observation": observed,
		"idle-pid":    idlePID,
		"absent":      allAbsent,
		"interrupted": interruptedProbe,
		"failures":    failedProbe,
		"eight-gpus":  eightGPUs,
		"uncounted":   func() *capture.Record { return countedAtEnd(0, 0, 0, 0, 0) },
		"stepped":     stepped,
		"estimated":   func() *capture.Record { return countedAtEnd(0, 0, 120, 120, 360) },
	}
}

func probeSetup(concurrency, repeat int) capture.Setup {
	return capture.Setup{
		Version: "1.2.0",
		Target:  engine.Target{URL: "http://127.0.0.1:8000", Engine: "vLLM", EngineVersion: "0.32.0", Model: "Qwen/Qwen3-0.6B"},
		Request: &capture.RequestSetup{
			API: capture.Chat, PromptSHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", PromptBytes: 64, MaxTokens: 128,
			Repeat: repeat, Concurrency: concurrency, HeaderNames: []string{"X-Team"},
		},
	}
}

// streams returns requests of n tokens from lanes clients, each sent when the previous one has ended.
func streams(seed uint64, requests, lanes, n int, ttft, itl time.Duration) []capture.Request {
	r := rand.New(rand.NewPCG(seed, 2))
	var out []capture.Request
	free := make([]time.Duration, lanes)
	for i := range requests {
		lane := i % lanes
		q := capture.Request{
			ID: i, Lane: lane, Sent: free[lane] + time.Duration(lane)*20*time.Microsecond, Reused: i >= lanes, Status: 200, Finish: "length",
			PromptTokens: some(21), CachedTokens: some(16), OutputTokens: some(float64(n)),
		}
		if !q.Reused {
			q.Connect = 300 * time.Microsecond
		}
		q.Written = q.Sent + q.Connect + 100*time.Microsecond
		at := q.Sent + time.Duration(float64(ttft)*(0.9+0.3*r.Float64()))
		q.Answered = at - 200*time.Microsecond
		for j := range n {
			q.Chunks = append(q.Chunks, capture.Chunk{At: at.Round(time.Microsecond), Bytes: 3 + j%4})
			at += time.Duration(float64(itl) * (0.85 + 0.3*r.Float64()))
		}
		q.Answered, q.End = q.Answered.Round(time.Microsecond), q.Chunks[n-1].At+400*time.Microsecond
		free[lane] = q.End + 1*ms
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b capture.Request) int { return int(a.Sent - b.Sent) })
	for i := range out {
		out[i].ID = i
	}
	return out
}

// endOf returns the end of the last request.
func endOf(list []capture.Request) time.Duration {
	end := time.Duration(0)
	for i := range list {
		end = max(end, list[i].End)
	}
	return end
}

// sampledTree is a launcher with an API server and an engine core that computes during the run.
func sampledTree(end, period time.Duration) capture.Tree {
	t := capture.Tree{
		Root: 4242, How: "listens on port 8000", CPUs: 16,
		Processes: []capture.Process{
			{PID: 4242, PPID: 1, InnerPID: 4242, Ticks: 90100, Comm: "bash", Role: "launcher", Joined: -period},
			{PID: 4250, PPID: 4242, InnerPID: 4250, Ticks: 90140, Comm: "python3", Title: "vllm serve", Role: "api-server", Joined: -period},
			{PID: 4300, PPID: 4250, InnerPID: 4300, Ticks: 90800, Comm: "python3", Title: "VLLM::EngineCore", Role: "engine-core", Joined: -period},
			{PID: 4391, PPID: 4250, InnerPID: 4391, Ticks: 99100, Comm: "ldconfig", Role: "other", Joined: end / 4, Left: end / 2, Gone: true},
		},
	}
	for at := -period; at <= end+period; at += period {
		busy := max(0, min(at, end))
		wave := time.Duration(0.05 * float64(end) * math.Sin(6*float64(busy)/float64(end)))
		s := capture.TreeSample{At: at, Took: 800 * time.Microsecond, Walked: true, Processes: []capture.ProcessSample{
			{Process: 0, CPU: 10 * ms, RSSBytes: 3 << 20, Threads: 1, MinorFaults: some(300), MajorFaults: some(0)},
			{Process: 1, CPU: 9*time.Second + busy/5, RSSBytes: 900 << 20, Threads: 30, MinorFaults: some(90000), MajorFaults: some(4)},
			{Process: 2, CPU: 40*time.Second + (3*busy + wave).Round(10*ms), Reaped: time.Second, RSSBytes: 3 << 30, Threads: 52, MinorFaults: some(500000 + float64(busy/ms)), MajorFaults: some(11)},
		}}
		if at >= end/4 && at < end/2 {
			s.Processes = append(s.Processes, capture.ProcessSample{Process: 3, CPU: 5 * ms, RSSBytes: 8 << 20, Threads: 1})
		}
		if len(t.Samples)%10 == 0 {
			s.Processes[2].PSSBytes, s.Processes[2].VoluntarySwitches, s.Processes[2].InvoluntarySwitches = some(2.8*(1<<30)), some(float64(1000+busy/ms)), some(30)
			s.Processes[2].ReadBytes, s.Processes[2].WrittenBytes, s.Processes[2].RunWaitSeconds = some(1e9), some(4096), some(.25)
		}
		t.Samples = append(t.Samples, s)
	}
	for _, at := range []time.Duration{-period, end + period} {
		t.Cgroups = append(t.Cgroups, capture.CgroupSample{At: at, Path: "/system.slice/vllm.service", Whole: true, CPUSeconds: some(50 + 3.2*max(0, at.Seconds())), Periods: some(100), ThrottledPeriods: some(2), ThrottledSeconds: some(.03), CPULimitCores: some(8), MemoryBytes: some(4.2e9)})
	}
	return t
}

// sampledGPUs are devices that are busy during the run.
func sampledGPUs(n int, end, period time.Duration) capture.GPUs {
	g := capture.GPUs{From: "NVML", How: "by the processes on them", Averaging: 100 * ms}
	for at := -period; at <= end+period; at += period {
		reading := engine.GPUReading{T: at, Took: 2 * ms}
		busy := 0.0
		if at > 0 && at <= end {
			busy = 1
		}
		for i := range n {
			d := engine.GPU{Index: i, Name: "NVIDIA L4", UUID: "GPU-" + string(rune('a'+i)), ThrottleOK: true, Throttle: 4}
			d.Fields[engine.GPUUtil] = some(busy * (.8 + .15*math.Sin(4*float64(at)/float64(end)+float64(i))))
			d.Fields[engine.GPUPowerW] = some(17 + busy*45)
			d.Fields[engine.GPUPowerLimitW] = some(72)
			d.Fields[engine.GPUVRAMUsed], d.Fields[engine.GPUVRAMTotal] = some(20e9), some(24.15e9)
			d.Fields[engine.GPUEnergyJ] = some(1e6 + 62*max(0, at.Seconds()))
			reading.Devices = append(reading.Devices, d)
		}
		g.Readings = append(g.Readings, reading)
	}
	return g
}

// pagesOf returns the server's pages for a token rate.
func pagesOf(end, period time.Duration, rate float64) []capture.PageSample {
	var out []capture.PageSample
	for at := -period; at <= end+period; at += period {
		done := max(0, min(at, end)).Seconds()
		out = append(out, capture.PageSample{
			At: at, Took: 3 * ms, GenerationTokens: some(5000 + math.Round(done*rate)), PromptTokens: some(9000), Requests: some(77), Running: some(min(1, done)), Waiting: some(0), KVUsage: some(.02),
			TTFTSum: some(9 + done), TTFTCount: some(77), QueueSum: some(.1), QueueCount: some(77), PrefillSum: some(3), PrefillCount: some(77),
		})
	}
	return out
}

// spread returns the distribution of durations, as in a summary.
func spread(list []time.Duration) capture.Distribution {
	if len(list) == 0 {
		return capture.Distribution{}
	}
	slices.Sort(list)
	sum := time.Duration(0)
	for _, v := range list {
		sum += v
	}
	rank := func(p float64) time.Duration { return list[max(0, int(math.Ceil(p*float64(len(list))))-1)] }
	return capture.Distribution{Count: len(list), Mean: sum / time.Duration(len(list)), P50: rank(.5), P95: rank(.95), P99: rank(.99), Max: list[len(list)-1]}
}

func requestFigures(list []capture.Request, span time.Duration) *capture.RequestsSummary {
	s := &capture.RequestsSummary{Sent: len(list), Server: capture.ServerTTFT{Reason: "the server's page has no time to first token: only vLLM's is read"}}
	var ttft, itl, tpot, e2e, connect []time.Duration
	tokens := 0
	for i := range list {
		q := &list[i]
		if q.Error == "" {
			s.Whole++
			e2e = append(e2e, q.End-q.Sent)
		}
		if n := len(q.Chunks); n > 0 {
			ttft = append(ttft, q.Chunks[0].At-q.Sent)
			if n > 1 {
				tpot = append(tpot, (q.Chunks[n-1].At-q.Chunks[0].At)/time.Duration(n-1))
			}
			for j := 1; j < n; j++ {
				itl = append(itl, q.Chunks[j].At-q.Chunks[j-1].At)
			}
			tokens += n
		}
		if !q.Reused {
			connect = append(connect, q.Connect)
		}
	}
	s.TTFT, s.ITL, s.TPOT, s.E2E, s.Connect = spread(ttft), spread(itl), spread(tpot), spread(e2e), spread(connect)
	s.Tokens = capture.Tokens{Usage: some(float64(tokens)), Chunks: tokens, Counter: some(float64(tokens)), Used: some(float64(tokens)), From: "usage"}
	s.OutputPerSecond = some(float64(tokens) / span.Seconds())
	s.DecodePerSecond, s.RequestPerSecond = some(1/max(s.TPOT.Mean.Seconds(), 1e-6)), some(.95/max(s.TPOT.Mean.Seconds(), 1e-6))
	s.PromptTokens, s.CachedTokens = some(21*float64(len(list))), some(16*float64(len(list)))
	return s
}

func treeFigures(samples int, span time.Duration) *capture.TreeUsage {
	n := samples
	row := func(mean, peak float64) capture.Row {
		return capture.Row{Mean: some(mean), Peak: some(peak), Samples: n}
	}
	none := capture.Row{Reason: "smaps_rollup: permission denied"}
	api := capture.ProcessUsage{Name: "api-server", Role: "api-server", Count: 1, CPU: row(.2, .4), RSS: row(900<<20, 900<<20), PSS: none, Threads: row(30, 30), CPUSeconds: some(.2 * span.Seconds())}
	core := capture.ProcessUsage{Name: "engine-core", Role: "engine-core", Count: 1, CPU: row(3, 3.3), RSS: row(3<<30, 3<<30), PSS: row(2.8*(1<<30), 2.8*(1<<30)), Threads: row(52, 52), CPUSeconds: some(3 * span.Seconds())}
	start := capture.ProcessUsage{Name: "launcher", Role: "launcher", Count: 1, CPU: row(0, 0), RSS: row(3<<20, 3<<20), PSS: none, Threads: row(1, 1), CPUSeconds: some(0)}
	total := capture.ProcessUsage{
		Name: "total", Count: 4, CPU: row(3.2, 3.7), RSS: row(3.9*(1<<30), 3.91*(1<<30)), PSS: none, Threads: row(83, 84), CPUSeconds: some(3.2 * span.Seconds()),
		VoluntarySwitches: some(1204), InvoluntarySwitches: some(31), MinorFaults: some(1019), MajorFaults: some(0), RunWaitSeconds: some(.012),
	}
	process := core
	process.Name, process.PID = "VLLM::EngineCore", 4300
	return &capture.TreeUsage{
		Total: total, Roles: []capture.ProcessUsage{start, api, core}, Processes: []capture.ProcessUsage{process}, Samples: n,
		Cgroup: &capture.CgroupUsage{Path: "/system.slice/vllm.service", Whole: true, CPUSeconds: some(3.21 * span.Seconds()), ThrottledSeconds: some(.03), ThrottledShare: some(.02), CPULimitCores: some(8), MemoryBytes: some(4.2e9)},
	}
}

func gpuFigures(n, readings int) []capture.GPUUsage {
	var out []capture.GPUUsage
	for i := range n {
		g := capture.GPUUsage{Index: i, Name: "NVIDIA L4", UUID: "GPU-" + string(rune('a'+i)), ThrottleOK: true, Throttle: 4, Energy: capture.Energy{Joules: some(180), How: "energy counter"}}
		for f := range g.Fields {
			g.Fields[f] = capture.Row{Reason: "not read on this device"}
		}
		row := func(mean, peak float64) capture.Row {
			return capture.Row{Mean: some(mean), Peak: some(peak), Samples: readings}
		}
		g.Fields[engine.GPUUtil], g.Fields[engine.GPUPowerW], g.Fields[engine.GPUPowerLimitW] = row(.81, .95), row(58.2, 62), row(72, 72)
		g.Fields[engine.GPUVRAMUsed], g.Fields[engine.GPUVRAMTotal] = row(20e9, 20e9), row(24.15e9, 24.15e9)
		g.Fields[engine.GPUTemperatureC] = capture.Row{Reason: "the run is shorter than the sensor's own averaging of 1 s"}
		out = append(out, g)
	}
	return out
}

func oneOnCPU() *capture.Record {
	list := streams(1, 1, 1, 64, 52*ms, 10*ms)
	end := endOf(list)
	c := &capture.Capture{
		Kind: capture.Probe, Wall: time.Date(2026, 11, 21, 22, 46, 10, 123456789, time.UTC), Period: 50 * ms, End: end,
		Requests: list, Tree: sampledTree(end, 50*ms), Pages: pagesOf(end, 250*ms, 90), PagesFrom: "vLLM",
		GPUs:    capture.GPUs{Why: "no NVML library on this machine: install the driver, or give --gpu-source"},
		Missing: []engine.Missing{{What: "GPU", Reason: "no NVML library on this machine: install the driver, or give --gpu-source", Effect: "energy and cost are absent"}},
	}
	s := &capture.Summary{
		Span: c.Span(), Requests: requestFigures(list, c.Span()), Tree: treeFigures(len(c.Tree.Samples), c.Span()), Energy: capture.Energy{Reason: "no GPU was sampled"},
		Derived: []engine.NamedQuantity{
			{Name: "joules_per_token", Quantity: engine.Quantity{Unit: "J", Source: engine.Derived, Reason: "no GPU was sampled"}},
			{Name: "tokens_per_joule", Quantity: engine.Quantity{Unit: "1/J", Source: engine.Derived, Reason: "no GPU was sampled"}},
			{Name: "cpu_seconds_per_token", Quantity: engine.Quantity{Value: some(.0356), Unit: "s", Source: engine.Derived}},
			{Name: "usd_per_million_tokens", Quantity: engine.Quantity{Unit: "USD", Source: engine.Estimate, Reason: "no price is known: give --cost-per-hour"}},
		},
		Sizing: capture.Sizing{Verdict: "unknown", Reason: "no GPU was sampled"},
	}
	s.Requests.Server = capture.ServerTTFT{Client: some(.0556), Server: some(.0521), Outside: some(.0035), Queue: some(.0001), Prefill: some(.048), From: "vLLM metrics"}
	return &capture.Record{Setup: probeSetup(1, 1), Capture: c, Summary: s}
}

func manyOnGPU() *capture.Record {
	list := streams(2, 128, 64, 96, 120*ms, 22*ms)
	end := endOf(list)
	c := &capture.Capture{
		Kind: capture.Probe, Wall: time.Date(2026, 11, 21, 22, 46, 10, 0, time.UTC), Period: 50 * ms, End: end,
		Requests: list, Tree: sampledTree(end, 50*ms), GPUs: sampledGPUs(2, end, 100*ms), Pages: pagesOf(end, 250*ms, 2600), PagesFrom: "vLLM",
		Notes: []string{"the server was idle before the first send"},
	}
	s := &capture.Summary{
		Span: c.Span(), Requests: requestFigures(list, c.Span()), Tree: treeFigures(len(c.Tree.Samples), c.Span()), GPUs: gpuFigures(2, len(c.GPUs.Readings)), Energy: capture.Energy{Joules: some(361), How: "energy counter"},
		Derived: []engine.NamedQuantity{
			{Name: "joules_per_token", Quantity: engine.Quantity{Value: some(.0294), Unit: "J", Source: engine.Derived}},
			{Name: "tokens_per_joule", Quantity: engine.Quantity{Value: some(34), Unit: "1/J", Source: engine.Derived}},
			{Name: "usd_per_million_tokens", Quantity: engine.Quantity{Value: some(.17), Unit: "USD", Source: engine.Estimate, Note: "catalog price of 2026-06"}},
			{Name: "power_share", Quantity: engine.Quantity{Value: some(.81), Unit: "ratio", Source: engine.Measured, Note: "of the power limit"}},
			{Name: "bandwidth_share", Quantity: engine.Quantity{Value: some(.37), Unit: "ratio", Source: engine.Estimate}},
		},
		Sizing: capture.Sizing{
			Verdict: "over-provisioned", Text: "Two NVIDIA L4 are 37 % busy by their bandwidth at 64 requests; one would serve this load at about half the price.",
			Smaller: []capture.Card{{Name: "NVIDIA L4", GPUs: 1, DollarsPerH: some(.8), PriceDate: "2026-06", NeedBytes: 9e9, VRAMBytes: 24.15e9, TokensPerS: some(2400), Low: some(1900), High: some(2900), DollarsPerMTk: some(.093)}},
		},
	}
	s.Requests.Tokens.Counter = some(12301)
	s.Requests.Tokens.Differences = []string{"the server's counter grew by 13 more than usage says: another client was on the server"}
	s.Requests.Server = capture.ServerTTFT{Client: some(.126), Server: some(.121), Outside: some(.005), Queue: some(.01), Prefill: some(.1), From: "vLLM metrics"}
	return &capture.Record{Setup: probeSetup(64, 128), Capture: c, Summary: s}
}

func observed() *capture.Record {
	p := manyOnGPU()
	p.Setup.Request = nil
	end := 10 * time.Second
	p.Capture.Kind, p.Capture.Requests, p.Capture.End = capture.Observation, nil, end
	p.Capture.Tree, p.Capture.GPUs, p.Capture.Pages = sampledTree(end, 50*ms), sampledGPUs(1, end, 100*ms), pagesOf(end, 250*ms, 812)
	p.Summary.Span, p.Summary.Requests, p.Summary.Tree = end, nil, treeFigures(len(p.Capture.Tree.Samples), end)
	p.Summary.GPUs = gpuFigures(1, len(p.Capture.GPUs.Readings))
	return p
}

func idlePID() *capture.Record {
	p := oneOnCPU()
	p.Setup.Target.Simulated = true
	for i := range p.Capture.Tree.Samples {
		s := &p.Capture.Tree.Samples[i]
		s.Processes = s.Processes[:1]
	}
	row := capture.Row{Mean: some(3 << 20), Peak: some(3 << 20), Samples: 14}
	idle := capture.ProcessUsage{Name: "launcher", Role: "launcher", Count: 1, RSS: row, CPU: capture.Row{Mean: some(0), Peak: some(0), Samples: 14}, PSS: capture.Row{Reason: "not read"}, Threads: capture.Row{Mean: some(1), Peak: some(1), Samples: 14}, CPUSeconds: some(0)}
	total := idle
	total.Name = "total"
	p.Summary.Tree = &capture.TreeUsage{Total: total, Roles: []capture.ProcessUsage{idle}, Samples: 14, Partial: 2, Failed: 1}
	p.Summary.Warnings = []capture.Warning{{ID: "idle-pid", Text: "PID 4242 looks idle in all 14 samples (RSS below 10 MiB, one thread, no CPU time) while tokens came: it may be a wrapper shell. PID 4250 listens on port 8000: give --pid 4250, or find it with pgrep -x"}}
	return p
}

func allAbsent() *capture.Record {
	why := "no process listens on port 8000 of this machine: the server runs elsewhere; give --pid on its own host"
	c := &capture.Capture{
		Kind: capture.Observation, Wall: time.Date(2026, 11, 21, 22, 46, 10, 0, time.UTC), Period: 50 * ms, End: 2 * time.Second,
		Tree: capture.Tree{Why: why}, GPUs: capture.GPUs{Why: "no NVML library on this machine"},
		Pages:   []capture.PageSample{{At: 0, Error: "GET /metrics: 404 Not Found"}},
		Missing: []engine.Missing{{What: "processes", Reason: why, Effect: "CPU and memory are absent"}},
	}
	return &capture.Record{Setup: capture.Setup{Version: "1.2.0", Target: engine.Target{URL: "http://10.0.0.9:8000"}}, Capture: c, Summary: &capture.Summary{
		Span: 2 * time.Second, Energy: capture.Energy{Reason: "no GPU was sampled"}, Sizing: capture.Sizing{Verdict: "unknown", Reason: "no GPU was sampled"},
		Derived: []engine.NamedQuantity{{Name: "joules_per_token", Quantity: engine.Quantity{Unit: "J", Source: engine.Derived, Reason: "no GPU was sampled"}}},
	}}
}

func interruptedProbe() *capture.Record {
	p := manyOnGPU()
	c := p.Capture
	c.Ended, c.End = "interrupt", 1500*ms
	for i := range c.Requests {
		q := &c.Requests[i]
		q.End = min(q.End, c.End)
		q.Chunks = slices.DeleteFunc(q.Chunks, func(k capture.Chunk) bool { return k.At > c.End })
		q.Error, q.Finish, q.OutputTokens = "interrupted after the 62nd chunk", "", stat.None
	}
	c.Requests = slices.DeleteFunc(c.Requests, func(q capture.Request) bool { return q.Sent > c.End })
	c.Tree, c.GPUs, c.Pages = sampledTree(c.End, 50*ms), sampledGPUs(2, c.End, 100*ms), pagesOf(c.End, 250*ms, 2600)
	p.Summary.Span, p.Summary.Requests = c.Span(), requestFigures(c.Requests, c.Span())
	p.Summary.Requests.Failures = []capture.Failure{{Error: "interrupted after the 62nd chunk", Count: len(c.Requests), Example: true}}
	p.Summary.Sizing = capture.Sizing{}
	return p
}

func failedProbe() *capture.Record {
	p := oneOnCPU()
	c := p.Capture
	c.Requests = []capture.Request{
		{ID: 0, Status: 503, End: 3 * ms, Error: "503 Service Unavailable: the model is still loading"},
		{ID: 1, Lane: 1, Sent: ms, Connect: 200 * time.Microsecond, Status: 200, Error: "the server answered 200 and then an error: context length exceeded", End: 40 * ms},
	}
	c.End = 40 * ms
	c.Tree, c.Pages = sampledTree(c.End, 50*ms), nil
	p.Setup = probeSetup(2, 2)
	p.Summary.Span, p.Summary.Requests, p.Summary.Tree = c.Span(), &capture.RequestsSummary{
		Sent: 2, Failures: []capture.Failure{{Error: c.Requests[0].Error, Count: 1}, {Error: c.Requests[1].Error, Count: 1}}, Server: capture.ServerTTFT{Reason: "no request was answered"}, Tokens: capture.Tokens{Counter: some(0)},
	}, treeFigures(4, c.Span())
	return p
}

// eightGPUs is an observation of a server on eight devices, whose power was integrated.
func eightGPUs() *capture.Record {
	p := observed()
	p.Capture.GPUs = sampledGPUs(8, p.Capture.End, 100*ms)
	p.Summary.GPUs = gpuFigures(8, len(p.Capture.GPUs.Readings))
	p.Summary.Energy = capture.Energy{Joules: some(1444), How: "integrated power", Reason: "one of the devices has no energy counter"}
	return p
}

// stepped is a probe of a server that reports its steps.
func stepped() *capture.Record {
	p := countedAtEnd(0, 0, 0, 0, 0)
	for i := range p.Capture.Pages {
		p.Capture.Pages[i].SequenceSteps = some(9000 + 70*float64(i))
	}
	p.Summary = capture.Summarize(p.Capture, capture.Machine{})
	return p
}

// countedAtEnd is an observation of a loaded server that counts tokens at the end of a request. tokens are
// its counts at each second.
func countedAtEnd(tokens ...float64) *capture.Record {
	end := time.Duration(len(tokens)-1) * time.Second
	c := &capture.Capture{
		Kind: capture.Observation, Wall: time.Date(2026, 11, 21, 22, 46, 10, 0, time.UTC), Period: 50 * ms, End: end,
		Tree: sampledTree(end, 50*ms), GPUs: capture.GPUs{Why: "no GPU is readable"}, PagesFrom: "llama.cpp", Counting: capture.AtEnd,
	}
	for i, v := range tokens {
		c.Pages = append(c.Pages, capture.PageSample{At: time.Duration(i) * time.Second, Took: ms, GenerationTokens: some(9000 + v), Running: some(1), Waiting: some(0)})
	}
	setup := probeSetup(1, 1)
	setup.Request, setup.Target = nil, engine.Target{URL: "http://127.0.0.1:8080", Engine: "llama.cpp", Model: "random"}
	return &capture.Record{Setup: setup, Capture: c, Summary: capture.Summarize(c, capture.Machine{})}
}

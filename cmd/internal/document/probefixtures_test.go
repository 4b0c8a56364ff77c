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

const (
	ms    = time.Millisecond
	noGPU = "no NVML library on this machine: install the driver, or give --gpu-source"
)

// probes are the states of a probe for the writers' tests.
func probes() map[string]func() *capture.Record {
	return map[string]func() *capture.Record{
		"one": oneOnCPU, "many": manyOnGPU, "observation": observed, "idle-pid": idlePID, "absent": allAbsent,
		"interrupted": interruptedProbe, "failures": failedProbe,
		"uncounted": func() *capture.Record { return countedAtEnd(0, 0, 0, 0, 0) },
		"estimated": func() *capture.Record { return countedAtEnd(0, 0, 120, 120, 360) },
	}
}

// recordOf returns a capture with the figures that are made of it.
func recordOf(setup capture.Setup, c *capture.Capture) *capture.Record {
	return &capture.Record{Setup: setup, Capture: c, Summary: capture.Summarize(c, capture.Machine{})}
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
			{PID: 4242, PPID: 1, Ticks: 90100, Comm: "bash", Role: "launcher", Joined: -period},
			{PID: 4250, PPID: 4242, Ticks: 90140, Comm: "python3", Title: "vllm serve", Role: "api-server", Joined: -period},
			{PID: 4300, PPID: 4250, Ticks: 90800, Comm: "python3", Title: "VLLM::EngineCore", Role: "engine-core", Joined: -period},
			{PID: 4391, PPID: 4250, Ticks: 99100, Comm: "ldconfig", Role: "other", Joined: end / 4, Left: end / 2, Gone: true},
		},
	}
	for at := -period; at <= end+period; at += period {
		busy := max(0, min(at, end))
		wave := time.Duration(0.05 * float64(end) * math.Sin(6*float64(busy)/float64(end)))
		s := capture.TreeSample{At: at, Took: 800 * time.Microsecond, Walked: true, Processes: []capture.ProcessSample{
			{Process: 0, CPU: 10 * ms, RSSBytes: 3 << 20, Threads: 1},
			{Process: 1, CPU: 9*time.Second + busy/5, RSSBytes: 900 << 20, Threads: 30},
			{Process: 2, CPU: 40*time.Second + (3*busy + wave).Round(10*ms), Reaped: time.Second, RSSBytes: 3 << 30, Threads: 52},
		}}
		if at >= end/4 && at < end/2 {
			s.Processes = append(s.Processes, capture.ProcessSample{Process: 3, CPU: 5 * ms, RSSBytes: 8 << 20, Threads: 1})
		}
		if at == -period || at+period > end+period {
			s.Processes[2].RunWaitSeconds = some(.25)
		}
		t.Samples = append(t.Samples, s)
	}
	for _, at := range []time.Duration{-period, end + period} {
		t.Cgroups = append(t.Cgroups, capture.CgroupSample{At: at, Path: "/system.slice/vllm.service", Periods: some(100), ThrottledPeriods: some(2), ThrottledSeconds: some(.03), CPULimitCores: some(8)})
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

// probeOf is a probe of a sampled tree with some GPUs.
func probeOf(list []capture.Request, end time.Duration, gpus int, rate float64) *capture.Capture {
	c := &capture.Capture{
		Kind: capture.Probe, Wall: time.Date(2026, 11, 21, 22, 46, 10, 0, time.UTC), Period: 50 * ms, End: end,
		Requests: list, Tree: sampledTree(end, 50*ms), Pages: pagesOf(end, 250*ms, rate), PagesFrom: "vLLM",
	}
	if gpus > 0 {
		c.GPUs = sampledGPUs(gpus, end, 100*ms)
		return c
	}
	c.GPUs.Why = noGPU
	c.Missing = []engine.Missing{{What: "GPU", Reason: noGPU, Effect: "energy and cost are absent"}}
	return c
}

func oneOnCPU() *capture.Record {
	list := streams(1, 1, 1, 64, 52*ms, 10*ms)
	return recordOf(probeSetup(1, 1), probeOf(list, endOf(list), 0, 90))
}

func manyOnGPU() *capture.Record {
	list := streams(2, 128, 64, 96, 120*ms, 22*ms)
	c := probeOf(list, endOf(list), 2, 2600)
	c.Notes = []string{"the server was idle before the first send"}
	p := recordOf(probeSetup(64, 128), c)
	p.Summary.Sizing = capture.Sizing{
		Verdict: "over-provisioned", Text: "Two NVIDIA L4 are 37 % busy by their bandwidth at 64 requests; one would serve this load at about half the price.",
		Smaller: []capture.Card{{Name: "NVIDIA L4", GPUs: 1, DollarsPerH: some(.8), PriceDate: "2026-06", NeedBytes: 9e9, VRAMBytes: 24.15e9, TokensPerS: some(2400), Low: some(1900), High: some(2900), DollarsPerMTk: some(.093)}},
	}
	return p
}

// observation is a probe without requests.
func observation(c *capture.Capture) *capture.Record {
	c.Kind, c.Requests = capture.Observation, nil
	setup := probeSetup(1, 1)
	setup.Request = nil
	return recordOf(setup, c)
}

func observed() *capture.Record { return observation(probeOf(nil, 10*time.Second, 1, 812)) }

// idlePID is a probe that sampled a wrapper shell instead of the server.
func idlePID() *capture.Record {
	c := oneOnCPU().Capture
	for i := range c.Tree.Samples {
		c.Tree.Samples[i].Processes = c.Tree.Samples[i].Processes[:1]
	}
	p := recordOf(probeSetup(1, 1), c)
	p.Setup.Target.Simulated = true
	p.Summary.Warnings = []capture.Warning{{ID: "idle-pid", Text: "PID 4242 looks idle in all 14 samples (RSS below 10 MiB, one thread, no CPU time) while tokens came: it may be a wrapper shell. PID 4250 listens on port 8000: give --pid 4250, or find it with pgrep -x"}}
	return p
}

func allAbsent() *capture.Record {
	why := "no process listens on port 8000 of this machine: the server runs elsewhere; give --pid on its own host"
	p := observation(&capture.Capture{
		Wall: time.Date(2026, 11, 21, 22, 46, 10, 0, time.UTC), Period: 50 * ms, End: 2 * time.Second,
		Tree: capture.Tree{Why: why}, GPUs: capture.GPUs{Why: noGPU}, Pages: []capture.PageSample{{At: 0, Error: "GET /metrics: 404 Not Found"}},
		Missing: []engine.Missing{{What: "processes", Reason: why, Effect: "CPU and memory are absent"}},
	})
	p.Setup.Target = engine.Target{URL: "http://10.0.0.9:8000"}
	return p
}

func interruptedProbe() *capture.Record {
	end := 1500 * ms
	list := slices.DeleteFunc(manyOnGPU().Capture.Requests, func(q capture.Request) bool { return q.Sent > end })
	for i := range list {
		q := &list[i]
		q.End = min(q.End, end)
		q.Chunks = slices.DeleteFunc(q.Chunks, func(k capture.Chunk) bool { return k.At > end })
		q.Error, q.Finish, q.OutputTokens = "interrupted after the 62nd chunk", "", stat.None
	}
	c := probeOf(list, end, 2, 2600)
	c.Ended = "interrupt"
	p := recordOf(probeSetup(64, 128), c)
	p.Summary.Requests.Failures = []capture.Failure{{Error: "interrupted after the 62nd chunk", Count: len(list), Example: true}}
	return p
}

func failedProbe() *capture.Record {
	c := probeOf([]capture.Request{
		{ID: 0, Status: 503, End: 3 * ms, Error: "503 Service Unavailable: the model is still loading"},
		{ID: 1, Lane: 1, Sent: ms, Connect: 200 * time.Microsecond, Status: 200, Error: "the server answered 200 and then an error: context length exceeded", End: 40 * ms},
	}, 40*ms, 0, 90)
	c.Pages = nil
	return recordOf(probeSetup(2, 2), c)
}

// countedAtEnd is an observation of a loaded server that counts tokens at the end of a request. tokens are
// its counts at each second.
func countedAtEnd(tokens ...float64) *capture.Record {
	c := probeOf(nil, time.Duration(len(tokens)-1)*time.Second, 0, 0)
	c.Pages, c.PagesFrom, c.Counting = nil, "llama.cpp", capture.AtEnd
	for i, v := range tokens {
		c.Pages = append(c.Pages, capture.PageSample{At: time.Duration(i) * time.Second, Took: ms, GenerationTokens: some(9000 + v), Running: some(1), Waiting: some(0)})
	}
	p := observation(c)
	p.Setup.Target = engine.Target{URL: "http://127.0.0.1:8080", Engine: "llama.cpp", Model: "random"}
	return p
}

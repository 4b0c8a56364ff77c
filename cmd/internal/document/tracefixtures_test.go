package document_test

import (
	"math"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const us = time.Microsecond

// traces are the states of a trace for the writers' tests.
func traces() map[string]func() *optrace.Summary {
	return map[string]func() *optrace.Summary{
		"dense": denseTrace, "moe": mixtureTrace, "absent": absentTrace, "hostile": hostileTrace,
		"interfered": interferedTrace, "counted": countedTrace, "idle": func() *optrace.Summary { return &optrace.Summary{} },
		"cut": cutTrace,
	}
}

// cutTrace is a recording with nothing but its head.
func cutTrace() *optrace.Summary {
	return &optrace.Summary{Gaps: []optrace.Gap{
		{What: "counters", Why: "the machine has none"},
		{What: optrace.GapEnd, Why: "the file is cut short after 3 events: the recording process was killed, or its disk was full", Next: "the recorded part is valid; record again for the remainder"},
	}}
}

// traceStep is one step of a layer of a fixture, with its figures per token.
type traceStep struct {
	name, op, sub, typ string
	count              int           // in a graph
	each               time.Duration // of a decode graph
	bytes, flops       float64
}

// spreadOut is a distribution around a mean.
func spreadOut(n int, mean time.Duration) stat.Distribution {
	return stat.Distribution{Count: n, Mean: mean, P50: mean - mean/100, P95: mean + mean/12, P99: mean + mean/5, Max: mean + mean/2}
}

// stepRows returns the rows of steps over graphs. Rates relative to the peaks of memory and compute determine the bound.
func stepRows(phase string, graphs int, steps []traceStep, roof optrace.Peak) []optrace.OperatorRow {
	var all time.Duration
	var rows []optrace.OperatorRow
	for _, s := range steps {
		n := s.count * graphs
		row := optrace.OperatorRow{
			Phase: phase, Op: s.op, Sub: s.sub, Name: s.name, Type: s.typ, Count: int64(n), Time: time.Duration(n) * s.each, Each: spreadOut(n, s.each),
			Sync: optrace.SomeTime(time.Duration(n) * s.each / 9), Off: optrace.SomeTime(time.Duration(n) * s.each / 200),
			Bytes: some(s.bytes * float64(n)), Flops: some(s.flops * float64(n)), BytesRate: some(s.bytes / s.each.Seconds()), FlopsRate: some(s.flops / s.each.Seconds()),
		}
		memory, compute := row.BytesRate.V/roof.BytesPerSecond, row.FlopsRate.V/roof.FlopsPerSecond
		row.BoundFrom, row.Bound, row.OfPeak = "roofline (est)", optrace.BoundMemory, some(memory)
		if compute > memory {
			row.Bound, row.OfPeak = optrace.BoundCompute, some(compute)
		}
		all += row.Time
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].Share = some(rows[i].Time.Seconds() / all.Seconds())
	}
	return rows
}

// kindRows sums rows with the same operator and type.
func kindRows(steps []optrace.OperatorRow) []optrace.OperatorRow {
	var out []optrace.OperatorRow
	at := map[string]int{}
	for _, s := range steps {
		key := s.Phase + s.Op + s.Sub + s.Type
		i, seen := at[key]
		if !seen {
			at[key] = len(out)
			s.Name = ""
			out = append(out, s)
			continue
		}
		o := &out[i]
		o.Count, o.Time, o.Sync, o.Off = o.Count+s.Count, o.Time+s.Time, o.Sync.Plus(s.Sync), o.Off.Plus(s.Off)
		o.Share, o.Bytes, o.Flops = o.Share.Plus(s.Share), o.Bytes.Plus(s.Bytes), o.Flops.Plus(s.Flops)
		o.Each = spreadOut(int(o.Count), o.Time/time.Duration(o.Count))
		o.BytesRate, o.FlopsRate = some(o.Bytes.V/o.Time.Seconds()), some(o.Flops.V/o.Time.Seconds())
	}
	return out
}

// scaledSteps returns steps with scaled time and work, as of a batch.
func scaledSteps(steps []traceStep, each, bytes, flops float64) []traceStep {
	var out []traceStep
	for _, s := range steps {
		s.each, s.bytes, s.flops = time.Duration(float64(s.each)*each), s.bytes*bytes, s.flops*flops
		out = append(out, s)
	}
	return out
}

// denseTrace is a model of 0.98 B parameters in Q4_0 on two threads, the second without effect.
func denseTrace() *optrace.Summary {
	const layers, decodes, prefills = 22, 276, 4
	roof := optrace.Peak{BytesPerSecond: 21.4e9, FlopsPerSecond: 640e9, Threads: 2, From: "measured"}
	steps := []traceStep{
		{"ffn_up", "MUL_MAT", "", "q4_0", layers, 352 * us, 6.49e6, 23.1e6}, {"ffn_gate", "MUL_MAT", "", "q4_0", layers, 349 * us, 6.49e6, 23.1e6},
		{"ffn_out", "MUL_MAT", "", "q4_0", layers, 362 * us, 6.49e6, 23.1e6}, {"Qcur", "MUL_MAT", "", "q4_0", layers, 134 * us, 2.36e6, 8.4e6},
		{"Kcur", "MUL_MAT", "", "q4_0", layers, 21 * us, .31e6, 1.1e6}, {"Vcur", "MUL_MAT", "", "q4_0", layers, 22 * us, .31e6, 1.1e6},
		{"attn_out", "MUL_MAT", "", "q4_0", layers, 131 * us, 2.36e6, 8.4e6}, {"__fattn__", "FLASH_ATTN_EXT", "", "f16", layers, 64 * us, .52e6, 1.6e6},
		{"result_output", "MUL_MAT", "", "q8_0", 1, 3900 * us, 69.6e6, 131e6}, {"norm", "RMS_NORM", "", "", 2*layers + 1, 4 * us, 24e3, 8e3},
		{"ffn_swiglu", "GLU", "SWIGLU", "", layers, 7 * us, 66e3, 28e3}, {"cache_k", "SET_ROWS", "", "", layers, 2 * us, 1e3, 0},
		{"l_out", "ADD", "", "", 2 * layers, 2 * us, 24e3, 2e3}, {"inp_embd", "GET_ROWS", "", "q4_0", 1, 3 * us, 9e3, 0},
	}
	s := &optrace.Summary{
		Target: optrace.Target{
			PID: 4242, Command: "/usr/bin/llama-server -m /models/big-q4_0.gguf -t 2", Runtime: "ggml 0.25.1", Hook: "ggml_cpu_extra_compute_forward", Layout: "accessors", Verified: true,
			Files: []optrace.File{{Role: "cpu backend", Path: "/usr/lib/libggml-cpu-sapphirerapids.so", BuildID: "9f0a11"}, {Role: "llama", Path: "/usr/lib/libllama.so"}},
			Sites: []optrace.Site{{Symbol: "ggml_cpu_extra_compute_forward", File: "/usr/lib/libggml-cpu-sapphirerapids.so", Offset: 4, Instruction: "push %r15", Cheap: true, Cost: 350}},
			Arch:  "amd64", Kernel: "6.18", CPU: "Intel Xeon Processor (SapphireRapids)", CPUs: 2, Model: "/models/big-q4_0.gguf",
		},
		Coverage: optrace.Coverage{
			Seconds: 10.4, Detail: "tensor, barriers, sched", Events: 214_311, Graphs: decodes + prefills, Partial: 1, Calls: decodes + prefills,
			OpShare: some(.9994), GraphOf: some(.992), OpsPerToken: some(379),
		},
		Observer: optrace.Observer{HitsPerToken: 758, CostPerHit: 900 * time.Nanosecond, Expected: .019, Measured: .02, MeasuredLow: .014, MeasuredHigh: .026, Windows: 89},
		Peak:     roof,
		Threads: []optrace.ThreadRow{
			{Thread: 0, ThreadIDs: 1, Busy: some(.91), Sync: some(.08), Off: some(.01), Preempted: some(.004), WakeUp: spreadOut(12, 60*us), Switches: some(14), MinorFaults: some(3), MajorFaults: some(0)},
			{Thread: 1, ThreadIDs: 1, Busy: some(.56), Sync: some(.41), Off: some(.03), Preempted: some(.02), WakeUp: spreadOut(31, 90*us), Switches: some(40), MinorFaults: some(1), MajorFaults: some(0)},
		},
		Types: []optrace.TypeRow{
			{Type: "q4_0", Phase: "decode", Time: 8 * time.Second, Share: some(.87), Bytes: some(150e9), BytesRate: some(18.3e9), FlopsRate: some(65e9), Weights: some(551e6)},
			{Type: "q8_0", Phase: "decode", Time: 1076 * ms, Share: some(.12), Bytes: some(19.2e9), BytesRate: some(17.8e9), FlopsRate: some(33.6e9), Weights: some(69.6e6)},
		},
		Critical: []optrace.CriticalRow{
			{Name: "MUL_MAT", Thread: 0, Time: 8700 * ms, Share: some(.9)}, {Name: "synchronisation", Thread: 1, Time: 480 * ms, Share: some(.05)},
			{Name: "FLASH_ATTN_EXT", Thread: 0, Time: 390 * ms, Share: some(.04)}, {Name: "start", Thread: 1, Time: 97 * ms, Share: some(.01)},
		},
		Backends: []optrace.BackendRow{{Name: "CPU", Splits: decodes + prefills, Nodes: 280 * 664, Time: 9800 * ms, Seen: true}},
		Copies:   []optrace.CopyRow{{Direction: "into a backend", Count: 1680, Bytes: 1 << 20}, {Direction: "out of a backend", Count: 280, Bytes: 36 << 20}},
		Graphs:   []optrace.GraphShape{{DAG: 1, Nodes: 664, Edges: 731, Leaves: 271, Views: 176, Graphs: decodes}, {DAG: 2, Nodes: 664, Edges: 731, Leaves: 271, Views: 176, Graphs: prefills}},
		Findings: []optrace.Finding{
			{
				ID: "threads-above-memory-roof", Severity: "warn", Title: "More threads than the memory feeds", Cost: some(.12),
				Evidence: []string{"thread 1 waits 41 % of the time of graphs", "decode reads 17.6 GB/s, 82 % of what one thread alone can read here"},
			},
			{ID: "prefill-batch-small", Severity: "info", Title: "Prefill runs in batches of 24 tokens", Evidence: []string{"compute reaches 51 % of its peak"}},
		},
		Advice: optrace.Advice{
			Finding: "threads-above-memory-roof", Do: "Compute with one thread instead of two", Flag: "--threads", Value: "1",
			Why:   "decode is bound by memory, which one thread already uses in full; the second one waits 41 % of its time and takes the CPU from others",
			Price: "prefill is bound by compute: it becomes up to 40 % slower; a restart", Gain: some(.06), GainLow: some(.01), GainHigh: some(.11),
			Rejected: []string{"a smaller type of weights: quality is not measured here"}, Check: "trace again under the same load and compare tok/s",
		},
		Gaps: []optrace.Gap{
			{What: "cache misses, instructions", Why: "this machine has no performance monitoring unit (a virtual machine)", Next: "trace on the host, or on bare metal; bounds are from the roofline (est)"},
			{What: "system calls", Why: "not asked for", Next: "--detail all"},
		},
	}
	s.Steps = append(stepRows("decode", decodes, steps, roof), stepRows("prefill", prefills, scaledSteps(steps, 4.2, 1.02, 24), roof)...)
	s.Kinds = kindRows(s.Steps)
	for i := range layers {
		slow := 1.0
		if i == 7 {
			slow = 1.62
		}
		each := time.Duration(float64(1435*us) * slow)
		s.Layers = append(s.Layers, optrace.LayerRow{
			Phase: "decode", Layer: i, Time: decodes * each, Share: some(.04 * slow), Slow: some(slow),
			Parts: map[string]time.Duration{"attention": decodes * each / 4, "feed-forward": decodes * each * 7 / 10, "norm": decodes * each / 20},
		})
	}
	s.Layers = append(s.Layers, optrace.LayerRow{Phase: "decode", Layer: -1, Time: decodes * 3903 * us, Share: some(.11), Parts: map[string]time.Duration{"other": decodes * 3903 * us}})
	s.Phases = []optrace.PhaseRow{
		{
			Phase: "prefill", Calls: prefills, Tokens: 96, Call: spreadOut(prefills, 147*ms), Graph: spreadOut(prefills, 145*ms), Rate: some(163), FirstToken: spreadOut(prefills, 149*ms),
			Bytes: some(2.5e9), Flops: some(180e9), BytesRate: some(4.3e9), FlopsRate: some(326e9),
		},
		{
			Phase: "decode", Calls: decodes, Tokens: decodes, Call: spreadOut(decodes, 35200*us), Graph: spreadOut(decodes, 34900*us), Rate: some(28.4), Between: spreadOut(decodes-1, 310*us),
			Bytes: some(170e9), Flops: some(550e9), BytesRate: some(17.6e9), FlopsRate: some(57.1e9), Ceiling: some(34.6),
		},
	}
	at := time.Duration(0)
	for i := range 64 {
		d := time.Duration(float64(35200*us) * (1 + .06*math.Sin(float64(i)) + map[bool]float64{true: .5}[i%23 == 22]))
		s.Tokens = append(s.Tokens, optrace.TokenRow{Begin: at, Time: d, Phase: "decode", Tokens: 1, Graph: d - 300*us, Off: optrace.SomeTime(400 * us), Context: 128 + int64(i)})
		at += d + 310*us
	}
	for i := range int64(8) {
		length := 256 * (i + 1)
		attention := time.Duration(float64(1400*us) * float64(length) / 256)
		graph := 33500*us + attention
		s.Context = append(s.Context, optrace.ContextRow{Length: length, Graphs: 34, Attention: attention, Graph: graph, Share: some(attention.Seconds() / graph.Seconds())})
	}
	return s
}

// mixtureTrace is a small mixture of experts on one thread, with very uneven choices in one layer.
func mixtureTrace() *optrace.Summary {
	const layers, decodes = 4, 200
	s := denseTrace()
	s.Peak = optrace.Peak{BytesPerSecond: 14.2e9, Threads: 1, From: "seen", FlopsPerSecond: 90e9}
	s.Target.Command, s.Target.Model, s.Target.PID = "node script.mjs", "/models/moe.gguf", 977
	s.Target.Hook, s.Target.Layout = "ggml_cpu_extra_compute_forward", "version table"
	s.Coverage.OpsPerToken, s.Coverage.Graphs, s.Coverage.Calls, s.Coverage.LeftOut = some(109), decodes, decodes, 1200
	s.Observer = optrace.Observer{HitsPerToken: 109, CostPerHit: 1100 * time.Nanosecond, Expected: .21}
	steps := []traceStep{
		{"ffn_moe_up", "MUL_MAT_ID", "", "q4_0", layers, 18 * us, 190e3, 1.3e6}, {"ffn_moe_gate", "MUL_MAT_ID", "", "q4_0", layers, 17 * us, 190e3, 1.3e6},
		{"ffn_moe_down", "MUL_MAT_ID", "", "q4_0", layers, 19 * us, 190e3, 1.3e6}, {"ffn_moe_logits", "MUL_MAT", "", "f32", layers, 2 * us, 8e3, 4e3},
		{"ffn_moe_argsort", "ARGSORT", "", "", layers, us, 64, 0}, {"__fattn__", "FLASH_ATTN_EXT", "", "f16", layers, 9 * us, 33e3, 70e3},
		{"result_output", "MUL_MAT", "", "q8_0", 1, 21 * us, 262e3, 131e3},
	}
	s.Steps = stepRows("decode", decodes, steps, s.Peak)
	s.Kinds = kindRows(s.Steps)
	s.Threads = s.Threads[:1]
	s.Phases = []optrace.PhaseRow{{Phase: "decode", Calls: decodes, Tokens: decodes, Call: spreadOut(decodes, 350*us), Graph: spreadOut(decodes, 331*us), Rate: some(2620), BytesRate: some(7.9e9), FlopsRate: some(49e9)}}
	s.Layers, s.Context, s.Critical = nil, nil, s.Critical[:1]
	for _, rows := range [][]optrace.OperatorRow{s.Steps, s.Kinds} {
		for i := range rows {
			rows[i].Estimated = rows[i].Op == "ARGSORT" || rows[i].Op == "FLASH_ATTN_EXT"
		}
	}
	e := &optrace.Experts{Count: 8, Used: 2, Tokens: layers * decodes, CV: some(.52), TimeCV: some(.013)}
	for l := range layers {
		row := optrace.ExpertLayer{Layer: l, CV: some(.11 + .2*float64(l)), Top: some(.17 + .05*float64(l))}
		for x := range 8 {
			row.Chosen = append(row.Chosen, 2*decodes/8+int64(float64(l*10)*math.Cos(float64(x))))
			t := some(18e-6 + 1e-7*float64(x))
			if l == 3 && x == 4 {
				row.Chosen[x], t = 0, stat.None
			}
			row.Time = append(row.Time, t)
		}
		e.Layers = append(e.Layers, row)
		s.Layers = append(s.Layers, optrace.LayerRow{Phase: "decode", Layer: l, Time: decodes * 74 * us, Share: some(.24), Slow: some(1)})
	}
	s.Experts = e
	s.Findings = []optrace.Finding{{ID: "experts-uneven", Severity: "info", Title: "The experts of layer 3 are chosen unevenly", Evidence: []string{"CV 0.71; expert 4 was never chosen in 200 tokens"}}}
	s.Advice = optrace.Advice{Why: "every operator is near its roof, and no time is lost between them"}
	return s
}

// absentTrace is a trace of calls alone, without visible operators.
func absentTrace() *optrace.Summary {
	return &optrace.Summary{
		Target:   optrace.Target{PID: 31, Command: "ollama", Withheld: "the target exports no symbol of a layout", Arch: "arm64", Kernel: "6.1"},
		Coverage: optrace.Coverage{Seconds: 5, Detail: "token", Events: 412, Calls: 206},
		Phases:   []optrace.PhaseRow{{Phase: "unknown", Calls: 206, Call: spreadOut(206, 24*ms)}},
		Gaps: []optrace.Gap{
			{What: "operators", Why: "the binary is static and stripped: no symbol leads to them", Next: "use a build whose libraries export their symbols (the packaged ones do)"},
			{What: "batches", Why: "the number of tokens of a call could not be read"},
		},
	}
}

// hostileTrace has implausible names, which a model file may contain.
func hostileTrace() *optrace.Summary {
	s := denseTrace()
	for i := range s.Steps {
		s.Steps[i].Name = hostile[i%len(hostile)]
		s.Steps[i].Op = "<script>alert(1)</script>"
		s.Steps[i].Type = `"/><b>`
	}
	s.Kinds = s.Steps
	s.Target.Command, s.Target.Model = "\x1b[31m/opt/e\nvil&<b> --x", "/tmp/<img src=x onerror=y>.gguf"
	s.Others = []optrace.OtherRow{{PID: 9, Name: "</title><script>", Time: ms, Share: some(.01)}}
	s.Gaps = []optrace.Gap{{What: "]]>", Why: "--> <!-- &amp;", Next: strings.Repeat("x", 200)}}
	s.Advice.Do, s.Advice.Check = "Remove </style> from the \"name\"", "rm -rf '; <tag>"
	return s
}

// interferedTrace is a target whose CPU is used by another process.
func interferedTrace() *optrace.Summary {
	s := denseTrace()
	s.Threads[0].Busy, s.Threads[0].Off, s.Threads[0].Preempted = some(.5), some(.42), some(.4)
	s.Threads[1].Busy, s.Threads[1].Off, s.Threads[1].Preempted, s.Threads[1].Sync = some(.44), some(.4), some(.37), some(.16)
	s.Observer.Reader, s.Observer.ReaderTime = some(.021), 210*ms
	s.Others = []optrace.OtherRow{{PID: 8001, Name: "stress-ng", Time: 3900 * ms, Share: some(.39), OfThreads: some(.195)}, {Name: optrace.SiblingName, Time: 80 * ms, Share: some(.008), OfThreads: some(.004)}, {PID: 22, Name: "", Time: 12 * ms, Share: some(.001)}}
	s.Preempted = optrace.Preempted{Time: optrace.SomeTime(4 * time.Second), OwnCPUs: some(1.04), Threads: some(1)}
	s.HostLoad = &optrace.HostLoad{
		Elapsed: 10 * time.Second, CPUs: 2, Target: 12 * time.Second, Rooftop: 200 * ms, Kernel: 10 * ms, Others: 7500 * ms, Idle: 200 * ms,
		Processes: []optrace.ProcessLoad{{PID: 8001, Name: "stress-ng", Time: 7400 * ms}}, CPULimit: some(1.5), Throttled: some(0),
	}
	s.Coverage.Dropped, s.Peak.From = 17, optrace.PeakSeen
	s.Findings = append([]optrace.Finding{{
		ID: "preempted", Severity: "bad", Title: "Another process takes the CPU", Cost: some(.39),
		Evidence: []string{"stress-ng (PID 8001) had a CPU for 3.90 s while a compute thread could have run", "lane 0 was preempted for 40 % of the time of graphs"},
	}}, s.Findings...)
	s.Advice = optrace.Advice{
		Finding: "preempted", Do: "Keep stress-ng off the target's CPUs", Why: "its threads could have run for 39 % of the time of graphs and had no CPU",
		Price: "the other process gets fewer CPUs", Check: "rooftop trace --pid 4242",
	}
	return s
}

// countedTrace is a machine with hardware counters and no recommendation.
func countedTrace() *optrace.Summary {
	s := denseTrace()
	for _, rows := range [][]optrace.OperatorRow{s.Steps, s.Kinds} {
		for i := range rows {
			rows[i].IPC, rows[i].MissRate, rows[i].BoundFrom = some(.61), some(.0123), "counters"
			if rows[i].Phase == "prefill" {
				rows[i].IPC, rows[i].MissRate, rows[i].Bound = some(2.8), some(.0004), optrace.BoundCompute
			}
		}
	}
	s.Threads, s.Findings, s.Gaps = s.Threads[:1], nil, nil
	s.Advice = optrace.Advice{Do: "Change nothing.", Price: "none", Why: "decode reads memory at 82 % of its peak, prefill computes at 51 %: what is left is small"}
	return s
}

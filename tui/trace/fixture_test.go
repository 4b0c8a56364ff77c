package trace

import (
	"fmt"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// traced is an artificial trace with a name.
type traced struct {
	name string
	l    *optrace.Live
}

// shape has the parameters of artificial traces.
type shape struct {
	layers, threads, experts, used int
	slow                           int // layer that is slow, -1 none
	off                            bool
}

func traceFixtures() []traced {
	dense := liveOf(shape{layers: 22, threads: 4, slow: 17})
	state := func(s optrace.LiveState, by func(*optrace.Live)) *optrace.Live {
		l := *dense
		l.State = s
		if by != nil {
			by(&l)
		}
		return &l
	}
	bare := func(s optrace.LiveState, by func(*optrace.Live)) *optrace.Live {
		l := &optrace.Live{State: s, Now: 3 * time.Second, Detail: optrace.LevelTensor, Target: traceTarget()}
		if by != nil {
			by(l)
		}
		return l
	}
	question := "Tracing operators is expected to cost this target 11 % of its speed: 379 hits a token of 1.2 µs each in 4.1 ms. The limit is 4 %. Trace them all the same?"
	return []traced{
		{"nothing", nil},
		{"attaching", &optrace.Live{Now: 2 * time.Second}},
		{"waiting", bare(optrace.LiveWaiting, nil)},
		{"weighing", bare(optrace.LiveWeighing, nil)},
		{"asking-bare", bare(optrace.LiveAsking, func(l *optrace.Live) { l.Question = question })},
		{"tracing-bare", bare(optrace.LiveTracing, nil)},
		{"paused-bare", bare(optrace.LivePaused, nil)},
		{"ended-bare", bare(optrace.LiveEnded, func(l *optrace.Live) { l.Notice = "The target has exited." })},
		{"dense", dense},
		{"asking", state(optrace.LiveAsking, func(l *optrace.Live) { l.Question = question })},
		{"paused", state(optrace.LivePaused, nil)},
		{"idle", state(optrace.LiveWaiting, nil)},
		{"ended", state(optrace.LiveEnded, func(l *optrace.Live) { l.Notice = "the target has exited" })},
		{"moe", liveOf(shape{layers: 24, threads: 8, experts: 8, used: 2, slow: -1})},
		{"experts", liveOf(shape{layers: 48, threads: 16, experts: 128, used: 8, slow: -1, off: true})},
		{"single", liveOf(shape{layers: 12, threads: 1, slow: -1})},
		{"threads", liveOf(shape{layers: 32, threads: 64, slow: -1, off: true})},
		{"deep", liveOf(shape{layers: 80, threads: 16, slow: 41})},
		{"lost", state(optrace.LiveTracing, func(l *optrace.Live) {
			s := *l.Summary
			s.Coverage.Dropped, s.Coverage.Partial = 120_345, 17
			l.Summary = &s
		})},
		{"withheld", withheldLive()},
		{"graphs", graphsLive()},
		{"quiet", state(optrace.LiveTracing, func(l *optrace.Live) {
			s := *l.Summary
			s.Findings, s.Advice = nil, optrace.Advice{Why: "decode reaches 91 % of what the memory allows, and no thread waits for long"}
			l.Summary = &s
		})},
		{"empty", &optrace.Live{State: optrace.LiveTracing, Summary: &optrace.Summary{}}},
		{"hostile", hostileLive()},
	}
}

func traceTarget() optrace.Target {
	return optrace.Target{
		PID: 4120, Command: "/opt/llama.cpp/bin/llama-server -m /models/tinyllama-1.1b-chat.Q4_0.gguf -t 4", Runtime: "ggml 0.25.1",
		Files: []optrace.File{{Role: "cpu backend", Path: "/opt/llama.cpp/lib/libggml-cpu-sapphirerapids.so", BuildID: "8f2c11d0"}, {Role: "base", Path: "/opt/llama.cpp/lib/libggml-base.so", BuildID: "01ab"}},
		Hook:  "ggml_cpu_extra_compute_forward", Layout: "accessors", Verified: true, Arch: "amd64", Kernel: "6.18.5", CPU: "Intel Xeon Platinum 8481C", CPUs: 8,
		Model: "/models/tinyllama-1.1b-chat.Q4_0.gguf",
		Sites: []optrace.Site{
			{Symbol: "ggml_cpu_extra_compute_forward", File: "/opt/llama.cpp/lib/libggml-cpu-sapphirerapids.so", Offset: 4, Instruction: "push rbp", Cheap: true, Cost: 350 * time.Nanosecond},
			{Symbol: "ggml_graph_compute", File: "/opt/llama.cpp/lib/libggml-cpu-sapphirerapids.so", Offset: 0, Instruction: "and rsp, -64", Cost: 3500 * time.Nanosecond},
		},
	}
}

func distribution(mean time.Duration, n int) stat.Distribution {
	return stat.Distribution{Count: n, Mean: mean, P50: mean * 98 / 100, P95: mean * 107 / 100, P99: mean * 119 / 100, Max: mean * 2}
}

// liveOf returns an artificial trace of 30 seconds.
func liveOf(form shape) *optrace.Live {
	const graphs = 850
	s := &optrace.Summary{
		Target:   traceTarget(),
		Coverage: optrace.Coverage{Seconds: 30, Detail: "tensor", Events: 1_284_330, Graphs: graphs + 2, Calls: graphs + 2, OpShare: some(0.9994), GraphOf: some(0.992), OpsPerToken: some(float64(17*form.layers + 5))},
		Observer: optrace.Observer{HitsPerToken: float64(17*form.layers + 5), CostPerHit: 1200 * time.Nanosecond, Expected: 0.013, Measured: 0.02, MeasuredLow: 0.014, MeasuredHigh: 0.026, Windows: 34},
		Peak:     optrace.Peak{BytesPerSecond: 25.4e9, FlopsPerSecond: 310e9, FlopsOf: "f32, AVX-512 FMA", Threads: form.threads, From: "measured"},
		Phases: []optrace.PhaseRow{
			{Phase: "prefill", Calls: 2, Tokens: 1024, Call: distribution(1650*time.Millisecond, 2), Graph: distribution(1640*time.Millisecond, 2), Rate: some(310), FirstToken: distribution(1700*time.Millisecond, 2), Ceiling: some(690), BytesRate: some(2.1e9), FlopsRate: some(151e9)},
			{Phase: "decode", Calls: graphs, Tokens: graphs, Call: distribution(35200*time.Microsecond, graphs), Graph: distribution(34900*time.Microsecond, graphs), Rate: some(28.4), Ceiling: some(38.9), BytesRate: some(18.6e9), FlopsRate: some(58e9)},
		},
		Context: []optrace.ContextRow{{Length: 256, Graphs: 400, Attention: 900 * time.Microsecond, Graph: 34 * time.Millisecond, Share: some(0.026)}, {Length: 1024, Graphs: 450, Attention: 3100 * time.Microsecond, Graph: 36 * time.Millisecond, Share: some(0.086)}},
		Types: []optrace.TypeRow{
			{Type: "q4_0", Phase: "decode", Time: 21 * time.Second, Share: some(0.83), Bytes: some(5.1e11), BytesRate: some(20.4e9), FlopsRate: some(61e9), Weights: some(560 << 20)}, {Type: "q6_k", Phase: "decode", Time: 2 * time.Second, Share: some(0.08), Bytes: some(4.2e10), BytesRate: some(19.1e9), FlopsRate: some(31e9), Weights: some(52 << 20)},
			{Type: "q4_0", Phase: "prefill", Time: 3 * time.Second, Share: some(0.9), Bytes: some(9e9), BytesRate: some(2.8e9), FlopsRate: some(190e9), Weights: some(560 << 20)},
		},
		Critical: []optrace.CriticalRow{{Name: "MUL_MAT", Thread: 0, Time: 19 * time.Second, Share: some(0.64)}, {Name: "synchronisation", Thread: 3, Time: 4 * time.Second, Share: some(0.13)}, {Name: "start", Thread: 1, Time: 900 * time.Millisecond, Share: some(0.03)}},
		Backends: []optrace.BackendRow{{Name: "CPU", Splits: graphs + 2, Nodes: 379 * graphs, Time: 29 * time.Second, Seen: true}},
		Graphs:   []optrace.GraphShape{{DAG: 1, Nodes: 754, Edges: 1130, Leaves: 201, Views: 310, Graphs: graphs}, {DAG: 2, Nodes: 760, Edges: 1140, Leaves: 201, Views: 310, Graphs: 2}},
		Findings: []optrace.Finding{
			{ID: "threads-above-memory-roof", Severity: "warn", Title: "More threads than memory can feed", Evidence: []string{"4 threads reach 18.6 GB/s of the 25.4 GB/s that 2 reach already.", "Lanes wait 21 % of the time of graphs in barriers."}, Cost: some(0.11)},
			{ID: "one-slow-layer", Severity: "bad", Title: "Layer 17 takes 1.6x the median", Evidence: []string{"Its feed-forward part takes 2.5 ms, that of others 1.5 ms."}, Cost: some(0.03)},
			{ID: "coverage", Severity: "good", Title: "Operators cover the graphs", Evidence: []string{"They are 99.9 % of the time of graphs."}},
		},
		Advice: optrace.Advice{
			Finding: "threads-above-memory-roof", Do: "Compute with 2 threads instead of 4", Flag: "--threads", Value: "2",
			Why: "Decode is bound by reading the weights, and 2 threads reach the memory's roof: the others only wait and take the barriers' time.", Price: "prefill becomes about 40 % slower; one restart",
			Gain: some(0.12), GainLow: some(0.08), GainHigh: some(0.15), Rejected: []string{"repacked weights: q4_0 is repacked already"}, Check: "trace again under the same load and compare tok/s",
		},
		Gaps: []optrace.Gap{{What: "hardware counters", Why: "this machine has no performance monitoring unit", Next: "rooftop doctor"}, {What: "time of experts", Why: "batches of several tokens hide it", Next: ""}},
	}
	operators(s, form)
	for i := -1; i < form.layers; i++ {
		slow := 1 + 0.03*math.Sin(float64(i))
		if i == form.slow {
			slow = 1.6
		}
		ms := time.Duration(slow * float64(1500*time.Microsecond) * graphs)
		row := optrace.LayerRow{Phase: "decode", Layer: i, Time: ms, Share: some(1 / float64(form.layers+1)), Slow: some(slow), Parts: map[string]time.Duration{"attention": ms * 3 / 10, "feed-forward": ms * 6 / 10, "norm": ms / 50, "other": ms * 8 / 100}}
		if i < 0 {
			row.Slow, row.Parts = stat.None, map[string]time.Duration{"other": ms}
		}
		s.Layers = append(s.Layers, row)
	}
	for i := range 40 {
		s.Tokens = append(s.Tokens, optrace.TokenRow{Begin: time.Duration(i) * 35 * time.Millisecond, Time: 35 * time.Millisecond, Phase: "decode", Tokens: 1})
	}
	for i := range 12 {
		s.Tokens = append(s.Tokens, optrace.TokenRow{Time: time.Duration(1600+20*(i%3)) * time.Millisecond, Phase: "prefill", Tokens: 512})
	}
	live := &optrace.Live{State: optrace.LiveTracing, Since: 65 * time.Second, Now: 72 * time.Second, Detail: optrace.LevelTensor, Summary: s, Target: s.Target}
	for i := range 60 {
		r := 28 + 2*math.Sin(float64(i)/3)
		if i > 20 && i < 26 {
			r = math.NaN()
		}
		live.Rates = append(live.Rates, r)
	}
	lanesOf(live, form)
	if form.experts > 0 {
		expertsOf(s, form)
	}
	return live
}

func operators(s *optrace.Summary, form shape) {
	row := func(phase, op, sub, typ, name string, share, bytes, flops, roof float64, bound optrace.Bound, count int64) optrace.OperatorRow {
		t := time.Duration(share * float64(25*time.Second))
		opt := func(v float64) stat.Opt { return stat.Opt{V: v, OK: v > 0} }
		return optrace.OperatorRow{
			Phase: phase, Op: op, Sub: sub, Type: typ, Name: name, Count: count, Time: t, Share: some(share), Each: distribution(t/time.Duration(count), int(count)), Sync: optrace.SomeTime(t / 9),
			BytesRate: opt(bytes), FlopsRate: opt(flops), OfPeak: opt(roof), Bound: bound, BoundFrom: "roofline (est)",
		}
	}
	mem, comp := optrace.BoundMemory, optrace.BoundCompute
	s.Kinds = []optrace.OperatorRow{
		row("prefill", "MUL_MAT", "", "q4_0", "", 0.91, 2.8e9, 190e9, 0.61, comp, 310),
		row("prefill", "FLASH_ATTN_EXT", "", "", "", 0.07, 1.1e9, 90e9, 0.29, comp, 44),
		row("decode", "MUL_MAT", "", "q4_0", "", 0.74, 20.4e9, 61e9, 0.80, mem, 131_750),
		row("decode", "MUL_MAT", "", "q6_k", "", 0.09, 19.1e9, 31e9, 0.75, mem, 850),
		row("decode", "FLASH_ATTN_EXT", "", "", "", 0.086, 6.2e9, 12e9, 0.24, mem, 18_700),
		row("decode", "RMS_NORM", "", "", "", 0.021, 3.1e9, 1.2e9, 0.12, optrace.BoundMixed, 38_250),
		row("decode", "GLU", "SWIGLU", "", "", 0.018, 5.5e9, 2.2e9, 0.22, mem, 18_700),
		row("decode", "ROPE", "", "", "", 0.012, 1.5e9, 0.8e9, 0.06, optrace.BoundUnknown, 37_400),
		row("decode", "ADD", "", "", "", 0.008, 2.5e9, 0.2e9, 0.1, mem, 37_400),
		row("decode", "SET_ROWS", "", "", "", 0.004, 0, 0, 0, optrace.BoundUnknown, 37_400),
		row("decode", "GET_ROWS", "", "q4_0", "", 0.0003, 0.4e9, 0, 0.02, mem, 2_550),
	}
	s.Kinds[4].Estimated = true
	for i, name := range []string{"ffn_up", "ffn_gate", "ffn_down", "attn_q", "attn_out", "kqv", "result_output", "norm"} {
		s.Steps = append(s.Steps, row("decode", "MUL_MAT", "", "q4_0", name, 0.3/float64(i+1), 20e9-float64(i)*1e9, 60e9, 0.8-0.05*float64(i), mem, 18_700))
	}
	if form.experts > 0 {
		s.Kinds = append(s.Kinds, row("decode", "MUL_MAT_ID", "", "q4_0", "", 0.4, 17e9, 44e9, 0.67, mem, int64(3*form.layers*850)))
	}
}

// lanesOf adds a graph of 34.9 ms on each thread.
func lanesOf(l *optrace.Live, form shape) {
	whole := 34900 * time.Microsecond
	l.Graph = optrace.LiveGraph{Index: 849, Phase: "decode", Tokens: 1, Time: whole}
	for lane := range form.threads {
		ll := optrace.LiveThread{Index: lane, TID: int32(4130 + lane)}
		n, begin := 7*form.layers, time.Duration(0)
		for i := range n {
			kind := [...]struct{ op, name string }{{"RMS_NORM", "norm"}, {"MUL_MAT", "Qcur"}, {"MUL_MAT", "Kcur"}, {"FLASH_ATTN_EXT", "kqv_out"}, {"MUL_MAT", "ffn_up"}, {"GLU", "ffn_swiglu"}, {"MUL_MAT", "ffn_out"}}[i%7]
			share := [...]time.Duration{2, 16, 8, 14, 32, 4, 24}[i%7] // of a layer
			step := whole / time.Duration(form.layers) * share / 100
			span := optrace.LiveSpan{Op: kind.op, Name: fmt.Sprintf("%s-%d", kind.name, i/7), Begin: begin, End: begin + step*97/100 - time.Duration(i)*time.Nanosecond}
			begin += step
			if lane%3 == 2 {
				span.Sync = step * time.Duration(30+30*(i%2)) / 100
			}
			if form.off && lane%5 == 1 && i%n/12 == 3 {
				span.Off, span.Sync = step*8/10, step/10
			}
			ll.Spans = append(ll.Spans, span)
		}
		l.Graph.Threads = append(l.Graph.Threads, ll)
		r := optrace.ThreadRow{Thread: lane, ThreadIDs: 1, Busy: some(0.95 - 0.003*float64(lane)), Sync: some(0.04 + 0.003*float64(lane)), WakeUp: distribution(40*time.Microsecond, 50)}
		if form.off {
			r.Off, r.Preempted, r.Switches = some(0.01), some(0.008), some(120)
		}
		l.Summary.Threads = append(l.Summary.Threads, r)
	}
	if form.off {
		l.Summary.Observer.Reader, l.Summary.Observer.ReaderTime = some(0.042), 900*time.Millisecond
		l.Summary.Others = []optrace.OtherRow{{PID: 812, Name: "postgres", Time: 310 * time.Millisecond, Share: some(0.011), OfThreads: some(0.0056)}, {Name: optrace.SiblingName, Time: 40 * time.Millisecond, Share: some(0.0013), OfThreads: some(0.0007)}, {PID: 99, Name: "", Time: 12 * time.Millisecond, Share: some(0.0004)}}
	}
}

func expertsOf(s *optrace.Summary, form shape) {
	e := &optrace.Experts{Count: form.experts, Used: form.used, Tokens: int64(850 * form.layers), CV: some(0.31), TimeCV: some(0.04)}
	for i := range form.layers {
		layer := optrace.ExpertLayer{Layer: i, CV: some(0.2 + 0.005*float64(i))}
		for j := range form.experts {
			n := int64(100 + 60*math.Sin(float64(i*7+j*3)))
			if j == (i*5)%form.experts {
				n *= 4
			}
			if (i+j)%17 == 0 {
				n = 0
			}
			layer.Chosen = append(layer.Chosen, n)
		}
		layer.Top = some(highestShare(layer.Chosen))
		e.Layers = append(e.Layers, layer)
	}
	s.Experts = e
}

// withheldLive is a target whose tensors do not fit their expected layout.
func withheldLive() *optrace.Live {
	l := liveOf(shape{layers: 12, threads: 2, slow: -1})
	s := *l.Summary
	s.Target.Verified, s.Target.Withheld = false, "3 of 16 tensors that were read have names that are no text"
	s.Layers, s.Types, s.Steps, s.Context = nil, nil, nil, nil
	s.Kinds = []optrace.OperatorRow{{Phase: "decode", Count: 200_000, Time: 20 * time.Second, Share: some(1)}}
	s.Advice, s.Findings = optrace.Advice{}, nil
	l.Summary = &s
	return l
}

// graphsLive is a trace at the level of graphs.
func graphsLive() *optrace.Live {
	l := liveOf(shape{layers: 12, threads: 2, slow: -1})
	s := *l.Summary
	s.Kinds, s.Steps, s.Layers, s.Types, s.Threads, s.Critical, s.Context = nil, nil, nil, nil, nil, nil, nil
	s.Findings, s.Advice = nil, optrace.Advice{}
	s.Observer = optrace.Observer{HitsPerToken: 2, CostPerHit: 900 * time.Nanosecond, Expected: 0.00005}
	s.Peak, s.Coverage.OpShare, s.Coverage.OpsPerToken = optrace.Peak{}, stat.None, stat.None
	s.Phases[1].Ceiling, s.Phases[0].Ceiling = stat.None, stat.None
	l.Summary, l.Detail, l.Graph = &s, optrace.LevelGraph, optrace.LiveGraph{}
	return l
}

// hostileLive has names that must not reach a terminal unchanged.
func hostileLive() *optrace.Live {
	l := liveOf(shape{layers: 3, threads: 2, experts: 4, used: 1, slow: -1})
	const evil = "\x1b[2J模型\u202e名称\xff很长很长很长很长很长很长很长很长很长\n👩‍👩‍👧‍👦"
	s := *l.Summary
	s.Target.Command, s.Target.Model, s.Target.Runtime, s.Target.Hook = evil+"/"+evil, "/x/"+evil, evil, evil
	s.Kinds[2].Op, s.Kinds[3].Type = evil, evil
	s.Findings[0].Title, s.Findings[0].Evidence = evil, []string{evil}
	s.Advice.Do, s.Advice.Flag, s.Advice.Check = evil, "", evil
	s.Others = []optrace.OtherRow{{PID: 1, Name: evil, Time: time.Second, Share: some(math.NaN())}}
	s.Gaps = []optrace.Gap{{What: evil, Why: evil, Next: evil}}
	l.Graph.Threads[0].Spans[0].Name, l.Graph.Threads[0].Spans[0].End = evil, time.Hour
	l.Notice, l.Question = evil, evil
	l.Summary = &s
	return l
}

package tui

import (
	"fmt"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// builders returns the functions that build the snapshots for frames, in order.
func builders() []builder {
	return append([]builder{
		{"starting", func() *loop.Snapshot { return nil }},
		{"empty", func() *loop.Snapshot { return &loop.Snapshot{} }},
		{"looking", lookingSnapshot},
		{"statsoff", statsOffSnapshot},
		{"baseline", baselineSnapshot},
		{"waiting", waitingSnapshot},
		{"applicable", func() *loop.Snapshot { return withHands(waitingSnapshot()) }},
		{"settling", settlingSnapshot},
		{"measuring", measuringSnapshot},
		{"worse", worseSnapshot},
		{"reverting", revertingSnapshot},
		{"down", downSnapshot},
		{"late", lateSnapshot},
		{"idle", idleSnapshot},
		{"nogpu", noGPUSnapshot},
		{"paused", pausedSnapshot},
		{"healthy", healthySnapshot},
		{"finished", finishedSnapshot},
		{"long", longSnapshot},
	}, autoBuilders()...)
}

type builder struct {
	name  string
	build func() *loop.Snapshot
}

func some(v float64) stat.Opt { return stat.Some(v) }

const (
	fixtureModel  = "meta-llama/Llama-3.1-8B-Instruct"
	fixtureURL    = "http://localhost:8000"
	fixtureLaunch = "vllm serve meta-llama/Llama-3.1-8B-Instruct --port 8000 --max-num-seqs %d --gpu-memory-utilization 0.90 --max-model-len 8192"
)

func fixtureStart() time.Time { return time.Date(2026, 3, 4, 14, 0, 0, 0, time.UTC) }

// waitingSnapshot is five minutes into a run: a first change (8 → 16 slots) was kept, a second one
// (the token budget) gained nothing, and 16 → 40 slots is recommended.
func waitingSnapshot() *loop.Snapshot {
	const now = 312*time.Second + 250*time.Millisecond
	live := diagnosisAt(16, 24)
	s := &loop.Snapshot{
		Seq: 1249, Now: now, Started: fixtureStart(), Version: "0.1.0", Watch: fixtureURL,
		Phase: loop.PhaseWaiting, Since: 246 * time.Second,
		Progress: loop.Progress{Elapsed: now - 246*time.Second, Text: "waits for the server to be restarted with --max-num-seqs 40"},
		Attached: true, Target: live.Target, Facts: live.Facts, Launch: live.Facts.Launch, Kept: live.Facts.Launch,
		Missing: []engine.Missing{{What: "DRAM activity", Reason: "GPM needs Hopper or newer", Effect: "dram_util is absent; memory bandwidth use is estimated"}},
		Notes:   []string{"the server runs on this machine: its launch command is read again at every restart"},
		Page:    fixturePage(now, 16, 24), GPU: fixtureGPU(now), Processes: fixtureProcesses(),
		Sources: freshSources(now),
		Live:    live, Baseline: diagnosisAt(16, 24), Advice: live.Recommendation, Firm: true,
		Iterations: fixtureIterations(), RunningIteration: 2, Noise: []float64{0.021, -0.013},
		Points: fixturePoints(now), Marks: fixtureMarks(), Journal: fixtureJournal(),
	}
	s.Can = available(map[loop.Command]string{
		loop.CommandApply:    "rooftop did not start this server and does not restart it: type the command, rooftop notices.",
		loop.CommandRevert:   "There is nothing to go back to: the last change was kept.",
		loop.CommandContinue: "There is no question open.",
	})
	return s
}

// available returns all commands as available, except those with a reason.
func available(not map[loop.Command]string) (can [loop.NumCommands]loop.Availability) {
	for c := range loop.NumCommands {
		why := not[c]
		if c == loop.CommandHold {
			why = "This run is not automatic: --auto makes it so."
		}
		if c == loop.CommandUnskip {
			why = "Nothing was skipped."
		}
		can[c] = loop.Availability{OK: why == "", Why: why}
	}
	return can
}

// slotsAt returns the slots at a time of the fixture's run; 0 while the server was down.
func slotsAt(t time.Duration) (slots int, iteration int) {
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

func fixturePoints(now time.Duration) []loop.Point {
	var list []loop.Point
	for t := engine.WindowLength; t <= now; t += engine.WindowLength {
		slots, iteration := slotsAt(t)
		p := loop.Point{T: t, Iteration: iteration}
		if slots > 0 {
			n := float64(slots) - 0.1
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

func fixtureMarks() []loop.Mark {
	return []loop.Mark{
		{T: 2 * time.Second, Kind: loop.MarkMeasure, Text: "baseline"},
		{T: 62 * time.Second, Kind: loop.MarkDown, Text: "the server stopped answering"},
		{T: 84 * time.Second, Kind: loop.MarkUp, Text: "the server answers again"},
		{T: 84 * time.Second, Kind: loop.MarkChange, Text: "--max-num-seqs 8 → 16"},
		{T: 96 * time.Second, Kind: loop.MarkMeasure, Text: "measuring the change"},
		{T: 116 * time.Second, Kind: loop.MarkVerdict, Text: "better: output +88 %"},
		{T: 170 * time.Second, Kind: loop.MarkDown, Text: "the server stopped answering"},
		{T: 190 * time.Second, Kind: loop.MarkUp, Text: "the server answers again"},
		{T: 190 * time.Second, Kind: loop.MarkChange, Text: "--max-num-batched-tokens 2048 → 8192"},
		{T: 226 * time.Second, Kind: loop.MarkMeasure, Text: "measuring the change"},
		{T: 246 * time.Second, Kind: loop.MarkVerdict, Text: "plateau: output 0 %"},
	}
}

func fixtureIterations() []loop.Iteration {
	first := loop.Iteration{
		N: 1, At: 62 * time.Second, Up: 84 * time.Second, Settled: 96 * time.Second, End: loop.IterationKept,
		Noticed: loop.AsRecommended, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "8", To: "16"}},
		Text: "you changed --max-num-seqs 8 → 16 as recommended", Command: fmt.Sprintf(fixtureLaunch, 16),
		Predicted: []engine.Prediction{{Metric: "generation_tokens_per_s", Unit: "ratio", Low: some(0.71), Mid: some(0.87), High: some(0.97)}},
		Before:    diagnosisAt(8, 32), After: diagnosisAt(16, 24),
	}
	second := loop.Iteration{
		N: 2, At: 170 * time.Second, Up: 190 * time.Second, Settled: 226 * time.Second, End: loop.IterationNoGain,
		Noticed: loop.SomethingElse, Changes: []engine.Change{{Flag: "--max-num-batched-tokens", From: "", To: "8192"}},
		Text: "you changed something else: --max-num-batched-tokens 8192", Command: fmt.Sprintf(fixtureLaunch, 16) + " --max-num-batched-tokens 8192",
		Before: diagnosisAt(16, 24), After: diagnosisAt(16, 25),
		Load: []string{"prompts were 9 % longer after the change"},
	}
	for _, it := range []*loop.Iteration{&first, &second} {
		delta := effect.Compare(it.Before, it.After)
		it.Delta = &delta
	}
	return []loop.Iteration{first, second}
}

func fixtureJournal() []loop.Entry {
	list := []loop.Entry{
		{T: 0, Kind: loop.EventAttached, Text: "attached to " + fixtureURL + ": vLLM 0.11.0, " + fixtureModel + ", NVIDIA A100-SXM4-80GB"},
		{T: 8 * time.Second, Level: loop.LevelWarn, Kind: loop.EventDiagnosis, Text: "so far: concurrency saturation (R5), all 8 slots taken"},
		{T: 22 * time.Second, Kind: loop.EventMeasured, Text: "baseline: 651 tok/s, TTFT p99 24.0 s, 10 windows"},
		{T: 22 * time.Second, Kind: loop.EventRecommendation, Text: "recommended: --max-num-seqs 8 → 16, output +87 % (+71 to +97 %)"},
		{T: 62 * time.Second, Level: loop.LevelBad, Kind: loop.EventServerDown, Text: "the server stopped answering: connection refused"},
		{T: 84 * time.Second, Level: loop.LevelGood, Kind: loop.EventServerUp, Text: "the server answers again after 22 s"},
		{T: 84 * time.Second, Kind: loop.EventSettling, Text: "you changed --max-num-seqs 8 → 16 as recommended"},
		{T: 96 * time.Second, Kind: loop.EventMeasured, Text: "settled after 12 s: measuring for 20 s"},
		{T: 116 * time.Second, Level: loop.LevelGood, Kind: loop.EventVerdict, Text: "better: output +88 %, TTFT p99 −60 %, ITL p99 +6.9 %"},
		{T: 116 * time.Second, Level: loop.LevelGood, Kind: loop.EventKept, Text: "kept: this is the new baseline"},
		{T: 170 * time.Second, Level: loop.LevelBad, Kind: loop.EventServerDown, Text: "the server stopped answering: connection refused"},
		{T: 190 * time.Second, Level: loop.LevelGood, Kind: loop.EventServerUp, Text: "the server answers again after 20 s"},
		{T: 190 * time.Second, Level: loop.LevelWarn, Kind: loop.EventSettling, Text: "you changed something else: --max-num-batched-tokens 8192"},
		{T: 246 * time.Second, Level: loop.LevelInfo, Kind: loop.EventVerdict, Text: "plateau: output 0 %, within 10 %; the kept configuration stays --max-num-seqs 16"},
		{T: 246 * time.Second, Kind: loop.EventRecommendation, Text: "recommended: --max-num-seqs 16 → 40, output +110 % (+90 to +123 %)"},
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

func fixtureProcesses() []loop.Process {
	return []loop.Process{
		{PID: 4120, PPID: 1, Role: "api-server", Name: "vllm", State: "S", Age: 122 * time.Second, CPU: some(0.22), RunWait: some(0.002), RSSBytes: 1_620_000_000, Threads: 118},
		{PID: 4188, PPID: 4120, Role: "engine-core", Name: "VLLM::EngineCore", State: "R", Age: 119 * time.Second, CPU: some(0.99), RunWait: some(0.004), RSSBytes: 4_910_000_000, Threads: 96},
		{PID: 4189, PPID: 4120, Role: "helper", Name: "python3 resource_tracker", State: "S", Age: 119 * time.Second, CPU: some(0), RSSBytes: 14_200_000, Threads: 1},
	}
}

func freshSources(now time.Duration) []loop.SourceState {
	return []loop.SourceState{
		{Name: "metrics", State: loop.SourceFresh, Last: now, Took: 11 * time.Millisecond, Interval: 250 * time.Millisecond},
		{Name: "gpu", State: loop.SourceFresh, Last: now, Took: 3 * time.Millisecond, Interval: 250 * time.Millisecond},
		{Name: "processes", State: loop.SourceFresh, Last: now - 750*time.Millisecond, Took: 6 * time.Millisecond, Interval: 2 * time.Second},
	}
}

package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// before cuts a snapshot back to what was known at a time.
func before(s *engine.Snapshot, t time.Duration) *engine.Snapshot {
	s.Now = t
	s.Points = slices.DeleteFunc(s.Points, func(p engine.Point) bool { return p.T > t })
	s.Marks = slices.DeleteFunc(s.Marks, func(m engine.Mark) bool { return m.T > t })
	s.Journal = slices.DeleteFunc(s.Journal, func(e engine.Entry) bool { return e.T > t })
	s.Iterations = slices.DeleteFunc(s.Iterations, func(it engine.Iteration) bool { return it.At > t })
	s.Page, s.GPU, s.Sources = fixturePage(t, 8, 32), fixtureGPU(t), freshSources(t)
	return s
}

func lookingSnapshot() *engine.Snapshot {
	return &engine.Snapshot{
		Seq: 14, Now: 12 * time.Second, Started: fixtureStart(), Version: "0.1.0", Watch: fixtureURL, Phase: engine.PhaseAttach,
		Progress:  engine.Progress{Elapsed: 12 * time.Second, Text: "looks for a vLLM server every second"},
		AttachWhy: "GET http://localhost:8000/metrics: connection refused",
		Journal:   []engine.Entry{{Seq: 1, T: time.Second, Text: "no vLLM server on this machine; looking at http://localhost:8000"}},
		Can:       available(map[engine.Command]string{engine.CommandApply: "No server is attached.", engine.CommandRevert: "No server is attached.", engine.CommandContinue: "No server is attached.", engine.CommandSkip: "No server is attached.", engine.CommandRemeasure: "No server is attached."}),
	}
}

func statsOffSnapshot() *engine.Snapshot {
	s := lookingSnapshot()
	s.AttachWhy = "http://localhost:8000/metrics: no metric of vLLM: only python_gc_objects_collected_total and the like; if this is vLLM, it runs with --disable-log-stats: restart it without"
	return s
}

// baselineSnapshot is nine seconds into the first measurement: a bottleneck shows,
// nothing is firm.
func baselineSnapshot() *engine.Snapshot {
	s := before(waitingSnapshot(), 11*time.Second)
	s.Seq, s.Phase, s.Since, s.Firm = 44, engine.PhaseBaseline, 2*time.Second, false
	s.Progress = engine.Progress{Elapsed: 9 * time.Second, Of: 20 * time.Second, Text: "measures the configuration that runs"}
	s.Live = diagnosisAt(8, 32)
	s.Live.Duration, s.Live.Windows = 8*time.Second, engine.WindowCounts{Collected: 4, Evaluable: 4, Active: 4}
	s.Baseline, s.Advice, s.Noise = nil, s.Live.Recommendation, nil
	s.Facts, s.Launch, s.Kept = s.Live.Facts, s.Live.Facts.Launch, s.Live.Facts.Launch
	s.Can = available(map[engine.Command]string{
		engine.CommandApply: "The baseline is not complete.", engine.CommandRevert: "Nothing was changed yet.", engine.CommandContinue: "There is no question open.",
	})
	return s
}

// measuringSnapshot is in the middle of measuring the first change.
func measuringSnapshot() *engine.Snapshot {
	s := before(waitingSnapshot(), 108*time.Second)
	s.Seq, s.Phase, s.Since = 432, engine.PhaseMeasuring, 96*time.Second
	s.Progress = engine.Progress{Elapsed: 12 * time.Second, Of: 20 * time.Second, Text: "measures what the change brought"}
	s.Baseline = diagnosisAt(8, 32)
	s.Kept = s.Baseline.Facts.Launch
	s.Advice, s.Firm, s.Noise = nil, false, nil
	it := s.Iterations[0]
	it.End, it.After, it.Delta = engine.IterationOpen, nil, nil
	s.Iterations = []engine.Iteration{it}
	s.Can = available(map[engine.Command]string{
		engine.CommandApply: "A change is being measured.", engine.CommandRevert: "A change is being measured.", engine.CommandContinue: "There is no question open.", engine.CommandSkip: "There is no recommendation.",
	})
	return s
}

func settlingSnapshot() *engine.Snapshot {
	s := measuringSnapshot()
	s = before(s, 90*time.Second)
	s.Seq, s.Phase, s.Since = 360, engine.PhaseSettling, 84*time.Second
	s.Progress = engine.Progress{Elapsed: 6 * time.Second, Of: 30 * time.Second, Text: "waits until throughput and queue are steady"}
	s.Iterations[0].Settled = 0
	return s
}

// worseSnapshot asks: a third change, 16 → 4 seats, cost most of the throughput.
func worseSnapshot() *engine.Snapshot {
	s := waitingSnapshot()
	s.Seq, s.Phase, s.Since = 1600, engine.PhaseWorse, 400*time.Second
	s.Now = 402 * time.Second
	s.Progress = engine.Progress{Elapsed: 2 * time.Second, Text: "nothing goes on until you decide"}
	s.Ask = "Worse: output −73 %, TTFT p99 +446 %. Revert or continue?"
	s.Live = diagnosisAt(4, 36)
	it := engine.Iteration{
		N: 3, At: 320 * time.Second, Up: 345 * time.Second, Settled: 380 * time.Second, Noticed: engine.SomethingElse,
		Changes: []engine.Change{{Flag: "--max-num-seqs", From: "16", To: "4"}}, Text: "you changed something else: --max-num-seqs 16 → 4",
		Command: fmt.Sprintf(fixtureLaunch, 4), Before: diagnosisAt(16, 24), After: diagnosisAt(4, 36),
	}
	delta := engine.Compare(it.Before, it.After)
	it.Delta = &delta
	s.Iterations = append(s.Iterations, it)
	s.Advice, s.Firm = nil, false
	s.Facts, s.Launch = s.Live.Facts, s.Live.Facts.Launch
	s.Journal = append(s.Journal, engine.Entry{Seq: 16, T: 400 * time.Second, Level: engine.LevelBad, Kind: engine.EventVerdict, Text: "worse: output −73 %, TTFT p99 +446 %"})
	s.Sources = freshSources(s.Now)
	s.Can = available(map[engine.Command]string{engine.CommandApply: "First decide: revert or continue.", engine.CommandSkip: "First decide: revert or continue."})
	return s
}

func revertingSnapshot() *engine.Snapshot {
	s := worseSnapshot()
	s.Seq, s.Phase, s.Since, s.Ask = 1700, engine.PhaseReverting, 404*time.Second, ""
	s.Now = 420 * time.Second
	s.Progress = engine.Progress{Elapsed: 16 * time.Second, Text: "waits for the server to be restarted with: " + fmt.Sprintf(fixtureLaunch, 16)}
	s.Sources = freshSources(s.Now)
	return s
}

// downSnapshot is a server that died while a recommendation stood.
func downSnapshot() *engine.Snapshot {
	s := waitingSnapshot()
	s.Seq, s.Phase, s.Since = 1300, engine.PhaseDown, 313*time.Second
	s.Now = 325 * time.Second
	s.Progress = engine.Progress{Elapsed: 12 * time.Second, Text: "waits for the server to answer"}
	s.Sources[0] = engine.SourceState{Name: "metrics", State: engine.SourceFailing, Why: "connection refused", Last: 312 * time.Second, Took: 11 * time.Millisecond, Interval: 250 * time.Millisecond, Failures: 48}
	s.Problems = []string{"engine-core (4188) is gone"}
	s.Journal = append(s.Journal, engine.Entry{Seq: 16, T: 313 * time.Second, Level: engine.LevelBad, Kind: engine.EventServerDown, Text: "the server stopped answering: connection refused"})
	return s
}

// lateSnapshot is a page that takes seconds.
func lateSnapshot() *engine.Snapshot {
	s := waitingSnapshot()
	s.Sources[0] = engine.SourceState{Name: "metrics", State: engine.SourceLate, Last: s.Now - 9*time.Second, Took: 1400 * time.Millisecond, Interval: 28 * time.Second, Missed: 31}
	return s
}

func idleSnapshot() *engine.Snapshot {
	s := before(waitingSnapshot(), 40*time.Second)
	s.Phase, s.Since = engine.PhaseBaseline, 2*time.Second
	s.Progress = engine.Progress{Elapsed: 38 * time.Second, Text: "waits for load: no request runs"}
	d := diagnosisAt(8, 0)
	for i := range d.Measured {
		if d.Measured[i].Unit != "ratio" && d.Measured[i].Unit != "B" && d.Measured[i].Unit != "W" {
			d.Measured[i].Quantity.Value.OK, d.Measured[i].Reason = false, "no window in which the server was working"
		}
	}
	d.Windows.Active = 0
	d.Outcome, d.Recommendation, d.Curve, d.Ceiling = engine.OutcomeNoLoad, nil, nil, engine.Ceiling{ClassicReason: "no request ran", PhysicalReason: "no request was seen running while tokens moved"}
	for i := range d.Findings {
		d.Findings[i].State, d.Findings[i].Significant, d.Findings[i].Fix = engine.NotEvaluable, false, nil
		d.Findings[i].Reason = "needs load"
	}
	for i := range s.Points {
		s.Points[i] = engine.Point{T: s.Points[i].T, Tokens: some(0), Running: some(0), Waiting: some(0), KV: some(0), GPU: some(0), Power: some(62)}
	}
	s.Live, s.Baseline, s.Advice, s.Firm, s.Noise = d, nil, nil, false, nil
	s.Quiet = "no request runs: there is nothing to judge"
	s.Page = fixturePage(s.Now, 0, 0)
	s.Journal = s.Journal[:1]
	return s
}

func noGPUSnapshot() *engine.Snapshot {
	s := waitingSnapshot()
	s.GPU, s.GPUWhy = nil, "no NVML library on this machine, and nvidia-smi is not in the path"
	s.Sources[1] = engine.SourceState{Name: "gpu", State: engine.SourceAbsent, Why: s.GPUWhy}
	s.Missing = []engine.Missing{{What: "GPU", Reason: s.GPUWhy, Effect: "utilisation, power, VRAM, temperature and energy are absent; --gpu names the model for the ceilings"}}
	for i := range s.Points {
		s.Points[i].GPU.OK, s.Points[i].Power.OK = false, false
	}
	d := diagnosisAt(16, 24)
	for i := range d.Measured {
		switch d.Measured[i].Name {
		case "gpu_util", "mem_util", "power_w", "power_limit_w", "vram_total_bytes", "vram_used_bytes", "vram_peak_bytes", "temperature_c", "sm_clock_mhz", "tokens_per_watt", "joules_per_token", "temperature_peak_c", "throttled":
			d.Measured[i].Quantity.Value.OK, d.Measured[i].Reason = false, "no GPU is readable"
		}
	}
	d.GPUs, d.Ceiling, d.Curve = nil, engine.Ceiling{ClassicReason: "needs a GPU of the catalog", PhysicalReason: "needs the GPU: --gpu names it"}, nil
	d.Facts.GPUName, d.Facts.GPUKnown = engine.Fact[string]{Note: "no GPU is readable; --gpu names it"}, false
	s.Live, s.Baseline, s.Facts = d, d, d.Facts
	return s
}

func pausedSnapshot() *engine.Snapshot {
	s := waitingSnapshot()
	s.Paused = true
	return s
}

func healthySnapshot() *engine.Snapshot {
	s := waitingSnapshot()
	d := diagnosisAt(64, 0)
	d.Outcome, d.Recommendation, d.Runners = engine.OutcomeHealthy, nil, nil
	for i := range d.Findings {
		if d.Findings[i].State == engine.Fired {
			d.Findings[i].State, d.Findings[i].Significant, d.Findings[i].Fix = engine.NotFired, false, nil
		}
	}
	s.Live, s.Baseline, s.Advice, s.Firm, s.Facts = d, d, nil, true, d.Facts
	s.Quiet = "Nothing to change: no rule fired persistently, and the server reaches 80 % of what good software gets out of this hardware."
	return s
}

func finishedSnapshot() *engine.Snapshot {
	s := waitingSnapshot()
	s.Phase = engine.PhaseDone
	s.Finished = &engine.Finished{ExitCode: 3, Reason: "ended by you with a recommendation open: --max-num-seqs 16 → 40", Command: fmt.Sprintf(fixtureLaunch, 16), Gain: some(0.88), Restarts: 2, Remains: []engine.FindingID{engine.SeatSaturation}}
	return s
}

// longSnapshot has names, sentences and numbers that no layout was made for, and
// text that would move a cursor.
func longSnapshot() *engine.Snapshot {
	s := waitingSnapshot()
	s.Target.URL = "https://inference-gateway-17.eu-central-1.internal.example.org:18443/v1/deployments/llama"
	s.Target.Model = "an-organisation-with-a-long-name/Ein-Modell-mit-einem-überlangen-Namen-模型名称很长-Instruct-FP8-dynamic"
	s.Target.Simulated = true
	s.Facts.GPUName.Value, s.Facts.GPUCount.Value = "NVIDIA GH200 480GB Grace Hopper Superchip", 16
	s.Facts.Launch = "vllm serve " + s.Target.Model + strings.Repeat(" --override-generation-config={\"temperature\":0.7}", 12)
	advice := *s.Advice
	advice.Launch, advice.Why = s.Facts.Launch, strings.Repeat("A reason that goes on and on, with a Wörterbuchdefinitionsüberlänge and a\ttab\x1b[31m. ", 6)
	s.Advice = &advice
	s.Notes = []string{"\x1b[2J\x1b[Hnot a clear screen", "\u202egnirts desrever"}
	for i := range s.Journal {
		s.Journal[i].Text = strings.Repeat(s.Journal[i].Text+" – ", 4)
	}
	s.Dropped = 12_345
	s.Processes = slices.Repeat(s.Processes, 12)
	g := *s.GPU
	g.Devices = slices.Repeat(g.Devices, 16)
	s.GPU = &g
	return s
}

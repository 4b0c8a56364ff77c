package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// before reduces a snapshot to what was known at a time.
func before(s *loop.Snapshot, t time.Duration) *loop.Snapshot {
	s.Now = t
	_, s.RunningIteration = slotsAt(t)
	s.Points = slices.DeleteFunc(s.Points, func(p loop.Point) bool { return p.T > t })
	s.Marks = slices.DeleteFunc(s.Marks, func(m loop.Mark) bool { return m.T > t })
	s.Journal = slices.DeleteFunc(s.Journal, func(e loop.Entry) bool { return e.T > t })
	s.Iterations = slices.DeleteFunc(s.Iterations, func(it loop.Iteration) bool { return it.At > t })
	s.Page, s.GPU, s.Sources = fixturePage(t, 8, 32), fixtureGPU(t), freshSources(t)
	return s
}

func lookingSnapshot() *loop.Snapshot {
	return &loop.Snapshot{
		Seq: 14, Now: 12 * time.Second, Started: fixtureStart(), Version: "0.1.0", Watch: fixtureURL, Phase: loop.PhaseAttach,
		Progress:  loop.Progress{Elapsed: 12 * time.Second, Text: "looks for a vLLM server every second"},
		AttachWhy: "GET http://localhost:8000/metrics: connection refused",
		Journal:   []loop.Entry{{Seq: 1, T: time.Second, Text: "no vLLM server on this machine; looking at http://localhost:8000"}},
		Can:       available(map[loop.Command]string{loop.CommandApply: "No server is attached.", loop.CommandRevert: "No server is attached.", loop.CommandContinue: "No server is attached.", loop.CommandSkip: "No server is attached.", loop.CommandRemeasure: "No server is attached."}),
	}
}

func statsOffSnapshot() *loop.Snapshot {
	s := lookingSnapshot()
	s.AttachWhy = "http://localhost:8000/metrics: no metric of vLLM: only python_gc_objects_collected_total and the like; if this is vLLM, it runs with --disable-log-stats: restart it without that flag"
	return s
}

// baselineSnapshot is nine seconds into the first measurement: a bottleneck is visible, but
// preliminary.
func baselineSnapshot() *loop.Snapshot {
	s := before(waitingSnapshot(), 11*time.Second)
	s.Seq, s.Phase, s.Since, s.Firm = 44, loop.PhaseBaseline, 2*time.Second, false
	s.Preliminary = "until the baseline is complete"
	s.Progress = loop.Progress{Elapsed: 9 * time.Second, Total: 20 * time.Second, Text: "measures the configuration that runs"}
	s.Live = diagnosisAt(8, 32)
	s.Live.Duration, s.Live.Windows = 8*time.Second, engine.WindowCounts{Collected: 4, Evaluable: 4, Active: 4}
	s.Baseline, s.Advice, s.Noise = nil, s.Live.Recommendation, nil
	s.Facts, s.Launch, s.Kept = s.Live.Facts, s.Live.Facts.Launch, s.Live.Facts.Launch
	s.Can = available(map[loop.Command]string{
		loop.CommandApply: "The baseline is not complete.", loop.CommandRevert: "Nothing was changed yet.", loop.CommandContinue: "There is no question open.",
	})
	return s
}

// measuringSnapshot is in the middle of measuring the first change.
func measuringSnapshot() *loop.Snapshot {
	s := before(waitingSnapshot(), 108*time.Second)
	s.Seq, s.Phase, s.Since = 432, loop.PhaseMeasuring, 96*time.Second
	s.Progress = loop.Progress{Elapsed: 12 * time.Second, Total: 20 * time.Second, Text: "measures what the change brought"}
	s.Baseline = diagnosisAt(8, 32)
	s.Kept = s.Baseline.Facts.Launch
	s.Advice, s.Firm, s.Noise = nil, false, nil
	it := s.Iterations[0]
	it.End, it.After, it.Delta = loop.IterationOpen, nil, nil
	s.Iterations = []loop.Iteration{it}
	s.Trial = &loop.Trial{Iteration: 1, Looks: verdict.Looks(20*time.Second, 200*time.Second), Measured: 12 * time.Second, Predicted: it.Predicted}
	s.Can = available(map[loop.Command]string{
		loop.CommandApply: "A change is being measured.", loop.CommandRevert: "A change is being measured.", loop.CommandContinue: "There is no question open.", loop.CommandSkip: "There is no recommendation.",
	})
	return s
}

func settlingSnapshot() *loop.Snapshot {
	s := measuringSnapshot()
	s = before(s, 90*time.Second)
	s.Seq, s.Phase, s.Since = 360, loop.PhaseSettling, 84*time.Second
	s.Progress = loop.Progress{Elapsed: 6 * time.Second, Total: 30 * time.Second, Text: "waits until throughput and queue are steady"}
	s.Iterations[0].Settled, s.Trial = 0, nil
	return s
}

// worseSnapshot asks for a decision: a third change, 16 → 4 slots, lost most of the throughput.
func worseSnapshot() *loop.Snapshot {
	s := waitingSnapshot()
	s.Seq, s.Phase, s.Since = 1600, loop.PhaseWorse, 400*time.Second
	s.Now = 402 * time.Second
	s.Progress = loop.Progress{Elapsed: 2 * time.Second, Text: "nothing happens until you decide"}
	s.Ask = "Worse: output −73 %, TTFT p99 +446 %. Revert or continue?"
	s.Live = diagnosisAt(4, 36)
	it := loop.Iteration{
		N: 3, At: 320 * time.Second, Up: 345 * time.Second, Settled: 380 * time.Second, Noticed: loop.SomethingElse,
		Changes: []engine.Change{{Flag: "--max-num-seqs", From: "16", To: "4"}}, Text: "you changed something else: --max-num-seqs 16 → 4",
		Command: fmt.Sprintf(fixtureLaunch, 4), Before: diagnosisAt(16, 24), After: diagnosisAt(4, 36),
	}
	delta := effect.Compare(it.Before, it.After)
	it.Delta = &delta
	s.Iterations = append(s.Iterations, it)
	s.Advice, s.Firm = nil, false
	s.Facts, s.Launch = s.Live.Facts, s.Live.Facts.Launch
	s.Journal = append(s.Journal, loop.Entry{Seq: 16, T: 400 * time.Second, Level: loop.LevelBad, Kind: loop.EventVerdict, Text: "worse: output −73 %, TTFT p99 +446 %"})
	s.Sources = freshSources(s.Now)
	s.Can = available(map[loop.Command]string{loop.CommandApply: "First decide: revert or continue.", loop.CommandSkip: "First decide: revert or continue."})
	return s
}

func revertingSnapshot() *loop.Snapshot {
	s := worseSnapshot()
	s.Seq, s.Phase, s.Since, s.Ask = 1700, loop.PhaseReverting, 404*time.Second, ""
	s.Now = 420 * time.Second
	s.Progress = loop.Progress{Elapsed: 16 * time.Second, Text: "waits for the server to be restarted with: " + fmt.Sprintf(fixtureLaunch, 16)}
	s.Sources = freshSources(s.Now)
	return s
}

// downSnapshot has a server that failed while there was a recommendation.
func downSnapshot() *loop.Snapshot {
	s := waitingSnapshot()
	s.Seq, s.Phase, s.Since = 1300, loop.PhaseDown, 313*time.Second
	s.Now = 325 * time.Second
	s.Progress = loop.Progress{Elapsed: 12 * time.Second, Text: "waits for the server to answer"}
	s.Sources[0] = loop.SourceState{Name: "metrics", State: loop.SourceFailing, Why: "connection refused", Last: 312 * time.Second, Took: 11 * time.Millisecond, Interval: 250 * time.Millisecond, Failures: 48}
	s.Problems = []string{"engine-core (4188) is gone"}
	s.Journal = append(s.Journal, loop.Entry{Seq: 16, T: 313 * time.Second, Level: loop.LevelBad, Kind: loop.EventServerDown, Text: "the server stopped answering: connection refused"})
	return s
}

// lateSnapshot has a metrics page that takes seconds.
func lateSnapshot() *loop.Snapshot {
	s := waitingSnapshot()
	s.Sources[0] = loop.SourceState{Name: "metrics", State: loop.SourceLate, Last: s.Now - 9*time.Second, Took: 1400 * time.Millisecond, Interval: 28 * time.Second, Missed: 31}
	return s
}

func idleSnapshot() *loop.Snapshot {
	s := before(waitingSnapshot(), 40*time.Second)
	s.Phase, s.Since = loop.PhaseBaseline, 2*time.Second
	s.Progress = loop.Progress{Elapsed: 38 * time.Second, Text: "waiting for load: no tokens move"}
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
		s.Points[i] = loop.Point{T: s.Points[i].T, Tokens: some(0), Running: some(0), Waiting: some(0), KV: some(0), GPU: some(0), Power: some(62)}
	}
	s.Live, s.Baseline, s.Advice, s.Firm, s.Noise = d, nil, nil, false, nil
	s.Quiet = "no request runs: there is nothing to judge"
	s.Page = fixturePage(s.Now, 0, 0)
	s.Journal = s.Journal[:1]
	return s
}

func noGPUSnapshot() *loop.Snapshot {
	s := waitingSnapshot()
	s.GPU, s.GPUWhy = nil, "no NVML library on this machine, and nvidia-smi is not in the path"
	s.Sources[1] = loop.SourceState{Name: "gpu", State: loop.SourceAbsent, Why: s.GPUWhy}
	s.Missing = []engine.Missing{{What: "GPU", Reason: s.GPUWhy, Effect: "utilization, power, VRAM, temperature and energy are absent; --gpu names the model for the ceilings"}}
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

func pausedSnapshot() *loop.Snapshot {
	s := waitingSnapshot()
	s.Paused = true
	return s
}

func healthySnapshot() *loop.Snapshot {
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

func finishedSnapshot() *loop.Snapshot {
	s := waitingSnapshot()
	s.Phase = loop.PhaseDone
	s.Finished = &loop.Finished{ExitCode: 3, Reason: "ended by you with a recommendation open: --max-num-seqs 16 → 40", Command: fmt.Sprintf(fixtureLaunch, 16), Gain: some(0.88), Restarts: 2, Remains: []engine.FindingID{engine.ConcurrencySaturation}}
	return s
}

// longSnapshot has names, sentences and numbers too long for any layout, and text that would move a
// cursor.
func longSnapshot() *loop.Snapshot {
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

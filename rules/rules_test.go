package rules

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// quietWindow returns a window of a healthy server with every reading.
func quietWindow() engine.Window {
	w := engine.Window{
		Duration: 2 * time.Second, Polls: 9, Evaluable: true, Active: true, Progress: true,
		Running: stat.Some(40), RunningPeak: stat.Some(42), RunningMin: stat.Some(38), Waiting: stat.Some(0), WaitingPeak: stat.Some(0), Deferred: stat.Some(0),
		KV: stat.Some(0.4), KVPeak: stat.Some(0.45), KVLast: stat.Some(0.4),
		StepTime: stat.Some(0.02), LongestStep: 250 * time.Millisecond,
		Ranks: []engine.RankWindow{{Name: "0", Running: stat.Some(40), Waiting: stat.Some(0), KVPeak: stat.Some(0.45), StepsPerS: stat.Some(50)}},
		GPUs:  []engine.GPUWindow{{Name: "NVIDIA H100 80GB HBM3", ThrottleOK: true}},
	}
	for c, perSecond := range map[engine.Counter]float64{
		engine.CounterGenerationTokens: 2000, engine.CounterPromptTokens: 8000, engine.CounterPromptTokensCached: 4800,
		engine.CounterRequestSuccess: 8, engine.CounterPreemptions: 0, engine.CounterPrefixQueries: 8000, engine.CounterPrefixHits: 4800,
		engine.CounterProcessCPUSeconds: 0.3,
	} {
		w.Rate[c], w.Delta[c] = stat.Some(perSecond), stat.Some(2*perSecond)
	}
	for h, mean := range map[engine.Hist]float64{
		engine.HistTTFT: 0.1, engine.HistQueue: 0.01, engine.HistPrefill: 0.03, engine.HistDecode: 4, engine.HistITL: 0.02, engine.HistE2E: 4.1,
		engine.HistPromptTokens: 1000, engine.HistGenerationTokens: 250, engine.HistIterationTokens: 200,
	} {
		w.Hist[h] = stat.Delta{Sum: 16 * mean, Count: 16, OK: true}
	}
	return w
}

func knownFacts() engine.Facts {
	return engine.Facts{
		MaxNumSeqs: know(64), MaxNumBatchedTokens: know(8192), KVCapacityTokens: know(200000.0), BlockSize: know(16),
		PrefixCaching: know(true), APIServerCount: know(1), Device: know("cuda"), TensorParallel: know(1),
		EngineVersion: know("0.30.0"),
	}
}

// addModel adds a GPU and a model to the facts, so that the physical model has a basis.
func addModel(t *testing.T, f *engine.Facts) {
	t.Helper()
	gpu, err := catalog.Default().FindGPU("NVIDIA H100 80GB HBM3", 0)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := catalog.Default().FindModel("meta-llama/Llama-3.1-8B-Instruct")
	if err != nil {
		t.Fatal(err)
	}
	f.GPU, f.GPUKnown, f.ModelSpec, f.ModelKnown = gpu, true, spec, true
	f.KVCacheDType, f.WeightDType, f.ComputeDType = know("bf16"), know("bf16"), know("bf16")
}

func setCounter(w *engine.Window, c engine.Counter, perSecond float64) {
	w.Rate[c], w.Delta[c] = stat.Some(perSecond), stat.Some(perSecond*w.Seconds())
}

func setRunning(w *engine.Window, n float64) {
	w.Running, w.RunningPeak = stat.Some(n), stat.Some(n)
	w.Ranks[0].Running = stat.Some(n)
}

func setWaiting(w *engine.Window, n float64) {
	w.Waiting, w.WaitingPeak = stat.Some(n), stat.Some(n)
	w.Ranks[0].Waiting = stat.Some(n)
}

func setKV(w *engine.Window, mean, peak float64) {
	w.KV, w.KVPeak = stat.Some(mean), stat.Some(peak)
	w.Ranks[0].KVPeak = stat.Some(peak)
}

// TestCheckAllocatesNothing checks that evaluating a window does not allocate, whether a rule
// fires or not.
func TestCheckAllocatesNothing(t *testing.T) {
	f := knownFacts()
	f.GPU, _ = catalog.Default().FindGPU("NVIDIA B200", 0)
	f.ModelSpec, _ = catalog.Default().FindModel("meta-llama/Llama-3.3-70B-Instruct")
	f.GPUKnown, f.ModelKnown, f.WeightDType = true, true, know("nvfp4")
	full := quietWindow()
	setRunning(&full, 64)
	taken := full.Clone()
	setWaiting(&full, 64)
	setKV(&full, 0.97, 0.99)
	setCounter(&full, engine.CounterPreemptions, 3)
	blank := engine.Window{Evaluable: true, Duration: time.Second, Running: stat.Some(1)}
	quiet := quietWindow()
	for name, w := range map[string]*engine.Window{"quiet": &quiet, "full": &full, "slots taken": &taken, "blank": &blank} {
		for _, r := range All() {
			if r.Check == nil {
				continue
			}
			if n := testing.AllocsPerRun(50, func() { r.Check(w, &f) }); n != 0 {
				t.Errorf("%s on a %s window: %v allocations, want 0", r.ID, name, n)
			}
		}
	}
}

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// rule returns the rule with an ID.
func rule(t testing.TB, id engine.FindingID) engine.Rule {
	t.Helper()
	for _, r := range All() {
		if r.ID == id {
			return r
		}
	}
	t.Fatalf("no rule %q", id)
	return engine.Rule{}
}

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

func setMean(w *engine.Window, h engine.Hist, mean float64) {
	w.Hist[h] = stat.Delta{Sum: 16 * mean, Count: 16, OK: true}
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

// TestThresholds checks each rule on both sides of each of its limits.
func TestThresholds(t *testing.T) {
	type edit func(w *engine.Window, f *engine.Facts)
	saturated := func(w *engine.Window, _ *engine.Facts) { setRunning(w, 64); setWaiting(w, 30) }
	backlog := func(w *engine.Window, _ *engine.Facts) {
		setRunning(w, 20)
		setWaiting(w, 20)
		setKV(w, 0.85, 0.87) // 26,000 tokens free
		setMean(w, engine.HistPromptTokens, 2000)
	}
	reuse := func(w *engine.Window, _ *engine.Facts) { setCounter(w, engine.CounterPromptTokensCached, 0) }
	noPrompt := func(w *engine.Window, _ *engine.Facts) {
		setCounter(w, engine.CounterPromptTokens, 0)
		setCounter(w, engine.CounterPrefixQueries, 0)
		setCounter(w, engine.CounterPromptTokensCached, 0)
		w.Last[engine.CounterPromptTokens] = stat.Some(10000)
	}
	budget := func(w *engine.Window, _ *engine.Facts) {
		setWaiting(w, 5)
		setMean(w, engine.HistIterationTokens, 7000)
	}
	// front makes requests spend outside seconds outside the engine, of which a step takes 20 ms.
	front := func(outside float64) edit {
		return func(w *engine.Window, _ *engine.Facts) {
			inside := w.Mean(engine.HistQueue).V + w.Mean(engine.HistPrefill).V + w.Mean(engine.HistDecode).V
			setMean(w, engine.HistE2E, inside+outside)
			w.LongestStep = 20 * time.Millisecond
		}
	}
	queueOf := func(seconds float64) edit {
		return func(w *engine.Window, _ *engine.Facts) { setMean(w, engine.HistQueue, seconds) }
	}
	// finished sets the observations in all histograms to n requests for each 16.
	finished := func(n float64) edit {
		return func(w *engine.Window, _ *engine.Facts) {
			for h := range w.Hist {
				w.Hist[h].Sum *= n / 16
				w.Hist[h].Count *= n / 16
			}
		}
	}
	capped := func(w *engine.Window, _ *engine.Facts) {
		g := &w.GPUs[0]
		g.Throttle = catalog.PowerCap
		g.Mean[engine.GPUPowerW], g.Last[engine.GPUPowerLimitW] = stat.Some(690), stat.Some(700)
	}
	uneven := func(w *engine.Window, _ *engine.Facts) {
		setWaiting(w, 4)
		w.Ranks = []engine.RankWindow{
			{Name: "0", Running: stat.Some(64), Waiting: stat.Some(4), KVPeak: stat.Some(0.5)},
			{Name: "1", Running: stat.Some(16), Waiting: stat.Some(0), KVPeak: stat.Some(0.2)},
		}
	}
	for _, c := range []struct {
		name  string
		id    engine.FindingID
		edits []edit
		want  engine.State
	}{
		// R1
		{"R1 occupancy just below 25 %", engine.UnderBatching, []edit{func(w *engine.Window, _ *engine.Facts) { setRunning(w, 15.99) }}, engine.Fired},
		{"R1 occupancy of 25 %", engine.UnderBatching, []edit{func(w *engine.Window, _ *engine.Facts) { setRunning(w, 16) }}, engine.NotFired},
		{"R1 1.99 waiting", engine.UnderBatching, []edit{func(w *engine.Window, _ *engine.Facts) { setRunning(w, 8); setWaiting(w, 1.99) }}, engine.Fired},
		{"R1 2 waiting", engine.UnderBatching, []edit{func(w *engine.Window, _ *engine.Facts) { setRunning(w, 8); setWaiting(w, 2) }}, engine.NotFired},
		{"R1 prefill just below 40 %", engine.UnderBatching, []edit{func(w *engine.Window, _ *engine.Facts) {
			setRunning(w, 8)
			w.Hist[engine.HistPrefill].Sum = 0.799
		}}, engine.Fired},
		{"R1 prefill 40 %", engine.UnderBatching, []edit{func(w *engine.Window, _ *engine.Facts) {
			setRunning(w, 8)
			w.Hist[engine.HistPrefill].Sum = 0.8
		}}, engine.Suppressed},
		{"R1 prefill just below 4 s of a long window", engine.UnderBatching, []edit{func(w *engine.Window, _ *engine.Facts) {
			setRunning(w, 8)
			w.Duration = 12 * time.Second
			w.Hist[engine.HistPrefill].Sum = 3.99
		}}, engine.Fired},
		{"R1 prefill 4 s of a long window", engine.UnderBatching, []edit{func(w *engine.Window, _ *engine.Facts) {
			setRunning(w, 8)
			w.Duration = 12 * time.Second
			w.Hist[engine.HistPrefill].Sum = 4
		}}, engine.Suppressed},
		{"R1 slots unknown", engine.UnderBatching, []edit{func(w *engine.Window, f *engine.Facts) { f.MaxNumSeqs = engine.Fact[int]{} }}, engine.NotEvaluable},
		{"R1 nothing runs but tokens moved", engine.UnderBatching, []edit{func(w *engine.Window, _ *engine.Facts) { setRunning(w, 0) }}, engine.Fired},

		// R2
		{"R2 just below 88 %", engine.KVPressure, []edit{func(w *engine.Window, _ *engine.Facts) { setKV(w, 0.5, 0.8799) }}, engine.NotFired},
		{"R2 88 %", engine.KVPressure, []edit{func(w *engine.Window, _ *engine.Facts) { setKV(w, 0.5, 0.88) }}, engine.Fired},
		{"R2 a preemption, usage not on the page", engine.KVPressure, []edit{func(w *engine.Window, _ *engine.Facts) {
			setCounter(w, engine.CounterPreemptions, 0.5)
			w.KV, w.KVPeak = stat.None, stat.None
		}}, engine.Fired},
		{"R2 no usage", engine.KVPressure, []edit{func(w *engine.Window, _ *engine.Facts) { w.KV, w.KVPeak = stat.None, stat.None }}, engine.NotEvaluable},
		{"R2 mean where the peak is absent", engine.KVPressure, []edit{func(w *engine.Window, _ *engine.Facts) { w.KV, w.KVPeak = stat.Some(0.9), stat.None }}, engine.Fired},

		// R2, admission backlog
		{"backlog", engine.KVAdmission, []edit{backlog}, engine.Fired},
		{"backlog, queue just below 30 %", engine.KVAdmission, []edit{backlog, func(w *engine.Window, _ *engine.Facts) { setRunning(w, 47); setWaiting(w, 20) }}, engine.NotFired},
		{"backlog, queue of 30 %", engine.KVAdmission, []edit{backlog, func(w *engine.Window, _ *engine.Facts) { setRunning(w, 42); setWaiting(w, 18) }}, engine.Fired},
		{"backlog, free tokens equal the demand", engine.KVAdmission, []edit{backlog, func(w *engine.Window, _ *engine.Facts) {
			setKV(w, 0.7, 0.75)
			setMean(w, engine.HistPromptTokens, 2500)
		}}, engine.NotFired},
		{"backlog, free tokens just below the demand", engine.KVAdmission, []edit{backlog, func(w *engine.Window, _ *engine.Facts) {
			setKV(w, 0.7, 0.75)
			setMean(w, engine.HistPromptTokens, 2501)
		}}, engine.Fired},
		{"backlog at the cap", engine.KVAdmission, []edit{backlog, func(w *engine.Window, f *engine.Facts) { f.MaxNumSeqs = know(20) }}, engine.NotFired},
		{"backlog one below the cap", engine.KVAdmission, []edit{backlog, func(w *engine.Window, f *engine.Facts) { f.MaxNumSeqs = know(21) }}, engine.Fired},
		{"backlog, pool unknown", engine.KVAdmission, []edit{backlog, func(w *engine.Window, f *engine.Facts) { f.KVCapacityTokens = engine.Fact[float64]{} }}, engine.NotEvaluable},
		{"backlog, deferred", engine.KVAdmission, []edit{backlog, func(w *engine.Window, _ *engine.Facts) { w.Deferred = stat.Some(15) }}, engine.NotFired},

		// R3
		{"R3", engine.LowPrefixReuse, []edit{reuse}, engine.Fired},
		{"R3 hit rate just below 35 %", engine.LowPrefixReuse, []edit{func(w *engine.Window, _ *engine.Facts) { setCounter(w, engine.CounterPromptTokensCached, 2799) }}, engine.Fired},
		{"R3 hit rate 35 %", engine.LowPrefixReuse, []edit{func(w *engine.Window, _ *engine.Facts) { setCounter(w, engine.CounterPromptTokensCached, 2800) }}, engine.NotFired},
		{"R3 prompt of 20", engine.LowPrefixReuse, []edit{reuse, func(w *engine.Window, _ *engine.Facts) { setMean(w, engine.HistPromptTokens, 20) }}, engine.Fired},
		{"R3 prompt of 19.9", engine.LowPrefixReuse, []edit{reuse, func(w *engine.Window, _ *engine.Facts) { setMean(w, engine.HistPromptTokens, 19.9) }}, engine.NotFired},
		{"R3 1.3 req/s", engine.LowPrefixReuse, []edit{reuse, func(w *engine.Window, _ *engine.Facts) { setCounter(w, engine.CounterRequestSuccess, 1.3) }}, engine.Fired},
		{"R3 a window without a prompt, the rate since the start", engine.LowPrefixReuse, []edit{noPrompt, func(w *engine.Window, _ *engine.Facts) { w.Last[engine.CounterPromptTokensCached] = stat.Some(1000) }}, engine.Fired},
		{"R3 a window without a prompt, a good rate since the start", engine.LowPrefixReuse, []edit{noPrompt, func(w *engine.Window, _ *engine.Facts) { w.Last[engine.CounterPromptTokensCached] = stat.Some(6000) }}, engine.NotFired},
		{"R3 running 0.76", engine.LowPrefixReuse, []edit{reuse, func(w *engine.Window, _ *engine.Facts) { setRunning(w, 0.76) }}, engine.Fired},
		{"R3 running 0.75", engine.LowPrefixReuse, []edit{reuse, func(w *engine.Window, _ *engine.Facts) { setRunning(w, 0.75) }}, engine.NotFired},
		{"R3 caching off has no rate", engine.LowPrefixReuse, []edit{func(w *engine.Window, f *engine.Facts) { f.PrefixCaching = know(false) }}, engine.Fired},
		{"R3 lookups stay at zero", engine.LowPrefixReuse, []edit{reuse, func(w *engine.Window, f *engine.Facts) {
			f.PrefixCaching = engine.Fact[bool]{}
			setCounter(w, engine.CounterPrefixQueries, 0)
		}}, engine.Fired},
		{"R3 lookups inflated", engine.LowPrefixReuse, []edit{func(w *engine.Window, _ *engine.Facts) {
			w.Delta[engine.CounterPromptTokensCached] = stat.None
			setCounter(w, engine.CounterPrefixQueries, 9600)
		}}, engine.NotEvaluable},
		{"R3 lookups not inflated", engine.LowPrefixReuse, []edit{func(w *engine.Window, _ *engine.Facts) {
			w.Delta[engine.CounterPromptTokensCached] = stat.None
			setCounter(w, engine.CounterPrefixQueries, 9500)
			setCounter(w, engine.CounterPrefixHits, 0)
		}}, engine.Fired},

		// R5
		{"R5", engine.ConcurrencySaturation, []edit{saturated}, engine.Fired},
		{"R5 half a request below the slots", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) { setRunning(w, 63.5) }}, engine.Fired},
		{"R5 more than half below", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) { setRunning(w, 63.49) }}, engine.NotFired},
		{"R5 3 % below on average, slots reached at the peak", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) {
			setRunning(w, 62.1)
			w.RunningPeak = stat.Some(64)
		}}, engine.Fired},
		{"R5 6 % below on average, slots reached at the peak", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) {
			setRunning(w, 60.1)
			w.RunningPeak = stat.Some(64)
		}}, engine.NotFired},
		{"R5 half a request above the slots", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) { setRunning(w, 64.5) }}, engine.Fired},
		{"R5 more than half above", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) { setRunning(w, 64.51) }}, engine.NotFired},
		{"R5 queue just below 30 %", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) { setWaiting(w, 27.4) }}, engine.NotFired},
		{"R5 queue of 30 %", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) { setWaiting(w, 27.5) }}, engine.Fired},
		{"R5 whatever the KV", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) { setKV(w, 0.99, 1) }}, engine.Fired},
		{"R5 without a KV gauge", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, _ *engine.Facts) { w.KV, w.KVPeak = stat.None, stat.None }}, engine.Fired},
		{"R5 slots unknown", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, f *engine.Facts) { f.MaxNumSeqs = engine.Fact[int]{} }}, engine.NotEvaluable},
		{"R5 slots from the page's gauge", engine.ConcurrencySaturation, []edit{saturated, func(w *engine.Window, f *engine.Facts) {
			f.MaxNumSeqs = engine.Fact[int]{}
			w.Ranks[0].MaxNumSeqs = stat.Some(64)
		}}, engine.Fired},

		// beyond
		{"budget", engine.TokenBudget, []edit{budget}, engine.Fired},
		{"budget, one waits", engine.TokenBudget, []edit{budget, func(w *engine.Window, _ *engine.Facts) { setWaiting(w, 1) }}, engine.Fired},
		{"budget, fewer wait", engine.TokenBudget, []edit{budget, func(w *engine.Window, _ *engine.Facts) { setWaiting(w, 0.9) }}, engine.NotFired},
		{"budget, KV just below 80 %", engine.TokenBudget, []edit{budget, func(w *engine.Window, _ *engine.Facts) { setKV(w, 0.5, 0.799) }}, engine.Fired},
		{"budget, KV 80 %", engine.TokenBudget, []edit{budget, func(w *engine.Window, _ *engine.Facts) { setKV(w, 0.5, 0.8) }}, engine.NotFired},
		{"budget, steps 70 % full", engine.TokenBudget, []edit{budget, func(w *engine.Window, _ *engine.Facts) { setMean(w, engine.HistIterationTokens, 0.7*8192) }}, engine.Fired},
		{"budget, steps 69 % full", engine.TokenBudget, []edit{budget, func(w *engine.Window, _ *engine.Facts) { setMean(w, engine.HistIterationTokens, 0.69*8192) }}, engine.NotFired},
		{"budget, slots taken", engine.TokenBudget, []edit{budget, func(w *engine.Window, _ *engine.Facts) { setRunning(w, 64) }}, engine.NotFired},
		{"budget, preempting", engine.TokenBudget, []edit{budget, func(w *engine.Window, _ *engine.Facts) { setCounter(w, engine.CounterPreemptions, 1) }}, engine.NotFired},

		{"front end", engine.FrontEnd, []edit{front(0.52)}, engine.Fired},
		{"front end, half of the time", engine.FrontEnd, []edit{queueOf(0.429), front(0.5)}, engine.Fired},
		{"front end, less than half", engine.FrontEnd, []edit{queueOf(0.431), front(0.5)}, engine.NotFired},
		{"front end, 0.1 s", engine.FrontEnd, []edit{front(0.1201), finished(40)}, engine.Fired},
		{"front end, below 0.1 s", engine.FrontEnd, []edit{front(0.1199), finished(40)}, engine.NotFired},
		{"front end, one request at once", engine.FrontEnd, []edit{front(0.5201), finished(4)}, engine.Fired},
		{"front end, mostly alone in it", engine.FrontEnd, []edit{front(0.5199), finished(4)}, engine.NotFired},
		{"front end, waiting for the step at hand", engine.FrontEnd, []edit{front(0.52), func(w *engine.Window, _ *engine.Facts) { w.LongestStep = 450 * time.Millisecond }}, engine.NotFired},
		{"front end, times of other requests", engine.FrontEnd, []edit{front(0.52), func(w *engine.Window, _ *engine.Facts) { w.Hist[engine.HistQueue].Count = 15 }}, engine.NotEvaluable},
		{"front end, late first tokens of other requests", engine.FrontEnd, []edit{front(0.05), func(w *engine.Window, _ *engine.Facts) { setMean(w, engine.HistTTFT, 9) }}, engine.NotFired},
		{"front end, no end-to-end times", engine.FrontEnd, []edit{func(w *engine.Window, _ *engine.Facts) {
			w.Hist[engine.HistE2E] = stat.Delta{}
			setMean(w, engine.HistTTFT, 0.5)
		}}, engine.NotEvaluable},
		{"front end, no end-to-end times, short stay", engine.FrontEnd, []edit{func(w *engine.Window, _ *engine.Facts) {
			w.Hist[engine.HistE2E] = stat.Delta{}
			setMean(w, engine.HistTTFT, 0.6)
			setRunning(w, 1.6)
		}}, engine.Fired},
		{"front end, 0.9 of a core", engine.FrontEnd, []edit{func(w *engine.Window, _ *engine.Facts) { setCounter(w, engine.CounterProcessCPUSeconds, 0.9) }}, engine.Fired},
		{"front end, 0.89 of a core", engine.FrontEnd, []edit{func(w *engine.Window, _ *engine.Facts) { setCounter(w, engine.CounterProcessCPUSeconds, 0.89) }}, engine.NotFired},
		{"front end, several servers", engine.FrontEnd, []edit{func(w *engine.Window, f *engine.Facts) {
			setCounter(w, engine.CounterProcessCPUSeconds, 0.99)
			f.APIServerCount = know(2)
		}}, engine.NotFired},

		{"power", engine.PowerLimit, []edit{capped}, engine.Fired},
		{"power, 94 % of the limit", engine.PowerLimit, []edit{capped, func(w *engine.Window, _ *engine.Facts) { w.GPUs[0].Mean[engine.GPUPowerW] = stat.Some(658) }}, engine.NotFired},
		{"power, no reason given", engine.PowerLimit, []edit{capped, func(w *engine.Window, _ *engine.Facts) { w.GPUs[0].Throttle = 1 }}, engine.NotFired},
		{"power, reasons unreadable", engine.PowerLimit, []edit{capped, func(w *engine.Window, _ *engine.Facts) { w.GPUs[0].ThrottleOK = false }}, engine.NotEvaluable},

		{"ranks", engine.DPImbalance, []edit{uneven}, engine.Fired},
		{"ranks, no rank has room", engine.DPImbalance, []edit{uneven, func(w *engine.Window, _ *engine.Facts) { w.Ranks[1].KVPeak = stat.Some(0.9) }}, engine.NotFired},
		{"ranks, 1.5 times the mean", engine.DPImbalance, []edit{uneven, func(w *engine.Window, _ *engine.Facts) {
			w.Ranks[0].Running, w.Ranks[1].Running = stat.Some(60), stat.Some(20)
			w.Ranks[0].KVPeak, w.Ranks[1].KVPeak = stat.Some(0.3), stat.Some(0.3)
		}}, engine.NotFired},
		{"ranks, one rank only", engine.DPImbalance, nil, engine.NotEvaluable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, f := quietWindow(), knownFacts()
			for _, e := range c.edits {
				e(&w, &f)
			}
			got := rule(t, c.id).Check(&w, &f)
			if got.State != c.want {
				t.Errorf("%s (%s), want %s", got.State, got.Sentence(), c.want)
			}
			if got.Why == "" {
				t.Error("the check does not say why")
			}
		})
	}
}

// TestAQuietServerFiresNothing checks the starting point of TestThresholds: no rule fires before
// a reading is edited.
func TestAQuietServerFiresNothing(t *testing.T) {
	w, f := quietWindow(), knownFacts()
	for _, r := range All() {
		if r.Check == nil {
			continue
		}
		if c := r.Check(&w, &f); c.State == engine.Fired {
			t.Errorf("%s fires on a quiet server: %s", r.ID, c.Sentence())
		}
	}
}

func TestEveryRuleIsWhole(t *testing.T) {
	for _, r := range All() {
		if (r.Check == nil) == (r.Once == nil) {
			t.Errorf("%s: exactly one of Check and Once must be set", r.ID)
		}
		if (len(r.Overrides) > 0) != (r.While != "") {
			t.Errorf("%s: it overrides %v while %q", r.ID, r.Overrides, r.While)
		}
	}
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

func BenchmarkCheckWindow(b *testing.B) {
	all := slices.DeleteFunc(All(), func(r engine.Rule) bool { return r.Check == nil })
	w, f := quietWindow(), knownFacts()
	b.ReportAllocs()
	for b.Loop() {
		for i := range all {
			all[i].Check(&w, &f)
		}
	}
}

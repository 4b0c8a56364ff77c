package rules

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// servers generates random servers and runs: any values that a page can show, with readings
// missing at random. A fixed seed makes it reproducible.
type servers struct{ *rand.Rand }

func (s servers) maybe(v float64) stat.Opt {
	if s.IntN(6) == 0 {
		return stat.None
	}
	return stat.Some(v)
}

func pick[T any](s servers, v ...T) T { return v[s.IntN(len(v))] }

func (s servers) facts() engine.Facts {
	var f engine.Facts
	some := func() bool { return s.IntN(4) > 0 }
	f.Device = know(pick(s, "cuda", "cpu"))
	f.V0 = know(s.IntN(8) == 0)
	if some() {
		f.MaxNumSeqs = know(pick(s, 1, 4, 16, 100, 256, 1024))
	}
	if some() {
		f.KVCapacityTokens = engine.Know(pick(s, 4096.0, 30000, 500000, 5e6), engine.FromMetrics, "")
		f.BlockSize = know(pick(s, 16, 128))
	}
	if some() {
		f.MaxNumBatchedTokens = know(pick(s, 64, 2048, 8192, 16384))
	}
	if some() {
		f.GPUMemoryUtilization = know(pick(s, 0.3, 0.85, 0.9, 0.92, 0.95))
	}
	if s.IntN(5) == 0 {
		f.NumGPUBlocksOverride = know(pick(s, 64, 1000))
	}
	f.KVCacheDType = know(pick(s, "bf16", "fp8"))
	f.WeightDType = know(pick(s, "bf16", "fp8"))
	f.ComputeDType = know("bf16")
	f.ClassicBytes, f.ClassicBytesFrom = pick(s, 1.0, 2, 0), pick(s, "env", "catalog", "bf16 fallback", "")
	f.TensorParallel = know(pick(s, 1, 2, 8))
	f.DataParallel = know(1)
	if some() {
		f.PrefixCaching = know(some())
	}
	if some() {
		f.EngineVersion = know(pick(s, "0.6.3", "0.8.5", "0.11.0", "0.15.0", "0.30.0", "0.32.0", "dev"))
	}
	f.EnforceEager = know(s.IntN(3) == 0)
	if s.IntN(3) == 0 {
		f.EnableLoRA, f.MaxLoRAs = know(true), know(pick(s, 1, 4))
	}
	if some() {
		f.ChunkedPrefill = know(some())
	}
	if f.Device.Value == "cuda" && some() {
		f.GPU, _ = catalog.Default().FindGPU(pick(s, "NVIDIA B200", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA L40S"), 0)
		f.GPUKnown = true
	}
	if some() {
		f.ModelSpec, _ = catalog.Default().FindModel(pick(s, "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct", "deepseek-ai/DeepSeek-R1", "Qwen/Qwen3-30B-A3B"))
		f.ModelKnown, f.ParamsTotal = true, know(f.ModelSpec.TotalParams)
	}
	return f
}

func (s servers) window(i int, load bool, ranks int, f *engine.Facts) engine.Window {
	w := engine.Window{Index: i, Duration: 2 * time.Second, Polls: 9, Evaluable: s.IntN(12) > 0, Progress: s.IntN(8) > 0, Skewed: s.IntN(20) == 0}
	busy := 0.0
	if load {
		busy = 1
	}
	slots := float64(f.MaxNumSeqs.Value)
	if slots == 0 {
		slots = 64
	}
	each := busy * pick(s, 0.0, 0.5, 1, slots/10, slots-0.3, slots, slots, slots*1.1)
	n := each * float64(ranks)
	w.Running = s.maybe(n)
	w.RunningPeak = stat.Opt{V: math.Ceil(n), OK: w.Running.OK}
	w.Waiting = s.maybe(busy * pick(s, 0.0, 0.4, 3, slots, 10*slots))
	w.WaitingPeak = w.Waiting
	if s.IntN(3) == 0 {
		w.Deferred = w.Waiting.Times(s.Float64())
	}
	if s.IntN(3) == 0 {
		w.LoRAs = engine.LoRAWindow{Max: s.maybe(pick(s, 1.0, 4)), Running: s.maybe(pick(s, 1.0, 4)), Waiting: s.maybe(pick(s, 0.0, 3))}
		w.LoRAs.Wanted = w.LoRAs.Running.Plus(w.LoRAs.Waiting)
	}
	w.KV = s.maybe(pick(s, 0.0, 0.05, 0.3, 0.79, 0.9, 0.99, s.Float64()))
	w.KVPeak = w.KV.Times(1 + 0.2*s.Float64())
	w.KVPeak.V = min(1, w.KVPeak.V)
	for c := range w.Delta {
		if s.IntN(3) > 0 {
			v := busy * pick(s, 0.0, 1, 20, 3000) * s.Float64()
			w.Delta[c], w.Rate[c] = stat.Some(2*v), stat.Some(v)
		}
	}
	for h := range w.Hist {
		if load && s.IntN(3) > 0 {
			count := float64(1 + s.IntN(40))
			w.Hist[h] = stat.Delta{Sum: count * pick(s, 0.001, 0.1, 3, 500) * s.Float64(), Count: count, OK: true}
		}
	}
	if load && s.IntN(2) == 0 {
		n := w.Running.V * w.Seconds()
		w.Hist[engine.HistITL] = stat.Delta{
			Bounds: []float64{0.025, 0.4, 0.5, 1, math.Inf(1)}, Counts: []float64{n * 30, n, n * pick(s, 0.0, 0.1, 1), n * pick(s, 0.0, 0.5), 0},
			Sum: n, Count: n * 33, OK: true,
		}
		w.Hist[engine.HistIterationTokens] = stat.Delta{
			Bounds: []float64{64, 512, 4096, math.Inf(1)}, Counts: []float64{60, 2, pick(s, 0.0, 1), pick(s, 0.0, 1)},
			Sum: 9000, Count: 64, OK: true,
		}
	}
	w.StepTime = s.maybe(pick(s, 0.005, 0.03, 1.5))
	w.Active = w.Evaluable && w.Running.Or(0) > 0
	for r := range ranks {
		w.Ranks = append(w.Ranks, engine.RankWindow{
			Name: strconv.Itoa(r), Running: s.maybe(each * (0.5 + s.Float64())), Waiting: s.maybe(w.Waiting.V / float64(ranks)),
			KVPeak: s.maybe(w.KVPeak.V), Generation: s.maybe(w.Delta[engine.CounterGenerationTokens].V / float64(ranks)),
		})
	}
	if ranks > 1 && s.IntN(3) == 0 { // the first rank has all requests
		zero := stat.Some(0)
		w.Ranks[0].Running, w.Ranks[0].Waiting = w.Running, w.Waiting
		for r := range w.Ranks[1:] {
			w.Ranks[r+1] = engine.RankWindow{Name: strconv.Itoa(r + 1), Running: zero, Waiting: zero, KVPeak: zero, Generation: zero, Untouched: s.IntN(2) == 0}
		}
	}
	if !w.Progress && w.Running.Or(0)+w.Waiting.Or(0) > 0 {
		w.Stall = time.Duration(s.IntN(20)) * time.Second
	}
	if s.IntN(2) == 0 {
		g := engine.GPUWindow{ThrottleOK: s.IntN(3) > 0, Throttle: uint64(s.IntN(256))}
		for i := range g.Mean {
			g.Mean[i] = s.maybe(100 * s.Float64())
			g.Last[i], g.Peak[i] = g.Mean[i], g.Mean[i]
		}
		w.GPUs = append(w.GPUs, g)
	}
	return w
}

func (s servers) request() engine.Request {
	f := s.facts()
	load, ranks := s.IntN(5) > 0, pick(s, 0, 1, 1, 1, 2, 4)
	f.DataParallel = know(max(1, ranks))
	var windows []engine.Window
	template := s.window(0, load, ranks, &f)
	for i := range s.IntN(16) {
		w := template.Clone()
		if s.IntN(3) == 0 {
			w = s.window(i, load, ranks, &f)
		}
		w.Index = i
		windows = append(windows, w)
	}
	return engine.Request{Facts: f, Windows: windows, Rules: All(), Duration: 30 * time.Second}
}

// TestProperties checks the invariants of a diagnosis on a few thousand random servers.
func TestProperties(t *testing.T) {
	const runs = 3000
	seen := map[string]int{}
	for seed := range uint64(runs) {
		q := servers{rand.New(rand.NewPCG(seed, 7))}.request()
		d := engine.Diagnose(q)
		if diff := cmp.Diff(asJSON(t, &d), asJSON(t, ptr(engine.Diagnose(q)))); diff != "" {
			t.Fatalf("seed %d: the same windows give another diagnosis:\n%s", seed, diff)
		}
		for i := range d.Findings {
			f := &d.Findings[i]
			seen[string(f.ID)+" "+string(f.State)]++
			if err := wellFormed(f); err != nil {
				t.Errorf("seed %d: %s: %v", seed, f.ID, err)
			}
		}
		if err := recommendable(&d, q.Windows); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	// Every rule must fire for some server: a state that is never generated is not tested.
	for _, r := range All() {
		if seen[string(r.ID)+" fired"] == 0 || seen[string(r.ID)+" not-fired"] == 0 {
			t.Errorf("%s: fired %d times and not-fired %d times; the generator must reach both", r.ID, seen[string(r.ID)+" fired"], seen[string(r.ID)+" not-fired"])
		}
	}
}

func ptr[T any](v T) *T { return &v }

// asJSON encodes findings and recommendation; it fails the test if a number is NaN or infinite.
func asJSON(t *testing.T, d *engine.Diagnosis) string {
	t.Helper()
	out, err := json.Marshal(struct {
		Findings       []engine.Finding
		Recommendation *engine.Recommendation
		Outcome        engine.Outcome
	}{d.Findings, d.Recommendation, d.Outcome})
	if err != nil {
		t.Fatalf("a finding is not a document: %v", err)
	}
	return string(out)
}

// wellFormed returns an error if a finding breaks an invariant.
func wellFormed(f *engine.Finding) error {
	if f.Reason == "" {
		return fmt.Errorf("%s without a reason", f.State)
	}
	lacksLoad := strings.HasPrefix(f.Reason, "no request ran") || strings.HasPrefix(f.Reason, "no tokens generated")
	if f.State == engine.NotEvaluable && len(f.Missing) == 0 && f.Reason != "no evaluable window" && !lacksLoad {
		return fmt.Errorf("does not say what it lacked")
	}
	for _, e := range f.Evidence {
		if e.Name == "" || e.Text == "" {
			return fmt.Errorf("evidence without a name or a sentence: %+v", e)
		}
	}
	if f.State != engine.Fired {
		if f.Fix != nil || f.Significant {
			return fmt.Errorf("%s with a fix or significant", f.State)
		}
		return nil
	}
	fix := f.Fix
	switch {
	case f.Confidence <= 0 || f.Confidence > 1:
		return fmt.Errorf("confidence %v", f.Confidence)
	case f.Impact < 1 || f.Impact > 5:
		return fmt.Errorf("impact %v", f.Impact)
	case len(f.Evidence) == 0:
		return fmt.Errorf("fired without evidence")
	case fix == nil || fix.Command == "" || fix.Why == "" || len(fix.Costs) == 0:
		return fmt.Errorf("fired without a whole fix: %+v", fix)
	case fix.Kind == engine.KindFlag && !fix.Changeable():
		return fmt.Errorf("a flag fix without a flag, or without a number and nothing to leave out: %+v", fix)
	case fix.Kind != engine.KindFlag && fix.Flag != "":
		return fmt.Errorf("kind %s with flag %s", fix.Kind, fix.Flag)
	case fix.Kind == engine.KindFlag && fix.Withheld == "" && fix.From == fix.To:
		return fmt.Errorf("%s changes %s to itself", fix.Flag, fix.From)
	}
	for _, p := range fix.Predicted {
		if p.Low.OK && p.High.OK && p.Low.V > p.High.V+1e-9 ||
			p.Mid.OK && (p.Low.OK && p.Low.V > p.Mid.V+1e-9 || p.High.OK && p.Mid.V > p.High.V+1e-9) {
			return fmt.Errorf("prediction out of order: %+v", p)
		}
	}
	return nil
}

// recommendable returns an error if the recommendation contradicts the run.
func recommendable(d *engine.Diagnosis, windows []engine.Window) error {
	r := d.Recommendation
	if r == nil {
		return nil
	}
	if r.Withheld != "" {
		return fmt.Errorf("recommends what it withholds: %s", r.Withheld)
	}
	load := false
	for i := range windows {
		load = load || loaded(&windows[i])
	}
	if !load {
		return fmt.Errorf("recommends %s without load", r.Finding)
	}
	if r.Finding == engine.OOMRisk {
		return fmt.Errorf("recommends R4 on a server that runs")
	}
	if r.Kind == engine.KindFlag && d.Facts.EngineVersion.Known && flagMissing(&d.Facts, r.Flag) != "" {
		return fmt.Errorf("recommends %s, which vLLM %s does not have", r.Flag, d.Facts.EngineVersion.Value)
	}
	if r.Finding != engine.ConcurrencySaturation || r.Flag != "--max-num-seqs" {
		return nil
	}
	to, err := strconv.Atoi(r.To)
	if err != nil || to <= d.Facts.MaxNumSeqs.Value {
		return fmt.Errorf("raises %d slots to %q", d.Facts.MaxNumSeqs.Value, r.To)
	}
	if b := d.Facts.MaxNumBatchedTokens; b.Known && to > b.Value {
		return fmt.Errorf("%d slots above a token budget of %d", to, b.Value)
	}
	run := engine.Run{Windows: windows, Agg: engine.Combine(windows, &d.Facts), Facts: &d.Facts}
	p := poolOf(&run, func(w *engine.Window) bool { return checkConcurrencySaturation(w, &d.Facts).State == engine.Fired })
	if p.holds.OK && float64(to) > 0.8*p.holds.V+1e-9 {
		return fmt.Errorf("%d slots fill a pool of %.1f sequences above 80 %%", to, p.holds.V)
	}
	if float64(to) >= p.running+p.queued+2*engine.SlotStep {
		return fmt.Errorf("%d slots for %.1f requests", to, p.running+p.queued)
	}
	return nil
}

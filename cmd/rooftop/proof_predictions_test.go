//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/bench"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	core "github.com/rooftop-dev/rooftop/engine"
)

// predictedFor is how long each setting is measured.
const predictedFor = 40 * time.Second

// mostPredicted is how many recommendations are followed from one bad start.
const mostPredicted = 3

// predictionCases are loads with a bad start from which recommendations are followed. Nothing is
// fitted on those that are held out.
func predictionCases() []struct {
	workload
	heldOut bool
} {
	chat := func(clients, prompt, output int, seed uint64) loadgen.Load {
		return loadgen.Load{
			Clients: clients, PromptTokens: loadgen.Fixed(prompt), OutputTokens: loadgen.Fixed(output),
			Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: seed,
		}
	}
	shared := func(l loadgen.Load, tokens int) loadgen.Load {
		l.SharedPrefixTokens = tokens
		return l
	}
	mixed := chat(24, 0, 0, 17)
	mixed.PromptTokens, mixed.OutputTokens = loadgen.LognormalMean(250, 0.8, 1200), loadgen.LognormalMean(120, 0.7, 500)
	varied := chat(18, 0, 0, 21)
	varied.PromptTokens, varied.OutputTokens = loadgen.LognormalMean(400, 0.6, 1500), loadgen.LognormalMean(90, 0.6, 400)
	type predictionCase = struct {
		workload
		heldOut bool
	}
	var out []predictionCase
	add := func(heldOut bool, name string, l loadgen.Load, bad ...string) {
		out = append(out, predictionCase{workload{name: name, load: l, bad: bad}, heldOut})
	}
	add(false, "slots-4-of-32", chat(32, 100, 64, 1), "--max-num-seqs", "4")
	add(false, "prefix-off-768", shared(chat(16, 930, 32, 3), 768), "--max-num-seqs", "16", "--no-enable-prefix-caching")
	add(false, "pool-64", chat(32, 200, 400, 2), "--num-gpu-blocks-override", "64", "--max-num-seqs", "128")
	add(false, "slots-6-mixed", mixed, "--max-num-seqs", "6")
	add(false, "slots-2-long-prompts", chat(12, 1200, 40, 5), "--max-num-seqs", "2")
	add(false, "budget-128", chat(24, 800, 40, 6), "--max-num-seqs", "24", "--max-num-batched-tokens", "128")
	add(true, "slots-3-of-20", chat(20, 60, 120, 7), "--max-num-seqs", "3")
	add(true, "slots-2-of-10", chat(10, 400, 100, 8), "--max-num-seqs", "2")
	add(true, "slots-8-of-48", chat(48, 150, 150, 9), "--max-num-seqs", "8")
	add(true, "slots-1-of-6", chat(6, 50, 300, 10), "--max-num-seqs", "1")
	add(true, "slots-5-documents", chat(16, 1600, 60, 11), "--max-num-seqs", "5")
	add(true, "prefix-off-400", shared(chat(8, 500, 64, 12), 400), "--max-num-seqs", "16", "--no-enable-prefix-caching")
	add(true, "prefix-off-slots-4", shared(chat(24, 540, 16, 13), 500), "--max-num-seqs", "4", "--no-enable-prefix-caching")
	add(true, "prefix-off-1200", shared(chat(12, 1500, 50, 18), 1200), "--max-num-seqs", "12", "--no-enable-prefix-caching")
	add(true, "pool-40", chat(20, 500, 200, 14), "--num-gpu-blocks-override", "40", "--max-num-seqs", "64")
	add(true, "pool-and-slots", chat(32, 150, 250, 15), "--num-gpu-blocks-override", "48", "--max-num-seqs", "6")
	add(true, "budget-64", chat(16, 400, 100, 16), "--max-num-seqs", "16", "--max-num-batched-tokens", "64")
	add(true, "slots-6-of-40", chat(40, 100, 80, 19), "--max-num-seqs", "6")
	add(true, "slots-4-summaries", chat(14, 900, 120, 20), "--max-num-seqs", "4")
	add(true, "slots-3-varied", varied, "--max-num-seqs", "3")
	add(true, "pool-56-long", chat(18, 250, 350, 22), "--num-gpu-blocks-override", "56", "--max-num-seqs", "48")
	add(true, "pool-96-documents", chat(18, 930, 24, 24), "--num-gpu-blocks-override", "96", "--max-num-seqs", "64")
	add(true, "pool-36-slots-5", chat(24, 300, 120, 23), "--num-gpu-blocks-override", "36", "--max-num-seqs", "5")
	return out
}

// replayed is the part of a diagnosis that predictions are scored with.
type replayed struct {
	Recommendation *struct {
		Finding   string            `json:"finding"`
		Kind      core.Kind         `json:"kind"`
		Flag      string            `json:"flag"`
		From      string            `json:"from"`
		To        string            `json:"to"`
		Also      []core.Change     `json:"also"`
		Predicted []core.Prediction `json:"predicted"`
	} `json:"recommendation"`
	Measured map[string]struct {
		Value *float64 `json:"value"`
	} `json:"measured"`
}

// diagnosed returns this build's diagnosis of a setting under a load. The recording of an earlier
// run is used if there is one.
func (w *workload) diagnosed(t *testing.T, flags []string) replayed {
	t.Helper()
	file := filepath.Join(proofDir(t), w.name+strings.NewReplacer("--", "-", "/", "-").Replace(strings.Join(flags, ""))+".gz")
	program := built(t)
	if _, err := os.Stat(file); err != nil {
		server := launch(t, programtest.Address(t), nil, flags...)
		defer server.stop()
		warmUp(t, server.url(), "", w.load)
		g := offer(t, server.url(), "", w.load)
		server.settle(t, proofSettle)
		part := file + ".part"
		_ = os.Remove(part)
		cmd := realTime(testContext(t), program, "diagnose", "--url", server.url(), "--duration", predictedFor.String(), "--record", part)
		if out, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() != 3 && cmd.ProcessState.ExitCode() != 4 {
			t.Fatalf("diagnose: %v\n%s", err, out)
		}
		g.end(t)
		must(t, os.Rename(part, file))
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, "replay", file, "--json")
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() > 4 {
		t.Fatalf("replay %s: %v\n%s", file, err, stderr.Bytes())
	}
	var r replayed
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("replay %s: %v", file, err)
	}
	return r
}

// changedFlags returns flags after changes.
func changedFlags(flags []string, changes []core.Change) []string {
	out := slices.Clone(flags)
	for _, c := range changes {
		for _, name := range []string{c.Flag, "--no-" + strings.TrimPrefix(c.Flag, "--")} {
			if i := slices.Index(out, name); i >= 0 {
				end := i + 1
				if end < len(out) && !strings.HasPrefix(out[end], "--") {
					end++
				}
				out = slices.Delete(out, i, end)
			}
		}
		switch c.To {
		case "":
		case "on":
			out = append(out, c.Flag)
		default:
			out = append(out, c.Flag, c.To)
		}
	}
	return out
}

// TestProofPredictions follows rooftop's recommendations on the real server and compares each
// prediction with the measured effect. Recordings are stored
// in ROOFTOP_PROOF and replayed with the build under test, so that a second run takes no server.
func TestProofPredictions(t *testing.T) {
	only := strings.FieldsFunc(os.Getenv("ROOFTOP_PROOF_ONLY"), func(r rune) bool { return r == ',' })
	const tokens = "generation_tokens_per_s"
	var list []bench.ScoredPrediction
	for _, c := range predictionCases() {
		if len(only) > 0 && !slices.Contains(only, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			flags := c.bad
			before := c.diagnosed(t, flags)
			for step := 1; step <= mostPredicted && before.Recommendation != nil && before.Recommendation.Kind == core.KindFlag; step++ {
				rec := before.Recommendation
				changes := append([]core.Change{{Flag: rec.Flag, From: rec.From, To: rec.To}}, rec.Also...)
				flags = changedFlags(flags, changes)
				after := c.diagnosed(t, flags)
				f := bench.ScoredPrediction{Scenario: c.name, Step: step, Finding: rec.Finding, Advice: rec.Flag, Change: core.JoinChanges(changes), HeldOut: c.heldOut}
				for _, p := range rec.Predicted {
					was, is := before.Measured[p.Metric].Value, after.Measured[p.Metric].Value
					if was == nil || is == nil || !(*was > 0) {
						continue
					}
					nan := math.NaN()
					f.Scores = append(f.Scores, bench.Scored{Metric: p.Metric, Low: p.Low.Or(nan), Mid: p.Mid.Or(nan), High: p.High.Or(nan), Measured: *is / *was - 1})
				}
				list = append(list, f)
				before = after
			}
		})
	}
	for i := range list {
		if s := list[i].Score(tokens); s != nil {
			within := "within"
			if !s.Covered() {
				within = "OUTSIDE"
			}
			t.Logf("%-22s %-46s %+.0f .. %+.0f .. %+.0f %%, measured %+.0f %% (%s)", list[i].Scenario, list[i].Change, 100*s.Low, 100*s.Mid, 100*s.High, 100*s.Measured, within)
		}
	}
	report := func(name string, list []bench.ScoredPrediction, count func(*bench.ScoredPrediction) bool) bench.Scoreboard {
		s := bench.Score(list, tokens, count)
		t.Logf("%-28s n %3d  median error %5.1f %%  bias %+6.1f %%  within %5.1f %%  below %5.1f %%  above %5.1f %%  bounds held %.0f %% of %d", name, s.N, 100*s.Error, 100*s.Bias,
			100*s.Coverage, 100*s.Below, 100*s.Above, 100*s.BoundsCovered, s.Bounds)
		return s
	}
	all := report("real vLLM", list, nil)
	report("real vLLM, held out", list, func(f *bench.ScoredPrediction) bool { return f.HeldOut })
	if len(only) > 0 {
		return
	}
	if all.N+all.Bounds < 15 {
		t.Errorf("%d predictions, want at least 15", all.N+all.Bounds)
	}
	if all.Error > 0.20 || all.Coverage < 0.70 || all.BoundsCovered < 1 {
		t.Errorf("predictions on the real server: %+v", all)
	}
}

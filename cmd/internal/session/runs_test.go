package session

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// runsDir holds third-party recordings of real servers, which are not in the repository.
var runsDir = filepath.Join("..", "..", "..", "..", "shared", "data", "vllm-runs")

// column is the metric that a column of a recorded run is served as.
type column struct {
	name, metric, kind string
	scale              float64
}

var columns = []column{
	{"kv_cache_usage_pct", "vllm:kv_cache_usage_perc", "gauge", 0.01},
	{"num_requests_running", "vllm:num_requests_running", "gauge", 1},
	{"num_requests_waiting", "vllm:num_requests_waiting", "gauge", 1},
	{"prefix_cache_hits", "vllm:prefix_cache_hits_total", "counter", 1},
	{"prefix_cache_queries", "vllm:prefix_cache_queries_total", "counter", 1},
	{"prompt_tokens_total", "vllm:prompt_tokens_total", "counter", 1},
	{"generation_tokens_total", "vllm:generation_tokens_total", "counter", 1},
	{"num_preemptions_total", "vllm:num_preemptions_total", "counter", 1},
	{"request_success_total", "vllm:request_success_total", "counter", 1},
	{"prompt_tokens_local_compute", `vllm:prompt_tokens_by_source_total{source="local_compute"}`, "counter", 1},
	{"prompt_tokens_local_cache_hit", `vllm:prompt_tokens_by_source_total{source="local_cache_hit"}`, "counter", 1},
}

// recorded is a real run: its rows as pages, and its launch settings.
type recorded struct {
	pages  []string
	inputs facts.Inputs
}

func loadRun(t *testing.T, name string) recorded {
	t.Helper()
	dir := filepath.Join(runsDir, name)
	f, err := os.Open(filepath.Join(dir, "metrics_server_metrics.csv"))
	if err != nil {
		t.Skipf("NOT CHECKED: the recorded runs are not here: %v", err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	must(t, err)
	index := map[string]int{}
	for i, h := range rows[0] {
		index[h] = i
	}
	command, err := os.ReadFile(filepath.Join(dir, "vllm_command.txt"))
	must(t, err)
	config, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	must(t, err)
	l, err := launch.ParseCommand(string(command), nil, config)
	must(t, err)
	model, _, _ := l.Model()
	run := recorded{inputs: facts.Inputs{
		Flags:       facts.Given{GPU: "B200"},
		Launch:      facts.FromLaunch(l),
		LaunchModel: model,
		Catalog:     catalog.Default(),
	}}
	for _, row := range rows[1:] {
		run.pages = append(run.pages, servePage(row, index, model))
	}
	return run
}

func servePage(row []string, index map[string]int, model string) string {
	var b strings.Builder
	for _, c := range columns {
		at, ok := index[c.name]
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(row[at], 64)
		if err != nil {
			continue
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(c.metric, "}"), "{")
		if labels != "" {
			labels = "," + labels
		}
		fmt.Fprintf(&b, "# TYPE %s %s\n%s{engine=\"0\",model_name=%q%s} %g\n", name, c.kind, name, model, labels, v*c.scale)
	}
	return b.String()
}

// diagnoseRun diagnoses a part of a run. It has one row per second, which every poll of that second
// returns.
func diagnoseRun(t *testing.T, run recorded, from, to, pollsPerRow int) engine.Diagnosis {
	t.Helper()
	a, err := NewAnalysis(Header{Inputs: run.inputs})
	must(t, err)
	step := time.Second / time.Duration(pollsPerRow)
	at := time.Duration(0)
	for _, page := range run.pages[from:to] {
		for range pollsPerRow {
			a.Add(&Poll{T: at, PageT: at + 5*time.Millisecond, Took: 5 * time.Millisecond, Body: page})
			at += step
		}
	}
	return a.Diagnose(End{Duration: at}, "test")
}

// TestRecordedRunsGetTheirTrueState compares the diagnosis of six real servers with the state that
// the README of that data describes.
func TestRecordedRunsGetTheirTrueState(t *testing.T) {
	for _, c := range []struct {
		run     string
		truth   string
		finding engine.FindingID // of the recommendation; "" if there is none
		kind    engine.Kind
		outcome engine.Outcome
		fires   []engine.FindingID
		quiet   []engine.FindingID
	}{
		{"llama70b-fp4-b200-tp1_bs16_offloadoff", "under-used: the client sends 16 at a time",
			engine.UnderBatching, engine.KindClient, engine.OutcomeRecommendation, nil, []engine.FindingID{engine.SlowSteps, engine.KVPressure, engine.ConcurrencySaturation}},
		{"llama70b-fp4-b200-tp1_bs256_offloadoff", "KV-bound, preempting",
			engine.KVPressure, "", engine.OutcomeRecommendation, nil, []engine.FindingID{engine.SlowSteps, engine.UnderBatching}},
		{"llama70b-fp4-b200-tp2_bs128_offloadoff", "capped by max_num_seqs",
			engine.ConcurrencySaturation, engine.KindFlag, engine.OutcomeRecommendation, nil, []engine.FindingID{engine.SlowSteps, engine.KVPressure, engine.UnderBatching}},
		{"llama70b-fp4-b200-tp4_bs512_offloadoff", "healthy",
			"", "", engine.OutcomeHealthy, nil, []engine.FindingID{engine.SlowSteps, engine.KVPressure, engine.ConcurrencySaturation, engine.UnderBatching}},
		{"llama70b-fp4-b200-tp8_bs256_offloadon", "12 times too slow; no flag of R1 to R5 helps",
			engine.SlowSteps, engine.KindHost, engine.OutcomeRecommendation, nil, []engine.FindingID{engine.KVPressure}},
		{"dsr1-fp4-b200-tp4_users24", "KV-bound; hit-rate counters inflated by blocked admissions",
			engine.KVPressure, "", engine.OutcomeRecommendation, nil, []engine.FindingID{engine.UnderBatching}},
	} {
		t.Run(c.run, func(t *testing.T) {
			run := loadRun(t, c.run)
			n := len(run.pages)
			for _, part := range []struct {
				name            string
				from, to, polls int
			}{{"middle half", n / 4, 3 * n / 4, 1}, {"30 s of it at 4 Hz", n / 2, min(n, n/2+31), 4}} {
				d := diagnoseRun(t, run, part.from, part.to, part.polls)
				got := engine.FindingID("")
				if d.Recommendation != nil {
					got = d.Recommendation.Finding
				}
				t.Logf("%s (%s): %s %s; running %.0f waiting %.0f KV %.2f %.0f tok/s", part.name, c.truth, d.Outcome, got,
					d.Quantity("running_mean").Value.V, d.Quantity("waiting_mean").Value.V, d.Quantity("kv_usage_mean").Value.V, d.Quantity("generation_tokens_per_s").Value.V)
				if d.Recommendation != nil {
					t.Logf("  %s | %s | %s", d.Recommendation.Kind, d.Recommendation.Command, d.Recommendation.Why)
				}
				if got != c.finding || d.Outcome != c.outcome {
					t.Errorf("%s: %s %q, want %s %q (%s)", part.name, d.Outcome, got, c.outcome, c.finding, c.truth)
				}
				if c.kind != "" && d.Recommendation != nil && d.Recommendation.Kind != c.kind {
					t.Errorf("%s: kind %s, want %s", part.name, d.Recommendation.Kind, c.kind)
				}
				for _, f := range d.Findings {
					for _, id := range c.quiet {
						if f.ID == id && f.State == engine.Fired && f.Significant {
							t.Errorf("%s: %s fired: %s", part.name, id, f.Reason)
						}
					}
				}
			}
		})
	}
}

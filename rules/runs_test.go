package rules

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// runsDir holds recordings of real servers made by others; they stay where they
// are, and the test skips where they are absent.
var runsDir = filepath.Join("..", "..", "shared", "data", "vllm-runs")

// TestRecordedRuns puts real runs of vLLM on B200s through windows and rules,
// in stretches as long as a diagnosis takes, and asks for the true state that
// their recorders describe.
func TestRecordedRuns(t *testing.T) {
	if _, err := os.Stat(runsDir); err != nil {
		t.Skip("the recorded runs are not here: ", err)
	}
	for _, c := range []struct {
		dir   string
		model string
		args  map[string]string
		want  map[engine.FindingID]engine.State // in every stretch
		voice engine.FindingID                  // recommended, "" none
	}{
		{
			dir: "llama70b-fp4-b200-tp1_bs16_offloadoff", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args:  map[string]string{"max_num_seqs": "16", "tensor_parallel_size": "1"},
			want:  map[engine.FindingID]engine.State{engine.UnderBatching: engine.Fired, engine.SeatSaturation: engine.NotFired, engine.KVPressure: engine.NotFired, engine.SlowSteps: engine.NotFired},
			voice: engine.UnderBatching,
		},
		{
			dir: "llama70b-fp4-b200-tp1_bs256_offloadoff", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args:  map[string]string{"max_num_seqs": "256", "tensor_parallel_size": "1"},
			want:  map[engine.FindingID]engine.State{engine.KVPressure: engine.Fired},
			voice: engine.KVPressure,
		},
		{
			dir: "llama70b-fp4-b200-tp2_bs128_offloadoff", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args:  map[string]string{"max_num_seqs": "128", "tensor_parallel_size": "2"},
			want:  map[engine.FindingID]engine.State{engine.SeatSaturation: engine.Fired, engine.KVPressure: engine.NotFired, engine.SlowSteps: engine.NotFired},
			voice: engine.SeatSaturation,
		},
		{
			dir: "llama70b-fp4-b200-tp4_bs512_offloadoff", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args: map[string]string{"max_num_seqs": "512", "tensor_parallel_size": "4"},
			want: map[engine.FindingID]engine.State{engine.SeatSaturation: engine.NotFired, engine.KVPressure: engine.NotFired, engine.UnderBatching: engine.NotFired, engine.SlowSteps: engine.NotFired},
		},
		{
			dir: "llama70b-fp4-b200-tp8_bs256_offloadon", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args:  map[string]string{"max_num_seqs": "256", "tensor_parallel_size": "8"},
			want:  map[engine.FindingID]engine.State{engine.SlowSteps: engine.Fired, engine.SeatSaturation: engine.NotFired, engine.KVPressure: engine.NotFired},
			voice: engine.SlowSteps,
		},
		{
			dir: "dsr1-fp4-b200-tp4_users24", model: "nvidia/DeepSeek-R1-0528-FP4",
			args:  map[string]string{"max_num_seqs": "1024", "tensor_parallel_size": "4", "enable_expert_parallel": "True"},
			want:  map[engine.FindingID]engine.State{engine.KVPressure: engine.Fired},
			voice: engine.KVPressure,
		},
	} {
		t.Run(c.dir, func(t *testing.T) {
			pages, err := readRun(filepath.Join(runsDir, c.dir, "metrics_server_metrics.csv"))
			if err != nil {
				t.Fatal(err)
			}
			c.args["gpu_memory_utilization"], c.args["kv_cache_dtype"] = "0.9", "fp8"
			if _, llama := c.args["enable_expert_parallel"]; !llama {
				c.args["max_num_batched_tokens"] = "8192"
			}
			const stretch = 60 // seconds, one page a second
			middle := pages[len(pages)/4 : 3*len(pages)/4]
			for n := range 5 {
				at := n * (len(middle) - stretch) / 4
				d := diagnoseRun(middle[at:at+stretch], c.model, c.args)
				for id, want := range c.want {
					for _, f := range d.Findings {
						if f.ID == id && (f.State != want || want == engine.Fired && !f.Significant) {
							t.Errorf("stretch %d: %s is %s (significant %t): %s; want %s", n, id, f.State, f.Significant, f.Reason, want)
						}
					}
				}
				got := engine.FindingID("")
				if d.Recommendation != nil {
					got = d.Recommendation.Finding
				}
				if got != c.voice {
					t.Errorf("stretch %d: recommends %q, want %q", n, got, c.voice)
				}
				if d.Recommendation != nil {
					t.Logf("stretch %d: %s: %s | %s | %v", n, got, d.Recommendation.Command, d.Recommendation.Why, d.Recommendation.Predicted)
				}
				if t.Failed() {
					for _, f := range d.Findings {
						t.Logf("   %s %s sig=%t score %.2f: %s", f.ID, f.State, f.Significant, f.Score, f.Reason)
						if f.Fix != nil {
							t.Logf("       withheld: %s", f.Fix.Withheld)
						}
					}
				}
			}
		})
	}
}

// readRun reads a run sampled once a second as pages that have what its columns
// have.
func readRun(path string) ([]*engine.Page, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	var pages []*engine.Page
	for _, row := range rows[1:] {
		at := func(name string) float64 {
			v, _ := strconv.ParseFloat(strings.TrimSpace(row[column[name]]), 64)
			return v
		}
		p := &engine.Page{T: time.Duration(at("relative_time_sec") * float64(time.Second)), KVUsageMax: stat.Some(at("kv_cache_usage_pct") / 100)}
		p.Gauges[engine.GaugeRunning] = stat.Some(at("num_requests_running"))
		p.Gauges[engine.GaugeWaiting] = stat.Some(at("num_requests_waiting"))
		p.Gauges[engine.GaugeKVUsage] = p.KVUsageMax
		for name, c := range map[string]engine.Counter{
			"prefix_cache_hits": engine.CounterPrefixHits, "prefix_cache_queries": engine.CounterPrefixQueries,
			"prompt_tokens_total": engine.CounterPromptTokens, "generation_tokens_total": engine.CounterGenerationTokens,
			"num_preemptions_total": engine.CounterPreemptions, "request_success_total": engine.CounterRequestSuccess,
		} {
			p.Counters[c] = stat.Some(at(name))
		}
		p.Ranks = []engine.Rank{{Name: "0", Gauges: p.Gauges, Generation: p.Counters[engine.CounterGenerationTokens], Prompt: p.Counters[engine.CounterPromptTokens]}}
		pages = append(pages, p)
	}
	return pages, nil
}

func diagnoseRun(pages []*engine.Page, model string, args map[string]string) engine.Diagnosis {
	var windower engine.Windower
	var windows []engine.Window
	for _, p := range pages {
		if w := windower.Add(&engine.Sample{T: p.T, Page: p}); w != nil {
			windows = append(windows, w.Clone())
		}
	}
	launch := map[string]engine.Setting{}
	for name, v := range args {
		launch[name] = engine.Setting{Value: v, Source: engine.FromCmdline}
	}
	facts := engine.Resolve(engine.Inputs{
		Flags: engine.Given{GPU: "B200"}, Launch: launch, Page: pages[len(pages)-1],
		Server: engine.ServerFacts{Version: "0.15.0", Model: model},
	})
	return engine.Diagnose(engine.Request{Facts: facts, Windows: windows, Rules: All(), Duration: pages[len(pages)-1].T - pages[0].T})
}

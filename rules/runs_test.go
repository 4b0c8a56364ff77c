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
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// runsDir holds third-party recordings of real servers, which are not in the repository; the test
// skips if they are absent.
var runsDir = filepath.Join("..", "..", "shared", "data", "vllm-runs")

// TestRecordedRuns diagnoses recorded runs of vLLM on B200 GPUs, in sections as long as a
// measurement, and compares the findings with the state that the recordings' authors describe.
func TestRecordedRuns(t *testing.T) {
	if _, err := os.Stat(runsDir); err != nil {
		t.Skip("NOT CHECKED: the recorded runs are not here: ", err)
	}
	for _, c := range []struct {
		dir         string
		model       string
		args        map[string]string
		want        map[engine.FindingID]engine.State // in every stretch
		recommended engine.FindingID                  // recommended, "" none
		bare        engine.FindingID                  // recommended without launch, GPU and -m, "" none
	}{
		{
			dir: "llama70b-fp4-b200-tp1_bs16_offloadoff", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args:        map[string]string{"max_num_seqs": "16", "tensor_parallel_size": "1"},
			want:        map[engine.FindingID]engine.State{engine.UnderBatching: engine.Fired, engine.ConcurrencySaturation: engine.NotFired, engine.KVPressure: engine.NotFired, engine.SlowSteps: engine.NotFired},
			recommended: engine.UnderBatching,
		},
		{
			dir: "llama70b-fp4-b200-tp1_bs256_offloadoff", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args:        map[string]string{"max_num_seqs": "256", "tensor_parallel_size": "1"},
			want:        map[engine.FindingID]engine.State{engine.KVPressure: engine.Fired},
			recommended: engine.KVPressure,
			bare:        engine.KVPressure,
		},
		{
			dir: "llama70b-fp4-b200-tp2_bs128_offloadoff", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args:        map[string]string{"max_num_seqs": "128", "tensor_parallel_size": "2"},
			want:        map[engine.FindingID]engine.State{engine.ConcurrencySaturation: engine.Fired, engine.KVPressure: engine.NotFired, engine.SlowSteps: engine.NotFired},
			recommended: engine.ConcurrencySaturation,
			bare:        engine.ConcurrencySaturation,
		},
		{
			dir: "llama70b-fp4-b200-tp4_bs512_offloadoff", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args: map[string]string{"max_num_seqs": "512", "tensor_parallel_size": "4"},
			want: map[engine.FindingID]engine.State{engine.ConcurrencySaturation: engine.NotFired, engine.KVPressure: engine.NotFired, engine.UnderBatching: engine.NotFired, engine.SlowSteps: engine.NotFired},
		},
		{
			dir: "llama70b-fp4-b200-tp8_bs256_offloadon", model: "nvidia/Llama-3.3-70B-Instruct-FP4",
			args:        map[string]string{"max_num_seqs": "256", "tensor_parallel_size": "8"},
			want:        map[engine.FindingID]engine.State{engine.SlowSteps: engine.Fired, engine.ConcurrencySaturation: engine.NotFired, engine.KVPressure: engine.NotFired},
			recommended: engine.SlowSteps,
		},
		{
			dir: "dsr1-fp4-b200-tp4_users24", model: "nvidia/DeepSeek-R1-0528-FP4",
			args:        map[string]string{"max_num_seqs": "1024", "tensor_parallel_size": "4", "enable_expert_parallel": "True"},
			want:        map[engine.FindingID]engine.State{engine.KVPressure: engine.Fired},
			recommended: engine.KVPressure,
			bare:        engine.KVPressure,
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
				if got := diagnoseRun(middle[at:at+stretch], c.model, nil); recommendedBy(&got) != c.bare {
					t.Errorf("stretch %d without launch facts: recommends %q, want %q", n, recommendedBy(&got), c.bare)
				} else if slots := got.Facts.MaxNumSeqs; slots.Known && strconv.Itoa(slots.Value) != c.args["max_num_seqs"] {
					t.Errorf("stretch %d: infers %d slots, want %s", n, slots.Value, c.args["max_num_seqs"])
				}
				d := diagnoseRun(middle[at:at+stretch], c.model, c.args)
				for id, want := range c.want {
					for _, f := range d.Findings {
						if f.ID == id && (f.State != want || want == engine.Fired && !f.Significant) {
							t.Errorf("stretch %d: %s is %s (significant %t): %s; want %s", n, id, f.State, f.Significant, f.Reason, want)
						}
					}
				}
				got := recommendedBy(&d)
				if got != c.recommended {
					t.Errorf("stretch %d: recommends %q, want %q", n, got, c.recommended)
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

// recommendedBy returns the finding behind the recommendation, "" for none.
func recommendedBy(d *engine.Diagnosis) engine.FindingID {
	if d.Recommendation == nil {
		return ""
	}
	return d.Recommendation.Finding
}

// readRun reads a run sampled once a second as pages; metrics without a column are absent.
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

// diagnoseRun diagnoses pages of a server with the given launch arguments; with nil, as if neither its
// launch nor its GPU could be read.
func diagnoseRun(pages []*engine.Page, model string, args map[string]string) engine.Diagnosis {
	var windower engine.Windower
	var windows []engine.Window
	for _, p := range pages {
		if w := windower.Add(&engine.Sample{T: p.T, Page: p}); w != nil {
			windows = append(windows, w.Clone())
		}
	}
	in := facts.Inputs{Page: pages[len(pages)-1], Server: facts.ServerAnswers{Version: "0.15.0", Model: model}}
	if args != nil {
		in.Flags.GPU, in.Launch = "B200", map[string]facts.Setting{}
		for name, v := range args {
			in.Launch[name] = facts.Setting{Value: v, Source: engine.FromCmdline}
		}
	}
	return engine.Diagnose(engine.Request{Facts: facts.Resolve(in), Windows: windows, Rules: All(), Duration: pages[len(pages)-1].T - pages[0].T})
}

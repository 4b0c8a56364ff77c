package roofline

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// run is the middle half of one recorded run.
type run struct {
	running, waiting, kv  float64 // means; kv as a ratio
	output, prompt, local float64 // tokens per second; local: computed here
	preempts, finished    float64 // per second
}

func recorded(t *testing.T, name string) run {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "vllm-runs", name, "metrics_server_metrics.csv"))
	if err != nil {
		t.Skipf("NOT CHECKED: the recorded runs are not beside this checkout: %v", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	col := map[string]int{}
	for i, h := range rows[0] {
		col[h] = i
	}
	rows = rows[1:]
	rows = rows[len(rows)/4 : 3*len(rows)/4]
	get := func(i int, name string) float64 {
		c, ok := col[name]
		if !ok {
			return 0
		}
		v, err := strconv.ParseFloat(rows[i][c], 64)
		if err != nil {
			t.Fatalf("%s line %d: %v", name, i, err)
		}
		return v
	}
	last := len(rows) - 1
	seconds := get(last, "relative_time_sec") - get(0, "relative_time_sec")
	mean := func(name string) float64 {
		sum := 0.0
		for i := range rows {
			sum += get(i, name)
		}
		return sum / float64(len(rows))
	}
	rate := func(name string) float64 { return (get(last, name) - get(0, name)) / seconds }
	r := run{
		running: mean("num_requests_running"), waiting: mean("num_requests_waiting"), kv: mean("kv_cache_usage_pct") / 100,
		output: rate("generation_tokens_total"), prompt: rate("prompt_tokens_total"),
		preempts: rate("num_preemptions_total"), finished: rate("request_success_total"),
	}
	// Hits are counted once per lookup, so they are right only if lookups are.
	switch _, ok := col["prompt_tokens_local_compute"]; {
	case ok:
		r.local = rate("prompt_tokens_local_compute")
	default:
		hit := rate("prefix_cache_hits") / rate("prefix_cache_queries")
		r.local = r.prompt * (1 - hit)
	}
	return r
}

func mustGPU(t *testing.T, name string) catalog.GPU {
	t.Helper()
	g, err := catalog.Default().FindGPU(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustModel(t *testing.T, name string) catalog.Model {
	t.Helper()
	m, err := catalog.Default().FindModel(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The recorded runs compared with the model: hardware and a busy engine explain five, but not the sixth.
func TestRecordedRuns(t *testing.T) {
	for _, tc := range []struct {
		name  string
		model string
		tp    int
		slots float64
		pool  float64 // tokens, from the server's log; 0: not logged
		slow  bool
	}{
		{"llama70b-fp4-b200-tp1_bs16_offloadoff", "nvidia/Llama-3.3-70B-Instruct-FP4", 1, 16, 782160, false},
		{"llama70b-fp4-b200-tp1_bs256_offloadoff", "nvidia/Llama-3.3-70B-Instruct-FP4", 1, 256, 780992, false},
		{"llama70b-fp4-b200-tp2_bs128_offloadoff", "nvidia/Llama-3.3-70B-Instruct-FP4", 2, 128, 0, false},
		{"llama70b-fp4-b200-tp4_bs512_offloadoff", "nvidia/Llama-3.3-70B-Instruct-FP4", 4, 512, 0, false},
		{"llama70b-fp4-b200-tp8_bs256_offloadon", "nvidia/Llama-3.3-70B-Instruct-FP4", 8, 256, 0, true},
		{"dsr1-fp4-b200-tp4_users24", "nvidia/DeepSeek-R1-0528-FP4", 4, 0, 1901888, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := recorded(t, tc.name)
			c := Config{
				GPU: mustGPU(t, "NVIDIA B200"), Model: mustModel(t, tc.model), TP: tc.tp, PP: 1,
				Weight: catalog.NVFP4, KV: catalog.FP8, Compute: catalog.BF16, Captured: 2048,
				ExpertParallel: tc.model == "nvidia/DeepSeek-R1-0528-FP4",
			}
			pool := tc.pool
			tokens, low, high := c.Capacity(0.9)
			t.Logf("pool: analytic %.0f (%.0f to %.0f), logged %.0f; weights %.1f GiB", tokens, low, high, pool, c.TotalWeightBytes()/gib)
			if pool == 0 {
				pool = tokens
			} else if pool < low || pool > high {
				t.Errorf("logged pool of %.0f tokens lies outside the estimate %.0f to %.0f", pool, low, high)
			}
			m := Measured{
				Point:       Point{Batch: r.running, Context: r.kv * pool / r.running, PerSequence: 1},
				StepSeconds: stat.Some(r.running / r.output), OutputPerS: stat.Some(r.output), PrefillPerS: stat.Some(r.local),
				Waiting: stat.Some(r.waiting), KVCapacity: stat.Some(pool), MaxNumSeqs: stat.Opt{V: tc.slots, OK: tc.slots > 0},
				PreemptsPerS: stat.Some(r.preempts), TokenBudget: stat.Some(8192),
			}
			if r.finished > 0 {
				m.Workload = Workload{Prompt: r.prompt / r.finished, Computed: r.local / r.finished, Output: r.output / r.finished}
				m.WorkloadKnown = true
			}
			o, perf, err := c.Operate(m, 1)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("running %.0f waiting %.0f kv %.2f context %.0f output %.0f/s computed prompt %.0f/s step tokens %.0f", r.running, r.waiting, r.kv, m.Context, r.output, r.local, o.StepTokens)
			t.Logf("workload %+v", m.Workload)
			t.Logf("measured %.1f ms, achievable %.1f ms, ideal %.1f ms: ratio %.2f, efficiency %.2f, binding %s, terms %+v",
				1e3*m.StepSeconds.V, 1e3*o.StepAchievableS, 1e3*o.StepIdealS, perf.Raw, o.Efficiency.V, o.Binding, o.TermsS)
			if o.Impossible(r.output) {
				t.Errorf("%.0f tok/s measured is called impossible", r.output)
			}
			// The undisturbed runs stay within the calibration for predictions; the disturbed one is far from it.
			if tc.slow && perf.Raw < 10 || !tc.slow && (perf.Raw < scaleLeast || perf.Raw > scaleMost) {
				t.Errorf("step at %.2f times the achievable one, slow = %v", perf.Raw, tc.slow)
			}
			if tc.slots == 16 {
				// With 256 slots, 223 ran on the same server at 1,880 tok/s: the pool was full, and hardly any prompts came from the
				// cache.
				open := *perf
				open.Measured.MaxNumSeqs = stat.None
				holds(t, "throughput with 223 running", open.MoreConcurrency(223).Throughput, 1880/r.output-1)
			}
			if tc.slots == 128 {
				// The same server was also measured with 256 slots: 4,863 tok/s.
				holds(t, "throughput with 256 slots", perf.RaiseSlots(256).Throughput, 4863/r.output-1)
			}
		})
	}
}

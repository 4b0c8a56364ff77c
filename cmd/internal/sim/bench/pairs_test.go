package bench

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// quickPair is the pair of every run of the tests: each limit hides behind the other.
const quickPair = "slots+pool/1"

// TestPairsOfFaults tunes servers with two faults at once and compares where each run ends with the best of
// a grid: one of them, in long tests one of each pair, or as many of each as SIMBENCH_FAULTS says.
func TestPairsOfFaults(t *testing.T) {
	list := slices.DeleteFunc(Pairs(1, 1), func(p Pair) bool { return p.Scenario.Name != quickPair })
	if longtest.Tests {
		list = Pairs(11, 1)
	}
	if n, err := strconv.Atoi(os.Getenv("SIMBENCH_FAULTS")); err == nil {
		list = Pairs(1, n)
	}
	if len(list) == 0 {
		t.Fatalf("no pair %s", quickPair)
	}
	rows, err := ScorePairs(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + pairTable(rows))
	for i := range rows {
		if r := &rows[i]; !r.Reached() {
			t.Errorf("%s: %.1f %% short of the best, at most %.1f %%, with %d restarts (%v)", r.Scenario.Name, 100*r.Short, 100*r.ShortMost, r.Restarts, r.Err)
		}
	}
}

// singleFaults are servers with one wrong setting, of kinds that no pair has; the first has none.
func singleFaults() []Pair {
	const llama = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768"
	start := func(name, bare, flags, gpu string, users, prompt, output int, allow string, grid ...Axis) Pair {
		return Pair{Faults: [2]Fault{Fault(name), "none"}, Bare: bare, Grid: grid, Allow: []string{allow}, Scenario: settings.Scenario{
			Name: name, Case: "-", Story: name, Server: strings.TrimSpace(bare + " " + flags), GPU: gpu, Startup: 5 * time.Second,
			Load: []settings.Stream{{
				Phases: []settings.Phase{{Users: users}},
				Prompt: settings.Lengths{Mean: float64(prompt), Sigma: 0.4, Most: 4 * prompt},
				Output: settings.Lengths{Mean: float64(output), Sigma: 0.4, Most: 4 * output},
			}},
			Measure: settings.Measure{After: time.Minute, For: 2 * time.Minute}, File: "pairs_test.go",
		}}
	}
	slots := func(values ...string) Axis { return Axis{"--max-num-seqs", values} }
	const a100, memory = "NVIDIA A100-SXM4-80GB", "gpu_memory_utilization"
	return []Pair{
		start("healthy", llama, "", a100, 24, 300, 200, memory, slots("", "24", "32", "64"), Axis{"--gpu-memory-utilization", []string{"", "0.95"}}),
		start("short chat, 4 slots", llama, "--max-num-seqs 4", a100, 32, 150, 150, memory, slots("4", "8", "16", "24", "32", "64", "128")),
		start("eager", "vllm serve Qwen/Qwen2.5-1.5B-Instruct --max-model-len 8192", "--enforce-eager", "NVIDIA H100 80GB HBM3", 8, 200, 300, "enforce_eager",
			Axis{"--enforce-eager", []string{"", set}}, slots("", "4", "8", "16")),
		start("memory utilization low", llama, "--gpu-memory-utilization 0.3", a100, 96, 1500, 500, memory,
			Axis{"--gpu-memory-utilization", []string{"0.3", "0.5", "0.7", "0.9", "0.95"}}, slots("", "32", "64", "128")),
	}
}

// TestSingleFaults checks that each run ends near the best of its grid, and changes nothing if nothing is wrong.
func TestSingleFaults(t *testing.T) {
	list := singleFaults()
	if !longtest.Tests {
		list = list[:2]
	}
	rows, err := ScorePairs(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + pairTable(rows))
	for i := range rows {
		if r := &rows[i]; !r.Reached() || i == 0 && r.Restarts > 0 {
			t.Errorf("%s: %.1f %% short of the best, with %d restarts (%v)", r.Scenario.Name, 100*r.Short, r.Restarts, r.Err)
		}
	}
}

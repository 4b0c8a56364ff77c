package live_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/bench"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// randomStarts is the number of random servers that are tuned without SEARCH_RANDOM: few enough for every run
// of the tests.
const randomStarts = 3

// TestSearchOnServersDrawnByChance tunes random servers and loads, and logs how far from the best of a grid
// each run ends. It asserts that no run ends worse than it began or exceeds its restarts.
func TestSearchOnServersDrawnByChance(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT CHECKED with -short: the search on servers drawn by chance")
	}
	n, seed := randomStarts, uint64(11)
	if underRace || !longtest.Tests {
		n = 1
	}
	if v, err := strconv.Atoi(os.Getenv("SEARCH_RANDOM")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("SEARCH_SEED"), 10, 64); err == nil {
		seed = v
	}
	var shortfalls []float64
	restarts := 0
	for i := range n {
		s, ok := drawn(t, seed, i)
		if !ok {
			continue
		}
		first := s.worth(t, s.flags, 7)
		if !first.known || first.goal == 0 {
			continue // it does not start, or nothing comes of it
		}
		got := s.tune(t, 1)
		if got.finished == nil {
			t.Errorf("%s: it did not finish", s.name)
			continue
		}
		end := s.worth(t, got.flags, 7)
		at, best := got.flags, end
		if longtest.Tests {
			at, best = s.best(t, 7)
		}
		if first.beats(best) {
			at, best = s.flags, first
		}
		short := 1 - end.goal/best.goal
		shortfalls = append(shortfalls, short)
		restarts += got.starts
		t.Logf("%s %s: start %.4g with %q, end %.4g with %q, best %.4g with %q: short %s, %d restarts, %s; %s", s.name, load(s.load), first.goal, s.flags, end.goal, got.flags, best.goal, strings.TrimSpace(at), percent(short), got.starts, got.took.Round(time.Second), got.finished.Reason)
		for _, step := range got.path {
			t.Logf("    %s", step)
		}
		if end.goal < first.goal*(1-worseTolerance) {
			t.Errorf("%s: ends at %.4g, and began at %.4g", s.name, end.goal, first.goal)
		}
		if got.starts > mostStarts {
			t.Errorf("%s: %d restarts", s.name, got.starts)
		}
	}
	if len(shortfalls) == 0 {
		return
	}
	slices.Sort(shortfalls)
	within := 0
	for _, v := range shortfalls {
		if v <= mostShort {
			within++
		}
	}
	t.Logf("%d servers: shortfall median %s, 90th percentile %s, worst %s; %d within %s; %.1f restarts each", len(shortfalls), percent(shortfalls[len(shortfalls)/2]),
		percent(shortfalls[len(shortfalls)*9/10]), percent(shortfalls[len(shortfalls)-1]), within, percent(mostShort), float64(restarts)/float64(len(shortfalls)))
}

// worseTolerance is the difference between two measurements of one simulated server under one load that
// another order of requests explains.
const worseTolerance = 0.03

func load(s scenarios.Stream) string {
	text := strconv.Itoa(int(s.Prompt.Mean)+s.Prompt.Least) + " in, " + strconv.Itoa(int(s.Output.Mean)) + " out, "
	if s.Closed() {
		return text + strconv.Itoa(s.Phases[0].Users) + " users"
	}
	return text + strconv.FormatFloat(s.Phases[0].Rate, 'f', 1, 64) + "/s"
}

// searchedFlags lists the flags that the grid of a random server varies.
var searchedFlags = [...]string{"max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "num_gpu_blocks_override", "enable_prefix_caching", "enforce_eager"}

// drawn returns the n-th random server of a seed as a start, with the flags that the search may change
// separate from the others.
func drawn(t *testing.T, seed uint64, n int) (start, bool) {
	t.Helper()
	sc := bench.Random(seed, n)
	c, err := launch.ParseCommand(sc.Server, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	bare := c
	for _, name := range searchedFlags {
		bare = bare.Without(name)
	}
	s := start{name: sc.Name, server: bare.Shell(), flags: flagsOf(t, bare.Shell(), sc.Server), gpu: sc.GPU, load: sc.Load[0]}
	slots := axis{"--max-num-seqs", []string{"", "16", "32", "64", "128", "256", "512"}}
	budget := axis{"--max-num-batched-tokens", []string{"", "2048", "8192"}}
	pool := axis{"--gpu-memory-utilization", []string{"", "0.95"}}
	s.grid = []axis{slots, budget, pool}
	return s, true
}

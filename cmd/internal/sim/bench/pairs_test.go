package bench_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/bench"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// quickPair is the pair of every run of the tests: each limit hides behind the other.
const quickPair = "slots+pool/1"

// TestPairsOfFaults tunes servers with two faults at once and compares where each run ends with the best of
// a grid: one of them, in long tests one of each pair, or as many of each as SIMBENCH_FAULTS says.
func TestPairsOfFaults(t *testing.T) {
	list := slices.DeleteFunc(bench.Pairs(1, 1), func(p bench.Pair) bool { return p.Scenario.Name != quickPair })
	if longtest.Tests {
		list = bench.Pairs(11, 1)
	}
	if n, err := strconv.Atoi(os.Getenv("SIMBENCH_FAULTS")); err == nil {
		list = bench.Pairs(1, n)
	}
	if len(list) == 0 {
		t.Fatalf("no pair %s", quickPair)
	}
	rows, err := bench.ScorePairs(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := bench.WritePairs(&table, rows); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for i := range rows {
		if r := &rows[i]; !r.Reached() {
			t.Errorf("%s: %.1f %% short of the best, at most %.1f %%, with %d restarts (%v)", r.Scenario.Name, 100*r.Short, 100*r.ShortMost, r.Restarts, r.Err)
		}
	}
}

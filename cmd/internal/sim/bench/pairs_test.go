package bench_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/bench"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// quickPairs are the pairs of every run of the tests: in the first each limit hides behind the other.
var quickPairs = []string{"slots+pool/1", "budget+tensor-parallel/2"}

// TestPairsOfFaults tunes servers with two faults at once and compares where each run ends with the best of
// a grid: two of them, in long tests one of each pair. 'rooftop sim bench --pairs' has more.
func TestPairsOfFaults(t *testing.T) {
	var list []bench.Pair
	if longtest.Tests {
		list = bench.Pairs(11, 1)
	} else {
		for _, p := range bench.Pairs(1, 2) {
			if slices.Contains(quickPairs, p.Scenario.Name) {
				list = append(list, p)
			}
		}
	}
	if len(list) < len(quickPairs) {
		t.Fatalf("%d pairs, want %q at least", len(list), quickPairs)
	}
	rows, err := bench.ScorePairs(context.Background(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := bench.WritePairs(&table, rows, true); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for i := range rows {
		if r := &rows[i]; !r.Reached() {
			t.Errorf("%s: %.1f %% short of the best, at most %.1f %%, with %d restarts (%v)", r.Scenario.Name, 100*r.Short, 100*r.ShortMost, r.Restarts, r.Err)
		}
	}
}

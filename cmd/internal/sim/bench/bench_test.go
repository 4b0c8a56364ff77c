package bench

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// fast lists scenarios of every family that take a fraction of a second each.
var fast = []string{
	"healthy/8b-l4", "slot-capped/8b-a100", "kv-preempting/8b-l4", "kv-head-of-line/8b-l4",
	"prefill-interference/8b-a100", "budget-too-low/235b-h200", "prefill-saturated/70b-h100", "low-batch/r1-b200",
	"cache-off/70b-h100", "prefix-thrash/8b-a100", "huge-prompt/70b-h100", "lora-slots/8b-a100",
	"burst/70b-h100", "idle/8b-a100", "idle-after-load/r1-b200", "aborts/70b-h100", "stalled/8b-a100",
	"restart/70b-h100", "gpu-throttled/235b-h200", "rank-imbalance/8b-l4", "network-delay/70b-h100",
}

// TestLibrary checks scenarios of the library: remedies help, wrong changes do not, and the diagnosis is
// correct except for the noted gaps. They are a few, unless SIMBENCH has names (cases, pairs or scenarios,
// separated by commas) or all.
//
//	SIMBENCH=all go test -run '^TestLibrary$' -v ./cmd/internal/sim/bench
func TestLibrary(t *testing.T) {
	names := fast
	switch given := os.Getenv("SIMBENCH"); {
	case given == "all":
		names = nil
	case given != "":
		names = strings.Split(given, ",")
	case !longtest.Tests:
		names = fast[1:3]
	}
	list, err := settings.Select(names...)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Bench(context.Background(), list, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table(rows))
	for i := range rows {
		if rows[i].Surprising() {
			t.Errorf("%s is not as its file says", rows[i].Scenario.Name)
		}
	}
}

// The library has every case of the specification, on at least three pairs.
func TestLibraryIsComplete(t *testing.T) {
	list, err := settings.All()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]map[string]bool{}
	for _, s := range list {
		if cases[s.Case] == nil {
			cases[s.Case] = map[string]bool{}
		}
		cases[s.Case][s.Pair()] = true
		if r, err := prepare(&s, nil, Options{Seed: 1}); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		} else if len(r.settings.Notes) > 0 {
			t.Errorf("%s: flags without effect: %v", s.Name, r.settings.Notes)
		}
		if s.Wrong.Empty() {
			t.Errorf("%s has no wrong remedy", s.Name)
		}
		for i := range s.Load {
			if err := new(World).Offer(&s.Load[i], Offering{}); err != nil {
				t.Errorf("%s: load: %v", s.Name, err)
			}
		}
	}
	if len(cases) != 24 {
		t.Errorf("%d cases of 24", len(cases))
	}
	for id, pairs := range cases {
		if len(pairs) < 3 {
			t.Errorf("%s is on %d pairs", id, len(pairs))
		}
	}
}

// BenchmarkPreempting is ten minutes of server time in S3: preemption at every
// moment, four polls a second diagnosed.
func BenchmarkPreempting(b *testing.B) {
	list, err := settings.Select("kv-preempting/8b-l4")
	if err != nil {
		b.Fatal(err)
	}
	sc := list[0]
	sc.Measure.For = 10*time.Minute - sc.Measure.After
	began := time.Now()
	n := 0
	for b.Loop() {
		if _, err := Run(&sc, nil, Options{Seed: 1}); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)*600/time.Since(began).Seconds(), "virtual-s/s")
}

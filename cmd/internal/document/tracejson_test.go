package document_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

var traceBegan = time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)

// TestTraceJSONSaysNullOfWhatWasNotMeasured checks that nothing unrecorded is written as 0, and no recorded zero as null.
func TestTraceJSONSaysNullOfWhatWasNotMeasured(t *testing.T) {
	s := &optrace.Summary{
		Coverage: optrace.Coverage{Detail: "token"},
		Phases:   []optrace.PhaseRow{{Phase: "decode", Graph: stat.Distribution{Count: 1}}},
		Kinds:    []optrace.OperatorRow{{Phase: "decode", Op: "ADD"}, {Phase: "decode", Op: "MUL", Sync: optrace.SomeTime(0), Off: optrace.SomeTime(0)}},
		Threads:  []optrace.ThreadRow{{Thread: 0}},
		Tokens:   []optrace.TokenRow{{Phase: "decode"}},
		Experts:  &optrace.Experts{},
		Critical: []optrace.CriticalRow{{Name: "synchronisation", Thread: -1}, {Name: "ADD"}},
		Backends: []optrace.BackendRow{{Name: "CUDA0"}},
		Peak:     optrace.Peak{From: "measured"},
		Target:   optrace.Target{Sites: []optrace.Site{{Symbol: "f"}}},
	}
	doc := decoded(t, traceJSON(t, s))
	at := func(path string) any {
		v := doc
		for key := range strings.SplitSeq(path, ".") {
			if list, is := v.([]any); is {
				i, _ := strconv.Atoi(key)
				v = list[i]
				continue
			}
			v = v.(map[string]any)[key]
		}
		return v
	}
	for _, path := range []string{
		"target.pid", "target.cpus", "target.sites.0.cost_ns", "coverage.graphs", "coverage.partial_graphs",
		"observer.hits_per_token", "observer.cost_per_hit_ns", "observer.expected_ratio", "observer.measured_ratio", "observer.measured_low", "observer.measured_high",
		"machine_peak.bytes_per_s", "machine_peak.flops_per_s", "machine_peak.threads",
		"phases.0.calls", "phases.0.tokens", "phases.0.call", "phases.0.between", "phases.0.first_token",
		"kinds.0.each", "kinds.0.sync_ns", "kinds.0.off_cpu_ns", "threads.0.thread_ids", "threads.0.wake_up",
		"tokens.0.tokens", "tokens.0.graph_ns", "tokens.0.off_cpu_ns", "tokens.0.context",
		"experts.experts", "experts.used", "critical.0.thread", "backends.0.time_ns",
	} {
		if v := at(path); v != nil {
			t.Errorf("%s is %v, want null", path, v)
		}
	}
	for _, path := range []string{"observer.windows", "coverage.calls", "coverage.dropped", "kinds.1.sync_ns", "kinds.1.off_cpu_ns", "critical.1.thread"} {
		if v := at(path); fmt.Sprint(v) != "0" {
			t.Errorf("%s is %v, want 0", path, v)
		}
	}
	if err := schema(t, "trace.v1.schema.json").Validate(doc); err != nil {
		t.Error(err)
	}
}

// anyTrace returns random, implausible figures.
func anyTrace(seed uint64) *optrace.Summary {
	r := rand.New(rand.NewPCG(seed, 7))
	s := &optrace.Summary{}
	names := slices.Sorted(maps.Keys(traces()))
	if seed%2 == 0 {
		s = traces()[names[seed/2%uint64(len(names))]]()
	}
	if seed%4 != 2 {
		fill(r, reflect.ValueOf(s).Elem())
	}
	phases := []string{"decode", "prefill", "", hostile[r.IntN(len(hostile))]}
	for i := range s.Kinds {
		s.Kinds[i].Phase = phases[r.IntN(len(phases))]
	}
	for i := range s.Layers {
		s.Layers[i].Phase = phases[r.IntN(len(phases))]
		s.Layers[i].Parts = map[string]time.Duration{hostile[r.IntN(len(hostile))]: time.Duration(r.Int64()), "norm": -1}
	}
	return s
}

// FuzzTraceReports checks that any figures are drawn within the width, without foreign control characters, and written as a
// document and as HTML without foreign content.
func FuzzTraceReports(f *testing.F) {
	for seed := range uint64(120) {
		if longtest.Tests || seed%4 == 0 {
			f.Add(seed, int(20+seed%130), seed%3 == 0, seed%5 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, columns int, ascii, verbose bool) {
		s := anyTrace(seed)
		tracePages.checkDrawn(t, s, render.Options{Width: columns, ASCII: ascii, Verbose: verbose})
		graph := aDecodeGraph()
		fill(rand.New(rand.NewPCG(seed, 13)), reflect.ValueOf(graph).Elem())
		shown := traceHTML(t, &trace.Source{Trace: *traceOf(s), Graph: graph})
		checkHTML(t, shown)
		if strings.Contains(shown, `"NaN"`) || strings.Contains(shown, `Inf"`) {
			t.Fatal("a position in a picture is not a number")
		}
	})
}

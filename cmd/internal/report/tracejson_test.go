package report

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

var traceBegan = time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)

func traceJSON(t testing.TB, s *optrace.Summary) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTraceJSON(&b, &Trace{Version: "1.3.0", Started: traceBegan, Summary: s}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTraceJSONMatchesSchema(t *testing.T) {
	s := schema(t, "trace.v1.schema.json")
	cases := traces()
	cases["none"] = func() *optrace.Summary { return nil }
	cases["everything"] = func() *optrace.Summary {
		all, n := &optrace.Summary{}, 0
		numberFields(reflect.ValueOf(all).Elem(), &n)
		all.Roof.From, all.Findings[0].Severity = "seen", "warn"
		all.Roof.MeasuredOn = "2026-11-22"
		for _, p := range []*string{&all.Phases[0].Phase, &all.Kinds[0].Phase, &all.Steps[0].Phase, &all.Layers[0].Phase, &all.Tokens[0].Phase, &all.Types[0].Phase} {
			*p = "decode"
		}
		all.Kinds[0].Bound, all.Steps[0].Bound = optrace.BoundMixed, optrace.BoundCompute
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			if err := s.Validate(decoded(t, traceJSON(t, cases[name]()))); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTraceSchemaRejects(t *testing.T) {
	s := schema(t, "trace.v1.schema.json")
	good := string(traceJSON(t, denseTrace()))
	for _, c := range []struct{ name, from, to string }{
		{"another schema", `"rooftop.trace/v1"`, `"rooftop.trace/v2"`},
		{"a time without its zone", `"2026-11-22T03:04:05Z"`, `"2026-11-22 03:04"`},
		{"an unknown phase", `"phase": "decode"`, `"phase": "encore"`},
		{"an unknown bound", `"bound": "memory"`, `"bound": "luck"`},
		{"an unknown severity", `"severity": "warn"`, `"severity": "red"`},
		{"a roof from nowhere", `"from": "measured"`, `"from": "guess"`},
		{"a key that is not known", `"coverage": {`, `"extra": 1, "coverage": {`},
		{"a key that is not known, within", `"dropped": 0`, `"dropped": 0, "lost": 1`},
		{"a missing key", `"left_out": 0,`, ``},
		{"a number in quotes", `"dropped": 0`, `"dropped": "0"`},
		{"a negative count", `"dropped": 0`, `"dropped": -1`},
		{"a time with a fraction of a nanosecond", `"cost_per_hit_ns": 900`, `"cost_per_hit_ns": 900.5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := strings.Replace(good, c.from, c.to, 1)
			if wrong == good {
				t.Fatalf("the document has no %s", c.from)
			}
			if s.Validate(decoded(t, []byte(wrong))) == nil {
				t.Error("the schema accepts it")
			}
		})
	}
}

// TestTraceJSONSaysNullOfWhatWasNotMeasured holds that nothing that was not recorded is
// written as 0, nor what was and is none as null.
func TestTraceJSONSaysNullOfWhatWasNotMeasured(t *testing.T) {
	s := &optrace.Summary{
		Coverage: optrace.Coverage{Detail: "token"},
		Phases:   []optrace.PhaseRow{{Phase: "decode", Graph: optrace.Distribution{Count: 1}}},
		Kinds:    []optrace.OperatorRow{{Phase: "decode", Op: "ADD"}, {Phase: "decode", Op: "MUL", Sync: optrace.SomeTime(0), Off: optrace.SomeTime(0)}},
		Threads:  []optrace.ThreadRow{{Lane: 0}},
		Tokens:   []optrace.TokenRow{{Phase: "decode"}},
		Experts:  &optrace.Experts{},
		Critical: []optrace.CriticalRow{{Name: "synchronisation", Lane: -1}, {Name: "ADD"}},
		Others:   []optrace.OtherRow{{Name: "others"}},
		Backends: []optrace.BackendRow{{Name: "CUDA0"}},
		Roof:     optrace.Roof{From: "measured", ByThreads: []optrace.RoofPoint{{Threads: 1}}},
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
		"roof.bytes_per_s", "roof.flops_per_s", "roof.threads", "roof.by_threads.0.bytes_per_s", "roof.by_threads.0.flops_per_s",
		"phases.0.calls", "phases.0.tokens", "phases.0.call", "phases.0.between", "phases.0.first_token",
		"kinds.0.each", "kinds.0.sync_ns", "kinds.0.off_cpu_ns", "threads.0.threads", "threads.0.wake_up",
		"tokens.0.tokens", "tokens.0.graph_ns", "tokens.0.off_cpu_ns", "tokens.0.context",
		"experts.experts", "experts.used", "critical.0.lane", "others.0.pid", "backends.0.time_ns",
	} {
		if v := at(path); v != nil {
			t.Errorf("%s is %v, want null", path, v)
		}
	}
	for _, path := range []string{"observer.windows", "coverage.calls", "coverage.dropped", "kinds.1.sync_ns", "kinds.1.off_cpu_ns", "critical.1.lane"} {
		if v := at(path); fmt.Sprint(v) != "0" {
			t.Errorf("%s is %v, want 0", path, v)
		}
	}
	if err := schema(t, "trace.v1.schema.json").Validate(doc); err != nil {
		t.Error(err)
	}
}

func TestTraceJSONGolden(t *testing.T) {
	golden(t, "trace-absent.json", traceJSON(t, absentTrace()))
	golden(t, "trace-moe.json", traceJSON(t, mixtureTrace()))
}

// TestTraceComesBack holds that a document gives the figures again.
func TestTraceComesBack(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(traces())) {
		if name == "hostile" { // its bytes that are no UTF-8 become U+FFFD
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := traces()[name]()
			back, err := ReadTrace(bytes.NewReader(traceJSON(t, s)))
			if err != nil {
				t.Fatal(err)
			}
			want := &Trace{Version: "1.3.0", Started: traceBegan, Summary: s}
			if diff := cmp.Diff(want, back, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("what came back differs (-written +read):\n%s", diff)
			}
		})
	}
}

func TestReadTraceRefuses(t *testing.T) {
	good := string(traceJSON(t, denseTrace()))
	for _, c := range []struct{ name, doc, says string }{
		{"nothing", "", "no document of rooftop trace --json"},
		{"a list", "[]", "no document of rooftop trace --json"},
		{"no schema", "{}", "it has no schema"},
		{"another schema", `{"schema":"rooftop.probe/v1"}`, "a document of rooftop.probe/v1"},
		{"a time that is none", strings.Replace(good, "2026-11-22T03:04:05Z", "today", 1), "a part of rooftop.trace/v1"},
		{"text for a number", strings.Replace(good, `"dropped": 0`, `"dropped": "no"`, 1), "dropped"},
		{"cut off", good[:len(good)/2], "no document of rooftop trace --json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadTrace(strings.NewReader(c.doc))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want one that says %q", err, c.says)
			}
		})
	}
}

// FuzzReadTrace holds that no document makes the reader or a writer panic, and that
// what is read can be written and read again.
func FuzzReadTrace(f *testing.F) {
	for _, s := range traces() {
		f.Add(traceJSON(f, s()))
	}
	f.Add([]byte(`{"schema":"rooftop.trace/v1","layers":[{"phase":"decode","layer":3,"parts_ns":null}],"experts":{"layers":[{"chosen":[0]}]}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		trace, err := ReadTrace(bytes.NewReader(doc))
		if err != nil || trace.Started.UTC().Year() > 9999 || trace.Started.UTC().Year() < 0 {
			return
		}
		var b bytes.Buffer
		if err := WriteTraceJSON(&b, trace); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTrace(&b); err != nil {
			t.Fatalf("what was read is written so that it cannot be read: %v", err)
		}
		if err := WriteTrace(io.Discard, trace.Summary, Options{Verbose: true}); err != nil {
			t.Fatal(err)
		}
	})
}

// anyTrace returns figures that no trace would have.
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

// FuzzTraceReports holds that any figures are drawn within the width, without a
// control character that is not ours, and written as a document and as a page of HTML
// that holds nothing foreign.
func FuzzTraceReports(f *testing.F) {
	for seed := range uint64(120) {
		f.Add(seed, int(20+seed%130), seed%3 == 0, seed%5 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, columns int, ascii, verbose bool) {
		s := anyTrace(seed)
		o := Options{Width: columns, ASCII: ascii, Verbose: verbose}
		page := traceText(t, s, o)
		checkWidth(t, page, o.width())
		for _, r := range page {
			if r == utf8.RuneError && ascii || r < ' ' && r != '\n' || r == 0x7f || ascii && r > 0x7e {
				t.Fatalf("%q is on the page", r)
			}
		}
		decoded(t, traceJSON(t, s))
		graph := aDecodeGraph()
		fill(rand.New(rand.NewPCG(seed, 13)), reflect.ValueOf(graph).Elem())
		shown := traceHTML(t, &TracePage{Trace: Trace{Started: traceBegan, Summary: s}, Graph: graph})
		checkHTML(t, shown)
		if strings.Contains(shown, `"NaN"`) || strings.Contains(shown, `Inf"`) {
			t.Fatal("a place of a picture is no number")
		}
	})
}

func TestTraceWriteErrorsAreReturned(t *testing.T) {
	for name, err := range map[string]error{
		"text":     WriteTrace(failing{}, denseTrace(), Options{}),
		"document": WriteTraceJSON(failing{}, &Trace{Summary: denseTrace()}),
		"HTML":     WriteTraceHTML(failing{}, &TracePage{Trace: Trace{Summary: denseTrace()}}),
	} {
		if err == nil {
			t.Errorf("%s: a failed write is not reported", name)
		}
	}
}

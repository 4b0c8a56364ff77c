package report

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// traceComparisons are the states of a comparison that the writers are held against.
func traceComparisons() map[string]func() *TraceComparison {
	compare := func(a, b *optrace.Summary) *TraceComparison {
		return CompareTraces("1.3.0", "before.json", "after.json", &Trace{Version: "1.3.0", Started: traceBegan, Summary: a}, &Trace{Version: "1.3.0", Started: traceBegan.Add(time.Minute), Summary: b})
	}
	// faster is the same model on one thread, whose every operator takes less time.
	faster := func() *optrace.Summary {
		s := denseTrace()
		s.Threads = s.Threads[:1]
		s.Roof.Threads = 1
		for i := range s.Phases {
			p := &s.Phases[i]
			p.Rate = p.Rate.Times(1.3)
			for _, d := range []*optrace.Distribution{&p.Call, &p.Graph, &p.FirstToken} {
				*d = optrace.Distribution{Count: d.Count, Mean: d.Mean * 10 / 13, P50: d.P50 * 10 / 13, P95: d.P95 * 10 / 13, P99: d.P99 * 10 / 13, Max: d.Max * 10 / 13}
			}
		}
		for _, rows := range [][]optrace.OperatorRow{s.Kinds, s.Steps} {
			for i := range rows {
				o := &rows[i]
				o.Time, o.Each = o.Time*10/13, spreadOut(int(o.Count), o.Each.Mean*10/13)
			}
		}
		for i := range s.Layers {
			s.Layers[i].Time = s.Layers[i].Time * 10 / 13
		}
		return s
	}
	return map[string]func() *TraceComparison{
		"threads": func() *TraceComparison { return compare(denseTrace(), faster()) },
		"same":    func() *TraceComparison { return compare(denseTrace(), denseTrace()) },
		"models":  func() *TraceComparison { return compare(denseTrace(), mixtureTrace()) },
		"itself": func() *TraceComparison {
			a, b := &Trace{Version: "1.3.0", Started: traceBegan, Summary: denseTrace()}, &Trace{Version: "1.3.0", Started: traceBegan, Summary: denseTrace()}
			return CompareTraces("1.3.0", "run.jsonl.gz", "run.json", a, b)
		},
		"refused": func() *TraceComparison { return compare(&optrace.Summary{}, denseTrace()) },
		"hostile": func() *TraceComparison { return compare(hostileTrace(), faster()) },
	}
}

func traceComparisonText(t testing.TB, c *TraceComparison, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTraceCompare(&b, c, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func traceComparisonJSON(t testing.TB, c *TraceComparison) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTraceCompareJSON(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTraceCompareGoldens(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(traceComparisons())) {
		of := map[string]Options{"80": {Width: 80}}
		if name == "threads" {
			of["60"], of["120"], of["80-ascii"], of["80-v"] = Options{Width: 60}, Options{Width: 120}, Options{Width: 80, ASCII: true}, Options{Width: 80, Verbose: true}
		}
		for _, v := range slices.Sorted(maps.Keys(of)) {
			t.Run(name+"-"+v, func(t *testing.T) {
				page := traceComparisonText(t, traceComparisons()[name](), of[v])
				checkWidth(t, page, of[v].Width)
				golden(t, "trace-compare-"+name+"-"+v, []byte(page))
			})
		}
	}
	golden(t, "trace-compare-threads.json", traceComparisonJSON(t, traceComparisons()["threads"]()))
}

func TestTraceCompareColour(t *testing.T) {
	for name, c := range traceComparisons() {
		plain, colored := traceComparisonText(t, c(), Options{}), traceComparisonText(t, c(), Options{Color: true})
		if diff := cmp.Diff(plain, escapes.ReplaceAllString(colored, "")); diff != "" || plain == colored {
			t.Errorf("%s: colour changes the text, or there is none:\n%s", name, diff)
		}
	}
}

func TestTraceCompareJSONMatchesSchema(t *testing.T) {
	s := schema(t, "trace-compare.v1.schema.json")
	for name, c := range traceComparisons() {
		if err := s.Validate(decoded(t, traceComparisonJSON(t, c()))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := string(traceComparisonJSON(t, traceComparisons()["threads"]()))
	for _, c := range []struct{ name, from, to string }{
		{"another schema", "trace-compare/v1", "trace-compare/v2"},
		{"an unknown verdict", `"verdict": "faster"`, `"verdict": "better"`},
		{"a key that is not known", `"headline"`, `"title": "", "headline"`},
		{"figures of what is not comparable", `"comparable": true`, `"comparable": false`},
		{"no interval", `"ratio_low"`, `"low"`},
	} {
		wrong := strings.Replace(good, c.from, c.to, 1)
		if wrong == good {
			t.Fatalf("the document has no %s", c.from)
		}
		if s.Validate(decoded(t, []byte(wrong))) == nil {
			t.Errorf("the schema accepts %s", c.name)
		}
	}
}

// FuzzTraceCompare holds that any two traces can be compared, drawn within the width
// and written as JSON.
func FuzzTraceCompare(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, seed*7+1, int(20+seed*2))
	}
	f.Fuzz(func(t *testing.T, x, y uint64, columns int) {
		c := CompareTraces("1", "a", "b", &Trace{Started: traceBegan, Summary: anyTrace(x)}, &Trace{Started: traceBegan, Summary: anyTrace(y)})
		if x%2 == 0 {
			fill(rand.New(rand.NewPCG(x, y)), reflect.ValueOf(c.Comparison).Elem())
			c.Refused = nil
		}
		o := Options{Width: columns, ASCII: y%2 == 0, Verbose: y%3 == 0}
		checkWidth(t, traceComparisonText(t, c, o), o.width())
		decoded(t, traceComparisonJSON(t, c))
	})
}

// TestCompareFoldsWhatCannotBeTold holds that operators of which none has a verdict are one
// line with the reason, and a table again with -v; that what to do comes after the headline.
func TestCompareFoldsWhatCannotBeTold(t *testing.T) {
	c := traceComparisons()["threads"]()
	c.Headline, c.Next = "Whether decode differs cannot be told.", "Measure both again without tui.test."
	for i := range c.Operators {
		x := &c.Operators[i].PerToken
		x.Low, x.High, x.Word, x.Reason = stat.None, stat.None, "", "a thread was without its CPU"
	}
	short, long := traceComparisonText(t, c, Options{Width: 80}), traceComparisonText(t, c, Options{Width: 80, Verbose: true})
	if strings.Contains(short, "ffn_up") || !strings.Contains(long, "ffn_up") {
		t.Errorf("with and without -v:\n%s", short)
	}
	flat := strings.Join(strings.Fields(short), " ")
	for _, want := range []string{"cannot be told. ▲ do Measure both again without tui.test.", "can be compared (-v shows them): a thread was without its CPU"} {
		if !strings.Contains(strings.ReplaceAll(flat, nbsp, " "), want) {
			t.Errorf("the page does not say %q:\n%s", want, short)
		}
	}
	c.Operators[0].PerToken.Word = optrace.ChangeFaster
	if page := traceComparisonText(t, c, Options{Width: 80}); !strings.Contains(page, "faster") {
		t.Errorf("one has a verdict:\n%s", page)
	}
}

package document_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// traceComparisons are the states of a comparison for the writers' tests.
func traceComparisons() map[string]func() *trace.Comparison {
	compare := func(a, b *optrace.Summary) *trace.Comparison {
		later := traceOf(b)
		later.Started = later.Started.Add(time.Minute)
		return trace.Compare("1.3.0", "before.json", "after.json", traceOf(a), later)
	}
	// faster is the same model on one thread, with less time for every operator.
	faster := func() *optrace.Summary {
		s := denseTrace()
		s.Threads = s.Threads[:1]
		s.Peak.Threads = 1
		for i := range s.Phases {
			p := &s.Phases[i]
			p.Rate = p.Rate.Times(1.3)
			for _, d := range []*stat.Distribution{&p.Call, &p.Graph, &p.FirstToken} {
				*d = stat.Distribution{Count: d.Count, Mean: d.Mean * 10 / 13, P50: d.P50 * 10 / 13, P95: d.P95 * 10 / 13, P99: d.P99 * 10 / 13, Max: d.Max * 10 / 13}
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
	return map[string]func() *trace.Comparison{
		"threads": func() *trace.Comparison { return compare(denseTrace(), faster()) },
		"same":    func() *trace.Comparison { return compare(denseTrace(), denseTrace()) },
		"models":  func() *trace.Comparison { return compare(denseTrace(), mixtureTrace()) },
		"itself": func() *trace.Comparison {
			return trace.Compare("1.3.0", "run.jsonl.gz", "run.json", traceOf(denseTrace()), traceOf(denseTrace()))
		},
		"refused": func() *trace.Comparison { return compare(&optrace.Summary{}, denseTrace()) },
		"hostile": func() *trace.Comparison { return compare(hostileTrace(), faster()) },
	}
}

// traceComparePages are the pages and documents of comparisons.
var traceComparePages = subject[*trace.Comparison]{
	name: "trace-compare", states: traceComparisons(), page: (*trace.Comparison).Page, document: document.WriteTraceComparison,
	schema: "trace-compare.v1.schema.json", widths: []string{"80"}, thorough: []string{"threads"},
}

func TestTraceCompareGoldens(t *testing.T) {
	traceComparePages.checkGoldens(t)
	golden(t, "trace-compare-threads.json", traceComparePages.json(t, traceComparisons()["threads"]()))
}

func TestTraceCompareColour(t *testing.T) { traceComparePages.checkColour(t) }

func TestTraceCompareJSONMatchesSchema(t *testing.T) {
	traceComparePages.checkSchema(t, nil)
	checkRejects(t, traceComparePages.schema, string(traceComparePages.json(t, traceComparisons()["threads"]())), []replacement{
		{"another schema", "trace-compare/v1", "trace-compare/v2"},
		{"an unknown verdict", `"verdict": "faster"`, `"verdict": "better"`},
		{"a key that is not known", `"headline"`, `"title": "", "headline"`},
		{"figures of what is not comparable", `"comparable": true`, `"comparable": false`},
		{"no interval", `"ratio_low"`, `"low"`},
	})
}

// FuzzTraceCompare checks that any two traces can be compared, drawn within the width and written as JSON.
func FuzzTraceCompare(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, seed*7+1, int(20+seed*2))
	}
	f.Fuzz(func(t *testing.T, x, y uint64, columns int) {
		c := trace.Compare("1", "a", "b", traceOf(anyTrace(x)), traceOf(anyTrace(y)))
		if x%2 == 0 {
			fill(rand.New(rand.NewPCG(x, y)), reflect.ValueOf(c.Comparison).Elem())
			c.Refused = nil
		}
		traceComparePages.checkDrawn(t, c, render.Options{Width: columns, ASCII: y%2 == 0, Verbose: y%3 == 0})
	})
}

// TestCompareFoldsWhatCannotBeTold checks that operators without any verdict are one line with the reason, and a table with
// -v, and that the next step follows the headline.
func TestCompareFoldsWhatCannotBeTold(t *testing.T) {
	c := traceComparisons()["threads"]()
	c.Headline, c.Next = "Whether decode differs cannot be told.", "Measure both again without tui.test."
	for i := range c.Operators {
		x := &c.Operators[i].PerToken
		x.Low, x.High, x.Verdict, x.Reason = stat.None, stat.None, "", "a thread was without its CPU"
	}
	short, long := traceComparePages.text(t, c, render.Options{Width: 80}), traceComparePages.text(t, c, render.Options{Width: 80, Verbose: true})
	if strings.Contains(short, "ffn_up") || !strings.Contains(long, "ffn_up") {
		t.Errorf("with and without -v:\n%s", short)
	}
	flat := strings.Join(strings.Fields(short), " ")
	for _, want := range []string{"cannot be told. ▲ do Measure both again without tui.test.", "can be compared: a thread was without its CPU"} {
		if !strings.Contains(strings.ReplaceAll(flat, figure.NBSP, " "), want) {
			t.Errorf("the page does not say %q:\n%s", want, short)
		}
	}
	c.Operators[0].PerToken.Verdict = compare.Faster
	if page := traceComparePages.text(t, c, render.Options{Width: 80}); !strings.Contains(page, "faster") {
		t.Errorf("one has a verdict:\n%s", page)
	}
}
